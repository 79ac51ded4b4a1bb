//! Released deliveries by link: a link that is probed gets one delivery in a run, and one that
//! recovers a few in a pass, over all of its subscriptions.

use std::collections::{BTreeMap, BTreeSet};

use super::held::HeldRelease;
use crate::circuit::{DeliveryTarget, ProbedTargets};
use crate::model::Link;

/// One run's account.
#[derive(Debug, Default)]
pub struct LinkShares {
    probed: BTreeSet<DeliveryTarget>,
    /// The number of passes in which something went to a link.
    passes: BTreeMap<Link, u32>,
    /// The number of deliveries that went to a link in this pass.
    in_pass: BTreeMap<Link, usize>,
}

impl LinkShares {
    /// A new pass begins.
    pub fn begin_pass(&mut self) {
        for link in std::mem::take(&mut self.in_pass).into_keys() {
            *self.passes.entry(link).or_default() += 1;
        }
    }

    /// Passes before this one in which something went to a target's link.
    pub fn passes_on_link(&self, target: &DeliveryTarget) -> u32 {
        self.passes.get(target.link()).copied().unwrap_or_default()
    }

    /// Deliveries that may go to a target now; `None` is a subscription that no endpoint is asked
    /// for.
    pub fn allowed_for(&self, release: HeldRelease, target: Option<&DeliveryTarget>) -> usize {
        match (release, target) {
            (HeldRelease::Nothing, _) => 0,
            (HeldRelease::All, _) | (_, None) => usize::MAX,
            (HeldRelease::AtMost(max), Some(target)) => {
                max.saturating_sub(self.in_pass.get(target.link()).copied().unwrap_or_default())
            }
            (HeldRelease::Probe(probed), Some(target)) => {
                usize::from(!self.probed.contains(&probed_target(probed, target)))
            }
        }
    }

    /// Reserves deliveries for a target, so that others on the link may have their turn meanwhile.
    pub fn reserve_deliveries(
        &mut self,
        release: HeldRelease,
        target: Option<&DeliveryTarget>,
        count: usize,
    ) {
        let Some(target) = target.filter(|_| count > 0) else {
            return;
        };
        *self.in_pass.entry(target.link().clone()).or_default() += count;
        if let HeldRelease::Probe(probed) = release {
            self.probed.insert(probed_target(probed, target));
        }
    }

    /// Takes back reserved deliveries that were not sent.
    pub fn give_back(
        &mut self,
        release: HeldRelease,
        target: Option<&DeliveryTarget>,
        unsent: usize,
    ) {
        let Some(target) = target.filter(|_| unsent > 0) else {
            return;
        };
        let left = self
            .in_pass
            .remove(target.link())
            .unwrap_or_default()
            .saturating_sub(unsent);
        if left > 0 {
            self.in_pass.insert(target.link().clone(), left);
        }
        // A probe is one delivery.
        if let HeldRelease::Probe(probed) = release {
            self.probed.remove(&probed_target(probed, target));
        }
    }
}

/// The target that a probe asks: the link, for all of its subscriptions, or the subscription alone.
fn probed_target(probed: ProbedTargets, target: &DeliveryTarget) -> DeliveryTarget {
    if probed.link {
        DeliveryTarget::Link(target.link().clone())
    } else {
        target.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OF_LINK: HeldRelease = HeldRelease::Probe(ProbedTargets {
        link: true,
        subscription: false,
    });
    const OF_SUBSCRIPTION: HeldRelease = HeldRelease::Probe(ProbedTargets {
        link: false,
        subscription: true,
    });

    fn targets() -> [DeliveryTarget; 3] {
        let text = [
            "https://a.example:443 orders.one",
            "https://a.example:443 orders.two",
            "https://b.example:443 orders.one",
        ];
        text.map(|text| DeliveryTarget::parse(text).unwrap())
    }

    /// A link is asked once, whoever is on it, and a subscription once for itself.
    #[test]
    fn probe_goes_once_to_a_link_or_once_to_a_subscription() {
        let check = |release, expected| {
            let mut links = LinkShares::default();
            let targets = targets();
            links.reserve_deliveries(release, Some(&targets[0]), 1);
            assert_eq!(
                targets.map(|target| links.allowed_for(release, Some(&target))),
                expected,
                "{release:?}"
            );
        };
        check(OF_LINK, [0, 0, 1]);
        check(OF_SUBSCRIPTION, [0, 1, 1]);
    }

    #[test]
    fn a_probe_that_was_not_sent_may_be_made_by_another() {
        let mut links = LinkShares::default();
        let [one, ..] = targets();
        links.reserve_deliveries(OF_LINK, Some(&one), 1);
        links.give_back(OF_LINK, Some(&one), 1);
        assert_eq!(links.allowed_for(OF_LINK, Some(&one)), 1);
        links.begin_pass();
        assert_eq!(links.passes_on_link(&one), 0);
    }

    #[test]
    fn those_on_a_link_share_what_it_gets_in_a_pass() {
        let mut links = LinkShares::default();
        let [one, two, elsewhere] = targets();
        links.reserve_deliveries(HeldRelease::AtMost(4), Some(&one), 4);
        links.give_back(HeldRelease::AtMost(4), Some(&one), 1);
        let allowed = |links: &LinkShares| {
            [&one, &two, &elsewhere].map(|it| links.allowed_for(HeldRelease::AtMost(4), Some(it)))
        };
        assert_eq!(
            (allowed(&links), links.passes_on_link(&two)),
            ([1, 1, 4], 0)
        );
        links.begin_pass();
        assert_eq!(
            (
                allowed(&links),
                links.passes_on_link(&two),
                links.passes_on_link(&elsewhere)
            ),
            ([4, 4, 4], 1, 0)
        );
    }

    proptest! {
        #[test]
        fn no_link_gets_more_in_a_pass_than_it_may_and_what_was_not_sent_is_free_again(
            max in 1_usize..20,
            turns in prop::collection::vec((0_usize..3, 0_usize..20, 0_usize..20), 0..30),
        ) {
            let (mut links, targets) = (LinkShares::default(), targets());
            let mut sent = BTreeMap::<Link, usize>::new();
            for (index, wanted, unsent) in turns {
                let target = &targets[index];
                let count = links.allowed_for(HeldRelease::AtMost(max), Some(target)).min(wanted);
                links.reserve_deliveries(HeldRelease::AtMost(max), Some(target), count);
                let unsent = unsent.min(count);
                links.give_back(HeldRelease::AtMost(max), Some(target), unsent);
                let sent = sent.entry(target.link().clone()).or_default();
                *sent += count - unsent;
                prop_assert!(*sent <= max);
                prop_assert_eq!(links.allowed_for(HeldRelease::AtMost(max), Some(target)), max - *sent);
            }
        }
    }
}
