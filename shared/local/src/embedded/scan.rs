//! The scan of an opened file: it finds out whether the file is ours, and what it holds. The engine
//! does not verify pages when it opens a file, so the order and number of rows are checked, and
//! that each is found by its key: a damaged branch of the tree can hide rows from look-ups that a
//! walk over all of them still finds. The bytes of messages and objects are not checked, because
//! that would read the whole file.

use posthaste_core::model::Timestamp;
use redb::{
    Database, Range, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, TableHandle,
};

use super::failure::EngineError;
use super::live::LiveBytes;
use super::record::RecordHeader;
use super::tables::{FOLDER, FORMAT, MESSAGES, OBJECT_DIGESTS, OBJECTS, ObjectFacts};

/// The first format whose objects have digests, and the table that holds them.
const FORMAT_WITH_DIGESTS: u64 = 2;
const DIGESTS: &str = "object_digests";

/// Refuses a file that another program made, or of which a table is gone: the engine would make a
/// new one.
pub(super) fn validate_tables(database: &Database) -> Result<(), EngineError> {
    let transaction = database.begin_read()?;
    let tables = transaction.list_tables()?;
    let names: Vec<String> = tables.map(|table| table.name().to_owned()).collect();
    let missing = ["folder", "messages", "objects", "object_bytes"]
        .into_iter()
        .find(|wanted| !names.iter().any(|name| name == wanted));
    if let Some(missing) = missing {
        return Err(EngineError::Foreign(missing));
    }
    let folder = transaction.open_table(FOLDER)?;
    let format = folder.get(FORMAT)?.map(|format| format.value());
    let format = format.ok_or(EngineError::Foreign(FORMAT))?;
    let has_digests = names.iter().any(|name| name == DIGESTS);
    if format >= FORMAT_WITH_DIGESTS && !has_digests {
        Err(EngineError::Foreign(DIGESTS))
    } else {
        Ok(())
    }
}

/// The header of a message, and its body, whose digest was not checked.
pub(super) type VisitedMessage<'a> = (RecordHeader<'a>, &'a [u8]);

/// Visits every message in the order of sending, with the size of its record, and returns the bytes
/// of messages and objects, and the time at which the last object was written. A header that cannot
/// be read is `None`. Every object is visited by its key. All numbers must be less than `next`.
pub(super) fn visit_all(
    transaction: &ReadTransaction,
    next: u64,
    visit: impl FnMut(u64, Option<VisitedMessage<'_>>, usize),
    visit_object: impl FnMut(&str),
) -> Result<(LiveBytes, Option<Timestamp>), EngineError> {
    let mut live = visit_messages(transaction, next, visit)?;
    let (bytes, last) = visit_objects(transaction, next, visit_object)?;
    live.add_bytes(bytes);
    Ok((live, last))
}

fn visit_messages(
    transaction: &ReadTransaction,
    next: u64,
    mut visit: impl FnMut(u64, Option<VisitedMessage<'_>>, usize),
) -> Result<LiveBytes, EngineError> {
    const TABLE: &str = "messages";
    let table = transaction.open_table(MESSAGES)?;
    let mut live = LiveBytes::default();
    let mut found = 0;
    let mut last = None;
    for row in table.iter()? {
        let (sequence, record) = row?;
        let sequence = sequence.value();
        let is_in_place = sequence < next && last.is_none_or(|last| sequence > last);
        if !is_in_place || table.get(sequence)?.is_none() {
            return Err(EngineError::Misplaced {
                table: TABLE,
                row: sequence.to_string(),
            });
        }
        found += 1;
        last = Some(sequence);
        let found = RecordHeader::read_unverified(record.value());
        live.add_message(found.map(|(header, _)| header.queue), record.value().len());
        visit(sequence, found, record.value().len());
    }
    check_all_found(TABLE, table.len()?, found)?;
    Ok(live)
}

/// The bytes of all objects, and the time at which the last one was written.
fn visit_objects(
    transaction: &ReadTransaction,
    next: u64,
    mut visit: impl FnMut(&str),
) -> Result<(u64, Option<Timestamp>), EngineError> {
    const TABLE: &str = "objects";
    let table = transaction.open_table(OBJECTS)?;
    let mut digests = DigestCursor::open(transaction)?;
    let mut last_written = None;
    let mut bytes = 0_u64;
    let mut found = 0;
    let mut last = String::new();
    for row in table.iter()? {
        let (key, facts) = row?;
        let key = key.value();
        let facts = ObjectFacts::from(facts.value());
        let is_in_place = facts.version < next && (found == 0 || key > last.as_str());
        if !is_in_place || table.get(key)?.is_none() {
            return Err(EngineError::Misplaced {
                table: TABLE,
                row: key.to_owned(),
            });
        }
        digests.step_over(Some(key))?;
        visit(key);
        last_written = last_written.max(Some(facts.modified_at));
        key.clone_into(&mut last);
        found += 1;
        bytes = bytes.saturating_add(facts.bytes);
    }
    digests.step_over(None)?;
    check_all_found(TABLE, table.len()?, found)?;
    // A key that was altered makes an object look as if it had never been.
    match digests.missing {
        Some(row) => Err(EngineError::Misplaced { table: TABLE, row }),
        None => Ok((bytes, last_written)),
    }
}

/// The keys of objects that have a digest, in the objects' order: those objects must be there.
struct DigestCursor {
    table: ReadOnlyTable<&'static str, (u64, u32)>,
    rows: Range<'static, &'static str, (u64, u32)>,
    next: Option<String>,
    expected: u64,
    found: u64,
    /// The first one without an object.
    missing: Option<String>,
}

impl DigestCursor {
    fn open(transaction: &ReadTransaction) -> Result<Self, EngineError> {
        let table = transaction.open_table(OBJECT_DIGESTS)?;
        let expected = table.len()?;
        let rows = table.range::<&str>(..)?;
        let mut digests = Self {
            table,
            rows,
            next: None,
            expected,
            found: 0,
            missing: None,
        };
        digests.read_next("")?;
        Ok(digests)
    }

    /// Steps over the keys up to that of the next object, or all that are left. The others have no
    /// object.
    fn step_over(&mut self, object: Option<&str>) -> Result<(), EngineError> {
        while let Some(key) = self
            .next
            .take_if(|key| object.is_none_or(|object| key.as_str() <= object))
        {
            self.read_next(&key)?;
            if object != Some(key.as_str()) {
                self.missing.get_or_insert(key);
            }
        }
        Ok(())
    }

    /// Reads the key after this one.
    fn read_next(&mut self, last: &str) -> Result<(), EngineError> {
        let Some(row) = self.rows.next() else {
            return check_all_found(DIGESTS, self.expected, self.found);
        };
        let key = row?.0.value().to_owned();
        let is_in_place = self.found == 0 || key.as_str() > last;
        if !is_in_place || self.table.get(key.as_str())?.is_none() {
            return Err(EngineError::Misplaced {
                table: DIGESTS,
                row: key,
            });
        }
        self.found += 1;
        self.next = Some(key);
        Ok(())
    }
}

fn check_all_found(table: &'static str, expected: u64, found: u64) -> Result<(), EngineError> {
    if expected == found {
        Ok(())
    } else {
        Err(EngineError::Lost {
            table,
            expected,
            found,
        })
    }
}
