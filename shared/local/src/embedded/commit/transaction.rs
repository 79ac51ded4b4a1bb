//! One commit as one transaction of the engine.

use std::ops::Bound;

use posthaste_ports::{ErrorKind, PutCondition, QueueName};
use redb::{ReadableTable, Table, WriteTransaction};

use super::CommitThread;
use crate::embedded::damage::catch_panic;
use crate::embedded::failure::EngineError;
use crate::embedded::inbox::{
    CommitBatch, CommitWork, CompletedJob, JobFailure, JobResult, NewMessage,
};
use crate::embedded::record::{self, RecordHeader};
use crate::embedded::store::version_of;
use crate::embedded::tables::{
    COMMIT, FOLDER, MESSAGES, OBJECT_BYTES, OBJECT_DIGESTS, OBJECTS, ObjectFacts,
};

type WritableMessages<'t> = Table<'t, u64, &'static [u8]>;

/// The size of the engine's pages.
const PAGE_BYTES: usize = 4096;

/// Largest distance of two settled messages that are deleted in one go. What lies between them is
/// looked at.
const DELETED_TOGETHER_DISTANCE: u64 = 8;

impl CommitThread {
    /// Writes a batch durably. The outcomes beside an error are those of the jobs that were looked
    /// at, for the case that the transaction took effect all the same.
    pub(super) fn write_batch(
        &mut self,
        batch: &CommitBatch,
    ) -> Result<Vec<JobResult>, (EngineError, Vec<JobResult>)> {
        let mut outcomes = Vec::with_capacity(batch.jobs.len());
        match catch_panic(|| self.try_write(batch, &mut outcomes)) {
            Ok(()) => Ok(outcomes),
            Err(error) => Err((error, outcomes)),
        }
    }

    fn try_write(
        &mut self,
        batch: &CommitBatch,
        outcomes: &mut Vec<JobResult>,
    ) -> Result<(), EngineError> {
        let transaction = self.shared.engine.begin_write()?;
        let mut messages = transaction.open_table(MESSAGES)?;
        self.delete_messages(&mut messages, &settled_sequences(batch))?;
        for job in &batch.jobs {
            outcomes.push(self.write_one(&job.work, &transaction, &mut messages)?);
        }
        self.store_messages(&mut messages, batch, outcomes)?;
        drop(messages);
        if !batch.stores_messages() {
            transaction
                .open_table(FOLDER)?
                .insert(COMMIT, self.commit + 1)?;
        }
        Ok(transaction.commit()?)
    }

    /// Does one job. Its messages only get their numbers here; `store_messages` writes them.
    fn write_one(
        &mut self,
        work: &CommitWork,
        transaction: &WriteTransaction,
        messages: &mut WritableMessages<'_>,
    ) -> Result<JobResult, EngineError> {
        let number = self.next_sequence;
        let mut was_there = false;
        match work {
            CommitWork::Messages { messages: new, .. } => self.next_sequence += new.len() as u64,
            CommitWork::Redrive {
                messages: moved, ..
            } => {
                for worn_out in moved {
                    self.redrive_message(messages, worn_out.sequence)?;
                }
            }
            CommitWork::Put {
                key,
                bytes,
                condition,
                modified_at,
            } => {
                let mut objects = transaction.open_table(OBJECTS)?;
                let known = objects.get(key.as_str())?;
                let known: Option<ObjectFacts> = known.map(|facts| facts.value().into());
                if !condition_holds(condition, known) {
                    return Ok(Err(JobFailure {
                        kind: ErrorKind::PreconditionFailed,
                        cause: None,
                    }));
                }
                was_there = known.is_some();
                self.live.remove_bytes(known.map_or(0, |known| known.bytes));
                self.live.add_bytes(bytes.len() as u64);
                let facts = (number, modified_at.as_millis(), bytes.len() as u64);
                objects.insert(key.as_str(), facts)?;
                let mut contents = transaction.open_table(OBJECT_BYTES)?;
                contents.insert(key.as_str(), &bytes[..])?;
                let digest = (number, record::crc(&[key.as_bytes(), bytes]));
                let mut digests = transaction.open_table(OBJECT_DIGESTS)?;
                digests.insert(key.as_str(), digest)?;
                self.next_sequence += 1;
            }
            CommitWork::Delete { key } => {
                let mut objects = transaction.open_table(OBJECTS)?;
                let known = objects.remove(key.as_str())?;
                was_there = known.is_some();
                self.live
                    .remove_bytes(known.map_or(0, |facts| ObjectFacts::from(facts.value()).bytes));
                let mut contents = transaction.open_table(OBJECT_BYTES)?;
                contents.remove(key.as_str())?;
                let mut digests = transaction.open_table(OBJECT_DIGESTS)?;
                digests.remove(key.as_str())?;
            }
        }
        Ok(Ok(CompletedJob { number, was_there }))
    }

