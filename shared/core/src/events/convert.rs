//! The same event in another schema, as Event Grid converts: from its own schema and from custom
//! events. `data` is copied, never rendered again.
//!
//! The members keep their order in Event Grid's documents. What the documents leave open: a
//! CloudEvent gets `specversion` and `time`, which it must or may have; `dataVersion` becomes the
//! extension `dataversion`, as in the documents' sample, and `metadataVersion`, the version of the
//! envelope that is taken off, goes with it.
//! <https://learn.microsoft.com/azure/event-grid/event-schema-compatibility>

use std::borrow::Cow;

use bytes::Bytes;

use super::cloud_events::allows_member;
use super::members::{EventMembers, MemberValue};
use super::{Event, EventError, EventExpectation, date_time};
use crate::model::{EventEnvelope, EventSchema, ObjectWriter, is_attribute_name, quote_json_text};

/// The content type of every converted event.
const DATA_CONTENT_TYPE: &str = "application/json";

/// Bytes that the members' names and the added members take.
const MEMBERS_BYTES: usize = 256;

/// Members of a CloudEvent that an Event Grid event cannot bring along as extensions.
const RESERVED: [&str; 7] = [
    "specversion",
    "type",
    "source",
    "time",
    "datacontenttype",
    "dataschema",
    "dataversion",
];

/// The text of an event in `output`. The event's own text where that is its schema, or where
/// [`EventSchema::converts_to`] says that there is no conversion; the door refuses those pairs.
///
/// Fails only for an event that is not valid in its schema, which no accepted one is.
pub fn convert_event(event: &Event, output: EventSchema) -> Result<Bytes, EventError> {
    match (event.schema(), output, event.envelope()) {
        (EventSchema::EventGrid, EventSchema::CloudEvents, _) => from_event_grid(event.json()),
        (EventSchema::Custom, EventSchema::EventGrid, Some(envelope)) => {
            Ok(envelope.wrap_event(event.json(), &[]))
        }
        (EventSchema::Custom, EventSchema::CloudEvents, Some(envelope)) => {
            Ok(from_custom(envelope, event.json()))
        }
        _ => Ok(event.json().clone()),
    }
}

/// A CloudEvent's members, as JSON.
#[derive(Default)]
struct CloudEventMembers<'a> {
    id: Cow<'a, str>,
    source: Cow<'a, str>,
    data_version: Cow<'a, str>,
    subject: Cow<'a, str>,
    event_type: Cow<'a, str>,
    time: Cow<'a, str>,
    extensions: Vec<(&'a str, &'a str)>,
}

impl<'a> CloudEventMembers<'a> {
    /// Takes a member of an Event Grid event, if it has a place in a CloudEvent.
    fn take_event_grid_member(
        &mut self,
        name: &'a str,
        value: MemberValue<'a>,
    ) -> Result<(), EventExpectation> {
        match name {
            "id" => self.id = attribute_json(value)?,
            "topic" => self.source = rewrite_text(value, uri_reference)?,
            "dataVersion" => self.data_version = attribute_json(value)?,
            "subject" => self.subject = attribute_json(value)?,
            "eventType" => self.event_type = attribute_json(value)?,
            "eventTime" => self.time = rewrite_text(value, date_time::with_colon)?,
            _ if is_extension(name, value) => self.extensions.push((name, value.json())),
            _ => {}
        }
        Ok(())
    }

    fn wrap_data(&self, data: &[u8]) -> Bytes {
        let mut object = ObjectWriter::with_capacity(self.byte_len() + data.len());
        let named = [
            ("id", &*self.id),
            ("source", &self.source),
            ("specversion", "\"1.0\""),
            ("dataversion", &self.data_version),
            ("subject", &self.subject),
            ("type", &self.event_type),
            ("time", &self.time),
        ];
        // An empty text in Event Grid is a missing attribute in CloudEvents.
        let present = named
            .into_iter()
            .filter(|(_, json)| !matches!(*json, "" | "\"\"" | "null"));
        for (name, json) in present.chain(self.extensions.iter().copied()) {
            object.add_raw(name, json.as_bytes());
        }
        object
            .add_text("datacontenttype", DATA_CONTENT_TYPE)
            .add_raw("data", data);
        object.finish()
    }

