//! The record of an event's acceptance: which subscriptions it is meant for, where no message says
//! so, or none is worked on soon.

use super::{Kind, LogResult, Origin, Record, RecordText, Wait, log_text, record_id};
use crate::events::Event;
use crate::model::{Timestamp, TopicName};

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
    /// The subscriptions that it is meant for ([`matched_names`](crate::model::matched_names));
    /// empty for none.
    pub matched: &'a str,
}

impl AcceptedEvent<'_> {
    /// The record, ready for its message. It is of no subscription. Where the same request is
    /// published again, it has the same keys, and so does each time the record of an event.
    pub fn record(&self) -> Result<RecordText, serde_json::Error> {
        let Self {
            topic,
            event,
            key,
            at,
            matched,
        } = *self;
        let result = if matched.is_empty() {
            LogResult::Unmatched
        } else {
            LogResult::Pending
        };
        let record = Record {
            record_id: record_id("", 0, key, 0, Kind::Accepted, at),
            time: at,
            kind: Kind::Accepted,
            topic: topic.folded(),
            delivery_key: key.to_owned(),
            event_id: Some(log_text(event.id())),
            event_source: event.source().map(log_text),
            event_type: Some(log_text(event.event_type())),
            event_subject: event.subject().map(log_text),
            schema: Some(event.schema().to_string()),
            origin: Origin::First,
            result,
            wait: Wait::None,
            accepted_at: at,
            traceparent: event.traceparent().map(str::to_owned),
            matched: (!matched.is_empty()).then(|| matched.to_owned()),
            ..Record::default()
        };
        RecordText::new(&record, None)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::delivery_log::{join_records, parse_records};
    use crate::model::Schema;

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn record(matched: &str) -> Record {
        let json =
            r#"{"specversion":"1.0","id":"o-1","source":"/shop","type":"paid","subject":"s"}"#;
        let event = Event::parse(Schema::CloudEvents, Bytes::from_static(json.as_bytes())).unwrap();
        let accepted = AcceptedEvent {
            topic: &TopicName::parse("Orders").unwrap(),
            event: &event,
            key: "0b0e-0",
            at: AT,
            matched,
        };
        let text = accepted.record().unwrap();
        let bodies = join_records([text].iter());
        parse_records(&bodies[0]).unwrap().remove(0)
    }

    #[test]
    fn record_names_the_event_and_its_subscriptions() {
        let record = record("billing,shipping");
        let words = (record.kind, record.result, record.attempt, record.time);
        assert_eq!(words, (Kind::Accepted, LogResult::Pending, 0, AT));
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
