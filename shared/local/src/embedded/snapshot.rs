//! The database as it was at one moment, row by row, while the store continues to work.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::closings::{ClosingCount, ClosingCounter};
use super::damage::catch_panic;
use super::engine::{begin_opening, open_on_backend};
use super::failure::{EngineError, OpenError};
use super::row::{CopyCounts, RowTable, write_end, write_row};
use super::scan::validate_tables;
use super::stopped::open_stopped;
use super::tables::{FOLDER, MESSAGES, OBJECT_BYTES, OBJECT_DIGESTS, OBJECTS};
use super::unwritten::UnwrittenFile;

/// Bytes of pages kept in memory while a folder is read that no process has open.
const CACHE_BYTES: usize = 16 << 20;

/// The database at one moment. While it lives, the file does not reuse the room of what is deleted,
/// so it grows by what is written meanwhile.
pub struct Snapshot {
    transaction: ReadTransaction,
    closings: ClosingCount,
    /// The engine of a folder that no process has open.
    _database: Option<Database>,
}

/// Error of a snapshot that cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The database cannot be read.
    #[error("failed to read the database")]
    Read(#[source] Box<dyn Error + Send + Sync>),
    /// The store opened its file again after a failed write.
    #[error("the database was opened again after a failed write while it was copied; begin again")]
    Reopened,
    /// The copy cannot be written.
    #[error("failed to write the copy of the database")]
    Write(#[from] io::Error),
}

impl Snapshot {
    pub(super) fn new(transaction: ReadTransaction, closings: ClosingCount) -> Self {
        Self {
            transaction,
            closings,
            _database: None,
        }
    }

    /// Opens the database of a folder that no process has open, and that none can open while this
    /// lives. Changes nothing on the disk. Blocks.
    ///
    /// # Errors
    ///
    /// Another process has the folder open, or the file cannot be read.
    pub fn of_stopped(dir: &Path) -> Result<Self, OpenError> {
        let file = open_stopped(dir)?;
        catch_panic(|| Self::of_file(file)).map_err(|source| OpenError::for_engine(dir, source))
    }

    fn of_file(file: File) -> Result<Self, EngineError> {
        let backend = UnwrittenFile::new(file).map_err(EngineError::Disk)?;
        let database = open_on_backend(Box::new(backend), CACHE_BYTES, &Arc::default())?;
        validate_tables(&database)?;
        // The same as at a start, but only in memory. A folder of an older version gets its new
        // table.
        begin_opening(&database, 0)?;
        Ok(Self {
            transaction: database.begin_read()?,
            closings: ClosingCounter::default().now(),
            _database: Some(database),
        })
    }

    /// Writes all rows, from which `rebuild` makes a file. Blocks, for as long as the disk takes to
    /// read them and `out` to take them.
    ///
    /// # Errors
    ///
    /// A page cannot be read, the store was opened again, or `out` fails.
    pub fn write_to(&self, out: &mut impl Write) -> Result<CopyCounts, SnapshotError> {
        let copied = catch_panic(|| Ok(self.write_rows(out)))
            .unwrap_or_else(|error| Err(engine_error(error)));
        if !self.closings.are_unchanged() {
            return Err(SnapshotError::Reopened);
        }
        let copied = copied?;
        write_end(out, copied)?;
        Ok(copied)
    }

    fn write_rows(&self, out: &mut impl Write) -> Result<CopyCounts, SnapshotError> {
        let mut copied = CopyCounts::default();
        for row in self
            .transaction
            .open_table(FOLDER)
            .map_err(read_error)?
            .iter()
            .map_err(read_error)?
        {
            let (key, number) = row.map_err(read_error)?;
            let number = number.value().to_le_bytes();
            write_row(out, RowTable::Folder, key.value().as_bytes(), &number)?;
        }
        for row in self
            .transaction
            .open_table(MESSAGES)
            .map_err(read_error)?
            .iter()
            .map_err(read_error)?
        {
            let (sequence, record) = row.map_err(read_error)?;
            let sequence = sequence.value().to_le_bytes();
            write_row(out, RowTable::Messages, &sequence, record.value())?;
            copied.messages += 1;
        }
        for row in self
            .transaction
            .open_table(OBJECTS)
            .map_err(read_error)?
            .iter()
            .map_err(read_error)?
        {
            let (key, facts) = row.map_err(read_error)?;
            let (version, modified_ms, bytes) = facts.value();
            let facts = [version, modified_ms, bytes].map(u64::to_le_bytes).concat();
            write_row(out, RowTable::Objects, key.value().as_bytes(), &facts)?;
            copied.objects += 1;
        }
        let contents = self
            .transaction
            .open_table(OBJECT_BYTES)
            .map_err(read_error)?;
        for row in contents.iter().map_err(read_error)? {
            let (key, bytes) = row.map_err(read_error)?;
            write_row(
                out,
                RowTable::ObjectBytes,
                key.value().as_bytes(),
                bytes.value(),
            )?;
        }
        let digests = self
            .transaction
            .open_table(OBJECT_DIGESTS)
            .map_err(read_error)?;
        for row in digests.iter().map_err(read_error)? {
            let (key, digest) = row.map_err(read_error)?;
            let (version, crc) = digest.value();
            let digest = [&version.to_le_bytes()[..], &crc.to_le_bytes()].concat();
            write_row(
                out,
                RowTable::ObjectDigests,
                key.value().as_bytes(),
                &digest,
            )?;
        }
        Ok(copied)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

fn engine_error(error: EngineError) -> SnapshotError {
    SnapshotError::Read(Box::new(error))
}

fn read_error(error: impl Into<redb::Error>) -> SnapshotError {
    engine_error(EngineError::from(error))
}
