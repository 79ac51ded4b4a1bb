//! Refusals of publish requests: the event, the member, and what was expected there.

use crate::model::{
    CUSTOM_ENVELOPES_BYTES_MAX, CUSTOM_EVENTS_PER_REQUEST_MAX, EVENT_BYTES_MAX, EVENT_DEPTH_MAX,
    EventSchema, MAPPED_VALUE_BYTES_MAX, REQUEST_BYTES_MAX, SCHEDULED_AHEAD_MAX,
};

/// Longest part of a producer's member name that an error repeats, in characters.
const NAME_CHARS_SHOWN: usize = 64;

/// The reason why a publish request is refused as a whole. Nothing of it was accepted.
#[derive(Debug, thiserror::Error)]
pub enum PublishInputError {
    /// The body is not what carries events (400).
    #[error("body: {0}")]
    Body(#[source] EventExpectation),
    /// The body ends to be JSON within an event (400).
    #[error("events[{index}]{}expected JSON: {source}", member_prefix(member.as_ref()))]
    Syntax {
        /// The place of the event, from 0.
        index: usize,
        /// The member, as a path; none if it is none of the event's.
        member: Option<String>,
        /// The fault.
        #[source]
        source: serde_json::Error,
    },
    /// One event is not as its schema says (400).
    #[error("events[{index}]{}{error}", if error.member.is_some() { "." } else { ": " })]
    Event {
        /// The place of the event, from 0.
        index: usize,
        /// The fault.
        #[source]
        error: EventError,
    },
    /// The body is larger than a request may be (413).
    #[error("body of {bytes} bytes: expected at most {REQUEST_BYTES_MAX}")]
    RequestTooLarge {
        /// The size in bytes.
        bytes: usize,
    },
    /// One event, as it would be kept, is larger than an event may be (413).
    #[error("events[{index}] of {bytes} bytes: expected at most {EVENT_BYTES_MAX}")]
    EventTooLarge {
        /// The place of the event, from 0.
        index: usize,
        /// The size as JSON, in bytes.
        bytes: usize,
    },
    /// There are more custom events than a request may carry (413).
    #[error("body of {events} events: expected at most {CUSTOM_EVENTS_PER_REQUEST_MAX}")]
    TooManyEvents {
        /// The number of events.
        events: usize,
    },
    /// The envelopes that the topic's mapping makes are larger than a request may become (413).
    #[error(
        "what the input mapping makes of the events: expected at most {CUSTOM_ENVELOPES_BYTES_MAX} bytes"
    )]
    EnvelopesTooLarge,
    /// The topic does not take this content type, charset or content encoding (415).
    #[error("{header} {}: expected {expected}", found.as_deref().unwrap_or("missing"))]
    UnsupportedMediaType {
        /// The header at fault: `content-type` or `content-encoding`.
        header: &'static str,
        /// The value of the header, if there was one.
        found: Option<String>,
        /// The values that the topic takes.
        expected: &'static str,
    },
}

fn member_prefix(member: Option<&String>) -> String {
    member.map_or(": ".to_owned(), |member| format!(".{member}: "))
}

/// The reason why a JSON text is not an event.
#[derive(Debug, thiserror::Error)]
#[error("{}{}", member.as_ref().map(|name| format!("{name}: ")).unwrap_or_default(), self.detail_text())]
pub struct EventError {
    /// The member at fault; none if it is the event as a whole. A long or unprintable name is
    /// shortened and escaped.
    pub member: Option<String>,
    /// The value that was expected there.
    #[source]
    pub expected: EventExpectation,
    /// The kind of value that was found there, where another kind was expected.
    pub found: Option<&'static str>,
}

impl EventError {
    /// The event as a whole is at fault.
    pub(super) fn for_event(expected: EventExpectation) -> Self {
        Self {
            member: None,
            expected,
            found: None,
        }
    }

    /// A value of the member called `name` is at fault, which is of this kind.
    pub(super) fn for_member_of_kind(
        name: &str,
        expected: EventExpectation,
        found: &'static str,
    ) -> Self {
        Self {
            found: Some(found),
            ..Self::for_member(name, expected)
        }
    }

