//! The end of records: how much of a disk the embedded log takes, and which files go. On AWS the
//! bucket's lifecycle deletes files.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{FileKey, LogHour};
use crate::model::size::DiskShare;
use crate::model::time::whole_millis;
use crate::model::{
    LOG_BYTES_KEPT, LOG_DISK_FREE_MIN, LOG_MERGE_BYTES_MAX, LOG_OBJECT_BYTES_MAX,
    RECORDS_WAITING_BYTES_MAX, Timestamp,
};
use crate::pressure::ByteUsage;

/// The disk that the log lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogDisk {
    /// The size of the disk, and how much of it is used, the log included.
    pub usage: ByteUsage,
    /// The share of the disk, in per cent, from which on the log makes room, so that the disk's
    /// level of back pressure does not rise. `None` if no level follows from the disk.
    pub calm_percent: Option<u64>,
}

/// A file of the log, or one that was set aside, as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// The key of the file as one of the log.
    pub key: String,
    /// Whether it was set aside because it cannot be read.
    pub is_aside: bool,
    /// The hour of its records.
    pub hour: LogHour,
    /// The size, in bytes.
    pub bytes: u64,
    /// The time of the last write.
    pub modified_at: Timestamp,
}

/// The prefix of files that were set aside where they stay in the bucket of the log. Readers skip
/// what begins with an underscore: Athena, Spark, and all that stand on Arrow's data sets.
/// <https://docs.aws.amazon.com/athena/latest/ug/create-table.html>
/// <https://arrow.apache.org/docs/python/generated/pyarrow.dataset.dataset.html>
pub const ASIDE_IN_LOG: &str = "_damaged/";

/// The prefix that such files had in the folder of the log before, where readers found them.
pub const ASIDE_BEFORE: &str = "damaged/";

impl ListedFile {
    /// A file of a listing of the log. `None` for files of others.
    pub fn new(key: String, bytes: u64, modified_at: Timestamp) -> Option<Self> {
        let hour = FileKey::parse(&key)?.hour;
        Some(Self {
            key,
            is_aside: false,
            hour,
            bytes,
            modified_at,
        })
    }

    /// The part of the key that all files have that go together: the parts of a merge, or the file
    /// alone.
    fn merge_unit_key(&self) -> &str {
        let is_part =
            !self.is_aside && FileKey::parse(&self.key).is_some_and(|key| !key.is_fresh());
        let unit = self.key.rsplit_once('-').filter(|_| is_part);
        unit.map_or(&self.key, |(unit, _)| unit)
    }
}

/// The bytes that the log may take now: as set, and less where the disk fills up. It then makes
/// room until the disk is below `calm_percent`, as far as it can. Of a disk that is not known there
/// is no share: `None`, and bytes are as set.
pub fn log_bytes_max(size: DiskShare, disk: Option<LogDisk>, log_bytes: u64) -> Option<u64> {
    let Some(disk) = disk else {
        return match size {
            DiskShare::Percent(_) => None,
            DiskShare::Bytes(bytes) => Some(bytes),
        };
    };
    let set = size.bytes_of_disk(disk.usage.total);
    let Some(calm_percent) = disk.calm_percent else {
        return Some(set);
    };
    let others = disk.usage.used.saturating_sub(log_bytes);
    let left = percent_of(disk.usage.total, calm_percent).saturating_sub(others);
    Some(set.min(left.max(LOG_BYTES_KEPT)))
}

/// Most bytes of records that may wait for a log of this size. `total` is the size of its disk, if
/// known.
pub fn records_waiting_bytes_max(size: Option<DiskShare>, total: Option<u64>) -> u64 {
    let set = size.map_or(u64::MAX, |size| {
        size.bytes_of_disk(total.unwrap_or(u64::MAX))
    });
    set.min(RECORDS_WAITING_BYTES_MAX)
}

/// Whether a disk has room for a merge of a log of this size: for copies of its sources, for the
/// files that it writes, and for what the log leaves free.
pub fn has_room_to_merge(size: Option<DiskShare>, disk: ByteUsage) -> bool {
    let set = size.map_or(u64::MAX, |size| size.bytes_of_disk(disk.total));
    let merged = set
        .saturating_mul(3)
        .min(2 * LOG_MERGE_BYTES_MAX + LOG_OBJECT_BYTES_MAX);
    disk.free_bytes() >= merged.saturating_add(LOG_DISK_FREE_MIN)
}

