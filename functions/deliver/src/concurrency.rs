//! Limits on concurrent requests: over all links, to one link, and of one subscription. A
//! subscription's limit grows with the requests that wait for it, and stays below its link's, so
//! that a hanging endpoint leaves room for the others there. Links share the limit over all in the
//! same way.

mod fair;
mod subscription;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::poll_immediate;
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::model::{Link, Subscription};
use posthaste_ports::Clock;
use posthaste_services::{DrainMeter, PlaceWait};
use tokio_util::sync::CancellationToken;

pub(crate) use fair::sharer_max;
use fair::{FairLimit, FairSlot};
pub(crate) use subscription::ConcurrencyBound;
use subscription::{SubscriptionLimit, SubscriptionSlot};

use crate::kept::SharedValues;

/// The limits of all links and subscriptions.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    all: Arc<FairLimit<Link>>,
    per_subscription: ConcurrencyBound,
    per_link_max: usize,
    subscriptions: SharedValues<DeliveryTarget, SubscriptionLimit>,
    links: SharedValues<Link, FairLimit<DeliveryTarget>>,
    /// Learns which subscriptions' requests wait for a place of their own.
    drain: DrainMeter,
    closed: CancellationToken,
}

/// The right to one request. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    _subscription: SubscriptionSlot,
    _link: FairSlot<DeliveryTarget>,
    _all: FairSlot<Link>,
}

impl ConcurrencyLimits {
    /// Limits that are closed once `closed` is cancelled.
    pub(crate) fn new(
        all_max: usize,
        per_subscription: ConcurrencyBound,
        per_link_max: usize,
        drain: DrainMeter,
        closed: CancellationToken,
    ) -> Self {
        let all = Arc::new(FairLimit::new(all_max));
        let subscriptions = SharedValues::new();
        let links = SharedValues::new();
        Self {
            all,
            per_subscription,
            per_link_max,
            subscriptions,
            links,
            drain,
            closed,
        }
    }

    /// The number of requests that are open, over all links.
    pub(crate) fn open_requests(&self) -> usize {
        self.all.open_requests()
    }

    /// Whether no request is admitted any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Notes a request that may not begin now, where that is for its subscription's rate, a ramp or
    /// a pause: it waits in the queue until its time has come.
    pub(crate) fn note_postponed(
        &self,
        clock: &impl Clock,
        subscription: &Subscription,
        verdict: EntryVerdict,
    ) {
        if let EntryVerdict::Postponed { not_before } = verdict {
            let Subscription { topic, name, .. } = subscription;
            let wait = not_before.since(clock.now());
            self.drain
                .note_turned_back(topic, name, clock.monotonic(), wait);
        }
    }

