//! The events that producers publish, as the document describes them. Publish itself reads them
//! member by member.

use std::collections::BTreeMap;

use posthaste_core::api::IsoTimestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A CloudEvent 1.0 in its JSON format. Extensions are members beside these.
#[derive(Serialize, ToSchema)]
pub(super) struct CloudEvent {
    /// The version of the specification: `1.0`.
    #[schema(example = "1.0")]
    specversion: String,
    /// The producer's id of the event, unique within its source.
    id: String,
    /// The source of the event, as a URI reference.
    #[schema(example = "/shop")]
    source: String,
    /// The type of the event.
    #[serde(rename = "type")]
    #[schema(example = "com.example.order.paid")]
    event_type: String,
    /// The thing that the event is about, within the source.
    subject: Option<String>,
    /// The time of the event.
    #[schema(value_type = Option<String>, format = DateTime)]
    time: Option<IsoTimestamp>,
    /// The media type of `data`. JSON when left out.
    datacontenttype: Option<String>,
    /// The URI of the schema of `data`.
    dataschema: Option<String>,
    /// The payload.
    data: Option<Value>,
    /// The payload in base64, instead of `data`.
    data_base64: Option<String>,
    #[serde(flatten)]
    extensions: BTreeMap<String, Value>,
}

/// An event in Azure Event Grid's schema.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventGridEvent {
    /// The producer's id of the event.
    id: String,
    /// The type of the event.
    #[schema(example = "OrderPaid")]
    event_type: String,
    /// The thing that the event is about.
    subject: String,
    /// The time of the event.
    #[schema(value_type = String, format = DateTime)]
    event_time: IsoTimestamp,
    /// The payload.
    data: Value,
    /// The version of the payload's schema.
    data_version: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// Any JSON object, for a topic whose `inputSchema` is `Custom`.
#[derive(Serialize, ToSchema)]
pub(super) struct CustomEvent {
    #[serde(flatten)]
    members: BTreeMap<String, Value>,
}

/// The body of a publish request in `application/json`: one event, or an array of events, in the
/// topic's schema.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "described here, read by the publish function")]
pub(super) enum PublishBody {
    /// For a topic of CloudEvents.
    CloudEvent(CloudEvent),
    /// For a topic of CloudEvents.
    CloudEvents(Vec<CloudEvent>),
    /// For a topic of Event Grid events.
    EventGridEvent(EventGridEvent),
    /// For a topic of Event Grid events.
    EventGridEvents(Vec<EventGridEvent>),
    /// For a topic of custom events.
    CustomEvent(CustomEvent),
    /// For a topic of custom events.
    CustomEvents(Vec<CustomEvent>),
}
