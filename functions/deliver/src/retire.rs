//! Disabling a subscription whose endpoint answered 410.

use std::sync::Arc;

use posthaste_core::api::{StatusState, StatusView};
use posthaste_core::model::endpoint::EndpointUrl;
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::Subscription;
use posthaste_core::stored::layout;
use posthaste_core::stored::topic::TopicRecord;
use posthaste_ports::{Clock, ErrorKind, Object, ObjectStore, PortError, Ports, PutCondition};

use crate::Deliver;

/// How often a lost race for the topic's record is run again. Whoever wins may be retiring the same subscription.
const TRIES_MAX: u32 = 5;

/// What the status and the notice say.
const REASON: &str = "the endpoint answered 410 Gone";

impl<P: Ports> Deliver<P> {
    /// Disables the subscription. If that cannot be written, its next event meets the same answer and tries again.
    pub(crate) async fn retire(&self, subscription: &Arc<Subscription>) {
        match self.write_disabled(subscription).await {
            Ok(None) => {}
            Ok(Some(since)) => {
                tracing::warn!(topic = %subscription.topic, subscription = %subscription.name, "subscription disabled: its endpoint is gone");
                self.announce_disabled(subscription, REASON, since).await;
            }
            Err(error) => {
                tracing::error!(topic = %subscription.topic, subscription = %subscription.name, error = &error as &dyn std::error::Error, "subscription not disabled");
            }
        }
    }

    /// Answers since when it is disabled, if it was not before.
    async fn write_disabled(&self, subscription: &Subscription) -> Result<Option<Timestamp>, PortError> {
        let key = layout::topic(&subscription.topic);
        let mut tries = 0;
        loop {
            let Some(object) = self.ports.state.get(&key).await? else { return Ok(None) };
            let since = self.ports.clock.now();
            let Some(record) = disabled(&object, subscription, since) else { return Ok(None) };
            tries += 1;
            match self.ports.state.put(&key, record.render(), PutCondition::IfMatch(object.etag)).await {
                Err(error) if error.kind == ErrorKind::PreconditionFailed && tries < TRIES_MAX => {}
                result => return result.map(|_| Some(since)),
            }
        }
    }
}

/// The record with the subscription disabled; `None` if there is nothing to change, because it is not there, is
/// disabled already, or names another endpoint by now.
fn disabled(object: &Object, subscription: &Subscription, since: Timestamp) -> Option<TopicRecord> {
    let mut record = TopicRecord::parse(&object.bytes).ok()?;
    let folded = subscription.name.folded();
    let (name, _) = record.settings.subscriptions.iter().find(|(name, _)| name.folded() == folded)?;
    let name = name.clone();
    // It was created again: the answer was to another one.
    let is_other = !record.created(&name).accepted(subscription.created.identity(), since);
    let settings = record.settings.subscriptions.get_mut(&name)?;
    let is_disabled = settings.status.as_ref().is_some_and(|status| status.state == StatusState::Disabled);
    let is_same_endpoint = EndpointUrl::parse(&settings.endpoint.url).as_ref() == Ok(&subscription.endpoint);
    if is_disabled || !is_same_endpoint || is_other {
        return None;
    }
    let reason = Some(REASON.to_owned());
    settings.status = Some(StatusView::new(StatusState::Disabled, reason, since));
    Some(record)
}
