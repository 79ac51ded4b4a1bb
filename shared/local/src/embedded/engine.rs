//! The engine: redb over a disk, with what this store keeps in it, and its recovery from failed writes.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use posthaste_core::time::Timestamp;
use posthaste_ports::ErrorKind;
use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
    WriteTransaction,
};

use super::bodies::Content;
use super::disk::{AnyBackend, Disk, FolderDisk};
use super::record::Header;

/// Messages of all queues by sequence number: [`Header`] and body.
pub(super) const MESSAGES: TableDefinition<u64, &[u8]> = TableDefinition::new("messages");

/// The state objects' version, time of writing in milliseconds, and size. Apart from their bytes, so that a listing
/// does not read those.
pub(super) const OBJECTS: TableDefinition<&str, (u64, u64, u64)> = TableDefinition::new("objects");

/// The state objects' bytes.
pub(super) const OBJECT_BYTES: TableDefinition<&str, &[u8]> = TableDefinition::new("object_bytes");

/// Numbers about the folder itself.
pub(super) const FOLDER: TableDefinition<&str, u64> = TableDefinition::new("folder");

const FORMAT: &str = "format";
const FOLDER_ID: &str = "id";
const NEXT_SEQUENCE: &str = "next_sequence";
/// Counts commits, so that after a failed one it can be told whether it took effect.
pub(super) const COMMIT: &str = "commit";

/// The layout this code reads and writes.
const FORMAT_VERSION: u64 = 1;

/// Every opening takes 2^40 sequence numbers, so that no number comes twice: enough for 317 days at 40,000 messages
/// a second, and for 16 million openings.
pub(super) const SEQUENCES_PER_OPENING_BITS: u32 = 40;

