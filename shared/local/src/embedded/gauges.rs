//! What the monitor reads of the embedded store: how much waits for its commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Messages that make one batch point.
const MESSAGES_PER_POINT: u64 = 40;

/// A message of more bytes counts as several.
const BYTES_PER_MESSAGE: usize = 64 * 1024;

/// What waits for its commit now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Calls of `send_batch`, `replace`, `put` and `delete` that wait for their commit.
    pub version_buckets: u64,
    /// Batches of up to 40 messages on their way into a commit; a message counts once per started 64 KiB.
    pub batch_points: u64,
}

/// The counters behind [`Gauges`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    calls: AtomicU64,
    messages: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> Gauges {
        Gauges {
            version_buckets: self.calls.load(Ordering::Relaxed),
            batch_points: self.messages.load(Ordering::Relaxed).div_ceil(MESSAGES_PER_POINT),
        }
    }

    /// Counts a call that writes bodies of these sizes until the answer is dropped, which a caller that gives up
    /// does too.
    pub(super) fn count(self: &Arc<Self>, sizes: impl Iterator<Item = usize>) -> Counted {
        let messages = sizes.map(|bytes| bytes.div_ceil(BYTES_PER_MESSAGE).max(1) as u64).sum();
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.messages.fetch_add(messages, Ordering::Relaxed);
        Counted { counters: self.clone(), messages }
    }
}

/// A call that is being counted.
#[derive(Debug)]
pub(super) struct Counted {
    counters: Arc<Counters>,
    messages: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counters.calls.fetch_sub(1, Ordering::Relaxed);
        self.counters.messages.fetch_sub(self.messages, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_message_counts_as_several_and_forty_make_a_point() {
        let counters = Arc::<Counters>::default();
        assert_eq!(counters.read(), Gauges { version_buckets: 0, batch_points: 0 });
        let small = counters.count([1, 1024, BYTES_PER_MESSAGE].into_iter());
        assert_eq!(counters.read(), Gauges { version_buckets: 1, batch_points: 1 });
        let large = counters.count([BYTES_PER_MESSAGE * 37 + 1].into_iter());
        assert_eq!(counters.read(), Gauges { version_buckets: 2, batch_points: 2 });
        drop(small);
        assert_eq!(counters.read(), Gauges { version_buckets: 1, batch_points: 1 });
        drop(large);
        assert_eq!(counters.read(), Gauges::default());
    }
}
