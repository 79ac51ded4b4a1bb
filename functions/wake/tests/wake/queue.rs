//! A queue that nobody receives from.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use posthaste_ports::{MessageId, OutgoingMessage, PortError, QueueSender};

/// The queue; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue(Arc<Mutex<Vec<Bytes>>>);

impl Queue {
    /// What was sent since this was asked last.
    pub(crate) fn take(&self) -> Vec<Bytes> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl QueueSender for Queue {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        let mut bodies = self.0.lock().unwrap();
        let mut send = |entry: OutgoingMessage| {
            bodies.push(entry.body);
            Ok(MessageId(bodies.len().to_string()))
        };
        Ok(entries.into_iter().map(&mut send).collect())
    }
}
