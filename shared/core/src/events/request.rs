//! Reading the events of a publish request: the form of the request, and where each event lies in
//! its body. All or nothing: the first fault refuses the whole request.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::value::RawValue;

use super::error::shown_name;
use super::media_type::MediaType;
use super::{Event, EventError, EventExpectation, GeneratedValues, PublishInputError};
use super::{binary, cloud_events, custom, event_grid, syntax};
use crate::model::{
    CUSTOM_ENVELOPES_BYTES_MAX, CUSTOM_EVENTS_PER_REQUEST_MAX, EVENT_BYTES_MAX, EventSchema,
    InputMapping, JsonPointer, REQUEST_BYTES_MAX, TopicName, content_coding, is_shallow,
};

/// The content types that a topic of CloudEvents takes.
const CLOUD_EVENTS_TYPES: &str = "application/cloudevents+json, application/cloudevents-batch+json or \
    application/json in UTF-8, or ce- headers";

/// The content types that a topic of Event Grid events takes.
const EVENT_GRID_TYPES: &str = "application/json in UTF-8 with events of the schema EventGrid";

/// The content types that a topic of custom events takes.
const JSON_TYPES: &str = "application/json in UTF-8";

/// A member that every CloudEvent has, and no event of Event Grid's schema.
/// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md#specversion>
const OF_CLOUD_EVENTS: &str = "specversion";

/// A member that every event of Event Grid's schema has, and no CloudEvent can have: it is not in
/// lower case. <https://learn.microsoft.com/azure/event-grid/event-schema>
const OF_EVENT_GRID: &str = "eventType";

/// The accepted `content-encoding`.
const ENCODINGS: &str = "gzip alone, or no content encoding";

/// A request to publish.
#[derive(Debug, Clone, Copy)]
pub struct PublishRequest<'a> {
    /// The topic, which Event Grid events are marked with.
    pub topic: &'a TopicName,
    /// The events that the topic takes.
    pub input: TopicInput<'a>,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The request's body.
    pub body: &'a Bytes,
}

/// The events that a topic takes, with the values that are needed to read them.
#[derive(Debug, Clone, Copy)]
pub enum TopicInput<'a> {
    /// CloudEvents.
    CloudEvents,
    /// Event Grid's events.
    EventGrid,
    /// Custom events.
    Custom {
        /// The places of their members.
        mapping: &'a InputMapping,
        /// The values they get where they lack them.
        made: GeneratedValues,
    },
}

impl TopicInput<'_> {
    /// The schema.
    pub fn schema(self) -> EventSchema {
        match self {
            Self::CloudEvents => EventSchema::CloudEvents,
            Self::EventGrid => EventSchema::EventGrid,
            Self::Custom { .. } => EventSchema::Custom,
        }
    }
}

/// The events of a request in their order. An empty batch of CloudEvents has none; Event Grid
/// refuses an empty array, and so do topics of its schema and of custom events.
///
/// A topic of CloudEvents takes `application/json` without `ce-` headers as one event or a batch,
/// as Event Grid does. The other topics do not insist on a content type: Event Grid's documentation
/// publishes with a bare `curl -d`.
pub fn parse_request(request: &PublishRequest<'_>) -> Result<Vec<Event>, PublishInputError> {
    let bytes = request.body.len();
    if bytes > REQUEST_BYTES_MAX {
        return Err(PublishInputError::RequestTooLarge { bytes });
    }
    let content_type = request.content_type();
    match request.detect_form(content_type.as_deref())? {
        RequestForm::Binary => request
            .read_binary(content_type.as_deref())
            .map(|event| vec![event]),
        RequestForm::Json(carries) => request.read_json(carries),
    }
}

enum RequestForm {
    /// A CloudEvent in headers and body.
    Binary,
    /// JSON that holds whole events.
    Json(JsonForm),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonForm {
    One,
    Batch,
    Either,
}

impl<'a> PublishRequest<'a> {
    fn content_type(&self) -> Option<Cow<'a, str>> {
        self.headers
            .get(CONTENT_TYPE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
    }

