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

use super::cloud_events::takes;
use super::members::{Members, Value};
use super::object::quoted;
use super::{Envelope, Event, EventError, Expected, ObjectWriter, date_time, is_attribute_name};
use crate::model::Schema;

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
/// [`Schema::converts_to`] says that there is no conversion; the door refuses those pairs.
///
/// Fails only for an event that is not valid in its schema, which no accepted one is.
pub fn converted(event: &Event, output: Schema) -> Result<Bytes, EventError> {
    match (event.schema(), output, event.envelope()) {
        (Schema::EventGrid, Schema::CloudEvents, _) => from_event_grid(event.json()),
        (Schema::Custom, Schema::EventGrid, Some(envelope)) => {
            Ok(envelope.around(event.json(), &[]))
        }
        (Schema::Custom, Schema::CloudEvents, Some(envelope)) => {
            Ok(from_custom(envelope, event.json()))
        }
        _ => Ok(event.json().clone()),
    }
}

/// A CloudEvent's members, as JSON.
#[derive(Default)]
struct Attributes<'a> {
    id: Cow<'a, str>,
    source: Cow<'a, str>,
    data_version: Cow<'a, str>,
    subject: Cow<'a, str>,
    event_type: Cow<'a, str>,
    time: Cow<'a, str>,
    extensions: Vec<(&'a str, &'a str)>,
}

impl Attributes<'_> {
    fn around(&self, data: &[u8]) -> Bytes {
        let mut object = ObjectWriter::with_capacity(self.bytes() + data.len());
        let named = [
            ("id", &*self.id),
            ("source", &self.source),
            ("specversion", "\"1.0\""),
            ("dataversion", &self.data_version),
            ("subject", &self.subject),
            ("type", &self.event_type),
            ("time", &self.time),
        ];
        // Event Grid says with an empty text what CloudEvents says by leaving the attribute out.
        let present = named
            .into_iter()
            .filter(|(_, json)| !matches!(*json, "" | "\"\"" | "null"));
        for (name, json) in present.chain(self.extensions.iter().copied()) {
            object.raw(name, json.as_bytes());
        }
        object
            .text("datacontenttype", DATA_CONTENT_TYPE)
            .raw("data", data);
        object.finish()
    }

    fn bytes(&self) -> usize {
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

fn from_custom(envelope: &Envelope, event: &[u8]) -> Bytes {
    let attributes = Attributes {
        id: quoted(&controls_encoded(&envelope.id)).into(),
        source: quoted(&uri_reference(&envelope.topic)).into(),
        data_version: quoted(&controls_encoded(&envelope.data_version)).into(),
        subject: quoted(&controls_encoded(&envelope.subject)).into(),
        event_type: quoted(&controls_encoded(&envelope.event_type)).into(),
        time: quoted(&date_time::with_colon(&envelope.event_time)).into(),
        extensions: Vec::new(),
    };
    attributes.around(event)
}

fn from_event_grid(json: &Bytes) -> Result<Bytes, EventError> {
    let text = std::str::from_utf8(json).map_err(|_| EventError::whole(Expected::Utf8))?;
    let members = Members::read(text)?;
    let mut attributes = Attributes::default();
    let mut data = None;
    for (name, value) in members.iter() {
        let error = |expected| EventError::member(name, expected);
        match name {
            "id" => attributes.id = attribute(value).map_err(error)?,
            "topic" => attributes.source = rewritten(value, uri_reference).map_err(error)?,
            "dataVersion" => attributes.data_version = attribute(value).map_err(error)?,
            "subject" => attributes.subject = attribute(value).map_err(error)?,
            "eventType" => attributes.event_type = attribute(value).map_err(error)?,
            "eventTime" => {
                attributes.time = rewritten(value, date_time::with_colon).map_err(error)?;
            }
            "data" => data = Some(value.json()),
            _ if is_extension(name, value) => attributes.extensions.push((name, value.json())),
            _ => {}
        }
    }
    if attributes.source.is_empty() {
        return Err(EventError::member("topic", Expected::NonEmptyString));
    }
    let data = data.ok_or_else(|| EventError::member("data", Expected::Present))?;
    Ok(attributes.around(data.as_bytes()))
}

/// Whether a member that Event Grid's schema does not know can go along: a CloudEvent takes neither
/// other names, nor values that hold others, nor an `expirytime` that is no time.
fn is_extension(name: &str, value: Value<'_>) -> bool {
    is_attribute_name(name) && !RESERVED.contains(&name) && !value.is_null() && takes(name, value)
}

fn attribute(value: Value<'_>) -> Result<Cow<'_, str>, Expected> {
    if value.is_null() {
        Ok(value.json().into())
    } else {
        rewritten(value, controls_encoded)
    }
}

/// The JSON of a text as `rewrite` changes it. A text that stays the same keeps its JSON.
fn rewritten(
    value: Value<'_>,
    rewrite: fn(&str) -> Cow<'_, str>,
) -> Result<Cow<'_, str>, Expected> {
    Ok(match rewrite(&value.string()?) {
        Cow::Borrowed(_) => value.json().into(),
        Cow::Owned(text) => quoted(&text).into(),
    })
}

/// Percent-encodes what no URI may hold and an Event Grid topic may: white space and control
/// characters.
fn uri_reference(topic: &str) -> Cow<'_, str> {
    percent_encoded(topic, |c| c.is_whitespace() || c.is_control())
}

/// Percent-encodes what no attribute may hold and Event Grid's texts may: control characters.
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
