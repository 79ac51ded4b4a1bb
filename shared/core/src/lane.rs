//! Lanes: which of the two delivery queues of AWS a delivery takes.
//!
//! An invocation lasts as long as its slowest request, so a target that answers slowly keeps the
//! invocations busy whose batches hold an event for it. Its deliveries get a queue of their own,
//! and invocations of their own with it.
//!
//! | a target is | what is seen | becomes |
//! |---|---|---|
//! | quick | two late requests in one invocation, or in two within a minute | slow for five minutes |
//! | slow | a slow answer while less than half of its time is left | slow for five minutes more |
//! | slow | its time is over | quick |
//!
//! A target is a subscription at first, and its link once two of the link's subscriptions are slow.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::circuit::DeliveryTarget;
use crate::model::{Link, Subscription, Timestamp};

/// The time for which a target is slow, once that is seen.
pub const SLOW_FOR: Duration = Duration::from_mins(5);

/// A target that is still slow has its time extended once less than this is left, so that it is
/// written down once in as long at most.
const EXTENDED_BELOW: Duration = Duration::from_secs(SLOW_FOR.as_secs() / 2);

/// The time for which a late request is remembered, so that another one makes its target slow. One
/// alone may be a moment's delay.
pub const LATE_REMEMBERED_FOR: Duration = Duration::from_mins(1);

/// The late requests in one invocation that make their target slow.
pub const LATE_REQUESTS_MIN: u32 = 2;

/// The most links that are slow, or of which a late request is remembered. Others count as quick.
/// Every process of deliver reads them: this many take some 80 KB.
pub const SLOW_LINKS_MAX: usize = 1000;

/// The age at which a process reads again which targets are slow.
pub const LANES_MAX_AGE: Duration = Duration::from_secs(10);

/// The same while nothing is slow, as nearly always: those reads are all that quick traffic pays.
pub const EMPTY_LANES_MAX_AGE: Duration = Duration::from_secs(15);

/// The time after which a request is late, unless a setting says otherwise.
pub const SLOW_AFTER_DEFAULT: Duration = Duration::from_secs(2);

/// A delivery queue, and the invocations that serve it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum DeliveryLane {
    /// The lane of all deliveries, unless their target is slow.
    #[default]
    Quick,
    /// The lane of deliveries to slow targets.
    Slow,
}

/// The targets that are slow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlowTargets {
    /// The time until which each is slow. A link has one entry: its own, or that of the only one
    /// of its subscriptions that is slow.
    pub(crate) slow_until: BTreeMap<DeliveryTarget, Timestamp>,
    /// The time of a late request of each subscription that is not slow.
    pub(crate) late_at: BTreeMap<DeliveryTarget, Timestamp>,
}

/// An observation about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneObservation {
    /// A request is open for longer than it may take, or was answered after that.
    Late {
        /// Late requests of the target in the invocation, this one included.
        in_invocation: u32,
        /// Whether the invocation has other messages, which wait with it.
        holds_others_up: bool,
    },
    /// A request was answered after more than half of the time that it may take.
    SlowAnswer,
}

impl SlowTargets {
    /// The age at which they are read again.
    pub fn max_age(&self) -> Duration {
        if self.slow_until.is_empty() {
            EMPTY_LANES_MAX_AGE
        } else {
            LANES_MAX_AGE
        }
    }

    /// Whether nothing is slow at this time.
    pub fn is_empty_at(&self, now: Timestamp) -> bool {
        self.slow_until.values().all(|until| *until <= now)
    }

    /// Whether a target is slow at this time, by itself or by its link.
    pub fn is_slow(&self, target: &DeliveryTarget, now: Timestamp) -> bool {
        !self.slow_until.is_empty() && self.slow_entry(&folded_target(target), now).is_some()
    }

    /// The number of targets that are slow at this time.
    pub fn count_at(&self, now: Timestamp) -> usize {
        let slow = self.slow_until.values().filter(|until| **until > now);
        slow.count()
    }

    /// The targets that are slow at this time, each with the end of its time.
    pub fn slow_at(&self, now: Timestamp) -> impl Iterator<Item = (&DeliveryTarget, Timestamp)> {
        let all = self
            .slow_until
            .iter()
            .map(|(target, until)| (target, *until));
        all.filter(move |(_, until)| *until > now)
    }

