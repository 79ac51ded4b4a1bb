//! Keys of the state bucket and of the dead-letter bucket, in one list. Each format has its own in
//! its file; objects without a form of ours, empty or kept byte for byte, have theirs here. Those
//! have no version.

pub use super::activity::{
    ACTIVITY, subscription_activities, subscription_activity_key, topic_activity_key,
};
pub use super::audit::{
    AUDIT, audit_entry_key, audit_key_after, audit_key_before, expired_id, gone_id, is_audit_of,
    refused_keys,
};
pub use super::cancelled::{CANCELLED, cancelled_key};
pub use super::dead_letter::{
    dead_letter_hour, dead_letter_key, dead_letter_owner, dead_letters_of, dead_letters_of_topic,
};
pub use super::disabled::{TELLING, disabled_notice_key};
pub use super::drain_report::{DRAIN, drain_report_key};
pub use super::gone::{DISABLED, gone_mark_key};
pub use super::idempotency::{IDEMPOTENCY, idempotency_record_key};
use super::keys::{day_key, hour_key};
pub use super::keys::{folder_owner, start_of_minute, subscription_folder};
pub use super::lanes::LANES;
pub use super::letter_ending::ENDING;
pub use super::links::{LINKS, link_shard_key};
pub use super::owner::OWNER;
pub use super::parked::{
    HELD, PARKED, carried_of_key, held_expiry_minute, held_folder, held_key, held_of,
    held_of_topic, held_past, id_with_carried, is_scheduled, key_of_rest, parked_at_minute,
    parked_before, parked_due_minute, parked_folder, parked_id, parked_instead, parked_key,
    scheduled_key,
};
pub use super::pressure::PRESSURE_KEY;
pub use super::rate::{RATES, rate_state_key};
pub use super::recovery_mark::{RECOVERY, recovery_mark_key, recovery_marks_of};
pub use super::refused_letters::{REFUSED, refused_letters_key};
pub use super::replay::{
    REPLAYING, REPLAYS, replay_id, replay_of, replay_record_key, replaying_mark_key,
};
pub use super::replay_claim::{CLAIMS, replay_claim_key};
pub use super::resolved::{RESOLVED, resolved_letters_key};
pub use super::serve_run::SERVE_RUN;
pub use super::slots::{SLOTS, slot_state_key};
pub use super::topic::{TOPICS, topic_name, topic_record_key};
pub use super::wake_signal::WAKE_SIGNAL;
use crate::model::{PAYLOAD_KEPT, SubscriptionName, Timestamp, TopicName};

/// The prefix of the marks of subscriptions whose parked deliveries are to go out at once.
pub const FORCING: &str = "forcing/";

/// The lease that keeps record from merging twice at once.
pub const RECORD_LEASE: &str = "leases/record.json";

/// The lease that keeps `wake` from running twice at once.
pub const WAKE_LEASE: &str = "leases/wake.json";

/// The prefix of the notes that an endpoint acknowledged an event after the attempt had timed out,
/// so that the event is not sent again: `late/{topic}.{subscription}/{event}`, empty. Written by
/// deliver, listed by deliver and deadletter. deliver deletes it when the message is settled, and
/// wake when it is older than [`LATE_NOTE_KEPT`](crate::model::LATE_NOTE_KEPT).
pub const LATE: &str = "late/";

/// The prefix of messages that cannot be read, in the dead-letter bucket, byte for byte:
/// `MALFORMED/{year}/{month}/{day}/{hour}/{uuid}`. Written by deadletter; read by operators.
pub const MALFORMED: &str = "MALFORMED/";

/// The prefix of the texts of events that are too large for a message, or that are kept out of it
/// under pressure: `payloads/{day}/{uuid}`, the event's bytes as they are. Written by publish and
/// by wake (replays); read by deliver and deadletter through
/// [`Payload::Stored`](crate::model::Payload::Stored); deleted by wake after
/// [`PAYLOAD_KEPT`](crate::model::PAYLOAD_KEPT).
pub const PAYLOADS: &str = "payloads/";

/// The prefix of the same texts where their event was published for later:
/// `scheduled/{day before which it is not sent}/{uuid}`. S3 counts the time for which it keeps
/// objects from their writing, so these need a rule of their own. Written by publish; read as those
/// in [`PAYLOADS`]; deleted by wake [`PAYLOAD_KEPT`](crate::model::PAYLOAD_KEPT) after that day.
pub const SCHEDULED_PAYLOADS: &str = "scheduled/";

/// The prefix of the markers of topics that are temporary, or have temporary subscriptions, so that
/// a run of wake need not read every topic to find them: `temporary/{topic}`, empty. Written by
/// manage; listed and deleted by wake.
pub const TEMPORARY: &str = "temporary/";

