//! The steps for a batch: sort it, then write each object of letters.

use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::SQS_DELAY_MAX;
use posthaste_core::stored::refused_letters::refused_letters_key;
use posthaste_ports::{
    BatchResponse, Clock, MessageId, ObjectStore, OutgoingMessage, Ports, PutCondition, QueueName,
    QueueReceiver, ReceivedMessage, Successor,
};
use posthaste_services::catch_panic::{CaughtPanic, catch_panic};

use crate::dead_letters::DeadLetters;
use crate::letter::ReceivedLetter;
use crate::receive::{BatchWork, SortedBatch, sort_batch};

/// Objects that are written at once. It bounds the payloads that are read at once, to eight times
/// as many, and the memory for them: an object's records and the object made of them, 8 MiB as
/// preferred, so 64 MiB in all. Beside them are the batch's own messages, 6 MB at most, and their
/// parsed events. The function has 512 MB, or 256 at least.
pub(crate) const WORK_AT_ONCE_MAX: usize = 8;

/// Time that is reserved for writing: the longest that one call to S3 takes, its retries included
/// (`OPERATION_TIMEOUT` of posthaste-aws).
const WRITING_TIME: Duration = Duration::from_secs(20);

/// Least time for reading with which work on an object begins. Eight payloads at a time, an object
/// is read in about a second.
const READING_TIME_MIN: Duration = Duration::from_secs(5);

impl<P: Ports> DeadLetters<P> {
    /// Handles a batch until `deadline`, a time of the clock's `monotonic`. The answer names the
    /// messages for which nothing durable was done, also those for which there was no time.
    ///
    /// With less than 25 seconds to the deadline nothing begins.
    pub async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        let SortedBatch { work, mut failures } = sort_batch(self.ports.source, batch);
        let parts = work.into_iter().map(|work| self.work_on(work, deadline));
        let mut failed = pin!(stream::iter(parts).buffer_unordered(WORK_AT_ONCE_MAX));
        while let Some(failed) = failed.next().await {
            failures.extend(failed);
        }
        // A letter from the redrive queue that the bucket refuses goes to the dead-letter queue.
        if self.ports.source == QueueName::DeadLetters {
            self.unwritten.set_gauge(self.ports.clock.now());
            Box::pin(self.tell_of_refused(deadline)).await;
        }
        BatchResponse { failures }
    }

    /// Tells the monitor of the letters that the bucket refused, which wait to be tried again. What
    /// cannot be told now is told with the next ones.
    async fn tell_of_refused(&self, deadline: Duration) {
        let Some(letters) = self.unwritten.untold_letters(self.ports.clock.now()) else {
            return;
        };
        let key = refused_letters_key(&self.instance);
        let put = self
            .ports
            .state
            .put(&key, letters.render(), PutCondition::Always);
        if let Err(error) = self.in_time(deadline, put).await {
            let error = &error as &dyn Error;
            tracing::warn!(error, "refused dead letters not reported to the monitor");
        }
    }

    /// Handles a part of the batch if there is time, and answers the messages that are to come
    /// again.
    async fn work_on(&self, work: BatchWork, deadline: Duration) -> Vec<MessageId> {
        let ids = work.message_ids();
        if self.ports.clock.monotonic() + READING_TIME_MIN + WRITING_TIME > deadline {
            tracing::warn!(
                messages = ids.len(),
                "dead letters handed back, no time is left to begin with them"
            );
            return ids;
        }
        let worked = match work {
            // Boxed, here and in what it calls: rustc finds the layout of it all too deep in a
            // Lambda program.
            BatchWork::Object(letters) => {
                catch_panic(Box::pin(self.write_dead_letters(letters, deadline))).await
            }
            BatchWork::Raw(message) => catch_panic(self.keep_raw(message, deadline))
                .await
                .map(Vec::from_iter),
            BatchWork::Records(lost) => catch_panic(self.count_lost_records(lost))
                .await
                .map(|()| Vec::new()),
            BatchWork::Resolved(messages) => {
                catch_panic(Box::pin(self.resolve_delivered(messages, deadline))).await
            }
            BatchWork::Newer(message, version) => {
                catch_panic(self.wait_for_newer(message, version, deadline))
                    .await
                    .map(Vec::from_iter)
            }
        };
        worked.unwrap_or_else(|CaughtPanic| {
            tracing::error!(
                messages = ids.len(),
                "dead letters handed back, working on them panicked"
            );
            ids
        })
    }

    /// Writes the letters of one object: leaves out events that arrived late, loads the payloads,
    /// writes.
    async fn write_dead_letters(
        &self,
        letters: Vec<ReceivedLetter>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let until = deadline.saturating_sub(WRITING_TIME);
        let mut failures = Vec::new();
        let letters = self.without_late(letters, until, &mut failures).await;
        let loaded = self.load_payloads(letters, until).await;
        failures.extend(loaded.failures);
        let letters = Box::pin(self.without_skipped(loaded.letters, until)).await;
        failures.extend(self.write_letters(letters, deadline).await);
        for message in loaded.raw {
            let id = message.id.clone();
            failures.extend(
                catch_panic(self.keep_raw(message, deadline))
                    .await
                    .unwrap_or(Some(id)),
            );
        }
        failures
    }

    /// Sends a message of a newer version back to its own queue, for a newer program.
    async fn wait_for_newer(
        &self,
        message: ReceivedMessage,
        version: u32,
        deadline: Duration,
    ) -> Option<MessageId> {
        tracing::warn!(
            message_id = %message.id.0, version, "message of a newer version handed back as it is"
        );
        let again = OutgoingMessage {
            body: message.body,
            group: None,
            delay: SQS_DELAY_MAX,
        };
        let successors = vec![Successor {
            to: self.ports.source,
            message: again,
        }];
        let replaced = self.ports.queue.replace(&message.receipt, successors);
        let error = self.in_time(deadline, replaced).await.err()?;
        tracing::error!(
            error = &error as &dyn Error,
            "message of a newer version left to its visibility timeout"
        );
        Some(message.id)
    }
}