    /// The lane of a subscription's deliveries. Its fallback counts as well: requests may go there.
    pub fn lane_of(&self, subscription: &Subscription, now: Timestamp) -> DeliveryLane {
        if self.slow_until.is_empty() {
            return DeliveryLane::Quick;
        }
        let links = [&subscription.endpoint]
            .into_iter()
            .chain(&subscription.fallback);
        let mut targets = links.map(|url| DeliveryTarget::on_link(url.link(), subscription));
        if targets.any(|target| self.is_slow(&target, now)) {
            DeliveryLane::Slow
        } else {
            DeliveryLane::Quick
        }
    }

    /// The targets as they are written after an observation; `None` if nothing is to be written.
    #[must_use]
    pub fn after_observation(
        &self,
        seen: LaneObservation,
        target: &DeliveryTarget,
        now: Timestamp,
    ) -> Option<Self> {
        let target = &folded_target(target);
        if let Some((key, until)) = self.slow_entry(target, now) {
            let is_extended = until.since(now) < EXTENDED_BELOW;
            return is_extended.then(|| self.with_slow(key, now));
        }
        let LaneObservation::Late {
            in_invocation,
            holds_others_up,
        } = seen
        else {
            return None;
        };
        let is_remembered = self.late_since(now).any(|(late, _)| late == target);
        if !self.has_room(target.link(), now) {
            return None;
        }
        if is_remembered || in_invocation >= LATE_REQUESTS_MIN {
            return Some(self.with_newly_slow(target, now));
        }
        holds_others_up.then(|| {
            let mut next = self.without_outdated(now);
            next.late_at.insert(target.clone(), now);
            next
        })
    }

    /// The entry by which a target is slow, and its end.
    fn slow_entry(
        &self,
        target: &DeliveryTarget,
        now: Timestamp,
    ) -> Option<(DeliveryTarget, Timestamp)> {
        let link = DeliveryTarget::Link(target.link().clone());
        [&link, target].into_iter().find_map(|key| {
            let until = *self.slow_until.get(key)?;
            (until > now).then(|| (key.clone(), until))
        })
    }

    /// A target that becomes slow. With another subscription of its link, the link does.
    fn with_newly_slow(&self, target: &DeliveryTarget, now: Timestamp) -> Self {
        let link = target.link();
        let mut is_second = false;
        let mut next = self.without_outdated(now);
        next.late_at.remove(target);
        next.slow_until.retain(|other, _| {
            is_second |= other.link() == link;
            other.link() != link
        });
        let slow = if is_second {
            DeliveryTarget::Link(link.clone())
        } else {
            target.clone()
        };
        next.with_slow(slow, now)
    }

    fn with_slow(&self, target: DeliveryTarget, now: Timestamp) -> Self {
        let mut next = self.without_outdated(now);
        next.slow_until.insert(target, now + SLOW_FOR);
        next
    }

    /// The same without what is over.
    fn without_outdated(&self, now: Timestamp) -> Self {
        let slow = self
            .slow_at(now)
            .map(|(target, until)| (target.clone(), until));
        let late = self
            .late_since(now)
            .map(|(target, at)| (target.clone(), at));
        Self {
            slow_until: slow.collect(),
            late_at: late.collect(),
        }
    }

    /// The late requests that are remembered. One of a clock that was set back is not.
    fn late_since(&self, now: Timestamp) -> impl Iterator<Item = (&DeliveryTarget, Timestamp)> {
        let all = self.late_at.iter().map(|(target, at)| (target, *at));
        all.filter(move |(_, at)| *at <= now && now.since(*at) < LATE_REMEMBERED_FOR)
    }

    /// Whether another target of this link may be written down.
    fn has_room(&self, link: &Link, now: Timestamp) -> bool {
        let slow = self.slow_at(now).map(|(target, _)| target);
        let late = self.late_since(now).map(|(target, _)| target);
        let links: BTreeSet<_> = slow.chain(late).map(DeliveryTarget::link).collect();
        links.len() < SLOW_LINKS_MAX || links.contains(link)
    }
}

/// The target with its names in lower case, as its text has them: a topic may have been written in
/// another case.
fn folded_target(target: &DeliveryTarget) -> DeliveryTarget {
    DeliveryTarget::parse(&target.to_string()).unwrap_or_else(|| target.clone())
}

#[cfg(test)]
mod tests;
