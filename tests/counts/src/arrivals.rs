//! The number of requests that an endpoint has answered.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use posthaste_tests::patience::PATIENCE;

/// A number that rises, and that another thread waits for.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    count: Mutex<u64>,
    rose: Condvar,
}

impl Arrivals {
    pub(crate) fn add_one(&self) {
        *self.lock() += 1;
        self.rose.notify_all();
    }

    pub(crate) fn count(&self) -> u64 {
        *self.lock()
    }

    /// Waits until it is at least `count`; panics when that takes longer than [`PATIENCE`].
    pub(crate) fn wait_for(&self, count: u64) {
        let waiting = self
            .rose
            .wait_timeout_while(self.lock(), PATIENCE, |it| *it < count);
        let (seen, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        let seen = *seen;
        assert!(
            seen >= count,
            "gave up waiting for {count} requests, of which {seen} came"
        );
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
