//! Requests under way to targets that are recovering.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::model::Timestamp;

/// The time in which a request that waited in the queue gets to its turn again.
const RETURN_TIME: Duration = Duration::from_secs(5);

/// The requests under way, by what is recovering. Targets without any are not kept.
#[derive(Debug, Default)]
pub(crate) struct RecoveryRamps(Arc<Mutex<HashMap<DeliveryTarget, RampRequests>>>);

/// The requests under way to one target.
#[derive(Debug, Default)]
struct RampRequests {
    under_way: u32,
    /// The same, by subscription.
    by_subscription: HashMap<DeliveryTarget, u32>,
    /// Subscriptions without a request under way that found no room, and the time at which they
    /// will have come again. Until then a place is kept for each, so that one subscription that
    /// hangs does not take all that a link may get.
    turned_away: HashMap<DeliveryTarget, Timestamp>,
}

/// One of them. Dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct RampPermit {
    ramps: Arc<Mutex<HashMap<DeliveryTarget, RampRequests>>>,
    recovering: DeliveryTarget,
    subscription: DeliveryTarget,
}

impl RecoveryRamps {
    /// The right of a subscription to one request, while fewer than `at_once` are under way to what
    /// is recovering: the subscription itself, or its link.
    pub(crate) fn try_enter(
        &self,
        recovering: &DeliveryTarget,
        subscription: &DeliveryTarget,
        at_once: u32,
        now: Timestamp,
    ) -> Option<RampPermit> {
        let mut ramps = self.0.lock();
        let ramp = ramps.entry(recovering.clone()).or_default();
        if !ramp.try_enter(subscription, at_once, now) {
            return None;
        }
        drop(ramps);
        Some(RampPermit {
            ramps: Arc::clone(&self.0),
            recovering: recovering.clone(),
            subscription: subscription.clone(),
        })
    }

    /// Keeps a place for a subscription that found no room and has no request under way, until it
    /// has come again: it waits in the queue until `not_before`. What does not come is held, or has
    /// ended, and needs no place.
    pub(crate) fn keep_place(
        &self,
        recovering: &DeliveryTarget,
        subscription: &DeliveryTarget,
        not_before: Timestamp,
    ) {
        if let Some(ramp) = self.0.lock().get_mut(recovering)
            && !ramp.by_subscription.contains_key(subscription)
        {
            let kept = ramp.turned_away.entry(subscription.clone());
            let until = kept.or_insert(not_before);
            *until = (*until).max(not_before + RETURN_TIME);
        }
    }
}

impl RampRequests {
    /// Counts a request, if there is room for it.
    fn try_enter(&mut self, subscription: &DeliveryTarget, at_once: u32, now: Timestamp) -> bool {
        self.turned_away.retain(|_, until| now < *until);
        let has_none = !self.by_subscription.contains_key(subscription);
        let kept = if has_none {
            0
        } else {
            u32::try_from(self.turned_away.len()).unwrap_or(u32::MAX)
        };
        if self.under_way.saturating_add(kept) >= at_once {
            return false;
        }
        self.turned_away.remove(subscription);
        self.under_way += 1;
        *self
            .by_subscription
            .entry(subscription.clone())
            .or_default() += 1;
        true
    }

    fn leave(&mut self, subscription: &DeliveryTarget) {
        self.under_way = self.under_way.saturating_sub(1);
        match self.by_subscription.get_mut(subscription) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.by_subscription.remove(subscription)),
        }
    }
}

impl Drop for RampPermit {
    fn drop(&mut self) {
        let mut ramps = self.ramps.lock();
        let Some(ramp) = ramps.get_mut(&self.recovering) else {
            return;
        };
        ramp.leave(&self.subscription);
        if ramp.under_way == 0 {
            ramps.remove(&self.recovering);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn link(host: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443")).unwrap()
    }

    fn subscription(host: &str, name: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://{host}:443 orders.{name}")).unwrap()
    }

    #[test]
    fn a_ramp_admits_its_number_of_requests_and_no_more() {
        let ramps = RecoveryRamps::default();
        let enter = |host: &str, at_once| {
            ramps.try_enter(&link(host), &subscription(host, "own"), at_once, NOW)
        };
        let first = enter("a.example", 1);
        assert!(
            first.is_some() && enter("a.example", 1).is_none() && enter("b.example", 1).is_some()
        );
        let second = enter("a.example", 2);
        assert!(second.is_some() && enter("a.example", 2).is_none());
        drop(first);
        assert!(enter("a.example", 2).is_some());
        drop(second);
        assert!(ramps.0.lock().is_empty());
    }

    /// Requests of subscriptions to one recovering link.
    struct OnLink(RecoveryRamps);

    impl OnLink {
        /// A request at this second. One that finds no room waits for ten seconds.
        fn enter(&self, name: &str, at_once: u32, secs: u64) -> Option<RampPermit> {
            let link = link("a.example");
            let own = subscription("a.example", name);
            let now = NOW + Duration::from_secs(secs);
            let permit = self.0.try_enter(&link, &own, at_once, now);
            if permit.is_none() {
                let not_before = now + Duration::from_secs(10);
                self.0.keep_place(&link, &own, not_before);
            }
            permit
        }
    }

    /// A subscription that hangs has all that its link may get. What the link may get next goes to
    /// those that were turned away.
    #[test]
    fn link_s_ramp_keeps_a_place_for_who_was_turned_away() {
        let on_link = OnLink(RecoveryRamps::default());
        let enter = |name: &str, at_once| on_link.enter(name, at_once, 0);
        let hanging = [enter("hangs", 2), enter("hangs", 2)];
        assert!(hanging.iter().all(Option::is_some));
        assert!(enter("one", 2).is_none() && enter("other", 2).is_none());
        assert!(enter("hangs", 4).is_none());
        let one = enter("one", 4);
        assert!(one.is_some() && enter("hangs", 4).is_none() && enter("one", 4).is_none());
        assert!(enter("other", 4).is_some());
        // None is turned away any more.
        assert!(enter("hangs", 4).is_some());
        drop((hanging, one));
        assert!(on_link.0.0.lock().is_empty());
    }

    /// Events of the one that does not come again were parked, or have expired.
    #[test]
    fn place_of_who_does_not_come_again_is_free_after_its_wait() {
        let on_link = OnLink(RecoveryRamps::default());
        let _hanging = [on_link.enter("hangs", 2, 0), on_link.enter("hangs", 2, 0)];
        assert!(on_link.enter("gone", 2, 0).is_none());
        assert!(on_link.enter("hangs", 3, 14).is_none());
        assert!(on_link.enter("hangs", 3, 15).is_some());
    }
}
