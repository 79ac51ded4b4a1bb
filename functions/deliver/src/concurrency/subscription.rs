//! The limit of one subscription on a link: it grows with the requests that wait.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of requests of one subscription that are open at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConcurrencyBound {
    start: usize,
    waiting_per_slot: usize,
    max: usize,
}

impl ConcurrencyBound {
    /// A number that grows: `start`, and one more for each `waiting_per_slot` requests that wait,
    /// up to `max`.
    pub(crate) fn new(start: usize, waiting_per_slot: usize, max: usize) -> Self {
        let max = max.max(1);
        Self {
            start: start.clamp(1, max),
            waiting_per_slot: waiting_per_slot.max(1),
            max,
        }
    }

    /// A number that does not grow with the requests that wait.
    pub(crate) fn fixed(max: usize) -> Self {
        Self::new(max, 1, max)
    }

    fn at_once(self, waiting: usize) -> usize {
        self.start
            .saturating_add(waiting / self.waiting_per_slot)
            .min(self.max)
    }
}

/// The limit of one subscription. Requests enter in the order in which they came.
#[derive(Debug)]
pub(super) struct SubscriptionLimit {
    bound: ConcurrencyBound,
    /// The free slots.
    free: Arc<Semaphore>,
    count: Mutex<SlotCount>,
}

#[derive(Debug)]
struct SlotCount {
    waiting: usize,
    /// All slots, free ones and taken ones.
    slots: usize,
}

/// The right to one request. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct SubscriptionSlot {
    limit: Arc<SubscriptionLimit>,
    permit: Option<OwnedSemaphorePermit>,
}

/// A waiting request, counted until this is dropped.
struct SlotWaitGuard<'a>(&'a SubscriptionLimit);

impl SubscriptionLimit {
    pub(super) fn new(bound: ConcurrencyBound) -> Self {
        let slots = bound.at_once(0);
        let free = Arc::new(Semaphore::new(slots));
        Self {
            bound,
            free,
            count: Mutex::new(SlotCount { waiting: 0, slots }),
        }
    }

    /// Waits for a slot.
    pub(super) async fn wait_for_slot(self: Arc<Self>) -> Option<SubscriptionSlot> {
        if let Some(slot) = self.try_enter() {
            return Some(slot);
        }
        let _waiting = SlotWaitGuard::begin(&self);
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(SubscriptionSlot {
            limit: Arc::clone(&self),
            permit: Some(permit),
        })
    }

    /// A free slot, if there is one.
    pub(super) fn try_enter(self: &Arc<Self>) -> Option<SubscriptionSlot> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(SubscriptionSlot {
            limit: Arc::clone(self),
            permit: Some(permit),
        })
    }

    /// The number of slots there should be. Slots that were added for waiting requests stay until
    /// no request waits: removing them sooner would slow the end of every queue.
    fn wanted_slots(&self, count: &SlotCount) -> usize {
        let wanted = self.bound.at_once(count.waiting);
        if count.waiting > 0 {
            wanted.max(count.slots)
        } else {
            wanted
        }
    }
}

impl<'a> SlotWaitGuard<'a> {
    fn begin(limit: &'a SubscriptionLimit) -> Self {
        let mut count = limit.count.lock();
        count.waiting += 1;
        let more = limit.wanted_slots(&count).saturating_sub(count.slots);
        count.slots += more;
        limit.free.add_permits(more);
        Self(limit)
    }
}

impl Drop for SlotWaitGuard<'_> {
    fn drop(&mut self) {
        self.0.count.lock().waiting -= 1;
    }
}

