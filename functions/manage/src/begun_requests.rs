//! Requests that change something, as the process that answers them counts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::time::whole_millis;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most requests that change something at once, in one process. Each may have a body of 1 MiB, and
/// goes on when its client is gone.
const CHANGES_AT_ONCE_MAX: usize = 256;

/// The requests of a process that change something. They run to their end even if their clients are
/// gone or their time is over.
#[derive(Debug)]
pub struct BegunRequests {
    places: Arc<Semaphore>,
    /// The time of the last look at what other processes left, in milliseconds of the clock's
    /// `monotonic`.
    looked_at_ms: AtomicU64,
    /// Whether this process looks beside its answers, because it only runs while it answers.
    looks_beside_answers: bool,
    /// The places of looks at `validating/` and at `ending/`.
    pub(crate) handshakes_seen: LookPlace,
    pub(crate) endings_seen: LookPlace,
}

/// The key up to which the last look came, so that the next one begins with those that it had no
/// time for.
#[derive(Debug, Default)]
pub(crate) struct LookPlace(Mutex<Option<String>>);

impl LookPlace {
    /// The key after which a look begins; `None` for the first one.
    pub(crate) fn start_key(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Notes that this key had its turn.
    pub(crate) fn set_last_key(&self, key: &str) {
        *self.0.lock() = Some(key.to_owned());
    }
}

impl Default for BegunRequests {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(CHANGES_AT_ONCE_MAX)),
            looked_at_ms: AtomicU64::default(),
            looks_beside_answers: false,
            handshakes_seen: LookPlace::default(),
            endings_seen: LookPlace::default(),
        }
    }
}

impl BegunRequests {
    /// The requests of a process that only runs while it answers: beside its answers it finishes
    /// what other processes left.
    pub fn looking_beside_answers() -> Self {
        Self {
            looks_beside_answers: true,
            ..Self::default()
        }
    }

    /// A place for one more; `None` if there are as many as may be.
    pub(crate) fn try_begin(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Whether the last look beside an answer is so long ago; then the caller is to look, and nobody
    /// else.
    pub(crate) fn is_look_due(&self, now: Duration, period: Duration) -> bool {
        let now_ms = whole_millis(now);
        let last = self.looked_at_ms.load(Ordering::Relaxed);
        let is_due = last == 0 || now_ms.saturating_sub(last) >= whole_millis(period);
        self.looks_beside_answers
            && is_due
            && self
                .looked_at_ms
                .compare_exchange(last, now_ms.max(1), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_is_due_once_in_a_period() {
        let requests = BegunRequests::looking_beside_answers();
        let is_due =
            |secs| requests.is_look_due(Duration::from_secs(secs), Duration::from_secs(30));
        assert_eq!(
            [1, 1, 30, 31, 32, 61].map(is_due),
            [true, false, false, true, false, true]
        );
        let others = BegunRequests::default();
        assert!(!others.is_look_due(Duration::from_secs(1), Duration::from_secs(30)));
    }

    #[test]
    fn changes_at_once_are_bounded() {
        let requests = BegunRequests::default();
        let mut places: Vec<_> = (0..CHANGES_AT_ONCE_MAX)
            .map(|_| requests.try_begin().unwrap())
            .collect();
        assert!(requests.try_begin().is_none());
        places.pop();
        assert!(requests.try_begin().is_some());
    }
}
