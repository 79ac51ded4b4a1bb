//! The steps in which an hour is merged, so that one merge takes bounded time, memory and disk.

use std::collections::{BTreeMap, BTreeSet};

use super::merging::{LATE_FILES_MAX, files_to_merge, merge_id};
use super::{FileKey, LogHour};
use crate::model::time::whole_millis;
use crate::model::{LOG_HOUR_CLOSED_AFTER, LOG_MERGE_BYTES_MAX, LOG_MERGE_FILES_MAX, Timestamp};

/// A file and its size, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizedFile {
    /// The key.
    pub key: FileKey,
    /// The size.
    pub bytes: u64,
}

impl SizedFile {
    /// A file of a listing. `None` for files of others.
    pub fn new(key: &str, bytes: u64) -> Option<Self> {
        FileKey::parse(key).map(|key| Self { key, bytes })
    }
}

/// Files that are merged together or not at all: a fresh file, or all parts of one merge.
#[derive(Debug, Default)]
struct MergeUnit<'a> {
    bytes: u64,
    files: Vec<&'a FileKey>,
}

/// The first hour that is not closed yet: records of it still come.
pub fn first_open_hour(now: Timestamp) -> LogHour {
    let closed_after = whole_millis(LOG_HOUR_CLOSED_AFTER);
    LogHour::containing(Timestamp::from_millis(
        now.as_millis().saturating_sub(closed_after),
    ))
}

/// The files to merge next into one, of those of an hour without [`leftovers`](super::leftovers):
/// of [`files_to_merge`] as many as fit into one merge, the smallest first. Empty if nothing is to
/// be done: the rest is as large as files become.
pub fn merge_step(files: &[SizedFile], is_closed: bool) -> Vec<FileKey> {
    let keys: Vec<FileKey> = files.iter().map(|file| file.key.clone()).collect();
    let wanted: BTreeSet<FileKey> = files_to_merge(&keys, is_closed).into_iter().collect();
    let files: Vec<&SizedFile> = files
        .iter()
        .filter(|file| wanted.contains(&file.key))
        .collect();
    let (merged, fresh): (Vec<_>, Vec<_>) = files.iter().partition(|file| !file.key.is_fresh());
    let has_only_late = !merged.is_empty() && fresh.len() <= LATE_FILES_MAX;
    if has_only_late && smallest_that_fit(&merged).is_empty() {
        return Vec::new();
    }
    smallest_that_fit(&files)
}

/// The smallest files, as many as fit into one merge. Empty if not even two do.
fn smallest_that_fit(files: &[&SizedFile]) -> Vec<FileKey> {
    let mut taken = Vec::new();
    let mut bytes = 0_u64;
    let mut units = 0;
    for unit in units_by_size(files) {
        bytes = bytes.saturating_add(unit.bytes);
        if bytes > LOG_MERGE_BYTES_MAX || taken.len() + unit.files.len() > LOG_MERGE_FILES_MAX {
            break;
        }
        taken.extend(unit.files.into_iter().cloned());
        units += 1;
    }
    if units < 2 { Vec::new() } else { taken }
}