/// The prefix of the marks of topics that have an endpoint that is still to be asked for its
/// consent: `validating/{topic}`, with any text, which is another one after each write. Written by
/// manage before the topic's record, listed and deleted by manage.
pub const VALIDATING: &str = "validating/";

/// The key of the mark that the parked deliveries of a subscription are to go out at once.
pub fn force_request_key(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{FORCING}{}", subscription_folder(topic, subscription))
}

/// The key of the note that an endpoint answered the event of this key late.
pub fn late_answer_key(
    topic: &TopicName,
    subscription: &SubscriptionName,
    event_key: &str,
) -> String {
    format!("{}{event_key}", late_of(topic, subscription))
}

/// The prefix of the notes that the endpoint of a subscription answered late.
pub fn late_of(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{LATE}{}/", subscription_folder(topic, subscription))
}

/// A message kept byte for byte because it cannot be read. `id` is a UUID.
pub fn malformed_message_key(at: Timestamp, id: &str) -> String {
    format!("{MALFORMED}{}/{id}", hour_key(at))
}

/// A payload, under the day it was stored, so that old ones are found by their prefix. `id` is a
/// UUID.
pub fn payload_key(stored: Timestamp, id: &str) -> String {
    format!("{PAYLOADS}{}/{id}", day_key(stored))
}

/// The payload of an event that is not sent before this time. `id` is a UUID.
pub fn scheduled_payload(not_before: Timestamp, id: &str) -> String {
    format!("{SCHEDULED_PAYLOADS}{}/{id}", day_key(not_before))
}

/// Whether this key is that of a text of an event.
pub fn is_payload(key: &str) -> bool {
    payload_place(key).is_some()
}

/// A payload's key behind its prefix. `None` if it is not such a key.
fn payload_place(key: &str) -> Option<&str> {
    let prefixes = [PAYLOADS, SCHEDULED_PAYLOADS];
    prefixes.iter().find_map(|prefix| key.strip_prefix(prefix))
}

/// The greatest key a payload stored before `day` begins can have, for listing what is old.
pub fn payloads_before(day: Timestamp) -> String {
    format!("{PAYLOADS}{}/", day_key(day))
}

/// The same of payloads of scheduled events, by the day before which they are not sent.
pub fn scheduled_payloads_before(day: Timestamp) -> String {
    format!("{SCHEDULED_PAYLOADS}{}/", day_key(day))
}

/// The time until which the payload of this key is kept at least. `None` if it is not such a key.
pub fn payload_kept_until(key: &str) -> Option<Timestamp> {
    let (day, _) = payload_place(key)?.split_once('/')?;
    let year = day.get(..4)?;
    let month = day.get(4..6)?;
    let day = day.get(6..)?;
    let stored = Timestamp::parse(&format!("{year}-{month}-{day}T00:00:00Z")).ok()?;
    Some(stored + PAYLOAD_KEPT)
}

/// The key of the marker that a topic is temporary, or has temporary subscriptions.
pub fn temporary_mark_key(topic: &TopicName) -> String {
    format!("{TEMPORARY}{}", topic.folded())
}

/// The topic of such a key. `None` if it is not such a key.
pub fn temporary_topic(key: &str) -> Option<TopicName> {
    TopicName::parse(key.strip_prefix(TEMPORARY)?).ok()
}

/// The key of the mark that a topic has an endpoint that is still to be asked for its consent.
pub fn validating_mark_key(topic: &TopicName) -> String {
    format!("{VALIDATING}{}", topic.folded())
}

/// The topic of such a key. `None` if it is not such a key.
pub fn validating_topic(key: &str) -> Option<TopicName> {
    TopicName::parse(key.strip_prefix(VALIDATING)?).ok()
}

