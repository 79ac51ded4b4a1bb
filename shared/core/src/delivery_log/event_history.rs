//! The history of an event as a whole: its deliveries, those included that have no record of their
//! own yet, and the state that follows from them.

use std::collections::{BTreeMap, BTreeSet};

use std::time::Duration;

use super::{
    AttemptOrigin, DeliveryHistory, DeliveryState, LogRecord, LogResult, RecordKind,
    gather_by_delivery,
};
use crate::model::{EVENT_TIME_TO_LIVE_MINUTES_MAX, Timestamp};

/// Longest time for which a delivery without a record of its own counts as pending: an event's
/// longest life, and an hour for its last record. Later its records were lost on their way, or
/// nobody takes messages.
pub const PENDING_MAX: Duration = Duration::from_mins(EVENT_TIME_TO_LIVE_MINUTES_MAX as u64 + 60);

/// An event with its deliveries.
#[derive(Debug, Clone, PartialEq)]
pub struct EventHistory {
    /// The deliveries, the last accepted first.
    pub deliveries: Vec<DeliveryHistory>,
    /// The least of their states. `None` where the log has no record of the event.
    pub state: Option<DeliveryState>,
}

/// Deliveries of an event that was published: the names of their subscriptions, and a record that
/// says what the event is.
struct MatchedSubscriptions<'a> {
    event: &'a LogRecord,
    names: BTreeSet<&'a str>,
}

impl EventHistory {
    /// Gathers the records of an id. A subscription that the event is meant for and that has no
    /// record is `pending`, and `unknown` after [`PENDING_MAX`]. Of an event from before
    /// `complete_from`, records may be missing, so that nothing is said of subscriptions without
    /// one.
    pub fn from_records(
        records: Vec<LogRecord>,
        complete_from: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let pending = pending_records(&records, complete_from, now);
        let is_unmatched = records
            .iter()
            .any(|record| record.result == LogResult::Unmatched);
        let of_subscriptions = records
            .into_iter()
            .filter(|record| !record.subscription.is_empty());
        let deliveries = gather_by_delivery(of_subscriptions.chain(pending).collect());
        let unmatched = is_unmatched.then_some(DeliveryState::Unmatched);
        let state = event_state(&deliveries).or(unmatched);
        Self { deliveries, state }
    }
}

/// A record for each subscription that has none of its own.
fn pending_records(
    records: &[LogRecord],
    complete_from: Option<Timestamp>,
    now: Timestamp,
) -> Vec<LogRecord> {
    let mut meant: BTreeMap<[&str; 2], MatchedSubscriptions<'_>> = BTreeMap::new();
    for record in records {
        if complete_from.is_some_and(|from| record.accepted_at < from) {
            continue;
        }
        let Some(names) = &record.matched else {
            continue;
        };
        let of_event = meant
            .entry([&record.topic, &record.delivery_key])
            .or_insert_with(|| MatchedSubscriptions {
                event: record,
                names: BTreeSet::new(),
            });
        of_event.names.extend(names.split(','));
    }
    let own: BTreeSet<_> = records
        .iter()
        .map(|record| [&*record.topic, &record.delivery_key, &record.subscription])
        .collect();
    let mut pending = Vec::new();
    for ([topic, key], MatchedSubscriptions { event, names }) in meant {
        let without_record = names
            .into_iter()
            .filter(|name| !name.is_empty() && !own.contains(&[topic, key, name]));
        let begins_at = scheduled_for(event).unwrap_or(event.accepted_at);
        let result = if begins_at + PENDING_MAX <= now {
            LogResult::Unknown
        } else {
            LogResult::Pending
        };
        pending.extend(without_record.map(|name| pending_record(event, name, result)));
    }
    pending
}

/// The time at which an event goes out that was published for later, by the record of its
/// acceptance.
fn scheduled_for(event: &LogRecord) -> Option<Timestamp> {
    event
        .next_attempt_at
        .filter(|_| event.kind == RecordKind::Accepted)
}

/// The record of a delivery without one: the event, when it was accepted, and for when.
fn pending_record(event: &LogRecord, subscription: &str, result: LogResult) -> LogRecord {
    LogRecord {
        record_id: format!("{}/{subscription}", event.delivery_key),
        time: event.accepted_at,
        kind: RecordKind::Accepted,
        topic: event.topic.clone(),
        subscription: subscription.to_owned(),
        delivery_key: event.delivery_key.clone(),
        event_id: event.event_id.clone(),
        event_source: event.event_source.clone(),
        event_type: event.event_type.clone(),
        event_subject: event.event_subject.clone(),
        origin: AttemptOrigin::First,
        result,
        next_attempt_at: scheduled_for(event),
        accepted_at: event.accepted_at,
        ..LogRecord::default()
    }
}

