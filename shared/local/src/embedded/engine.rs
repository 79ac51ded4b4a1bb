//! The engine: redb over a disk, with what this store keeps in it, and its recovery from failed
//! writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::RwLock;
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend,
    WriteTransaction,
};

use super::bodies::MessageContent;
use super::closings::{ClosingCount, ClosingCounter};
use super::damage::catch_panic;
use super::disk::{CountingBackend, EngineDisk, FolderDisk};
use super::failure::EngineError;
use super::record::RecordHeader;
use super::scan::validate_tables;
use super::tables::{
    COMMIT, FOLDER, FOLDER_ID, FORMAT, FORMAT_VERSION, MESSAGES, NEXT_SEQUENCE, OBJECT_BYTES,
    OBJECT_DIGESTS, OBJECTS, SEQUENCES_PER_OPENING_BITS,
};

/// The first numbers of an opening.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpeningNumbers {
    pub(super) folder_id: u64,
    pub(super) first_sequence: u64,
    pub(super) commit: u64,
}

/// The last commit that took effect, as the file shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastCommit {
    /// The number of the last commit that stored no message.
    pub(super) number: u64,
    /// The number of the last message; `None` without one, or where damage hides it.
    pub(super) message: Option<u64>,
}

/// The messages, as a transaction sees them.
type ReadableMessages = ReadOnlyTable<u64, &'static [u8]>;

/// The engine. It is `None` while it is closed, for good or because it could not be opened again
/// after a failure.
pub(super) struct StoreEngine {
    disk: Box<dyn EngineDisk>,
    cache_bytes: usize,
    database: RwLock<Option<Database>>,
    /// Number of tries to sync.
    syncs: Arc<AtomicU64>,
    /// A read met damage that may have left the engine in any state: it is opened again before the
    /// next commit.
    is_suspect: AtomicBool,
    closings: ClosingCounter,
}

/// The state of a message that was looked up.
#[derive(Debug)]
pub(super) enum MessageLookup {
    Whole(MessageContent),
    Missing,
    /// The bytes are not those that were written; `None` where the engine could not read them.
    Damaged(Option<Bytes>),
}

impl StoreEngine {
    /// Opens or makes the file and takes the sequence numbers of this opening. A new folder gets
    /// `new_folder_id`.
    pub(super) fn open(
        disk: Box<dyn EngineDisk>,
        cache_bytes: usize,
        new_folder_id: u64,
    ) -> Result<(Self, OpeningNumbers), EngineError> {
        let syncs = Arc::default();
        let (database, begin) = catch_panic(|| {
            let backend = disk.open().map_err(EngineError::Disk)?;
            // Only a disk of a test can be empty here.
            let is_new = backend.len().map_err(EngineError::Disk)? == 0;
            let database = open_on_backend(backend, cache_bytes, &syncs)?;
            if !is_new {
                validate_tables(&database)?;
            }
            let begin = begin_opening(&database, new_folder_id)?;
            Ok((database, begin))
        })?;
        let database = RwLock::new(Some(database));
        let is_suspect = AtomicBool::new(false);
        Ok((
            Self {
                disk,
                cache_bytes,
                database,
                syncs,
                is_suspect,
                closings: ClosingCounter::default(),
            },
            begin,
        ))
    }

    /// Makes the file of a new folder.
    pub(super) fn create_file(disk: &FolderDisk, folder_id: u64) -> Result<(), EngineError> {
        /// Enough for what a new file holds.
        const CACHE_BYTES: usize = 1 << 20;
        catch_panic(|| {
            let backend = disk.create_new_file().map_err(EngineError::Disk)?;
            let database = open_on_backend(backend, CACHE_BYTES, &Arc::default())?;
            begin_opening(&database, folder_id).map(drop)
        })?;
        disk.name_new_file().map_err(EngineError::Disk)
    }

    /// The contents of some messages, read in one transaction. Where one is damaged, each is read
    /// by itself, and fails by itself.
    pub(super) fn read_contents(
        &self,
        sequences: &[u64],
    ) -> Result<Vec<MessageLookup>, EngineError> {
        match self.read(|transaction| look_up_messages(transaction, sequences)) {
            Err(error) if error.is_damage() => {
                sequences.iter().map(|it| self.read_content(*it)).collect()
            }
            other => other,
        }
    }

    fn read_content(&self, sequence: u64) -> Result<MessageLookup, EngineError> {
        match self.read(|transaction| look_up_message(&transaction.open_table(MESSAGES)?, sequence))
        {
            Err(error) if error.is_damage() => {
                tracing::error!(
                    sequence,
                    error = &error as &dyn std::error::Error,
                    "a message cannot be read"
                );
                Ok(MessageLookup::Damaged(None))
            }
            other => other,
        }
    }

