//! The notice about a subscription that was disabled.

use serde::Serialize;

use super::envelope::{NoticeEnvelope, subscription_path};
use crate::events::{Event, EventError};
use crate::model::{EventSchema, SubscriptionName, Timestamp, TopicName};

/// The type of a notice about a subscription that takes no events any more.
pub const SUBSCRIPTION_DISABLED: &str = "dev.posthaste.subscription.disabled";

/// A subscription was disabled: its endpoint answered 410, or an operator said so.
#[derive(Debug, Clone, Copy)]
pub struct DisabledNotice<'a> {
    /// The topic it is on.
    pub topic: &'a TopicName,
    /// The name of the subscription.
    pub subscription: &'a SubscriptionName,
    /// Why, as its status says.
    pub reason: &'a str,
    /// The time since which it is disabled.
    pub since: Timestamp,
}

#[derive(Serialize)]
struct DisabledNoticeData<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
    reason: &'a str,
    since: String,
}

impl DisabledNotice<'_> {
    pub(super) fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        let topic = self.topic;
        let subscription = self.subscription;
        let envelope = NoticeEnvelope {
            id: format!(
                "{}.{}.disabled.{}",
                topic.folded(),
                subscription.folded(),
                self.since.as_millis()
            ),
            event_type: SUBSCRIPTION_DISABLED,
            source: subscription_path(topic, subscription),
            subject: subscription_path(topic, subscription),
            at: self.since,
            traceparent: None,
            text: format!("{topic}/{subscription} is disabled: {}.", self.reason),
        };
        let data = DisabledNoticeData {
            topic,
            subscription,
            reason: self.reason,
            since: self.since.to_string(),
        };
        envelope.with_data(&data, schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::notice::Notice;

    #[test]
    fn disabled_notice_names_subscription_and_reason() {
        let disabled = DisabledNotice {
            topic: &TopicName::parse("Orders").unwrap(),
            subscription: &SubscriptionName::parse("billing").unwrap(),
            reason: "the endpoint answered 410 Gone",
            since: Timestamp::from_millis(1_700_000_000_000),
        };
        let event = Notice::Disabled(disabled)
            .render_event(EventSchema::CloudEvents)
            .unwrap();
        assert_eq!(
            event.json(),
            r#"{"specversion":"1.0","id":"orders.billing.disabled.1700000000000","source":"/topics/Orders/subscriptions/billing","type":"dev.posthaste.subscription.disabled","subject":"/topics/Orders/subscriptions/billing","time":"2023-11-14T22:13:20.000Z","datacontenttype":"application/json","data":{"text":"Orders/billing is disabled: the endpoint answered 410 Gone.","topic":"Orders","subscription":"billing","reason":"the endpoint answered 410 Gone","since":"2023-11-14T22:13:20.000Z"}}"#
        );
    }
}
