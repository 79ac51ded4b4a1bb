//! Custom events: any JSON object, with what its topic's mapping finds in it.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::date_time::{self, Offset};
use super::members::{Attributes, Members, Value};
use super::{Envelope, EventError, Expected};
use crate::model::{
    EVENT_TYPE_DEFAULT, InputMapping, MAPPED_VALUE_BYTES_MAX, Mapped, SourceField, Timestamp,
    TopicName,
};

/// The values that a topic adds to custom events which lack them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The time at which they were accepted.
    pub at: Timestamp,
    /// Chance, new for every request: ids are made from it.
    pub seed: [u8; 16],
}

/// Reads what the mapping names. Nothing else of the event is looked at but that it is an object
/// with each of its own members once.
pub(super) fn accept(
    json: &str,
    mapping: &InputMapping,
    topic: &TopicName,
    made: Made,
    index: usize,
) -> Result<(Attributes, Envelope), EventError> {
    let event = Members::read(json)?;
    let (time, event_time) = match &mapping.event_time {
        Some(field) => time(&event, field)?,
        None => (made.at, made.at.to_event_grid().into()),
    };
    let envelope = Envelope {
        id: match &mapping.id {
            Some(field) => required(&event, field, Expected::NonEmptyString)?,
            None => id(made.seed, index),
        },
        event_time,
        event_type: mapped(&event, &mapping.event_type, EVENT_TYPE_DEFAULT, false)?,
        data_version: mapped(&event, &mapping.data_version, "", true)?,
        topic: match &mapping.topic {
            Some(field) => required(&event, field, Expected::NonEmptyString)?,
            None => format!("/topics/{topic}").into(),
        },
        subject: mapped(&event, &mapping.subject, "", true)?,
    };
    Ok((attributes(&envelope, Some(time)), envelope))
}

/// The attributes that the rules look at. A time that cannot be read counts as missing.
pub(super) fn attributes(envelope: &Envelope, time: Option<Timestamp>) -> Attributes {
    Attributes {
        id: envelope.id.clone(),
        event_type: envelope.event_type.clone(),
        subject: Some(envelope.subject.clone()),
        time: time.or_else(|| date_time::parse(&envelope.event_time, Offset::ColonOptional)),
        ..Attributes::default()
    }
}

fn time(event: &Members<'_>, field: &SourceField) -> Result<(Timestamp, Box<str>), EventError> {
    let Some(value) = find(event, field)? else {
        return Err(EventError::member(field.as_str(), Expected::DateTime));
    };
    let refused = |expected| value.refused(field.as_str(), expected);
    let text = value.string().map_err(|_| refused(Expected::DateTime))?;
    if text.len() > MAPPED_VALUE_BYTES_MAX {
        return Err(refused(Expected::Short));
    }
    let time = date_time::parse(&text, Offset::ColonOptional).ok_or(refused(Expected::DateTime))?;
    Ok((time, text.into()))
}

/// The text of a field, which must not be empty.
fn required(
    event: &Members<'_>,
    field: &SourceField,
    expected: Expected,
) -> Result<Box<str>, EventError> {
    match value(event, field)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(EventError::member(field.as_str(), expected)),
    }
}

/// The text of a field, or its default. Without any mapping it is `unmapped`.
fn mapped(
    event: &Members<'_>,
    mapped: &Mapped,
    unmapped: &str,
    may_be_empty: bool,
) -> Result<Box<str>, EventError> {
    let default = mapped.default.as_deref();
    let Some(field) = &mapped.source else {
        return Ok(default.unwrap_or(unmapped).into());
    };
    let expected = if may_be_empty {
        Expected::String
    } else {
        Expected::NonEmptyString
    };
    let found = value(event, field)?.filter(|text| may_be_empty || !text.is_empty());
    match found.or_else(|| default.map(Box::from)) {
        Some(text) => Ok(text),
        None => Err(EventError::member(field.as_str(), expected)),
    }
}

/// The text of a field; a number or a boolean as written. A field that is null counts as absent.
fn value(event: &Members<'_>, field: &SourceField) -> Result<Option<Box<str>>, EventError> {
    let Some(value) = find(event, field)? else {
        return Ok(None);
    };
    let refused = |expected| value.refused(field.as_str(), expected);
    let text = match value {
        _ if value.is_composite() => return Err(refused(Expected::Scalar)),
        _ if value.is_string() => value.string().map_err(refused)?,
        _ => Cow::Borrowed(value.json()),
    };
    if text.len() > MAPPED_VALUE_BYTES_MAX {
        return Err(refused(Expected::Short));
    }
    Ok(Some(text.into()))
}

/// The value of a field, unless it is absent or null.
fn find<'a>(event: &Members<'a>, field: &SourceField) -> Result<Option<Value<'a>>, EventError> {
    let mut found = lookup(event, field.as_str());
    while let Some((value, rest)) = found {
        if rest.is_empty() {
            return Ok(Some(value).filter(|value| !value.is_null()));
        }
        if !value.is_object() {
            return Ok(None);
        }
        let within = |error: EventError| match &error.member {
            Some(name) => EventError::member(
                &format!("{}.{name}", prefix(field.as_str(), rest)),
                error.expected,
            ),
            None => EventError::member(field.as_str(), error.expected),
        };
        found = lookup(&Members::read(value.json()).map_err(within)?, rest);
    }
    Ok(None)
}

/// The member of this name; else the member of the name's first part, and what of the name is left
/// for it.
fn lookup<'a, 'n>(members: &Members<'a>, name: &'n str) -> Option<(Value<'a>, &'n str)> {
    if let Some(value) = members.value(name) {
        return Some((value, ""));
    }
    let (first, rest) = name.split_once('.')?;
    members
        .value(first)
        .filter(|_| !rest.is_empty())
        .map(|value| (value, rest))
}

/// The part of `field` before `.rest`.
fn prefix<'n>(field: &'n str, rest: &str) -> &'n str {
    field.get(..field.len() - rest.len() - 1).unwrap_or(field)
}

/// The id of the event at this place of its request: a UUID that looks like the random ones of
/// Event Grid.
fn id(seed: [u8; 16], index: usize) -> Box<str> {
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
