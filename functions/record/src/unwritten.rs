//! A gauge of how long the oldest record has waited that the store of the log refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_core::model::Timestamp;

/// The gauge. A message that is put off is fresh, so that the queue's own age of its oldest message
/// shows nothing.
#[derive(Debug, Default)]
pub(crate) struct OldestUnwritten {
    /// True while the gauge shows anything but zero.
    is_shown: AtomicBool,
}

impl OldestUnwritten {
    /// Sets the gauge, and once to zero when the trouble ends: CloudWatch bills each metric that is
    /// sent.
    pub(crate) fn set_gauge(&self, oldest: Option<Timestamp>, now: Timestamp) {
        if self.is_shown.swap(oldest.is_some(), Ordering::Relaxed) || oldest.is_some() {
            let age = oldest.map_or(Duration::ZERO, |oldest| now.since(oldest));
            metrics::gauge!("OldestUnwrittenRecordInSeconds").set(age.as_secs_f64());
        }
    }
}
