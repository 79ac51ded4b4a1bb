//! An accepted event: its JSON exactly as the producer wrote it, and the few attributes that the
//! rules look at.

use std::sync::Arc;

use bytes::Bytes;

use super::members::EventAttributes;
use super::{EventError, EventExpectation, cloud_events, custom, event_grid};
use crate::model::{EventEnvelope, EventSchema, Timestamp, escape_refused};

/// An event that is valid in its schema.
///
/// The text is the producer's, byte for byte, with these exceptions: Event Grid's `topic`,
/// `dataVersion` and `metadataVersion` are added where absent; an event that came in binary mode is
/// rendered once, its JSON data as written. Besides a custom event lies its [`EventEnvelope`].
#[derive(Debug, Clone)]
pub struct Event {
    pub(super) json: Bytes,
    pub(super) schema: EventSchema,
    pub(super) attributes: EventAttributes,
    pub(super) envelope: Option<Arc<EventEnvelope>>,
}

impl Event {
    /// Reads an event from its own JSON text, as it was kept. Nothing is added and no limit is
    /// checked. A custom event alone is not enough: it is read with [`Event::from_envelope`].
    pub fn parse(schema: EventSchema, json: Bytes) -> Result<Self, EventError> {
        let text = std::str::from_utf8(&json)
            .map_err(|_| EventError::for_event(EventExpectation::Utf8))?;
        let attributes = match schema {
            EventSchema::CloudEvents => cloud_events::read_attributes(text)?,
            EventSchema::EventGrid => event_grid::read_attributes(text)?,
            EventSchema::Custom => return Err(EventError::for_event(EventExpectation::Envelope)),
        };
        Ok(Self {
            json,
            schema,
            attributes,
            envelope: None,
        })
    }

    /// A custom event as it was kept, with its envelope.
    pub fn from_envelope(json: Bytes, envelope: Arc<EventEnvelope>) -> Self {
        let attributes = custom::envelope_attributes(&envelope, None);
        Self {
            json,
            schema: EventSchema::Custom,
            attributes,
            envelope: Some(envelope),
        }
    }

    /// The envelope of a custom event. Every custom event has one, and no other event has.
    pub fn envelope(&self) -> Option<&Arc<EventEnvelope>> {
        self.envelope.as_ref()
    }

    /// An event that posthaste makes itself, a custom one with its envelope. Characters that SQS
    /// refuses are escaped.
    pub fn from_posthaste(
        schema: EventSchema,
        text: &str,
        envelope: Option<EventEnvelope>,
    ) -> Result<Self, EventError> {
        let json = Bytes::from(escape_refused(text).into_owned());
        match envelope {
            Some(envelope) => Ok(Self::from_envelope(json, Arc::new(envelope))),
            None => Self::parse(schema, json),
        }
    }

    /// The JSON text: one object, without white space around it. Often a slice of the request's
    /// body.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The JSON text, without the attributes.
    pub fn into_json(self) -> Bytes {
        self.json
    }

    /// The schema of the text.
    pub fn schema(&self) -> EventSchema {
        self.schema
    }

    /// `id`. Not empty.
    pub fn id(&self) -> &str {
        &self.attributes.id
    }

    /// `type`, or Event Grid's `eventType`. Not empty.
    pub fn event_type(&self) -> &str {
        &self.attributes.event_type
    }

    /// `source`. Only CloudEvents have one, and each has.
    pub fn source(&self) -> Option<&str> {
        self.attributes.source.as_deref()
    }

    /// `subject`. Every Event Grid event has one, maybe an empty one.
    pub fn subject(&self) -> Option<&str> {
        self.attributes.subject.as_deref()
    }

    /// `time`, or Event Grid's `eventTime`. A time before 1970 reads as 1970.
    pub fn time(&self) -> Option<Timestamp> {
        self.attributes.time
    }

    /// The time from which on the event is of no use: the CloudEvents extension `expirytime`, or
    /// the time in its request.
    pub fn expirytime(&self) -> Option<Timestamp> {
        self.attributes.expirytime
    }

    /// Lets the event expire at `end`, unless it does so earlier by itself. Its text stays as it
    /// is.
    pub fn expire_by(&mut self, end: Timestamp) {
        let own = self.attributes.expirytime;
        self.attributes.expirytime = Some(own.map_or(end, |own| own.min(end)));
    }

    /// The CloudEvents extension `traceparent`, if it has the form of W3C Trace Context, so that it
    /// can be a header.
    pub fn traceparent(&self) -> Option<&str> {
        self.attributes.traceparent.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_event_is_read_again_without_change() {
        let json = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"a/b"}"#;
        let event = Event::parse(EventSchema::CloudEvents, Bytes::from(json)).unwrap();
        assert_eq!(event.json(), json);
        assert_eq!((event.id(), event.event_type()), ("1", "t"));
        assert_eq!((event.source(), event.subject()), (Some("/s"), Some("a/b")));
    }

    #[test]
    fn invalid_event_is_refused() {
        let error = |json: &[u8]| {
            let parsed = Event::parse(EventSchema::EventGrid, Bytes::copy_from_slice(json));
            parsed.map(|_| ()).map_err(|e| e.to_string())
        };
        assert_eq!(error(b"\xff"), Err("expected UTF-8".to_owned()));
        assert_eq!(
            error(b"[]"),
            Err("expected a JSON object, found an array".to_owned())
        );
        assert_eq!(
            error(br#"{"id":""}"#),
            Err("id: expected a non-empty string".to_owned())
        );
    }

    #[test]
    fn the_attributes_stay_small() {
        assert!(size_of::<Event>() <= 160, "{}", size_of::<Event>());
    }
}
