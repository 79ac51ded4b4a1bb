//! The endpoint: it works on one event at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use posthaste_tests::endpoint::Received;
use posthaste_tests::patience::rest;

/// Time that the endpoint needs for one event.
static WORK_MS: AtomicU64 = AtomicU64::new(0);
static TURN: Mutex<()> = Mutex::new(());
static ARRIVED: AtomicU64 = AtomicU64::new(0);

/// Sets how long it works on one event.
pub(crate) fn work_for(length: Duration) {
    WORK_MS.store(
        u64::try_from(length.as_millis()).unwrap_or(u64::MAX),
        Ordering::Relaxed,
    );
}

/// Takes an event, after those that came before it.
pub(crate) fn slow(_: &Received) -> u16 {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    rest(Duration::from_millis(WORK_MS.load(Ordering::Relaxed)));
    drop(turn);
    ARRIVED.fetch_add(1, Ordering::Relaxed);
    204
}

/// The number of events it took until now.
pub(crate) fn arrived() -> u64 {
    ARRIVED.load(Ordering::Relaxed)
}
