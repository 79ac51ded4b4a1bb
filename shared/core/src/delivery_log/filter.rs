//! Questions to the log: one event's records by an id, or a list of records, newest first.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use super::id_time::earliest_of_id;
use super::{LogHour, LogRecord, LogResult, RecordKind, StatusRange};
use crate::model::{Timestamp, hex};

/// A look-up of everything that has an id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordLookup {
    /// The topic, in lower case; `None` for every one.
    pub topic: Option<String>,
    /// The subscription, in lower case; `None` for every one.
    pub subscription: Option<String>,
    /// The event's id, as [`log_text`](super::log_text) has it.
    pub event_id: Option<String>,
    /// The request's `webhook-id`.
    pub webhook_id: Option<String>,
    /// Only records of this time or later.
    pub from: Option<Timestamp>,
    /// Only records before this time.
    pub to: Option<Timestamp>,
    /// Whether hours before the time in the event's id are searched too: that time is the
    /// producer's.
    pub whole: bool,
}

/// A selection of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// The topic, in lower case; `None` for every one.
    pub topic: Option<String>,
    /// The subscription, in lower case.
    pub subscription: Option<String>,
    /// Only records of this kind.
    pub kind: Option<RecordKind>,
    /// Only records with this result.
    pub result: Option<LogResult>,
    /// Only events of this type.
    pub event_type: Option<String>,
    /// Only answers with one of these statuses.
    pub status: Option<StatusRange>,
    /// Only requests with this id.
    pub webhook_id: Option<String>,
    /// Only events of the replay with this id.
    pub run_id: Option<String>,
    /// Only records of this time or later.
    pub from: Option<Timestamp>,
    /// Only records before this time.
    pub to: Option<Timestamp>,
    /// Only records behind this place.
    pub after: Option<RecordCursor>,
    /// Whether records are answered without their payloads, which are then not read.
    pub without_payload: bool,
}

/// A place in a list of records, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordCursor {
    /// The time of the last record before it.
    pub time: Timestamp,
    /// The id of that record.
    pub record_id: String,
}

/// The record id after which there is none of the same time.
const RECORD_ID_LAST: &str = "ffffffffffffffffffffffffffffffff";

impl RecordLookup {
    /// Whether a record is one that is looked for.
    pub fn matches(&self, record: &LogRecord) -> bool {
        matches_filter(self.topic.as_ref(), Some(&record.topic))
            && matches_filter(self.subscription.as_ref(), Some(&record.subscription))
            && matches_filter(self.event_id.as_ref(), record.event_id.as_ref())
            && matches_filter(self.webhook_id.as_ref(), record.webhook_id.as_ref())
            && self.from.is_none_or(|from| record.time >= from)
            && self.to.is_none_or(|to| record.time < to)
    }

    /// The time before which no record can be: the one that is asked for, or that in the event's
    /// id.
    pub fn earliest_time(&self) -> Option<Timestamp> {
        let id = self.event_id.as_deref().filter(|_| !self.whole);
        self.from.max(id.and_then(earliest_of_id))
    }

    /// Whether the files of an hour may have such a record.
    pub fn may_be_in(&self, hour: LogHour) -> bool {
        hour.overlaps(self.earliest_time(), self.to)
    }
}

impl RecordFilter {
    /// Whether a record is selected.
    pub fn matches(&self, record: &LogRecord) -> bool {
        matches_filter(self.topic.as_ref(), Some(&record.topic))
            && matches_filter(self.subscription.as_ref(), Some(&record.subscription))
            && matches_filter(self.kind.as_ref(), Some(&record.kind))
            && matches_filter(self.result.as_ref(), Some(&record.result))
            && matches_filter(self.event_type.as_ref(), record.event_type.as_ref())
            && self
                .status
                .is_none_or(|asked| record.status.is_some_and(|status| asked.contains(status)))
            && matches_filter(self.webhook_id.as_ref(), record.webhook_id.as_ref())
            && matches_filter(self.run_id.as_ref(), record.run_id.as_ref())
            && self.from.is_none_or(|from| record.time >= from)
            && self.to.is_none_or(|to| record.time < to)
            && self
                .after
                .as_ref()
                .is_none_or(|after| after.is_before(record))
    }

    /// Whether the files of an hour may have such a record.
    pub fn may_be_in(&self, hour: LogHour) -> bool {
        hour.overlaps(self.from, self.end_time())
    }

    /// The time at which, and after which, no record can be.
    pub fn end_time(&self) -> Option<Timestamp> {
        self.to
            .into_iter()
            .chain(self.after.as_ref().map(RecordCursor::end_time))
            .min()
    }
}

