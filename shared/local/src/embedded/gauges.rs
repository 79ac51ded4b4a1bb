//! Measurements of the embedded store for the monitor: how much published work waits for its
//! commit.
//!
//! Publishing is what is sent to the delivery queue, and the payloads stored for it. What deliver
//! writes (retries, dead letters) waits for commits as well, and is counted apart: one dead
//! subscriber must not slow its topic's producers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::pressure::BatchPointSettings;

/// Bytes of a place. A message takes as many places in its batch as it has begun blocks of this
/// size.
const PLACE_BYTES: usize = 64 * 1024;

/// Calls that wait for their commit now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitingCalls {
    /// Calls that publish and wait for their commit.
    pub version_buckets: u64,
    /// Batches of what they publish: one takes messages until it is full or old enough, and counts
    /// until all of them are committed. A large message takes several places, and may fill
    /// batches of its own.
    pub batch_points: u64,
    /// Calls of any kind that wait for their commit. Back pressure does not use this number.
    pub calls: u64,
}

/// The counters behind [`WaitingCalls`].
#[derive(Debug)]
pub(super) struct CallCounters {
    settings: BatchPointSettings,
    calls: AtomicU64,
    publishes: AtomicU64,
    batches: Mutex<PublishBatches>,
}

/// The batches with messages that wait, by number.
#[derive(Debug, Default)]
struct PublishBatches {
    waiting: BTreeMap<u64, u64>,
    last: u64,
    /// Places taken in the last one, whether committed or not.
    taken: u64,
    /// The start of the last one.
    since: Duration,
}

impl CallCounters {
    pub(super) fn new(settings: BatchPointSettings) -> Self {
        Self {
            settings,
            calls: AtomicU64::new(0),
            publishes: AtomicU64::new(0),
            batches: Mutex::default(),
        }
    }

    pub(super) fn read(&self) -> WaitingCalls {
        WaitingCalls {
            version_buckets: self.publishes.load(Ordering::Relaxed),
            batch_points: self.batches.lock().waiting.len() as u64,
            calls: self.calls.load(Ordering::Relaxed),
        }
    }

    /// Counts a call that publishes bodies of these sizes, until the returned guard is dropped. A
    /// caller that gives up drops it too. `now` is the monotonic time.
    pub(super) fn count_publish(
        self: &Arc<Self>,
        sizes: impl Iterator<Item = usize>,
        now: Duration,
    ) -> CountedCall {
        let places = sizes.map(|bytes| self.places_for(bytes)).sum();
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.publishes.fetch_add(1, Ordering::Relaxed);
        let batches = self.batches.lock().take_places(places, now, &self.settings);
        CountedCall {
            counters: self.clone(),
            batches: Some(batches),
        }
    }

    /// Counts a call that writes something else.
    pub(super) fn count_write(self: &Arc<Self>) -> CountedCall {
        self.calls.fetch_add(1, Ordering::Relaxed);
        CountedCall {
            counters: self.clone(),
            batches: None,
        }
    }

    fn places_for(&self, bytes: usize) -> u64 {
        if self.settings.uses_cost {
            bytes.div_ceil(PLACE_BYTES).max(1) as u64
        } else {
            1
        }
    }
}

impl PublishBatches {
    /// Puts places into batches, and returns how many went into which batch.
    fn take_places(
        &mut self,
        mut places: u64,
        now: Duration,
        settings: &BatchPointSettings,
    ) -> Vec<(u64, u64)> {
        // A batch without places would never be full.
        let size = u64::from(settings.batch_size.max(1));
        let is_old = now.saturating_sub(self.since) >= settings.batch_timeout;
        // A batch whose messages are all committed is over, however much room it had.
        if is_old || !self.waiting.contains_key(&self.last) {
            self.begin_batch(now);
        }
        let mut taken = Vec::with_capacity(1);
        while places > 0 {
            if self.taken == size {
                self.begin_batch(now);
            }
            let fits = places.min(size - self.taken);
            self.taken += fits;
            *self.waiting.entry(self.last).or_default() += fits;
            taken.push((self.last, fits));
            places -= fits;
        }
        taken
    }

    fn begin_batch(&mut self, now: Duration) {
        self.last += 1;
        self.taken = 0;
        self.since = now;
    }

    fn commit_places(&mut self, batch: u64, places: u64) {
        if let Some(waiting) = self.waiting.get_mut(&batch) {
            *waiting -= places;
            if *waiting == 0 {
                self.waiting.remove(&batch);
            }
        }
    }
}

