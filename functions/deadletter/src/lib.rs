#![doc = include_str!("../README.md")]

mod announce;
mod gather;
mod intake;
mod late;
mod read;
mod trouble;
mod unreadable;
mod unwritten;
mod write;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::delivery::DeadLetter;
use posthaste_core::model::limits::SQS_DELAY_SECS_MAX;
use posthaste_ports::{
    BatchResponse, Clock, Entropy, ErrorKind, MessageId, ObjectStore, OutgoingMessage, PortError, QueueName,
    QueueReceiver, QueueSender, ReceivedMessage, Successor,
};
use posthaste_services::catch_panic::{Panicked, catch_panic};
use posthaste_services::{Registry, timeout_at};

use intake::{Sorted, Work, sort};
use late::Remaining;
use unwritten::Unwritten;

/// Objects that are worked on side by side. It bounds the payloads that are read at once, to eight times as many, and
/// what is held of them: an object's records and the object made of them, 8 MiB as preferred, so 64 MiB in all. Besides
/// lie the batch's own messages, 6 MB at most, and their parsed events. The function has 512 MB, or 256 at least.
const WORK_AT_ONCE_MAX: usize = 8;

/// What is kept of the time for writing what was read: how long one call to S3 takes at most, its repetitions included
/// (`OPERATION_TIMEOUT` of posthaste-aws).
const WRITING_TIME: Duration = Duration::from_secs(20);

/// The least time for reading with which something is begun. Eight payloads at a time, an object of them is read in
/// about a second.
const READING_TIME_MIN: Duration = Duration::from_secs(5);

/// What deadletter needs from outside.
#[derive(Debug)]
pub struct DeadLetterPorts<Q, S, D, C, E> {
    /// The queue that is emptied.
    pub queue: Q,
    /// Which queue that is: the dead-letter queue or the redrive queue.
    pub source: QueueName,
    /// The delivery queue, for notices.
    pub deliveries: Q,
    /// The state bucket, for payloads that were stored once.
    pub state: S,
    /// The dead-letter bucket.
    pub bucket: D,
    /// Topics and subscriptions: who is to be told of a dead letter, and for how long the bucket may refuse one.
    pub registry: Registry<S, C>,
    /// Time.
    pub clock: C,
    /// Chance.
    pub entropy: E,
}

/// The function.
#[derive(Debug)]
pub struct DeadLetters<Q, S, D, C, E> {
    ports: DeadLetterPorts<Q, S, D, C, E>,
    unwritten: Unwritten,
}

/// A message that was understood.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) message: ReceivedMessage,
    pub(crate) dead: DeadLetter,
}

impl<Q, S, D, C, E> DeadLetters<Q, S, D, C, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Wires the function up.
    pub fn new(ports: DeadLetterPorts<Q, S, D, C, E>) -> Self {
        Self { ports, unwritten: Unwritten::default() }
    }

    /// Works on a batch until `deadline`, a time of the clock's `monotonic`. The answer names the messages for which
    /// nothing durable was done, be it that there was no time to begin.
    ///
    /// A deadline less than 25 seconds away is one with which nothing is begun.
    pub async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        let Sorted { work, mut failures } = sort(self.ports.source, batch);
        let parts = work.into_iter().map(|work| self.work_on(work, deadline));
        let mut failed = pin!(stream::iter(parts).buffer_unordered(WORK_AT_ONCE_MAX));
        while let Some(failed) = failed.next().await {
            failures.extend(failed);
        }
        // What the redrive queue brings and the bucket refuses goes on in the dead-letter queue.
        if self.ports.source == QueueName::DeadLetters {
            self.unwritten.report(self.ports.clock.now());
        }
        BatchResponse { failures }
    }

    /// Works on a part of the batch if there is time, and answers what is to come again.
    async fn work_on(&self, work: Work, deadline: Duration) -> Vec<MessageId> {
        let ids = work.ids();
        if self.ports.clock.monotonic() + READING_TIME_MIN + WRITING_TIME > deadline {
            tracing::warn!(
                messages = ids.len(),
                "dead letters handed back, no time is left to begin with them"
            );
            return ids;
        }
        let worked = match work {
            // Boxed, here and in what it calls: rustc finds the layout of it all too deep in a Lambda program.
            Work::Object(letters) => catch_panic(Box::pin(self.bury(letters, deadline))).await,
            Work::Raw(message) => catch_panic(self.keep_raw(message, deadline)).await.map(Vec::from_iter),
            Work::Newer(message, version) => {
                catch_panic(self.wait_for_newer(message, version, deadline)).await.map(Vec::from_iter)
            }
        };
        worked.unwrap_or_else(|Panicked| {
            tracing::error!(messages = ids.len(), "dead letters handed back, working on them panicked");
            ids
        })
    }

    /// Reads the letters of one object and writes it.
    async fn bury(&self, letters: Vec<Letter>, deadline: Duration) -> Vec<MessageId> {
        let until = deadline.saturating_sub(WRITING_TIME);
        let Remaining { letters, mut failures } = self.without_late(letters, until).await;
        let read = self.read_letters(letters, until).await;
        failures.extend(read.failures);
        failures.extend(self.write(read.letters, deadline).await);
        for message in read.raw {
            let id = message.id.clone();
            failures.extend(catch_panic(self.keep_raw(message, deadline)).await.unwrap_or(Some(id)));
        }
        failures
    }

    /// Sends a message of a newer version back to its own queue, where only a newer program knows what it is.
    async fn wait_for_newer(
        &self,
        message: ReceivedMessage,
        version: u32,
        deadline: Duration,
    ) -> Option<MessageId> {
        tracing::warn!(message_id = %message.id.0, version, "message of a newer version handed back as it is");
        let again = OutgoingMessage { body: message.body, group: None, delay_secs: SQS_DELAY_SECS_MAX };
        let successors = vec![Successor { to: self.ports.source, message: again }];
        let replaced = self.ports.queue.replace(&message.receipt, successors);
        let error = self.in_time(deadline, replaced).await.err()?;
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "message of a newer version left to its visibility timeout"
        );
        Some(message.id)
    }

    /// A call's result, or that the time was over before it had one. Whether it had an effect is not known then.
    pub(crate) async fn in_time<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<T, PortError>> + Send,
    ) -> Result<T, PortError> {
        let late = || Err(PortError::new("get an answer in time", ErrorKind::TimedOut));
        timeout_at(&self.ports.clock, deadline, call).await.unwrap_or_else(late)
    }
}
