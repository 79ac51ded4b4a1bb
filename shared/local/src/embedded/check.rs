//! A check of a whole data folder: which messages and objects are intact. It changes nothing on
//! disk.

use std::fs::File;
use std::path::Path;

use posthaste_core::model::with_causes;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::damage::catch_panic;
use super::engine::{begin_opening, open_on_backend};
use super::failure::{EngineError, OpenError};
use super::record::{self, RecordHeader};
use super::scan::{validate_tables, visit_all};
use super::stopped::open_stopped;
use super::store::is_as_written;
use super::tables::{MESSAGES, OBJECT_BYTES, OBJECTS, ObjectFacts};
use super::unwritten::UnwrittenFile;

/// Most damages that are named one by one.
const NAMED_MAX: usize = 1000;

/// Bytes of pages kept in memory during a check.
const CACHE_BYTES: usize = 64 << 20;

/// The contents of a data folder.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Messages that were looked at.
    pub messages: u64,
    /// State objects that were looked at.
    pub objects: u64,
    /// Messages of a version before digests, in which an altered byte cannot be found.
    pub without_digest: u64,
    /// The number of damages.
    pub damages: u64,
    /// Descriptions of the first damages.
    pub named: Vec<String>,
}

impl CheckReport {
    fn add_damage(&mut self, what: String) {
        self.damages += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(what);
        }
    }

    fn add_failure(&mut self, doing: &str, error: &EngineError) {
        self.add_damage(format!("{doing}: {}", with_causes(error)));
    }
}

/// Reads everything in a data folder that no process has open. Blocks, for as long as the disk
/// takes to read it.
pub fn check_folder(dir: &Path) -> Result<CheckReport, OpenError> {
    let file = open_stopped(dir)?;
    let mut report = CheckReport::default();
    let metadata = file
        .metadata()
        .map_err(|source| OpenError::for_folder(dir, source))?;
    if metadata.len() == 0 {
        report.add_damage("the store: the file is empty".to_owned());
        return Ok(report);
    }
    if let Err(error) = catch_panic(|| check_file(file, &mut report)) {
        report.add_failure("the store", &error);
    }
    Ok(report)
}

fn check_file(file: File, report: &mut CheckReport) -> Result<(), EngineError> {
    let backend = UnwrittenFile::new(file).map_err(EngineError::Disk)?;
    let mut database = open_on_backend(Box::new(backend), CACHE_BYTES, &std::sync::Arc::default())?;
    validate_tables(&database)?;
    // The same as at a start, but only in memory. A folder of an older version gets its new table.
    let begin = begin_opening(&database, 0)?;
    read_all(&database, begin.first_sequence, report)?;
    match catch_panic(|| Ok(database.check_integrity()?)) {
        Ok(true) => {}
        Ok(false) => {
            report
                .add_damage("the store: its pages and its list of free pages disagree".to_owned());
        }
        Err(error) => report.add_failure("the store's pages", &error),
    }
    Ok(())
}

fn read_all(database: &Database, next: u64, report: &mut CheckReport) -> Result<(), EngineError> {
    let transaction = database.begin_read()?;
    if let Err(error) =
        catch_panic(|| visit_all(&transaction, next, |_, _, _| {}, |_| {}).map(drop))
    {
        report.add_failure("the store", &error);
    }
    if let Err(error) = catch_panic(|| read_messages(&transaction, report)) {
        let doing = format!("the messages after the first {}", report.messages);
        report.add_failure(&doing, &error);
    }
    if let Err(error) = catch_panic(|| read_objects(&transaction, report)) {
        let doing = format!("the objects after the first {}", report.objects);
        report.add_failure(&doing, &error);
    }
    Ok(())
}

fn read_messages(
    transaction: &ReadTransaction,
    report: &mut CheckReport,
) -> Result<(), EngineError> {
    for row in transaction.open_table(MESSAGES)?.iter()? {
        let (sequence, record) = row?;
        report.messages += 1;
        report.without_digest += u64::from(!record::is_verifiable(record.value()));
        if RecordHeader::read(record.value()).is_none() {
            let sequence = sequence.value();
            report.add_damage(format!(
                "message {sequence}: its bytes are not those that were written"
            ));
        }
    }
    Ok(())
}

fn read_objects(
    transaction: &ReadTransaction,
    report: &mut CheckReport,
) -> Result<(), EngineError> {
    let contents = transaction.open_table(OBJECT_BYTES)?;
    for row in transaction.open_table(OBJECTS)?.iter()? {
        let (key, facts) = row?;
        let key = key.value();
        let facts = ObjectFacts::from(facts.value());
        report.objects += 1;
        let is_whole = catch_panic(|| match contents.get(key)? {
            Some(bytes) => is_as_written(transaction, key, facts, bytes.value()),
            None => Ok(false),
        });
        match is_whole {
            Ok(true) => {}
            Ok(false) => report.add_damage(format!(
                "object {key}: its bytes are not those that were written"
            )),
            Err(error) => report.add_failure(&format!("object {key}"), &error),
        }
    }
    Ok(())
}
