//! A new database file, made of the rows of a snapshot.

use std::error::Error;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use redb::{Database, Table, WriteTransaction};

use super::damage::catch_panic;
use super::disk::FolderDisk;
use super::engine::open_on_backend;
use super::failure::EngineError;
use super::row::{CopyCounts, CopyRow, RowTable, read_row};
use super::scan::validate_tables;
use super::tables::{FOLDER, MESSAGES, OBJECT_BYTES, OBJECT_DIGESTS, OBJECTS};

/// Bytes of pages kept in memory while the file is made.
const CACHE_BYTES: usize = 64 << 20;

/// Bytes of rows in one transaction: large enough that its sync is no part of the time.
const COMMIT_BYTES: usize = 32 << 20;

/// Error of a database that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The rows end too early, or the bytes are not rows.
    #[error("the rows of the database do not come whole")]
    Rows(#[source] io::Error),
    /// Rows are missing.
    #[error("{found} messages and {objects_found} objects came, {expected} and {objects_expected} were sent",
        found = found.messages, objects_found = found.objects, expected = expected.messages,
        objects_expected = expected.objects)]
    Missing {
        /// The rows that came.
        found: CopyCounts,
        /// The rows that were sent.
        expected: CopyCounts,
    },
    /// The file cannot be written.
    #[error("failed to write the database")]
    Write(#[source] Box<dyn Error + Send + Sync>),
}

/// The tables of a transaction.
struct OpenTables<'t> {
    folder: Table<'t, &'static str, u64>,
    messages: Table<'t, u64, &'static [u8]>,
    objects: Table<'t, &'static str, (u64, u64, u64)>,
    contents: Table<'t, &'static str, &'static [u8]>,
    digests: Table<'t, &'static str, (u64, u32)>,
}

/// Makes the database in a folder that has none, of what `Snapshot::write_to` wrote. The file has
/// its name only once it is whole and durable. Blocks, for as long as the rows take to come.
///
/// # Errors
///
/// The rows do not come to their end, or cannot be written.
pub fn rebuild_database(dir: &Path, rows: &mut impl Read) -> Result<CopyCounts, RebuildError> {
    let disk = FolderDisk::new(dir);
    let made = catch_panic(|| {
        let backend = disk.create_new_file().map_err(EngineError::Disk)?;
        let database = open_on_backend(backend, CACHE_BYTES, &Arc::default())?;
        let filled = fill_database(&database, rows);
        if filled.is_ok() {
            validate_tables(&database)?;
        }
        Ok(filled)
    });
    let copied = made.unwrap_or_else(|error| Err(engine_error(error)))?;
    disk.name_new_file()
        .map_err(|error| engine_error(EngineError::Disk(error)))?;
    Ok(copied)
}

fn fill_database(database: &Database, rows: &mut impl Read) -> Result<CopyCounts, RebuildError> {
    let mut found = CopyCounts::default();
    loop {
        let transaction = database.begin_write().map_err(write_error)?;
        let mut tables = OpenTables::open(&transaction).map_err(engine_error)?;
        let mut bytes = 0;
        let mut end = None;
        while bytes < COMMIT_BYTES && end.is_none() {
            match read_row(rows).map_err(RebuildError::Rows)? {
                CopyRow::End(expected) => end = Some(expected),
                CopyRow::Of { table, key, value } => {
                    bytes += key.len() + value.len();
                    found.messages += u64::from(table == RowTable::Messages);
                    found.objects += u64::from(table == RowTable::Objects);
                    tables.insert(table, &key, &value)?;
                }
            }
        }
        drop(tables);
        transaction.commit().map_err(write_error)?;
        match end {
            None => {}
            Some(expected) if expected == found => return Ok(found),
            Some(expected) => return Err(RebuildError::Missing { found, expected }),
        }
    }
}

impl<'t> OpenTables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, EngineError> {
        Ok(Self {
            folder: transaction.open_table(FOLDER)?,
            messages: transaction.open_table(MESSAGES)?,
            objects: transaction.open_table(OBJECTS)?,
            contents: transaction.open_table(OBJECT_BYTES)?,
            digests: transaction.open_table(OBJECT_DIGESTS)?,
        })
    }

    fn insert(&mut self, table: RowTable, key: &[u8], value: &[u8]) -> Result<(), RebuildError> {
        match table {
            RowTable::Folder => {
                let number = u64::from_le_bytes(to_array(value)?);
                self.folder
                    .insert(key_text(key)?, number)
                    .map_err(write_error)?;
            }
            RowTable::Messages => {
                let sequence = u64::from_le_bytes(to_array(key)?);
                self.messages.insert(sequence, value).map_err(write_error)?;
            }
            RowTable::Objects => {
                let facts: [u8; 24] = to_array(value)?;
                let facts = (
                    number_at(&facts, 0)?,
                    number_at(&facts, 8)?,
                    number_at(&facts, 16)?,
                );
                self.objects
                    .insert(key_text(key)?, facts)
                    .map_err(write_error)?;
            }
            RowTable::ObjectBytes => {
                self.contents
                    .insert(key_text(key)?, value)
                    .map_err(write_error)?;
            }
            RowTable::ObjectDigests => {
                let digest: [u8; 12] = to_array(value)?;
                let version = u64::from_le_bytes(to_array(&digest[..8])?);
                let crc = u32::from_le_bytes(to_array(&digest[8..])?);
                self.digests
                    .insert(key_text(key)?, (version, crc))
                    .map_err(write_error)?;
            }
        }
        Ok(())
    }
}

fn to_array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], RebuildError> {
    bytes
        .try_into()
        .map_err(|_| RebuildError::Rows(io::ErrorKind::InvalidData.into()))
}

fn number_at(bytes: &[u8], at: usize) -> Result<u64, RebuildError> {
    to_array(&bytes[at..at + 8]).map(u64::from_le_bytes)
}

fn key_text(key: &[u8]) -> Result<&str, RebuildError> {
    std::str::from_utf8(key)
        .map_err(|error| RebuildError::Rows(io::Error::new(io::ErrorKind::InvalidData, error)))
}

fn engine_error(error: EngineError) -> RebuildError {
    RebuildError::Write(Box::new(error))
}

fn write_error(error: impl Into<redb::Error>) -> RebuildError {
    engine_error(EngineError::from(error))
}
