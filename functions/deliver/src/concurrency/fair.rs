//! A limit that several share: the subscriptions of a link, or the links of all. A quarter of its
//! slots is kept for those that have no request open, so that one hanging endpoint cannot take all
//! of them, and a free slot goes to the one that has had none for longest.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The share of slots that is kept for sharers that have none: one in four, 16 of 64.
const KEPT_ONE_IN: usize = 4;

/// Most slots that one sharer may have, of `max`.
pub(crate) fn sharer_max(max: usize) -> usize {
    (max - max / KEPT_ONE_IN).max(1)
}

/// A key of those that share a limit.
pub(super) trait SharerKey: Clone + Eq + Hash {}

impl<K: Clone + Eq + Hash> SharerKey for K {}

/// A limit that several share, each by its key.
#[derive(Debug)]
pub(super) struct FairLimit<K: SharerKey> {
    max: usize,
    slots: Mutex<FairSlots<K>>,
}

#[derive(Debug)]
struct FairSlots<K: SharerKey> {
    /// Open requests in all.
    taken: usize,
    /// Sharers with open or waiting requests.
    queues: HashMap<K, SharerQueue<K>>,
    /// Sharers with waiting requests; the one that is served next comes first.
    ranked: BTreeMap<SharerRank, K>,
    /// Requests that were opened or began to wait.
    turns: u64,
}

/// The requests of one sharer.
#[derive(Debug)]
struct SharerQueue<K: SharerKey> {
    open: usize,
    /// The turn in which it had a slot last, or began to wait for its first.
    served: u64,
    /// Waiting requests, in the order in which they came.
    waiting: VecDeque<SlotWaiter<K>>,
}

/// The place of a sharer among those that wait: one with fewer open requests comes first, then the
/// one that has had no slot for longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SharerRank {
    open: usize,
    served: u64,
    /// No two have it in common.
    came: u64,
}

/// A request that waits for a slot.
#[derive(Debug)]
struct SlotWaiter<K: SharerKey> {
    came: u64,
    slot: oneshot::Sender<FairSlot<K>>,
}

/// The right to one request. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct FairSlot<K: SharerKey> {
    limit: Arc<FairLimit<K>>,
    sharer: K,
}

impl<K: SharerKey> FairLimit<K> {
    pub(super) fn new(max: usize) -> Self {
        let slots = FairSlots {
            taken: 0,
            queues: HashMap::new(),
            ranked: BTreeMap::new(),
            turns: 0,
        };
        Self {
            max: max.max(1),
            slots: Mutex::new(slots),
        }
    }

    /// Waits for a slot.
    pub(super) async fn wait_for_slot(self: Arc<Self>, sharer: &K) -> Option<FairSlot<K>> {
        let slot = {
            let mut slots = self.slots.lock();
            if slots.may_enter(sharer, self.max) {
                return Some(self.take_slot(&mut slots, sharer));
            }
            slots.add_waiter(sharer)
        };
        slot.await.ok()
    }

    /// The number of open requests.
    pub(super) fn open_requests(&self) -> usize {
        self.slots.lock().taken
    }

    /// Whether no slot is free, not even one that is kept.
    pub(super) fn is_full(&self) -> bool {
        self.slots.lock().taken >= self.max
    }

    /// A free slot, if there is one.
    pub(super) fn try_enter(self: &Arc<Self>, sharer: &K) -> Option<FairSlot<K>> {
        let mut slots = self.slots.lock();
        slots
            .may_enter(sharer, self.max)
            .then(|| self.take_slot(&mut slots, sharer))
    }

    fn take_slot(self: &Arc<Self>, slots: &mut FairSlots<K>, sharer: &K) -> FairSlot<K> {
        slots.taken += 1;
        let turn = slots.next_turn();
        slots.change_queue(sharer, |queue| queue.open_request(turn));
        self.taken_slot(sharer.clone())
    }

