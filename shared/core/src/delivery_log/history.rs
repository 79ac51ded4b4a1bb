//! The history of an event: its records, gathered by delivery.

use std::collections::{BTreeMap, HashSet};

use super::{DeliveryState, LogRecord, RecordKind, RecordPayload};
use crate::model::Timestamp;

/// An event towards one subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryHistory {
    /// The topic, in lower case.
    pub topic: String,
    /// The subscription, in lower case.
    pub subscription: String,
    /// The key of the event towards this subscription. Each replay has another one.
    pub key: String,
    /// The state after the records that are there.
    pub state: DeliveryState,
    /// The earliest next attempt, while it waits.
    pub next_attempt_at: Option<Timestamp>,
    /// The dead-letter object that it lies in.
    pub dead_letter_object: Option<String>,
    /// The event itself, where the log has it.
    pub payload: Option<RecordPayload>,
    /// The key of the stored payload, where the event is too large for the log.
    pub payload_reference: Option<String>,
    /// The records, the oldest first; at least one.
    records: Vec<LogRecord>,
}

/// Gathers records by delivery, each record once. Deliveries are in the order in which they were
/// accepted, the newest first.
pub fn gather_by_delivery(records: Vec<LogRecord>) -> Vec<DeliveryHistory> {
    let mut deliveries: BTreeMap<[String; 3], Vec<LogRecord>> = BTreeMap::new();
    for record in without_duplicates(records) {
        let LogRecord {
            topic,
            subscription,
            delivery_key,
            ..
        } = &record;
        let delivery = [topic, subscription, delivery_key].map(Clone::clone);
        deliveries.entry(delivery).or_default().push(record);
    }
    let mut histories: Vec<_> = deliveries
        .into_iter()
        .map(|(of, it)| DeliveryHistory::new(of, it))
        .collect();
    histories.sort_by_key(|history| std::cmp::Reverse(history.first().accepted_at));
    histories
}

/// The records without copies: a record may lie in two files after a redelivery or during a merge.
pub fn without_duplicates(mut records: Vec<LogRecord>) -> Vec<LogRecord> {
    let mut seen = HashSet::with_capacity(records.len());
    let is_first: Vec<bool> = records
        .iter()
        .map(|record| seen.insert(&*record.record_id))
        .collect();
    let mut is_first = is_first.into_iter();
    records.retain(|_| is_first.next().unwrap_or(true));
    records
}

impl DeliveryHistory {
    fn new([topic, subscription, key]: [String; 3], mut records: Vec<LogRecord>) -> Self {
        records.sort_by(|a, b| record_order(a).cmp(&record_order(b)));
        let last = find_decisive(&records);
        let state = last.result.delivery_state();
        let next_attempt_at = last
            .next_attempt_at
            .filter(|_| matches!(state, DeliveryState::Waiting | DeliveryState::Pending));
        let mut newest_first = records.iter().rev();
        let payload_reference = newest_first
            .clone()
            .find_map(|record| record.payload_reference.clone());
        let dead_letter_object = match state {
            DeliveryState::DeadLettered => {
                newest_first.find_map(|record| record.dead_letter_object.clone())
            }
            _ => None,
        };
        Self {
            topic,
            subscription,
            key,
            state,
            next_attempt_at,
            dead_letter_object,
            payload: records.iter().find_map(|record| record.payload.clone()),
            payload_reference,
            records,
        }
    }

    /// All records, the oldest first.
    pub fn records(&self) -> &[LogRecord] {
        &self.records
    }

    /// The attempts, the oldest first.
    pub fn attempts(&self) -> impl Iterator<Item = &LogRecord> {
        self.records
            .iter()
            .filter(|record| record.kind == RecordKind::Attempt)
    }

    /// The record that says the state.
    pub fn decisive_record(&self) -> &LogRecord {
        find_decisive(&self.records)
    }

    /// The first record with which it is at the end that it has. Later ones say where its dead
    /// letter lies, or come of a second copy of the message. So an end has one time, whenever
    /// the log is read.
    pub fn ending_record(&self) -> &LogRecord {
        let end = finality_rank(self.decisive_record());
        self.records
            .iter()
            .find(|record| finality_rank(record) == end)
            .unwrap_or(&self.records[0])
    }