/// Whether a damaged object of this key may be deleted: its content is found out again, and it
/// holds no event.
pub fn begins_anew(key: &str) -> bool {
    let whole = [
        LANES,
        RECORD_LEASE,
        SERVE_RUN,
        WAKE_LEASE,
        WAKE_SIGNAL,
        PRESSURE_KEY,
    ];
    let prefixes = [ACTIVITY, DISABLED, DRAIN, LINKS, RATES, REFUSED, SLOTS];
    whole.contains(&key) || prefixes.iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_s_key_says_until_when_it_is_kept() {
        let until = |key: &str| payload_kept_until(key).map(|until| until.to_string());
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        assert_eq!(
            until(&payload_key(at, "x")),
            Some("2026-03-22T00:00:00.000Z".to_owned())
        );
        assert_eq!(
            until(&scheduled_payload(at, "x")),
            Some("2026-03-22T00:00:00.000Z".to_owned())
        );
        for other in [
            "",
            "scheduled/x",
            "payloads/x",
            "payloads/20261/x",
            "parked/20260307/x",
            "payloads/2026ü07/x",
        ] {
            assert_eq!(until(other), None, "{other}");
        }
    }

    fn names() -> (TopicName, SubscriptionName) {
        (
            TopicName::parse("Orders").unwrap(),
            SubscriptionName::parse("Billing").unwrap(),
        )
    }

    #[test]
    fn keys_are_as_the_design_says() {
        let (topic_name, subscription) = names();
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        assert_eq!(topic_record_key(&topic_name), "topics/orders.json");
        assert_eq!(
            parked_key(at, &topic_name, &subscription, "x"),
            "parked/20260307T0406Z/orders.billing/x.json"
        );
        assert_eq!(
            held_key(&topic_name, &subscription, at, "x"),
            "held/orders.billing/20260307T0406Z/x.json"
        );
        assert_eq!(
            force_request_key(&topic_name, &subscription),
            "forcing/orders.billing"
        );
        assert_eq!(
            disabled_notice_key(&topic_name, &subscription),
            "telling/orders.billing"
        );
        assert_eq!(
            gone_mark_key(&topic_name, &subscription),
            "disabled/orders.billing"
        );
        assert_eq!(payload_key(at, "x"), "payloads/20260307/x");
        assert_eq!(scheduled_payload(at, "x"), "scheduled/20260307/x");
        assert_eq!(drain_report_key("x"), "drain/x.json");
        assert_eq!(
            rate_state_key(&topic_name, &subscription),
            "rates/orders.billing.json"
        );
        assert_eq!(
            slot_state_key(&topic_name, &subscription),
            "slots/orders.billing.json"
        );
        assert_eq!(
            dead_letter_key(&topic_name, &subscription, at, "x"),
            "ORDERS/BILLING/2026/3/7/4/x.json"
        );
        assert_eq!(malformed_message_key(at, "x"), "MALFORMED/2026/3/7/4/x");
        assert_eq!(
            resolved_letters_key("ORDERS/BILLING/2026/3/7/4/x.json"),
            "resolved/ORDERS/BILLING/2026/3/7/4/x.json"
        );
        assert_eq!(topic_activity_key(&topic_name), "activity/orders");
        assert_eq!(
            subscription_activity_key(&topic_name, &subscription),
            "activity/orders.billing"
        );
        assert_eq!(temporary_mark_key(&topic_name), "temporary/orders");
        assert_eq!(validating_mark_key(&topic_name), "validating/orders");
        assert_eq!(
            late_answer_key(&topic_name, &subscription, "k-0"),
            "late/orders.billing/k-0"
        );
    }

    #[test]
    fn keys_tell_whose_they_are() {
        let (topic_name, subscription) = names();
        let owner = dead_letter_owner(&dead_letter_key(
            &topic_name,
            &subscription,
            Timestamp::EPOCH,
            "x",
        ))
        .unwrap();
        assert_eq!(
            (owner.0.folded(), owner.1.folded()),
            (topic_name.folded(), subscription.folded())
        );
        assert_eq!(dead_letter_owner("MALFORMED/2026/3/7/4/x"), None);
        assert_eq!(dead_letter_owner("ORDERS"), None);
        assert_eq!(
            temporary_topic(&temporary_mark_key(&topic_name))
                .unwrap()
                .folded(),
            "orders"
        );
        assert_eq!(temporary_topic("temporary/a.b"), None);
        let validated = validating_topic(&validating_mark_key(&topic_name)).unwrap();
        assert_eq!(validated.folded(), "orders");
        assert_eq!(validating_topic("validating/a.b"), None);
    }

    /// Keys of deliveries that wait tell their folder, and the folder its owner.
    #[test]
    fn waiting_keys_tell_their_folder_and_folders_their_owner() {
        let (topic_name, subscription) = names();
        let at = Timestamp::parse("2026-03-07T04:05:01Z").unwrap();
        let held = held_key(&topic_name, &subscription, at, "x");
        assert_eq!(held_folder(&held), Some("orders.billing"));
        assert_eq!(held_expiry_minute(&held), Some(at.minute_rounded_up()));
        assert_eq!(
            parked_folder(&parked_key(at, &topic_name, &subscription, "x")),
            Some("orders.billing")
        );
        let owner = folder_owner("orders.billing").unwrap();
        assert_eq!(
            (owner.0.folded(), owner.1.folded()),
            (topic_name.folded(), subscription.folded())
        );
        for foreign in ["held/", "held/x", "parked/x/y", "topics/a.json"] {
            assert_eq!(held_folder(foreign), None, "{foreign}");
            assert_eq!(held_expiry_minute(foreign), None, "{foreign}");
            assert_eq!(parked_folder(foreign), None, "{foreign}");
        }
        assert_eq!(
            (folder_owner("orders"), folder_owner("orders.")),
            (None, None)
        );
    }
}
