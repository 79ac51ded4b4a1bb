//! What this process knows of the subscriptions with a bound on their rate. Never locked while the store is asked.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use posthaste_core::attempt::rate::{Lease, Place, Rate, RateState, Token};
use posthaste_core::model::time::Timestamp;
use posthaste_ports::ETag;
use posthaste_services::SingleFlight;

use super::lease::LeaseError;

/// Above so many subscriptions, those for which nobody waits are forgotten.
const LIMITED_KEPT_MAX: usize = 4096;

/// The subscriptions with a bound that this process has met.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    limited: Mutex<HashMap<String, Arc<Limited>>>,
    /// The leases that are being asked for.
    pub(super) asked: SingleFlight<Result<(), Arc<LeaseError>>>,
}

/// What is known of one of them.
#[derive(Debug, Default)]
pub(super) struct Limited {
    /// How many requests wait for a turn.
    pub(super) waiting: AtomicU32,
    pub(super) known: Mutex<Known>,
}

#[derive(Debug, Default)]
pub(super) struct Known {
    lease: Option<Lease>,
    /// What the object said last.
    state: Option<(RateState, ETag)>,
    /// The place of the last one that found nothing, and at which rate they come back.
    line: Option<(Rate, Place)>,
}

/// What can be said without asking the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtHand {
    /// The right to a request.
    Token(Token),
    /// There is none before this time.
    NothingBefore(Timestamp),
    /// The store must be asked.
    Unknown,
}

impl Rates {
    pub(super) fn of(&self, key: &str) -> Arc<Limited> {
        let mut limited = self.limited.lock();
        if let Some(known) = limited.get(key) {
            return Arc::clone(known);
        }
        if limited.len() >= LIMITED_KEPT_MAX {
            limited.retain(|_, known| Arc::strong_count(known) > 1);
        }
        let new = Arc::<Limited>::default();
        limited.insert(key.to_owned(), Arc::clone(&new));
        new
    }
}

impl Known {
    pub(super) fn at_hand(&mut self, rate: Rate, now: Timestamp) -> AtHand {
        let lease = self.lease.as_mut().filter(|lease| lease.is_of(rate));
        if let Some(token) = lease.and_then(|lease| lease.token(now)) {
            return AtHand::Token(token);
        }
        self.lease = None;
        let time = self.state.as_ref().and_then(|(state, _)| state.gives_nothing(now));
        time.map_or(AtHand::Unknown, AtHand::NothingBefore)
    }

    /// Gives away what the object said last. It counts as unknown until somebody says what it is now: an answer may be
    /// lost, or the one that asks be dropped.
    pub(super) fn take_state(&mut self) -> Option<(RateState, ETag)> {
        self.state.take()
    }

    /// Learns what the object says.
    pub(super) fn learn(&mut self, state: Option<(RateState, ETag)>) {
        self.state = state;
    }

    /// A lease that is had, and what the object says since.
    pub(super) fn lease(&mut self, lease: Lease, state: (RateState, ETag)) {
        self.lease = Some(lease);
        self.state = Some(state);
    }

    /// Nobody stands in line any more.
    pub(super) fn clear_line(&mut self) {
        self.line = None;
    }

    /// When a request that found nothing comes back.
    pub(super) fn line_up(&mut self, rate: Rate, nothing_before: Timestamp, now: Timestamp) -> Timestamp {
        let last = self.line.filter(|(of, _)| *of == rate).map(|(_, last)| last);
        let place = rate.line_up(last, nothing_before, now);
        self.line = Some((rate, place));
        // In whole seconds, as queues count, so that events of one message that come back together stay together.
        Timestamp::from_millis(place.due.as_millis().next_multiple_of(1000))
    }
}
