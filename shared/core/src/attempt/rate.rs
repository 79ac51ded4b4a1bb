//! The rate limit of an endpoint: requests a minute, over all workers together.
//!
//! A worker takes a lease: the next stretch of time that is free, as long as the lease's requests
//! take at the rate. Each of the requests has its own moment in it. One object per subscription
//! says up to when time is taken. The worker that writes the next value, on the condition that the
//! last one still stands, has the lease. So no interleaving of workers gives out a moment twice,
//! and unused moments are lost. A request may be begun up to a lease's length after its moment; the
//! rate can be exceeded by no more than that.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{RequestRate, SQS_DELAY_MAX, Timestamp};

/// The longest stretch of time that one lease covers, unless a single request takes longer.
const LEASE_LENGTH: Duration = Duration::from_secs(1);

/// The furthest time ahead at which a lease may begin. A request without room until then waits in
/// the queue, and not in a worker.
const LEASE_AHEAD_MAX: Duration = Duration::from_millis(LEASE_AHEAD_MS);

const LEASE_AHEAD_MS: u64 = 1000;

/// The furthest time up to which time can be taken: the longest lease of the lowest rate, a minute,
/// begun as late as it may, and room for clocks that differ. What lies further ahead was written by
/// a clock that was wrong.
const TAKEN_AHEAD_MAX: Duration = Duration::from_secs(65);

/// The longest line of requests that found nothing. The next one then starts a line from its
/// beginning. So a backlog comes back a few times a day, spread over the line and out of the object
/// store. Requests in the line that have gone since (they may have expired, or been delivered by
/// another worker) delay others no longer than that.
const LINE_MAX: Duration = Duration::from_hours(2);

/// The time after which a line is empty if no worker took anything: parked requests come back to
/// the minute.
const LINE_IDLE: Duration = Duration::from_mins(3);

/// The time up to which a subscription's requests are taken: the content of its object under
/// `rates/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateState {
    taken_until: Timestamp,
}

/// The right to some requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLease {
    rate: RequestRate,
    start: Timestamp,
    requests: u32,
    given: u32,
}

/// The right to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateToken {
    /// The earliest time at which it may be begun.
    pub from: Timestamp,
    until: Timestamp,
}

/// A place in the line of those that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePlace {
    /// The time at which the request comes back.
    pub due: Timestamp,
    given_at: Timestamp,
}

/// The answer to a worker that asks for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateGrant {
    /// A lease, valid once this state is written in place of the one that was read.
    Lease(RateLease, RateState),
    /// Nothing that begins before this time.
    NothingBefore(Timestamp),
}

impl RequestRate {
    /// The time that this number of requests takes, in whole milliseconds, rounded up.
    fn time_of(self, requests: u32) -> Duration {
        let ms = (u64::from(requests) * 60_000).div_ceil(u64::from(self.requests_per_minute()));
        Duration::from_millis(ms)
    }

    /// The most requests of one lease.
    fn lease_max(self) -> u32 {
        let per_lease = u128::from(self.requests_per_minute()) * LEASE_LENGTH.as_millis() / 60_000;
        u32::try_from(per_lease).unwrap_or(u32::MAX).max(1)
    }

    /// The time after its moment at which a request may still be begun: as long as the requests of
    /// one lease take, so that no more than those come together with the ones that are on time.
    /// The rarer the requests, the longer each may wait for a lane and for its texts.
    fn token_kept(self) -> Duration {
        Duration::from_millis(
            u64::from(self.lease_max()) * 60_000 / u64::from(self.requests_per_minute()),
        )
    }

    /// Grants requests at `now` to a worker in which `wanted` requests wait. `state` is the
    /// object's content, if there is an object.
    pub fn take_lease(self, state: Option<RateState>, wanted: u32, now: Timestamp) -> RateGrant {
        let taken_until = state.map_or(Timestamp::EPOCH, |state| state.taken_until);
        let is_of_a_wrong_clock = taken_until > now + TAKEN_AHEAD_MAX;
        let start = if is_of_a_wrong_clock {
            now
        } else {
            taken_until.max(now)
        };
        if start > now + LEASE_AHEAD_MAX {
            return RateGrant::NothingBefore(start);
        }
        let requests = wanted.clamp(1, self.lease_max());
        let lease = RateLease {
            rate: self,
            start,
            requests,
            given: 0,
        };
        RateGrant::Lease(
            lease,
            RateState {
                taken_until: start + self.time_of(requests),
            },
        )
    }

    /// The time at which a worker may ask again that found nothing before this time: as soon as a
    /// lease may begin then.
    pub fn asks_again(nothing_before: Timestamp) -> Timestamp {
        Timestamp::from_millis(nothing_before.as_millis().saturating_sub(LEASE_AHEAD_MS))
    }

    /// Gives a place to a request that found nothing: after those of this worker that found nothing
    /// before it, the last of them at the place `last`, so that they do not all come back at
    /// once and find one place. A place far down the line is not kept in the queue; at the end
    /// of the longest line it starts again, past what the queue can delay. A line whose last
    /// place was given by a clock that was set back since is gone.
    pub fn line_up(
        self,
        last: Option<LinePlace>,
        nothing_before: Timestamp,
        now: Timestamp,
    ) -> LinePlace {
        let last = last.filter(|last| last.given_at <= now + TAKEN_AHEAD_MAX);
        let after_last = last.map_or(Timestamp::EPOCH, |last| last.due + self.time_of(1));
        let next = after_last.max(nothing_before);
        let past_the_queue = now + SQS_DELAY_MAX + Duration::from_secs(1);
        let due = if next <= now + LINE_MAX {
            next
        } else {
            past_the_queue
        };
        LinePlace { due, given_at: now }
    }
}

impl RateLease {
    /// Whether it is of this rate: one of another is not used any more.
    pub fn has_rate(&self, rate: RequestRate) -> bool {
        self.rate == rate
    }

    /// The right to the next request, if there is one left that may still be begun at `now`. A
    /// lease that begins later than any that is given is of a clock that was set back since,
    /// and has none.
    pub fn next_token(&mut self, now: Timestamp) -> Option<RateToken> {
        if self.start > now + LEASE_AHEAD_MAX {
            return None;
        }
        while self.given < self.requests {
            let from = self.start + self.rate.time_of(self.given);
            self.given += 1;
            let token = RateToken {
                from,
                until: from + self.rate.token_kept(),
            };
            if now < token.until {
                return Some(token);
            }
        }
        None
    }
}

impl RateToken {
    /// Whether its request may be begun at this time.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        (self.from..self.until).contains(&now)
    }
}

impl RateState {
    /// Whether the last minutes were not taken by any worker, so that the line is empty by now.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.taken_until + LINE_IDLE < now
    }

    /// Whether it already shows that there is nothing at `now`, so that the object need not be read
    /// again.
    pub fn gives_nothing(&self, now: Timestamp) -> Option<Timestamp> {
        let is_ahead =
            self.taken_until > now + LEASE_AHEAD_MAX && self.taken_until <= now + TAKEN_AHEAD_MAX;
        is_ahead.then_some(self.taken_until)
    }
}

#[cfg(test)]
mod tests;
