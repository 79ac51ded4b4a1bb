//! The state that was stored before this process began. A worker reads a part only for a target
//! that it suspects, and a worker that has just begun suspects none: it would send into a pause
//! that another worker, or it itself before a restart, was asked for. So it reads all parts once,
//! before its first request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::SingleFlight;

/// The reads of the state that was stored before.
#[derive(Debug, Default)]
pub(super) struct StartReads {
    is_known: AtomicBool,
    pub(super) reads: SingleFlight<()>,
    /// The last try, by the clock's `monotonic`.
    tried_at: Mutex<Option<Duration>>,
}

impl StartReads {
    /// All parts were read.
    pub(super) fn mark_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Whether it is time to try, this long after the last try, which is noted.
    pub(super) fn begin_try(&self, now: Duration, interval: Duration) -> bool {
        let mut tried_at = self.tried_at.lock();
        let is_due = tried_at.is_none_or(|at| now.saturating_sub(at) >= interval);
        if is_due {
            *tried_at = Some(now);
        }
        is_due
    }
}
