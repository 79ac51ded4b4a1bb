//! The limit of one link. A quarter of its slots is kept for subscriptions that have no request
//! open, so that one hanging endpoint cannot take all of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::circuit::Target;
use tokio::sync::oneshot;

/// The share of slots that is kept for subscriptions that have none: one in four, 16 of 64.
const KEPT_ONE_IN: usize = 4;

/// Most slots that one subscription may have, of a link's `max`.
pub(crate) fn subscription_max(max: usize) -> usize {
    (max - max / KEPT_ONE_IN).max(1)
}

/// The limit of one link.
#[derive(Debug)]
pub(super) struct LinkLimit {
    max: usize,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// Open requests in all.
    taken: usize,
    /// Subscriptions with open or waiting requests.
    queues: BTreeMap<Target, Queue>,
    /// Subscriptions with waiting requests; the one that is served next comes first.
    ranked: BTreeMap<Rank, Target>,
    waited_ever: u64,
}

/// The requests of one subscription.
#[derive(Debug, Default)]
struct Queue {
    open: usize,
    /// Waiting requests, in the order in which they came.
    waiting: VecDeque<Waiter>,
}

/// The open requests of a subscription, and when the first that waits came, which no two have in
/// common.
type Rank = (usize, u64);

/// A request that waits for a slot.
#[derive(Debug)]
struct Waiter {
    came: u64,
    slot: oneshot::Sender<LinkSlot>,
}

/// The right to one request to a link. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct LinkSlot {
    limit: Arc<LinkLimit>,
    target: Target,
}

impl LinkLimit {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            slots: Mutex::default(),
        }
    }

    /// Waits for a slot.
    pub(super) async fn enter(self: Arc<Self>, target: &Target) -> Option<LinkSlot> {
        let slot = {
            let mut slots = self.slots.lock();
            if slots.may_enter(target, self.max) {
                return Some(self.take(&mut slots, target));
            }
            slots.wait(target)
        };
        slot.await.ok()
    }

    /// A free slot, if there is one.
    pub(super) fn try_enter(self: &Arc<Self>, target: &Target) -> Option<LinkSlot> {
        let mut slots = self.slots.lock();
        slots
            .may_enter(target, self.max)
            .then(|| self.take(&mut slots, target))
    }

    fn take(self: &Arc<Self>, slots: &mut Slots, target: &Target) -> LinkSlot {
        slots.taken += 1;
        slots.change(target, |queue| queue.open += 1);
        self.slot(target.clone())
    }

    /// A slot that is counted as taken.
    fn slot(self: &Arc<Self>, target: Target) -> LinkSlot {
        LinkSlot {
            limit: Arc::clone(self),
            target,
        }
    }

    /// Gives a slot back, and hands free ones to waiting requests.
    fn give_back(self: &Arc<Self>, target: &Target) {
        let mut slots = self.slots.lock();
        slots.taken -= 1;
        slots.change(target, |queue| queue.open -= 1);
        let mut given = Vec::new();
        while let Some((next, waiter)) = slots.next(self.max) {
            given.push((waiter, self.slot(next)));
        }
        drop(slots);
        // A waiter that has gone drops its slot, which is given back in turn.
        for (waiter, slot) in given {
            drop(waiter.slot.send(slot));
        }
    }
}

impl Slots {
    /// Whether a subscription with `open` open requests may have one more.
    fn has_room(&self, open: usize, max: usize) -> bool {
        self.taken
            < if open == 0 {
                max
            } else {
                subscription_max(max)
            }
    }

    /// Whether a new request may open at once. Requests of its subscription that already wait come
    /// before it.
    fn may_enter(&self, target: &Target, max: usize) -> bool {
        let queue = self.queues.get(target);
        queue.is_none_or(|queue| queue.waiting.is_empty())
            && self.has_room(queue.map_or(0, |it| it.open), max)
    }

