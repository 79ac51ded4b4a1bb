//! The top-level members of an event's JSON object: names decoded, values left as the producer
//! wrote them. And the attributes among them that the rules look at.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{EventError, EventExpectation};
use crate::model::Timestamp;

/// The most members that are compared pairwise for duplicates; more are sorted, so that 100,000
/// members stay cheap.
const PAIRWISE_MAX: usize = 24;

/// Room for the members of a usual event.
const MEMBERS_USUAL: usize = 16;

/// The attributes of an event that the rules look at, decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EventAttributes {
    pub(super) id: Box<str>,
    pub(super) event_type: Box<str>,
    pub(super) source: Option<Box<str>>,
    pub(super) subject: Option<Box<str>>,
    pub(super) time: Option<Timestamp>,
    pub(super) expirytime: Option<Timestamp>,
    pub(super) traceparent: Option<Box<str>>,
}

/// The members of one object in the order written, each name once.
pub(super) struct EventMembers<'a>(Vec<(Cow<'a, str>, MemberValue<'a>)>);

/// The value of a member as it is written.
#[derive(Clone, Copy)]
pub(super) struct MemberValue<'a>(&'a str);

impl<'a> EventMembers<'a> {
    /// Reads an object. Values are skipped, not decoded, to any depth.
    pub(super) fn parse(json: &'a str) -> Result<Self, EventError> {
        let whole = MemberValue(json.trim_ascii());
        if !whole.is_object() {
            return Err(EventError {
                found: Some(whole.kind_name()),
                ..EventError::for_event(EventExpectation::Object)
            });
        }
        let members: Self = serde_json::from_str(json)
            .map_err(|source| EventError::for_event(EventExpectation::Json(source)))?;
        match members.duplicate_name() {
            Some(name) => Err(EventError::for_member(name, EventExpectation::Once)),
            None => Ok(members),
        }
    }

    /// The text of an event, and its members. `None` where it is not an object.
    pub(super) fn from_event_text(event: &'a Bytes) -> Option<(&'a str, Self)> {
        let text = std::str::from_utf8(event).ok()?;
        Some((text, Self::parse(text).ok()?))
    }

    /// Name and value of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, MemberValue<'a>)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// The value of the member of this name.
    pub(super) fn find_value(&self, name: &str) -> Option<MemberValue<'a>> {
        self.iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    /// The text of the member of this name; `None` if it is none.
    pub(super) fn find_text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.find_value(name)?.decode_string().ok()
    }

    fn duplicate_name(&self) -> Option<&str> {
        let names = self.0.iter().map(|(name, _)| name.as_ref());
        if self.0.len() <= PAIRWISE_MAX {
            let mut numbered = names.clone().enumerate();
            return numbered
                .find(|(i, name)| names.clone().take(*i).any(|n| n == *name))
                .map(|(_, n)| n);
        }
        let mut sorted: Vec<&str> = names.collect();
        sorted.sort_unstable();
        sorted
            .array_windows()
            .find(|[a, b]| a == b)
            .map(|[name, _]| *name)
    }
}

impl<'a> MemberValue<'a> {
    /// The JSON text.
    pub(super) fn json(self) -> &'a str {
        self.0
    }

    /// Whether it is `null`.
    pub(super) fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// Whether it is a string.
    pub(super) fn is_string(self) -> bool {
        self.0.starts_with('"')
    }

    /// Whether it is an object.
    pub(super) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether it is an array or an object.
    pub(super) fn is_composite(self) -> bool {
        self.0.starts_with(['[', '{'])
    }

    /// The kind of value, as JSON calls it.
    fn kind_name(self) -> &'static str {
        match self.0.as_bytes().first() {
            Some(b'"') => "a string",
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    /// The error of this value of the member called `name`: with the kind of value that it is, where
    /// that is the fault.
    pub(super) fn to_error(self, name: &str, expected: EventExpectation) -> EventError {
        let is_of_kind = match &expected {
            EventExpectation::Scalar => !self.is_composite(),
            EventExpectation::NonEmptyString
            | EventExpectation::String
            | EventExpectation::UriReference
            | EventExpectation::AbsoluteUri
            | EventExpectation::DateTime
            | EventExpectation::Base64
            | EventExpectation::SpecVersion
            | EventExpectation::MetadataVersion => self.is_string(),
            _ => true,
        };
        if is_of_kind {
            EventError::for_member(name, expected)
        } else {
            EventError::for_member_of_kind(name, expected, self.kind_name())
        }
    }

    /// The decoded string. Only one with escapes is copied.
    pub(super) fn decode_string(self) -> Result<Cow<'a, str>, EventExpectation> {
        let inner = self
            .0
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .ok_or(EventExpectation::String)?;
        if inner.as_bytes().contains(&b'\\') {
            // The escapes' form was checked when the value was skipped; what decoding can still
            // meet is a lone surrogate.
            return serde_json::from_str(self.0)
                .map(Cow::Owned)
                .map_err(|_| EventExpectation::Unicode);
        }
        Ok(Cow::Borrowed(inner))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for EventMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = EventMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EventMembers<'de>, A::Error> {
        let mut members = Vec::with_capacity(MEMBERS_USUAL);
        while let Some((MemberName(name), value)) = map.next_entry::<_, &'de RawValue>()? {
            members.push((name, MemberValue(value.get())));
        }
        Ok(EventMembers(members))
    }
}

/// A member's name; borrowed unless it has escapes.
#[derive(Deserialize)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> String {
        EventMembers::parse(json)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn values_are_kept_as_written() {
        let json = r#"{ "a" : 1e999999, "\u0062": "\ud800" ,"c":[ 1 ,2]}"#;
        let members = EventMembers::parse(json).unwrap();
        let found: Vec<_> = members
            .iter()
            .map(|(name, value)| (name, value.json()))
            .collect();
        assert_eq!(
            found,
            [("a", "1e999999"), ("b", r#""\ud800""#), ("c", "[ 1 ,2]")]
        );
    }

    /// A duplicate member is named however it is written and wherever it lies.
    #[test]
    fn duplicate_is_named_in_any_spelling_and_position() {
        assert_eq!(
            error(r#"{"a":1,"b":2,"\u0061":3}"#),
            "a: expected at most once"
        );
        let many: Vec<String> = (0..1000).map(|n| format!("\"m{}\":0", n % 999)).collect();
        assert_eq!(
            error(&format!("{{{}}}", many.join(","))),
            "m0: expected at most once"
        );
    }

    #[test]
    fn a_name_with_a_lone_surrogate_is_refused() {
        assert_eq!(
            error(r#"{"\ud800":1}"#),
            "expected JSON: unexpected end of hex escape at line 1 column 9"
        );
    }

    #[test]
    fn a_string_is_copied_only_if_it_has_escapes() {
        assert!(matches!(
            MemberValue(r#""plain""#).decode_string(),
            Ok(Cow::Borrowed("plain"))
        ));
        assert!(
            matches!(MemberValue(r#""a\/b""#).decode_string(), Ok(Cow::Owned(text)) if text == "a/b")
        );
        assert!(matches!(
            MemberValue(r#""\udc00""#).decode_string(),
            Err(EventExpectation::Unicode)
        ));
        assert!(matches!(
            MemberValue("1").decode_string(),
            Err(EventExpectation::String)
        ));
    }
}
