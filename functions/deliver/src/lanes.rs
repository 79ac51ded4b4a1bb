//! Bounds on concurrency: so many requests in all, so many to one link, and of one subscription as many as wait for it call
//! for, so that one whose endpoint hangs leaves room on its link for the others there.

mod lane;
mod link;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use posthaste_core::circuit::Target;
use posthaste_core::model::endpoint::Link;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::invocation::lock;
pub(crate) use lane::Bound;
use lane::{Lane, Place};
pub(crate) use link::shared;
use link::{LinkLane, LinkPlace};

/// Above so many, lanes nobody is in are forgotten.
const LANES_KEPT_MAX: usize = 4096;

/// The lanes of all links and subscriptions.
#[derive(Debug)]
pub(crate) struct Lanes {
    all: Arc<Semaphore>,
    per_subscription: Bound,
    per_link_max: usize,
    targets: Mutex<BTreeMap<Target, Arc<Lane>>>,
    links: Mutex<BTreeMap<Link, Arc<LinkLane>>>,
    is_closed: AtomicBool,
}

/// The right to one request. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Permit {
    _subscription: Option<Place>,
    _link: LinkPlace,
    _all: OwnedSemaphorePermit,
}

impl Lanes {
    pub(crate) fn new(all_max: usize, per_subscription: Bound, per_link_max: usize) -> Self {
        let all = Arc::new(Semaphore::new(all_max.max(1)));
        let (targets, links) = (Mutex::default(), Mutex::default());
        Self { all, per_subscription, per_link_max, targets, links, is_closed: AtomicBool::new(false) }
    }

    /// Nobody enters any more; who waits is turned away.
    pub(crate) fn close(&self) {
        let (lanes, links) = (lock(&self.targets), lock(&self.links));
        self.is_closed.store(true, Ordering::Relaxed);
        self.all.close();
        lanes.values().for_each(|lane| lane.close());
        links.values().for_each(|lane| lane.close());
    }

    /// Whether nobody enters any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Waits for the right to one request; `None` once the lanes are closed. The subscription's own lane comes first, then
    /// the link's, so that who waits for a slow endpoint holds nothing that others need.
    pub(crate) async fn enter(&self, target: &Target) -> Option<Permit> {
        let subscription = match target {
            Target::Subscription { .. } => Some(self.lane(target, self.per_subscription).enter().await?),
            Target::Link(_) => None,
        };
        let link = self.link(target).enter(target).await?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Permit { _subscription: subscription, _link: link, _all: all })
    }

    /// The right to one request, if it need not be waited for.
    pub(crate) fn try_enter(&self, target: &Target) -> Option<Permit> {
        let subscription = match target {
            Target::Subscription { .. } => Some(self.lane(target, self.per_subscription).try_enter()?),
            Target::Link(_) => None,
        };
        let link = self.link(target).try_enter(target)?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Permit { _subscription: subscription, _link: link, _all: all })
    }

    fn link(&self, target: &Target) -> Arc<LinkLane> {
        let mut links = lock(&self.links);
        if let Some(lane) = links.get(target.link()) {
            return Arc::clone(lane);
        }
        if links.len() >= LANES_KEPT_MAX {
            links.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        let lane = Arc::new(LinkLane::new(self.per_link_max));
        if self.is_closed() {
            lane.close();
        }
        links.insert(target.link().clone(), Arc::clone(&lane));
        lane
    }

    fn lane(&self, target: &Target, bound: Bound) -> Arc<Lane> {
        let mut lanes = lock(&self.targets);
        if let Some(lane) = lanes.get(target) {
            return Arc::clone(lane);
        }
        if lanes.len() >= LANES_KEPT_MAX {
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        let lane = Arc::new(Lane::new(bound));
        if self.is_closed() {
            lane.close();
        }
        lanes.insert(target.clone(), Arc::clone(&lane));
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn link(host: &str) -> Target {
        Target::parse(&format!("https://{host}:443")).unwrap()
    }

    fn subscription(host: &str, name: &str) -> Target {
        Target::parse(&format!("https://{host}:443 orders.{name}")).unwrap()
    }

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_full_link_leaves_the_others_free() {
        let lanes = Lanes::new(10, Bound::fixed(1), 1);
        let Poll::Ready(Some(held)) = poll(lanes.enter(&link("slow"))) else { panic!("expected a permit") };
        assert!(poll(lanes.enter(&link("slow"))).is_pending());
        assert!(poll(lanes.enter(&link("other"))).is_ready());
        drop(held);
        assert!(poll(lanes.enter(&link("slow"))).is_ready());
    }

    #[test]
    fn a_subscription_that_hangs_leaves_room_on_its_link() {
        let lanes = Lanes::new(10, Bound::fixed(2), 3);
        let (hangs, other) = (subscription("a", "hangs"), subscription("a", "other"));
        let held = [poll(lanes.enter(&hangs)), poll(lanes.enter(&hangs))];
        assert!(held.iter().all(Poll::is_ready) && poll(lanes.enter(&hangs)).is_pending());
        let Poll::Ready(Some(third)) = poll(lanes.enter(&other)) else { panic!("expected a permit") };
        assert!(poll(lanes.enter(&other)).is_pending());
        drop((held, third));
    }

    #[test]
    fn closed_lanes_turn_away_who_waits_and_who_comes() {
        let lanes = Lanes::new(10, Bound::fixed(1), 1);
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
        let lanes = Lanes::new(2, Bound::fixed(1), 1);
        let held = poll(lanes.enter(&link("slow")));
        let slow = link("slow");
        let mut waiting = pin!(lanes.enter(&slow));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(poll(lanes.enter(&link("other"))).is_ready());
        drop(held);
    }
}
