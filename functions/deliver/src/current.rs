//! Subscriptions as they are now. A request waits for its turn for up to a minute, and begins only
//! if its subscription still is what it was planned by.
//!
//! Embedded, each look shows every change that was answered. On AWS a look is at most
//! `RegistryMaxAge` old. A subscription whose endpoint answered 410 here counts as gone from that
//! moment, before its record says that it is disabled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::attempt::basis::may_begin;
use posthaste_core::model::{
    EndpointUrl, Identity, Subscription, SubscriptionName, Timestamp, TopicName,
};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{TopicRegistry, stop_at};

use crate::limits::DisablingMode;

/// The longest look. If it takes longer, what was known before stands.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// The time for which a 410 is remembered whose subscription has not been seen as disabled: wake
/// disables it within two minutes, and other functions see that some seconds later. After it a
/// request finds out anew.
const GONE_KEPT: Duration = Duration::from_secs(150);

/// Most endpoints that are remembered as gone. Beyond it they are forgotten, and found out anew.
const GONE_MAX: usize = 4096;

/// Subscriptions as they are now.
pub(crate) struct CurrentSubscriptions<P: Ports> {
    registry: Arc<TopicRegistry<P::Store, P::Clock>>,
    clock: P::Clock,
    gone: GoneEndpoints,
    pub(crate) disabling: DisablingMode,
}

/// Subscriptions whose endpoints answered 410 here.
#[derive(Debug, Default)]
struct GoneEndpoints(Mutex<HashMap<(TopicName, SubscriptionName), GoneEndpoint>>);

/// An endpoint that is gone.
#[derive(Debug)]
struct GoneEndpoint {
    identity: Option<Identity>,
    endpoint: EndpointUrl,
    /// The time of the answer.
    at: Timestamp,
    /// By the clock's `monotonic`.
    until: Duration,
}

impl<P: Ports> CurrentSubscriptions<P> {
    pub(crate) fn new(
        registry: Arc<TopicRegistry<P::Store, P::Clock>>,
        clock: P::Clock,
        disabling: DisablingMode,
    ) -> Self {
        Self {
            registry,
            clock,
            gone: GoneEndpoints::default(),
            disabling,
        }
    }

    /// Checks that a request which was planned by this view of a subscription may begin. An `Err`
    /// is the verdict over its events if it may not: they go back at once, and are planned again by
    /// the subscription as it is.
    pub(crate) async fn check_may_begin(&self, planned: &Subscription) -> Result<(), EntryVerdict> {
        let current = match self.look_up(planned).await {
            SubscriptionLookup::Known(current)
                if may_begin(planned, &current, self.clock.now()) =>
            {
                Some(current)
            }
            SubscriptionLookup::Known(_) | SubscriptionLookup::Deleted => {
                return Err(EntryVerdict::NotStarted);
            }
            SubscriptionLookup::Unknown => None,
        };
        let current = current.as_deref().unwrap_or(planned);
        if self.gone.is_gone(current, self.clock.monotonic()) {
            // Its record will say so. Until then its events wait, and are not lost if its URL is
            // corrected meanwhile.
            return Err(EntryVerdict::Postponed {
                not_before: self.clock.now() + self.disabling.recheck_wait(),
            });
        }
        Ok(())
    }

    /// Notes that the endpoint of a subscription which a 410 disables answered so: no further
    /// request to it begins here. Answers whether that is news, so that one request of many
    /// has it disabled.
    pub(crate) fn note_gone(&self, subscription: &Subscription) -> bool {
        let at = self.clock.now();
        subscription.retry.disable_on_gone
            && self
                .gone
                .note_gone(subscription, at, self.clock.monotonic())
    }

    /// Forgets that: the subscription is not disabled after all.
    pub(crate) fn forget_gone(&self, subscription: &Subscription) {
        self.gone.forget(subscription);
    }

    /// The subscription as it is now, for judging an attempt that has ended. One that was deleted
    /// or created again, or that cannot be looked up, is as it was known before.
    pub(crate) async fn latest_version(&self, known: &Arc<Subscription>) -> Arc<Subscription> {
        match self.look_up(known).await {
            SubscriptionLookup::Known(current)
                if current.created.identity() == known.created.identity() =>
            {
                current
            }
            _ => Arc::clone(known),
        }
    }

    async fn look_up(&self, planned: &Subscription) -> SubscriptionLookup {
        let end = self.clock.monotonic() + LOOK_TIME;
        let topic = self.registry.topic(&planned.topic);
        match stop_at(&self.clock, end, topic).await {
            Some(Ok(Some(topic))) => topic
                .find_subscription(&planned.name)
                .map_or(SubscriptionLookup::Deleted, |current| {
                    SubscriptionLookup::Known(Arc::clone(current))
                }),
            Some(Ok(None)) => SubscriptionLookup::Deleted,
            // Unreadable is not deleted. What is in use was the last good record.
            Some(Err(_)) | None => SubscriptionLookup::Unknown,
        }
    }
}

