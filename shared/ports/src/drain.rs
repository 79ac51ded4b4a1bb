//! How fast deliveries leave the queue, measured by deliver itself and read by the monitor.
//!
//! Embedded both run in one process and share this meter. On AWS deliver's metrics take its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts what deliver settles. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct DrainMeter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    messages: AtomicU64,
    waited_max_ms: AtomicU64,
}

/// What was counted since the last reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Messages that were settled.
    pub messages: u64,
    /// The longest that a received one had been due (`now − notBefore`).
    pub waited_max: Duration,
}

impl DrainMeter {
    /// Notes a message that was received after it had been due for `waited`: the attempt that follows does not count.
    pub fn received(&self, waited: Duration) {
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        self.0.waited_max_ms.fetch_max(waited_ms, Ordering::Relaxed);
    }

    /// Notes messages that were settled.
    pub fn settled(&self, messages: u64) {
        self.0.messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// Reads the counts and begins anew.
    pub fn take(&self) -> Drained {
        Drained {
            messages: self.0.messages.swap(0, Ordering::Relaxed),
            waited_max: Duration::from_millis(self.0.waited_max_ms.swap(0, Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_begins_the_count_anew() {
        let meter = DrainMeter::default();
        for waited_ms in [5, 3] {
            meter.clone().received(Duration::from_millis(waited_ms));
            meter.settled(1);
        }
        assert_eq!(meter.take(), Drained { messages: 2, waited_max: Duration::from_millis(5) });
        assert_eq!(meter.take(), Drained::default());
    }
}