    fn detect_form(&self, content_type: Option<&str>) -> Result<RequestForm, PublishInputError> {
        if let Some(coding) = content_coding(self.headers) {
            let found = Some(String::from_utf8_lossy(coding).into_owned());
            let header = "content-encoding";
            return Err(PublishInputError::UnsupportedMediaType {
                header,
                found,
                expected: ENCODINGS,
            });
        }
        let media_type = content_type.map(MediaType::parse);
        let (form, expected) = match self.input {
            TopicInput::CloudEvents => (
                self.cloud_events_form(media_type.as_ref()),
                CLOUD_EVENTS_TYPES,
            ),
            TopicInput::EventGrid => (json_form(media_type.as_ref(), false), EVENT_GRID_TYPES),
            TopicInput::Custom { .. } => (json_form(media_type.as_ref(), true), JSON_TYPES),
        };
        form.ok_or_else(|| {
            let found = content_type.map(str::to_owned);
            PublishInputError::UnsupportedMediaType {
                header: "content-type",
                found,
                expected,
            }
        })
    }

    fn cloud_events_form(&self, media_type: Option<&MediaType>) -> Option<RequestForm> {
        let is_binary = binary::is_binary(self.headers);
        let Some(media_type) = media_type else {
            return is_binary.then_some(RequestForm::Binary);
        };
        let form = match media_type.essence() {
            "application/cloudevents+json" => RequestForm::Json(JsonForm::One),
            "application/cloudevents-batch+json" => RequestForm::Json(JsonForm::Batch),
            other if other.starts_with("application/cloudevents") => return None,
            _ if is_binary => RequestForm::Binary,
            "application/json" => RequestForm::Json(JsonForm::Either),
            _ => return None,
        };
        let is_json = matches!(form, RequestForm::Json(_)) || media_type.is_json();
        (media_type.is_utf8() || !is_json).then_some(form)
    }

    fn read_binary(&self, content_type: Option<&str>) -> Result<Event, PublishInputError> {
        let json = binary::render_json(self.headers, content_type, self.body)
            .map_err(|error| PublishInputError::Event { index: 0, error })?;
        let json = Bytes::from(json);
        let text = require_utf8(&json)?;
        self.accept_event(0, text, &json)
    }

    fn read_json(&self, carries: JsonForm) -> Result<Vec<Event>, PublishInputError> {
        let body = require_utf8(self.body)?;
        if body.starts_with('\u{feff}') {
            return Err(PublishInputError::Body(EventExpectation::NoByteOrderMark));
        }
        let is_array = match body.trim_ascii_start().as_bytes().first() {
            Some(b'[') if carries != JsonForm::One => true,
            Some(b'{') if carries != JsonForm::Batch => false,
            _ => {
                return Err(PublishInputError::Body(match carries {
                    JsonForm::One => EventExpectation::OneEvent,
                    JsonForm::Batch => EventExpectation::Array,
                    JsonForm::Either => EventExpectation::ObjectOrArray,
                }));
            }
        };
        if !is_array {
            let event: &RawValue =
                serde_json::from_str(body).map_err(|source| json_body_error(body, source))?;
            return self
                .accept_event(0, event.get(), self.body)
                .map(|event| vec![event]);
        }
        let events: Vec<&RawValue> =
            serde_json::from_str(body).map_err(|source| json_body_error(body, source))?;
        if events.is_empty() && self.input.schema() != EventSchema::CloudEvents {
            return Err(PublishInputError::Body(EventExpectation::AtLeastOneEvent));
        }
        if events.len() > CUSTOM_EVENTS_PER_REQUEST_MAX
            && self.input.schema() == EventSchema::Custom
        {
            return Err(PublishInputError::TooManyEvents {
                events: events.len(),
            });
        }
        let mut envelopes = 0;
        let accepted = events.iter().enumerate().map(|(index, event)| {
            let event = self.accept_event(index, event.get(), self.body)?;
            envelopes += event.envelope().map_or(0, |envelope| envelope.byte_len());
            let is_too_large = envelopes > CUSTOM_ENVELOPES_BYTES_MAX;
            if is_too_large {
                Err(PublishInputError::EnvelopesTooLarge)
            } else {
                Ok(event)
            }
        });
        accepted.collect()
    }