/// A subscription that was looked up.
enum SubscriptionLookup {
    Known(Arc<Subscription>),
    Deleted,
    Unknown,
}

impl GoneEndpoints {
    /// Notes that the endpoint of a subscription answered 410 at `at`, which is `now` by the clock's
    /// `monotonic`. Answers whether that was not known.
    fn note_gone(&self, subscription: &Subscription, at: Timestamp, now: Duration) -> bool {
        if self.is_gone(subscription, now) {
            return false;
        }
        let mut gone = self.0.lock();
        if gone.len() >= GONE_MAX {
            gone.retain(|_, it| now < it.until);
        }
        if gone.len() >= GONE_MAX {
            gone.clear();
        }
        let noted = GoneEndpoint {
            identity: subscription.created.identity(),
            endpoint: subscription.endpoint.clone(),
            at,
            until: now + GONE_KEPT,
        };
        gone.insert(subscription_key(subscription), noted);
        true
    }

    fn forget(&self, subscription: &Subscription) {
        self.0.lock().remove(&subscription_key(subscription));
    }

    /// Whether the endpoint of an active subscription is gone. One that was activated since its
    /// endpoint answered is not, and a record from before the answer cannot look like it.
    fn is_gone(&self, subscription: &Subscription, now: Duration) -> bool {
        let mut gone = self.0.lock();
        if gone.is_empty() {
            return false;
        }
        let key = subscription_key(subscription);
        let Some(noted) = gone.get(&key) else {
            return false;
        };
        let is_same = noted.identity == subscription.created.identity()
            && noted.endpoint == subscription.endpoint;
        let is_activated_since = subscription
            .status_since
            .is_some_and(|since| since >= noted.at);
        if is_same && !is_activated_since && now < noted.until {
            return true;
        }
        gone.remove(&key);
        false
    }
}

fn subscription_key(subscription: &Subscription) -> (TopicName, SubscriptionName) {
    (subscription.topic.clone(), subscription.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{START, World, secs, subscription};

    fn activated(at: Timestamp) -> Value {
        json!({ "status": { "state": "Active", "since": at.to_string() } })
    }

    /// A gone endpoint is remembered until its subscription is activated again, or moves.
    #[test]
    fn gone_endpoint_is_remembered_until_reactivation() {
        let gone = GoneEndpoints::default();
        let own = subscription(json!({}));
        let moved = json!({ "endpoint": { "url": "https://new.example.com/" } });
        assert!(!gone.is_gone(&own, secs(1)));
        gone.note_gone(&own, START, secs(1));
        assert!(gone.is_gone(&own, secs(150)));
        assert!(!gone.is_gone(&own, secs(151)));
        gone.note_gone(&own, START, secs(200));
        assert!(!gone.is_gone(&subscription(moved), secs(201)));
        assert!(!gone.is_gone(&own, secs(201)));
        gone.note_gone(&own, START + secs(1), secs(200));
        let before = subscription(activated(START));
        assert!(gone.is_gone(&before, secs(201)));
        let since = subscription(activated(START + secs(1)));
        assert!(!gone.is_gone(&since, secs(201)));
        gone.note_gone(&own, START, secs(200));
        gone.forget(&own);
        assert!(!gone.is_gone(&own, secs(201)));
    }

    #[test]
    fn gone_endpoints_are_bounded() {
        let gone = GoneEndpoints::default();
        let named = |index: usize| {
            let name = format!("s{index}");
            crate::testing::subscription_named(&name, json!({}))
        };
        assert!((0..GONE_MAX).all(|index| gone.note_gone(&named(index), START, secs(1))));
        gone.note_gone(&named(GONE_MAX), START, secs(2));
        assert_eq!(gone.0.lock().len(), 1);
    }

    /// An activated subscription is no longer gone, and an old view of it still is.
    #[tokio::test]
    async fn activated_subscription_is_not_gone_but_its_old_view_is() {
        let world = World::new();
        let current = world.current();
        let own = world.subscribe(json!({})).await;
        current.note_gone(&own);
        let status = json!({ "state": "Disabled", "since": START.to_string() });
        world.subscribe(json!({ "status": status })).await;
        assert_eq!(
            current.check_may_begin(&own).await,
            Err(EntryVerdict::NotStarted)
        );
        // Who looked before the record said it begins nothing either.
        world.subscribe(json!({})).await;
        let check = current.check_may_begin(&own).await;
        assert!(
            matches!(check, Err(EntryVerdict::Postponed { .. })),
            "{check:?}"
        );
        world.clock.advance(secs(1));
        world.subscribe(activated(world.clock.now())).await;
        assert_eq!(current.check_may_begin(&own).await, Ok(()));
    }
}