    /// A slot that is counted as taken.
    fn taken_slot(self: &Arc<Self>, sharer: K) -> FairSlot<K> {
        FairSlot {
            limit: Arc::clone(self),
            sharer,
        }
    }

    /// Gives a slot back, and hands free ones to waiting requests.
    fn give_back(self: &Arc<Self>, sharer: &K) {
        let mut slots = self.slots.lock();
        slots.taken -= 1;
        let turn = slots.next_turn();
        slots.change_queue(sharer, |queue| queue.close_request(turn));
        let mut given = Vec::new();
        while let Some((next, waiter)) = slots.next(self.max) {
            given.push((waiter, self.taken_slot(next)));
        }
        drop(slots);
        // A waiter that has gone drops its slot, which is given back in turn.
        for (waiter, slot) in given {
            drop(waiter.slot.send(slot));
        }
    }
}

impl<K: SharerKey> FairSlots<K> {
    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Whether a sharer with `open` open requests may have one more.
    fn has_room(&self, open: usize, max: usize) -> bool {
        self.taken < if open == 0 { max } else { sharer_max(max) }
    }

    /// Whether a new request may open at once. Requests of its sharer that already wait come
    /// before it.
    fn may_enter(&self, sharer: &K, max: usize) -> bool {
        let queue = self.queues.get(sharer);
        queue.is_none_or(|queue| queue.waiting.is_empty())
            && self.has_room(queue.map_or(0, |it| it.open), max)
    }

    fn add_waiter(&mut self, sharer: &K) -> oneshot::Receiver<FairSlot<K>> {
        let (slot, given) = oneshot::channel();
        let came = self.next_turn();
        let waiter = SlotWaiter { came, slot };
        self.change_queue(sharer, |queue| queue.push_waiter(waiter));
        given
    }

    /// Opens the waiting request that is served next, if it may be. Requests that have given up are removed when they come to
    /// the front, so that no search over all queues is needed.
    fn next(&mut self, max: usize) -> Option<(K, SlotWaiter<K>)> {
        loop {
            let (rank, sharer) = self.ranked.first_key_value()?;
            if !self.has_room(rank.open, max) {
                return None;
            }
            let sharer = sharer.clone();
            let turn = self.next_turn();
            let waiter = self.change_queue(&sharer, |queue| {
                let waiter = queue
                    .waiting
                    .pop_front()
                    .filter(|waiter| !waiter.slot.is_closed());
                if waiter.is_some() {
                    queue.open_request(turn);
                }
                waiter
            });
            if let Some(waiter) = waiter {
                self.taken += 1;
                return Some((sharer, waiter));
            }
        }
    }

    /// Changes a sharer's requests, and ranks it again.
    fn change_queue<T>(&mut self, sharer: &K, change: impl FnOnce(&mut SharerQueue<K>) -> T) -> T {
        let queue = self
            .queues
            .entry(sharer.clone())
            .or_insert_with(SharerQueue::new);
        let before = queue.rank();
        let changed = change(queue);
        let after = queue.rank();
        if queue.open == 0 && queue.waiting.is_empty() {
            self.queues.remove(sharer);
        }
        if before != after {
            let known = before.and_then(|rank| self.ranked.remove(&rank));
            if let Some(rank) = after {
                let sharer = known.unwrap_or_else(|| sharer.clone());
                self.ranked.insert(rank, sharer);
            }
        }
        changed
    }
}

