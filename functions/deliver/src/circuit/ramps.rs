//! Requests under way to targets that are recovering.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::circuit::Target;

/// The requests under way, by what is recovering. Targets without any are not kept.
#[derive(Debug, Default)]
pub(crate) struct Ramps(Arc<Mutex<HashMap<Target, Ramp>>>);

/// The requests under way to one target.
#[derive(Debug, Default)]
struct Ramp {
    under_way: u32,
    /// The same, by subscription.
    by_subscription: HashMap<Target, u32>,
    /// Subscriptions without a request under way that found no room. A place is kept for each, so
    /// that one subscription that hangs does not take all that a link may get.
    turned_away: BTreeSet<Target>,
}

/// One of them. Dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct RampPermit {
    ramps: Arc<Mutex<HashMap<Target, Ramp>>>,
    recovering: Target,
    subscription: Target,
}

impl Ramps {
    /// The right of a subscription to one request, while fewer than `at_once` are under way to what
    /// is recovering: the subscription itself, or its link.
    pub(crate) fn try_enter(
        &self,
        recovering: Target,
        subscription: &Target,
        at_once: u32,
    ) -> Option<RampPermit> {
        let mut ramps = self.0.lock();
        let ramp = ramps.entry(recovering.clone()).or_default();
        if !ramp.enter(subscription, at_once) {
            return None;
        }
        drop(ramps);
        Some(RampPermit {
            ramps: Arc::clone(&self.0),
            recovering,
            subscription: subscription.clone(),
        })
    }
}

impl Ramp {
    /// Counts a request, if there is room for it.
    fn enter(&mut self, subscription: &Target, at_once: u32) -> bool {
        let has_none = !self.by_subscription.contains_key(subscription);
        let kept = if has_none {
            0
        } else {
            u32::try_from(self.turned_away.len()).unwrap_or(u32::MAX)
        };
        if self.under_way.saturating_add(kept) >= at_once {
            if has_none {
                self.turned_away.insert(subscription.clone());
            }
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

    fn leave(&mut self, subscription: &Target) {
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

    fn link(host: &str) -> Target {
        Target::parse(&format!("https://{host}:443")).unwrap()
    }

    fn subscription(host: &str, name: &str) -> Target {
        Target::parse(&format!("https://{host}:443 orders.{name}")).unwrap()
    }

    #[test]
    fn a_ramp_admits_its_number_of_requests_and_no_more() {
        let ramps = Ramps::default();
        let enter =
            |host: &str, at_once| ramps.try_enter(link(host), &subscription(host, "own"), at_once);
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

    /// A subscription that hangs has all that its link may get. What the link may get next goes to
    /// those that were turned away.
    #[test]
    fn link_s_ramp_keeps_a_place_for_who_was_turned_away() {
        let ramps = Ramps::default();
        let enter = |name: &str, at_once| {
            ramps.try_enter(link("a.example"), &subscription("a.example", name), at_once)
        };
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
        assert!(ramps.0.lock().is_empty());
    }
}
