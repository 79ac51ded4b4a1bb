//! The steps for a batch: read it, write a file for each hour, settle what is written, and put off
//! what the store has refused for long.

use std::error::Error;
use std::time::Duration;

use posthaste_ports::{BatchResponse, Clock, MessageId, Ports, ReceivedMessage};

use crate::receive::{MalformedMessage, ReceivedRecords, receive_batch};
use crate::record::LogRecorder;
use crate::refused::RefusedMessages;
use crate::work::run_blocking;

/// Time before the deadline from which on no file is written, where messages may have to be put
/// off.
const PUT_OFF_BEFORE: Duration = Duration::from_secs(10);

impl<P: Ports> LogRecorder<P> {
    /// Handles a batch until `deadline`, a time of the clock's `monotonic`. The answer names the
    /// messages with records that are not durable. All of their records are written again when
    /// they come back.
    pub async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        let refused = self.write_batch(batch, deadline).await;
        self.merge_busy_hours(deadline).await;
        BatchResponse { failures: refused }
    }

    async fn write_batch(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> Vec<MessageId> {
        let mut refused = RefusedMessages::new(&batch);
        let write_by = if refused.may_put_off() {
            deadline.saturating_sub(PUT_OFF_BEFORE)
        } else {
            deadline
        };
        let messages: Vec<_> = batch.iter().map(|message| message.id.clone()).collect();
        // A full batch takes some ten milliseconds to read.
        let received = match run_blocking(move || Ok(receive_batch(batch))).await {
            Ok(received) => received,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "records not read, their messages come back"
                );
                return messages;
            }
        };
        let ReceivedRecords {
            hours,
            waits,
            newer,
            malformed,
        } = received;
        malformed.iter().for_each(count_lost);
        self.know_health(write_by).await;
        let mut written = Vec::with_capacity(hours.len());
        // The newest hour is the largest, and what is asked for most.
        for (hour, gathered) in hours.into_iter().rev() {
            let oldest = gathered.oldest_time();
            let tries = self.tries_by_key(&gathered.records);
            match self.write_hour(hour, gathered, write_by).await {
                Ok(()) => written.push(tries),
                Err(unwritten) => refused.add_hour(unwritten, oldest),
            }
        }
        self.add_tries(written.into_iter().rev(), &messages, write_by)
            .await;
        self.add_waiting(waits, refused.messages(), write_by).await;
        self.oldest_unwritten
            .set_gauge(refused.oldest, self.ports.clock.now());
        let mut failures = self.put_off(refused, deadline).await;
        for (message, version) in newer {
            failures.extend(self.wait_for_newer(message, version, deadline).await);
        }
        failures
    }

    /// Sends a message of a newer version back to its queue, for a newer program. Answers it if
    /// that failed.
    async fn wait_for_newer(
        &self,
        message: ReceivedMessage,
        version: u32,
        deadline: Duration,
    ) -> Option<MessageId> {
        let message_id = message.id.clone();
        tracing::warn!(message_id = %message_id.0, version, "records of a newer version handed back");
        let error = self.send_back(message, deadline).await.err()?;
        tracing::error!(
            message_id = %message_id.0, error = &error as &dyn Error,
            "records of a newer version left to their visibility timeout"
        );
        Some(message_id)
    }
}

/// Counts the records of a message that cannot be read: as many as it shows, or one.
fn count_lost(malformed: &MalformedMessage) {
    let MalformedMessage { id, records, error } = malformed;
    metrics::counter!("LogRecordsLostCount").increment(*records as u64);
    tracing::error!(
        message_id = %id.0, records, error = error as &dyn Error,
        "records not readable, the delivery log has a gap"
    );
}
