//! Compiling what users write into what the rules use, or naming the member at fault.

mod delivery_headers;
mod endpoint;
mod filter;
mod policy;
mod problem;
mod schemas;
mod sender_headers;
mod topic_keys;

use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderName;
use indexmap::IndexMap;

use self::delivery_headers::delivery_headers;
#[cfg(test)]
pub(crate) use self::filter::filter as compile_filter;
use self::filter::filter;
use self::policy::{batching, dead_letter_policy, idle, lifetime, recovery, retry_policy};
pub use self::problem::{FilterProblem, Problem, SettingsError};
use self::problem::{count_in, duration_from, duration_in, error};
use self::schemas::{content_mode, delivery_schema, input_mapping};
pub use self::sender_headers::compile_sender_headers;
pub use self::topic_keys::check_topic_keys;
use super::{IsoTimestamp, SecretText, SigningSettings, SubscriptionSettings, TopicSettings};
use crate::attempt::{DeliveryHeader, SigningSecret};
use crate::events::is_extension_name;
use crate::filter::FilterSet;
use crate::model::{
    ATTEMPT_TIMEOUT_DEFAULT, ATTEMPT_TIMEOUT_MAX, Created, EVENT_TIME_TO_LIVE_MINUTES_MAX,
    EndpointUrl, SUBSCRIPTIONS_PER_TOPIC_MAX, Schema, SenderHeaders, Subscription,
    SubscriptionName, Timestamp, Topic, TopicKeys, TopicName,
};

/// Checks a topic and its subscriptions and fills in every default.
pub fn compile_topic(
    name: &TopicName,
    settings: &TopicSettings,
    keys: TopicKeys,
) -> Result<Topic, SettingsError> {
    if settings
        .name
        .as_ref()
        .is_some_and(|written| written != name)
    {
        return Err(error("name", Problem::Name(name.to_string())));
    }
    if let Some(ttl) = settings.default_time_to_live {
        duration_from("defaultTimeToLive", ttl.0, Duration::from_secs(1))?;
    }
    let idle = idle(settings.auto_delete_on_idle)?;
    let sender = settings.sender_headers.as_ref();
    let sender = sender.map(|written| compile_sender_headers("senderHeaders.", written));
    let sender = sender.transpose()?;
    count_in(
        "subscriptions",
        settings.subscriptions.len(),
        0,
        SUBSCRIPTIONS_PER_TOPIC_MAX,
    )?;
    let mut subscriptions = IndexMap::with_capacity(settings.subscriptions.len());
    for (subscription_name, written) in &settings.subscriptions {
        let within = |e: SettingsError| SettingsError {
            member: format!("subscriptions.{subscription_name}.{}", e.member),
            ..e
        };
        let mut compiled =
            compile_subscription(name, settings.input_schema, subscription_name, written)
                .map_err(within)?;
        if !lives_for_a_day(settings, written) {
            compiled.recovery.enabled = false;
        }
        compiled.lifetime.topic_idle = idle;
        compiled.delivery_log = settings.delivery_log;
        if let Some(sender) = &sender {
            no_header_twice(&compiled, sender).map_err(within)?;
            compiled.sender_headers = Some(sender.clone());
        }
        if subscriptions
            .insert(subscription_name.folded(), Arc::new(compiled))
            .is_some()
        {
            return Err(error(
                format!("subscriptions.{subscription_name}"),
                Problem::Duplicate,
            ));
        }
    }
    subscriptions.sort_unstable_keys();
    Ok(Topic {
        name: name.clone(),
        created_at: Timestamp::EPOCH,
        creation: None,
        input_schema: settings.input_schema,
        input_mapping: input_mapping(settings.input_schema, settings.input_mapping.as_ref())?,
        default_time_to_live: settings.default_time_to_live.map(|ttl| ttl.0),
        auto_delete_on_idle: idle,
        notices_topic: settings.notices_topic.clone(),
        delivery_failed_notices: settings.delivery_failed_notices.unwrap_or_default(),
        delivery_log: settings.delivery_log,
        record_unmatched: settings.record_unmatched,
        not_before_attribute: not_before_attribute(settings)?,
        keys,
        filters: FilterSet::of(
            subscriptions
                .values()
                .map(|subscription| subscription.filter.clone()),
        ),
        subscriptions,
    })
}

