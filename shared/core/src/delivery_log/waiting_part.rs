//! The number of events that wait, by subscription, added up from what records say: sixteen parts,
//! by a hash of the subscription.
//!
//! Numbers are added in any order, so one may be below zero for a while. Nothing is shown below
//! zero, and nothing of its part counts as exact.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::LogRecord;
use crate::model::{SubscriptionName, Timestamp, TopicName, hex};

/// Parts: one for each hexadecimal digit.
pub const WAITING_PARTS: usize = 16;

/// Most subscriptions of a part. Each takes some 140 bytes at most, so that a part stays below
/// 350 KB. Those that find no room are not counted, and the part says so.
pub const WAITING_SUBSCRIPTIONS_MAX: usize = 2000;

/// Most messages of records that a part remembers, 12 bytes each, and most whose changes are kept
/// until they are written. A message comes again 13 minutes after a run that was cut off: that many
/// messages are five a second with news for one part.
pub const COUNTED_MESSAGES_MAX: usize = 4096;

/// Bytes of a digest by which a part remembers a message, twice as many digits. Of 4,096 messages
/// and another one, two have the same digest with a chance of 10^-11.
const MESSAGE_BYTES: usize = 6;

/// The time without a change after which a part is taken to have all changes: the batches of record
/// come once a minute, and the queue's own count lags a minute.
const QUIET: Duration = Duration::from_mins(5);

/// The time after a look at which the next one is due: the schedule comes every ten minutes, give
/// or take some seconds.
const LOOK_EVERY: Duration = Duration::from_mins(9);

/// The time after which the numbers are compared with what is listed again, where they are exact:
/// once an hour, by a schedule of ten minutes.
const COMPARED_EVERY: Duration = Duration::from_mins(55);

/// The longest time between two looks: one run of the schedule may be missed. In a longer gap a
/// program of release 0.1 may have written records, and has counted none.
const LOOKS_APART_MAX: Duration = Duration::from_mins(25);

/// A part: what waits of its subscriptions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WaitingPart {
    /// The events of each subscription ([`waiting_key`]) that wait; none is zero.
    waiting: BTreeMap<String, i64>,
    /// The digests of the bodies of the messages that were counted, the newest last.
    counted: String,
    /// The time of the last change.
    changed_at: Timestamp,
    /// Whether something was not counted, so that numbers may be too low.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    doubtful: bool,
}

/// The last look at whether everything is at rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WaitingLook {
    /// The time of the look.
    looked_at: Timestamp,
    /// The time since which all changes are counted; `None` where nothing has been at rest yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact_since: Option<Timestamp>,
    /// The time at which the numbers were last known to be those of what is listed at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared_at: Option<Timestamp>,
    /// The digest of what the look saw at rest ([`rest_digest`]), where the numbers are set to it as
    /// soon as the next look sees the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<String>,
}

/// The outcome of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookOutcome {
    /// The numbers were not compared, because that is not due.
    NotCompared,
    /// Something is on its way.
    Busy,
    /// Everything seems to be at rest, with this digest ([`rest_digest`]). What is on its way from one
    /// place to another may have been overlooked.
    Rest(String),
    /// All parts have the numbers of what is listed at rest.
    Exact,
}

/// The changes that the records of one message make to a part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartChanges {
    events: BTreeMap<String, i64>,
    /// Whether a record does not say what it changes.
    is_doubtful: bool,
}

/// The changes that the records of one message make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitChanges {
    /// The digest of the message's body: a copy of the message has another id.
    message: String,
    /// The changes of each part that has any.
    parts: BTreeMap<usize, PartChanges>,
}

/// The key of a subscription in its part: `topic.subscription`, in lower case.
pub fn waiting_key(topic: &TopicName, name: &SubscriptionName) -> String {
    subscription_key(&topic.folded_text(), &name.folded_text())
}

fn subscription_key(topic: &str, subscription: &str) -> String {
    [topic, ".", subscription].concat()
}

/// The part of a subscription with this key: less than [`WAITING_PARTS`].
pub fn waiting_part(key: &str) -> usize {
    usize::from(Sha256::digest(key)[0]) % WAITING_PARTS
}

