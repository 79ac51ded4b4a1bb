//! The event of a test attempt: the caller's, or a sample in the schema that the subscription
//! receives.

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::events::{Event, EventError};
use crate::model::{EVENT_BYTES_MAX, EventSchema, Timestamp, TopicName};

/// The type of a sample.
pub const TEST_EVENT_TYPE: &str = "dev.posthaste.test";

/// The reason why an event cannot be sent as a test.
#[derive(Debug, thiserror::Error)]
pub enum TestEventError {
    /// Larger than any event that is accepted.
    #[error("larger than {EVENT_BYTES_MAX} bytes")]
    TooLarge,
    /// Not as its schema says.
    #[error("not an event of the schema that the subscription receives")]
    Event(#[source] EventError),
    /// Custom events are objects.
    #[error("expected a JSON object")]
    NotAnObject,
    /// One event is sent, so no other number of them is taken.
    #[error("expected one event, or an array of one; found {0}")]
    NotOne(usize),
}

/// The caller's event, one object in the schema that the subscription receives, or an array of one.
/// The text is sent as it is.
pub fn check_given_event(schema: EventSchema, text: &Bytes) -> Result<Bytes, TestEventError> {
    if text.len() > EVENT_BYTES_MAX {
        return Err(TestEventError::TooLarge);
    }
    let text = only_event(text)?;
    if schema != EventSchema::Custom {
        return Event::parse(schema, text)
            .map(Event::into_json)
            .map_err(TestEventError::Event);
    }
    match serde_json::from_slice::<&RawValue>(&text) {
        Ok(json) if json.get().starts_with('{') => Ok(text),
        Ok(_) | Err(_) => Err(TestEventError::NotAnObject),
    }
}

/// The text of the only event of an array, as publishers of Event Grid's schema write it; of
/// anything else, the text.
fn only_event(text: &Bytes) -> Result<Bytes, TestEventError> {
    let text = text.slice_ref(text.trim_ascii());
    match serde_json::from_slice::<Vec<&RawValue>>(&text).as_deref() {
        Ok([event]) => Ok(text.slice_ref(event.get().as_bytes())),
        Ok(events) => Err(TestEventError::NotOne(events.len())),
        Err(_) => Ok(text),
    }
}

/// A sample. `id` is a UUID.
pub fn sample_event(schema: EventSchema, topic: &TopicName, id: &str, now: Timestamp) -> Bytes {
    let source = format!("/topics/{topic}");
    let data = json!({ "message": "a test from posthaste" });
    let event = match schema {
        EventSchema::CloudEvents => json!({
            "specversion": "1.0", "id": id, "source": source, "type": TEST_EVENT_TYPE,
            "time": now.to_string(), "datacontenttype": "application/json", "data": data,
        }),
        EventSchema::EventGrid => json!({
            "id": id, "topic": source, "subject": "test", "eventType": TEST_EVENT_TYPE,
            "eventTime": now.to_string(), "data": data, "dataVersion": "1.0", "metadataVersion": "1",
        }),
        EventSchema::Custom => {
            json!({ "id": id, "type": TEST_EVENT_TYPE, "time": now.to_string(), "data": data })
        }
    };
    Bytes::from(event.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_an_event_of_its_schema() {
        let topic = TopicName::parse("orders").unwrap();
        for schema in EventSchema::ALL {
            let event = sample_event(
                schema,
                &topic,
                "1",
                Timestamp::from_millis(1_795_256_100_000),
            );
            assert_eq!(
                check_given_event(schema, &event).unwrap(),
                event,
                "{schema:?}"
            );
        }
    }

    #[test]
    fn an_array_of_one_is_that_event() {
        let topic = TopicName::parse("orders").unwrap();
        for schema in EventSchema::ALL {
            let event = sample_event(
                schema,
                &topic,
                "1",
                Timestamp::from_millis(1_795_256_100_000),
            );
            let array = Bytes::from([b" [\n ", &event[..], b" ]\n"].concat());
            assert_eq!(
                check_given_event(schema, &array).unwrap(),
                event,
                "{schema:?}"
            );
        }
    }

    /// Event that does not fit the schema that the subscription receives is refused.
    #[test]
    fn invalid_test_event_is_refused() {
        let check = |schema, text: &'static str, expected: &str| {
            let error =
                check_given_event(schema, &Bytes::from_static(text.as_bytes())).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        };
        let not_of_it = "not an event of the schema that the subscription receives";
        check(EventSchema::CloudEvents, "{}", not_of_it);
        check(
            EventSchema::EventGrid,
            "[]",
            "expected one event, or an array of one; found 0",
        );
        check(
            EventSchema::Custom,
            "[{},{}]",
            "expected one event, or an array of one; found 2",
        );
        check(EventSchema::CloudEvents, "[{}]", not_of_it);
        check(EventSchema::Custom, "[[]]", "expected a JSON object");
        check(EventSchema::Custom, "{", "expected a JSON object");
        let large = Bytes::from(vec![b' '; EVENT_BYTES_MAX + 1]);
        assert!(matches!(
            check_given_event(EventSchema::Custom, &large),
            Err(TestEventError::TooLarge)
        ));
        assert_eq!(
            check_given_event(
                EventSchema::Custom,
                &Bytes::from_static(b" {\"n\": 1.0} \n")
            )
            .unwrap(),
            "{\"n\": 1.0}"
        );
    }
}
