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

use indexmap::IndexMap;

use self::delivery_headers::delivery_headers;
pub(crate) use self::filter::compile_filter;
use self::policy::{
    compile_batching, compile_idle, compile_lifetime, compile_recovery, dead_letter_policy,
    retry_policy,
};
pub use self::problem::{FilterProblem, SettingsError, SettingsProblem};
use self::problem::{count_in, duration_from, duration_in, settings_error};
use self::schemas::{content_mode, delivery_schema, input_mapping};
pub use self::sender_headers::compile_sender_headers;
pub use self::topic_keys::check_topic_keys;
use super::{SecretText, SigningSettings, SubscriptionSettings, TopicSettings};
use crate::events::is_extension_name;
use crate::model::filter::FilterSet;
use crate::model::{
    ATTEMPT_TIMEOUT_DEFAULT, ATTEMPT_TIMEOUT_MAX, DeliveryHeader, EVENT_TIME_TO_LIVE_MINUTES_MAX,
    EndpointUrl, EventSchema, SUBSCRIPTIONS_PER_TOPIC_MAX, SenderHeaders, SigningSecret,
    Subscription, SubscriptionCreation, SubscriptionName, Timestamp, Topic, TopicKeys, TopicName,
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
        return Err(settings_error(
            "name",
            SettingsProblem::Name(name.to_string()),
        ));
    }
    if let Some(ttl) = settings.default_time_to_live {
        duration_from("defaultTimeToLive", ttl.0, Duration::from_secs(1))?;
    }
    let idle = compile_idle(settings.auto_delete_on_idle)?;
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
        let mut compiled =
            compile_subscription(name, settings.input_schema, subscription_name, written)
                .map_err(|error| error_in_subscription(subscription_name, error))?;
        if !lives_for_a_day(settings, written) {
            compiled.recovery.enabled = false;
        }
        compiled.lifetime.topic_idle = idle;
        compiled.delivery_log = settings.delivery_log;
        if let Some(sender) = &sender {
            no_header_twice(&compiled, sender)
                .map_err(|error| error_in_subscription(subscription_name, error))?;
            compiled.sender_headers = Some(sender.clone());
        }
        if subscriptions
            .insert(subscription_name.folded(), Arc::new(compiled))
            .is_some()
        {
            return Err(settings_error(
                format!("subscriptions.{subscription_name}"),
                SettingsProblem::Duplicate,
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
        filters: FilterSet::from_filters(
            subscriptions
                .values()
                .map(|subscription| subscription.filter.clone()),
        ),
        subscriptions,
    })
}

fn error_in_subscription(name: &SubscriptionName, error: SettingsError) -> SettingsError {
    SettingsError {
        member: format!("subscriptions.{name}.{}", error.member),
        ..error
    }
}

/// Checks that no header of a subscription has the name of a header that identifies the sender.
fn no_header_twice(own: &Subscription, sender: &SenderHeaders) -> Result<(), SettingsError> {
    let mut names = own.delivery_headers.iter().map(DeliveryHeader::name);
    let taken = names.position(|name| sender.own_names().any(|it| it == name));
    match taken {
        Some(index) => Err(settings_error(
            format!("deliveryHeaders[{index}].name"),
            SettingsProblem::HeaderOfSender,
        )),
        None => Ok(()),
    }
}

/// Checks the extension that has the time before which an event is not sent.
fn not_before_attribute(settings: &TopicSettings) -> Result<Option<String>, SettingsError> {
    let Some(name) = &settings.not_before_attribute else {
        return Ok(None);
    };
    let problem = if settings.input_schema != EventSchema::CloudEvents {
        SettingsProblem::NoExtensions(settings.input_schema)
    } else if !is_extension_name(name) {
        SettingsProblem::ExtensionName
    } else {
        return Ok(Some(name.clone()));
    };
    Err(settings_error("notBeforeAttribute", problem))
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
    input_schema: EventSchema,
    name: &SubscriptionName,
    settings: &SubscriptionSettings,
) -> Result<Subscription, SettingsError> {
    if settings
        .name
        .as_ref()
        .is_some_and(|written| written != name)
    {
        return Err(settings_error(
            "name",
            SettingsProblem::Name(name.to_string()),
        ));
    }
    let url = EndpointUrl::parse(&settings.endpoint.url)
        .map_err(|e| settings_error("endpoint.url", SettingsProblem::Url(e)))?;
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
    let (status, pending_until) = endpoint::compile_status(settings.status.as_ref());
    let batching = compile_batching(settings.batching)?;
    let content_mode = content_mode(settings.content_mode, delivery_schema, batching)?;
    Ok(Subscription {
        topic: topic.clone(),
        name: name.clone(),
        created: SubscriptionCreation::UNKNOWN,
        fallback: endpoint::compile_fallback(&settings.endpoint, &url)?,
        endpoint: url,
        timeout,
        delivery_schema,
        content_mode,
        filter: Arc::new(compile_filter(&settings.filter, input_schema)?),
        retry: retry_policy(&settings.retry_policy)?,
        batching,
        dead_letter: dead_letter_policy(&settings.dead_letter)?,
        recovery: compile_recovery(settings)?,
        delivery_headers: delivery_headers(&settings.delivery_headers, batching)?,
        sender_headers: None,
        signing: compile_signing(&settings.signing)?,
        lifetime: compile_lifetime(settings)?,
        delivery_log: None,
        status,
        while_disabled: settings.while_disabled,
        gone_at: settings.gone_at(),
        status_since: settings.status.as_ref().map(|view| view.since.0),
        pending_until,
        rate: endpoint::compile_rate(&settings.endpoint, settings.status.as_ref())?,
        concurrency: endpoint::compile_concurrency(&settings.endpoint)?,
    })
}

/// Checks the secrets. Those that have ended are kept: an attempt's own time decides, not the time
/// of this look.
fn compile_signing(settings: &SigningSettings) -> Result<Vec<SigningSecret>, SettingsError> {
    let count = settings.secrets.as_ref().map_or(0, Vec::len);
    count_in("signing.secrets", count, 0, settings.secrets_max())?;
    let mut secrets = Vec::with_capacity(count);
    for (index, (text, end)) in settings.timed_secrets().enumerate() {
        let secret = compile_secret(&format!("signing.secrets[{index}]"), &text)?;
        secrets.push(secret.with_expiry(end.map(|end| end.0)));
    }
    Ok(secrets)
}

fn compile_secret(member: &str, text: &SecretText) -> Result<SigningSecret, SettingsError> {
    if text.is_masked() {
        return Err(settings_error(member, SettingsProblem::NothingMasked));
    }
    SigningSecret::parse(text.expose())
        .map_err(|error| settings_error(member, SettingsProblem::Secret(error)))
}

#[cfg(test)]
mod tests;
