//! Records that are selected, newest first, page by page.

use std::collections::BTreeMap;

use posthaste_core::delivery_log::{
    LogHour, LogRecord, RecordCursor, RecordFilter, without_duplicates,
};

use crate::error::LogError;
use crate::group::FoundRows;
use crate::log_file::LogFile;
use crate::newest::{cursor_time, found_times};

/// A page of a list.
#[derive(Debug, Default)]
pub struct RecordPage {
    /// The records, the newest first, each once. A page may be shorter than its limit though there
    /// are more.
    pub records: Vec<LogRecord>,
    /// The place to list on from, if there may be more.
    pub next: Option<RecordCursor>,
    /// Files that are damaged, each once. They may have had more.
    pub damaged: Vec<LogError>,
}

pub(crate) fn files_by_hour(
    files: &[LogFile],
    filter: &RecordFilter,
) -> BTreeMap<LogHour, Vec<LogFile>> {
    let mut hours: BTreeMap<LogHour, Vec<LogFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| filter.may_be_in(file.hour)) {
        hours.entry(file.hour).or_default().push(file.clone());
    }
    hours
}

/// Whether a page is full of rows that are newer than all that are still to be read.
pub(crate) fn are_enough(
    found: &[FoundRows],
    filter: &RecordFilter,
    limit: usize,
    next: i64,
) -> bool {
    let at_cursor = filter.after.as_ref().map(cursor_time);
    found_times(found)
        .filter(|time| *time > next && Some(*time) != at_cursor)
        .count()
        > limit
}

/// The page of records that are sorted. `behind`: the place behind all of them, if there may be
/// older ones.
pub(crate) fn record_page(
    mut records: Vec<LogRecord>,
    limit: usize,
    damaged: Vec<LogError>,
    behind: Option<RecordCursor>,
) -> RecordPage {
    let has_more = records.len() > limit;
    records.truncate(limit);
    let next = records
        .last()
        .filter(|_| has_more)
        .map(RecordCursor::after_record)
        .or(behind);
    RecordPage {
        records: without_duplicates(records),
        next,
        damaged,
    }
}
