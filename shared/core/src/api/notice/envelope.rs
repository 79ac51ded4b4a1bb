//! The attributes that all notices have, in each schema.

use bytes::Bytes;
use serde::Serialize;

use crate::events::{self, Event, EventError, ObjectWriter};
use crate::model::{Schema, SubscriptionName, Timestamp, TopicName};

/// The version of the data of notices.
const DATA_VERSION: &str = "1";

/// A notice without its data. `subject` begins with `source`: Event Grid's events have no `source`,
/// and a subscription to notices can be filtered by the beginning of `subject` alone.
pub(super) struct Envelope<'a> {
    pub(super) id: String,
    pub(super) event_type: &'static str,
    pub(super) source: String,
    pub(super) subject: String,
    pub(super) at: Timestamp,
    pub(super) traceparent: Option<&'a str>,
    /// The news in a sentence, which becomes the first member of the data: a chat takes that as
    /// its message.
    pub(super) text: String,
}

/// The path of a subscription, which is both `source` and `subject` of a notice about it.
pub(super) fn path(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("/topics/{topic}/subscriptions/{subscription}")
}

impl Envelope<'_> {
    /// The notice with this data.
    pub(super) fn around(
        &self,
        data: &impl Serialize,
        schema: Schema,
    ) -> Result<Event, EventError> {
        // Writing text that was read as JSON cannot fail; if it did, the empty text would be no
        // event.
        let data = serde_json::to_vec(data).unwrap_or_default();
        let data = self.with_text(&data);
        let json = match schema {
            Schema::CloudEvents => self.cloud_event(&data),
            Schema::EventGrid => self.event_grid_event(&data),
            Schema::Custom => Bytes::from(data),
        };
        let custom = (schema == Schema::Custom).then(|| self.mapped());
        Event::made(schema, &String::from_utf8_lossy(&json), custom)
    }

    /// The data with its text. It is an object with members.
    fn with_text(&self, data: &[u8]) -> Vec<u8> {
        let text = serde_json::to_string(&self.text).unwrap_or_default();
        let members = data.strip_prefix(b"{").unwrap_or_default();
        [br#"{"text":"#, text.as_bytes(), b",", members].concat()
    }

    fn cloud_event(&self, data: &[u8]) -> Bytes {
        let mut event = ObjectWriter::with_capacity(data.len());
        event
            .text("specversion", "1.0")
            .text("id", &self.id)
            .text("source", &self.source);
        event
            .text("type", self.event_type)
            .text("subject", &self.subject)
            .text("time", &self.at.to_string());
        event.text("datacontenttype", "application/json");
        if let Some(traceparent) = self.traceparent {
            event.text("traceparent", traceparent);
        }
        event.raw("data", data);
        event.finish()
    }

    fn event_grid_event(&self, data: &[u8]) -> Bytes {
        let mut event = ObjectWriter::with_capacity(data.len());
        event
            .text("id", &self.id)
            .text("topic", &self.source)
            .text("subject", &self.subject);
        event
            .text("eventType", self.event_type)
            .text("eventTime", &self.at.to_event_grid());
        event
            .text("dataVersion", DATA_VERSION)
            .text("metadataVersion", "1")
            .raw("data", data);
        event.finish()
    }

    /// The envelope that an input mapping would make: on a topic of custom events a notice is its
    /// data, with this around it.
    fn mapped(&self) -> events::Envelope {
        events::Envelope {
            id: self.id.as_str().into(),
            event_time: self.at.to_event_grid().into(),
            event_type: self.event_type.into(),
            data_version: DATA_VERSION.into(),
            topic: self.source.as_str().into(),
            subject: self.subject.as_str().into(),
        }
    }
}
