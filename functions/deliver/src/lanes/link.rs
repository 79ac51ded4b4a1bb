//! One link's places: so many requests to it are open at once. A quarter of them is kept for subscriptions
//! that have none open, so that an endpoint that hangs cannot take them all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use posthaste_core::circuit::Target;
use tokio::sync::oneshot;

use crate::invocation::lock;

/// One place in so many is kept for subscriptions that have none open: 16 of 64 (SPEC §5).
const KEPT_ONE_IN: usize = 4;

/// How many requests one subscription has open at most, of so many to its link.
pub(crate) fn shared(max: usize) -> usize {
    (max - max / KEPT_ONE_IN).max(1)
}

/// The places of one link.
#[derive(Debug)]
pub(super) struct LinkLane {
    max: usize,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    /// How many are taken, in all and by subscription.
    taken: usize,
    by: BTreeMap<Target, usize>,
    /// Those that wait, by subscription, the first that came first.
    waiting: BTreeMap<Target, VecDeque<Waiter>>,
    /// The subscriptions for which somebody waits, the one that is served next in front.
    ranked: BTreeSet<Rank>,
    came_ever: u64,
    is_closed: bool,
}

/// How many requests of a subscription are open, and when the first of its row came.
type Rank = (usize, u64, Target);

/// A request that waits for a place.
#[derive(Debug)]
struct Waiter {
    came: u64,
    place: oneshot::Sender<LinkPlace>,
}

/// A place on a link. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct LinkPlace {
    lane: Arc<LinkLane>,
    target: Target,
}

impl LinkLane {
    pub(super) fn new(max: usize) -> Self {
        Self { max: max.max(1), places: Mutex::default() }
    }

    /// Nobody enters any more; who waits is turned away.
    pub(super) fn close(&self) {
        let mut places = lock(&self.places);
        places.is_closed = true;
        places.waiting.clear();
        places.ranked.clear();
    }

    /// Waits for a place; `None` once the lane is closed.
    pub(super) async fn enter(self: Arc<Self>, target: &Target) -> Option<LinkPlace> {
        let place = {
            let mut places = lock(&self.places);
            if places.may_enter(target, self.max) {
                return Some(self.take(&mut places, target));
            }
            places.wait(target)?
        };
        place.await.ok()
    }

    /// A place, if it need not be waited for.
    pub(super) fn try_enter(self: &Arc<Self>, target: &Target) -> Option<LinkPlace> {
        let mut places = lock(&self.places);
        places.may_enter(target, self.max).then(|| self.take(&mut places, target))
    }

    fn take(self: &Arc<Self>, places: &mut Places, target: &Target) -> LinkPlace {
        places.come(target);
        LinkPlace { lane: Arc::clone(self), target: target.clone() }
    }

    /// Gives a place back, and what is free to those that wait.
    fn give_back(self: &Arc<Self>, target: &Target) {
        let mut places = lock(&self.places);
        places.leave(target);
        let mut given = Vec::new();
        while let Some((next, waiter)) = places.next(self.max) {
            given.push((waiter, self.take(&mut places, &next)));
        }
        drop(places);
        // A waiter that is gone drops its place, which is given back in turn.
        for (waiter, place) in given {
            drop(waiter.place.send(place));
        }
    }
}

impl Places {
    fn open(&self, target: &Target) -> usize {
        self.by.get(target).copied().unwrap_or_default()
    }

    /// Whether there is a place for one more request of a subscription.
    fn has_room(&self, target: &Target, max: usize) -> bool {
        self.taken < if self.open(target) == 0 { max } else { shared(max) }
    }

    /// The same for one that does not wait; those of its subscription that do come before it.
    fn may_enter(&self, target: &Target, max: usize) -> bool {
        !self.is_closed && !self.waiting.contains_key(target) && self.has_room(target, max)
    }

    fn wait(&mut self, target: &Target) -> Option<oneshot::Receiver<LinkPlace>> {
        if self.is_closed {
            return None;
        }
        let (place, given) = oneshot::channel();
        self.came_ever += 1;
        let waiter = Waiter { came: self.came_ever, place };
        self.ranking(target, |places| {
            places.waiting.entry(target.clone()).or_default().push_back(waiter);
        });
        Some(given)
    }

    /// The subscription that is served next, if it may, with the request that gets the place: the one with the fewest
    /// open, and of equals the one that has waited longest. Those in front that have given up leave their rows here and
    /// nowhere else, so that nobody has to look at all rows.
    fn next(&mut self, max: usize) -> Option<(Target, Waiter)> {
        loop {
            let (_, _, target) = self.ranked.first()?.clone();
            if !self.has_room(&target, max) {
                return None;
            }
            let waiter = self.pop(&target)?;
            if !waiter.place.is_closed() {
                return Some((target, waiter));
            }
        }
    }

    fn pop(&mut self, target: &Target) -> Option<Waiter> {
        self.ranking(target, |places| {
            let row = places.waiting.get_mut(target)?;
            let waiter = row.pop_front();
            if row.is_empty() {
                places.waiting.remove(target);
            }
            waiter
        })
    }

    fn come(&mut self, target: &Target) {
        self.ranking(target, |places| {
            places.taken += 1;
            *places.by.entry(target.clone()).or_default() += 1;
        });
    }

    fn leave(&mut self, target: &Target) {
        self.ranking(target, |places| {
            places.taken -= 1;
            match places.by.get_mut(target) {
                Some(open) if *open > 1 => *open -= 1,
                _ => drop(places.by.remove(target)),
            }
        });
    }

    /// Changes a subscription's row or the number of its requests, and ranks it by what they are then.
    fn ranking<T>(&mut self, target: &Target, change: impl FnOnce(&mut Self) -> T) -> T {
        if let Some(rank) = self.rank(target) {
            self.ranked.remove(&rank);
        }
        let changed = change(self);
        self.ranked.extend(self.rank(target));
        changed
    }

