//! Custom events: any JSON object, with the values that its topic's mapping finds in it.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::date_time::{self, OffsetForm};
use super::members::{EventAttributes, EventMembers, MemberValue};
use super::{EventError, EventExpectation};
use crate::model::{
    EVENT_TYPE_DEFAULT, EventEnvelope, InputMapping, MAPPED_VALUE_BYTES_MAX, MappedField,
    SourceField, Timestamp, TopicName,
};

/// The values that a topic adds to custom events which lack them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedValues {
    /// The time at which the events were accepted.
    pub at: Timestamp,
    /// Chance, new for every request: ids are made from it.
    pub seed: [u8; 16],
}

/// Reads the fields that the mapping names. Otherwise the event must only be an object with each of
/// its own members once.
pub(super) fn accept_event(
    json: &str,
    mapping: &InputMapping,
    topic: &TopicName,
    made: GeneratedValues,
    index: usize,
) -> Result<(EventAttributes, EventEnvelope), EventError> {
    let event = EventMembers::parse(json)?;
    let (time, event_time) = match &mapping.event_time {
        Some(field) => read_time(&event, field)?,
        None => (made.at, made.at.to_event_grid().into()),
    };
    let envelope = EventEnvelope {
        id: match &mapping.id {
            Some(field) => required_text(&event, field, EventExpectation::NonEmptyString)?,
            None => generated_id(made.seed, index),
        },
        event_time,
        event_type: mapped_text(&event, &mapping.event_type, EVENT_TYPE_DEFAULT, false)?,
        data_version: mapped_text(&event, &mapping.data_version, "", true)?,
        topic: match &mapping.topic {
            Some(field) => required_text(&event, field, EventExpectation::NonEmptyString)?,
            None => format!("/topics/{topic}").into(),
        },
        subject: mapped_text(&event, &mapping.subject, "", true)?,
    };
    Ok((envelope_attributes(&envelope, Some(time)), envelope))
}

/// The attributes that the rules look at. A time that cannot be read counts as missing.
pub(super) fn envelope_attributes(
    envelope: &EventEnvelope,
    time: Option<Timestamp>,
) -> EventAttributes {
    EventAttributes {
        id: envelope.id.clone(),
        event_type: envelope.event_type.clone(),
        subject: Some(envelope.subject.clone()),
        time: time.or_else(|| date_time::parse(&envelope.event_time, OffsetForm::ColonOptional)),
        ..EventAttributes::default()
    }
}

fn read_time(
    event: &EventMembers<'_>,
    field: &SourceField,
) -> Result<(Timestamp, Box<str>), EventError> {
    let Some(value) = find_field(event, field)? else {
        return Err(EventError::for_member(
            field.as_str(),
            EventExpectation::DateTime,
        ));
    };
    parse_field_time(value).map_err(|expected| value.to_error(field.as_str(), expected))
}

fn parse_field_time(value: MemberValue<'_>) -> Result<(Timestamp, Box<str>), EventExpectation> {
    let text = value
        .decode_string()
        .map_err(|_| EventExpectation::DateTime)?;
    if text.len() > MAPPED_VALUE_BYTES_MAX {
        return Err(EventExpectation::Short);
    }
    let time =
        date_time::parse(&text, OffsetForm::ColonOptional).ok_or(EventExpectation::DateTime)?;
    Ok((time, text.into()))
}

/// The text of a field, which must not be empty.
fn required_text(
    event: &EventMembers<'_>,
    field: &SourceField,
    expected: EventExpectation,
) -> Result<Box<str>, EventError> {
    match field_text(event, field)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(EventError::for_member(field.as_str(), expected)),
    }
}

/// The text of a field, or its default. Without any mapping it is `unmapped`.
fn mapped_text(
    event: &EventMembers<'_>,
    mapped: &MappedField,
    unmapped: &str,
    may_be_empty: bool,
) -> Result<Box<str>, EventError> {
    let default = mapped.default.as_deref();
    let Some(field) = &mapped.source else {
        return Ok(default.unwrap_or(unmapped).into());
    };
    let expected = if may_be_empty {
        EventExpectation::String
    } else {
        EventExpectation::NonEmptyString
    };
    let found = field_text(event, field)?.filter(|text| may_be_empty || !text.is_empty());
    match found.or_else(|| default.map(Box::from)) {
        Some(text) => Ok(text),
        None => Err(EventError::for_member(field.as_str(), expected)),
    }
}

/// The text of a field; a number or a boolean as written. A field that is null counts as absent.
fn field_text(
    event: &EventMembers<'_>,
    field: &SourceField,
) -> Result<Option<Box<str>>, EventError> {
    let Some(value) = find_field(event, field)? else {
        return Ok(None);
    };
    let text = decode_scalar(value).map_err(|expected| value.to_error(field.as_str(), expected))?;
    Ok(Some(text.into()))
}

fn decode_scalar(value: MemberValue<'_>) -> Result<Cow<'_, str>, EventExpectation> {
    if value.is_composite() {
        return Err(EventExpectation::Scalar);
    }
    let text = if value.is_string() {
        value.decode_string()?
    } else {
        Cow::Borrowed(value.json())
    };
    if text.len() > MAPPED_VALUE_BYTES_MAX {
        return Err(EventExpectation::Short);
    }
    Ok(text)
}

/// The value of a field, unless it is absent or null.
fn find_field<'a>(
    event: &EventMembers<'a>,
    field: &SourceField,
) -> Result<Option<MemberValue<'a>>, EventError> {
    let mut found = lookup_member(event, field.as_str());
    while let Some((value, rest)) = found {
        if rest.is_empty() {
            return Ok(Some(value).filter(|value| !value.is_null()));
        }
        if !value.is_object() {
            return Ok(None);
        }
        let members = EventMembers::parse(value.json())
            .map_err(|error| error_within_field(field, rest, error))?;
        found = lookup_member(&members, rest);
    }
    Ok(None)
}

/// The error of an object on the way to a field, of which `rest` was still to be found in it.
fn error_within_field(field: &SourceField, rest: &str, error: EventError) -> EventError {
    match &error.member {
        Some(name) => EventError::for_member(
            &format!("{}.{name}", prefix_before(field.as_str(), rest)),
            error.expected,
        ),
        None => EventError::for_member(field.as_str(), error.expected),
    }
}

/// The member of this name; else the member of the name's first part, and the rest of the name.
fn lookup_member<'a, 'n>(
    members: &EventMembers<'a>,
    name: &'n str,
) -> Option<(MemberValue<'a>, &'n str)> {
    if let Some(value) = members.find_value(name) {
        return Some((value, ""));
    }
    let (first, rest) = name.split_once('.')?;
    members
        .find_value(first)
        .filter(|_| !rest.is_empty())
        .map(|value| (value, rest))
}

/// The part of `field` before `.rest`.
fn prefix_before<'n>(field: &'n str, rest: &str) -> &'n str {
    field.get(..field.len() - rest.len() - 1).unwrap_or(field)
}

/// The id of the event at this place of its request: a UUID that looks like the random ones of
/// Event Grid.
fn generated_id(seed: [u8; 16], index: usize) -> Box<str> {
    let digest = Sha256::new()
        .chain_update(seed)
        .chain_update(index.to_be_bytes())
        .finalize();
    let mut bytes: [u8; 16] = std::array::from_fn(|at| digest[at]);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-").into()
}

#[cfg(test)]
mod tests;
