//! Event Grid's members around a custom event.

use bytes::Bytes;
use serde::Deserialize;

use super::object_writer::{ObjectWriter, quoted_len};

/// The version of Event Grid's envelope.
const METADATA_VERSION: &str = "1";

/// Bytes of the envelope without its texts.
const FRAME_BYTES: usize =
    r#"{"id":,"eventTime":,"eventType":,"dataVersion":,"metadataVersion":"1","topic":,"subject":}"#
        .len();

/// Bytes of an event's frame in its envelope.
const DATA_BYTES: usize = r#","data":"#.len();

/// The envelope that a topic's input mapping made once, when it accepted a custom event: every
/// attempt, dead letter and notice says the same of it, also after the mapping has changed. Every
/// text is at most [`MAPPED_VALUE_BYTES_MAX`](crate::model::MAPPED_VALUE_BYTES_MAX) long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventEnvelope {
    /// The event's id. Not empty.
    pub id: Box<str>,
    /// The event's time, as the producer wrote it or as it was made.
    pub event_time: Box<str>,
    /// The event's type. Not empty.
    pub event_type: Box<str>,
    /// The version of its data, maybe empty.
    pub data_version: Box<str>,
    /// The topic. Not empty.
    pub topic: Box<str>,
    /// The event's subject, maybe empty.
    pub subject: Box<str>,
}

impl EventEnvelope {
    /// The envelope by itself, as an object.
    pub fn to_json(&self) -> Bytes {
        self.object_writer(0).finish()
    }

    /// The event in Event Grid's schema: the envelope, `between` (names and JSON values), and the
    /// event as it is under `data`. The order is that of Event Grid's documents.
    pub fn wrap_event(&self, event: &[u8], between: &[(&str, String)]) -> Bytes {
        let room: usize = between
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        let mut object = self.object_writer(event.len() + room + DATA_BYTES);
        for (name, value) in between {
            object.add_raw(name, value.as_bytes());
        }
        object.add_raw("data", event);
        object.finish()
    }

    /// The length of [`EventEnvelope::to_json`] in bytes.
    pub fn byte_len(&self) -> usize {
        let Self {
            id,
            event_time,
            event_type,
            data_version,
            topic,
            subject,
        } = self;
        let texts = [id, event_time, event_type, data_version, topic, subject];
        FRAME_BYTES + texts.iter().map(|text| quoted_len(text)).sum::<usize>()
    }

    fn object_writer(&self, room: usize) -> ObjectWriter {
        let mut object = ObjectWriter::with_capacity(self.byte_len() + room);
        object
            .add_text("id", &self.id)
            .add_text("eventTime", &self.event_time)
            .add_text("eventType", &self.event_type)
            .add_text("dataVersion", &self.data_version)
            .add_text("metadataVersion", METADATA_VERSION)
            .add_text("topic", &self.topic)
            .add_text("subject", &self.subject);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_lies_in_its_envelope_as_it_was() {
        let envelope = EventEnvelope {
            id: "1".into(),
            event_time: "2020-08-13T18:11:29.4121391Z".into(),
            event_type: "made".into(),
            data_version: "".into(),
            topic: "/topics/orders".into(),
            subject: "a\u{ffff}\"".into(),
        };
        let head = r#"{"id":"1","eventTime":"2020-08-13T18:11:29.4121391Z","eventType":"made","dataVersion":"","metadataVersion":"1","topic":"/topics/orders","subject":"a\uffff\"""#;
        assert_eq!(envelope.to_json(), format!("{head}}}"));
        let event = br#"{ "n": 1.00, "n": 12345678901234567890 }"#;
        let text = String::from_utf8(event.to_vec()).unwrap();
        assert_eq!(
            envelope.wrap_event(event, &[]),
            format!("{head},\"data\":{text}}}")
        );
        let between = [("deliveryAttempts", "3".to_owned())];
        assert_eq!(
            envelope.wrap_event(event, &between),
            format!("{head},\"deliveryAttempts\":3,\"data\":{text}}}")
        );
        assert_eq!(envelope.to_json().len(), envelope.byte_len());
    }
}