impl RecordCursor {
    /// The place behind a record.
    pub fn after_record(record: &LogRecord) -> Self {
        Self {
            time: record.time,
            record_id: record.record_id.clone(),
        }
    }

    /// The place behind every record of an hour and of later ones.
    pub fn behind_hour(hour: LogHour) -> Self {
        Self::behind_moment(hour.start())
    }

    /// The place behind every record of a time and of later ones.
    pub fn behind_moment(time: Timestamp) -> Self {
        Self {
            time,
            record_id: RECORD_ID_LAST.to_owned(),
        }
    }

    /// Reads the text of a cursor.
    pub fn parse(text: &str) -> Option<Self> {
        let (time, record_id) = text.split_once('-')?;
        let time = time.parse().ok().map(Timestamp::from_millis)?;
        hex::parse::<16>(record_id)?;
        Some(Self {
            time,
            record_id: record_id.to_owned(),
        })
    }

    /// The time at which, and after which, no record comes behind this place.
    fn end_time(&self) -> Timestamp {
        let is_last_of_time = self.record_id == RECORD_ID_LAST;
        self.time + Duration::from_millis(u64::from(!is_last_of_time))
    }

    /// Whether a record comes behind this place.
    pub fn is_before(&self, record: &LogRecord) -> bool {
        record.time < self.time || record.time == self.time && record.record_id > self.record_id
    }
}

impl fmt::Display for RecordCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.time.as_millis(), self.record_id)
    }
}

/// The order of lists: the newest first.
pub fn newest_first(one: &LogRecord, other: &LogRecord) -> Ordering {
    other
        .time
        .cmp(&one.time)
        .then_with(|| one.record_id.cmp(&other.record_id))
}

