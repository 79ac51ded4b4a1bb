//! The position of a replay from the delivery log, which goes forwards, from the oldest record on.

use std::time::Duration;

use crate::delivery_log::LogRecord;
use crate::model::Timestamp;

/// A place among the records of the log, in the order of their times and ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The time of the last record before it.
    pub time: Timestamp,
    /// The id of that record; empty before all records of the time.
    pub record_id: String,
}

impl LogPosition {
    /// The place before all records of a time.
    pub fn before_time(time: Timestamp) -> Self {
        Self {
            time,
            record_id: String::new(),
        }
    }

    /// The place behind a record.
    pub fn after_record(record: &LogRecord) -> Self {
        Self {
            time: record.time,
            record_id: record.record_id.clone(),
        }
    }

    /// Whether a record comes behind this place.
    pub fn is_before(&self, record: &LogRecord) -> bool {
        (self.time, &self.record_id) < (record.time, &record.record_id)
    }

    /// The end of a part of the log that begins here, of this length, and no later than `to`.
    pub fn end_of_part(&self, length: Duration, to: Timestamp) -> Timestamp {
        (self.time + length).min(to)
    }

    /// Reads a place.
    pub fn parse(text: &str) -> Option<Self> {
        let (time, record_id) = text.split_once('-')?;
        Some(Self {
            time: Timestamp::from_millis(time.parse().ok()?),
            record_id: record_id.to_owned(),
        })
    }

    /// Writes it.
    pub fn to_text(&self) -> String {
        format!("{}-{}", self.time.as_millis(), self.record_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written_and_orders_records() {
        let record = |ms, id: &str| LogRecord {
            time: Timestamp::from_millis(ms),
            record_id: id.to_owned(),
            ..LogRecord::default()
        };
        let place = LogPosition::after_record(&record(7, "b"));
        assert_eq!(LogPosition::parse(&place.to_text()), Some(place.clone()));
        assert_eq!(LogPosition::parse("7"), None);
        let check =
            |ms, id, expected| assert_eq!(place.is_before(&record(ms, id)), expected, "{ms} {id}");
        check(7, "a", false);
        check(7, "b", false);
        check(7, "c", true);
        check(8, "a", true);
        check(6, "z", false);
        assert!(LogPosition::before_time(Timestamp::from_millis(7)).is_before(&record(7, "a")));
    }

    #[test]
    fn a_part_of_the_log_ends_where_the_replay_does() {
        let place = LogPosition::before_time(Timestamp::from_millis(1_000));
        let to = Timestamp::from_millis(1_500);
        assert_eq!(
            place.end_of_part(Duration::from_millis(200), to),
            Timestamp::from_millis(1_200)
        );
        assert_eq!(place.end_of_part(Duration::from_secs(9), to), to);
    }
}
