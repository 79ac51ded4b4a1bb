//! What all notices have in common: their attributes, in each schema.

use serde::Serialize;

use crate::events::{self, Event, EventError};
use crate::model::{Schema, SubscriptionName, Timestamp, TopicName};

/// The version of the data of notices.
const DATA_VERSION: &str = "1";

/// A notice without its data. `subject` begins with `source`: Event Grid's events have no `source`, and a
/// subscription to notices can be filtered by the beginning of `subject` alone.
pub(super) struct Envelope<'a> {
    pub(super) id: String,
    pub(super) event_type: &'static str,
    pub(super) source: String,
    pub(super) subject: String,
    pub(super) at: Timestamp,
    pub(super) traceparent: Option<&'a str>,
}

#[derive(Serialize)]
struct CloudEvent<'a, D> {
    specversion: &'static str,
    id: &'a str,
    source: &'a str,
    r#type: &'static str,
    subject: &'a str,
    time: String,
    datacontenttype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    data: &'a D,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventGridEvent<'a, D> {
    id: &'a str,
    topic: &'a str,
    subject: &'a str,
    event_type: &'static str,
    event_time: String,
    data_version: &'static str,
    metadata_version: &'static str,
    data: &'a D,
}

/// The path of a subscription, which is both `source` and `subject` of a notice about it.
pub(super) fn path(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("/topics/{topic}/subscriptions/{subscription}")
}

impl Envelope<'_> {
    /// The notice with this data.
    pub(super) fn around(&self, data: &impl Serialize, schema: Schema) -> Result<Event, EventError> {
        let text = match schema {
            Schema::CloudEvents => serde_json::to_string(&CloudEvent {
                specversion: "1.0",
                id: &self.id,
                source: &self.source,
                r#type: self.event_type,
                subject: &self.subject,
                time: self.at.to_string(),
                datacontenttype: "application/json",
                traceparent: self.traceparent,
                data,
            }),
            Schema::EventGrid => serde_json::to_string(&EventGridEvent {
                id: &self.id,
                topic: &self.source,
                subject: &self.subject,
                event_type: self.event_type,
                event_time: self.at.to_event_grid(),
                data_version: DATA_VERSION,
                metadata_version: "1",
                data,
            }),
            Schema::Custom => serde_json::to_string(data),
        };
        let custom = (schema == Schema::Custom).then(|| self.mapped());
        // Writing text that was read as JSON cannot fail; if it did, the empty text would be no event.
        Event::made(schema, &text.unwrap_or_default(), custom)
    }

    /// What an input mapping would make of a notice: on a topic of custom events it is its data, and this
    /// around it.
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