fn matches_filter<T: PartialEq>(asked: Option<&T>, value: Option<&T>) -> bool {
    asked.is_none() || asked == value
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::full;
    use super::super::time_in_id;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_part_of_a_filter_selects() {
        let record = full();
        let time = record.time.as_millis();
        let check = |filter: &RecordFilter, expected| {
            assert_eq!(filter.matches(&record), expected, "{filter:?}");
        };
        check(&RecordFilter::default(), true);
        let check_with = |set: &dyn Fn(&mut RecordFilter), expected| {
            let mut filter = RecordFilter::default();
            set(&mut filter);
            check(&filter, expected);
        };
        check_with(&|filter| filter.topic = Some("orders".into()), true);
        check_with(&|filter| filter.topic = Some("order".into()), false);
        check_with(&|filter| filter.subscription = Some("audit".into()), false);
        check_with(&|filter| filter.kind = Some(RecordKind::Held), false);
        check_with(&|filter| filter.result = Some(LogResult::Retry), true);
        check_with(&|filter| filter.result = Some(LogResult::Delivered), false);
        check_with(
            &|filter| filter.event_type = Some("order.paid".into()),
            true,
        );
        check_with(&|filter| filter.event_type = Some("order".into()), false);
        check_with(&|filter| filter.status = Some(503.into()), true);
        check_with(&|filter| filter.status = Some(500.into()), false);
        check_with(&|filter| filter.status = StatusRange::parse("5xx"), true);
        check_with(&|filter| filter.status = StatusRange::parse("4xx"), false);
        check_with(&|filter| filter.webhook_id = Some("msg_1".into()), false);
        check_with(
            &|filter| filter.from = Some(Timestamp::from_millis(time)),
            true,
        );
        check_with(
            &|filter| filter.from = Some(Timestamp::from_millis(time + 1)),
            false,
        );
        check_with(
            &|filter| filter.to = Some(Timestamp::from_millis(time + 1)),
            true,
        );
        check_with(
            &|filter| filter.to = Some(Timestamp::from_millis(time)),
            false,
        );
    }

    #[test]
    fn a_look_up_asks_for_what_it_names() {
        let check =
            |look_up: RecordLookup, expected| assert_eq!(look_up.matches(&full()), expected);
        let by_event = RecordLookup {
            event_id: Some("order-1".into()),
            ..RecordLookup::default()
        };
        check(by_event.clone(), true);
        check(
            RecordLookup {
                topic: Some("other".into()),
                ..by_event.clone()
            },
            false,
        );
        check(
            RecordLookup {
                subscription: Some("billing".into()),
                ..by_event.clone()
            },
            true,
        );
        check(
            RecordLookup {
                subscription: Some("audit".into()),
                ..by_event.clone()
            },
            false,
        );
        check(
            RecordLookup {
                webhook_id: Some("msg_0b0e-0".into()),
                ..by_event.clone()
            },
            true,
        );
        check(
            RecordLookup {
                event_id: Some("order-2".into()),
                ..by_event
            },
            false,
        );
    }

    #[test]
    fn a_cursor_is_written_and_read_back() {
        let cursor = RecordCursor::after_record(&full());
        assert_eq!(
            cursor.to_string(),
            "1700000000500-5b1f6f6a0c2d4e8f9a7b3c1d2e4f6a8b"
        );
        assert_eq!(RecordCursor::parse(&cursor.to_string()), Some(cursor));
        for bad in [
            "",
            "-",
            "1",
            "1-x",
            "x-5b1f6f6a0c2d4e8f9a7b3c1d2e4f6a8b",
            "1-5B1F6F6A0C2D4E8F9A7B3C1D2E4F6A8B",
        ] {
            assert_eq!(RecordCursor::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn pages_by_a_cursor_miss_and_repeat_nothing() {
        let record = |ms, id: &str| LogRecord {
            time: Timestamp::from_millis(ms),
            record_id: id.to_owned(),
            ..LogRecord::default()
        };
        let mut records = [
            record(5, "b"),
            record(7, "a"),
            record(5, "a"),
            record(5, "c"),
            record(1, "z"),
        ];
        records.sort_by(newest_first);
        for (index, last) in records.iter().enumerate() {
            let filter = RecordFilter {
                after: Some(RecordCursor::after_record(last)),
                ..RecordFilter::default()
            };
            let rest: Vec<_> = records
                .iter()
                .filter(|record| filter.matches(record))
                .collect();
            assert_eq!(rest, records[index + 1..].iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn hours_outside_of_the_time_are_not_read() {
        let hour = LogHour::containing(Timestamp::parse("2026-03-07T03:00:00Z").unwrap());
        let at = |time: &str| Some(Timestamp::parse(&format!("2026-03-07T{time}Z")).unwrap());
        let check = |from, to, expected| {
            let filter = RecordFilter {
                from,
                to,
                ..RecordFilter::default()
            };
            assert_eq!(filter.may_be_in(hour), expected, "{filter:?}");
        };
        check(None, None, true);
        check(at("03:59:59.999"), None, true);
        check(at("04:00:00"), None, false);
        check(None, at("03:00:00"), false);
        check(None, at("03:00:00.001"), true);
        let time = at("02:59:59.999").unwrap();
        let after = Some(RecordCursor {
            time,
            record_id: String::new(),
        });
        assert!(
            !RecordFilter {
                after,
                ..RecordFilter::default()
            }
            .may_be_in(hour)
        );
    }

    #[test]
    fn the_time_in_an_id_of_version_7_narrows_a_look_up() {
        let id = "018bcfe5-6800-7abc-8def-0123456789ab";
        let time = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(time_in_id(id), Some(time));
        assert_eq!(time_in_id(&id.to_uppercase()), Some(time));
        for other in [
            "",
            "order-1",
            "018bcfe5-6800-4abc-8def-0123456789ab",
            "018bcfe568007abc8def0123456789ab",
        ] {
            assert_eq!(time_in_id(other), None, "{other}");
        }
        let look_up = RecordLookup {
            event_id: Some(id.into()),
            ..RecordLookup::default()
        };
        let hour = LogHour::containing(time);
        assert!(look_up.may_be_in(hour) && look_up.may_be_in(hour.previous()));
        assert!(!look_up.may_be_in(hour.previous().previous()));
        assert!(
            RecordLookup {
                whole: true,
                ..look_up
            }
            .may_be_in(hour.previous().previous())
        );
    }

    #[test]
    fn a_list_goes_on_before_an_hour() {
        let hour = LogHour::containing(full().time);
        let at = |time: Timestamp| LogRecord { time, ..full() };
        let place = RecordCursor::behind_hour(hour);
        assert_eq!(RecordCursor::parse(&place.to_string()), Some(place.clone()));
        assert!(!place.is_before(&at(hour.start())) && !place.is_before(&full()));
        let before = Timestamp::from_millis(hour.start().as_millis() - 1);
        assert!(place.is_before(&at(before)));
        let filter = RecordFilter {
            after: Some(place),
            ..RecordFilter::default()
        };
        assert!(filter.may_be_in(hour.previous()) && !filter.may_be_in(hour));
        let inside = Some(RecordCursor {
            time: hour.start(),
            record_id: "0".repeat(32),
        });
        assert!(
            RecordFilter {
                after: inside,
                ..RecordFilter::default()
            }
            .may_be_in(hour)
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _ = RecordCursor::parse(&text);
        }
    }
}