    fn byte_len(&self) -> usize {
        let texts = [
            &self.id,
            &self.source,
            &self.data_version,
            &self.subject,
            &self.event_type,
            &self.time,
        ];
        let extensions = self
            .extensions
            .iter()
            .map(|(name, json)| name.len() + json.len() + 4);
        MEMBERS_BYTES
            + texts.iter().map(|text| text.len()).sum::<usize>()
            + extensions.sum::<usize>()
    }
}

fn from_custom(envelope: &EventEnvelope, event: &[u8]) -> Bytes {
    let attributes = CloudEventMembers {
        id: quote_json_text(&controls_encoded(&envelope.id)).into(),
        source: quote_json_text(&uri_reference(&envelope.topic)).into(),
        data_version: quote_json_text(&controls_encoded(&envelope.data_version)).into(),
        subject: quote_json_text(&controls_encoded(&envelope.subject)).into(),
        event_type: quote_json_text(&controls_encoded(&envelope.event_type)).into(),
        time: quote_json_text(&date_time::with_colon(&envelope.event_time)).into(),
        extensions: Vec::new(),
    };
    attributes.wrap_data(event)
}

fn from_event_grid(json: &Bytes) -> Result<Bytes, EventError> {
    let text =
        std::str::from_utf8(json).map_err(|_| EventError::for_event(EventExpectation::Utf8))?;
    let members = EventMembers::parse(text)?;
    let mut attributes = CloudEventMembers::default();
    let mut data = None;
    for (name, value) in members.iter() {
        if name == "data" {
            data = Some(value.json());
            continue;
        }
        attributes
            .take_event_grid_member(name, value)
            .map_err(|expected| EventError::for_member(name, expected))?;
    }
    if attributes.source.is_empty() {
        return Err(EventError::for_member(
            "topic",
            EventExpectation::NonEmptyString,
        ));
    }
    let data = data.ok_or_else(|| EventError::for_member("data", EventExpectation::Present))?;
    Ok(attributes.wrap_data(data.as_bytes()))
}

/// Whether a member that Event Grid's schema does not know can go along: a CloudEvent takes neither
/// other names, nor values that hold others, nor an `expirytime` that is no time.
fn is_extension(name: &str, value: MemberValue<'_>) -> bool {
    is_attribute_name(name)
        && !RESERVED.contains(&name)
        && !value.is_null()
        && allows_member(name, value)
}

fn attribute_json(value: MemberValue<'_>) -> Result<Cow<'_, str>, EventExpectation> {
    if value.is_null() {
        Ok(value.json().into())
    } else {
        rewrite_text(value, controls_encoded)
    }
}

/// The JSON of a text as `rewrite` changes it. A text that stays the same keeps its JSON.
fn rewrite_text(
    value: MemberValue<'_>,
    rewrite: fn(&str) -> Cow<'_, str>,
) -> Result<Cow<'_, str>, EventExpectation> {
    Ok(match rewrite(&value.decode_string()?) {
        Cow::Borrowed(_) => value.json().into(),
        Cow::Owned(text) => quote_json_text(&text).into(),
    })
}

/// Percent-encodes characters that an Event Grid topic may hold and a URI may not: white space and
/// control characters.
fn uri_reference(topic: &str) -> Cow<'_, str> {
    percent_encoded(topic, |c| c.is_whitespace() || c.is_control())
}

/// Percent-encodes characters that Event Grid's texts may hold and an attribute may not: control
/// characters.
/// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md#type-system>
fn controls_encoded(text: &str) -> Cow<'_, str> {
    percent_encoded(text, char::is_control)
}

fn percent_encoded(text: &str, is_refused: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_refused) {
        return text.into();
    }
    let mut encoded = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_refused(c) {
            let mut bytes = [0; 4];
            encoded.extend(
                c.encode_utf8(&mut bytes)
                    .bytes()
                    .map(|byte| format!("%{byte:02X}")),
            );
        } else {
            encoded.push(c);
        }
    }
    encoded.into()
}

#[cfg(test)]
mod tests;