    /// Waits from `now`, a time of the clock's `monotonic`, for the right to one request; `None`
    /// once the limits are closed. Without `now` the wait does not count as a slow drain.
    pub(crate) async fn wait_for_permit(
        &self,
        target: &DeliveryTarget,
        now: Option<Duration>,
    ) -> Option<RequestPermit> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => None,
            permit = self.wait_for_slots(target, now) => permit,
        }
    }

    /// The subscription's own limit comes first, then its link's: a request that waits for a slow
    /// endpoint holds nothing that others need.
    async fn wait_for_slots(
        &self,
        target: &DeliveryTarget,
        now: Option<Duration>,
    ) -> Option<RequestPermit> {
        let (subscription, link) = self.wait_for_own_slots(target, now).await?;
        let all = self.wait_for_shared_slot(target, now).await?;
        Some(RequestPermit {
            _subscription: subscription,
            _link: link,
            _all: all,
        })
    }

    /// Waits for the places that only this subscription waits for: its own, and its share of the
    /// link.
    async fn wait_for_own_slots(
        &self,
        target: &DeliveryTarget,
        now: Option<Duration>,
    ) -> Option<(SubscriptionSlot, FairSlot<DeliveryTarget>)> {
        let mut place = pin!(async {
            let subscription = self.subscription_limit(target).wait_for_slot().await?;
            let link = self.link_limit(target).wait_for_slot(target).await?;
            Some((subscription, link))
        });
        if let Some(place) = poll_immediate(place.as_mut()).await {
            return place;
        }
        let wait = self.note_own_wait(target, now);
        let place = place.await?;
        wait.into_iter().for_each(PlaceWait::end_with_place);
        Some(place)
    }

    /// Waits for a place that all share. While some are free, which are kept for links that have
    /// none, the link waits for its own share of them.
    async fn wait_for_shared_slot(
        &self,
        target: &DeliveryTarget,
        now: Option<Duration>,
    ) -> Option<FairSlot<Link>> {
        if let Some(place) = self.all.try_enter(target.link()) {
            return Some(place);
        }
        let wait = if self.all.is_full() {
            now.map(|_| self.drain.wait_for_shared_place())
        } else {
            self.note_own_wait(target, now)
        };
        let place = Arc::clone(&self.all).wait_for_slot(target.link()).await?;
        wait.into_iter().for_each(PlaceWait::end_with_place);
        Some(place)
    }

    /// Notes that a request of a subscription waits for a place of its own.
    fn note_own_wait<'a>(
        &'a self,
        target: &'a DeliveryTarget,
        now: Option<Duration>,
    ) -> Option<PlaceWait<'a>> {
        let (topic, name) = target.topic().zip(target.subscription())?;
        Some(self.drain.wait_for_own_place(topic, name, now?))
    }

    /// The right to one request, if there is one at once.
    pub(crate) fn try_enter(&self, target: &DeliveryTarget) -> Option<RequestPermit> {
        let subscription = self.subscription_limit(target).try_enter()?;
        let link = self.link_limit(target).try_enter(target)?;
        let all = self.all.try_enter(target.link())?;
        Some(RequestPermit {
            _subscription: subscription,
            _link: link,
            _all: all,
        })
    }

    fn subscription_limit(&self, target: &DeliveryTarget) -> Arc<SubscriptionLimit> {
        self.subscriptions
            .get(target, || SubscriptionLimit::new(self.per_subscription))
    }

    fn link_limit(&self, target: &DeliveryTarget) -> Arc<FairLimit<DeliveryTarget>> {
        self.links
            .get(target.link(), || FairLimit::new(self.per_link_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::pressure::OwnWait;
    use posthaste_ports::{DrainSource, LookTime};
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    const AT: Duration = Duration::from_secs(1);
    const NOW: Option<Duration> = Some(AT);

    fn link(host: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443")).unwrap()
    }

    fn subscription(host: &str, name: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443 orders.{name}")).unwrap()
    }

    fn limits(all_max: usize, per_subscription: usize, per_link_max: usize) -> ConcurrencyLimits {
        let bound = ConcurrencyBound::fixed(per_subscription);
        let drain = DrainMeter::default();
        ConcurrencyLimits::new(
            all_max,
            bound,
            per_link_max,
            drain,
            CancellationToken::new(),
        )
    }

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_full_link_leaves_the_others_free() {
        let limits = limits(10, 1, 1);
        let Poll::Ready(Some(held)) = poll(limits.wait_for_permit(&link("slow"), NOW)) else {
            panic!("expected a permit")
        };
        assert!(poll(limits.wait_for_permit(&link("slow"), NOW)).is_pending());
        assert!(poll(limits.wait_for_permit(&link("other"), NOW)).is_ready());
        drop(held);
        assert!(poll(limits.wait_for_permit(&link("slow"), NOW)).is_ready());
    }

    #[test]
    fn a_subscription_that_hangs_leaves_room_on_its_link() {
        let limits = limits(10, 2, 3);
        let hangs = subscription("a", "hangs");
        let other = subscription("a", "other");
        let held = [
            poll(limits.wait_for_permit(&hangs, NOW)),
            poll(limits.wait_for_permit(&hangs, NOW)),
        ];
        assert!(
            held.iter().all(Poll::is_ready)
                && poll(limits.wait_for_permit(&hangs, NOW)).is_pending()
        );
        let Poll::Ready(Some(third)) = poll(limits.wait_for_permit(&other, NOW)) else {
            panic!("expected a permit")
        };
        assert!(poll(limits.wait_for_permit(&other, NOW)).is_pending());
        drop((held, third));
    }

    /// A slow link takes three of four places over all, and the last one is another link's.
    #[test]
    fn slow_link_leaves_places_over_all_to_the_others() {
        let limits = limits(4, 9, 9);
        let slow = [0; 4].map(|_| poll(limits.wait_for_permit(&link("slow"), NOW)));
        assert_eq!(
            slow.each_ref().map(Poll::is_ready),
            [true, true, true, false]
        );
        assert!(poll(limits.wait_for_permit(&link("other"), NOW)).is_ready());
        assert!(poll(limits.wait_for_permit(&link("slow"), NOW)).is_pending());
    }

    #[test]
    fn closed_lanes_turn_away_who_waits_and_who_comes() {
        let limits = limits(10, 1, 1);
        let slow = link("slow");
        let held = poll(limits.wait_for_permit(&slow, NOW));
        let mut waiting = pin!(limits.wait_for_permit(&slow, NOW));
        assert!(
            waiting
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        limits.closed.cancel();
        assert!(matches!(
            waiting
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(None)
        ));
        assert!(matches!(
            poll(limits.wait_for_permit(&link("other"), NOW)),
            Poll::Ready(None)
        ));
        drop(held);
    }

    #[test]
    fn closed_limits_turn_away_the_waiting_requests_of_a_full_link() {
        let limits = limits(100, 48, 64);
        let own = subscription("a", "own");
        let held: Vec<_> = (0..48)
            .map(|_| poll(limits.wait_for_permit(&own, NOW)))
            .collect();
        assert!(held.iter().all(Poll::is_ready));
        let mut waiting: Vec<_> = (0..2)
            .map(|_| Box::pin(limits.wait_for_permit(&own, NOW)))
            .collect();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(
            waiting
                .iter_mut()
                .all(|one| one.as_mut().poll(&mut cx).is_pending())
        );
        limits.closed.cancel();
        let is_away = |poll: Poll<Option<RequestPermit>>| matches!(poll, Poll::Ready(None));
        assert!(
            waiting
                .iter_mut()
                .all(|one| is_away(one.as_mut().poll(&mut cx)))
        );
        assert!(is_away(poll(
            limits.wait_for_permit(&subscription("a", "other"), NOW)
        )));
    }

    /// A request that waits for its link holds nothing that other links need.
    #[test]
    fn request_waiting_for_a_link_holds_nothing_others_need() {
        let limits = limits(2, 1, 1);
        let held = poll(limits.wait_for_permit(&link("slow"), NOW));
        let slow = link("slow");
        let mut waiting = pin!(limits.wait_for_permit(&slow, NOW));
        assert!(
            waiting
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert!(poll(limits.wait_for_permit(&link("other"), NOW)).is_ready());
        drop(held);
    }

    /// The waits for places of their own, by group, and whether shared ones ran out.
    async fn waits(limits: &ConcurrencyLimits) -> (Vec<(String, OwnWait)>, bool) {
        let time = LookTime {
            now: AT,
            elapsed: Duration::ZERO,
        };
        let look = limits.drain.measure_drain(0, time).await;
        let look = look.ok().flatten().expect("a meter always tells");
        let own = look.subscriptions.into_iter();
        let own = own.map(|of| (of.group.to_string(), of.own_wait)).collect();
        (own, look.shared_places_ran_out)
    }

    #[tokio::test]
    async fn request_without_a_time_waits_without_being_noted() {
        let limits = limits(2, 1, 2);
        let own = subscription("a", "own");
        let held = poll(limits.wait_for_permit(&own, NOW));
        let mut waiting = Box::pin(limits.wait_for_permit(&own, None));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        let others = poll(limits.wait_for_permit(&subscription("b", "other"), NOW));
        let third = subscription("c", "third");
        let mut shared = Box::pin(limits.wait_for_permit(&third, None));
        assert!(shared.as_mut().poll(&mut cx).is_pending());
        assert_eq!(waits(&limits).await, (vec![], false));
        drop((held, others));
    }

    #[tokio::test]
    async fn request_that_waits_for_its_own_place_is_noted() {
        let limits = limits(10, 1, 2);
        let own = subscription("a", "own");
        let other = subscription("b", "other");
        let held = [
            poll(limits.wait_for_permit(&own, NOW)),
            poll(limits.wait_for_permit(&other, NOW)),
        ];
        assert_eq!(waits(&limits).await, (vec![], false));
        let mut waiting = Box::pin(limits.wait_for_permit(&own, NOW));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        let noted = |wait| (vec![("orders.own".to_owned(), wait)], false);
        assert_eq!(waits(&limits).await, noted(OwnWait::Now));
        assert_eq!(waits(&limits).await, noted(OwnWait::Throughout));
        drop(held);
        assert!(waiting.as_mut().poll(&mut cx).is_ready());
        drop(waiting);
        assert_eq!(waits(&limits).await, (vec![], false));
    }

    #[tokio::test]
    async fn request_that_waits_for_a_shared_place_is_noted_as_such() {
        let limits = limits(1, 1, 1);
        let held = poll(limits.wait_for_permit(&link("a"), NOW));
        let other = subscription("b", "other");
        let mut waiting = Box::pin(limits.wait_for_permit(&other, NOW));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        assert_eq!(waits(&limits).await, (vec![], true));
        drop(held);
        assert!(waiting.as_mut().poll(&mut cx).is_ready());
        assert_eq!(waits(&limits).await, (vec![], true));
        assert_eq!(waits(&limits).await, (vec![], false));
    }

    /// A link has its share of all places, and some are kept for other links.
    #[tokio::test]
    async fn link_above_its_share_waits_for_itself() {
        let limits = limits(4, 9, 9);
        let slow = subscription("slow", "own");
        let held: Vec<_> = (0..3)
            .map(|_| poll(limits.wait_for_permit(&slow, NOW)))
            .collect();
        assert!(held.iter().all(Poll::is_ready));
        let mut waiting = Box::pin(limits.wait_for_permit(&slow, NOW));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        let noted = |wait| vec![("orders.own".to_owned(), wait)];
        assert_eq!(waits(&limits).await, (noted(OwnWait::Now), false));
        // The last one is taken too: who waits now waits for what all share.
        let last = poll(limits.wait_for_permit(&link("other"), NOW));
        let third = link("third");
        let mut shared = Box::pin(limits.wait_for_permit(&third, NOW));
        assert!(last.is_ready() && shared.as_mut().poll(&mut cx).is_pending());
        assert_eq!(waits(&limits).await, (noted(OwnWait::Throughout), true));
    }
}