/// The first hour of which records are kept, if they are kept so long.
pub fn first_kept_hour(now: Timestamp, retention: Duration) -> LogHour {
    let retention = whole_millis(retention);
    LogHour::containing(Timestamp::from_millis(
        now.as_millis().saturating_sub(retention),
    ))
}

/// The files that go so that the others take these bytes at most, the oldest hour first. Only of
/// the newest hour single files go, the oldest first. The parts of a merge go together: without
/// one, the others would look like those of a merge that was cut short.
pub fn files_to_delete(files: &[ListedFile], bytes_max: u64) -> Vec<&ListedFile> {
    let written = first_written(files);
    let mut files: Vec<&ListedFile> = files.iter().collect();
    files.sort_by_key(|file| {
        (
            file.hour,
            written[file.merge_unit_key()],
            file.merge_unit_key(),
            &file.key,
        )
    });
    let newest = files.last().map(|file| file.hour);
    let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let mut over = Vec::new();
    for file in files {
        let is_rest = over.last().is_some_and(|last: &&ListedFile| {
            last.merge_unit_key() == file.merge_unit_key()
                || (last.hour == file.hour && newest != Some(file.hour))
        });
        if bytes > bytes_max || is_rest {
            bytes = bytes.saturating_sub(file.bytes);
            over.push(file);
        }
    }
    over
}

/// The first write of a file of each [`ListedFile::merge_unit_key`].
fn first_written(files: &[ListedFile]) -> BTreeMap<&str, Timestamp> {
    let mut written = BTreeMap::new();
    for file in files {
        let first = written
            .entry(file.merge_unit_key())
            .or_insert(file.modified_at);
        *first = file.modified_at.min(*first);
    }
    written
}

