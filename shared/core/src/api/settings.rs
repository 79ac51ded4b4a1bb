//! The objects that users write. Unknown members are refused by name. A member that is left out has
//! the default that its documentation gives.

mod filter;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::filter::{AdvancedFilterSettings, FilterSettings};
use super::{
    DeliveryHeaderSettings, InputMappingSettings, IsoDuration, IsoTimestamp, LastOutcomeView,
    LinkView, SecretText, SenderHeaderSettings, SigningSettings, StatusState,
    SubscriptionHealthView, TopicKeySettings, WaitingView,
};
use crate::model::{
    ContentMode, DeliveryLogMode, EventSchema, KeepingMissed, SubscriptionName, Timestamp,
    TopicName, WhileDisabled,
};

/// The reason in the status of a subscription whose endpoint answered 410, and in the notice.
pub(crate) const GONE_REASON: &str = "the endpoint answered 410 Gone";

/// A file of topics and their subscriptions, as `posthaste apply -f` reads it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ApplyFile {
    /// The topics by name.
    #[schema(value_type = BTreeMap<String, TopicSettings>)]
    pub topics: BTreeMap<TopicName, TopicSettings>,
}

/// A topic: where producers publish.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TopicSettings {
    /// The topic's name, as it is shown. When written, it must be the name in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub name: Option<TopicName>,
    /// The URL to publish to, as it is shown. Left out where it is this API's own
    /// `/topics/{topic}/events`. Ignored when written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://publish.example.com/topics/orders/events")]
    pub endpoint: Option<String>,
    /// The schema of the events that are accepted. `CloudEvents` when left out.
    #[serde(default)]
    pub input_schema: EventSchema,
    /// The places of id, type, subject and the like in custom events. Only for the schema
    /// `Custom`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_mapping: Option<InputMappingSettings>,
    /// Default and upper bound of every event's time to live on this topic. None when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_time_to_live: Option<IsoDuration>,
    /// Without publishes, updates, scheduled retries and operations on its subscriptions for so
    /// long, the topic is deleted with them. PT5M or more. Never when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_delete_on_idle: Option<IsoDuration>,
    /// The topic of this installation that gets a notice where a subscription or its link is
    /// failing, healthy again or disabled, and where an event is late. This topic itself is
    /// allowed, and so is one that is made later. No notices when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub notices_topic: Option<TopicName>,
    /// Whether each event that is given up has a notice of its own as well. When left out, as it
    /// was; false for a new topic. True for a topic that release 0.1 wrote with a `noticesTopic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_failed_notices: Option<bool>,
    /// How much the delivery log keeps of this topic's deliveries. The default of the installation
    /// when left out, which is `payloads` unless its operator changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_log: Option<DeliveryLogMode>,
    /// Whether the delivery log has a record of each event that matches no subscription. `false`
    /// when left out: such events are only counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record_unmatched: bool,
    /// The extension of CloudEvents in which producers give the time before which an event is not
    /// sent, at most 30 days ahead, such as `notbefore`. Only of topics of CloudEvents. When left
    /// out, no extension has it: the header `Posthaste-Not-Before` still does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_attribute: Option<String>,
    /// Which headers of its requests say who sends them, and by which names. Those of the
    /// installation when left out (`serve --sender-headers`, on AWS `SenderHeaders`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_headers: Option<SenderHeaderSettings>,
    /// Publish keys to set, in clear, so that producers of another installation need no other ones.
    /// Those that are left out stay, and `key1` and `key2` of a new topic are made. Shown only where
    /// a topic is asked for with its secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<TopicKeySettings>,
    /// Subscriptions by name. Written with the topic, the named ones are created or replaced and
    /// the others stay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, SubscriptionSettings>)]
    pub subscriptions: BTreeMap<SubscriptionName, SubscriptionSettings>,
}