    /// Reads in a transaction of its own.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let result = catch_panic(|| {
            let database = self.database.read();
            let transaction = database.as_ref().ok_or(EngineError::Closed)?.begin_read()?;
            drop(database);
            read(&transaction)
        });
        if result.as_ref().is_err_and(EngineError::is_damage) {
            self.is_suspect.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Begins to read the database as it is after the last commit.
    pub(super) fn begin_read(&self) -> Result<(ReadTransaction, ClosingCount), EngineError> {
        catch_panic(|| {
            let database = self.database.read();
            // The file cannot be closed between these two.
            let closings = self.closings.now();
            let transaction = database.as_ref().ok_or(EngineError::Closed)?.begin_read()?;
            Ok((transaction, closings))
        })
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, EngineError> {
        let database = self.database.read();
        Ok(database
            .as_ref()
            .ok_or(EngineError::Closed)?
            .begin_write()?)
    }

    /// The device behind it.
    pub(super) fn disk(&self) -> &dyn EngineDisk {
        &*self.disk
    }

    /// Number of tries to sync. A commit that failed before its sync took no effect.
    pub(super) fn sync_count(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Opens the file again after a failed write, because the engine cannot continue after one.
    pub(super) fn reopen(&self) -> Result<LastCommit, EngineError> {
        self.close();
        let (database, last) = match self.open_again(last_message) {
            // If damage hides the end of the messages, no commit can have stored one there.
            Err(error) if error.is_damage() => self.open_again(|_| Ok(None))?,
            opened => opened?,
        };
        self.is_suspect.store(false, Ordering::Relaxed);
        *self.database.write() = Some(database);
        Ok(last)
    }

    /// Opens the file, and reads from it what it tells of the last commit.
    fn open_again(
        &self,
        last_message: impl FnOnce(&ReadTransaction) -> Result<Option<u64>, EngineError>,
    ) -> Result<(Database, LastCommit), EngineError> {
        catch_panic(|| {
            let backend = self.disk.open().map_err(EngineError::Disk)?;
            let database = open_on_backend(backend, self.cache_bytes, &self.syncs)?;
            let transaction = database.begin_read()?;
            let number = transaction
                .open_table(FOLDER)?
                .get(COMMIT)?
                .map_or(0, |number| number.value());
            let message = last_message(&transaction)?;
            Ok((database, LastCommit { number, message }))
        })
    }

    /// True if there is an engine to work with.
    pub(super) fn is_open(&self) -> bool {
        !self.is_suspect.load(Ordering::Relaxed) && self.database.read().is_some()
    }

    /// Closes the file; everything fails from now on.
    pub(super) fn close(&self) {
        let database = {
            let mut open = self.database.write();
            self.closings.count_closing();
            open.take()
        };
        let closed = catch_panic(|| {
            drop(database);
            Ok(())
        });
        if let Err(error) = closed {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the store was not closed in order"
            );
        }
    }
}

fn look_up_messages(
    transaction: &ReadTransaction,
    sequences: &[u64],
) -> Result<Vec<MessageLookup>, EngineError> {
    let messages = transaction.open_table(MESSAGES)?;
    sequences
        .iter()
        .map(|sequence| look_up_message(&messages, *sequence))
        .collect()
}

fn look_up_message(
    messages: &ReadableMessages,
    sequence: u64,
) -> Result<MessageLookup, EngineError> {
    let Some(record) = messages.get(sequence)? else {
        return Ok(MessageLookup::Missing);
    };
    Ok(match RecordHeader::read(record.value()) {
        Some((header, body)) => MessageLookup::Whole(MessageContent {
            sent_at: header.sent_at,
            body: Bytes::copy_from_slice(body),
        }),
        None => MessageLookup::Damaged(Some(Bytes::copy_from_slice(record.value()))),
    })
}

fn last_message(transaction: &ReadTransaction) -> Result<Option<u64>, EngineError> {
    Ok(transaction
        .open_table(MESSAGES)?
        .last()?
        .map(|(number, _)| number.value()))
}

pub(super) fn open_on_backend(
    backend: Box<dyn StorageBackend>,
    cache_bytes: usize,
    syncs: &Arc<AtomicU64>,
) -> Result<Database, EngineError> {
    let backend = CountingBackend {
        backend,
        syncs: syncs.clone(),
    };
    Ok(Database::builder()
        .set_cache_size(cache_bytes)
        .create_with_backend(backend)?)
}

pub(super) fn begin_opening(
    database: &Database,
    new_folder_id: u64,
) -> Result<OpeningNumbers, EngineError> {
    let transaction = database.begin_write()?;
    let mut folder = transaction.open_table(FOLDER)?;
    let format = folder_number(&folder, FORMAT)?.unwrap_or(FORMAT_VERSION);
    if format > FORMAT_VERSION {
        return Err(EngineError::NewerFormat(format));
    }
    let begin = OpeningNumbers {
        folder_id: folder_number(&folder, FOLDER_ID)?.unwrap_or(new_folder_id),
        // Zero is never a sequence number.
        first_sequence: folder_number(&folder, NEXT_SEQUENCE)?
            .unwrap_or(1 << SEQUENCES_PER_OPENING_BITS),
        commit: folder_number(&folder, COMMIT)?.unwrap_or(0),
    };
    let next = begin
        .first_sequence
        .saturating_add(1 << SEQUENCES_PER_OPENING_BITS);
    for (name, number) in [
        (FORMAT, FORMAT_VERSION),
        (FOLDER_ID, begin.folder_id),
        (NEXT_SEQUENCE, next),
    ] {
        folder.insert(name, number)?;
    }
    drop(folder);
    // Readers expect every table to be there.
    transaction.open_table(MESSAGES)?;
    transaction.open_table(OBJECTS)?;
    transaction.open_table(OBJECT_BYTES)?;
    transaction.open_table(OBJECT_DIGESTS)?;
    transaction.commit()?;
    Ok(begin)
}

fn folder_number(
    folder: &impl ReadableTable<&'static str, u64>,
    name: &str,
) -> Result<Option<u64>, EngineError> {
    Ok(folder.get(name)?.map(|number| number.value()))
}
