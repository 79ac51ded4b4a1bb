//! The steps for a batch: read it, write a file for each hour, and settle what is written.

use std::error::Error;
use std::time::Duration;

use posthaste_core::model::SQS_DELAY_SECS_MAX;
use posthaste_ports::{
    BatchResponse, MessageId, OutgoingMessage, Ports, QueueName, QueueReceiver, ReceivedMessage, Successor,
};

use crate::error::RecordError;
use crate::receive::{Malformed, Received, receive};
use crate::record::Record;

impl<P: Ports> Record<P> {
    /// Handles a batch until `deadline`, a time of the clock's `monotonic`. The answer names the messages
    /// with records that are not durable. All of their records are written again when they come back.
    pub async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        let Received { hours, newer, malformed } = receive(batch);
        malformed.iter().for_each(count_lost);
        let mut failures = Vec::new();
        // The newest hour is the largest, and what is asked for most.
        for (hour, gathered) in hours.into_iter().rev() {
            failures.extend(self.write_hour(hour, gathered, deadline).await);
        }
        for (message, version) in newer {
            failures.extend(self.wait_for_newer(message, version, deadline).await);
        }
        BatchResponse { failures }
    }

    /// Sends a message of a newer version back to its queue, for a newer program. Answers it if that failed.
    async fn wait_for_newer(
        &self,
        message: ReceivedMessage,
        version: u32,
        deadline: Duration,
    ) -> Option<MessageId> {
        let message_id = message.id;
        tracing::warn!(message_id = %message_id.0, version, "records of a newer version handed back");
        let again = OutgoingMessage { body: message.body, group: None, delay_secs: SQS_DELAY_SECS_MAX };
        let successors = vec![Successor { to: QueueName::Records, message: again }];
        let replace = async {
            self.ports.records.replace(&message.receipt, successors).await.map_err(RecordError::Store)
        };
        let error = self.in_time(deadline, replace).await.err()?;
        tracing::error!(
            message_id = %message_id.0, error = &error as &dyn Error,
            "records of a newer version left to their visibility timeout"
        );
        Some(message_id)
    }
}

/// Counts a message that cannot be read as one lost record: how many were in it is not known.
fn count_lost(malformed: &Malformed) {
    metrics::counter!("LogRecordsLostCount").increment(1);
    let Malformed { id, error } = malformed;
    tracing::error!(
        message_id = %id.0, error = error as &dyn Error, "records not readable, the delivery log has a gap"
    );
}