/// The state of an event: the least of its deliveries'. One that failed does not count once a later
/// delivery to the same subscription, by a replay or a resend, says more.
fn event_state(deliveries: &[DeliveryHistory]) -> Option<DeliveryState> {
    deliveries
        .iter()
        .filter(|delivery| !has_failed(delivery.state) || !is_sent_again(delivery, deliveries))
        .map(|delivery| delivery.state)
        .min_by_key(|state| state_progress(*state))
}

/// Whether one of `others` is a later delivery of the event to the same subscription.
fn is_sent_again(delivery: &DeliveryHistory, others: &[DeliveryHistory]) -> bool {
    others.iter().any(|other| {
        other.first().origin.is_sent_again()
            && other.subscription == delivery.subscription
            && other.topic == delivery.topic
            && other.first().time >= delivery.ending_record().time
            && other.key != delivery.key
    })
}

const fn has_failed(state: DeliveryState) -> bool {
    matches!(state, DeliveryState::DeadLettered | DeliveryState::Dropped)
}

/// The progress of an event in a state. One that waits is not at its end, and one that was given up
/// has not arrived.
const fn state_progress(state: DeliveryState) -> u8 {
    match state {
        DeliveryState::Unknown => 0,
        DeliveryState::Pending => 1,
        DeliveryState::Held => 2,
        DeliveryState::Waiting => 3,
        DeliveryState::Unmatched => 4,
        DeliveryState::Dropped => 5,
        DeliveryState::DeadLettered => 6,
        DeliveryState::Delivered => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: Timestamp = Timestamp::from_millis(1_000);

    const NOW: Timestamp = Timestamp::from_millis(60_000);

    fn record(subscription: &str, kind: RecordKind, result: LogResult) -> LogRecord {
        LogRecord {
            record_id: format!("{subscription} {} {}", kind.as_str(), result.as_str()),
            time: Timestamp::from_millis(2_000),
            kind,
            topic: "orders".to_owned(),
            subscription: subscription.to_owned(),
            delivery_key: "k".to_owned(),
            event_type: Some("paid".to_owned()),
            result,
            accepted_at: ACCEPTED,
            ..LogRecord::default()
        }
    }

    fn matched(names: &str, record: LogRecord) -> LogRecord {
        LogRecord {
            matched: Some(names.to_owned()),
            ..record
        }
    }

    fn attempt(subscription: &str, result: LogResult) -> LogRecord {
        record(subscription, RecordKind::Attempt, result)
    }

    fn accepted(names: &str) -> LogRecord {
        matched(names, record("", RecordKind::Accepted, LogResult::Pending))
    }

    fn again(key: &str, origin: AttemptOrigin, result: LogResult) -> LogRecord {
        LogRecord {
            record_id: key.to_owned(),
            time: Timestamp::from_millis(9_000),
            delivery_key: key.to_owned(),
            origin,
            ..attempt("a", result)
        }
    }

    /// The state of the event, and those of its subscriptions.
    fn shown(records: Vec<LogRecord>) -> String {
        let history = EventHistory::from_records(records, None, NOW);
        let state = history.state.map_or("none", DeliveryState::as_str);
        let of = |one: &DeliveryHistory| format!(" {}={}", one.subscription, one.state.as_str());
        let deliveries: String = history.deliveries.iter().map(of).collect();
        format!("{state}:{deliveries}")
    }

    #[test]
    fn subscriptions_without_a_record_are_pending() {
        let check = |records: Vec<LogRecord>, expected| assert_eq!(shown(records), expected);
        check(vec![], "none:");
        check(
            vec![attempt("a", LogResult::Delivered)],
            "delivered: a=delivered",
        );
        let first = matched("a,b,c", attempt("b", LogResult::Delivered));
        check(
            vec![first.clone()],
            "pending: a=pending b=delivered c=pending",
        );
        check(
            vec![
                first.clone(),
                matched("a,b,c", attempt("a", LogResult::Retry)),
            ],
            "pending: a=waiting b=delivered c=pending",
        );
        check(
            vec![
                first,
                attempt("a", LogResult::Retry),
                attempt("c", LogResult::Delivered),
            ],
            "waiting: a=waiting b=delivered c=delivered",
        );
        check(vec![accepted("a,b")], "pending: a=pending b=pending");
        check(
            vec![
                accepted("a,b"),
                record("b", RecordKind::Held, LogResult::Held),
            ],
            "pending: a=pending b=held",
        );
    }

    #[test]
    fn event_is_delivered_only_when_all_of_it_is() {
        use LogResult::{DeadLettered, Delivered, Dropped, Held, Retry};
        let state = |results: &[LogResult]| {
            let names = ["a", "b", "c"];
            let records = names.iter().zip(results);
            let records = records.map(|(name, result)| attempt(name, *result));
            EventHistory::from_records(records.collect(), None, NOW)
                .state
                .unwrap()
        };
        assert_eq!(state(&[Delivered; 3]), DeliveryState::Delivered);
        let check = |one, expected| assert_eq!(state(&[Delivered, one, Delivered]), expected);
        check(Retry, DeliveryState::Waiting);
        check(Held, DeliveryState::Held);
        check(DeadLettered, DeliveryState::DeadLettered);
        check(Dropped, DeliveryState::Dropped);
        check(LogResult::Unknown, DeliveryState::Unknown);
        assert_eq!(
            state(&[DeadLettered, Retry, Delivered]),
            DeliveryState::Waiting
        );
    }

    #[test]
    fn pending_delivery_says_what_the_event_is() {
        let history = EventHistory::from_records(vec![accepted("a")], None, NOW);
        let first = history.deliveries[0].first();
        assert_eq!(first.event_type.as_deref(), Some("paid"));
        assert_eq!((first.accepted_at, first.time), (ACCEPTED, ACCEPTED));
        assert_eq!(history.deliveries[0].attempts().count(), 0);
    }

    /// Records of earlier times are not there, so a subscription without one may have had it.
    #[test]
    fn subscription_is_not_pending_if_records_may_be_missing() {
        let records = vec![matched("a,b", attempt("a", LogResult::Delivered))];
        let count = |from| {
            EventHistory::from_records(records.clone(), from, NOW)
                .deliveries
                .len()
        };
        assert_eq!(count(Some(ACCEPTED)), 2);
        assert_eq!(count(Some(Timestamp::from_millis(1_001))), 1);
    }

    /// An event has ended by then: what has no record was lost on its way into the log.
    #[test]
    fn delivery_pending_beyond_the_event_life_is_unknown() {
        let state = |now| {
            let delivered = matched("a,b", attempt("a", LogResult::Delivered));
            let history = EventHistory::from_records(vec![delivered], None, now);
            let b = history.deliveries.iter().find(|of| of.subscription == "b");
            (history.state.unwrap(), b.unwrap().state)
        };
        let end = ACCEPTED + PENDING_MAX;
        let before = Timestamp::from_millis(end.as_millis() - 1);
        let both = |state| (state, state);
        assert_eq!(state(before), both(DeliveryState::Pending));
        assert_eq!(state(end), both(DeliveryState::Unknown));
    }

    #[test]
    fn events_of_one_id_have_subscriptions_of_their_own() {
        let other = LogRecord {
            record_id: "other".to_owned(),
            delivery_key: "l".to_owned(),
            accepted_at: Timestamp::from_millis(500),
            ..accepted("b,c")
        };
        let expected = "pending: a=pending b=pending b=pending c=pending";
        assert_eq!(shown(vec![other, accepted("a,b")]), expected);
    }

    #[test]
    fn event_without_a_subscription_is_unmatched() {
        let unmatched = record("", RecordKind::Accepted, LogResult::Unmatched);
        assert_eq!(shown(vec![unmatched.clone()]), "unmatched:");
        let other = attempt("a", LogResult::Delivered);
        assert_eq!(shown(vec![unmatched, other]), "delivered: a=delivered");
    }

    /// An older program writes the words of an acceptance as `unknown`, and no names.
    #[test]
    fn acceptance_that_an_older_program_wrote_is_passed_over() {
        let unknown = record("", RecordKind::Unknown, LogResult::Unknown);
        assert_eq!(shown(vec![unknown]), "none:");
    }

    /// State of a failed delivery gives way to that of a replay or resend, not of another publish.
    #[test]
    fn failed_delivery_is_replaced_by_a_later_resend() {
        let failed = attempt("a", LogResult::DeadLettered);
        let state =
            |record| EventHistory::from_records(vec![failed.clone(), record], None, NOW).state;
        let replayed = |result| state(again("r", AttemptOrigin::Replay, result));
        assert_eq!(
            replayed(LogResult::Delivered),
            Some(DeliveryState::Delivered)
        );
        assert_eq!(replayed(LogResult::Retry), Some(DeliveryState::Waiting));
        let published = again("other", AttemptOrigin::First, LogResult::Delivered);
        assert_eq!(state(published), Some(DeliveryState::DeadLettered));
    }
}