    /// Checks one event, whose text lies in `within`, and keeps it, as a slice of that if nothing
    /// is to be changed.
    fn accept_event(
        &self,
        index: usize,
        json: &str,
        within: &Bytes,
    ) -> Result<Event, PublishInputError> {
        let bytes = json.len();
        if bytes > EVENT_BYTES_MAX {
            return Err(PublishInputError::EventTooLarge { index, bytes });
        }
        if !is_shallow(json) {
            return Err(PublishInputError::Event {
                index,
                error: EventError::for_event(EventExpectation::Depth),
            });
        }
        let mut envelope = None;
        let mut completed = None;
        let attributes = match self.input {
            TopicInput::CloudEvents => cloud_events::read_attributes(json)
                .map_err(|error| self.refused_event(index, json, error))?,
            TopicInput::EventGrid => {
                let accepted = event_grid::accept_event(json, self.topic)
                    .map_err(|error| self.refused_event(index, json, error))?;
                completed = accepted.1;
                accepted.0
            }
            TopicInput::Custom { mapping, made } => {
                let accepted = custom::accept_event(json, mapping, self.topic, made, index);
                let (attributes, made) =
                    accepted.map_err(|error| self.refused_event(index, json, error))?;
                envelope = Some(Arc::new(made));
                attributes
            }
        };
        let json = completed.map_or_else(|| within.slice_ref(json.as_bytes()), Bytes::from);
        Ok(Event {
            json,
            schema: self.input.schema(),
            attributes,
            envelope,
        })
    }

    /// The error of an event that was refused with `error`.
    fn refused_event(&self, index: usize, json: &str, error: EventError) -> PublishInputError {
        PublishInputError::Event {
            index,
            error: self.other_schema_error(json).unwrap_or(error),
        }
    }

    /// The error of a refused event that is one of another schema: a producer that mixed up its
    /// topics would not understand the first member that is missing.
    fn other_schema_error(&self, json: &str) -> Option<EventError> {
        let (takes, found) = match self.input {
            TopicInput::CloudEvents
                if !has_member(json, OF_CLOUD_EVENTS) && has_member(json, OF_EVENT_GRID) =>
            {
                (EventSchema::CloudEvents, EventSchema::EventGrid)
            }
            TopicInput::EventGrid
                if !has_member(json, OF_EVENT_GRID)
                    && (has_member(json, OF_CLOUD_EVENTS) || binary::is_binary(self.headers)) =>
            {
                (EventSchema::EventGrid, EventSchema::CloudEvents)
            }
            TopicInput::CloudEvents | TopicInput::EventGrid | TopicInput::Custom { .. } => {
                return None;
            }
        };
        Some(EventError::for_event(EventExpectation::OtherSchema {
            takes,
            found,
        }))
    }
}

fn has_member(json: &str, name: &str) -> bool {
    JsonPointer::for_member(name)
        .find(json.as_bytes())
        .is_some()
}

/// JSON under the names that Event Grid's documents publish it with, or under any that says so.
fn json_form(media_type: Option<&MediaType>, any_json: bool) -> Option<RequestForm> {
    let form = Some(RequestForm::Json(JsonForm::Either));
    let Some(media_type) = media_type else {
        return form;
    };
    let is_taken = matches!(
        media_type.essence(),
        "application/json" | "text/json" | "text/plain" | "application/x-www-form-urlencoded"
    );
    form.filter(|_| (is_taken || any_json && media_type.is_json()) && media_type.is_utf8())
}

/// The error of a body that is no JSON: of the event and member in which it ends to be, if there is
/// one.
fn json_body_error(body: &str, source: serde_json::Error) -> PublishInputError {
    let Some(place) = syntax::fault_path(body, &source) else {
        return PublishInputError::Body(EventExpectation::Json(source));
    };
    let index = place
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .and_then(|(index, member)| Some((index.parse().ok()?, member)));
    let (index, member) = index.unwrap_or((0, place.as_str()));
    let member = member.trim_start_matches('.');
    PublishInputError::Syntax {
        index,
        member: (!member.is_empty()).then(|| shown_name(member)),
        source,
    }
}

fn require_utf8(bytes: &Bytes) -> Result<&str, PublishInputError> {
    std::str::from_utf8(bytes).map_err(|_| PublishInputError::Body(EventExpectation::Utf8))
}

#[cfg(test)]
mod tests;
