//! Views of links and subscriptions that are not well, or whose events are held, and of the effect
//! of force.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, StatusState, WaitingView};
use crate::circuit::{DeliveryTarget, TargetCondition, TargetPhase};
use crate::model::{Link, OutcomeName, SubscriptionName, Timestamp, TopicName};

/// Most held objects that are counted of one subscription or link.
pub const HELD_OBJECTS_SHOWN_MAX: u32 = 1000;

/// Links and subscriptions that are not well, and subscriptions whose events are held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinksView {
    /// The links and subscriptions, by link. Those that are well and have nothing held are left
    /// out.
    pub links: Vec<LinkView>,
    /// The links and subscriptions that answer slowly, by link: their deliveries take the slow lane
    /// until that time, or longer where they stay slow. Only on AWS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<SlowTargetView>,
    /// Whether there are more than are shown or were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A link or a subscription that answers slowly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlowTargetView {
    /// Scheme, host and port.
    #[schema(example = "https://billing.example.com:443")]
    pub link: String,
    /// Whether it is everything on the link, or one subscription.
    pub scope: LinkScope,
    /// The topic of the subscription, in lower case. Left out where the scope is `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "orders")]
    pub topic: Option<TopicName>,
    /// The subscription, in lower case. Left out where the scope is `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "billing")]
    pub subscription: Option<SubscriptionName>,
    /// The time until which its deliveries take the slow lane at least.
    pub slow_until: IsoTimestamp,
}

impl SlowTargetView {
    /// A target that is slow until this time.
    pub fn for_target(target: &DeliveryTarget, slow_until: Timestamp) -> Self {
        let scope = match target {
            DeliveryTarget::Link(_) => LinkScope::Link,
            DeliveryTarget::Subscription { .. } => LinkScope::Subscription,
        };
        Self {
            link: target.link().to_string(),
            scope,
            topic: target.topic().cloned(),
            subscription: target.subscription().cloned(),
            slow_until: IsoTimestamp(slow_until),
        }
    }
}

/// A link or a subscription that is not well, or whose events are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LinkView {
    /// Scheme, host and port. Left out of a subscription that was deleted, or of which nothing is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://billing.example.com:443")]
    pub link: Option<String>,
    /// The part that fails or waits: everything on the link, or one subscription.
    pub scope: LinkScope,
    /// The subscription's topic. Left out where the scope is `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "orders")]
    pub topic: Option<TopicName>,
    /// The subscription. Left out where the scope is `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "billing")]
    pub subscription: Option<SubscriptionName>,
    /// The state of the link or subscription.
    pub state: LinkState,
    /// The time since which the state holds. Left out where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<IsoTimestamp>,
    /// The time since which requests fail. This member and the next ones are there only where
    /// requests fail, or did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<IsoTimestamp>,
    /// The number of requests that failed since then, as far as they counted: the streak, and each
    /// probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 13)]
    pub failures: Option<u32>,
    /// The outcome of the last of them, as dead letters name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "Busy")]
    pub last_outcome: Option<OutcomeName>,
    /// The status of the last of them, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 503)]
    pub last_http_status_code: Option<u16>,
    /// The time of the next request. Left out while the link or subscription recovers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_probe: Option<IsoTimestamp>,
    /// The number of objects of held deliveries that wait for the subscription, or for all on the
    /// link. An object holds up to some hundred deliveries. 1000 means that many or more. `waiting`
    /// has the number of events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 3)]
    pub held_objects: Option<u32>,
    /// The events that wait for the subscription, or for all on the link, as its subscriptions show
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Box<WaitingView>>,
}

/// The part that fails or waits together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum LinkScope {
    /// Everything on the link.
    Link,
    /// One subscription.
    Subscription,
}

