#![doc = include_str!("../README.md")]

mod deadlines;
mod delivery_log;
mod finish;
mod follow_up;
mod gather;
mod late_answers;
mod letter;
mod lost_records;
mod missed;
mod notices;
mod outage;
mod payloads;
mod raw;
mod receive;
mod refusal_report;
mod resolved;
mod retry_wait;
mod settle;
mod storage_retry;
#[cfg(test)]
mod tests;
mod unreadable;
mod unwritten;
mod write;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::DeliveryLogMode;
use posthaste_ports::{
    BatchResponse, Clock, Entropy, MessageId, Ports, QueueName, ReceivedMessage,
};
use posthaste_services::catch_panic::{CaughtPanic, catch_panic};
use posthaste_services::{ArrivalTracker, LogTally, TopicRegistry};

use deadlines::{READING_TIME_MIN, WRITING_TIME};
use delivery_log::ChangeRecorder;
use finish::LetterFinisher;
use follow_up::LetterFollowUp;
use late_answers::LateAnswerFilter;
use letter::ReceivedLetter;
use lost_records::count_lost_records;
use missed::MissedLetters;
use notices::LetterNotices;
use outage::OutageMarker;
use payloads::PayloadLoader;
use raw::RawMessageKeeper;
use receive::{BatchWork, SortedBatch, sort_batch};
use refusal_report::RefusalReporter;
use resolved::LetterResolver;
use settle::MessageSettler;
use storage_retry::StorageRetry;
use unwritten::UnwrittenLetters;
use write::LetterWriter;

/// Objects that are written at once. It bounds the payloads that are read at once, to eight times
/// as many, and the memory for them: an object's records and the object made of them, 8 MiB as
/// preferred, so 64 MiB in all. Beside them are the batch's own messages, 6 MB at most, and their
/// parsed events. The function has 512 MB, or 256 at least.
const WORK_AT_ONCE_MAX: usize = 8;

/// The ports of deadletter.
#[derive(Debug)]
pub struct DeadLetterPorts<P: Ports> {
    /// The queue that is emptied.
    pub queue: P::Queue,
    /// The name of that queue: the dead-letter queue or the redrive queue.
    pub source: QueueName,
    /// The queue of the delivery log's records.
    pub records: P::Queue,
    /// The records that the delivery log keeps of a topic that does not say so.
    pub delivery_log: DeliveryLogMode,
    /// Most bytes of dead letters of what disabled subscriptions miss; `None`: no bound.
    pub missed_bytes_max: Option<u64>,
    /// The delivery queue, for notices.
    pub deliveries: P::Queue,
    /// The state bucket, for payloads that were stored once.
    pub state: P::Store,
    /// The dead-letter bucket.
    pub bucket: P::DeadLetters,
    /// Topics and subscriptions: the topic that gets notices, and how long the bucket may refuse a
    /// letter.
    pub registry: TopicRegistry<P::Store, P::Clock>,
    /// The book that says how much of what disabled subscriptions miss was kept.
    pub book: ArrivalTracker<P::Store, P::Clock>,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
}

/// The function.
pub struct DeadLetters<P: Ports> {
    source: QueueName,
    clock: P::Clock,
    late_answers: LateAnswerFilter<P>,
    payloads: PayloadLoader<P>,
    missed: Arc<MissedLetters<P>>,
    writer: LetterWriter<P>,
    raw: RawMessageKeeper<P>,
    resolver: Arc<LetterResolver<P>>,
    settler: Arc<MessageSettler<P>>,
    refusals: RefusalReporter<P>,
    unwritten: Arc<UnwrittenLetters>,
}