    /// The rank of a subscription; `None` if none of its requests waits.
    fn rank(&self, target: &Target) -> Option<Rank> {
        let first = self.waiting.get(target)?.front()?;
        Some((self.open(target), first.came, target.clone()))
    }
}

impl Drop for LinkPlace {
    fn drop(&mut self) {
        self.lane.give_back(&self.target);
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

    /// A request that waits for its place.
    type Waiting = Pin<Box<dyn Future<Output = Option<LinkPlace>>>>;

    /// Requests to one link.
    struct Row {
        lane: Arc<LinkLane>,
        open: Vec<(usize, LinkPlace)>,
        waiting: Vec<(usize, Waiting)>,
    }

    fn target(index: usize) -> Target {
        Target::parse(&format!("https://a.example:443 orders.s{index}")).unwrap()
    }

    impl Row {
        fn new() -> Self {
            Self { lane: Arc::new(LinkLane::new(MAX)), open: Vec::new(), waiting: Vec::new() }
        }

        /// So many requests of a subscription come.
        fn come(&mut self, index: usize, count: usize) {
            for _ in 0..count {
                let (lane, target) = (Arc::clone(&self.lane), target(index));
                self.waiting.push((index, Box::pin(async move { lane.enter(&target).await })));
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
            self.waiting.retain_mut(|(index, one)| match one.as_mut().poll(&mut cx) {
                Poll::Ready(place) => {
                    open.extend(place.map(|place| (*index, place)));
                    false
                }
                Poll::Pending => true,
            });
        }

        fn open(&self, index: usize) -> usize {
            self.open.iter().filter(|(own, _)| *own == index).count()
        }

        /// The ranks are what the rows say, and nobody has room that waits.
        fn check(&self) {
            let places = lock(&self.lane.places);
            let ranks = places.waiting.keys().map(|target| places.rank(target).expect("somebody waits"));
            assert_eq!(places.ranked, ranks.collect());
            assert!(places.waiting.keys().all(|target| !places.has_room(target, MAX)));
        }
    }

    #[test]
    fn a_quarter_is_kept() {
        assert_eq!([64, 16, 4, 3, 1, 0].map(shared), [48, 12, 3, 3, 1, 1]);
    }

    #[test]
    fn one_that_hangs_leaves_sixteen_places_to_those_with_nothing_open() {
        let mut row = Row::new();
        row.come(0, 100);
        assert_eq!(row.open(0), 48);
        for newcomer in 1..=16 {
            row.come(newcomer, 2);
            assert_eq!(row.open(newcomer), 1, "{newcomer}");
        }
        row.come(17, 1);
        assert_eq!((row.open.len(), row.open(17)), (MAX, 0));
        // The next place is for the one that has nothing open, however long others have waited.
        row.finish(0);
        assert_eq!((row.open(0), row.open(17)), (47, 1));
    }

    #[test]
    fn what_is_free_goes_to_the_subscription_with_the_fewest_open() {
        let mut row = Row::new();
        row.come(0, 100);
        row.come(1, 100);
        assert_eq!((row.open(0), row.open(1)), (48, 1));
        for _ in 0..25 {
            row.finish(0);
        }
        assert_eq!((row.open(0), row.open(1)), (24, 24));
    }

    #[test]
    fn who_gives_up_waiting_takes_no_place() {
        let mut row = Row::new();
        row.come(0, 60);
        row.waiting.clear();
        row.come(1, 1);
        row.open.clear();
        row.look();
        assert_eq!((row.open.len(), lock(&row.lane.places).taken), (0, 0));
        assert!(lock(&row.lane.places).waiting.is_empty() && lock(&row.lane.places).by.is_empty());
        row.check();
    }

    #[test]
    fn the_next_is_found_without_a_look_at_all_that_wait() {
        for seed in 0..30 {
            let (mut row, chance) = (Row::new(), SeededEntropy::new(seed));
            let below = |n: u8| usize::from(chance.uuid().as_bytes()[0] % n);
            for _ in 0..100 {
                match below(4) {
                    0 | 1 => row.come(below(90), below(20)),
                    2 => (0..below(20)).for_each(|_| row.finish(below(90))),
                    // Some give up.
                    _ => row.waiting.truncate(below(200)),
                }
                row.check();
            }
        }
    }

    #[test]
    fn a_closed_lane_turns_away_who_waits_and_who_comes() {
        let mut row = Row::new();
        row.come(0, 50);
        row.lane.close();
        row.look();
        assert_eq!((row.open.len(), row.waiting.len()), (48, 0));
        row.come(1, 1);
        assert_eq!((row.open.len(), row.waiting.len()), (48, 0));
    }

    /// Up to sixteen subscriptions hang with long rows, and their requests end in any order.
    #[test]
    fn a_newcomer_never_waits_beside_sixteen_that_hang() {
        for seed in 0..30 {
            let (mut row, chance) = (Row::new(), SeededEntropy::new(seed));
            let below = |n: u8| usize::from(chance.uuid().as_bytes()[0] % n);
            for _ in 0..200 {
                let (index, count) = (below(16), below(20));
                if below(2) == 0 {
                    row.come(index, count);
                } else {
                    (0..count).for_each(|_| row.finish(index));
                }
                assert!(row.open.len() < MAX);
                assert_eq!(lock(&row.lane.places).taken, row.open.len());
                // Nobody waits who could be served.
                assert!(row.waiting.is_empty() || row.open.len() >= shared(MAX));
                row.come(99, 1);
                assert_eq!(row.open(99), 1);
                row.finish(99);
            }
        }
    }
}
