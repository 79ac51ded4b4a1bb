//! Events that ended, as far as that is remembered: records of the delivery log may come late, and
//! one that says that an event waits may come after the one that says that it arrived.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::{Timestamp, hex};

/// Bytes of the digest by which an event is remembered, twice as many digits. Two of a hundred
/// events have the same one with a chance of 10^-11.
const EVENT_BYTES: usize = 6;

/// The age at which an event has ended wherever that was noted: the longest time to live, and an
/// hour.
pub(super) const UNDELIVERED_AGE_MAX: Duration = Duration::from_hours(25);

/// Ends that are kept until the next write.
const GATHERED_MAX: usize = 256;

/// Ends that the book keeps of a subscription, 15 bytes each.
const KEPT_MAX: usize = 32;

/// Ends of events that were tried before. Of more than are kept there is the time of the last:
/// whether an event that waited until then has ended is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RecentEnds {
    /// The digests of the events, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<String>,
    /// The time of the last end.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<Timestamp>,
    /// The time of the last end that is not kept any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_until: Option<Timestamp>,
}

/// The digest by which the event of a delivery with this key is remembered.
pub(super) fn event_digest(key: &str) -> String {
    hex::encode(&Sha256::digest(key)[..EVENT_BYTES])
}

impl RecentEnds {
    /// Whether no end is known.
    pub(super) fn is_empty(&self) -> bool {
        self.last_at.is_none()
    }

    /// The time of the last end.
    pub(super) fn last_at(&self) -> Option<Timestamp> {
        self.last_at
    }

    /// The digests of those that are kept.
    pub(super) fn event_digests(&self) -> &[String] {
        &self.events
    }

    /// Adds an end.
    pub(super) fn add_end(&mut self, event: String, at: Timestamp) {
        self.last_at = self.last_at.max(Some(at));
        if self.events.len() < GATHERED_MAX {
            self.events.push(event);
        } else {
            self.unknown_until = self.unknown_until.max(Some(at));
        }
    }

    /// Adds the ends of a later part.
    pub(super) fn append_later(&mut self, later: Self) {
        self.last_at = self.last_at.max(later.last_at);
        self.unknown_until = self.unknown_until.max(later.unknown_until);
        self.events.extend(later.events);
        self.keep_newest(GATHERED_MAX);
    }

    /// Forgets all but those that the book keeps.
    pub(super) fn shrink_to_kept(&mut self) {
        self.keep_newest(KEPT_MAX);
    }

    /// Whether there are more ends than are kept.
    pub(super) fn has_more(&self) -> bool {
        self.unknown_until.is_some()
    }

    /// Whether this event has ended.
    pub(super) fn has_ended(&self, key: &str) -> bool {
        !self.events.is_empty() && self.events.contains(&event_digest(key))
    }

    /// Whether an event that waited at a time has ended, or may have: the next try of one that has
    /// not shows it again.
    pub(super) fn may_have(&self, key: &str, waited_at: Timestamp) -> bool {
        self.may_have_ended(waited_at) || self.has_ended(key)
    }

    /// The same of the event with this digest.
    pub(super) fn may_have_event(&self, event: &str, waited_at: Timestamp) -> bool {
        self.may_have_ended(waited_at) || self.events.iter().any(|ended| ended == event)
    }

    /// Whether any event that waited at a time may have ended without being kept.
    fn may_have_ended(&self, waited_at: Timestamp) -> bool {
        self.unknown_until.is_some_and(|until| waited_at <= until)
    }

