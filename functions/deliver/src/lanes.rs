//! Bounds on concurrency: so many requests in all, and so many to one link.

mod lane;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use posthaste_core::endpoint::Link;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::invocation::lock;
pub(crate) use lane::Bound;
use lane::{Lane, Place};

/// Above so many links, lanes nobody is in are forgotten.
const LANES_KEPT_MAX: usize = 4096;

/// The lanes to all links.
#[derive(Debug)]
pub(crate) struct Lanes {
    all: Arc<Semaphore>,
    per_link: Bound,
    links: Mutex<HashMap<Link, Arc<Lane>>>,
    is_closed: AtomicBool,
}

/// The right to one request. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Permit {
    _link: Place,
    _all: OwnedSemaphorePermit,
}

impl Lanes {
    pub(crate) fn new(all_max: usize, per_link: Bound) -> Self {
        let all = Arc::new(Semaphore::new(all_max.max(1)));
        Self { all, per_link, links: Mutex::default(), is_closed: AtomicBool::new(false) }
    }

    /// Nobody enters any more; who waits is turned away.
    pub(crate) fn close(&self) {
        let links = lock(&self.links);
        self.is_closed.store(true, Ordering::Relaxed);
        self.all.close();
        links.values().for_each(|lane| lane.close());
    }

    /// Whether nobody enters any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Waits for the right to one request; `None` once the lanes are closed. The link's own lane comes first, so that
    /// who waits for a slow link holds nothing that others need.
    pub(crate) async fn enter(&self, link: &Link) -> Option<Permit> {
        let lane = self.lane(link);
        let link = lane.enter().await?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Permit { _link: link, _all: all })
    }

    /// The right to one request, if it need not be waited for.
    pub(crate) fn try_enter(&self, link: &Link) -> Option<Permit> {
        let link = self.lane(link).try_enter()?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Permit { _link: link, _all: all })
    }

    fn lane(&self, link: &Link) -> Arc<Lane> {
        let mut links = lock(&self.links);
        if let Some(lane) = links.get(link) {
            return Arc::clone(lane);
        }
        if links.len() >= LANES_KEPT_MAX {
            links.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        let lane = Arc::new(Lane::new(self.per_link));
        if self.is_closed.load(Ordering::Relaxed) {
            lane.close();
        }
        links.insert(link.clone(), Arc::clone(&lane));
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn link(host: &str) -> Link {
        Link { is_tls: true, host: host.to_owned(), port: 443 }
    }

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_full_link_leaves_the_others_free() {
        let lanes = Lanes::new(10, Bound::fixed(1));
        let Poll::Ready(Some(held)) = poll(lanes.enter(&link("slow"))) else { panic!("expected a permit") };
        assert!(poll(lanes.enter(&link("slow"))).is_pending());
        assert!(poll(lanes.enter(&link("other"))).is_ready());
        drop(held);
        assert!(poll(lanes.enter(&link("slow"))).is_ready());
    }

    #[test]
    fn closed_lanes_turn_away_who_waits_and_who_comes() {
        let lanes = Lanes::new(10, Bound::fixed(1));
        let slow = link("slow");
        let held = poll(lanes.enter(&slow));
        let mut waiting = pin!(lanes.enter(&slow));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        lanes.close();
        assert!(matches!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(None)));
        assert!(matches!(poll(lanes.enter(&link("other"))), Poll::Ready(None)));
        drop(held);
    }

    #[test]
    fn who_waits_for_a_link_holds_nothing_others_need() {
        let lanes = Lanes::new(2, Bound::fixed(1));
        let held = poll(lanes.enter(&link("slow")));
        let slow = link("slow");
        let mut waiting = pin!(lanes.enter(&slow));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(poll(lanes.enter(&link("other"))).is_ready());
        drop(held);
    }
}