    /// The expectation, and what was found.
    pub fn detail_text(&self) -> String {
        match self.found {
            Some(found) => format!("{}, found {found}", self.expected),
            None => self.expected.to_string(),
        }
    }

    /// The member called `name` is at fault.
    pub fn for_member(name: &str, expected: EventExpectation) -> Self {
        Self {
            member: Some(shown_name(name)),
            expected,
            found: None,
        }
    }
}

/// A producer's name of a member, as an error repeats it.
pub(super) fn shown_name(name: &str) -> String {
    let mut shown: String = name
        .chars()
        .take(NAME_CHARS_SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if name.chars().nth(NAME_CHARS_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The expectation, where something else was found.
#[derive(Debug, thiserror::Error)]
pub enum EventExpectation {
    /// JSON.
    #[error("expected JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// UTF-8.
    #[error("expected UTF-8")]
    Utf8,
    /// No byte order mark before the JSON (RFC 8259, 8.1).
    #[error("expected JSON without a byte order mark")]
    NoByteOrderMark,
    /// An object, or an array of them.
    #[error("expected a JSON object or an array of objects")]
    ObjectOrArray,
    /// An object.
    #[error("expected a JSON object")]
    Object,
    /// One object, because the content type carries one event.
    #[error("expected one event as a JSON object; several need application/cloudevents-batch+json")]
    OneEvent,
    /// An array, because the content type carries a batch.
    #[error("expected a JSON array of events")]
    Array,
    /// Event Grid refuses an empty array.
    #[error("expected at least one event")]
    AtLeastOneEvent,
    /// Every member at most once.
    #[error("expected at most once")]
    Once,
    /// The member to be there.
    #[error("expected to be present")]
    Present,
    /// A string that is not empty.
    #[error("expected a non-empty string")]
    NonEmptyString,
    /// A string.
    #[error("expected a string")]
    String,
    /// A value a CloudEvents extension can have.
    #[error("expected a string, a number or a boolean")]
    Scalar,
    /// A text that fits into the envelope of a custom event.
    #[error("expected at most {MAPPED_VALUE_BYTES_MAX} bytes")]
    Short,
    /// Text without escaped lone surrogates.
    #[error("expected valid Unicode, found a lone surrogate")]
    Unicode,
    /// Text without control characters (CloudEvents, type `String`).
    #[error("expected text without control characters")]
    NoControlCharacters,
    /// The version of CloudEvents.
    #[error("expected \"1.0\"")]
    SpecVersion,
    /// The version of Event Grid's envelope.
    #[error("expected \"1\"")]
    MetadataVersion,
    /// A URI reference.
    #[error("expected a non-empty URI reference without spaces")]
    UriReference,
    /// A URI with its scheme.
    #[error("expected an absolute URI")]
    AbsoluteUri,
    /// A date-time.
    #[error("expected an RFC 3339 date-time such as 2026-11-21T10:00:00Z")]
    DateTime,
    /// A time for which an event can be scheduled.
    #[error("expected a time at most {} days ahead", SCHEDULED_AHEAD_MAX.as_secs() / 86_400)]
    NotSoFarAhead,
    /// The name of a CloudEvents attribute.
    #[error("expected an attribute name of lower-case letters and digits")]
    AttributeName,
    /// Not both forms of data.
    #[error("expected either data or data_base64")]
    OneData,
    /// Base64 with padding.
    #[error("expected base64")]
    Base64,
    /// The envelope that is kept beside a custom event.
    #[error("expected the envelope of a custom event")]
    Envelope,
    /// An event of the topic's schema; this one is of another.
    #[error(
        "expected an event of the schema {takes:?}, which the topic takes; this looks like {found:?}"
    )]
    OtherSchema {
        /// The topic's schema.
        takes: EventSchema,
        /// The schema that the event looks like.
        found: EventSchema,
    },
    /// Nesting within the limit.
    #[error("expected at most {EVENT_DEPTH_MAX} levels of nesting")]
    Depth,
    /// A header value in the encoding of the CloudEvents HTTP binding.
    #[error("expected percent-encoded UTF-8")]
    HeaderEncoding,
    /// An attribute that a `ce-` header must not carry.
    #[error("expected in the body and content-type, not in a ce- header")]
    NotInHeader,
}
