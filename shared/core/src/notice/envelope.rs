//! What all notices have in common: their attributes, in each schema.

use serde::Serialize;

use crate::event::{Event, EventError};
use crate::name::{SubscriptionName, TopicName};
use crate::schema::Schema;
use crate::time::Timestamp;

/// A notice without its data. It is about a subscription, whose path is both `source` and `subject`: Event Grid's events
/// have no `source`, and a subscription to notices can be filtered by the beginning of `subject` alone.
pub(super) struct Envelope<'a> {
    pub(super) id: String,
    pub(super) event_type: &'static str,
    pub(super) topic: &'a TopicName,
    pub(super) subscription: &'a SubscriptionName,
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

impl Envelope<'_> {
    /// The notice with this data.
    pub(super) fn around(&self, data: &impl Serialize, schema: Schema) -> Result<Event, EventError> {
        let path = format!("/topics/{}/subscriptions/{}", self.topic, self.subscription);
        let text = match schema {
            Schema::CloudEvents => serde_json::to_string(&CloudEvent {
                specversion: "1.0",
                id: &self.id,
                source: &path,
                r#type: self.event_type,
                subject: &path,
                time: self.at.to_string(),
                datacontenttype: "application/json",
                traceparent: self.traceparent,
                data,
            }),
            Schema::EventGrid => serde_json::to_string(&EventGridEvent {
                id: &self.id,
                topic: &path,
                subject: &path,
                event_type: self.event_type,
                event_time: self.at.to_string(),
                data_version: "1",
                metadata_version: "1",
                data,
            }),
        };
        // Writing text that was read as JSON cannot fail; if it did, the empty text would be no event.
        Event::made(schema, &text.unwrap_or_default())
    }
}
