//! URLs of the queues that a function may reach.

use posthaste_ports::QueueName;

/// URLs of the queues. A function knows those that it may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueUrls {
    /// The URL of the delivery queue.
    pub deliveries: Option<String>,
    /// The URL of the dead-letter queue.
    pub dead_letters: Option<String>,
    /// The URL of the redrive queue.
    pub redrive: Option<String>,
}

impl QueueUrls {
    /// The URL of a queue, if it is known here.
    pub fn of(&self, name: QueueName) -> Option<&str> {
        match name {
            QueueName::Deliveries => self.deliveries.as_deref(),
            QueueName::DeadLetters => self.dead_letters.as_deref(),
            QueueName::Redrive => self.redrive.as_deref(),
        }
    }
}