/// Checks that no header of a subscription has a name of those that say who sends.
fn no_header_twice(own: &Subscription, sender: &SenderHeaders) -> Result<(), SettingsError> {
    let is_taken = |name: &HeaderName| sender.own_names().any(|it| it == name);
    let mut names = own.delivery_headers.iter().map(DeliveryHeader::name);
    match names.position(is_taken) {
        Some(index) => Err(error(
            format!("deliveryHeaders[{index}].name"),
            Problem::HeaderOfSender,
        )),
        None => Ok(()),
    }
}

/// Checks the extension that has the time before which an event is not sent.
fn not_before_attribute(settings: &TopicSettings) -> Result<Option<String>, SettingsError> {
    let Some(name) = &settings.not_before_attribute else {
        return Ok(None);
    };
    let problem = if settings.input_schema != Schema::CloudEvents {
        Problem::NoExtensions(settings.input_schema)
    } else if !is_extension_name(name) {
        Problem::ExtensionName
    } else {
        return Ok(Some(name.clone()));
    };
    Err(error("notBeforeAttribute", problem))
}

/// Whether the topic leaves events the day in which their outage may end, or recovery was asked
/// for. Where it does not, an event is worth nothing later.
fn lives_for_a_day(topic: &TopicSettings, written: &SubscriptionSettings) -> bool {
    let asked = written.recovery.and_then(|recovery| recovery.enabled);
    let day = Duration::from_mins(u64::from(EVENT_TIME_TO_LIVE_MINUTES_MAX));
    asked.is_some() || topic.default_time_to_live.is_none_or(|ttl| ttl.0 >= day)
}

/// Checks a subscription and fills in every default.
pub fn compile_subscription(
    topic: &TopicName,
    input_schema: Schema,
    name: &SubscriptionName,
    settings: &SubscriptionSettings,
) -> Result<Subscription, SettingsError> {
    if settings
        .name
        .as_ref()
        .is_some_and(|written| written != name)
    {
        return Err(error("name", Problem::Name(name.to_string())));
    }
    let url = EndpointUrl::parse(&settings.endpoint.url)
        .map_err(|e| error("endpoint.url", Problem::Url(e)))?;
    let timeout = settings
        .endpoint
        .timeout
        .map_or(ATTEMPT_TIMEOUT_DEFAULT, |written| written.0);
    duration_in(
        "endpoint.timeout",
        timeout,
        Duration::from_secs(1),
        ATTEMPT_TIMEOUT_MAX,
    )?;
    let delivery_schema = delivery_schema(input_schema, settings.delivery_schema)?;
    let (status, pending_until) = endpoint::status(settings.status.as_ref());
    let batching = batching(settings.batching)?;
    let content_mode = content_mode(settings.content_mode, delivery_schema, batching)?;
    Ok(Subscription {
        topic: topic.clone(),
        name: name.clone(),
        created: Created::UNKNOWN,
        fallback: endpoint::fallback(&settings.endpoint, &url)?,
        endpoint: url,
        timeout,
        delivery_schema,
        content_mode,
        filter: Arc::new(filter(&settings.filter, input_schema)?),
        retry: retry_policy(&settings.retry_policy)?,
        batching,
        dead_letter: dead_letter_policy(&settings.dead_letter)?,
        recovery: recovery(settings)?,
        delivery_headers: delivery_headers(&settings.delivery_headers, batching)?,
        sender_headers: None,
        signing: signing(&settings.signing)?,
        lifetime: lifetime(settings)?,
        delivery_log: None,
        status,
        while_disabled: settings.while_disabled,
        gone_at: settings.gone_at(),
        status_since: settings.status.as_ref().map(|view| view.since.0),
        pending_until,
        rate: endpoint::rate(&settings.endpoint, settings.status.as_ref())?,
        concurrency: endpoint::concurrency(&settings.endpoint)?,
    })
}

/// Checks the secrets. Those that have ended are kept: an attempt's own time decides, not the time
/// of this look.
fn signing(settings: &SigningSettings) -> Result<Vec<SigningSecret>, SettingsError> {
    let count = settings.secrets.as_ref().map_or(0, Vec::len);
    count_in("signing.secrets", count, 0, settings.secrets_max())?;
    let parse = |(index, (text, end)): (usize, (SecretText, Option<IsoTimestamp>))| {
        let member = format!("signing.secrets[{index}]");
        if text.is_masked() {
            return Err(error(member, Problem::NothingMasked));
        }
        let secret =
            SigningSecret::parse(text.expose()).map_err(|e| error(member, Problem::Secret(e)))?;
        Ok(secret.until(end.map(|end| end.0)))
    };
    settings.timed().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests;
