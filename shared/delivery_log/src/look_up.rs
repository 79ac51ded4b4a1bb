//! Look-ups: everything that the log has about an id.

use futures_util::{StreamExt, stream};
use posthaste_core::delivery_log::{
    LogDay, LogHour, LogRecord, RecordCursor, RecordFilter, RecordLookup, newest_first,
    without_duplicates,
};
use posthaste_core::model::{LOG_LOOK_UP_RECORDS_MAX, Timestamp};
use posthaste_ports::ObjectStore;

use crate::error::LogError;
use crate::group::{FoundRows, LogRowGroup};
use crate::list::{RecordPage, record_page};
use crate::log_file::LogFile;
use crate::newest::{cursor_time, found_times, keep_newest};
use crate::reader::LogReader;
use crate::row_query::{RowQuery, WantedId};
use crate::summaries::{SummarySizes, SummaryStore};

/// Files whose footers are held at once. Those of the largest files that merges make take less than
/// 32 MB.
const FILES_AT_ONCE: usize = 32;

/// Days whose summaries are read side by side, before any of their files are.
const DAYS_AT_ONCE: usize = 32;

/// Row groups that are searched side by side, before rows that are too old are dropped. An id is in
/// few of them, unless a producer gives many events the same one.
const GROUPS_AT_ONCE: usize = 16;

/// The records of an id.
#[derive(Debug)]
pub struct LookUpResult {
    /// The records, the newest first, each once.
    pub records: Vec<LogRecord>,
    /// Whether there may be more: older ones, of the same time or before it.
    pub is_cut: bool,
    /// The time from which on all was searched, if the search ended before its end.
    pub searched_from: Option<Timestamp>,
    /// The beginning of the oldest hour that a whole search looks at; `None` if there is none.
    pub begins: Option<Timestamp>,
    /// Files that are damaged, each once. They may have had more.
    pub damaged: Vec<LogError>,
}

/// A search through files, the newest hour first.
struct LogSearch<'a> {
    ask: RowQuery<'a>,
    after: Option<&'a RecordCursor>,
    /// Most rows that are kept beside those of the cursor's moment and of the oldest one.
    rows_max: usize,
}

/// Rows that a search found.
#[derive(Default)]
struct SearchState {
    found: Vec<FoundRows>,
    /// Whether rows were dropped, or files not searched, because there were enough.
    is_cut: bool,
    /// The place behind all that was found, once there were enough.
    behind: Option<RecordCursor>,
    /// The last hour that was searched, if the time was over then.
    ended_at: Option<LogHour>,
    is_over: bool,
    damaged: Vec<LogError>,
}

/// The files of some days: those that are not ruled out, and all. Then all older ones.
#[derive(Clone, Copy)]
struct DayFiles<'a> {
    kept: &'a [LogFile],
    all: &'a [LogFile],
    older: &'a [LogFile],
}

/// The summaries, as they are used to look up an id.
struct SummaryLookUp<'a, S> {
    summaries: &'a SummaryStore<S>,
    sizes: SummarySizes,
    id: WantedId<'a>,
}

impl<S: ObjectStore> LogReader<S> {
    /// The records of an event's or a request's id, the newest, at most
    /// [`LOG_LOOK_UP_RECORDS_MAX`]. `files` are those of a listing; those of hours that cannot
    /// have such a record are not opened.
    pub async fn look_up(
        &self,
        files: &[LogFile],
        look_up: &RecordLookup,
    ) -> Result<LookUpResult, LogError> {
        self.look_up_while(files, look_up, || true).await
    }

    /// Looks up records as [`look_up`](Self::look_up) does, while `has_time`: files are searched
    /// from the newest hour back.
    pub async fn look_up_while(
        &self,
        files: &[LogFile],
        look_up: &RecordLookup,
        has_time: impl Fn() -> bool,
    ) -> Result<LookUpResult, LogError> {
        let files = files
            .iter()
            .filter(|file| look_up.may_be_in(file.hour))
            .cloned()
            .collect::<Vec<_>>();
        let begins = files.iter().map(|file: &LogFile| file.hour.start()).min();
        let search = LogSearch {
            ask: RowQuery::from(look_up),
            after: None,
            rows_max: LOG_LOOK_UP_RECORDS_MAX,
        };
        let (mut records, searched) = self.run_search(files, &search, has_time).await?;
        let is_cut = searched.is_cut || records.len() > LOG_LOOK_UP_RECORDS_MAX;
        records.truncate(LOG_LOOK_UP_RECORDS_MAX);
        let records = without_duplicates(records);
        let searched_from = searched.ended_at.map(LogHour::start);
        Ok(LookUpResult {
            records,
            is_cut,
            searched_from,
            begins,
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
        let ask = RowQuery::from(filter);
        let after = filter.after.as_ref();
        let search = LogSearch {
            ask,
            after,
            rows_max: limit.saturating_add(1),
        };
        let (mut records, searched) = self.run_search(files, &search, has_time).await?;
        records.retain(|record| filter.matches(record));
        let behind = searched
            .behind
            .or(searched.ended_at.map(RecordCursor::behind_hour));
        Ok(record_page(records, limit, searched.damaged, behind))
    }

    /// The records that a search finds, sorted, and the state in which it ended.
    async fn run_search(
        &self,
        mut files: Vec<LogFile>,
        search: &LogSearch<'_>,
        has_time: impl Fn() -> bool,
    ) -> Result<(Vec<LogRecord>, SearchState), LogError> {
        files.sort_by(|one, other| {
            other
                .hour
                .cmp(&one.hour)
                .then_with(|| one.key.cmp(&other.key))
        });
        let mut searched = SearchState::default();
        let summaries = self.ask_summaries(&files, search).await?;
        let mut rest = &files[..];
        while !rest.is_empty() && !searched.is_over {
            let (days, older) = split_days(rest);
            let files = match &summaries {
                Some(summaries) => summaries.may_have(days).await,
                None => days.to_vec(),
            };
            let days = DayFiles {
                kept: &files,
                all: days,
                older,
            };
            self.search_days(days, search, &mut searched, &has_time)
                .await?;
            rest = older;
        }
        let found = std::mem::take(&mut searched.found);
        let mut records = self
            .read_records(found, &search.ask, &mut searched.damaged)
            .await?;
        records.sort_by(newest_first);
        Ok((records, searched))
    }

    /// Prepares a look-up of the id in the summaries. They are used only if more than one hour has
    /// files.
    async fn ask_summaries<'a>(
        &'a self,
        files: &[LogFile],
        search: &LogSearch<'a>,
    ) -> Result<Option<SummaryLookUp<'a, S>>, LogError> {
        let has_hours = files.first().map(|file| file.hour) != files.last().map(|file| file.hour);
        if !has_hours {
            return Ok(None);
        }
        let Some((summaries, id)) = self.summaries().zip(search.ask.wanted_id()) else {
            return Ok(None);
        };
        Ok(Some(SummaryLookUp {
            summaries,
            sizes: summaries.read_sizes().await,
            id,
        }))
    }

