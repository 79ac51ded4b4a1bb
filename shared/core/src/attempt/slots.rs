//! The bound on the requests of a subscription that are open at once, over all workers together.
//!
//! A worker leases slots, each the right to one open request. One object per subscription says who
//! holds how many, and until when. The worker that writes the next state, on the condition that the
//! last one still stands, has what it took. A request begins only if its timeout ends before its
//! worker's lease does, so a slot whose lease is over is of no open request, whatever became of the
//! worker. So no interleaving of workers has more requests open than the bound.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{
    ATTEMPT_TIMEOUT_MAX, CONCURRENT_REQUESTS_MAX, RequestRate, SlotLimit, Timestamp,
};

/// The time in which the requests of one lease may begin. The longer it is, the rarer a busy worker
/// writes; the shorter, the sooner the slots of one that crashed are free.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);

/// The difference between the clocks of two workers that is made up for. Clocks on AWS are kept to
/// milliseconds; the rest is for answers that are noticed late.
const CLOCK_MARGIN: Duration = Duration::from_secs(5);

/// The longest lease.
const LEASE_MAX: Duration = BEGINS_WITHIN
    .saturating_add(ATTEMPT_TIMEOUT_MAX)
    .saturating_add(CLOCK_MARGIN);

/// The furthest end of a lease that a right clock wrote. What ends later was written by a clock
/// that was wrong.
const UNTIL_AHEAD_MAX: Duration = LEASE_MAX.saturating_add(CLOCK_MARGIN);

/// The time after which no request waits in the line any more, if no worker wrote anything: parked
/// requests come back to the minute.
const LINE_IDLE: Duration = Duration::from_mins(3);

/// The slots that are held, by worker: the content of a subscription's object under `slots/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotState {
    /// The time of the last write, a millisecond later where two came in the same one: no two
    /// states of an object are alike, so an etag that names content names one write.
    at: Timestamp,
    leases: Vec<HeldSlots>,
}

/// The slots of one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeldSlots {
    /// The worker, by an id that it drew.
    holder: String,
    slots: u32,
    /// The time from which other workers may take them.
    until: Timestamp,
}

/// A worker that asks for slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotClaim<'a> {
    /// The id of the worker.
    pub holder: &'a str,
    /// The number of its requests that are open.
    pub begun: u32,
    /// The slots that it has already, of a lease that still serves.
    pub held: u32,
    /// The slots that it has a use for, these included.
    pub wanted: u32,
    /// The time that each request has for its answer.
    pub timeout: Duration,
}

/// A worker's right to have some requests open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLease {
    limit: SlotLimit,
    slots: u32,
    from: Timestamp,
    /// The time by which its requests have ended.
    end: Timestamp,
}

/// The answer to a worker that asks for slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotGrant {
    /// A lease in place of the former one, valid once this state is written in place of the one
    /// that was read.
    Lease(SlotLease, SlotState),
    /// No more than the worker has. There may be a state to write, in which what a wrong clock
    /// wrote has an end.
    Nothing(Option<SlotState>),
}

impl SlotLimit {
    /// Grants slots at `now`. `state` is the object's content, if there is an object.
    pub fn take_slots(
        self,
        state: Option<&SlotState>,
        claim: &SlotClaim<'_>,
        now: Timestamp,
    ) -> SlotGrant {
        let live = LiveLeases::from_state(state, now);
        let taken = live.slots_of_others(claim.holder);
        let slots = self.requests().saturating_sub(taken).min(claim.wanted);
        if slots <= claim.held {
            let next = live.is_shortened.then(|| live.into_state(state, now));
            return SlotGrant::Nothing(next);
        }
        let end = now + BEGINS_WITHIN + claim.timeout;
        let lease = SlotLease {
            limit: self,
            slots,
            from: now,
            end,
        };
        // Open requests that are above a lowered bound have begun by an older lease.
        let held = slots.max(claim.begun);
        let next = live.with_lease(claim.holder, held, end + CLOCK_MARGIN);
        SlotGrant::Lease(lease, next.into_state(state, now))
    }