impl Drop for SubscriptionSlot {
    /// Removes the slot where there are more than wanted, and free ones with it.
    fn drop(&mut self) {
        let mut count = self.limit.count.lock();
        let surplus = count.slots.saturating_sub(self.limit.wanted_slots(&count));
        if surplus > 0
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            count.slots -= 1 + self.limit.free.forget_permits(surplus - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    /// Requests of one subscription: those that have a slot, and those that wait, in order.
    struct Requests {
        limit: Arc<SubscriptionLimit>,
        open: Vec<SubscriptionSlot>,
        waiting: Vec<Pin<Box<dyn Future<Output = Option<SubscriptionSlot>>>>>,
    }

    impl Requests {
        fn new(bound: ConcurrencyBound) -> Self {
            Self {
                limit: Arc::new(SubscriptionLimit::new(bound)),
                open: Vec::new(),
                waiting: Vec::new(),
            }
        }

        fn come(&mut self, count: usize) {
            self.waiting.extend(
                (0..count)
                    .map(|_| Box::pin(Arc::clone(&self.limit).wait_for_slot()) as Pin<Box<_>>),
            );
            self.look();
        }

        /// Ends open requests, the oldest first.
        fn finish(&mut self, count: usize) {
            self.open.drain(..count);
            self.look();
        }

        fn look(&mut self) {
            let mut cx = Context::from_waker(Waker::noop());
            // Twice: one that comes late may add a slot for one that came early.
            for _ in 0..2 {
                self.waiting
                    .retain_mut(|one| match one.as_mut().poll(&mut cx) {
                        Poll::Ready(slot) => {
                            self.open.extend(slot);
                            false
                        }
                        Poll::Pending => true,
                    });
            }
        }

        fn check(&self, open: usize, waiting: usize) {
            assert_eq!((self.open.len(), self.waiting.len()), (open, waiting));
            assert_eq!(self.limit.count.lock().waiting, waiting);
        }

        fn slots(&self) -> usize {
            let slots = self.limit.count.lock().slots;
            assert_eq!(slots, self.open.len() + self.limit.free.available_permits());
            slots
        }
    }

    /// One more request is open for every twenty that wait, up to the bound.
    #[test]
    fn limit_grows_by_one_for_every_twenty_waiting() {
        let check = |waiting, expected| {
            assert_eq!(ConcurrencyBound::new(10, 20, 64).at_once(waiting), expected);
        };
        check(0, 10);
        check(19, 10);
        check(20, 11);
        check(199, 19);
        check(1080, 64);
        check(usize::MAX, 64);
        assert_eq!(ConcurrencyBound::new(10, 20, 4).at_once(1000), 4);
        assert_eq!(ConcurrencyBound::new(0, 0, 0).at_once(1000), 1);
        assert_eq!(ConcurrencyBound::fixed(7).at_once(0), 7);
        assert_eq!(ConcurrencyBound::fixed(7).at_once(1000), 7);
    }

    #[test]
    fn waiting_requests_add_slots_that_stay_while_any_waits() {
        let mut requests = Requests::new(ConcurrencyBound::new(2, 5, 4));
        requests.come(2);
        requests.check(2, 0);
        requests.come(4);
        requests.check(2, 4);
        // The fifth that waits adds a slot.
        requests.come(1);
        requests.check(3, 4);
        requests.come(100);
        requests.check(4, 103);
        requests.finish(4);
        requests.check(4, 99);
        for _ in 0..24 {
            requests.finish(4);
        }
        requests.check(4, 3);
        assert_eq!(requests.slots(), 4);
        requests.finish(3);
        requests.check(4, 0);
        // None waits: the slots that were added are removed.
        requests.finish(2);
        assert_eq!((requests.open.len(), requests.slots()), (2, 2));
        requests.finish(2);
        assert_eq!(requests.slots(), 2);
        requests.come(3);
        requests.check(2, 1);
    }

    #[test]
    fn a_request_that_gives_up_waiting_is_not_counted_any_more() {
        let mut requests = Requests::new(ConcurrencyBound::new(1, 2, 9));
        requests.come(6);
        requests.check(3, 3);
        requests.waiting.clear();
        requests.check(3, 0);
        requests.finish(1);
        assert_eq!(requests.slots(), 2);
        requests.finish(2);
        assert_eq!(requests.slots(), 1);
        requests.come(2);
        requests.check(1, 1);
    }

    #[test]
    fn free_slots_go_with_the_next_that_is_given_back() {
        let mut requests = Requests::new(ConcurrencyBound::new(1, 1, 8));
        requests.come(20);
        requests.check(8, 12);
        // Handed on to a waiting request, which gives up before it takes it.
        requests.open.truncate(7);
        requests.waiting.clear();
        assert_eq!((requests.open.len(), requests.slots()), (7, 8));
        requests.finish(1);
        assert_eq!((requests.open.len(), requests.slots()), (6, 6));
    }
}
