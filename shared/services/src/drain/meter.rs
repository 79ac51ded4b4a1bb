//! The counts of one process: messages settled, and how long they had waited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use posthaste_core::pressure::Drained;
use posthaste_ports::{DrainSource, PortError};

/// Counts what deliver settles. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct DrainMeter(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    messages: AtomicU64,
    waited_max_ms: AtomicU64,
    /// When the first message was received; [`NEVER`] before.
    began_at_ms: AtomicU64,
}

/// What was counted since the last reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// How many were settled.
    pub(super) messages: u64,
    /// The longest time that one had been due before it was received.
    pub(super) waited_max: Duration,
    /// When the first message was received, by the clock's `monotonic`.
    pub(super) began_at: Option<Duration>,
}

const NEVER: u64 = u64::MAX;

impl Default for Counts {
    fn default() -> Self {
        Self {
            messages: AtomicU64::new(0),
            waited_max_ms: AtomicU64::new(0),
            began_at_ms: AtomicU64::new(NEVER),
        }
    }
}

impl DrainMeter {
    /// Notes a message that was received at `at`, a time of the clock's `monotonic`, after it had been due
    /// for `waited`: the attempt that follows does not count.
    pub fn received(&self, waited: Duration, at: Duration) {
        self.0.waited_max_ms.fetch_max(whole_millis(waited), Ordering::Relaxed);
        self.0.began_at_ms.fetch_min(whole_millis(at), Ordering::Relaxed);
    }

    /// Notes messages that were settled.
    pub fn settled(&self, messages: u64) {
        self.0.messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// The longest wait noted since the last reading.
    pub(super) fn waited_max(&self) -> Duration {
        Duration::from_millis(self.0.waited_max_ms.load(Ordering::Relaxed))
    }

    /// Reads the counts and begins anew.
    pub(super) fn take(&self) -> Counted {
        let began_at_ms = self.0.began_at_ms.swap(NEVER, Ordering::Relaxed);
        Counted {
            messages: self.0.messages.swap(0, Ordering::Relaxed),
            waited_max: Duration::from_millis(self.0.waited_max_ms.swap(0, Ordering::Relaxed)),
            began_at: (began_at_ms != NEVER).then(|| Duration::from_millis(began_at_ms)),
        }
    }
}

/// In one process the meter knows it all, and always tells.
impl DrainSource for DrainMeter {
    async fn drained(&self, _: u64, elapsed: Duration) -> Result<Option<Drained>, PortError> {
        let Counted { messages, waited_max, .. } = self.take();
        Ok(Some(Drained { messages, over: elapsed, waited_max }))
    }
}

fn whole_millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_begins_the_count_anew() {
        let meter = DrainMeter::default();
        for (waited_ms, at_ms) in [(5, 20), (3, 10), (4, 30)] {
            meter.clone().received(Duration::from_millis(waited_ms), Duration::from_millis(at_ms));
            meter.settled(1);
        }
        let [waited_max, began_at] = [5, 10].map(Duration::from_millis);
        assert_eq!(meter.waited_max(), waited_max);
        assert_eq!(meter.take(), Counted { messages: 3, waited_max, began_at: Some(began_at) });
        assert_eq!(meter.take(), Counted { messages: 0, waited_max: Duration::ZERO, began_at: None });
    }
}