/// The digest of everything that a look sees at rest: what is listed for each subscription, and all
/// parts, with the times of their last changes.
pub fn rest_digest<'a>(
    listed: &BTreeMap<String, u64>,
    parts: impl Iterator<Item = &'a WaitingPart>,
) -> String {
    let mut digest = Sha256::new();
    for (key, events) in listed {
        digest.update(format!("{key} {events}\n"));
    }
    for part in parts {
        digest.update(part.render());
    }
    hex::encode(&digest.finalize())
}

impl WaitChanges {
    /// The changes of the records in a message with this body. Records of an acceptance are of no
    /// subscription.
    pub fn from_records<'a>(
        body: impl AsRef<[u8]>,
        records: impl Iterator<Item = &'a LogRecord>,
    ) -> Self {
        let mut by_subscription = BTreeMap::<_, (i64, bool)>::new();
        for record in records.filter(|record| !record.subscription.is_empty()) {
            let names = (record.topic.as_str(), record.subscription.as_str());
            let (events, is_doubtful) = by_subscription.entry(names).or_default();
            *events += record.wait.count_change();
            *is_doubtful |= record.wait.is_unknown();
        }
        let mut changes = Self::default();
        for ((topic, subscription), (events, is_doubtful)) in by_subscription {
            if events == 0 && !is_doubtful {
                continue;
            }
            let key = subscription_key(topic, subscription);
            let part = changes.parts.entry(waiting_part(&key)).or_default();
            part.is_doubtful |= is_doubtful;
            if events != 0 {
                part.events.insert(key, events);
            }
        }
        if !changes.parts.is_empty() {
            changes.message = hex::encode(&Sha256::digest(body)[..MESSAGE_BYTES]);
        }
        changes
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The changes by part, each with the digest of the message.
    pub fn into_parts(self) -> impl Iterator<Item = (usize, (String, PartChanges))> {
        let Self { message, parts } = self;
        parts
            .into_iter()
            .map(move |(part, changes)| (part, (message.clone(), changes)))
    }
}

impl PartChanges {
    /// The sum of the changes of messages, under the digest of the last. It no longer tells them
    /// apart, so that one that comes again counts twice: the sum is doubtful.
    pub fn fold_messages(messages: &[(String, Self)]) -> (String, Self) {
        let mut events = BTreeMap::<String, i64>::new();
        for (key, more) in messages.iter().flat_map(|(_, changes)| &changes.events) {
            if let Some(sum) = events.get_mut(key) {
                *sum = sum.saturating_add(*more);
            } else if events.len() < WAITING_SUBSCRIPTIONS_MAX {
                events.insert(key.clone(), *more);
            }
        }
        events.retain(|_, sum| *sum != 0);
        let last = messages.last().map(|(message, _)| message.clone());
        let changes = Self {
            events,
            is_doubtful: true,
        };
        (last.unwrap_or_default(), changes)
    }
}

impl WaitingPart {
    /// An empty part in the place of one that cannot be read.
    pub fn new_doubtful() -> Self {
        Self {
            doubtful: true,
            ..Self::default()
        }
    }