    /// Searches those files of some days that are not ruled out.
    async fn search_days(
        &self,
        days: DayFiles<'_>,
        search: &LogSearch<'_>,
        searched: &mut SearchState,
        has_time: impl Fn() -> bool,
    ) -> Result<(), LogError> {
        let mut rest = days.kept;
        while !rest.is_empty() {
            let (step, later) = rest.split_at(FILES_AT_ONCE.min(rest.len()));
            self.search_files(step.to_vec(), search, searched).await?;
            let next = later.first().or(days.older.first());
            searched.end_if_over(search, step.last().zip(next), &has_time);
            if searched.is_over {
                return Ok(());
            }
            rest = later;
        }
        if days.kept.is_empty() {
            let ruled_out = days.all.last().zip(days.older.first());
            searched.end_if_over(search, ruled_out, &has_time);
        }
        Ok(())
    }

    async fn search_files(
        &self,
        files: Vec<LogFile>,
        search: &LogSearch<'_>,
        searched: &mut SearchState,
    ) -> Result<(), LogError> {
        let mut groups: Vec<LogRowGroup> = self
            .find_groups(files, &search.ask, &mut searched.damaged)
            .await?;
        while !groups.is_empty() {
            let rest = groups.split_off(GROUPS_AT_ONCE.min(groups.len()));
            let groups = std::mem::replace(&mut groups, rest);
            let found = self
                .find_rows(groups, &search.ask, &mut searched.damaged)
                .await?;
            searched.add_found(found, search);
        }
        Ok(())
    }
}

impl<S: ObjectStore> SummaryLookUp<'_, S> {
    /// The files that may have the id, of some days.
    async fn may_have(&self, files: &[LogFile]) -> Vec<LogFile> {
        let days = files
            .chunk_by(|one, other| LogDay::containing(one.hour) == LogDay::containing(other.hour));
        let kept: Vec<_> = days
            .map(|day| self.summaries.may_have(&self.sizes, day, &self.id))
            .collect();
        let kept: Vec<_> = stream::iter(kept).buffered(DAYS_AT_ONCE).collect().await;
        kept.concat()
    }
}

/// The files of the newest days, and the rest.
fn split_days(files: &[LogFile]) -> (&[LogFile], &[LogFile]) {
    let days =
        files.chunk_by(|one, other| LogDay::containing(one.hour) == LogDay::containing(other.hour));
    files.split_at(days.take(DAYS_AT_ONCE).map(<[LogFile]>::len).sum())
}

impl SearchState {
    fn add_found(&mut self, found: Vec<FoundRows>, search: &LogSearch<'_>) {
        self.found.extend(found);
        let rows = found_times(&self.found).count();
        self.behind = keep_newest(&mut self.found, search.after, search.rows_max);
        self.is_cut |= found_times(&self.found).count() < rows;
        self.found.retain(|found| !found.rows.is_empty());
    }

    /// Ends the search between the last file that was searched and the next one, where that need
    /// not be searched, or cannot be. Files of one hour may have each other's times, so an hour is
    /// searched wholly.
    fn end_if_over(
        &mut self,
        search: &LogSearch<'_>,
        between: Option<(&LogFile, &LogFile)>,
        has_time: impl Fn() -> bool,
    ) {
        let Some((last, _)) = between.filter(|(last, next)| last.hour != next.hour) else {
            return;
        };
        let is_full = self.is_full(search);
        self.is_cut |= is_full;
        self.ended_at = (!is_full && !has_time()).then_some(last.hour);
        self.is_over = is_full || self.ended_at.is_some();
    }

    fn is_full(&self, search: &LogSearch<'_>) -> bool {
        let at_cursor = search.after.map(cursor_time);
        found_times(&self.found)
            .filter(|time| Some(*time) != at_cursor)
            .count()
            >= search.rows_max
    }
}
