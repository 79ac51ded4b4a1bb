//! The record of an event's acceptance: which subscriptions it is meant for, where no message says
//! so, or none is worked on soon.

use super::{
    AttemptOrigin, LogRecord, LogResult, RecordKind, RecordText, WaitTransition, log_text,
    record_id,
};
use crate::events::Event;
use crate::model::{DeadLetterReason, Subscription, Timestamp, TopicName};

/// An event that was accepted.
#[derive(Debug, Clone, Copy)]
pub struct AcceptedEvent<'a> {
    /// The topic.
    pub topic: &'a TopicName,
    /// The event.
    pub event: &'a Event,
    /// The key of its deliveries.
    pub key: &'a str,
    /// The time at which it was accepted.
    pub at: Timestamp,
    /// The time before which it is not sent, if it was published for later.
    pub not_before: Option<Timestamp>,
}

impl AcceptedEvent<'_> {
    /// The record that it is meant for these subscriptions
    /// ([`matched_names`](crate::model::matched_names)), ready for its message. It is of no
    /// subscription. Where the same request is published again, it has the same keys, and so does
    /// each time the record of an event.
    pub fn render_record(&self, matched: &str) -> Result<RecordText, serde_json::Error> {
        let result = if matched.is_empty() {
            LogResult::Unmatched
        } else {
            LogResult::Pending
        };
        let record = LogRecord {
            result,
            matched: (!matched.is_empty()).then(|| matched.to_owned()),
            ..self.subscription_record("", RecordKind::Accepted)
        };
        RecordText::new(&record, None)
    }

    /// The record that a disabled subscription skips it.
    pub fn skipped_by(&self, subscription: &Subscription) -> Result<RecordText, serde_json::Error> {
        let identity = subscription.created.identity();
        let record = LogRecord {
            result: LogResult::Dropped,
            identity: identity.map(|identity| identity.to_string()),
            reason: Some(DeadLetterReason::SubscriptionDisabled.as_str().to_owned()),
            ..self.subscription_record(&subscription.name.folded_text(), RecordKind::Dropped)
        };
        RecordText::new(&record, None)
    }

    fn subscription_record(&self, subscription: &str, kind: RecordKind) -> LogRecord {
        let Self {
            topic,
            event,
            key,
            at,
            not_before,
        } = *self;
        LogRecord {
            record_id: record_id(subscription, 0, key, 0, kind, at),
            time: at,
            kind,
            subscription: subscription.to_owned(),
            topic: topic.folded(),
            delivery_key: key.to_owned(),
            event_id: Some(log_text(event.id())),
            event_source: event.source().map(log_text),
            event_type: Some(log_text(event.event_type())),
            event_subject: event.subject().map(log_text),
            schema: Some(event.schema().to_string()),
            origin: AttemptOrigin::First,
            wait: WaitTransition::None,
            next_attempt_at: not_before.map(Timestamp::rounded_up_to_minute),
            accepted_at: at,
            traceparent: event.traceparent().map(str::to_owned),
            ..LogRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::delivery_log::{join_records, parse_records};
    use crate::model::EventSchema;

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn record(matched: &str) -> LogRecord {
        let json =
            r#"{"specversion":"1.0","id":"o-1","source":"/shop","type":"paid","subject":"s"}"#;
        let event = Event::parse(
            EventSchema::CloudEvents,
            Bytes::from_static(json.as_bytes()),
        )
        .unwrap();
        let accepted = AcceptedEvent {
            topic: &TopicName::parse("Orders").unwrap(),
            event: &event,
            key: "0b0e-0",
            at: AT,
            not_before: None,
        };
        let text = accepted.render_record(matched).unwrap();
        let bodies = join_records([text].iter());
        parse_records(&bodies[0]).unwrap().remove(0)
    }

    #[test]
    fn record_names_the_event_and_its_subscriptions() {
        let record = record("billing,shipping");
        let words = (record.kind, record.result, record.attempt, record.time);
        assert_eq!(words, (RecordKind::Accepted, LogResult::Pending, 0, AT));
        let of = [&*record.topic, &record.subscription, &record.delivery_key];
        assert_eq!(of, ["orders", "", "0b0e-0"]);
        let names = [
            record.event_id,
            record.event_source,
            record.event_type,
            record.event_subject,
            record.schema,
            record.matched,
        ];
        let expected = [
            "o-1",
            "/shop",
            "paid",
            "s",
            "CloudEvents",
            "billing,shipping",
        ];
        assert_eq!(names.map(Option::unwrap), expected);
    }

    #[test]
    fn event_that_matched_nothing_is_unmatched() {
        let record = record("");
        assert_eq!(
            (record.result, record.matched),
            (LogResult::Unmatched, None)
        );
    }
}
