//! What was stored before this process began. A worker reads a part only for a target that it
//! suspects, and one that has just begun suspects none: it would send into a pause that another
//! worker, or it itself before a restart, was asked for. So it reads all parts once, before its
//! first request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::{LINKS_MAX_AGE, LinkHealth};
use crate::SingleFlight;
use posthaste_ports::{Clock, ObjectStore};

/// The reads of what was stored before.
#[derive(Debug, Default)]
pub(super) struct Start {
    is_known: AtomicBool,
    reads: SingleFlight<()>,
    /// The last try, by the clock's `monotonic`.
    tried_at: Mutex<Option<Duration>>,
}

impl Start {
    /// All parts were read.
    pub(super) fn known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Whether it is time to try, which is noted.
    fn begin_try(&self, now: Duration) -> bool {
        let mut tried_at = self.tried_at.lock();
        let is_due = tried_at.is_none_or(|at| now.saturating_sub(at) >= LINKS_MAX_AGE);
        if is_due {
            *tried_at = Some(now);
        }
        is_due
    }
}

impl<S: ObjectStore, C: Clock> LinkHealth<S, C> {
    /// Whether all parts were read since this process began.
    pub fn is_start_known(&self) -> bool {
        self.shared.start.is_known.load(Ordering::Relaxed)
    }

    /// Reads all parts if that has not succeeded yet, once for all callers that need it. If it
    /// fails, a later call tries again, and what is not known counts as healthy.
    pub async fn know_start(&self) {
        let start = &self.shared.start;
        let read = || async {
            if self.is_start_known() || !start.begin_try(self.clock.monotonic()) {
                return;
            }
            if let Err(error) = self.all().await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "states of links not read at the start, they count as healthy"
                );
            }
        };
        start.reads.run("start", read).await;
    }
}
