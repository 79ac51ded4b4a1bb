//! The deliveries of an event, by subscription.

use std::collections::BTreeMap;

use posthaste_core::api::events::{AttemptView, DeliveryView};
use posthaste_core::delivery_log::DeliveryState;

/// The deliveries of an event to one subscription, the newest first; at least one.
pub(super) struct SubscriptionDeliveries<'a> {
    pub(super) newest: &'a DeliveryView,
    /// Those before: the event was sent again since, or its producer gave the id to another one.
    pub(super) earlier: Vec<&'a DeliveryView>,
}

impl<'a> SubscriptionDeliveries<'a> {
    /// The subscription.
    pub(super) fn name(&self) -> &'a str {
        &self.newest.subscription
    }

    /// All deliveries, the newest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a DeliveryView> {
        std::iter::once(self.newest).chain(self.earlier.iter().copied())
    }

    /// The number of attempts of all deliveries.
    pub(super) fn count_attempts(&self) -> usize {
        self.all().map(|it| it.attempts.len()).sum()
    }

    /// The attempt that ended last.
    pub(super) fn last_attempt(&self) -> Option<&'a AttemptView> {
        self.all()
            .flat_map(|it| &it.attempts)
            .max_by_key(|attempt| attempt.at.0)
    }

    /// The newest delivery that can be sent again.
    pub(super) fn resendable(&self) -> Option<&'a DeliveryView> {
        self.all().find(|it| it.resendable_until.is_some())
    }

    pub(super) fn is_delivered(&self) -> bool {
        self.newest.state == DeliveryState::Delivered
    }
}

/// Gathers deliveries, of which the newest come first. Subscriptions are in the order of their
/// names, so that a refresh moves none.
pub(super) fn group_by_subscription<'a>(
    deliveries: impl IntoIterator<Item = &'a DeliveryView>,
) -> Vec<SubscriptionDeliveries<'a>> {
    let mut groups = BTreeMap::<String, SubscriptionDeliveries<'a>>::new();
    for it in deliveries {
        groups
            .entry(it.subscription.to_ascii_lowercase())
            .and_modify(|group| group.earlier.push(it))
            .or_insert(SubscriptionDeliveries {
                newest: it,
                earlier: Vec::new(),
            });
    }
    groups.into_values().collect()
}