    /// Deletes messages. Those that lie side by side are deleted in one go, since many share a
    /// page.
    fn delete_messages(
        &mut self,
        messages: &mut WritableMessages<'_>,
        sequences: &[u64],
    ) -> Result<(), EngineError> {
        for run in sequences.chunk_by(|one, next| next - one <= DELETED_TOGETHER_DISTANCE) {
            if let [sequence] = run {
                if let Some(record) = messages.remove(sequence)? {
                    self.live
                        .remove_message(record::queue_of(record.value()), record.value().len());
                }
                continue;
            }
            messages.retain_in(run[0]..=run[run.len() - 1], |sequence, record| {
                let is_kept = run.binary_search(&sequence).is_err();
                if !is_kept {
                    self.live
                        .remove_message(record::queue_of(record), record.len());
                }
                is_kept
            })?;
        }
        Ok(())
    }

    /// Stores the messages of all jobs. They have the largest numbers of all, so that many are
    /// appended in one go, and fill their pages. A single message is inserted, because a cursor
    /// writes the page that it appends to again. The first message after a large one is inserted
    /// too, so that the large one is not written again.
    fn store_messages(
        &mut self,
        messages: &mut WritableMessages<'_>,
        batch: &CommitBatch,
        outcomes: &[JobResult],
    ) -> Result<(), EngineError> {
        let numbered = batch
            .jobs
            .iter()
            .zip(outcomes)
            .filter_map(|(job, outcome)| match (&job.work, outcome) {
                (CommitWork::Messages { messages, .. }, Ok(done)) => {
                    Some((done.number..).zip(messages))
                }
                _ => None,
            });
        let mut new = numbered.flatten().peekable();
        let mut record = Vec::new();
        while let Some((sequence, message)) = new.next() {
            if new.peek().is_none() || has_large_end(messages)? {
                let header = header_for(message);
                let bytes = header.record_bytes(message.body.len());
                header.write(
                    &message.body,
                    messages.insert_reserve(sequence, bytes)?.as_mut(),
                );
                self.live.add_message(Some(message.to), bytes);
                continue;
            }
            write_record(message, &mut record);
            self.live.add_message(Some(message.to), record.len());
            let mut end = messages.upper_bound_mut(Bound::<u64>::Unbounded)?;
            end.insert_before(sequence, record.as_slice())?;
            for (sequence, message) in new.by_ref() {
                write_record(message, &mut record);
                self.live.add_message(Some(message.to), record.len());
                end.insert_before(sequence, record.as_slice())?;
            }
            end.close()?;
        }
        Ok(())
    }

    /// Changes only the queue of a record and its due time, which is now. A damaged record is not
    /// touched: memory has its message in the redrive queue, and a receive after the next start
    /// puts it there again.
    fn redrive_message(
        &mut self,
        messages: &mut WritableMessages<'_>,
        sequence: u64,
    ) -> Result<(), EngineError> {
        let old = messages
            .get(sequence)?
            .map(|record| record.value().to_vec());
        let Some((header, body)) = old.as_deref().and_then(RecordHeader::read) else {
            return Ok(());
        };
        let old_bytes = old.as_ref().map_or(0, Vec::len);
        let moved = RecordHeader {
            queue: QueueName::Redrive,
            due: header.sent_at,
            ..header
        };
        let bytes = moved.record_bytes(body.len());
        let mut record = messages.insert_reserve(sequence, bytes)?;
        moved.write(body, record.as_mut());
        self.live.remove_message(Some(header.queue), old_bytes);
        self.live.add_message(Some(moved.queue), bytes);
        Ok(())
    }
}

/// The numbers of all messages that end with a batch, in order.
fn settled_sequences(batch: &CommitBatch) -> Vec<u64> {
    let replaced = batch.jobs.iter().filter_map(|job| match &job.work {
        CommitWork::Messages {
            instead_of: Some((_, sequence)),
            ..
        } => Some(*sequence),
        _ => None,
    });
    let mut settled: Vec<_> = batch.deletes.iter().copied().chain(replaced).collect();
    settled.sort_unstable();
    settled
}

/// Whether the last message fills pages of its own.
fn has_large_end(messages: &WritableMessages<'_>) -> Result<bool, EngineError> {
    Ok(messages
        .last()?
        .is_some_and(|(_, record)| record.value().len() > PAGE_BYTES))
}

fn header_for(message: &NewMessage) -> RecordHeader<'_> {
    RecordHeader {
        queue: message.to,
        group: message.group.as_deref().unwrap_or_default(),
        sent_at: message.sent_at,
        due: message.due,
    }
}

/// Makes `record` the record of a message.
fn write_record(message: &NewMessage, record: &mut Vec<u8>) {
    let header = header_for(message);
    record.resize(header.record_bytes(message.body.len()), 0);
    header.write(&message.body, record);
}

fn condition_holds(condition: &PutCondition, known: Option<ObjectFacts>) -> bool {
    match condition {
        PutCondition::Always => true,
        PutCondition::IfAbsent => known.is_none(),
        PutCondition::IfMatch(etag) => {
            known.is_some_and(|known| version_of(etag) == Some(known.version))
        }
    }
}
