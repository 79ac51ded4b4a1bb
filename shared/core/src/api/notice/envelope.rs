//! The attributes that all notices have, in each schema.

use bytes::Bytes;
use serde::Serialize;

use crate::events::{Event, EventError};
use crate::model::{
    EventEnvelope, EventSchema, ObjectWriter, SubscriptionName, Timestamp, TopicName,
};

/// The version of the data of notices.
const DATA_VERSION: &str = "1";

/// A notice without its data. `subject` begins with `source`: Event Grid's events have no `source`,
/// and a subscription to notices can be filtered by the beginning of `subject` alone.
pub(super) struct NoticeEnvelope<'a> {
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
pub(super) fn subscription_path(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("/topics/{topic}/subscriptions/{subscription}")
}

impl NoticeEnvelope<'_> {
    /// The notice with this data.
    pub(super) fn with_data(
        &self,
        data: &impl Serialize,
        schema: EventSchema,
    ) -> Result<Event, EventError> {
        // Writing text that was read as JSON cannot fail; if it did, the empty text would be no
        // event.
        let data = serde_json::to_vec(data).unwrap_or_default();
        let data = self.with_text(&data);
        let json = match schema {
            EventSchema::CloudEvents => self.cloud_event(&data),
            EventSchema::EventGrid => self.event_grid_event(&data),
            EventSchema::Custom => Bytes::from(data),
        };
        let custom = (schema == EventSchema::Custom).then(|| self.to_mapping_envelope());
        Event::from_posthaste(schema, &String::from_utf8_lossy(&json), custom)
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
            .add_text("specversion", "1.0")
            .add_text("id", &self.id)
            .add_text("source", &self.source);
        event
            .add_text("type", self.event_type)
            .add_text("subject", &self.subject)
            .add_text("time", &self.at.to_string());
        event.add_text("datacontenttype", "application/json");
        if let Some(traceparent) = self.traceparent {
            event.add_text("traceparent", traceparent);
        }
        event.add_raw("data", data);
        event.finish()
    }

    fn event_grid_event(&self, data: &[u8]) -> Bytes {
        let mut event = ObjectWriter::with_capacity(data.len());
        event
            .add_text("id", &self.id)
            .add_text("topic", &self.source)
            .add_text("subject", &self.subject);
        event
            .add_text("eventType", self.event_type)
            .add_text("eventTime", &self.at.to_event_grid());
        event
            .add_text("dataVersion", DATA_VERSION)
            .add_text("metadataVersion", "1")
            .add_raw("data", data);
        event.finish()
    }

    /// The envelope that an input mapping would make: on a topic of custom events a notice is its
    /// data, with this around it.
    fn to_mapping_envelope(&self) -> EventEnvelope {
        EventEnvelope {
            id: self.id.as_str().into(),
            event_time: self.at.to_event_grid().into(),
            event_type: self.event_type.into(),
            data_version: DATA_VERSION.into(),
            topic: self.source.as_str().into(),
            subject: self.subject.as_str().into(),
        }
    }
}