    /// Adds the changes of messages, each under its digest. One that was added before changes
    /// nothing.
    pub fn add_messages<'a>(
        &mut self,
        messages: impl IntoIterator<Item = &'a (String, PartChanges)>,
        now: Timestamp,
    ) {
        let mut counted: HashSet<_> = self.message_digests().map(<[u8]>::to_vec).collect();
        for (message, changes) in messages {
            self.doubtful |= changes.is_doubtful;
            if changes.events.is_empty() || !counted.insert(message.clone().into_bytes()) {
                continue;
            }
            for (key, events) in &changes.events {
                self.add_events(key, *events);
            }
            self.counted.push_str(message);
            self.changed_at = self.changed_at.max(now);
        }
        self.forget_old();
    }

    /// The events of a subscription that wait; `None` where the part has nothing of it.
    pub fn waiting_events(&self, key: &str) -> Option<u64> {
        let events = self.waiting.get(key)?;
        Some(u64::try_from(*events).unwrap_or_default())
    }

    /// All subscriptions whose events wait.
    pub fn waiting_subscriptions(&self) -> impl Iterator<Item = (&str, u64)> {
        let waiting = self.waiting.iter();
        waiting.filter_map(|(key, events)| Some((key.as_str(), u64::try_from(*events).ok()?)))
    }

    /// Whether something was not counted. Where a number is below zero, a beginning was not, or not
    /// yet.
    pub fn is_doubtful(&self) -> bool {
        self.doubtful || self.waiting.values().any(|events| *events < 0)
    }

    /// Whether nothing has changed for so long that nothing is on its way.
    pub fn is_quiet(&self, now: Timestamp) -> bool {
        now.since(self.changed_at) >= QUIET
    }

    /// The part with the numbers that were counted while everything was at rest. It stays doubtful
    /// where it has no room for all of them.
    #[must_use]
    pub fn with_exact_counts(&self, exact: &BTreeMap<String, u64>) -> Self {
        let waiting = exact.iter().filter(|(_, events)| **events > 0);
        let doubtful = waiting.clone().count() > WAITING_SUBSCRIPTIONS_MAX;
        let waiting = waiting
            .take(WAITING_SUBSCRIPTIONS_MAX)
            .map(|(key, events)| (key.clone(), i64::try_from(*events).unwrap_or(i64::MAX)));
        Self {
            waiting: waiting.collect(),
            doubtful,
            ..self.clone()
        }
    }

    fn add_events(&mut self, key: &str, events: i64) {
        let has_room = self.waiting.len() < WAITING_SUBSCRIPTIONS_MAX;
        if let Some(waiting) = self.waiting.get_mut(key) {
            *waiting = waiting.saturating_add(events);
            if *waiting == 0 {
                self.waiting.remove(key);
            }
        } else if has_room {
            self.waiting.insert(key.to_owned(), events);
        } else {
            self.doubtful = true;
        }
    }

    fn message_digests(&self) -> impl Iterator<Item = &[u8]> {
        self.counted.as_bytes().chunks_exact(2 * MESSAGE_BYTES)
    }

    fn forget_old(&mut self) {
        let too_many = self
            .counted
            .len()
            .saturating_sub(COUNTED_MESSAGES_MAX * 2 * MESSAGE_BYTES);
        if self.counted.is_char_boundary(too_many) {
            self.counted.drain(..too_many);
        } else {
            self.counted.clear();
        }
    }
}

impl WaitingLook {
    /// The look that follows this one `now`.
    #[must_use]
    pub fn next(&self, now: Timestamp, outcome: LookOutcome) -> Self {
        let mut next = Self {
            looked_at: now,
            exact_since: self.exact_since.filter(|_| self.is_continued(now)),
            compared_at: self.compared_at,
            rest: None,
        };
        match outcome {
            LookOutcome::NotCompared | LookOutcome::Busy => {}
            LookOutcome::Rest(digest) => next.rest = Some(digest),
            LookOutcome::Exact => {
                next.compared_at = Some(now);
                next.exact_since = next.exact_since.or(Some(now));
            }
        }
        next
    }

    /// Whether another look is due.
    pub fn is_due(&self, now: Timestamp) -> bool {
        now.since(self.looked_at) >= LOOK_EVERY
    }

    /// Whether that look compares the numbers with what is listed: once an hour, and each time until
    /// they are exact, and until what was seen at rest is seen again.
    pub fn is_comparison_due(&self, now: Timestamp) -> bool {
        !self.is_exact(now)
            || self.rest.is_some()
            || self
                .compared_at
                .is_none_or(|at| now.since(at) >= COMPARED_EVERY)
    }

    /// Whether this look saw the same at rest.
    pub fn has_seen(&self, digest: &str, now: Timestamp) -> bool {
        self.is_continued(now) && self.rest.as_deref() == Some(digest)
    }

    /// Whether all changes are counted since everything was at rest: looks have gone on until `now`.
    pub fn is_exact(&self, now: Timestamp) -> bool {
        self.exact_since.is_some() && self.is_continued(now)
    }

    fn is_continued(&self, now: Timestamp) -> bool {
        now.since(self.looked_at) <= LOOKS_APART_MAX
    }
}

#[cfg(test)]
mod tests;