/// Why the engine could not do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineError {
    #[error("the engine failed")]
    Redb(#[source] Box<redb::Error>),
    #[error("the disk cannot be opened")]
    Disk(#[source] io::Error),
    #[error("the commit thread cannot be started")]
    Thread(#[source] io::Error),
    #[error("the store is closed")]
    Closed,
    #[error("message {0} is unreadable")]
    Record(u64),
    #[error("the folder was written by a newer version (format {0}, this one knows {FORMAT_VERSION})")]
    NewerFormat(u64),
}

impl EngineError {
    pub(super) fn kind(&self) -> ErrorKind {
        let io = match self {
            Self::Redb(error) => match &**error {
                redb::Error::Io(io) => io.kind(),
                _ => return ErrorKind::Other,
            },
            Self::Disk(io) => io.kind(),
            _ => return ErrorKind::Other,
        };
        let is_full = matches!(io, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if is_full { ErrorKind::Full } else { ErrorKind::Other }
    }
}

/// For `map_err`: redb has an error type per operation, and all of them become one.
pub(super) fn failed(error: impl Into<redb::Error>) -> EngineError {
    EngineError::Redb(Box::new(error.into()))
}

/// Where an opening begins to count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    pub(super) folder_id: u64,
    pub(super) first_sequence: u64,
    pub(super) commit: u64,
}

/// The engine. It is `None` while it is closed, for good or because it could not be opened again after a failure.
pub(super) struct Engine {
    disk: Box<dyn Disk>,
    cache_bytes: usize,
    database: RwLock<Option<Database>>,
    /// How often it was tried to sync.
    syncs: Arc<AtomicU64>,
}

impl Engine {
    /// Opens or makes the file and takes the sequence numbers of this opening. A new folder gets `new_folder_id`.
    pub(super) fn open(
        disk: Box<dyn Disk>,
        cache_bytes: usize,
        new_folder_id: u64,
    ) -> Result<(Self, Begin), EngineError> {
        let syncs = Arc::default();
        let database = open_database(&*disk, cache_bytes, &syncs)?;
        let begin = begin_opening(&database, new_folder_id)?;
        Ok((Self { disk, cache_bytes, database: RwLock::new(Some(database)), syncs }, begin))
    }

    /// Makes the file of a new folder.
    pub(super) fn make(disk: &FolderDisk, folder_id: u64) -> Result<(), EngineError> {
        /// Enough for what a new file holds.
        const CACHE_BYTES: usize = 1 << 20;
        let backend = disk.begin().map_err(EngineError::Disk)?;
        let database = on_backend(backend, CACHE_BYTES, &Arc::default())?;
        begin_opening(&database, folder_id)?;
        drop(database);
        disk.finish().map_err(EngineError::Disk)
    }

    /// Visits every message in the order of sending, and answers how many bytes all records and objects have.
    pub(super) fn scan(&self, mut visit: impl FnMut(u64, Header<'_>)) -> Result<u64, EngineError> {
        let transaction = self.begin_read()?;
        let mut bytes = 0;
        for row in transaction.open_table(MESSAGES).map_err(failed)?.iter().map_err(failed)? {
            let (key, record) = row.map_err(failed)?;
            let (header, _) = Header::read(record.value()).ok_or(EngineError::Record(key.value()))?;
            bytes += record.value().len() as u64;
            visit(key.value(), header);
        }
        for row in transaction.open_table(OBJECTS).map_err(failed)?.iter().map_err(failed)? {
            bytes += ObjectFacts::from(row.map_err(failed)?.1.value()).bytes;
        }
        Ok(bytes)
    }

    /// The contents of some messages; `None` where there is no such message.
    pub(super) fn contents(&self, sequences: &[u64]) -> Result<Vec<Option<Content>>, EngineError> {
        let messages = self.begin_read()?.open_table(MESSAGES).map_err(failed)?;
        let content = |sequence: &u64| {
            let Some(record) = messages.get(sequence).map_err(failed)? else { return Ok(None) };
            let (header, body) = Header::read(record.value()).ok_or(EngineError::Record(*sequence))?;
            Ok(Some(Content { sent_at: header.sent_at, body: Bytes::copy_from_slice(body) }))
        };
        sequences.iter().map(content).collect()
    }

    pub(super) fn begin_read(&self) -> Result<ReadTransaction, EngineError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        database.as_ref().ok_or(EngineError::Closed)?.begin_read().map_err(failed)
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, EngineError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        database.as_ref().ok_or(EngineError::Closed)?.begin_write().map_err(failed)
    }

    /// The device behind it.
    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// How often it was tried to sync: a commit that failed before its sync took no effect.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Opens the file again after a failed write, which the engine does not go on from, and answers the number of
    /// the last commit that took effect.
    pub(super) fn reopen(&self) -> Result<u64, EngineError> {
        self.close();
        let database = open_database(&*self.disk, self.cache_bytes, &self.syncs)?;
        let folder = database.begin_read().map_err(failed)?.open_table(FOLDER).map_err(failed)?;
        let commit = folder.get(COMMIT).map_err(failed)?.map_or(0, |number| number.value());
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = Some(database);
        Ok(commit)
    }

    /// Whether there is an engine to work with.
    pub(super) fn is_open(&self) -> bool {
        self.database.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Closes the file; everything fails from now on.
    pub(super) fn close(&self) {
        let database = self.database.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(database);
    }
}

fn open_database(
    disk: &dyn Disk,
    cache_bytes: usize,
    syncs: &Arc<AtomicU64>,
) -> Result<Database, EngineError> {
    on_backend(disk.open().map_err(EngineError::Disk)?, cache_bytes, syncs)
}

fn on_backend(
    backend: Box<dyn StorageBackend>,
    cache_bytes: usize,
    syncs: &Arc<AtomicU64>,
) -> Result<Database, EngineError> {
    let backend = AnyBackend { backend, syncs: syncs.clone() };
    Database::builder().set_cache_size(cache_bytes).create_with_backend(backend).map_err(failed)
}

fn begin_opening(database: &Database, new_folder_id: u64) -> Result<Begin, EngineError> {
    let transaction = database.begin_write().map_err(failed)?;
    let mut folder = transaction.open_table(FOLDER).map_err(failed)?;
    let number = |name| Ok(folder.get(name).map_err(failed)?.map(|number| number.value()));
    let format = number(FORMAT)?.unwrap_or(FORMAT_VERSION);
    if format > FORMAT_VERSION {
        return Err(EngineError::NewerFormat(format));
    }
    let begin = Begin {
        folder_id: number(FOLDER_ID)?.unwrap_or(new_folder_id),
        // Zero is never a sequence number.
        first_sequence: number(NEXT_SEQUENCE)?.unwrap_or(1 << SEQUENCES_PER_OPENING_BITS),
        commit: number(COMMIT)?.unwrap_or(0),
    };
    let next = begin.first_sequence.saturating_add(1 << SEQUENCES_PER_OPENING_BITS);
    for (name, number) in [(FORMAT, format), (FOLDER_ID, begin.folder_id), (NEXT_SEQUENCE, next)] {
        folder.insert(name, number).map_err(failed)?;
    }
    drop(folder);
    // Readers expect every table to be there.
    transaction.open_table(MESSAGES).map_err(failed)?;
    transaction.open_table(OBJECTS).map_err(failed)?;
    transaction.open_table(OBJECT_BYTES).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(begin)
}

/// An object's version, time of writing and size, as [`OBJECTS`] keeps them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectFacts {
    pub(super) version: u64,
    pub(super) modified_at: Timestamp,
    pub(super) bytes: u64,
}

impl From<(u64, u64, u64)> for ObjectFacts {
    fn from((version, modified_ms, bytes): (u64, u64, u64)) -> Self {
        Self { version, modified_at: Timestamp::from_millis(modified_ms), bytes }
    }
}
