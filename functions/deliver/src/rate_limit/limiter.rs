//! Known states of the limiters. No lock is held while the store is asked.

use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use posthaste_core::attempt::{RateLease, RateState, RateToken, RequestRate};
use posthaste_core::model::Timestamp;
use posthaste_ports::ETag;

use crate::shared_state::{Line, Waiting};

/// The limiter of one subscription.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    /// The requests that wait for a permit.
    pub(super) waiting: AtomicU32,
    pub(super) state: Mutex<LimiterState>,
}

#[derive(Debug, Default)]
pub(super) struct LimiterState {
    pub(super) lease: Option<RateLease>,
    /// The object as it was last read or written.
    pub(super) stored: Option<(RateState, ETag)>,
    /// The requests that found nothing. They come back at the rate.
    pub(super) line: Line<RequestRate>,
}

/// The answer that is available without asking the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Available {
    /// The right to a request.
    Token(RateToken),
    /// No right before this time.
    NothingBefore(Timestamp),
    /// The store must be asked.
    Unknown,
}

impl Limiter {
    pub(super) fn wait(&self) -> Waiting<'_> {
        Waiting::begin(&self.waiting)
    }
}

impl LimiterState {
    pub(super) fn available(&mut self, rate: RequestRate, now: Timestamp) -> Available {
        let lease = self.lease.as_mut().filter(|lease| lease.has_rate(rate));
        if let Some(token) = lease.and_then(|lease| lease.next_token(now)) {
            return Available::Token(token);
        }
        self.lease = None;
        let time = self
            .stored
            .as_ref()
            .and_then(|(state, _)| state.gives_nothing(now));
        time.map_or(Available::Unknown, Available::NothingBefore)
    }
}