fn percent_of(total: u64, percent: u64) -> u64 {
    let share = u128::from(total) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn room(size: DiskShare, used: u64, log_bytes: u64) -> u64 {
        let usage = ByteUsage {
            used,
            total: 100 * GIB,
        };
        let disk = LogDisk {
            usage,
            calm_percent: Some(94),
        };
        log_bytes_max(size, Some(disk), log_bytes).unwrap()
    }

    #[test]
    fn a_size_is_a_share_of_the_disk_or_bytes() {
        let check =
            |text, expected| assert_eq!(DiskShare::parse(text, LOG_BYTES_KEPT), expected, "{text}");
        check("5%", Some(DiskShare::Percent(5)));
        check("100 %", Some(DiskShare::Percent(100)));
        check("20GB", Some(DiskShare::Bytes(20 << 30)));
        check("16 MB", Some(DiskShare::Bytes(LOG_BYTES_KEPT)));
        for bad in ["", "5", "0%", "101%", "-5%", "%", "15MB", "1.5GB", "20 GiB"] {
            check(bad, None);
        }
    }

    #[test]
    fn the_log_takes_its_share_while_there_is_room() {
        assert_eq!(room(DiskShare::Percent(5), 0, 0), 5 * GIB);
        assert_eq!(room(DiskShare::Percent(5), 94 * GIB, 5 * GIB), 5 * GIB);
        assert_eq!(room(DiskShare::Bytes(GIB), 50 * GIB, GIB), GIB);
        let no_levels = LogDisk {
            usage: ByteUsage {
                used: GIB,
                total: GIB,
            },
            calm_percent: None,
        };
        let half = log_bytes_max(DiskShare::Percent(50), Some(no_levels), 0);
        assert_eq!(half, Some(GIB / 2));
    }

    #[test]
    fn size_in_bytes_holds_on_a_disk_that_is_not_known() {
        assert_eq!(log_bytes_max(DiskShare::Percent(5), None, GIB), None);
        assert_eq!(log_bytes_max(DiskShare::Bytes(GIB), None, 7), Some(GIB));
    }

    #[test]
    fn the_log_makes_room_before_the_disk_is_under_pressure() {
        assert_eq!(room(DiskShare::Percent(5), 96 * GIB, 5 * GIB), 3 * GIB);
        assert_eq!(room(DiskShare::Bytes(4 * GIB), 96 * GIB, 5 * GIB), 3 * GIB);
        assert_eq!(
            room(DiskShare::Percent(5), 100 * GIB, 4 * GIB),
            LOG_BYTES_KEPT
        );
        assert_eq!(room(DiskShare::Bytes(7), 100 * GIB, 4 * GIB), 7);
        assert_eq!(room(DiskShare::Percent(5), 0, 4 * GIB), 5 * GIB);
    }

    #[test]
    fn waiting_records_take_no_more_than_the_log() {
        let check =
            |size, total, expected| assert_eq!(records_waiting_bytes_max(size, total), expected);
        check(Some(DiskShare::Percent(5)), Some(10 * GIB), GIB / 2);
        check(Some(DiskShare::Percent(5)), Some(100 * GIB), GIB);
        check(Some(DiskShare::Percent(5)), None, GIB);
        check(Some(DiskShare::Bytes(LOG_BYTES_KEPT)), None, LOG_BYTES_KEPT);
        check(None, Some(GIB), GIB);
    }

    #[test]
    fn a_merge_needs_room_for_what_it_copies_and_writes() {
        const MIB: u64 = 1 << 20;
        let check = |size, total, free, expected| {
            let disk = ByteUsage {
                used: total - free,
                total,
            };
            assert_eq!(has_room_to_merge(size, disk), expected, "{free}");
        };
        let five = Some(DiskShare::Percent(5));
        for (total, needed) in [(100 * GIB, 576 * MIB), (1000 * MIB, 278 * MIB)] {
            check(five, total, needed, true);
            check(five, total, needed - 1, false);
        }
        check(None, 100 * GIB, 575 * MIB, false);
    }

    #[test]
    fn an_hour_is_kept_while_a_record_of_it_may_be() {
        let week = Duration::from_hours(7 * 24);
        let first = first_kept_hour(at("2026-03-08T03:59:59Z"), week);
        assert_eq!(first, LogHour::containing(at("2026-03-01T03:00:00Z")));
        assert_eq!(
            first_kept_hour(Timestamp::EPOCH, week),
            LogHour::containing(Timestamp::EPOCH)
        );
    }

    #[test]
    fn only_files_of_the_log_are_listed() {
        let listed = |key: &str| ListedFile::new(key.to_owned(), 1, Timestamp::EPOCH);
        let plain = listed("date=2026-03-07/hour=03/07-a.parquet").unwrap();
        assert_eq!(plain.hour, LogHour::containing(at("2026-03-07T03:00:00Z")));
        for other in [
            "notes.txt",
            "_damaged/date=2026-03-07/hour=03/07-a.parquet",
            "damaged/date=2026-03-07/hour=03/07-a.parquet",
        ] {
            assert_eq!(listed(other), None, "{other}");
        }
    }

    fn file(hour: u64, written: u64, bytes: u64) -> ListedFile {
        let hour = LogHour::containing(Timestamp::from_millis(hour * 3_600_000));
        let key = format!("{}{written:02}-a.parquet", hour.key_prefix());
        ListedFile {
            key,
            is_aside: false,
            hour,
            bytes,
            modified_at: Timestamp::from_millis(written),
        }
    }

    fn check(files: &[ListedFile], bytes_max: u64, expected: &[usize]) {
        let expected: Vec<_> = expected.iter().map(|index| &files[*index]).collect();
        assert_eq!(files_to_delete(files, bytes_max), expected, "{bytes_max}");
    }

    #[test]
    fn the_oldest_hours_go_whole_and_of_the_newest_the_oldest_files() {
        let files = [
            file(3, 9, 10),
            file(1, 1, 10),
            file(1, 2, 10),
            file(2, 3, 10),
            file(3, 8, 10),
        ];
        check(&files, 50, &[]);
        check(&files, 49, &[1, 2]);
        check(&files, 30, &[1, 2]);
        check(&files, 29, &[1, 2, 3]);
        check(&files, 19, &[1, 2, 3, 4]);
        check(&files, 0, &[1, 2, 3, 4, 0]);
        check(&[], 0, &[]);
    }
    #[test]
    fn the_parts_of_a_merge_go_together() {
        let part = |id: &str, part: u16, written| {
            let file = file(1, written, 10);
            ListedFile {
                key: format!("{}merged-{id}-{part:03}.parquet", file.hour.key_prefix()),
                ..file
            }
        };
        let files = [
            part("b", 0, 1),
            file(1, 2, 10),
            part("b", 1, 4),
            part("a", 0, 3),
            part("a", 1, 3),
        ];
        check(&files, 49, &[0, 2]);
        check(&files, 30, &[0, 2]);
        check(&files, 29, &[0, 2, 1]);
        check(&files, 19, &[0, 2, 1, 3, 4]);
        let aside = ListedFile {
            is_aside: true,
            ..files[0].clone()
        };
        check(&[aside, files[2].clone()], 19, &[0]);
    }
}
