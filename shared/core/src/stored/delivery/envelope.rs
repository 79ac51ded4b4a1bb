//! What lies around a custom event in a message of version 2: Event Grid's members, under Event Grid's names.

use std::sync::Arc;

use serde::Deserialize;

use crate::events::Envelope;

/// The envelope as a message has it. It is written by [`Envelope::json`], because its texts may hold
/// characters that SQS refuses raw.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvelopeWire {
    id: Box<str>,
    event_time: Box<str>,
    event_type: Box<str>,
    data_version: Box<str>,
    topic: Box<str>,
    subject: Box<str>,
}

impl EnvelopeWire {
    pub(super) fn into_envelope(self) -> Arc<Envelope> {
        Arc::new(Envelope {
            id: self.id,
            event_time: self.event_time,
            event_type: self.event_type,
            data_version: self.data_version,
            topic: self.topic,
            subject: self.subject,
        })
    }
}