    fn wait(&mut self, target: &Target) -> oneshot::Receiver<LinkSlot> {
        let (slot, given) = oneshot::channel();
        self.waited_ever += 1;
        let waiter = Waiter {
            came: self.waited_ever,
            slot,
        };
        self.change(target, |queue| queue.waiting.push_back(waiter));
        given
    }

    /// Opens the waiting request that is served next, if it may be. Its subscription is the one
    /// with the fewest open requests, and among equals the one that has waited longest.
    /// Requests that have given up are removed when they come to the front, so that no search
    /// over all queues is needed.
    fn next(&mut self, max: usize) -> Option<(Target, Waiter)> {
        loop {
            let ((open, _), target) = self.ranked.first_key_value()?;
            if !self.has_room(*open, max) {
                return None;
            }
            let target = target.clone();
            let waiter = self.change(&target, |queue| {
                let waiter = queue
                    .waiting
                    .pop_front()
                    .filter(|waiter| !waiter.slot.is_closed());
                queue.open += usize::from(waiter.is_some());
                waiter
            });
            if let Some(waiter) = waiter {
                self.taken += 1;
                return Some((target, waiter));
            }
        }
    }

    /// Changes a subscription's requests, and ranks it again.
    fn change<T>(&mut self, target: &Target, change: impl FnOnce(&mut Queue) -> T) -> T {
        let queue = self.queues.entry(target.clone()).or_default();
        let before = queue.rank();
        let changed = change(queue);
        let after = queue.rank();
        if queue.open == 0 && queue.waiting.is_empty() {
            self.queues.remove(target);
        }
        if before != after {
            let known = before.and_then(|rank| self.ranked.remove(&rank));
            let target = || known.unwrap_or_else(|| target.clone());
            self.ranked.extend(after.map(|rank| (rank, target())));
        }
        changed
    }
}

impl Queue {
    /// The rank of the subscription; `None` if it has no waiting request.
    fn rank(&self) -> Option<Rank> {
        Some((self.open, self.waiting.front()?.came))
    }
}