    /// The first record. It says what the event is: its source, type, subject and times.
    pub fn first(&self) -> &LogRecord {
        &self.records[0]
    }
}

/// Clocks of workers differ by little, attempts by seconds. So time orders records. Those of one
/// moment are in the order of attempts, and those of one attempt in the order in which they happen.
fn record_order(record: &LogRecord) -> impl Ord + '_ {
    let place = (finality_rank(record), kind_order(record.kind));
    (record.time, record.attempt, place, &record.record_id)
}

/// The place of a record among those of the same attempt: an event is handed back before its first
/// attempt, and held after the attempts that its record counts.
fn kind_order(kind: RecordKind) -> u8 {
    match kind {
        RecordKind::Accepted => 0,
        RecordKind::Waiting => 1,
        RecordKind::Attempt => 2,
        _ => 3,
    }
}

/// The record that says the state. An endpoint that took an event has it, whatever a second copy of
/// the message met afterwards; and an event that was given up is not waiting because such a copy
/// still is.
fn find_decisive(records: &[LogRecord]) -> &LogRecord {
    let mut decisive = &records[0];
    let mut finality = 0;
    for record in records {
        if finality_rank(record) >= finality {
            decisive = record;
            finality = finality_rank(record);
        }
    }
    decisive
}

fn finality_rank(record: &LogRecord) -> u8 {
    match record.result.delivery_state() {
        DeliveryState::Delivered => 3,
        DeliveryState::DeadLettered | DeliveryState::Dropped => 2,
        DeliveryState::Waiting | DeliveryState::Held => 1,
        DeliveryState::Pending | DeliveryState::Unmatched | DeliveryState::Unknown => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery_log::LogResult;
    use proptest::prelude::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn record(ms: u64, kind: RecordKind, result: LogResult) -> LogRecord {
        LogRecord {
            record_id: format!("{ms}-{}-{}", kind.as_str(), result.as_str()),
            time: at(ms),
            kind,
            result,
            topic: "orders".to_owned(),
            subscription: "billing".to_owned(),
            delivery_key: "k".to_owned(),
            next_attempt_at: (result == LogResult::Retry).then(|| at(ms + 10)),
            ..LogRecord::default()
        }
    }

    fn only(records: Vec<LogRecord>) -> DeliveryHistory {
        let histories = gather_by_delivery(records);
        assert_eq!(histories.len(), 1);
        histories.into_iter().next().unwrap()
    }

    #[test]
    fn the_last_record_says_the_state() {
        use {
            LogResult as Went,
            RecordKind::{Attempt, Dropped, Expired, Held},
        };
        let check = |steps: &[(RecordKind, LogResult)], expected: &str| {
            let records = steps
                .iter()
                .zip(1..)
                .map(|((kind, result), ms)| record(ms, *kind, *result));
            assert_eq!(
                only(records.collect()).state.as_str(),
                expected,
                "{steps:?}"
            );
        };
        check(&[(Attempt, Went::Delivered)], "delivered");
        check(&[(Attempt, Went::Retry)], "waiting");
        check(&[(Attempt, Went::Retry), (Held, Went::Held)], "held");
        check(&[(Held, Went::Held), (Attempt, Went::Retry)], "waiting");
        check(
            &[(Held, Went::Held), (Attempt, Went::Delivered)],
            "delivered",
        );
        check(
            &[(Attempt, Went::Retry), (Attempt, Went::DeadLettered)],
            "dead-lettered",
        );
        check(&[(Expired, Went::Dropped)], "dropped");
        check(
            &[(Expired, Went::DeadLettered), (Dropped, Went::Dropped)],
            "dropped",
        );
        // A second copy of the message goes on after the first one has ended.
        check(
            &[(Attempt, Went::Delivered), (Attempt, Went::Retry)],
            "delivered",
        );
        check(
            &[(Attempt, Went::DeadLettered), (Attempt, Went::Retry)],
            "dead-lettered",
        );
        check(
            &[(Attempt, Went::DeadLettered), (Attempt, Went::Delivered)],
            "delivered",
        );
        check(
            &[(Attempt, Went::Retry), (Attempt, Went::Unknown)],
            "waiting",
        );
        check(&[(Attempt, Went::Unknown)], "unknown");
    }

    /// Whatever their ids are, which are digests.
    #[test]
    fn records_of_one_moment_are_in_the_order_in_which_they_happen() {
        let held = record(1, RecordKind::Held, LogResult::Held);
        for kind in [RecordKind::Waiting, RecordKind::Attempt] {
            for ids in [["a", "b"], ["b", "a"]] {
                let [one, other] = ids.map(str::to_owned);
                let before = LogRecord {
                    record_id: one,
                    ..record(1, kind, LogResult::Retry)
                };
                let held = LogRecord {
                    record_id: other,
                    ..held.clone()
                };
                let history = only(vec![held, before]);
                assert_eq!(history.state, DeliveryState::Held, "{kind:?} {ids:?}");
            }
        }
    }

    #[test]
    fn an_event_that_waits_has_a_next_attempt_and_no_other() {
        let waiting = vec![record(1, RecordKind::Attempt, LogResult::Retry)];
        assert_eq!(only(waiting.clone()).next_attempt_at, Some(at(11)));
        let held = [
            waiting.clone(),
            vec![record(2, RecordKind::Held, LogResult::Held)],
        ]
        .concat();
        assert_eq!(only(held).next_attempt_at, None);
        let delivered = [
            waiting,
            vec![record(2, RecordKind::Attempt, LogResult::Delivered)],
        ]
        .concat();
        assert_eq!(only(delivered).next_attempt_at, None);
    }

    #[test]
    fn a_dead_letter_names_its_object_once_that_is_written() {
        let given_up = record(1, RecordKind::Attempt, LogResult::DeadLettered);
        assert_eq!(only(vec![given_up.clone()]).dead_letter_object, None);
        let object = Some("ORDERS/x.json".to_owned());
        let written = LogRecord {
            dead_letter_object: object.clone(),
            ..record(2, RecordKind::DeadLettered, LogResult::DeadLettered)
        };
        let history = only(vec![written, given_up]);
        assert_eq!(
            (
                history.dead_letter_object.clone(),
                history.attempts().count()
            ),
            (object, 1)
        );
    }

    /// Deliveries are told apart by subscription and key, the newest first.
    #[test]
    fn deliveries_differ_by_subscription_and_key_newest_first() {
        let of = |subscription: &str, key: &str, accepted_at| LogRecord {
            record_id: format!("{subscription}{key}"),
            subscription: subscription.to_owned(),
            delivery_key: key.to_owned(),
            accepted_at: at(accepted_at),
            ..LogRecord::default()
        };
        let histories = gather_by_delivery(vec![
            of("a", "1", 5),
            of("b", "1", 5),
            of("a", "2", 9),
            of("a", "1", 5),
        ]);
        let names: Vec<_> = histories
            .iter()
            .map(|it| format!("{}{}", it.subscription, it.key))
            .collect();
        assert_eq!(names, ["a2", "a1", "b1"]);
    }

    #[test]
    fn the_payload_is_that_of_the_record_that_has_it() {
        let payload = RecordPayload::parse("{}");
        let first = LogRecord {
            payload: payload.clone(),
            ..record(1, RecordKind::Attempt, LogResult::Retry)
        };
        let history = only(vec![
            record(2, RecordKind::Attempt, LogResult::Delivered),
            first,
        ]);
        assert_eq!(
            (history.payload.clone(), history.first().time),
            (payload, at(1))
        );
    }

    fn any_records() -> impl Strategy<Value = Vec<LogRecord>> {
        let kind = proptest::sample::select(RecordKind::ALL);
        let result = proptest::sample::select(LogResult::ALL);
        let one = (0_u64..20, kind, result).prop_map(|(ms, kind, result)| record(ms, kind, result));
        proptest::collection::vec(one, 1..12)
    }

    proptest! {
        #[test]
        fn neither_order_nor_copies_change_the_history(records in any_records(), seed: u64) {
            let mut shuffled = [records.clone(), records.clone()].concat();
            shuffled.sort_by_key(|it| (it.time.as_millis() + 7).wrapping_mul(seed | 1));
            let (one, other) = (only(records), only(shuffled));
            prop_assert_eq!(one, other);
        }
    }
}
