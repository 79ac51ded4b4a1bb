//! The body and headers of a request to a subscriber, made from kept events. Events are never
//! rendered again; the body is made of slices.

use bytes::Bytes;
use http::header::HeaderValue;

use crate::model::EventSchema;

mod binary;

pub use self::binary::{BinaryEvent, OutputError, binary_request};

/// `content-type` of Event Grid's arrays, and of custom events.
pub const EVENT_GRID_CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/json; charset=utf-8");

/// `content-type` of one CloudEvent in structured mode.
pub const CLOUD_EVENT_CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/cloudevents+json; charset=utf-8");

/// `content-type` of a batch of CloudEvents.
pub const CLOUD_EVENTS_BATCH_CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/cloudevents-batch+json; charset=utf-8");

/// A body and its content type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputBody {
    /// The `content-type` of the body.
    pub content_type: HeaderValue,
    /// The body: these slices, one after the other.
    pub slices: Vec<Bytes>,
}

impl OutputBody {
    /// Length of the body in bytes.
    pub fn len(&self) -> usize {
        self.slices.iter().map(Bytes::len).sum()
    }

    /// Whether there is no byte in it. A body of events never is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The body that carries `events`, kept JSON texts of `schema`.
///
/// Event Grid always delivers an array, of its own events and of custom ones. One CloudEvent is the
/// body by itself, unless the subscription asked for batches (`batched`); several are a batch.
pub fn request_body(events: &[Bytes], schema: EventSchema, batched: bool) -> OutputBody {
    match (schema, events) {
        (EventSchema::CloudEvents, [event]) if !batched => OutputBody {
            content_type: CLOUD_EVENT_CONTENT_TYPE,
            slices: vec![event.clone()],
        },
        (EventSchema::CloudEvents, _) => OutputBody {
            content_type: CLOUD_EVENTS_BATCH_CONTENT_TYPE,
            slices: array_slices(events),
        },
        (EventSchema::EventGrid | EventSchema::Custom, _) => OutputBody {
            content_type: EVENT_GRID_CONTENT_TYPE,
            slices: array_slices(events),
        },
    }
}

fn array_slices(events: &[Bytes]) -> Vec<Bytes> {
    let mut slices = Vec::with_capacity(events.len() * 2 + 1);
    slices.push(Bytes::from_static(b"["));
    for (at, event) in events.iter().enumerate() {
        if at > 0 {
            slices.push(Bytes::from_static(b","));
        }
        slices.push(event.clone());
    }
    slices.push(Bytes::from_static(b"]"));
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: &[&'static str], schema: EventSchema, batched: bool, expected: (&str, &str)) {
        let events: Vec<Bytes> = events
            .iter()
            .map(|event| Bytes::from_static(event.as_bytes()))
            .collect();
        let body = request_body(&events, schema, batched);
        let text = String::from_utf8(body.slices.concat()).unwrap();
        assert_eq!(
            (body.content_type.to_str().unwrap(), text.as_str()),
            expected
        );
        assert_eq!(body.len(), text.len());
    }

    #[test]
    fn event_grid_events_and_custom_ones_are_always_an_array() {
        let content_type = "application/json; charset=utf-8";
        check(
            &["{}"],
            EventSchema::EventGrid,
            false,
            (content_type, "[{}]"),
        );
        check(
            &["{}", "{ }"],
            EventSchema::EventGrid,
            true,
            (content_type, "[{},{ }]"),
        );
        check(&["{}"], EventSchema::Custom, false, (content_type, "[{}]"));
        check(
            &["{}", "{ }"],
            EventSchema::Custom,
            true,
            (content_type, "[{},{ }]"),
        );
    }

    /// A single CloudEvent is the body itself unless batches were asked for.
    #[test]
    fn single_cloud_event_is_the_body_unless_batched() {
        let batch = "application/cloudevents-batch+json; charset=utf-8";
        check(
            &["{}"],
            EventSchema::CloudEvents,
            false,
            ("application/cloudevents+json; charset=utf-8", "{}"),
        );
        check(&["{}"], EventSchema::CloudEvents, true, (batch, "[{}]"));
        check(
            &["{}", "{ }"],
            EventSchema::CloudEvents,
            false,
            (batch, "[{},{ }]"),
        );
    }

    #[test]
    fn events_are_not_copied() {
        let event = Bytes::from(r#"{"a":1}"#.to_owned());
        let body = request_body(std::slice::from_ref(&event), EventSchema::EventGrid, false);
        assert_eq!(body.slices[1].as_ptr(), event.as_ptr());
    }
}
