//! The newest of the rows that were found.

use posthaste_core::delivery_log::RecordCursor;
use posthaste_core::model::Timestamp;

use crate::group::FoundRows;

/// The time of a cursor, as rows have theirs.
pub(crate) fn cursor_time(cursor: &RecordCursor) -> i64 {
    i64::try_from(cursor.time.as_millis()).unwrap_or(i64::MAX)
}

/// Drops rows that are too old for the page. The ids decide which rows of one moment come first,
/// and they are not read yet; so all of those stay, and all of the cursor's moment. Returns the
/// place behind the rows of a full page: there may be older ones.
pub(crate) fn keep_newest(
    found: &mut [FoundRows],
    after: Option<&RecordCursor>,
    limit: usize,
) -> Option<RecordCursor> {
    let at_cursor = after.map(cursor_time);
    let mut times: Vec<i64> = found_times(found)
        .filter(|time| Some(*time) != at_cursor)
        .collect();
    times.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
    let oldest = times.get(limit.saturating_sub(1)).copied()?;
    for found in found {
        found
            .rows
            .retain(|(_, time)| *time >= oldest || Some(*time) == at_cursor);
    }
    u64::try_from(oldest)
        .ok()
        .map(|ms| RecordCursor::behind_moment(Timestamp::from_millis(ms)))
}

/// The times of rows, in the order in which they were found.
pub(crate) fn found_times(found: &[FoundRows]) -> impl Iterator<Item = i64> + '_ {
    found
        .iter()
        .flat_map(|found| found.rows.iter().map(|(_, time)| *time))
}
