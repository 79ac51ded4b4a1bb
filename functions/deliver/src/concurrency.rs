//! Limits on concurrent requests: over all links, to one link, and of one subscription. A subscription's
//! limit grows with the requests that wait for it, and stays below its link's, so that a hanging endpoint
//! leaves room for the others there.

mod link;
mod subscription;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use posthaste_core::circuit::Target;
use posthaste_core::model::Link;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use link::subscription_max;
use link::{LinkLimit, LinkSlot};
pub(crate) use subscription::Bound;
use subscription::{Slot, SubscriptionLimit};

/// Above this number, limits that no request uses are forgotten.
const LIMITS_KEPT_MAX: usize = 4096;

/// The limits of all links and subscriptions.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    all: Arc<Semaphore>,
    per_subscription: Bound,
    per_link_max: usize,
    targets: Mutex<BTreeMap<Target, Arc<SubscriptionLimit>>>,
    links: Mutex<BTreeMap<Link, Arc<LinkLimit>>>,
    is_closed: AtomicBool,
}

/// The right to one request. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Permit {
    _subscription: Option<Slot>,
    _link: LinkSlot,
    _all: OwnedSemaphorePermit,
}

impl ConcurrencyLimits {
    pub(crate) fn new(all_max: usize, per_subscription: Bound, per_link_max: usize) -> Self {
        let all = Arc::new(Semaphore::new(all_max.max(1)));
        let (targets, links) = (Mutex::default(), Mutex::default());
        Self { all, per_subscription, per_link_max, targets, links, is_closed: AtomicBool::new(false) }
    }

    /// Admits no request any more, and turns away those that wait.
    pub(crate) fn close(&self) {
        let (targets, links) = (self.targets.lock(), self.links.lock());
        self.is_closed.store(true, Ordering::Relaxed);
        self.all.close();
        targets.values().for_each(|limit| limit.close());
        links.values().for_each(|limit| limit.close());
    }

    /// Whether no request is admitted any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Waits for the right to one request; `None` once the limits are closed. The subscription's own limit
    /// comes first, then its link's: a request that waits for a slow endpoint holds nothing that others need.
    pub(crate) async fn enter(&self, target: &Target) -> Option<Permit> {
        let subscription = match target {
            Target::Subscription { .. } => {
                Some(self.subscription(target, self.per_subscription).enter().await?)
            }
            Target::Link(_) => None,
        };
        let link = self.link(target).enter(target).await?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Permit { _subscription: subscription, _link: link, _all: all })
    }

    /// The right to one request, if there is one at once.
    pub(crate) fn try_enter(&self, target: &Target) -> Option<Permit> {
        let subscription = match target {
            Target::Subscription { .. } => {
                Some(self.subscription(target, self.per_subscription).try_enter()?)
            }
            Target::Link(_) => None,
        };
        let link = self.link(target).try_enter(target)?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Permit { _subscription: subscription, _link: link, _all: all })
    }

    fn link(&self, target: &Target) -> Arc<LinkLimit> {
        let mut links = self.links.lock();
        if let Some(limit) = links.get(target.link()) {
            return Arc::clone(limit);
        }
        if links.len() >= LIMITS_KEPT_MAX {
            links.retain(|_, limit| Arc::strong_count(limit) > 1);
        }
        let limit = Arc::new(LinkLimit::new(self.per_link_max));
        if self.is_closed() {
            limit.close();
        }
        links.insert(target.link().clone(), Arc::clone(&limit));
        limit
    }

    fn subscription(&self, target: &Target, bound: Bound) -> Arc<SubscriptionLimit> {
        let mut limits = self.targets.lock();
        if let Some(limit) = limits.get(target) {
            return Arc::clone(limit);
        }
        if limits.len() >= LIMITS_KEPT_MAX {
            limits.retain(|_, limit| Arc::strong_count(limit) > 1);
        }
        let limit = Arc::new(SubscriptionLimit::new(bound));
        if self.is_closed() {
            limit.close();
        }
        limits.insert(target.clone(), Arc::clone(&limit));
        limit
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
        let limits = ConcurrencyLimits::new(10, Bound::fixed(1), 1);
        let Poll::Ready(Some(held)) = poll(limits.enter(&link("slow"))) else { panic!("expected a permit") };
        assert!(poll(limits.enter(&link("slow"))).is_pending());
        assert!(poll(limits.enter(&link("other"))).is_ready());
        drop(held);
        assert!(poll(limits.enter(&link("slow"))).is_ready());
    }

    #[test]
    fn a_subscription_that_hangs_leaves_room_on_its_link() {
        let limits = ConcurrencyLimits::new(10, Bound::fixed(2), 3);
        let (hangs, other) = (subscription("a", "hangs"), subscription("a", "other"));
        let held = [poll(limits.enter(&hangs)), poll(limits.enter(&hangs))];
        assert!(held.iter().all(Poll::is_ready) && poll(limits.enter(&hangs)).is_pending());
        let Poll::Ready(Some(third)) = poll(limits.enter(&other)) else { panic!("expected a permit") };
        assert!(poll(limits.enter(&other)).is_pending());
        drop((held, third));
    }

    #[test]
    fn closed_lanes_turn_away_who_waits_and_who_comes() {
        let limits = ConcurrencyLimits::new(10, Bound::fixed(1), 1);
        let slow = link("slow");
        let held = poll(limits.enter(&slow));
        let mut waiting = pin!(limits.enter(&slow));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        limits.close();
        assert!(matches!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(None)));
        assert!(matches!(poll(limits.enter(&link("other"))), Poll::Ready(None)));
        drop(held);
    }

    #[test]
    fn a_request_that_waits_for_a_link_holds_nothing_that_others_need() {
        let limits = ConcurrencyLimits::new(2, Bound::fixed(1), 1);
        let held = poll(limits.enter(&link("slow")));
        let slow = link("slow");
        let mut waiting = pin!(limits.enter(&slow));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(poll(limits.enter(&link("other"))).is_ready());
        drop(held);
    }
}