/// A subscription: which events of its topic go to which endpoint, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SubscriptionSettings {
    /// The subscription's name, as it is shown. When written, it must be the name in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub name: Option<SubscriptionName>,
    /// The endpoint that receives the events.
    pub endpoint: EndpointSettings,
    /// The schema they are sent in. The topic's input schema when left out. Event Grid events are
    /// also sent as CloudEvents, custom events also as either; other pairs are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_schema: Option<EventSchema>,
    /// How a CloudEvent lies in its request. `structured` when left out.
    #[serde(default)]
    pub content_mode: ContentMode,
    /// The filter of events. All pass when left out.
    #[serde(default)]
    pub filter: FilterSettings,
    /// The schedule of retries.
    #[serde(default)]
    pub retry_policy: RetryPolicySettings,
    /// The number of events in one request. One when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batching: Option<BatchingSettings>,
    /// The treatment of events that are given up.
    #[serde(default)]
    pub dead_letter: DeadLetterSettings,
    /// Whether events that were given up in an outage are sent again by themselves once their
    /// endpoint is well. When left out, they are where dead letters are kept and events live for
    /// 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoverySettings>,
    /// What becomes of events that are published while the subscription is disabled: dead letters
    /// with the reason `SubscriptionDisabled`, or nothing, counted and logged. When left out,
    /// `deadLetter` for seven days after an answer of the endpoint disabled it, and `skip` else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_disabled: Option<WhileDisabled>,
    /// Headers to add to every request, at most 10. None when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivery_headers: Vec<DeliveryHeaderSettings>,
    /// The signature of requests. A secret is made when left out.
    #[serde(default)]
    pub signing: SigningSettings,
    /// Without deliveries, updates and dead-letter reads for so long, the subscription is deleted.
    /// PT5M or more. Never when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_delete_on_idle: Option<IsoDuration>,
    /// The time at which the subscription is deleted, in the future. Never when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_time_utc: Option<IsoTimestamp>,
    /// Whether events are delivered, as it is shown. Ignored when written: writing a subscription
    /// makes it active, unless it is paused or its endpoint has yet to consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusView>,
    /// The events that wait, as they are shown where a subscription is read. Ignored when written,
    /// as are the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Box<WaitingView>>,
    /// The end of its last attempt of the last 24 hours, where it alone is shown and the delivery
    /// log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<Box<LastOutcomeView>>,
    /// Whether its webhooks arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Box<SubscriptionHealthView>>,
    /// Its own circuit, or that of its endpoint's link, as `GET /links` has it. Left out where both
    /// are well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<Box<LinkView>>,
}

/// The endpoint of a subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EndpointSettings {
    /// An absolute https URL, and no publish URL of this installation. Plain http and other ports
    /// only to addresses the operator allowed.
    #[schema(example = "https://billing.example.com/hooks")]
    pub url: String,
    /// The URL that gets the events while the link of `url` (its scheme, host and port), or the
    /// subscription on it, is in Retry. It is on another link, under the same rules. This
    /// endpoint is not asked for its consent: where `validation` is not `none`, it must be on
    /// the host of `url`. None when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://standby.example.com/hooks")]
    pub fallback_url: Option<String>,
    /// The time that the endpoint has to answer, PT1S to PT60S. PT30S when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<IsoDuration>,
    /// The most requests a second, over all workers together, 0.02 to 100000: counted in whole
    /// requests a minute. No bound when left out. An endpoint that allows less in its
    /// handshake gets less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.02, maximum = 100_000, example = 5)]
    pub max_requests_per_second: Option<f64>,
    /// The most requests that are open at once, over all workers together, 1 to 1000. Each costs
    /// requests to the store of states; no bound, and no such cost, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000, example = 5)]
    pub max_concurrent_requests: Option<u32>,
    /// Whether the endpoint must consent before it gets events, and how it is asked. `none` when
    /// left out.
    #[serde(default, skip_serializing_if = "EndpointValidation::is_none")]
    pub validation: EndpointValidation,
}

/// The way in which an endpoint is asked for its consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Validation)]
pub enum EndpointValidation {
    /// The endpoint is not asked.
    #[default]
    #[serde(rename = "none")]
    None,
    /// By the abuse protection of CloudEvents webhooks: `OPTIONS`, to which it consents with
    /// `WebHook-Allowed-Origin`.
    CloudEvents,
    /// By Event Grid's validation event, whose code it gives back.
    EventGrid,
}

impl SubscriptionSettings {
    /// The time at which an answer of its endpoint disabled it. `None` if that did not happen, or
    /// an operator did.
    pub(crate) fn gone_at(&self) -> Option<Timestamp> {
        let status = self.status.as_ref()?;
        let is_gone =
            status.state == StatusState::Disabled && status.reason.as_deref() == Some(GONE_REASON);
        is_gone.then_some(status.since.0)
    }

    /// For how long its new events become dead letters; `None` if it is not disabled.
    pub fn keeping_missed(&self) -> Option<KeepingMissed> {
        let status = self.status.as_ref()?;
        (status.state == StatusState::Disabled).then(|| {
            let wants_letters = self.dead_letter.enabled.unwrap_or(true);
            KeepingMissed::from_choice(self.while_disabled, wants_letters, self.gone_at())
        })
    }

