//! The notice that dead letters of an outage are sent again by themselves.

use serde::Serialize;

use super::envelope::{NoticeEnvelope, subscription_path};
use crate::api::RecoveryView;
use crate::events::{Event, EventError};
use crate::model::{EventSchema, SubscriptionName, TopicName};

/// The type of a notice about a subscription whose dead letters are sent again by themselves.
pub const SUBSCRIPTION_RECOVERING: &str = "dev.posthaste.subscription.recovering";

/// Dead letters of an outage are sent again by themselves.
#[derive(Debug, Clone, Copy)]
pub struct RecoveryNotice<'a> {
    /// The recovery.
    pub recovery: &'a RecoveryView,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecoveryNoticeData<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
    outage_since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    letters: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'a str>,
}

impl RecoveryNotice<'_> {
    pub(super) fn render_event(self, schema: EventSchema) -> Result<Event, EventError> {
        let view = self.recovery;
        let topic = &view.topic;
        let subscription = &view.subscription;
        let since = view.since.map(|since| since.0);
        let outage_since = view.outage_since.0;
        let envelope = NoticeEnvelope {
            // An outage begins once at a time.
            id: format!(
                "{}.{}.recovering.{}",
                topic.folded(),
                subscription.folded(),
                outage_since.as_millis()
            ),
            event_type: SUBSCRIPTION_RECOVERING,
            source: subscription_path(topic, subscription),
            subject: subscription_path(topic, subscription),
            at: since.unwrap_or(outage_since),
            traceparent: None,
            text: format!("{}.", view.summary_line()),
        };
        let data = RecoveryNoticeData {
            topic,
            subscription,
            outage_since: outage_since.to_string(),
            since: since.map(|since| since.to_string()),
            letters: view.letters,
            replay: view.replay.as_deref(),
        };
        envelope.with_data(&data, schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::IsoTimestamp;
    use crate::api::notice::Notice;
    use crate::model::Timestamp;

    #[test]
    fn notice_says_how_many_letters_of_which_outage_recover() {
        let at = |ms| IsoTimestamp(Timestamp::from_millis(ms));
        let recovery = RecoveryView {
            topic: TopicName::parse("Orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            outage_since: at(1_700_000_000_000),
            letters: 5_000,
            queued: 0,
            replay: Some("r".to_owned()),
            since: Some(at(1_700_400_000_000)),
            waits: false,
        };
        let recovering = RecoveryNotice {
            recovery: &recovery,
        };
        let event = Notice::Recovering(recovering)
            .render_event(EventSchema::CloudEvents)
            .unwrap();
        assert_eq!(
            event.json(),
            r#"{"specversion":"1.0","id":"orders.billing.recovering.1700000000000","source":"/topics/Orders/subscriptions/billing","type":"dev.posthaste.subscription.recovering","subject":"/topics/Orders/subscriptions/billing","time":"2023-11-19T13:20:00.000Z","datacontenttype":"application/json","data":{"text":"Orders/billing recovers by itself since 2023-11-19T13:20:00.000Z, 0 of 5,000.","topic":"Orders","subscription":"billing","outageSince":"2023-11-14T22:13:20.000Z","since":"2023-11-19T13:20:00.000Z","letters":5000,"replay":"r"}}"#
        );
    }
}
