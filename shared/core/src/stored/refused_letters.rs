//! The report of one process of deadletter of the letters that their bucket refused, and that wait
//! in the queue to be tried again. The queue cannot tell them from fresh letters, which wait too.
//!
//! Key `refused/{uuid}.json`. Version 1; written by deadletter while the bucket refuses, read by
//! the monitor, which deletes old ones. Fixture: `refused-letters-v1.json`.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::delivery::WIRE_VERSION;
use crate::model::{FormatError, StoredFormat, Timestamp, render_json};

/// The prefix of what the processes of `deadletter` tell of refused letters.
pub const REFUSED: &str = "refused/";

/// The length of a step in which letters are counted together: short beside the waits of letters.
const STEP_MS: u64 = 10_000;

/// The key of the report of one process of `deadletter`. `instance` is a UUID.
pub fn refused_letters_key(instance: &str) -> String {
    format!("{REFUSED}{instance}.json")
}

const FORMAT: StoredFormat = StoredFormat {
    name: "a report of refused letters",
    newest: WIRE_VERSION,
};

/// The refused letters of one process, counted by when they are tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedLetters(BTreeMap<u64, u64>);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefusedWire {
    v: u32,
    /// Pairs of the end of a step, in milliseconds since 1970, and the letters that are tried again
    /// in it.
    due_by: Vec<(u64, u64)>,
}

impl RefusedLetters {
    /// Counts a letter that is tried again then.
    pub fn add_letter(&mut self, due: Timestamp) {
        let end = (due.as_millis() / STEP_MS + 1) * STEP_MS;
        *self.0.entry(end).or_default() += 1;
    }

    /// The letters that still wait. One whose time has come is counted by the queue.
    pub fn count_waiting(&self, now: Timestamp) -> u64 {
        let left = self.0.range(now.as_millis() + 1..);
        left.fold(0, |sum, (_, letters)| sum.saturating_add(*letters))
    }

    /// Renders the report as an object.
    pub fn render(&self) -> Bytes {
        render_json(&RefusedWire {
            v: 1,
            due_by: self
                .0
                .iter()
                .map(|(end, letters)| (*end, *letters))
                .collect(),
        })
    }

    /// Reads a report.
    pub fn parse(object: &Bytes) -> Result<Self, FormatError> {
        let wire = FORMAT.parse(object, |wire: &RefusedWire| wire.v)?;
        Ok(Self(wire.due_by.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Version 1 as it was first written. Never edited.
    const V1: &str = include_str!("fixtures/refused-letters-v1.json");

    fn at(secs: u64) -> Timestamp {
        Timestamp::EPOCH + Duration::from_secs(1_800_000_000 + secs)
    }

    fn letters() -> RefusedLetters {
        let mut letters = RefusedLetters::default();
        for secs in [0, 9, 10, 905] {
            letters.add_letter(at(secs));
        }
        letters
    }

    #[test]
    fn report_is_written_as_its_fixture_and_read_back() {
        assert_eq!(letters().render(), V1.trim_end());
        let read = RefusedLetters::parse(&Bytes::from_static(V1.as_bytes()));
        assert_eq!(read.unwrap(), letters());
    }

    #[test]
    fn letters_wait_until_they_are_tried_again() {
        let waiting = [0, 9, 10, 19, 20, 909, 910].map(|secs| letters().count_waiting(at(secs)));
        assert_eq!(waiting, [4, 4, 2, 2, 1, 1, 0]);
    }

    #[test]
    fn foreign_report_is_told_from_a_newer_one() {
        let parse =
            |text: &'static str| RefusedLetters::parse(&Bytes::from_static(text.as_bytes()));
        for text in ["", "{", r#"{"v":1}"#, r#"{"v":1,"dueBy":[1]}"#] {
            assert!(
                matches!(parse(text), Err(FormatError::Malformed(..))),
                "{text}"
            );
        }
        assert!(matches!(parse(r#"{"v":4}"#), Err(FormatError::Newer(4))));
    }
}
