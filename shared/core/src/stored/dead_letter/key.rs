//! Keys of dead-letter objects, and the time that they tell: one rule for lists and for replays.

use std::ops::Range;

use crate::model::{SubscriptionName, Timestamp, TopicName, is_object_key};
use crate::stored::keys::hour_key;

/// The milliseconds of the hour that one folder of dead letters stands for.
const HOUR_MS: u64 = 3_600_000;

/// Parts of the key of a dead-letter object: two names, four numbers of its hour, and its own name.
const DEAD_LETTER_KEY_PARTS: usize = 7;

/// A dead-letter object: names upper-cased, date parts in UTC and unpadded. `id` is a UUID.
pub fn dead_letter_key(
    topic: &TopicName,
    subscription: &SubscriptionName,
    at: Timestamp,
    id: &str,
) -> String {
    format!(
        "{}{}/{id}.json",
        dead_letters_of(topic, subscription),
        hour_key(at)
    )
}

/// The prefix of a subscription's dead letters.
pub fn dead_letters_of(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!(
        "{}{}/",
        dead_letters_of_topic(topic),
        subscription.as_str().to_ascii_uppercase()
    )
}

/// The prefix of a topic's dead letters.
pub fn dead_letters_of_topic(topic: &TopicName) -> String {
    format!("{}/", topic.as_str().to_ascii_uppercase())
}

/// The subscription whose dead letters an object holds, by its key. `None` if the key names none.
pub fn dead_letter_owner(key: &str) -> Option<(TopicName, SubscriptionName)> {
    let mut parts = key.split('/');
    let topic = parts.next()?;
    let subscription = parts.next()?;
    Some((
        TopicName::parse(topic).ok()?,
        SubscriptionName::parse(subscription).ok()?,
    ))
}

/// The hour that a dead-letter object's key tells, `prefix` being its subscription's. `None` if it
/// tells none.
pub fn dead_letter_hour(prefix: &str, key: &str) -> Option<Range<Timestamp>> {
    let parts: Vec<u16> = key
        .strip_prefix(prefix)?
        .split('/')
        .take(4)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [year, month, day, hour] = parts.as_slice() else {
        return None;
    };
    let begins =
        Timestamp::parse(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:00:00Z")).ok()?;
    Some(begins..Timestamp::from_millis(begins.as_millis() + HOUR_MS))
}

/// Whether a dead-letter object can have this key: `TOPIC/SUBSCRIPTION/year/month/day/hour/name.json`
/// with names in upper case. Others that people put there are no dead letters of posthaste's.
pub fn is_dead_letter_key(key: &str) -> bool {
    let Some((topic, subscription)) = dead_letter_owner(key) else {
        return false;
    };
    let prefix = dead_letters_of(&topic, &subscription);
    let parts = key.split('/').count();
    let has_name = key
        .strip_suffix(".json")
        .is_some_and(|rest| !rest.ends_with('/'));
    let has_time = dead_letter_hour(&prefix, key).is_some();
    is_object_key(key) && parts == DEAD_LETTER_KEY_PARTS && has_name && has_time
}

/// The time from `from` on and before `to`. A bound that is left out restricts nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenIn {
    /// At this time or later.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub to: Option<Timestamp>,
}

impl WrittenIn {
    /// Whether an object that a list shows was written in this time. Its key tells the hour; its
    /// own time is exact, unless it was copied later. `prefix` is its subscription's. An object
    /// whose key tells no hour was written at no time.
    pub fn includes_object(&self, prefix: &str, key: &str, modified_at: Timestamp) -> bool {
        let Some(hour) = dead_letter_hour(prefix, key) else {
            return false;
        };
        let written = if hour.contains(&modified_at) {
            modified_at..modified_at
        } else {
            hour
        };
        let is_early = self
            .from
            .is_some_and(|from| written.end <= from && written.start < from);
        let is_late = self.to.is_some_and(|to| written.start >= to);
        !is_early && !is_late
    }
}

/// The time at which an object counts as written: its own, if that lies in the hour of its key, and
/// the beginning of that hour if it was copied later. `None` if its key tells no hour.
pub fn written_at(prefix: &str, key: &str, modified_at: Timestamp) -> Option<Timestamp> {
    let hour = dead_letter_hour(prefix, key)?;
    Some(if hour.contains(&modified_at) {
        modified_at
    } else {
        hour.start
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hour_is_read_from_the_key() {
        let check = |rest: &str, expected: Option<&str>| {
            let hour = dead_letter_hour("ORDERS/BILLING/", &format!("ORDERS/BILLING/{rest}"));
            assert_eq!(
                hour.map(|hour| hour.start),
                expected.map(|text| Timestamp::parse(text).unwrap()),
                "{rest}"
            );
        };
        check("2026/3/7/4/x.json", Some("2026-03-07T04:00:00Z"));
        check("2026/11/21/23/x.json", Some("2026-11-21T23:00:00Z"));
        for foreign in [
            "",
            "2026/3/7",
            "2026/13/7/4/x",
            "2026/2/30/4/x",
            "a/b/c/d/e",
            "2026/3/7/-4/x",
        ] {
            check(foreign, None);
        }
        assert_eq!(
            dead_letter_hour("ORDERS/BILLING/", "ORDERS/OTHER/2026/3/7/4/x.json"),
            None
        );
    }

    #[test]
    fn only_keys_of_dead_letters_are_taken_for_such() {
        let check = |key: &str, expected| assert_eq!(is_dead_letter_key(key), expected, "{key}");
        check("ORDERS/BILLING/2026/3/7/4/x.json", true);
        check("ORDERS/BILLING/2026/11/21/23/a b.json", true);
        for foreign in [
            "",
            "MALFORMED/2026/3/7/4/x",
            "MALFORMED/2026/3/7/4/x.json",
            "resolved/ORDERS/BILLING/2026/3/7/4/x.json",
            "orders/BILLING/2026/3/7/4/x.json",
            "ORDERS/billing/2026/3/7/4/x.json",
            "ORDERS/BILLING/2026/3/7/x.json",
            "ORDERS/BILLING/2026/3/7/4/5/x.json",
            "ORDERS/BILLING/2026/13/7/4/x.json",
            "ORDERS/BILLING/2026/3/7/4/x",
            "ORDERS/BILLING/2026/3/7/4/.json",
            "ORDERS/BILLING/2026/3/7/4/..json/../x.json",
            "ORDERS/BILLING/2026/3/7/4/x\n.json",
        ] {
            check(foreign, false);
        }
    }
}