impl Drop for LinkSlot {
    fn drop(&mut self) {
        self.limit.give_back(&self.target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_ports::Entropy;
    use posthaste_testkit::SeededEntropy;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    const MAX: usize = 64;

    /// A request that waits for its slot.
    type Waiting = Pin<Box<dyn Future<Output = Option<LinkSlot>>>>;

    /// Requests to one link.
    struct Requests {
        limit: Arc<LinkLimit>,
        open: Vec<(usize, LinkSlot)>,
        waiting: Vec<(usize, Waiting)>,
    }

    fn target(index: usize) -> Target {
        Target::parse(&format!("https://a.example:443 orders.s{index}")).unwrap()
    }

    impl Requests {
        fn new() -> Self {
            Self {
                limit: Arc::new(LinkLimit::new(MAX)),
                open: Vec::new(),
                waiting: Vec::new(),
            }
        }

        /// Adds requests of a subscription.
        fn come(&mut self, index: usize, count: usize) {
            for _ in 0..count {
                let (limit, target) = (Arc::clone(&self.limit), target(index));
                self.waiting
                    .push((index, Box::pin(async move { limit.enter(&target).await })));
            }
            self.look();
        }

        /// The request of a subscription that was opened first ends.
        fn finish(&mut self, index: usize) {
            if let Some(at) = self.open.iter().position(|(own, _)| *own == index) {
                drop(self.open.remove(at));
            }
            self.look();
        }

        fn look(&mut self) {
            let mut cx = Context::from_waker(Waker::noop());
            let open = &mut self.open;
            self.waiting
                .retain_mut(|(index, one)| match one.as_mut().poll(&mut cx) {
                    Poll::Ready(slot) => {
                        open.extend(slot.map(|slot| (*index, slot)));
                        false
                    }
                    Poll::Pending => true,
                });
        }

        fn open(&self, index: usize) -> usize {
            self.open.iter().filter(|(own, _)| *own == index).count()
        }

        /// The ranks are those of the queues, and no waiting request could be open.
        fn check(&self) {
            let slots = self.limit.slots.lock();
            let ranks = slots
                .queues
                .iter()
                .filter_map(|(target, queue)| Some((queue.rank()?, target.clone())));
            assert_eq!(slots.ranked, ranks.collect());
            assert!(
                slots
                    .ranked
                    .keys()
                    .all(|(open, _)| !slots.has_room(*open, MAX))
            );
            assert_eq!(
                slots.taken,
                slots.queues.values().map(|queue| queue.open).sum::<usize>()
            );
        }
    }

    #[test]
    fn a_quarter_of_the_slots_is_kept() {
        assert_eq!(
            [64, 16, 4, 3, 1, 0].map(subscription_max),
            [48, 12, 3, 3, 1, 1]
        );
    }

    #[test]
    fn a_hanging_endpoint_leaves_sixteen_slots_to_subscriptions_with_none() {
        let mut queue = Requests::new();
        queue.come(0, 100);
        assert_eq!(queue.open(0), 48);
        for newcomer in 1..=16 {
            queue.come(newcomer, 2);
            assert_eq!(queue.open(newcomer), 1, "{newcomer}");
        }
        queue.come(17, 1);
        assert_eq!((queue.open.len(), queue.open(17)), (MAX, 0));
        // The next slot is for the one that has none, however long others have waited.
        queue.finish(0);
        assert_eq!((queue.open(0), queue.open(17)), (47, 1));
    }

    #[test]
    fn free_slots_go_to_the_subscription_with_the_fewest() {
        let mut queue = Requests::new();
        queue.come(0, 100);
        queue.come(1, 100);
        assert_eq!((queue.open(0), queue.open(1)), (48, 1));
        for _ in 0..25 {
            queue.finish(0);
        }
        assert_eq!((queue.open(0), queue.open(1)), (24, 24));
    }

    #[test]
    fn a_request_that_gives_up_waiting_takes_no_slot() {
        let mut queue = Requests::new();
        queue.come(0, 60);
        queue.waiting.clear();
        queue.come(1, 1);
        queue.open.clear();
        queue.look();
        assert_eq!((queue.open.len(), queue.limit.slots.lock().taken), (0, 0));
        assert!(queue.limit.slots.lock().queues.is_empty());
        queue.check();
    }

    #[test]
    fn ranks_are_those_of_the_queues_after_any_operation() {
        for seed in 0..30 {
            let (mut queue, chance) = (Requests::new(), SeededEntropy::new(seed));
            let below = |n: u8| usize::from(chance.uuid().as_bytes()[0] % n);
            for _ in 0..100 {
                match below(4) {
                    0 | 1 => queue.come(below(90), below(20)),
                    2 => (0..below(20)).for_each(|_| queue.finish(below(90))),
                    // Some give up.
                    _ => queue.waiting.truncate(below(200)),
                }
                queue.check();
            }
        }
    }

    /// Up to sixteen subscriptions hang with long queues, and their requests end in any order.
    #[test]
    fn a_newcomer_never_waits_beside_sixteen_that_hang() {
        for seed in 0..30 {
            let (mut queue, chance) = (Requests::new(), SeededEntropy::new(seed));
            let below = |n: u8| usize::from(chance.uuid().as_bytes()[0] % n);
            for _ in 0..200 {
                let (index, count) = (below(16), below(20));
                if below(2) == 0 {
                    queue.come(index, count);
                } else {
                    (0..count).for_each(|_| queue.finish(index));
                }
                assert!(queue.open.len() < MAX);
                assert_eq!(queue.limit.slots.lock().taken, queue.open.len());
                // No waiting request could be open.
                assert!(queue.waiting.is_empty() || queue.open.len() >= subscription_max(MAX));
                queue.come(99, 1);
                assert_eq!(queue.open(99), 1);
                queue.finish(99);
            }
        }
    }
}