impl<P: Ports> DeadLetters<P> {
    /// Handles a batch until `deadline`, a time of the clock's `monotonic`. The answer names the
    /// messages for which nothing durable was done, also those for which there was no time.
    ///
    /// With less than 25 seconds to the deadline nothing begins.
    pub async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        let SortedBatch { work, mut failures } = sort_batch(self.source, batch);
        let parts = work.into_iter().map(|work| self.work_on(work, deadline));
        let mut failed = pin!(stream::iter(parts).buffer_unordered(WORK_AT_ONCE_MAX));
        while let Some(failed) = failed.next().await {
            failures.extend(failed);
        }
        // A letter from the redrive queue that the bucket refuses goes to the dead-letter queue.
        if self.source == QueueName::DeadLetters {
            self.unwritten.set_gauge(self.clock.now());
            Box::pin(self.refusals.tell_of_refused(deadline)).await;
        }
        BatchResponse { failures }
    }

    /// Handles a part of the batch if there is time, and returns the messages that are to come
    /// again.
    async fn work_on(&self, work: BatchWork, deadline: Duration) -> Vec<MessageId> {
        let ids = work.message_ids();
        if self.clock.monotonic() + READING_TIME_MIN + WRITING_TIME > deadline {
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
            BatchWork::Raw(message) => catch_panic(self.raw.keep_raw(message, deadline))
                .await
                .map(Vec::from_iter),
            BatchWork::Records(lost) => catch_panic(async {
                count_lost_records(&lost);
                self.settler.acknowledge(&lost.message).await;
            })
            .await
            .map(|()| Vec::new()),
            BatchWork::Resolved(messages) => {
                let resolved = self.resolver.resolve_delivered(messages, deadline);
                catch_panic(Box::pin(resolved)).await
            }
            BatchWork::Newer(message, version) => {
                let waits = self.settler.wait_for_newer(message, version, deadline);
                catch_panic(waits).await.map(Vec::from_iter)
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
        let letters = self
            .late_answers
            .without_late(letters, until, &mut failures)
            .await;
        let loaded = self.payloads.load_payloads(letters, until).await;
        failures.extend(loaded.failures);
        let letters = Box::pin(self.missed.without_skipped(loaded.letters, until)).await;
        failures.extend(self.writer.write_letters(letters, deadline).await);
        for message in loaded.raw {
            let id = message.id.clone();
            failures.extend(
                catch_panic(self.raw.keep_raw(message, deadline))
                    .await
                    .unwrap_or(Some(id)),
            );
        }
        failures
    }

    /// Wires the function up.
    pub fn new(ports: DeadLetterPorts<P>) -> Self {
        let DeadLetterPorts {
            queue,
            source,
            records,
            delivery_log,
            missed_bytes_max,
            deliveries,
            state,
            bucket,
            registry,
            book,
            clock,
            entropy,
        } = ports;
        let instance = entropy.uuid().to_string();
        let state = Arc::new(state);
        let bucket = Arc::new(bucket);
        let registry = Arc::new(registry);
        let unwritten = Arc::new(UnwrittenLetters::default());
        let settler = Arc::new(MessageSettler::new(queue, source, clock.clone()));
        let recorder = Arc::new(ChangeRecorder {
            registry: registry.clone(),
            records,
            clock: clock.clone(),
            delivery_log,
            lost_records: LogTally::default(),
        });
        let resolver = Arc::new(LetterResolver {
            bucket: bucket.clone(),
            clock: clock.clone(),
            settler: settler.clone(),
        });
        let missed = Arc::new(MissedLetters {
            book,
            clock: clock.clone(),
            bytes_max: missed_bytes_max,
            recorder: recorder.clone(),
            settler: settler.clone(),
            unwritten: unwritten.clone(),
        });
        let notices = Arc::new(LetterNotices {
            deliveries,
            state: state.clone(),
            registry: registry.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
        });
        let follow_up = LetterFollowUp {
            outages: OutageMarker::new(state.clone(), clock.clone()),
            recorder: recorder.clone(),
            resolver: resolver.clone(),
            missed: missed.clone(),
            finisher: LetterFinisher {
                clock: clock.clone(),
                notices: notices.clone(),
                settler: settler.clone(),
            },
        };
        let retry = StorageRetry {
            registry,
            clock: clock.clone(),
            notices,
            recorder: recorder.clone(),
            settler: settler.clone(),
            unwritten: unwritten.clone(),
        };
        Self {
            source,
            late_answers: LateAnswerFilter {
                state: state.clone(),
                clock: clock.clone(),
                source,
                recorder,
                resolver: resolver.clone(),
                settler: settler.clone(),
            },
            payloads: PayloadLoader::new(state.clone(), clock.clone(), source),
            missed,
            writer: LetterWriter {
                bucket: bucket.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
                follow_up,
                retry,
                unwritten: unwritten.clone(),
            },
            raw: RawMessageKeeper {
                bucket,
                clock: clock.clone(),
                entropy,
                settler: settler.clone(),
                unwritten: unwritten.clone(),
            },
            resolver,
            settler,
            refusals: RefusalReporter::new(state, clock.clone(), instance, unwritten.clone()),
            unwritten,
            clock,
        }
    }
}
