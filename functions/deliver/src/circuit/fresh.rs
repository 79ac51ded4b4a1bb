//! Deliveries that never failed and wait until their target is asked again. One of them is the
//! better probe: an event that failed before may be the reason.

use std::collections::HashMap;

use parking_lot::Mutex;
use posthaste_core::circuit::{DeliveryTarget, PROBE_LOOK_AGAIN};
use posthaste_core::model::Timestamp;

/// Most targets that are noted. Beyond it all are forgotten: then any delivery probes.
const TARGETS_MAX: usize = 4096;

/// The time at which such a delivery comes back, by target.
#[derive(Debug, Default)]
pub(crate) struct FreshDeliveries(Mutex<HashMap<DeliveryTarget, Timestamp>>);

impl FreshDeliveries {
    /// Notes that a delivery of a subscription waits until then, for it or for its link.
    pub(crate) fn note_waiting(&self, target: &DeliveryTarget, until: Timestamp) {
        let mut waiting = self.0.lock();
        if waiting.len() >= TARGETS_MAX {
            waiting.clear();
        }
        waiting.insert(DeliveryTarget::Link(target.link().clone()), until);
        waiting.insert(target.clone(), until);
    }

    /// Whether one is due, and has had no time to come.
    pub(crate) fn is_expected(&self, target: &DeliveryTarget, now: Timestamp) -> bool {
        let waiting = self.0.lock();
        waiting.get(target).is_some_and(|until| {
            now < *until + PROBE_LOOK_AGAIN && *until <= now + PROBE_LOOK_AGAIN
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn fresh_delivery_is_expected_for_a_moment_at_its_time() {
        let fresh = FreshDeliveries::default();
        let target = |text: &str| DeliveryTarget::parse(text).unwrap();
        let own = target("https://a.example:443 orders.billing");
        fresh.note_waiting(&own, at(100));
        let expected = |target: &DeliveryTarget| {
            [89, 90, 109, 110].map(|secs| fresh.is_expected(target, at(secs)))
        };
        assert_eq!(expected(&own), [false, true, true, false]);
        assert_eq!(
            expected(&target("https://a.example:443")),
            [false, true, true, false]
        );
        assert_eq!(
            expected(&target("https://a.example:443 orders.audit")),
            [false; 4]
        );
    }

    #[test]
    fn fresh_deliveries_take_bounded_room() {
        let fresh = FreshDeliveries::default();
        for index in 0..=TARGETS_MAX {
            let text = format!("https://h{index}.example:443 orders.billing");
            fresh.note_waiting(&DeliveryTarget::parse(&text).unwrap(), at(1));
        }
        assert!(fresh.0.lock().len() <= TARGETS_MAX + 1);
    }
}
