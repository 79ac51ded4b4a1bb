//! Records that are selected, newest first, page by page.

use std::collections::BTreeMap;

use posthaste_core::delivery_log::{
    LogHour, LogRecord, RecordCursor, RecordFilter, newest_first, without_duplicates,
};
use posthaste_ports::ObjectStore;

use crate::error::LogError;
use crate::group::FoundRows;
use crate::log_file::LogFile;
use crate::newest::{cursor_time, found_times, keep_newest};
use crate::reader::LogReader;
use crate::row_query::RowQuery;

/// Row groups that are read side by side, before the rows are counted.
const GROUPS_AT_ONCE: usize = 8;

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

impl<S: ObjectStore> LogReader<S> {
    /// The newest `limit` records that a filter selects. `files` are those of a listing. Hours are
    /// read from the newest back, until there are enough.
    pub async fn list_records(
        &self,
        files: &[LogFile],
        filter: &RecordFilter,
        limit: usize,
    ) -> Result<RecordPage, LogError> {
        let mut records = Vec::new();
        let mut damaged = Vec::new();
        for (_, files) in files_by_hour(files, filter).into_iter().rev() {
            let (of_hour, behind) = self.list_hour(files, filter, limit, &mut damaged).await?;
            records.extend(of_hour);
            if records.len() > limit || behind.is_some() {
                return Ok(record_page(records, limit, damaged, behind));
            }
        }
        Ok(record_page(records, limit, damaged, None))
    }

    /// Returns at least the newest records of an hour that are selected: one more than the limit,
    /// if there are so many, and then also the place behind them. They are fewer if a file is
    /// damaged.
    async fn list_hour(
        &self,
        files: Vec<LogFile>,
        filter: &RecordFilter,
        limit: usize,
        damaged: &mut Vec<LogError>,
    ) -> Result<(Vec<LogRecord>, Option<RecordCursor>), LogError> {
        let ask = RowQuery::from(filter);
        let mut groups = self.find_groups(files, &ask, damaged).await?;
        groups.sort_by_key(|group| std::cmp::Reverse(group.newest_time()));
        let mut found = Vec::new();
        while groups
            .first()
            .is_some_and(|next| !are_enough(&found, filter, limit, next.newest_time()))
        {
            let rest = groups.split_off(GROUPS_AT_ONCE.min(groups.len()));
            found.extend(
                self.find_rows(std::mem::replace(&mut groups, rest), &ask, damaged)
                    .await?,
            );
        }
        let behind = keep_newest(&mut found, filter.after.as_ref(), limit.saturating_add(1));
        let mut records = self.read_records(found, &ask, damaged).await?;
        records.retain(|record| filter.matches(record));
        records.sort_by(newest_first);
        Ok((records, behind))
    }
}

fn files_by_hour(files: &[LogFile], filter: &RecordFilter) -> BTreeMap<LogHour, Vec<LogFile>> {
    let mut hours: BTreeMap<LogHour, Vec<LogFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| filter.may_be_in(file.hour)) {
        hours.entry(file.hour).or_default().push(file.clone());
    }
    hours
}

/// Whether a page is full of rows that are newer than all that are still to be read.
fn are_enough(found: &[FoundRows], filter: &RecordFilter, limit: usize, next: i64) -> bool {
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
