//! Known states of the limiters. No lock is held while the store is asked.

use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use posthaste_core::attempt::{RateLease, RateState, RateToken};
use posthaste_core::model::{RequestRate, Timestamp};
use posthaste_ports::ETag;

use crate::shared_state::{TurnedAwayLine, WaitGuard};

/// The limiter of one subscription.
#[derive(Debug, Default)]
pub(super) struct SubscriptionRateLimiter {
    /// The requests that wait for a permit.
    pub(super) waiting: AtomicU32,
    pub(super) state: Mutex<RateLimiterState>,
}

#[derive(Debug, Default)]
pub(super) struct RateLimiterState {
    pub(super) lease: Option<RateLease>,
    /// The object as it was last read or written.
    pub(super) stored: Option<(RateState, ETag)>,
    /// The requests that found nothing. They come back at the rate.
    pub(super) line: TurnedAwayLine<RequestRate>,
}

/// The answer that is available without asking the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenAvailability {
    /// The right to a request.
    Token(RateToken),
    /// No right before this time.
    NothingBefore(Timestamp),
    /// The store must be asked.
    Unknown,
}

impl SubscriptionRateLimiter {
    pub(super) fn begin_wait(&self) -> WaitGuard<'_> {
        WaitGuard::begin(&self.waiting)
    }
}

impl RateLimiterState {
    pub(super) fn next_token(&mut self, rate: RequestRate, now: Timestamp) -> TokenAvailability {
        let lease = self.lease.as_mut().filter(|lease| lease.has_rate(rate));
        if let Some(token) = lease.and_then(|lease| lease.next_token(now)) {
            return TokenAvailability::Token(token);
        }
        self.lease = None;
        let time = self
            .stored
            .as_ref()
            .and_then(|(state, _)| state.gives_nothing(now));
        time.map_or(TokenAvailability::Unknown, TokenAvailability::NothingBefore)
    }
}
