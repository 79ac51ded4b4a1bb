//! The names of an event in every schema: its id, source, type and subject.

use std::borrow::Cow;

use bytes::Bytes;

use super::members::EventMembers;
use crate::model::{EventEnvelope, EventNames, EventSchema};

impl<'a> EventNames<'a> {
    /// Reads the names of an event that was accepted. A custom event has them in its envelope.
    /// Without an envelope and a text, the event has none.
    pub fn from_event(
        schema: EventSchema,
        text: Option<&'a Bytes>,
        envelope: Option<&'a EventEnvelope>,
    ) -> Self {
        match (envelope, text) {
            (Some(envelope), _) => Self::from_envelope(envelope),
            (None, Some(text)) => str::from_utf8(text)
                .map(|text| Self::from_text(schema, text))
                .unwrap_or_default(),
            (None, None) => Self::default(),
        }
    }

    fn from_envelope(envelope: &'a EventEnvelope) -> Self {
        Self {
            id: Some(Cow::Borrowed(&envelope.id)),
            source: Some(Cow::Borrowed(&envelope.topic)),
            event_type: Some(Cow::Borrowed(&envelope.event_type)),
            subject: Some(Cow::Borrowed(&envelope.subject)),
        }
    }

    /// Reads the names of an event without an envelope.
    pub(crate) fn from_text(schema: EventSchema, text: &'a str) -> Self {
        let Ok(members) = EventMembers::parse(text) else {
            return Self::default();
        };
        let (source, event_type) = match schema {
            EventSchema::EventGrid => ("topic", "eventType"),
            EventSchema::CloudEvents | EventSchema::Custom => ("source", "type"),
        };
        Self {
            id: members.find_text("id"),
            source: members.find_text(source),
            event_type: members.find_text(event_type),
            subject: members.find_text("subject"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: EventSchema, text: &'static str, expected: [Option<&str>; 4]) {
        let text = Bytes::from_static(text.as_bytes());
        let EventNames {
            id,
            source,
            event_type,
            subject,
        } = EventNames::from_event(schema, Some(&text), None);
        let names = [&id, &source, &event_type, &subject].map(|name| name.as_deref());
        assert_eq!(names, expected, "{text:?}");
    }

    #[test]
    fn every_schema_has_its_own_members() {
        check(
            EventSchema::CloudEvents,
            r#"{"id":"1","source":"/s","type":"t","subject":"a\u00e9","topic":"x"}"#,
            [Some("1"), Some("/s"), Some("t"), Some("a\u{e9}")],
        );
        check(
            EventSchema::EventGrid,
            r#"{"id":"1","topic":"/topics/o","eventType":"t","subject":"","source":"x"}"#,
            [Some("1"), Some("/topics/o"), Some("t"), Some("")],
        );
    }

    #[test]
    fn missing_or_non_text_member_has_no_name() {
        check(
            EventSchema::CloudEvents,
            r#"{"id":7,"source":"\ud800"}"#,
            [None; 4],
        );
        check(EventSchema::CloudEvents, "[]", [None; 4]);
        assert_eq!(
            EventNames::from_event(EventSchema::CloudEvents, None, None),
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
            let json = names.to_json();
            assert_eq!(
                (&json[..], json.len()),
                (expected.as_bytes(), names.byte_len())
            );
            assert_eq!(
                serde_json::from_slice::<EventNames<'_>>(&json).unwrap(),
                names
            );
        }
    }

    #[test]
    fn a_custom_event_has_them_in_its_envelope() {
        let envelope = EventEnvelope {
            id: "1".into(),
            event_time: "".into(),
            event_type: "made".into(),
            data_version: "".into(),
            topic: "/topics/orders".into(),
            subject: "s".into(),
        };
        let names = EventNames::from_event(EventSchema::Custom, None, Some(&envelope));
        let all = [names.id, names.source, names.event_type, names.subject];
        assert_eq!(
            all.map(Option::unwrap),
            ["1", "/topics/orders", "made", "s"]
        );
    }
}