    /// The pace at which requests that found no slot come back, if one takes so long.
    pub fn return_rate(self, request_time: Duration) -> RequestRate {
        let time_ms = request_time.as_millis().max(1);
        let per_minute = u128::from(self.requests()) * 60_000 / time_ms;
        let per_minute = u32::try_from(per_minute).unwrap_or(u32::MAX);
        RequestRate::per_minute(per_minute).unwrap_or(RequestRate::SLOWEST)
    }
}

impl SlotLease {
    /// Whether a request of a subscription with this bound may begin at this time.
    pub fn allows_request(&self, limit: SlotLimit, timeout: Duration, now: Timestamp) -> bool {
        self.limit == limit && self.from <= now && now + timeout <= self.end
    }

    /// The most requests that it lets be open at once.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// The lease of no more than so many slots.
    #[must_use]
    pub fn capped_at(self, slots: u32) -> Self {
        Self {
            slots: self.slots.min(slots),
            ..self
        }
    }
}

impl SlotState {
    /// The state of an object that cannot be read: workers may hold every slot. It gets an end when
    /// it is written.
    pub fn for_unreadable() -> Self {
        let all = HeldSlots {
            holder: String::new(),
            slots: CONCURRENT_REQUESTS_MAX,
            until: Timestamp::from_millis(u64::MAX),
        };
        Self {
            at: Timestamp::EPOCH,
            leases: vec![all],
        }
    }

    /// The state in which this worker holds no more than so many slots; `None` if it holds no more
    /// already.
    pub fn give_back(&self, holder: &str, slots: u32, now: Timestamp) -> Option<Self> {
        let live = LiveLeases::from_state(Some(self), now);
        let own = live.lease_of(holder)?;
        if own.slots <= slots {
            return None;
        }
        let next = live.clone().with_lease(holder, slots, own.until);
        Some(next.into_state(Some(self), now))
    }

    /// The state after this one, or after none, in which all is as it was. A write that was asked
    /// for before it and is not answered yet can no longer come true.
    pub fn rewrite_unchanged(last: Option<&Self>, now: Timestamp) -> Self {
        LiveLeases::from_state(last, now).into_state(last, now)
    }

    /// Whether no worker had a slot in the last minutes, so that the line is empty by now.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.at + LINE_IDLE < now && LiveLeases::from_state(Some(self), now).held.is_empty()
    }
}

/// The leases of a state that are not over.
#[derive(Debug, Clone)]
struct LiveLeases {
    held: Vec<HeldSlots>,
    /// Whether one of them was longer than any lease is.
    is_shortened: bool,
}

impl LiveLeases {
    /// Those at `now`. One that a wrong clock wrote lasts as long as the longest lease from now on:
    /// the requests of its worker have ended by then.
    fn from_state(state: Option<&SlotState>, now: Timestamp) -> Self {
        let mut held: Vec<_> = state.map_or_else(Vec::new, |state| state.leases.clone());
        held.retain(|lease| lease.until > now && lease.slots > 0);
        let mut is_shortened = false;
        for lease in &mut held {
            if lease.until > now + UNTIL_AHEAD_MAX {
                lease.until = now + LEASE_MAX;
                is_shortened = true;
            }
        }
        Self { held, is_shortened }
    }

    fn lease_of(&self, holder: &str) -> Option<&HeldSlots> {
        self.held.iter().find(|lease| lease.holder == holder)
    }

    fn slots_of_others(&self, holder: &str) -> u32 {
        let others = self.held.iter().filter(|lease| lease.holder != holder);
        others.fold(0, |sum, lease| sum.saturating_add(lease.slots))
    }

    /// The leases after this worker's has become one of so many slots, which ends no sooner than
    /// before: its open requests have begun by the older one.
    fn with_lease(mut self, holder: &str, slots: u32, until: Timestamp) -> Self {
        let before = self.lease_of(holder).map(|lease| lease.until);
        self.held.retain(|lease| lease.holder != holder);
        if slots > 0 {
            self.held.push(HeldSlots {
                holder: holder.to_owned(),
                slots,
                until: before.map_or(until, |before| before.max(until)),
            });
        }
        self
    }

    /// The state that is written in place of `last`.
    fn into_state(self, last: Option<&SlotState>, now: Timestamp) -> SlotState {
        let after_last = last.map(|last| last.at + Duration::from_millis(1));
        SlotState {
            at: after_last.map_or(now, |after| after.max(now)),
            leases: self.held,
        }
    }
}

#[cfg(test)]
mod tests;
