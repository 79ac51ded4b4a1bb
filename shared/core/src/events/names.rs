//! The names of an event: what it is called, whatever its schema.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;

use super::members::Members;
use super::object::quoted_len;
use super::{Envelope, ObjectWriter};
use crate::model::Schema;

/// Bytes of a member beside its name and value: two quotes, a colon, and a brace or a comma.
const MEMBER_BYTES: usize = 4;

/// The members of an event that people look for it by. Each is missing where the event does not
/// have it, or has something else than a text there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventNames<'a> {
    /// The id.
    pub id: Option<Cow<'a, str>>,
    /// The source, or Event Grid's topic.
    pub source: Option<Cow<'a, str>>,
    /// The type.
    pub event_type: Option<Cow<'a, str>>,
    /// The subject.
    pub subject: Option<Cow<'a, str>>,
}

impl<'a> EventNames<'a> {
    /// Reads the names of an event that was accepted. A custom event has them in its envelope.
    /// Without an envelope and a text, the event has none.
    pub fn of(schema: Schema, text: Option<&'a Bytes>, envelope: Option<&'a Envelope>) -> Self {
        match (envelope, text) {
            (Some(envelope), _) => Self::of_envelope(envelope),
            (None, Some(text)) => str::from_utf8(text)
                .map(|text| Self::of_text(schema, text))
                .unwrap_or_default(),
            (None, None) => Self::default(),
        }
    }

    fn of_envelope(envelope: &'a Envelope) -> Self {
        let text = |text: &'a str| Some(Cow::Borrowed(text));
        Self {
            id: text(&envelope.id),
            source: text(&envelope.topic),
            event_type: text(&envelope.event_type),
            subject: text(&envelope.subject),
        }
    }

    /// Reads the names of an event without an envelope.
    pub(crate) fn of_text(schema: Schema, text: &'a str) -> Self {
        let Ok(members) = Members::read(text) else {
            return Self::default();
        };
        let text = |name| members.value(name)?.string().ok();
        let (source, event_type) = match schema {
            Schema::EventGrid => ("topic", "eventType"),
            Schema::CloudEvents | Schema::Custom => ("source", "type"),
        };
        Self {
            id: text("id"),
            source: text(source),
            event_type: text(event_type),
            subject: text("subject"),
        }
    }

    /// The names as an object that a message can hold.
    pub fn json(&self) -> Bytes {
        let mut object = ObjectWriter::with_capacity(self.bytes());
        for (member, value) in self.members() {
            object.text(member, value);
        }
        object.finish()
    }

    /// The length of [`json`](Self::json) in bytes.
    pub fn bytes(&self) -> usize {
        let members = self
            .members()
            .map(|(member, value)| member.len() + quoted_len(value) + MEMBER_BYTES);
        members.sum::<usize>().max(1) + 1
    }

    /// The names that are there, as members of an object.
    fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let members = [
            ("id", &self.id),
            ("source", &self.source),
            ("eventType", &self.event_type),
            ("subject", &self.subject),
        ];
        members
            .into_iter()
            .filter_map(|(member, value)| Some((member, value.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Schema, text: &'static str, expected: [Option<&str>; 4]) {
        let text = Bytes::from_static(text.as_bytes());
        let EventNames {
            id,
            source,
            event_type,
            subject,
        } = EventNames::of(schema, Some(&text), None);
        let names = [&id, &source, &event_type, &subject].map(|name| name.as_deref());
        assert_eq!(names, expected, "{text:?}");
    }

    #[test]
    fn every_schema_has_its_own_members() {
        check(
            Schema::CloudEvents,
            r#"{"id":"1","source":"/s","type":"t","subject":"a\u00e9","topic":"x"}"#,
            [Some("1"), Some("/s"), Some("t"), Some("a\u{e9}")],
        );
        check(
            Schema::EventGrid,
            r#"{"id":"1","topic":"/topics/o","eventType":"t","subject":"","source":"x"}"#,
            [Some("1"), Some("/topics/o"), Some("t"), Some("")],
        );
    }

    #[test]
    fn what_is_missing_or_no_text_has_no_name() {
        check(
            Schema::CloudEvents,
            r#"{"id":7,"source":"\ud800"}"#,
            [None; 4],
        );
        check(Schema::CloudEvents, "[]", [None; 4]);
        assert_eq!(
            EventNames::of(Schema::CloudEvents, None, None),
            EventNames::default()
        );
    }

    #[test]
    fn names_are_an_object_of_known_length() {
        let text = |text: &'static str| Some(Cow::Borrowed(text));
        let some = EventNames {
            id: text("1\u{ffff}"),
            subject: text("\""),
            ..EventNames::default()
        };
        for (names, expected) in [
            (some, r#"{"id":"1\uffff","subject":"\""}"#),
            (EventNames::default(), "{}"),
        ] {
            let json = names.json();
            assert_eq!(
                (&json[..], json.len()),
                (expected.as_bytes(), names.bytes())
            );
            assert_eq!(
                serde_json::from_slice::<EventNames<'_>>(&json).unwrap(),
                names
            );
        }
    }

    #[test]
    fn a_custom_event_has_them_in_its_envelope() {
        let envelope = Envelope {
            id: "1".into(),
            event_time: "".into(),
            event_type: "made".into(),
            data_version: "".into(),
            topic: "/topics/orders".into(),
            subject: "s".into(),
        };
        let names = EventNames::of(Schema::Custom, None, Some(&envelope));
        let all = [names.id, names.source, names.event_type, names.subject];
        assert_eq!(
            all.map(Option::unwrap),
            ["1", "/topics/orders", "made", "s"]
        );
    }
}
