//! The counts of one process: messages settled, and how long they had waited.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::pressure::Drained;
use posthaste_ports::{DrainSource, PortError};

/// Counts what deliver settles. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct DrainMeter(Arc<Mutex<Counted>>);

/// The counts since the last reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// The messages that were settled.
    pub(super) messages: u64,
    /// The longest time that a message had been due before it was received.
    pub(super) waited_max: Duration,
    /// The time at which the first message was received, by the clock's `monotonic`.
    pub(super) began_at: Option<Duration>,
}

impl DrainMeter {
    /// Notes a message that was received at `at`, a time of the clock's `monotonic`, after it had
    /// been due for `waited`: the attempt that follows does not count.
    pub fn received(&self, waited: Duration, at: Duration) {
        let mut counted = self.0.lock();
        counted.waited_max = counted.waited_max.max(waited);
        counted.began_at = Some(counted.began_at.map_or(at, |began_at| began_at.min(at)));
    }

    /// Notes messages that were settled.
    pub fn settled(&self, messages: u64) {
        self.0.lock().messages += messages;
    }

    /// The longest wait noted since the last reading.
    pub(super) fn waited_max(&self) -> Duration {
        self.0.lock().waited_max
    }

    /// Reads the counts, and begins again from zero.
    pub(super) fn take(&self) -> Counted {
        mem::take(&mut self.0.lock())
    }
}

/// In one process the meter has all counts, and always answers.
impl DrainSource for DrainMeter {
    async fn drained(&self, _: u64, elapsed: Duration) -> Result<Option<Drained>, PortError> {
        let Counted {
            messages,
            waited_max,
            ..
        } = self.take();
        Ok(Some(Drained {
            messages,
            over: elapsed,
            waited_max,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_begins_the_count_anew() {
        let meter = DrainMeter::default();
        for (waited_ms, at_ms) in [(5, 20), (3, 10), (4, 30)] {
            meter.clone().received(
                Duration::from_millis(waited_ms),
                Duration::from_millis(at_ms),
            );
            meter.settled(1);
        }
        let [waited_max, began_at] = [5, 10].map(Duration::from_millis);
        assert_eq!(meter.waited_max(), waited_max);
        assert_eq!(
            meter.take(),
            Counted {
                messages: 3,
                waited_max,
                began_at: Some(began_at)
            }
        );
        assert_eq!(
            meter.take(),
            Counted {
                messages: 0,
                waited_max: Duration::ZERO,
                began_at: None
            }
        );
    }
}
