//! Known states of the limiters. No lock is held while the store is asked.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use posthaste_core::attempt::{Lease, Place, Rate, RateState, Token};
use posthaste_core::model::Timestamp;
use posthaste_ports::ETag;

/// The limiter of one subscription.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    /// The requests that wait for a permit.
    pub(super) waiting: AtomicU32,
    pub(super) state: Mutex<LimiterState>,
}

#[derive(Debug, Default)]
pub(super) struct LimiterState {
    pub(super) lease: Option<Lease>,
    /// The object as it was last read or written.
    pub(super) stored: Option<(RateState, ETag)>,
    /// The place of the last request that found nothing, with the rate at which such requests come
    /// back.
    pub(super) line: Option<(Rate, Place)>,
}

/// The answer that is available without asking the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Available {
    /// The right to a request.
    Token(Token),
    /// No right before this time.
    NothingBefore(Timestamp),
    /// The store must be asked.
    Unknown,
}

/// A waiting request, counted until this is dropped.
pub(super) struct Waiting<'a>(&'a AtomicU32);

impl Limiter {
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(&self.waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LimiterState {
    pub(super) fn available(&mut self, rate: Rate, now: Timestamp) -> Available {
        let lease = self.lease.as_mut().filter(|lease| lease.is_of(rate));
        if let Some(token) = lease.and_then(|lease| lease.token(now)) {
            return Available::Token(token);
        }
        self.lease = None;
        let time = self
            .stored
            .as_ref()
            .and_then(|(state, _)| state.gives_nothing(now));
        time.map_or(Available::Unknown, Available::NothingBefore)
    }

    /// The time at which a request that found nothing comes back.
    pub(super) fn line_up(
        &mut self,
        rate: Rate,
        nothing_before: Timestamp,
        now: Timestamp,
    ) -> Timestamp {
        let last = self
            .line
            .filter(|(of, _)| *of == rate)
            .map(|(_, last)| last);
        let place = rate.line_up(last, nothing_before, now);
        self.line = Some((rate, place));
        // In whole seconds, as queues count, so that events of one message come back together.
        Timestamp::from_millis(place.due.as_millis().next_multiple_of(1000))
    }
}
