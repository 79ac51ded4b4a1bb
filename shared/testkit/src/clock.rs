//! A clock that a test moves by hand.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use posthaste_core::model::Timestamp;
use posthaste_core::model::time::whole_millis;
use posthaste_ports::Clock;

/// A clock that stands still until it is moved. Clones share it.
///
/// Sleepers are woken by [`advance`](Self::advance) in order of due time (those due at once: in the
/// order in which they fell asleep). A simulation runs its tasks until nothing moves, then calls
/// [`advance_to_next`](Self::advance_to_next).
#[derive(Debug, Clone)]
pub struct ManualClock {
    start: Timestamp,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    elapsed: Duration,
    /// The length by which the time of day was set back.
    behind: Duration,
    sleepers: BTreeMap<SleeperKey, Waker>,
    sleepers_ever: u64,
}

/// Due time first, then the order of falling asleep: iteration gives the order of waking.
type SleeperKey = (Duration, u64);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self {
            start,
            shared: Arc::default(),
        }
    }

    /// Sets the time of day back, as an operator or a time server does. Sleepers continue to sleep
    /// as long as they would have.
    pub fn set_back(&self, length: Duration) {
        self.lock().behind += length;
    }

    /// Moves the clock on and wakes each sleeper that is due by then.
    pub fn advance(&self, length: Duration) {
        let mut shared = self.lock();
        let target = shared.elapsed.saturating_add(length);
        let due = shared.move_to(target);
        // A waker may run code that reads this clock, so the lock is released first.
        drop(shared);
        due.into_iter().for_each(Waker::wake);
    }

    /// Moves the clock to `time` and wakes each sleeper that is due by then. Does nothing if that
    /// is not later than now.
    pub fn advance_to(&self, time: Timestamp) {
        let mut shared = self.lock();
        let target = shared.elapsed.max(time.since(self.start) + shared.behind);
        let due = shared.move_to(target);
        drop(shared);
        due.into_iter().for_each(Waker::wake);
    }

    /// The time at which the earliest sleeper is due, rounded up to what a `Timestamp` can tell;
    /// `None` without sleepers.
    pub fn next_due(&self) -> Option<Timestamp> {
        let shared = self.lock();
        let (due, _) = *shared.sleepers.first_key_value()?.0;
        let ms = due.as_nanos().div_ceil(1_000_000);
        Some(self.shown(
            Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX)),
            shared.behind,
        ))
    }

    /// Moves the clock to the earliest sleeper, wakes each that is due then, and returns the new
    /// time; `None` without sleepers.
    pub fn advance_to_next(&self) -> Option<Timestamp> {
        let due = self.next_due()?;
        self.advance_to(due);
        Some(due)
    }

    /// The number of sleepers.
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    fn shown(&self, elapsed: Duration, behind: Duration) -> Timestamp {
        let behind_ms = whole_millis(behind);
        Timestamp::from_millis((self.start + elapsed).as_millis().saturating_sub(behind_ms))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // No code panics while it holds the lock, and the state would be whole even then.
        self.shared.lock()
    }
}

impl Shared {
    fn move_to(&mut self, target: Duration) -> Vec<Waker> {
        self.elapsed = target;
        let mut due = Vec::new();
        while let Some(entry) = self.sleepers.first_entry() {
            if entry.key().0 > target {
                break;
            }
            due.push(entry.remove());
        }
        due
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let shared = self.lock();
        self.shown(shared.elapsed, shared.behind)
    }

    fn monotonic(&self) -> Duration {
        self.lock().elapsed
    }

    fn sleep(&self, length: Duration) -> impl Future<Output = ()> + Send {
        let mut shared = self.lock();
        shared.sleepers_ever += 1;
        let key = (shared.elapsed.saturating_add(length), shared.sleepers_ever);
        drop(shared);
        Sleep {
            clock: self.clone(),
            key,
        }
    }
}

/// A sleep on a [`ManualClock`]; registered from its first poll until it is due or dropped.
struct Sleep {
    clock: ManualClock,
    key: SleeperKey,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.clock.lock();
        if shared.elapsed >= self.key.0 {
            return Poll::Ready(());
        }
        shared.sleepers.insert(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.lock().sleepers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000_000);

    /// Tasks that note their number when they wake, in a runtime that runs only when told to.
    async fn woken(clock: &ManualClock, lengths_ms: &[u64], advance_ms: &[u64]) -> Vec<Vec<usize>> {
        let order = Arc::new(Mutex::new(Vec::new()));
        for (i, ms) in lengths_ms.iter().enumerate() {
            let clock = clock.clone();
            let order = order.clone();
            let length = Duration::from_millis(*ms);
            tokio::spawn(async move {
                clock.sleep(length).await;
                order.lock().push(i);
            });
        }
        tokio::task::yield_now().await;
        let mut seen = Vec::new();
        for ms in advance_ms {
            clock.advance(Duration::from_millis(*ms));
            tokio::task::yield_now().await;
            seen.push(std::mem::take(&mut *order.lock()));
        }
        seen
    }

    /// Sleepers wake in the order of their due time, and then of falling asleep.
    #[tokio::test]
    async fn sleepers_wake_by_due_time_then_by_start() {
        let clock = ManualClock::new(START);
        let seen = woken(&clock, &[30, 10, 20, 10, 0], &[0, 9, 1, 20]).await;
        assert_eq!(seen, [vec![4], vec![], vec![1, 3], vec![2, 0]]);
        assert_eq!(clock.sleepers(), 0);
    }

    #[tokio::test]
    async fn clones_share_the_time_and_it_never_goes_back() {
        let clock = ManualClock::new(START);
        clock.clone().advance(Duration::from_micros(1500));
        assert_eq!(clock.now(), Timestamp::from_millis(1_000_001));
        assert_eq!(clock.monotonic(), Duration::from_micros(1500));
        clock.advance_to(START);
        assert_eq!(clock.monotonic(), Duration::from_micros(1500));
    }

    #[tokio::test]
    async fn the_earliest_sleeper_can_be_asked_for_and_moved_to() {
        let clock = ManualClock::new(START);
        assert_eq!(clock.advance_to_next(), None);
        let _idle = woken(&clock, &[70_000, 5_000], &[]).await;
        assert_eq!(clock.next_due(), Some(START + Duration::from_secs(5)));
        assert_eq!(
            clock.advance_to_next(),
            Some(START + Duration::from_secs(5))
        );
        assert_eq!(
            clock.advance_to_next(),
            Some(START + Duration::from_secs(70))
        );
        assert_eq!(
            (clock.now(), clock.sleepers()),
            (START + Duration::from_secs(70), 0)
        );
    }

    #[tokio::test]
    async fn a_due_time_between_milliseconds_is_reached_by_moving_to_it() {
        let clock = ManualClock::new(START);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_micros(10)).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(
            clock.advance_to_next(),
            Some(Timestamp::from_millis(1_000_001))
        );
        sleeper.await.unwrap();
    }

    #[tokio::test]
    async fn a_dropped_sleep_is_forgotten() {
        let clock = ManualClock::new(START);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::MAX).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(clock.sleepers(), 1);
        sleeper.abort();
        assert!(sleeper.await.unwrap_err().is_cancelled());
        assert_eq!((clock.sleepers(), clock.next_due()), (0, None));
    }
}
