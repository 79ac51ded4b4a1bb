//! One commit as one transaction of the engine.

use posthaste_ports::{ErrorKind, PutCondition, QueueName};
use redb::{ReadableTable, Table, WriteTransaction};

use super::{Committer, Outcome};
use crate::embedded::damage::catch_panic;
use crate::embedded::failure::EngineError;
use crate::embedded::inbox::{Batch, Failed, NewMessage, Work};
use crate::embedded::record::{self, Header};
use crate::embedded::store::version_of;
use crate::embedded::tables::{COMMIT, FOLDER, MESSAGES, OBJECT_BYTES, OBJECT_DIGESTS, OBJECTS, ObjectFacts};

type Messages<'t> = Table<'t, u64, &'static [u8]>;

impl Committer {
    /// Writes a batch durably. The outcomes beside an error are those of the jobs that were looked at, for
    /// the case that the transaction took effect all the same.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<Vec<Outcome>, (EngineError, Vec<Outcome>)> {
        let mut outcomes = Vec::with_capacity(batch.jobs.len());
        match catch_panic(|| self.try_write(batch, &mut outcomes)) {
            Ok(()) => Ok(outcomes),
            Err(error) => Err((error, outcomes)),
        }
    }

    fn try_write(&mut self, batch: &Batch, outcomes: &mut Vec<Outcome>) -> Result<(), EngineError> {
        let transaction = self.shared.engine.begin_write()?;
        let mut messages = transaction.open_table(MESSAGES)?;
        for sequence in &batch.deletes {
            self.delete(&mut messages, *sequence)?;
        }
        for job in &batch.jobs {
            outcomes.push(self.write_one(&job.work, &transaction, &mut messages)?);
        }
        drop(messages);
        transaction.open_table(FOLDER)?.insert(COMMIT, self.commit + 1)?;
        Ok(transaction.commit()?)
    }

    fn write_one(
        &mut self,
        work: &Work,
        transaction: &WriteTransaction,
        messages: &mut Messages<'_>,
    ) -> Result<Outcome, EngineError> {
        let number = self.next_sequence;
        match work {
            Work::Messages { messages: new, instead_of } => {
                if let Some((_, sequence)) = instead_of {
                    self.delete(messages, *sequence)?;
                }
                for message in new {
                    let bytes = store(messages, self.next_sequence, message)?;
                    self.live.add_message(Some(message.to), bytes);
                    self.next_sequence += 1;
                }
            }
            Work::Redrive { messages: moved, .. } => {
                for (sequence, _) in moved {
                    self.redrive(messages, *sequence)?;
                }
            }
            Work::Put { key, bytes, condition, modified_at } => {
                let mut objects = transaction.open_table(OBJECTS)?;
                let known = objects.get(key.as_str())?;
                let known: Option<ObjectFacts> = known.map(|facts| facts.value().into());
                if !holds(condition, known) {
                    return Ok(Err(Failed { kind: ErrorKind::PreconditionFailed, cause: None }));
                }
                self.live.remove(known.map_or(0, |known| known.bytes));
                self.live.add(bytes.len() as u64);
                let facts = (number, modified_at.as_millis(), bytes.len() as u64);
                objects.insert(key.as_str(), facts)?;
                let mut contents = transaction.open_table(OBJECT_BYTES)?;
                contents.insert(key.as_str(), &bytes[..])?;
                let digest = (number, record::crc(&[key.as_bytes(), bytes]));
                let mut digests = transaction.open_table(OBJECT_DIGESTS)?;
                digests.insert(key.as_str(), digest)?;
                self.next_sequence += 1;
            }
            Work::Delete { key } => {
                let mut objects = transaction.open_table(OBJECTS)?;
                let known = objects.remove(key.as_str())?;
                self.live.remove(known.map_or(0, |facts| ObjectFacts::from(facts.value()).bytes));
                let mut contents = transaction.open_table(OBJECT_BYTES)?;
                contents.remove(key.as_str())?;
                let mut digests = transaction.open_table(OBJECT_DIGESTS)?;
                digests.remove(key.as_str())?;
            }
        }
        Ok(Ok(number))
    }

    fn delete(&mut self, messages: &mut Messages<'_>, sequence: u64) -> Result<(), EngineError> {
        if let Some(record) = messages.remove(sequence)? {
            self.live.remove_message(record::queue_of(record.value()), record.value().len());
        }
        Ok(())
    }

    /// Changes only the queue of a record and its due time, which is now. A damaged record is not touched:
    /// memory has its message in the redrive queue, and a receive after the next start puts it there again.
    fn redrive(&mut self, messages: &mut Messages<'_>, sequence: u64) -> Result<(), EngineError> {
        let old = messages.get(sequence)?.map(|record| record.value().to_vec());
        let Some((header, body)) = old.as_deref().and_then(Header::read) else { return Ok(()) };
        let moved = Header { queue: QueueName::Redrive, due: header.sent_at, ..header };
        let bytes = moved.record_bytes(body.len());
        let mut record = messages.insert_reserve(sequence, bytes)?;
        moved.write(body, record.as_mut());
        self.live.remove_message(Some(header.queue), bytes);
        self.live.add_message(Some(moved.queue), bytes);
        Ok(())
    }
}

/// Answers the size of the record.
fn store(messages: &mut Messages<'_>, sequence: u64, message: &NewMessage) -> Result<usize, EngineError> {
    let header = Header {
        queue: message.to,
        group: message.group.as_deref().unwrap_or_default(),
        sent_at: message.sent_at,
        due: message.due,
    };
    let record_bytes = header.record_bytes(message.body.len());
    let mut record = messages.insert_reserve(sequence, record_bytes)?;
    header.write(&message.body, record.as_mut());
    Ok(record_bytes)
}

fn holds(condition: &PutCondition, known: Option<ObjectFacts>) -> bool {
    match condition {
        PutCondition::Always => true,
        PutCondition::IfAbsent => known.is_none(),
        PutCondition::IfMatch(etag) => known.is_some_and(|known| version_of(etag) == Some(known.version)),
    }
}
