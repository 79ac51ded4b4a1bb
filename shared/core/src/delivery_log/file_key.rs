//! The keys of the log's files.
//!
//! `date=YYYY-MM-DD/hour=HH/{minute}-{uuid}.parquet` holds records of that hour, by their own time,
//! that were written in one go. `date=YYYY-MM-DD/hour=HH/merged-{uuid}-{part}.parquet` is a part of
//! what such files were merged into. The folders are named as Hive names partitions, so that other
//! engines read them as columns.

use crate::model::Timestamp;

const HOUR_MS: u64 = 3_600_000;

/// An hour of the log, in UTC: the number of hours since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogHour(u64);

/// A file of the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey {
    /// The hour of its records.
    pub hour: LogHour,
    /// The name in the hour's folder.
    pub name: FileName,
}

/// The name of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// Records as they came.
    Fresh {
        /// The minute of the hour in which its first record was written, 0..=59.
        minute: u8,
        /// A UUID.
        id: String,
    },
    /// Records of several files.
    Merged {
        /// The UUID of the merge.
        id: String,
        /// The number of the part, from 0.
        part: u16,
    },
}

impl LogHour {
    /// The hour that a time lies in.
    pub const fn containing(time: Timestamp) -> Self {
        Self(time.as_millis() / HOUR_MS)
    }

    /// The hour that is so many hours after the epoch.
    pub(crate) const fn from_epoch(hours: u64) -> Self {
        Self(hours)
    }

    /// The hours since the epoch.
    pub(crate) const fn since_epoch(self) -> u64 {
        self.0
    }

    /// The first moment of the hour.
    pub const fn start(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(HOUR_MS))
    }

    /// The first moment after the hour.
    pub const fn end(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_add(1).saturating_mul(HOUR_MS))
    }

    /// The hour before it.
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Whether a part of the hour lies at `from` or later, and before `to`.
    pub fn overlaps(self, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
        from.is_none_or(|from| self.end() > from) && to.is_none_or(|to| self.start() < to)
    }

    /// The prefix of the hour's files.
    pub fn key_prefix(self) -> String {
        self.start().strftime("date=%Y-%m-%d/hour=%H/")
    }

    /// Reads `date=YYYY-MM-DD/hour=HH`.
    fn parse(folder: &str) -> Option<Self> {
        let (date, hour) = folder.strip_prefix("date=")?.split_once("/hour=")?;
        let parsed = Self::containing(Timestamp::parse(&format!("{date}T{hour}:00:00Z")).ok()?);
        (parsed.key_prefix().strip_suffix('/') == Some(folder)).then_some(parsed)
    }
}

impl FileKey {
    /// The key.
    pub fn render(&self) -> String {
        self.hour.key_prefix() + &self.file_name()
    }

    /// The name in the folder of its hour.
    pub fn file_name(&self) -> String {
        match &self.name {
            FileName::Fresh { minute, id } => format!("{minute:02}-{id}.parquet"),
            FileName::Merged { id, part } => format!("merged-{id}-{part:03}.parquet"),
        }
    }

    /// Reads a key. `None` if it is not one of ours, as of files that others put beside them.
    pub fn parse(key: &str) -> Option<Self> {
        let (folder, file) = key.rsplit_once('/')?;
        let parsed = Self {
            hour: LogHour::parse(folder)?,
            name: FileName::parse(file)?,
        };
        (parsed.render() == key).then_some(parsed)
    }

    /// Whether it is still to be merged.
    pub fn is_fresh(&self) -> bool {
        matches!(self.name, FileName::Fresh { .. })
    }
}

impl FileName {
    fn parse(file: &str) -> Option<Self> {
        let (first, rest) = file.strip_suffix(".parquet")?.split_once('-')?;
        if first == "merged" {
            let (id, part) = rest.rsplit_once('-')?;
            return Some(Self::Merged {
                id: valid_file_id(id)?,
                part: part.parse().ok()?,
            });
        }
        let minute = first.parse().ok().filter(|minute| *minute < 60)?;
        Some(Self::Fresh {
            minute,
            id: valid_file_id(rest)?,
        })
    }
}

fn valid_file_id(id: &str) -> Option<String> {
    let is_valid = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_valid && !id.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UUID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";

    fn hour() -> LogHour {
        LogHour::containing(Timestamp::parse("2026-03-07T03:59:59.999Z").unwrap())
    }

    #[test]
    fn keys_are_as_documented() {
        let check = |name: FileName, expected: &str| {
            let key = FileKey { hour: hour(), name };
            assert_eq!(key.render(), expected);
            assert_eq!(FileKey::parse(expected), Some(key));
        };
        check(
            FileName::Fresh {
                minute: 7,
                id: UUID.to_owned(),
            },
            "date=2026-03-07/hour=03/07-1b4e28ba-2fa1-41d2-883f-0016d3cca427.parquet",
        );
        check(
            FileName::Merged {
                id: UUID.to_owned(),
                part: 12,
            },
            "date=2026-03-07/hour=03/merged-1b4e28ba-2fa1-41d2-883f-0016d3cca427-012.parquet",
        );
    }

    #[test]
    fn an_hour_has_a_start_and_an_end() {
        let text = |time: Timestamp| time.strftime("%H:%M:%S");
        assert_eq!(
            [text(hour().start()), text(hour().end())],
            ["03:00:00", "04:00:00"]
        );
        assert_eq!(LogHour::containing(hour().end()).previous(), hour());
        assert_eq!(hour().key_prefix(), "date=2026-03-07/hour=03/");
    }

    #[test]
    fn a_foreign_key_is_none_of_ours() {
        for key in [
            "",
            "x.parquet",
            "date=2026-03-07/hour=03/60-a.parquet",
            "date=2026-03-07/hour=03/7-a.parquet",
            "date=2026-03-07/hour=03/07-.parquet",
            "date=2026-03-07/hour=03/07-a.parquet.tmp",
            "date=2026-03-07/hour=3/07-a.parquet",
            "date=2026-03-07/hour=24/07-a.parquet",
            "date=2026-02-30/hour=03/07-a.parquet",
            "log/date=2026-03-07/hour=03/07-a.parquet",
            "date=2026-03-07/hour=03/merged-a.parquet",
            "date=2026-03-07/hour=03/merged-a-1.parquet",
        ] {
            assert_eq!(FileKey::parse(key), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn any_key_is_read_back(ms in 0_u64..4_000_000_000_000, minute in 0_u8..60, part: u16, merged: bool) {
            let id = UUID.to_owned();
            let name = if merged { FileName::Merged { id, part } } else { FileName::Fresh { minute, id } };
            let key = FileKey { hour: LogHour::containing(Timestamp::from_millis(ms)), name };
            prop_assert_eq!(FileKey::parse(&key.render()), Some(key));
        }

        #[test]
        fn no_text_makes_it_panic(key: String) {
            let _ = FileKey::parse(&key);
        }
    }
}
