//! Bytes that a data folder holds.

use posthaste_ports::QueueName;

/// Bytes of messages and objects, without what the engine adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LiveBytes {
    /// Bytes of all of them.
    pub(super) all: u64,
    /// Bytes of the messages in the queue of records.
    pub(super) records: u64,
}

impl LiveBytes {
    /// Adds a message. The queue of one that is damaged is not known.
    pub(super) fn add_message(&mut self, queue: Option<QueueName>, bytes: usize) {
        self.add_bytes(bytes as u64);
        if queue == Some(QueueName::Records) {
            self.records = self.records.saturating_add(bytes as u64);
        }
    }

    /// Takes a message away.
    pub(super) fn remove_message(&mut self, queue: Option<QueueName>, bytes: usize) {
        self.remove_bytes(bytes as u64);
        if queue == Some(QueueName::Records) {
            self.records = self.records.saturating_sub(bytes as u64);
        }
    }

    /// Adds an object.
    pub(super) fn add_bytes(&mut self, bytes: u64) {
        self.all = self.all.saturating_add(bytes);
    }

    /// Takes an object away.
    pub(super) fn remove_bytes(&mut self, bytes: u64) {
        self.all = self.all.saturating_sub(bytes);
    }
}
