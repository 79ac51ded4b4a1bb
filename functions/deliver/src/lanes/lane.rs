//! One subscription's lane on a link: how many of its requests are open at once, which grows with those that
//! wait.

use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::invocation::lock;

/// How many requests of one subscription are open at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    start: usize,
    waiting_per_place: usize,
    max: usize,
}

impl Bound {
    /// `start`, and one more for every `waiting_per_place` that wait, up to `max`.
    pub(crate) fn new(start: usize, waiting_per_place: usize, max: usize) -> Self {
        let max = max.max(1);
        Self { start: start.clamp(1, max), waiting_per_place: waiting_per_place.max(1), max }
    }

    /// Always as many.
    pub(crate) fn fixed(max: usize) -> Self {
        Self::new(max, 1, max)
    }

    fn at_once(self, waiting: usize) -> usize {
        self.start.saturating_add(waiting / self.waiting_per_place).min(self.max)
    }
}

/// The lane of one subscription. The request that waits first enters first.
#[derive(Debug)]
pub(super) struct Lane {
    bound: Bound,
    /// The places that nobody has.
    free: Arc<Semaphore>,
    count: Mutex<Count>,
}

#[derive(Debug)]
struct Count {
    waiting: usize,
    /// All places, free ones and taken ones.
    places: usize,
}

/// A place in a lane. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place {
    lane: Arc<Lane>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Somebody waits, until this is dropped.
struct Waiting<'a>(&'a Lane);

impl Lane {
    pub(super) fn new(bound: Bound) -> Self {
        let places = bound.at_once(0);
        let free = Arc::new(Semaphore::new(places));
        Self { bound, free, count: Mutex::new(Count { waiting: 0, places }) }
    }

    /// Nobody enters any more; who waits is turned away.
    pub(super) fn close(&self) {
        self.free.close();
    }

    /// Waits for a place; `None` once the lane is closed.
    pub(super) async fn enter(self: Arc<Self>) -> Option<Place> {
        if let Some(place) = self.try_enter() {
            return Some(place);
        }
        let _waiting = Waiting::begin(&self);
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(Place { lane: Arc::clone(&self), permit: Some(permit) })
    }

    /// A place, if it need not be waited for.
    pub(super) fn try_enter(self: &Arc<Self>) -> Option<Place> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(Place { lane: Arc::clone(self), permit: Some(permit) })
    }

    /// How many places there should be. What was opened for those that wait stays until nobody waits any
    /// more: closing it sooner would slow the end of every row.
    fn wanted(&self, count: &Count) -> usize {
        let wanted = self.bound.at_once(count.waiting);
        if count.waiting > 0 { wanted.max(count.places) } else { wanted }
    }
}

impl<'a> Waiting<'a> {
    fn begin(lane: &'a Lane) -> Self {
        let mut count = lock(&lane.count);
        count.waiting += 1;
        let more = lane.wanted(&count).saturating_sub(count.places);
        count.places += more;
        lane.free.add_permits(more);
        Self(lane)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.0.count).waiting -= 1;
    }
}

impl Drop for Place {
    /// Where there are more places than wanted, this one goes, and free ones with it.
    fn drop(&mut self) {
        let mut count = lock(&self.lane.count);
        let surplus = count.places.saturating_sub(self.lane.wanted(&count));
        if surplus > 0
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            count.places -= 1 + self.lane.free.forget_permits(surplus - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    /// Requests to one link: those that have a place, and those that wait, in order.
    struct Row {
        lane: Arc<Lane>,
        open: Vec<Place>,
        waiting: Vec<Pin<Box<dyn Future<Output = Option<Place>>>>>,
    }

    impl Row {
        fn new(bound: Bound) -> Self {
            Self { lane: Arc::new(Lane::new(bound)), open: Vec::new(), waiting: Vec::new() }
        }

        fn come(&mut self, count: usize) {
            self.waiting.extend((0..count).map(|_| Box::pin(Arc::clone(&self.lane).enter()) as Pin<Box<_>>));
            self.look();
        }

        /// So many of those that have a place are done.
        fn finish(&mut self, count: usize) {
            self.open.drain(..count);
            self.look();
        }

        fn look(&mut self) {
            let mut cx = Context::from_waker(Waker::noop());
            // Twice: one that comes late may open a place for one that came early.
            for _ in 0..2 {
                self.waiting.retain_mut(|one| match one.as_mut().poll(&mut cx) {
                    Poll::Ready(place) => {
                        self.open.extend(place);
                        false
                    }
                    Poll::Pending => true,
                });
            }
        }

        fn check(&self, open: usize, waiting: usize) {
            assert_eq!((self.open.len(), self.waiting.len()), (open, waiting));
            assert_eq!(lock(&self.lane.count).waiting, waiting);
        }

        fn places(&self) -> usize {
            let places = lock(&self.lane.count).places;
            assert_eq!(places, self.open.len() + self.lane.free.available_permits());
            places
        }
    }

    #[test]
    fn a_link_opens_one_more_for_every_twenty_that_wait_up_to_its_bound() {
        let check = |waiting, expected| assert_eq!(Bound::new(10, 20, 64).at_once(waiting), expected);
        check(0, 10);
        check(19, 10);
        check(20, 11);
        check(199, 19);
        check(1080, 64);
        check(usize::MAX, 64);
        assert_eq!(Bound::new(10, 20, 4).at_once(1000), 4);
        assert_eq!(Bound::new(0, 0, 0).at_once(1000), 1);
        assert_eq!(Bound::fixed(7).at_once(0), 7);
        assert_eq!(Bound::fixed(7).at_once(1000), 7);
    }

    #[test]
    fn those_that_wait_open_places_and_keep_them_while_anybody_waits() {
        let mut row = Row::new(Bound::new(2, 5, 4));
        row.come(2);
        row.check(2, 0);
        row.come(4);
        row.check(2, 4);
        // The fifth that waits opens a place.
        row.come(1);
        row.check(3, 4);
        row.come(100);
        row.check(4, 103);
        row.finish(4);
        row.check(4, 99);
        for _ in 0..24 {
            row.finish(4);
        }
        row.check(4, 3);
        assert_eq!(row.places(), 4);
        row.finish(3);
        row.check(4, 0);
        // Nobody waits: what was opened for those that did is closed.
        row.finish(2);
        assert_eq!((row.open.len(), row.places()), (2, 2));
        row.finish(2);
        assert_eq!(row.places(), 2);
        row.come(3);
        row.check(2, 1);
    }

    #[test]
    fn who_gives_up_waiting_is_not_counted_any_more() {
        let mut row = Row::new(Bound::new(1, 2, 9));
        row.come(6);
        row.check(3, 3);
        row.waiting.clear();
        row.check(3, 0);
        row.finish(1);
        assert_eq!(row.places(), 2);
        row.finish(2);
        assert_eq!(row.places(), 1);
        row.come(2);
        row.check(1, 1);
    }

    #[test]
    fn places_that_are_free_go_with_the_next_that_is_given_back() {
        let mut row = Row::new(Bound::new(1, 1, 8));
        row.come(20);
        row.check(8, 12);
        // Handed on to one that waits, who gives up before it takes it.
        row.open.truncate(7);
        row.waiting.clear();
        assert_eq!((row.open.len(), row.places()), (7, 8));
        row.finish(1);
        assert_eq!((row.open.len(), row.places()), (6, 6));
    }
}
