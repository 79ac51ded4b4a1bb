//! The payloads that go out: one for each event and schema that somebody receives it in.

#[cfg(test)]
use posthaste_core::events::Event;
use posthaste_core::model::{Payload, Schema};

/// The payload of every event, by the schema it is sent in. An event that nobody receives in a schema has an
/// empty one there, and a schema that nobody receives has none at all.
#[derive(Debug, Default)]
pub(super) struct Payloads([Vec<Payload>; Schema::ALL.len()]);

impl Payloads {
    /// The payload of an event that somebody receives in this schema.
    pub(super) fn payload(&self, schema: Schema, index: usize) -> &Payload {
        &self.0[schema as usize][index]
    }

    /// Takes in the payloads of all events in this schema.
    pub(super) fn set(&mut self, schema: Schema, payloads: Vec<Payload>) {
        self.0[schema as usize] = payloads;
    }

    #[cfg(test)]
    pub(super) fn inline(schema: Schema, events: &[Event]) -> Self {
        let mut payloads = Self::default();
        payloads.0[schema as usize] = events.iter().map(|e| Payload::Inline(e.json().clone())).collect();
        payloads
    }
}