/// A call that is being counted.
#[derive(Debug)]
pub(super) struct CountedCall {
    counters: Arc<CallCounters>,
    /// The places taken in each batch by a call that publishes.
    batches: Option<Vec<(u64, u64)>>,
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.counters.calls.fetch_sub(1, Ordering::Relaxed);
        let Some(taken) = self.batches.take() else {
            return;
        };
        self.counters.publishes.fetch_sub(1, Ordering::Relaxed);
        let mut batches = self.counters.batches.lock();
        for (batch, places) in taken {
            batches.commit_places(batch, places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: usize = 1024;
    const NOW: Duration = Duration::from_secs(7);

    fn counters(settings: BatchPointSettings) -> Arc<CallCounters> {
        Arc::new(CallCounters::new(settings))
    }

    fn messages(counters: &Arc<CallCounters>, count: usize, millis: u64) -> CountedCall {
        counters.count_publish(
            std::iter::repeat_n(SMALL, count),
            NOW + Duration::from_millis(millis),
        )
    }

    fn seen(counters: &CallCounters) -> (u64, u64, u64) {
        let WaitingCalls {
            version_buckets,
            batch_points,
            calls,
        } = counters.read();
        (version_buckets, batch_points, calls)
    }

    #[test]
    fn a_batch_takes_messages_of_several_calls_until_it_has_forty() {
        let counters = counters(BatchPointSettings::default());
        let calls = [39, 1, 1].map(|count| (messages(&counters, count, 0), seen(&counters).1));
        assert_eq!(calls.each_ref().map(|call| call.1), [1, 1, 2]);
        assert_eq!(seen(&counters), (3, 2, 3));
        drop(calls);
        assert_eq!(counters.read(), WaitingCalls::default());
    }

    #[test]
    fn a_batch_takes_messages_for_a_tenth_of_a_second() {
        let counters = counters(BatchPointSettings::default());
        let calls = [0, 99, 100, 199, 200].map(|millis| {
            let counted = messages(&counters, 1, millis);
            (counted, seen(&counters).1)
        });
        assert_eq!(calls.each_ref().map(|call| call.1), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_batch_counts_until_all_its_messages_are_committed() {
        let counters = counters(BatchPointSettings::default());
        let first = messages(&counters, 30, 0);
        let second = messages(&counters, 30, 0);
        assert_eq!(seen(&counters).1, 2);
        drop(first);
        // Ten of the second call's lie in the first batch.
        assert_eq!(seen(&counters).1, 2);
        let third = messages(&counters, 20, 0);
        assert_eq!(seen(&counters).1, 2);
        drop(second);
        assert_eq!(seen(&counters).1, 1);
        drop(third);
        assert_eq!(counters.read(), WaitingCalls::default());
    }

    #[test]
    fn a_large_message_counts_as_several_unless_it_is_told_not_to() {
        let check = |uses_cost, bytes, expected| {
            let counters = counters(BatchPointSettings {
                uses_cost,
                ..BatchPointSettings::default()
            });
            let _counted = counters.count_publish([bytes].into_iter(), NOW);
            assert_eq!(seen(&counters), (1, expected, 1), "{uses_cost} {bytes}");
        };
        check(true, 0, 1);
        check(true, 40 * PLACE_BYTES, 1);
        check(true, 40 * PLACE_BYTES + 1, 2);
        check(true, 81 * PLACE_BYTES, 3);
        check(false, 81 * PLACE_BYTES, 1);
    }

    #[test]
    fn the_size_and_the_age_of_a_batch_are_settings() {
        let settings = BatchPointSettings {
            batch_size: 2,
            batch_timeout: Duration::from_secs(1),
            ..BatchPointSettings::default()
        };
        let counters = counters(settings);
        let calls = [0, 999, 999, 1998, 1999].map(|millis| {
            let counted = messages(&counters, 1, millis);
            (counted, seen(&counters).1)
        });
        assert_eq!(calls.each_ref().map(|call| call.1), [1, 1, 2, 2, 3]);
    }

    /// Writes that publish nothing count as calls, and as no resource of back pressure.
    #[test]
    fn unpublished_writes_count_as_calls_only() {
        let counters = counters(BatchPointSettings::default());
        let written = counters.count_write();
        assert_eq!(seen(&counters), (0, 0, 1));
        drop(written);
        assert_eq!(counters.read(), WaitingCalls::default());
    }

    proptest! {
        #[test]
        fn whatever_comes_and_goes_in_the_end_nothing_counts(
            calls in prop::collection::vec((0..100_usize, 0..300_u64, any::<bool>()), 0..40),
        ) {
            let counters = counters(BatchPointSettings::default());
            let (mut waiting, mut millis) = (Vec::new(), 0);
            for (count, pause, ends) in calls {
                millis += pause;
                waiting.push((count, messages(&counters, count, millis)));
                if ends {
                    waiting.swap_remove(waiting.len() / 2);
                }
                let all: usize = waiting.iter().map(|(count, _)| count).sum();
                let (buckets, points, _) = seen(&counters);
                prop_assert_eq!(buckets, waiting.len() as u64);
                prop_assert!(points >= (all as u64).div_ceil(40), "{} batches of {} messages", points, all);
                prop_assert!(points <= all as u64);
            }
            drop(waiting);
            prop_assert_eq!(counters.read(), WaitingCalls::default());
        }
    }
}
