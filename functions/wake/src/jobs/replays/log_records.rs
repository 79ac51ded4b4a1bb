//! The records of the delivery log that a replay looks at: the oldest first, some at a time.

use std::time::Duration;

use posthaste_core::delivery_log::{LogRecord, RecordCursor, RecordFilter};
use posthaste_core::model::{Subscription, Timestamp};
use posthaste_core::release::{LogPosition, ReplaySelection};
use posthaste_delivery_log::{LogError, RecordPage};
use posthaste_ports::Ports;

use super::pick::error_with_causes;
use crate::run::WakeRun;

/// Most records of one read. A crash sends those of one read again, under the same keys.
const RECORDS_MAX: usize = 200;

/// Longest part of the log that is read at once, so that few files are open.
const LENGTH_MAX: Duration = Duration::from_hours(1);

/// Shortest part: records have times in milliseconds.
const LENGTH_MIN: Duration = Duration::from_millis(1);

/// A part of the log.
#[derive(Debug)]
pub(super) struct LogPart {
    /// The records of the part, the oldest first.
    pub(super) records: Vec<LogRecord>,
    /// The end of the part.
    pub(super) end: Timestamp,
    /// Files that cannot be read, with the reasons.
    pub(super) damaged: Vec<(String, String)>,
}

/// Reads parts. Lists of the log are newest first, so that a part is made shorter until one list
/// has it.
#[derive(Debug)]
pub(super) struct LogPartReader {
    length: Duration,
}

impl LogPartReader {
    pub(super) fn new() -> Self {
        Self { length: LENGTH_MAX }
    }

    /// The next part after a place, which ends before `to`.
    pub(super) async fn next<P: Ports>(
        &mut self,
        run: WakeRun<'_, P>,
        selection: &ReplaySelection,
        of: &Subscription,
        after: &LogPosition,
        to: Timestamp,
    ) -> Result<LogPart, LogError> {
        loop {
            let end = after.end_of_part(self.length, to);
            let filter = selection.record_filter(after.time, end, of);
            let mut page = list_records(run, &filter).await?;
            let Some(next) = page.next.take() else {
                self.length = (self.length * 2).min(LENGTH_MAX);
                return Ok(part_of_page(page, after, end));
            };
            if self.length == LENGTH_MIN {
                page.records = list_remaining(run, &filter, page.records, next).await?;
                return Ok(part_of_page(page, after, end));
            }
            self.length = (self.length / 2).max(LENGTH_MIN);
        }
    }
}

fn part_of_page(
    RecordPage {
        mut records,
        damaged,
        ..
    }: RecordPage,
    after: &LogPosition,
    end: Timestamp,
) -> LogPart {
    let damaged = damaged
        .iter()
        .filter_map(|error| Some((error.damaged_file()?.to_owned(), error_with_causes(error))));
    let damaged = damaged.collect();
    records.retain(|record| after.is_before(record));
    records.sort_by(|one, other| (one.time, &one.record_id).cmp(&(other.time, &other.record_id)));
    LogPart {
        records,
        end,
        damaged,
    }
}

async fn list_records<P: Ports>(
    run: WakeRun<'_, P>,
    filter: &RecordFilter,
) -> Result<RecordPage, LogError> {
    // A list that is cut short for want of time would look like one with more records.
    run.ports
        .log
        .list_records(filter, RECORDS_MAX, || true)
        .await
}

/// The other records of a millisecond.
async fn list_remaining<P: Ports>(
    run: WakeRun<'_, P>,
    filter: &RecordFilter,
    mut records: Vec<LogRecord>,
    next: RecordCursor,
) -> Result<Vec<LogRecord>, LogError> {
    let mut next = Some(next);
    while let Some(after) = next {
        let page = list_records(
            run,
            &RecordFilter {
                after: Some(after),
                ..filter.clone()
            },
        )
        .await?;
        records.extend(page.records);
        next = page.next;
    }
    Ok(records)
}