fn units_by_size<'a>(files: &[&'a SizedFile]) -> Vec<MergeUnit<'a>> {
    let mut units: BTreeMap<String, MergeUnit<'a>> = BTreeMap::new();
    for file in files {
        let id = merge_id(&file.key).map_or_else(|| file.key.file_name(), str::to_owned);
        let unit = units.entry(id).or_default();
        unit.bytes = unit.bytes.saturating_add(file.bytes);
        unit.files.push(&file.key);
    }
    let mut units: Vec<MergeUnit<'a>> = units.into_values().collect();
    // Stable, so that of equal ones the order of the keys decides.
    units.sort_by_key(|unit| unit.bytes);
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery_log::FileName;

    const MIB: u64 = 1 << 20;

    fn fresh(number: u64, bytes: u64) -> SizedFile {
        let name = FileName::Fresh {
            minute: 7,
            id: format!("{number:04}"),
        };
        SizedFile {
            key: FileKey {
                hour: LogHour::containing(Timestamp::EPOCH),
                name,
            },
            bytes,
        }
    }

    fn merged(id: &str, part: u16, bytes: u64) -> SizedFile {
        let name = FileName::Merged {
            id: id.to_owned(),
            part,
        };
        SizedFile {
            key: FileKey {
                hour: LogHour::containing(Timestamp::EPOCH),
                name,
            },
            bytes,
        }
    }

    fn many(count: u64, bytes: u64) -> Vec<SizedFile> {
        (0..count).map(|n| fresh(n, bytes)).collect()
    }

    fn check(files: &[SizedFile], is_closed: bool, expected: &[&SizedFile]) {
        let expected: Vec<_> = expected.iter().map(|file| file.key.clone()).collect();
        assert_eq!(merge_step(files, is_closed), expected);
    }

    #[test]
    fn an_hour_is_open_until_five_minutes_after_its_end() {
        let at = |text| Timestamp::parse(text).unwrap();
        let hour = LogHour::containing(at("2026-03-07T03:00:00Z"));
        assert_eq!(first_open_hour(at("2026-03-07T04:04:59.999Z")), hour);
        assert_eq!(first_open_hour(at("2026-03-07T04:05:00Z")).previous(), hour);
        assert_eq!(
            first_open_hour(Timestamp::EPOCH),
            LogHour::containing(Timestamp::EPOCH)
        );
    }

    #[test]
    fn a_step_takes_the_smallest_that_fit() {
        let small = fresh(1, MIB);
        let large = fresh(0, 127 * MIB);
        check(&[large.clone(), small.clone()], true, &[&small, &large]);
        let larger = fresh(0, 127 * MIB + 1);
        check(&[larger, small.clone()], true, &[]);
        let other = fresh(2, 100 * MIB);
        check(
            &[large, other.clone(), small.clone()],
            true,
            &[&small, &other],
        );
        check(&[], true, &[]);
        check(&[small], true, &[]);
    }

    #[test]
    fn a_step_of_an_open_hour_takes_fresh_files_alone() {
        let files = many(60, MIB);
        check(&files[..59], false, &[]);
        let step = [files.clone(), vec![merged("a", 0, MIB)]].concat();
        check(&step, false, &files.iter().collect::<Vec<_>>());
        assert_eq!(merge_step(&many(500, 1), false).len(), LOG_MERGE_FILES_MAX);
        assert_eq!(merge_step(&many(60, 6 * MIB), false).len(), 21);
    }

    #[test]
    fn the_parts_of_a_merge_stay_together() {
        let parts = [merged("a", 0, 60 * MIB), merged("a", 1, 9 * MIB)];
        let small = fresh(1, MIB);
        let other = merged("b", 0, 55 * MIB);
        let large = merged("c", 0, 65 * MIB);
        let files = [parts.to_vec(), vec![other.clone(), small.clone()]].concat();
        check(&files, true, &[&small, &other, &parts[0], &parts[1]]);
        check(&[parts.to_vec(), vec![large]].concat(), true, &[]);
    }

    #[test]
    fn large_merges_are_not_rewritten_for_few_late_records() {
        let large = [merged("a", 0, 100 * MIB), merged("b", 0, 100 * MIB)];
        check(&[large.to_vec(), many(10, 1)].concat(), true, &[]);
        assert_eq!(
            merge_step(&[large.to_vec(), many(11, 1)].concat(), true).len(),
            12
        );
    }

    #[test]
    fn a_busy_hour_ends_after_some_steps() {
        let mut files = many(900, MIB);
        let mut steps = 0;
        loop {
            let step = merge_step(&files, true);
            if step.is_empty() {
                break;
            }
            let (taken, rest): (Vec<_>, Vec<_>) =
                files.into_iter().partition(|file| step.contains(&file.key));
            let bytes = taken.iter().map(|file| file.bytes).sum();
            files = [rest, vec![merged(&format!("m{steps}"), 0, bytes)]].concat();
            steps += 1;
        }
        // Seven large files, and four that are too few to rewrite one for.
        assert_eq!((steps, files.len()), (7, 11));
    }
}
