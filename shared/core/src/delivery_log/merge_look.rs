//! The look for hours in which something is to be merged.
//!
//! A usual look begins a day back, so that it costs little and still finds what came late. Once a
//! day a look begins with the oldest hour.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{LogHour, SizedFile, first_open_hour, merge_step};
use crate::model::Timestamp;
use crate::model::time::whole_millis;

/// The prefix of the keys of all files that are merged.
pub const DATES: &str = "date=";

/// The time over which a usual look goes back, and after which all hours are looked at again.
const LOOK_BACK: Duration = Duration::from_hours(24);

/// The progress of the merges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MergeCheckpoint {
    /// The time of the last run that looked at all hours of the log and left none of them to be
    /// merged. `None` if there was none.
    pub all_merged_at: Option<Timestamp>,
}

/// A look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeLook {
    /// The time at which it began.
    began: Timestamp,
    /// Whether it looks at all hours.
    pub is_whole: bool,
}

/// Finds hours in a listing.
#[derive(Debug)]
pub struct HoursToMerge {
    look: MergeLook,
    /// The files of the hour that the listing has come to.
    files: Vec<SizedFile>,
    found: BTreeSet<LogHour>,
}

impl MergeLook {
    /// The look of a run that begins now.
    pub fn begin(checkpoint: &MergeCheckpoint, now: Timestamp) -> Self {
        let is_recent = checkpoint
            .all_merged_at
            .is_some_and(|at| at <= now && now.since(at) < LOOK_BACK);
        Self {
            began: now,
            is_whole: !is_recent,
        }
    }

    /// A look at one hour, which says nothing about the others.
    pub fn for_one_hour(now: Timestamp) -> Self {
        Self {
            began: now,
            is_whole: false,
        }
    }

    /// The key after which the listing begins.
    pub fn start_after_key(self) -> Option<String> {
        let back = whole_millis(LOOK_BACK);
        let from = Timestamp::from_millis(self.began.as_millis().saturating_sub(back));
        (!self.is_whole).then(|| LogHour::containing(from).key_prefix())
    }

    /// Whether no more records of the hour are expected.
    pub fn is_closed(self, hour: LogHour) -> bool {
        hour < first_open_hour(self.began)
    }

    /// The checkpoint after it.
    pub fn next_checkpoint(self, last: &MergeCheckpoint, is_all_merged: bool) -> MergeCheckpoint {
        let all_merged_at = if self.is_whole && is_all_merged {
            Some(self.began)
        } else {
            last.all_merged_at
        };
        MergeCheckpoint { all_merged_at }
    }

    /// Whether something is to be done with the files of an hour. A look at all hours also takes
    /// those in which a merge that was cut short may have left a few files behind.
    fn needs_merge(self, hour: LogHour, files: &[SizedFile]) -> bool {
        let may_have_leftovers = files.len() > 1 && files.iter().any(|file| !file.key.is_fresh());
        (self.is_whole && may_have_leftovers) || !merge_step(files, self.is_closed(hour)).is_empty()
    }
}

impl HoursToMerge {
    /// Nothing was listed yet.
    pub fn new(look: MergeLook) -> Self {
        Self {
            look,
            files: Vec::new(),
            found: BTreeSet::new(),
        }
    }

    /// Takes the next file of the listing, which is in the order of the keys.
    pub fn push(&mut self, file: SizedFile) {
        if self
            .files
            .last()
            .is_some_and(|last| last.key.hour != file.key.hour)
        {
            self.end_hour();
        }
        self.files.push(file);
    }

    /// The hours, once everything was listed.
    pub fn finish(mut self) -> BTreeSet<LogHour> {
        self.end_hour();
        self.found
    }

    fn end_hour(&mut self) {
        let files = std::mem::take(&mut self.files);
        let hour = files.first().map(|file| file.key.hour);
        self.found
            .extend(hour.filter(|hour| self.look.needs_merge(*hour, &files)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn now() -> Timestamp {
        at("2026-03-07T04:05:00Z")
    }

    fn look(all_merged_at: Option<Timestamp>) -> MergeLook {
        MergeLook::begin(&MergeCheckpoint { all_merged_at }, now())
    }

    #[test]
    fn all_hours_are_looked_at_once_a_day() {
        assert_eq!(
            look(Some(now())).start_after_key().unwrap(),
            "date=2026-03-06/hour=04/"
        );
        assert_eq!(look(None).start_after_key(), None);
        assert_eq!(
            look(Some(at("2026-03-06T04:05:00Z"))).start_after_key(),
            None
        );
        assert!(!look(Some(at("2026-03-06T04:05:00.001Z"))).is_whole);
        assert!(
            look(Some(now() + DAY)).is_whole,
            "a clock that was set back"
        );
    }

    #[test]
    fn a_look_at_all_hours_is_repeated_until_nothing_is_left() {
        let last = MergeCheckpoint {
            all_merged_at: Some(at("2026-03-01T00:00:00Z")),
        };
        let whole = MergeLook::begin(&last, now());
        assert_eq!(
            whole.next_checkpoint(&last, true).all_merged_at,
            Some(now())
        );
        assert_eq!(whole.next_checkpoint(&last, false), last);
        let recent = MergeCheckpoint {
            all_merged_at: Some(at("2026-03-07T00:00:00Z")),
        };
        assert_eq!(
            MergeLook::begin(&recent, now()).next_checkpoint(&recent, true),
            recent
        );
    }

    fn found(is_whole: bool, keys: &[&str]) -> Vec<String> {
        let mut hours = HoursToMerge::new(MergeLook {
            began: now(),
            is_whole,
        });
        keys.iter()
            .filter_map(|key| SizedFile::new(key, 1))
            .for_each(|file| hours.push(file));
        hours
            .finish()
            .into_iter()
            .map(LogHour::key_prefix)
            .collect()
    }

    #[test]
    fn hours_with_something_to_merge_are_found() {
        let keys = [
            "date=2026-03-07/hour=01/07-a.parquet",
            "date=2026-03-07/hour=02/07-a.parquet",
            "date=2026-03-07/hour=02/07-b.parquet",
            "date=2026-03-07/hour=03/07-a.parquet",
            "date=2026-03-07/hour=03/merged-m-000.parquet",
            "date=2026-03-07/hour=03/notes.txt",
            "date=2026-03-07/hour=04/07-a.parquet",
            "date=2026-03-07/hour=04/07-b.parquet",
        ];
        assert_eq!(found(false, &keys), ["date=2026-03-07/hour=02/"]);
        assert_eq!(
            found(true, &keys),
            ["date=2026-03-07/hour=02/", "date=2026-03-07/hour=03/"]
        );
        assert_eq!(found(true, &[]), Vec::<String>::new());
    }
}
