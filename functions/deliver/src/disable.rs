//! Disabling a subscription whose endpoint answered 410.

use std::convert::Infallible;
use std::sync::Arc;

use posthaste_core::api::notice::{Disabled, Notice};
use posthaste_core::api::{StatusState, StatusView};
use posthaste_core::model::{EndpointUrl, Subscription, Timestamp};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, Object, Ports};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::{Edit, UpdateError, stop_at, update};

use crate::invocation::Invocation;
use crate::notify::NoticePorts;

/// The reason in the status and in the notice.
const REASON: &str = "the endpoint answered 410 Gone";

/// Disables subscriptions.
pub(crate) struct Disabler<P: Ports> {
    pub(crate) ports: Arc<NoticePorts<P>>,
}

impl<P: Ports> Disabler<P> {
    /// Disables the subscription. If that fails or runs out of time, the next event gets the same
    /// answer and tries again.
    pub(crate) async fn disable_subscription(
        &self,
        invocation: &Invocation,
        subscription: &Subscription,
    ) {
        let disabled = catch_panic(self.disable(subscription));
        if let Some(Err(_)) =
            stop_at(&self.ports.clock, invocation.deadlines.attempts(), disabled).await
        {
            let (topic, name) = (&subscription.topic, &subscription.name);
            tracing::error!(%topic, subscription = %name, "disabling a subscription panicked");
        }
    }

    async fn disable(&self, subscription: &Subscription) {
        let (topic, name) = (&subscription.topic, &subscription.name);
        match self.write(subscription).await {
            Ok(None) => {}
            Ok(Some(since)) => {
                tracing::warn!(%topic, subscription = %name, "subscription disabled: its endpoint is gone");
                self.notify(subscription, since).await;
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(%topic, subscription = %name, error, "subscription not disabled");
            }
        }
    }

    /// The time since which it is disabled; `None` if it already was.
    async fn write(
        &self,
        subscription: &Subscription,
    ) -> Result<Option<Timestamp>, UpdateError<Infallible>> {
        let edit = |object: Option<Object>| {
            let since = self.ports.clock.now();
            let record = object.and_then(|object| disabled(&object, subscription, since));
            Ok(record.map_or(Edit::Keep(None), |record| {
                Edit::Write(record.render(), Some(since))
            }))
        };
        Ok(update(
            &*self.ports.state,
            &layout::topic(&subscription.topic),
            edit,
        )
        .await?
        .answer)
    }

    /// Sends the notice, after the record was changed. A notice that cannot be written is not tried
    /// again, because the endpoint answers no more events of this subscription.
    async fn notify(&self, subscription: &Subscription, since: Timestamp) {
        let (topic, name) = (&subscription.topic, &subscription.name);
        let disabled = Notice::Disabled(Disabled {
            topic,
            subscription: name,
            reason: REASON,
            since,
        });
        if let Err(error) = self.ports.notifier().tell(topic, &[disabled]).await {
            tracing::error!(
                %topic, subscription = %name, error = &error as &dyn std::error::Error,
                "notice of a disabled subscription not sent"
            );
        }
    }
}

/// The record with the subscription disabled; `None` if there is nothing to change, because the
/// subscription is missing, is disabled already, or names another endpoint by now.
fn disabled(object: &Object, subscription: &Subscription, since: Timestamp) -> Option<TopicRecord> {
    let mut record = TopicRecord::parse(&object.bytes).ok()?;
    let folded = subscription.name.folded();
    let (name, _) = record
        .settings
        .subscriptions
        .iter()
        .find(|(name, _)| name.folded() == folded)?;
    let name = name.clone();
    // It was created again: the answer was to another one.
    let is_other = !record
        .created(&name)
        .accepted(subscription.created.identity(), since);
    let settings = record.settings.subscriptions.get_mut(&name)?;
    let is_disabled = settings
        .status
        .as_ref()
        .is_some_and(|status| status.state == StatusState::Disabled);
    let is_same_endpoint =
        EndpointUrl::parse(&settings.endpoint.url).as_ref() == Ok(&subscription.endpoint);
    if is_disabled || !is_same_endpoint || is_other {
        return None;
    }
    let reason = Some(REASON.to_owned());
    settings.status = Some(StatusView::new(StatusState::Disabled, reason, since));
    Some(record)
}

#[cfg(test)]
mod tests {
    use posthaste_core::api::TopicSettings;
    use posthaste_ports::{ETag, ObjectStore, PutCondition};
    use posthaste_testkit::Operation;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{START, TestPorts, World, subscription};

    /// A record of the topic with one subscription of these settings.
    fn record(name: &str, url: &str, more: &Value) -> Object {
        let mut settings = json!({ "endpoint": { "url": url } });
        settings
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let mut topic: TopicSettings = serde_json::from_value(json!({})).unwrap();
        let name = posthaste_core::model::SubscriptionName::parse(name).unwrap();
        topic
            .subscriptions
            .insert(name, serde_json::from_value(settings).unwrap());
        let bytes = crate::testing::topic_record(topic).render();
        Object {
            bytes,
            etag: ETag("1".to_owned()),
        }
    }

    const URL: &str = "https://billing.example.com/hooks";

    #[test]
    fn the_subscription_is_disabled_whatever_the_case_of_its_name() {
        for name in ["billing", "Billing"] {
            let record = disabled(
                &record(name, URL, &json!({})),
                &subscription(json!({})),
                START,
            )
            .unwrap();
            let settings = record.settings.subscriptions.values().next().unwrap();
            let status = settings.status.as_ref().unwrap();
            assert_eq!(
                (status.state, status.reason.as_deref()),
                (StatusState::Disabled, Some(REASON))
            );
        }
    }

    #[test]
    fn a_subscription_that_is_disabled_missing_or_moved_is_left_as_it_is() {
        let check = |object: &Object| {
            assert!(disabled(object, &subscription(json!({})), START).is_none());
        };
        check(&record("other", URL, &json!({})));
        check(&record(
            "billing",
            "https://billing.example.com/elsewhere",
            &json!({}),
        ));
        let status = StatusView::new(StatusState::Disabled, None, START);
        check(&record(
            "billing",
            URL,
            &json!({ "status": serde_json::to_value(status).unwrap() }),
        ));
        check(&Object {
            bytes: bytes::Bytes::from_static(b"?"),
            etag: ETag("1".to_owned()),
        });
    }

    fn disabler(world: &World) -> Disabler<TestPorts> {
        Disabler {
            ports: world.notice_ports(),
        }
    }

    #[tokio::test]
    async fn a_subscription_is_disabled_once() {
        let (world, own) = (World::new(), subscription(json!({})));
        let key = layout::topic(&own.topic);
        let bytes = record("billing", URL, &json!({})).bytes;
        world
            .memory
            .put(&key, bytes, PutCondition::Always)
            .await
            .unwrap();
        for _ in 0..2 {
            disabler(&world)
                .disable_subscription(&world.invocation(Vec::new()), &own)
                .await;
        }
        assert_eq!(world.calls.count(Operation::Put), 1);
    }

    #[tokio::test]
    async fn nothing_is_written_after_the_time_of_attempts() {
        let (world, own) = (World::new(), subscription(json!({})));
        let invocation = world.invocation(Vec::new());
        world.clock.advance(crate::testing::INVOCATION);
        disabler(&world)
            .disable_subscription(&invocation, &own)
            .await;
        assert_eq!(world.calls.all().len(), 0);
    }
}