    /// The subscription as it may be shown: with its name, its present status, and every secret
    /// masked.
    pub fn to_view(&self, name: &SubscriptionName, now: Timestamp) -> Self {
        Self {
            name: Some(name.clone()),
            delivery_headers: self
                .delivery_headers
                .iter()
                .map(DeliveryHeaderSettings::masked)
                .collect(),
            signing: self.signing.masked(),
            status: self.status.as_ref().map(|status| status.without_code(now)),
            ..self.clone()
        }
    }

    /// The settings alone, of a subscription as it is shown: what may be written again.
    pub fn settings_only(&self) -> Self {
        Self {
            name: None,
            status: None,
            waiting: None,
            last_outcome: None,
            health: None,
            circuit: None,
            ..self.clone()
        }
    }

    /// Whether requests may be sent to the endpoint: it has consented, or no consent is needed.
    pub fn may_be_sent_to(&self) -> bool {
        let consent = self
            .status
            .as_ref()
            .and_then(|status| status.consent.as_ref());
        self.endpoint.validation.is_none()
            || consent.is_some_and(|consent| consent.is_for(&self.endpoint))
    }
}

impl EndpointValidation {
    /// Whether the endpoint is not asked.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// The times of retries, and their number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RetryPolicySettings {
    /// The most attempts of an event, 1 to 30. 30 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delivery_attempts: Option<u16>,
    /// The time in which an attempt may begin, 1 to 1440 minutes. 1440 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_time_to_live_in_minutes: Option<u32>,
    /// The waits after attempt 1, 2, 3 …; the last one repeats. PT10S, PT30S, PT1M, PT5M, PT10M,
    /// PT30M, PT1H, PT3H, PT6H, PT12H when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Vec<IsoDuration>>,
    /// The least wait after a status, and `default` for every other status and no answer. 408
    /// PT2M, 429 PT30S, 503 PT30S, default PT10S when left out; what is written here is laid
    /// over that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wait_floors: BTreeMap<String, IsoDuration>,
    /// The statuses after which there is no retry. 400, 401, 403, 404, 413 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permanent_statuses: Option<Vec<u16>>,
    /// Whether 410 disables the subscription. True when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_on_gone: Option<bool>,
}

/// The number of events in one request. Either member turns batching on; the other then takes its
/// default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BatchingSettings {
    /// Most events in one request, 1 to 5000. 1 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_events_per_batch: Option<u32>,
    /// Preferred size of one request, 1 to 1024 kilobytes of 1024 bytes. 64 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_batch_size_in_kilobytes: Option<u32>,
    /// Whether an answer of success may name the events that failed, as
    /// `{"batchItemFailures":[{"itemIdentifier":"<event id>"}]}`: only those are tried again.
    /// False when left out. It needs batching, and does not turn it on; with it
    /// `maxEventsPerBatch` is 1000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_acknowledgement: Option<bool>,
}

/// The treatment of events that are given up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DeadLetterSettings {
    /// Whether events that are given up are kept. If not, they are dropped, counted and logged.
    /// True when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether expired events are kept too. True when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<bool>,
    /// The time between the last attempt and the object, PT0S to PT15M. PT5M when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<IsoDuration>,
    /// The time for which the bucket may refuse an event before it is dropped, PT5M to P14D. When
    /// left out, nothing is dropped: the write is retried until the bucket takes the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_after: Option<IsoDuration>,
}

/// The recovery of events that were given up while their endpoint was not well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecoverySettings {
    /// Whether they are sent again by themselves. When left out, true where `deadLetter.enabled`
    /// is true and the time to live of events is 24 hours: who sets a shorter one says that an
    /// event is worth nothing later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The time after its first acceptance in which an event is sent again, PT1H to P30D. P14D when
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<IsoDuration>,
    /// The most of these events a second, 1 to 1000. 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub rate_per_second: Option<u32>,
}

/// Whether a subscription's events are delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StatusView {
    /// The state.
    pub state: StatusState,
    /// The reason for the state, where it is not `Active`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The time since which the state holds.
    pub since: IsoTimestamp,
    /// The consent of the endpoint, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentView>,
    /// A handshake that has begun and has no end yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<HandshakeView>,
}

/// The consent of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ConsentView {
    /// The URL that was asked.
    pub url: String,
    /// The way in which the endpoint was asked.
    pub validation: EndpointValidation,
    /// The time of the consent.
    pub at: IsoTimestamp,
    /// The most requests a minute that the endpoint allowed. Left out where it named no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_requests_per_minute: Option<u32>,
}

/// A handshake that has begun and has no end yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HandshakeView {
    /// The code with which the endpoint proves itself. Never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub code: Option<SecretText>,
    /// The time until which the endpoint may consent.
    pub expires_at: IsoTimestamp,
    /// The time at which the endpoint answered that it may consent later. Left out until then:
    /// writing the subscription asks the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<IsoTimestamp>,
}