/// The state of a link or a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum LinkState {
    /// Requests failed or were refused just now, and pause for a minute at a time; events wait in the queue.
    Glitch,
    /// The endpoint asked for a pause, by `Retry-After`; events wait in the queue until the next
    /// probe.
    RetryAfter,
    /// Requests have failed or were refused for minutes, and pause for longer; events are held.
    Retry,
    /// The endpoint answered again, or was forced; waiting events are let through little by little.
    Recovering,
    /// An operator paused the subscription.
    Paused,
    /// The endpoint has not consented yet.
    Pending,
    /// The endpoint did not consent.
    Failed,
    /// The subscription is well, disabled or deleted; held events go out.
    Releasing,
    /// The topic's record cannot be read; held events stay until it can be.
    Unknown,
}

/// The effect of force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForcedView {
    /// The topic.
    #[schema(value_type = String, example = "orders")]
    pub topic: TopicName,
    /// The subscription.
    #[schema(value_type = String, example = "billing")]
    pub subscription: SubscriptionName,
    /// The id of the request. Who forces the subscription again while its events are still being
    /// sent out gets the same one.
    #[serde(default)]
    #[schema(example = "0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e")]
    pub id: String,
    /// The holds that were ended, as they were before: of the subscription, of its link, and those
    /// of its fallback. Empty if there were none.
    pub forced: Vec<LinkView>,
    /// The next steps, in words.
    #[schema(example = "the hold has ended; …")]
    pub detail: String,
}

impl LinkView {
    /// The view of an unhealthy target.
    pub fn for_target(target: &DeliveryTarget, condition: &TargetCondition) -> Self {
        let (scope, topic, subscription) = match target {
            DeliveryTarget::Link(_) => (LinkScope::Link, None, None),
            DeliveryTarget::Subscription { topic, name, .. } => (
                LinkScope::Subscription,
                Some(topic.clone()),
                Some(name.clone()),
            ),
        };
        Self {
            link: Some(target.link().to_string()),
            scope,
            topic,
            subscription,
            state: link_state(condition),
            since: Some(IsoTimestamp(condition.since)),
            failing_since: Some(IsoTimestamp(condition.failing_since)),
            failures: Some(condition.failures),
            last_outcome: Some(condition.last.outcome),
            last_http_status_code: condition.last.status,
            next_probe: condition.next_probe().map(IsoTimestamp),
            held_objects: None,
            waiting: None,
        }
    }

    /// A subscription whose events are held because of its own state, not because of its endpoint.
    pub fn for_held_subscription(
        topic: &TopicName,
        name: &SubscriptionName,
        link: Option<&Link>,
        state: LinkState,
        since: Option<IsoTimestamp>,
    ) -> Self {
        Self {
            link: link.map(ToString::to_string),
            scope: LinkScope::Subscription,
            topic: Some(topic.clone()),
            subscription: Some(name.clone()),
            state,
            since,
            failing_since: None,
            failures: None,
            last_outcome: None,
            last_http_status_code: None,
            next_probe: None,
            held_objects: None,
            waiting: None,
        }
    }

    /// The same with what waits for it, at most [`HELD_OBJECTS_SHOWN_MAX`].
    #[must_use]
    pub fn with_held_objects(self, objects: u32) -> Self {
        Self {
            held_objects: Some(objects.min(HELD_OBJECTS_SHOWN_MAX)),
            ..self
        }
    }
}

fn link_state(condition: &TargetCondition) -> LinkState {
    match condition.phase {
        TargetPhase::Glitch if condition.asked => LinkState::RetryAfter,
        TargetPhase::Glitch => LinkState::Glitch,
        TargetPhase::Retry => LinkState::Retry,
        TargetPhase::Recovering => LinkState::Recovering,
    }
}

impl From<StatusState> for LinkState {
    /// The circuit's state of a subscription with held events, by its own status.
    fn from(state: StatusState) -> Self {
        match state {
            StatusState::Paused => Self::Paused,
            StatusState::Pending => Self::Pending,
            StatusState::Failed => Self::Failed,
            StatusState::Active | StatusState::Disabled => Self::Releasing,
        }
    }
}