    fn keep_newest(&mut self, most: usize) {
        let more = self.events.len().saturating_sub(most);
        if more > 0 {
            self.events.drain(..more);
            self.unknown_until = self.unknown_until.max(self.last_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::health::{HealthBook, SeenTry, SubscriptionTries, TryResult};

    const START: Timestamp = Timestamp::from_millis(1_700_000_040_000);
    const KEY: &str = "orders.billing";
    const FAILED: TryResult = TryResult::Failed {
        outcome: None,
        status: Some(503),
        is_last: false,
    };

    fn part(tries: &[(&str, u64, TryResult)]) -> SubscriptionTries {
        let mut part = SubscriptionTries::default();
        for (key, second, result) in tries {
            part.add_try(&SeenTry {
                key,
                accepted_at: START,
                at: START + Duration::from_secs(*second),
                is_first: *result == FAILED,
                result: *result,
            });
        }
        part
    }

    /// Parts that say that `count` events arrived in the second, at their second tries.
    fn arrivals(count: usize, second: u64) -> SubscriptionTries {
        let keys: Vec<_> = (0..count).map(|n| format!("other{n}")).collect();
        let tries: Vec<_> = keys
            .iter()
            .map(|key| (key.as_str(), second, TryResult::Arrived))
            .collect();
        part(&tries)
    }

    /// A book to which parts are added in this order, each stored in between.
    fn book(parts: impl IntoIterator<Item = SubscriptionTries>) -> HealthBook {
        let mut book = HealthBook::default();
        for (n, part) in parts.into_iter().enumerate() {
            book.add_tries([(KEY.to_owned(), part)].into(), &n.to_string());
            book = HealthBook::parse(&book.render()).unwrap();
        }
        book
    }

    fn oldest(book: &HealthBook) -> Option<&str> {
        let tries = &book.subscription(KEY).unwrap().tries;
        tries.oldest_undelivered().map(|event| event.key.as_str())
    }

    /// The record of its first try comes after that of its second, with which it arrived.
    #[test]
    fn event_that_arrived_waits_no_more_by_a_late_record() {
        let late = || part(&[("k", 0, FAILED)]);
        let arrived = || part(&[("k", 10, TryResult::Arrived)]);
        assert_eq!(oldest(&book([late(), arrived()])), None);
        assert_eq!(oldest(&book([arrived(), late()])), None);
        let mut both = arrived();
        both.append_later(late());
        assert_eq!(both.oldest_undelivered(), None, "in one batch");
        assert_eq!(
            oldest(&book([part(&[("before", 0, FAILED)]), arrived(), late()])),
            Some("before")
        );
    }

    /// Of more ends than are kept, the time is known.
    #[test]
    fn late_record_after_many_ends_says_nothing() {
        for count in [KEPT_MAX + 1, 2 * GATHERED_MAX] {
            let known = || [arrivals(1, 10), arrivals(count, 20)];
            let late = part(&[("other0", 5, FAILED)]);
            assert_eq!(oldest(&book(known().into_iter().chain([late]))), None);
            let waits = part(&[("waits", 21, FAILED)]);
            assert_eq!(
                oldest(&book(known().into_iter().chain([waits]))),
                Some("waits")
            );
        }
    }

    #[test]
    fn event_that_waits_is_known_beside_others_that_ended() {
        let parts = [arrivals(KEPT_MAX, 20), part(&[("waits", 5, FAILED)])];
        assert_eq!(oldest(&book(parts)), Some("waits"));
    }

    /// A part with so many tries that their sums are added.
    #[test]
    fn event_that_was_tried_twice_waits_by_its_last_try() {
        for (one, other) in [(5, 21), (21, 5)] {
            let mut sum = part(&[("waits", one, FAILED)]);
            sum.append_later(part(&[("waits", other, FAILED); 40]));
            let parts = [arrivals(KEPT_MAX + 1, 20), sum];
            assert_eq!(oldest(&book(parts)), Some("waits"), "{one}");
        }
    }

    /// Otherwise the late record of its failure would find nothing that it contradicts.
    #[test]
    fn end_of_an_event_that_failed_before_is_news() {
        assert!(part(&[("k", 10, TryResult::Arrived)]).has_news());
        let mut first = SubscriptionTries::default();
        first.add_try(&SeenTry {
            key: "k",
            accepted_at: START,
            at: START,
            is_first: true,
            result: TryResult::Arrived,
        });
        assert!(!first.has_news());
    }
}
