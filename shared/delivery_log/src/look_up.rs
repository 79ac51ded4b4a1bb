//! Everything that the log has about an id.

use posthaste_core::delivery_log::{
    Cursor, LogHour, LookUp, Record, RecordFilter, newest_first, without_duplicates,
};
use posthaste_core::model::{LOG_LOOK_UP_RECORDS_MAX, Timestamp};
use posthaste_ports::ObjectStore;

use crate::ask::Ask;
use crate::error::LogError;
use crate::group::{Found, Group};
use crate::list::{RecordPage, page};
use crate::log_file::LogFile;
use crate::newest::{cursor_time, keep_newest, times};
use crate::reader::LogReader;

/// Files whose footers are held at once. Those of the largest files that merges make take less than
/// 32 MB.
const FILES_AT_ONCE: usize = 32;

/// Row groups that are searched side by side, before rows that are too old are dropped. An id is in
/// few of them, unless a producer gives many events the same one.
const GROUPS_AT_ONCE: usize = 16;

/// The records of an id.
#[derive(Debug)]
pub struct LookedUp {
    /// The records, the newest first, each once.
    pub records: Vec<Record>,
    /// Whether there may be more: older ones, of the same time or before it.
    pub is_cut: bool,
    /// The time from which on all was searched, if the search ended before its end.
    pub searched_from: Option<Timestamp>,
    /// Files that are damaged, each once. They may have had more.
    pub damaged: Vec<LogError>,
}

/// A search through files, the newest hour first.
struct Search<'a> {
    ask: Ask<'a>,
    after: Option<&'a Cursor>,
    /// Most rows that are kept beside those of the cursor's moment and of the oldest one.
    rows_max: usize,
}

/// Rows that a search found.
#[derive(Default)]
struct Searched {
    found: Vec<Found>,
    /// Whether rows were dropped, or files not searched, because there were enough.
    is_cut: bool,
    /// The place behind all that was found, once there were enough.
    behind: Option<Cursor>,
    /// The last hour that was searched, if the time was over then.
    ended_at: Option<LogHour>,
    damaged: Vec<LogError>,
}

impl<S: ObjectStore> LogReader<S> {
    /// The records of an event's or a request's id, the newest, at most
    /// [`LOG_LOOK_UP_RECORDS_MAX`]. `files` are those of a listing; those of hours that cannot
    /// have such a record are not opened.
    pub async fn look_up(&self, files: &[LogFile], look_up: &LookUp) -> Result<LookedUp, LogError> {
        self.look_up_while(files, look_up, || true).await
    }

    /// The same, while `has_time`: files are searched from the newest hour back.
    pub async fn look_up_while(
        &self,
        files: &[LogFile],
        look_up: &LookUp,
        has_time: impl Fn() -> bool,
    ) -> Result<LookedUp, LogError> {
        let files = files
            .iter()
            .filter(|file| look_up.may_be_in(file.hour))
            .cloned()
            .collect();
        let search = Search {
            ask: Ask::from(look_up),
            after: None,
            rows_max: LOG_LOOK_UP_RECORDS_MAX,
        };
        let (mut records, searched) = self.search(files, &search, has_time).await?;
        let is_cut = searched.is_cut || records.len() > LOG_LOOK_UP_RECORDS_MAX;
        records.truncate(LOG_LOOK_UP_RECORDS_MAX);
        let (records, searched_from) = (
            without_duplicates(records),
            searched.ended_at.map(LogHour::start),
        );
        Ok(LookedUp {
            records,
            is_cut,
            searched_from,
            damaged: searched.damaged,
        })
    }

    /// The newest `limit` records that a filter selects, of all hours at once. It names a request,
    /// so that bloom filters say where to look. Where the time is over, the page is short, and
    /// has a next one.
    pub async fn list_request(
        &self,
        files: &[LogFile],
        filter: &RecordFilter,
        limit: usize,
        has_time: impl Fn() -> bool,
    ) -> Result<RecordPage, LogError> {
        let files = files
            .iter()
            .filter(|file| filter.may_be_in(file.hour))
            .cloned()
            .collect();
        let (ask, after) = (Ask::from(filter), filter.after.as_ref());
        let search = Search {
            ask,
            after,
            rows_max: limit.saturating_add(1),
        };
        let (mut records, searched) = self.search(files, &search, has_time).await?;
        records.retain(|record| filter.matches(record));
        let behind = searched
            .behind
            .or(searched.ended_at.map(Cursor::behind_hour));
        Ok(page(records, limit, searched.damaged, behind))
    }

    /// The records that a search finds, sorted, and what else is known of it.
    async fn search(
        &self,
        mut files: Vec<LogFile>,
        search: &Search<'_>,
        has_time: impl Fn() -> bool,
    ) -> Result<(Vec<Record>, Searched), LogError> {
        files.sort_by(|one, other| {
            other
                .hour
                .cmp(&one.hour)
                .then_with(|| one.key.cmp(&other.key))
        });
        let mut searched = Searched::default();
        let mut rest = &files[..];
        while !rest.is_empty() {
            let (step, later) = rest.split_at(FILES_AT_ONCE.min(rest.len()));
            self.search_files(step.to_vec(), search, &mut searched)
                .await?;
            if searched.is_over(search, step, later, &has_time) {
                break;
            }
            rest = later;
        }
        let found = std::mem::take(&mut searched.found);
        let mut records = self
            .records(found, &search.ask, &mut searched.damaged)
            .await?;
        records.sort_by(newest_first);
        Ok((records, searched))
    }

    async fn search_files(
        &self,
        files: Vec<LogFile>,
        search: &Search<'_>,
        searched: &mut Searched,
    ) -> Result<(), LogError> {
        let mut groups: Vec<Group> = self
            .groups(files, &search.ask, &mut searched.damaged)
            .await?;
        while !groups.is_empty() {
            let rest = groups.split_off(GROUPS_AT_ONCE.min(groups.len()));
            let groups = std::mem::replace(&mut groups, rest);
            let found = self
                .find(groups, &search.ask, &mut searched.damaged)
                .await?;
            searched.add(found, search);
        }
        Ok(())
    }
}

impl Searched {
    fn add(&mut self, found: Vec<Found>, search: &Search<'_>) {
        self.found.extend(found);
        let rows = times(&self.found).count();
        self.behind = keep_newest(&mut self.found, search.after, search.rows_max);
        self.is_cut |= times(&self.found).count() < rows;
        self.found.retain(|found| !found.rows.is_empty());
    }

    /// Whether `later` need not be searched, or cannot be. Files of one hour may have each other's
    /// times, so an hour is searched wholly.
    fn is_over(
        &mut self,
        search: &Search<'_>,
        step: &[LogFile],
        later: &[LogFile],
        has_time: impl Fn() -> bool,
    ) -> bool {
        let (Some(last), Some(next)) = (step.last(), later.first()) else {
            return false;
        };
        if last.hour == next.hour {
            return false;
        }
        let is_full = self.is_full(search);
        self.is_cut |= is_full;
        self.ended_at = (!is_full && !has_time()).then_some(last.hour);
        is_full || self.ended_at.is_some()
    }

    fn is_full(&self, search: &Search<'_>) -> bool {
        let at_cursor = search.after.map(cursor_time);
        times(&self.found)
            .filter(|time| Some(*time) != at_cursor)
            .count()
            >= search.rows_max
    }
}