impl<K: SharerKey> SharerQueue<K> {
    fn new() -> Self {
        Self {
            open: 0,
            served: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Opens a request in this turn.
    fn open_request(&mut self, turn: u64) {
        self.open += 1;
        self.served = turn;
    }

    /// Ends an open request in this turn.
    fn close_request(&mut self, turn: u64) {
        self.open -= 1;
        self.served = turn;
    }

    fn push_waiter(&mut self, waiter: SlotWaiter<K>) {
        if self.open == 0 && self.waiting.is_empty() {
            self.served = waiter.came;
        }
        self.waiting.push_back(waiter);
    }

    /// The rank of the sharer; `None` if it has no waiting request.
    fn rank(&self) -> Option<SharerRank> {
        let came = self.waiting.front()?.came;
        Some(SharerRank {
            open: self.open,
            served: self.served,
            came,
        })
    }
}

impl<K: SharerKey> Drop for FairSlot<K> {
    fn drop(&mut self) {
        self.limit.give_back(&self.sharer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::circuit::DeliveryTarget;
    use posthaste_ports::Entropy;
    use posthaste_testkit::SeededEntropy;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    const MAX: usize = 64;

    /// A request that waits for its slot.
    type Waiting = Pin<Box<dyn Future<Output = Option<FairSlot<DeliveryTarget>>>>>;

    /// Requests to one link.
    struct Requests {
        limit: Arc<FairLimit<DeliveryTarget>>,
        open: Vec<(usize, FairSlot<DeliveryTarget>)>,
        waiting: Vec<(usize, Waiting)>,
    }

    fn target(index: usize) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://a.example:443 orders.s{index}")).unwrap()
    }

    impl Requests {
        fn new() -> Self {
            Self {
                limit: Arc::new(FairLimit::new(MAX)),
                open: Vec::new(),
                waiting: Vec::new(),
            }
        }

        /// Adds requests of a subscription.
        fn come(&mut self, index: usize, count: usize) {
            for _ in 0..count {
                let limit = Arc::clone(&self.limit);
                let target = target(index);
                self.waiting.push((
                    index,
                    Box::pin(async move { limit.wait_for_slot(&target).await }),
                ));
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
                    .all(|rank| !slots.has_room(rank.open, MAX))
            );
            assert_eq!(
                slots.taken,
                slots.queues.values().map(|queue| queue.open).sum::<usize>()
            );
        }
    }

    #[test]
    fn a_quarter_of_the_slots_is_kept() {
        assert_eq!([64, 16, 4, 3, 1, 0].map(sharer_max), [48, 12, 3, 3, 1, 1]);
    }

    /// A hanging endpoint leaves sixteen slots to subscriptions that have no request open.
    #[test]
    fn hanging_endpoint_leaves_sixteen_slots_to_newcomers() {
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

    /// All slots are taken by endpoints that are slow and have more to do. The next free slot is a
    /// newcomer's, and then those get one that had theirs longest ago.
    #[test]
    fn newcomer_comes_before_those_that_were_served() {
        let mut queue = Requests::new();
        queue.come(0, 48);
        for slow in 1..=16 {
            queue.come(slow, 3);
        }
        queue.come(99, 1);
        queue.finish(1);
        assert_eq!((queue.open(1), queue.open(99)), (0, 1));
        queue.finish(2);
        assert_eq!((queue.open(1), queue.open(2)), (1, 0));
        queue.finish(99);
        assert_eq!((queue.open(1), queue.open(2)), (1, 1));
        queue.check();
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
            let mut queue = Requests::new();
            let chance = SeededEntropy::new(seed);
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
            let mut queue = Requests::new();
            let chance = SeededEntropy::new(seed);
            let below = |n: u8| usize::from(chance.uuid().as_bytes()[0] % n);
            for _ in 0..200 {
                let index = below(16);
                let count = below(20);
                if below(2) == 0 {
                    queue.come(index, count);
                } else {
                    (0..count).for_each(|_| queue.finish(index));
                }
                assert!(queue.open.len() < MAX);
                assert_eq!(queue.limit.slots.lock().taken, queue.open.len());
                // No waiting request could be open.
                assert!(queue.waiting.is_empty() || queue.open.len() >= sharer_max(MAX));
                queue.come(99, 1);
                assert_eq!(queue.open(99), 1);
                queue.finish(99);
            }
        }
    }
}
