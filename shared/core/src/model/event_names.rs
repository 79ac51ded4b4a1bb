//! The names of an event: what it is called, whatever its schema.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;

use super::object_writer::{ObjectWriter, quoted_len};

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

impl EventNames<'_> {
    /// The names as an object that a message can hold.
    pub fn to_json(&self) -> Bytes {
        let mut object = ObjectWriter::with_capacity(self.byte_len());
        for (member, value) in self.present_members() {
            object.add_text(member, value);
        }
        object.finish()
    }

    /// The length of [`to_json`](Self::to_json) in bytes.
    pub fn byte_len(&self) -> usize {
        let members = self
            .present_members()
            .map(|(member, value)| member.len() + quoted_len(value) + MEMBER_BYTES);
        members.sum::<usize>().max(1) + 1
    }

    /// The names that are there, as members of an object.
    fn present_members(&self) -> impl Iterator<Item = (&'static str, &str)> {
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
