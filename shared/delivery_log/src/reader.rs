//! The reader of the log: footers, row groups that may have what is asked for, and their rows.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use posthaste_core::delivery_log::{
    LogRecord, MergeNote, RecordCursor, RecordFilter, newest_first,
};
use posthaste_ports::{EvictedAmount, ObjectStore};
use posthaste_services::busy::run_off_worker;

use crate::bloom;
use crate::error::{LogError, decode_guarded, set_damaged_apart};
use crate::footer::{self, FileFooter};
use crate::footer_cache::FooterCache;
use crate::group::{FoundRows, LogRowGroup};
use crate::list::{RecordPage, are_enough, files_by_hour, record_page};
use crate::log_file::LogFile;
use crate::newest::keep_newest;
use crate::row_query::RowQuery;
use crate::segments::{FileSegments, coalesce_ranges, range_pieces};
use crate::summaries::SummaryStore;

/// Row groups that are read side by side, before the rows are counted.
const GROUPS_AT_ONCE: usize = 8;

/// Most ranges that one question reads side by side.
const CONCURRENCY: usize = 64;

/// Reads the log's files from a store. Footers are kept, as many as fit.
#[derive(Debug)]
pub struct LogReader<S> {
    store: S,
    summaries: Option<SummaryStore<S>>,
    footers: FooterCache,
}

impl<S: ObjectStore> LogReader<S> {
    /// A reader that keeps footers of at most this number of bytes.
    pub fn new(store: S, footer_bytes_max: usize) -> Self {
        Self {
            store,
            summaries: None,
            footers: FooterCache::new(footer_bytes_max),
        }
    }

    /// A reader that does not read hours that these summaries rule out.
    #[must_use]
    pub fn with_summaries(self, summaries: SummaryStore<S>) -> Self {
        let summaries = Some(summaries);
        Self { summaries, ..self }
    }

    /// The summaries, if the reader has them.
    pub(crate) fn summaries(&self) -> Option<&SummaryStore<S>> {
        self.summaries.as_ref()
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The bytes of the footers that are kept.
    pub fn footer_bytes(&self) -> usize {
        self.footers.bytes()
    }

    /// Forgets all footers, and returns the memory that they took.
    pub fn forget_footers(&self) -> EvictedAmount {
        self.footers.clear()
    }

    /// The words of a file about the merge that made it; `None` if none did.
    pub async fn merge_note(&self, file: &LogFile) -> Result<Option<MergeNote>, LogError> {
        Ok(self.read_footer(file).await?.merge_note())
    }

    /// The row groups of files that may have a row that is asked for, in the order of the files.
    pub(crate) async fn find_groups(
        &self,
        files: Vec<LogFile>,
        ask: &RowQuery<'_>,
        damaged: &mut Vec<LogError>,
    ) -> Result<Vec<LogRowGroup>, LogError> {
        let footers = await_concurrently(files.into_iter().map(|file| async move {
            let footer = self.read_footer(&file).await?;
            Ok((file, footer))
        }));
        let footers = set_damaged_apart(footers.await, damaged)?;
        let groups = footers.into_iter().flat_map(|(file, footer)| {
            let indexes = (0..footer.meta.num_row_groups()).collect::<Vec<_>>();
            indexes.into_iter().map(move |index| LogRowGroup {
                file: file.clone(),
                footer: footer.clone(),
                index,
            })
        });
        let groups = groups.filter(|group| ask.may_be_in(&group.footer, group.index));
        let groups =
            await_concurrently(groups.map(|group| async move {
                Ok(self.may_have(&group, ask).await?.then_some(group))
            }));
        Ok(set_damaged_apart(groups.await, damaged)?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The values of columns of texts in a file, row group by row group, given to `take` one by one.
    pub(crate) async fn read_texts(
        &self,
        file: &LogFile,
        columns: &[&str],
        mut take: impl FnMut(&str, &str) + Send,
    ) -> Result<(), LogError> {
        let footer = self.read_footer(file).await?;
        for index in 0..footer.meta.num_row_groups() {
            let group = LogRowGroup {
                file: file.clone(),
                footer: footer.clone(),
                index,
            };
            let ranges =
                decode_guarded(&file.key, || group.column_ranges(columns.iter().copied()))?;
            let bytes = self.fetch_ranges(file, ranges).await?;
            // Thousands of texts, while a summary is made on the worker of deliveries.
            run_off_worker(|| {
                decode_guarded(&file.key, || group.read_texts(columns, bytes, &mut take))
            })?;
        }
        Ok(())
    }

    /// Whether the bloom filter of a row group lets the value pass that is asked for.
    async fn may_have(&self, group: &LogRowGroup, ask: &RowQuery<'_>) -> Result<bool, LogError> {
        let Some((name, value)) = ask.bloom_value() else {
            return Ok(true);
        };
        let chunk = group.footer.column_chunk(group.index, name);
        let Some(range) = chunk.and_then(|chunk| bloom::block_range(chunk, value)) else {
            return Ok(true);
        };
        let block = self.read_range(&group.file, range).await?;
        Ok(bloom::may_contain(&block, value))
    }

    /// The rows of groups that are asked for.
    pub(crate) async fn find_rows(
        &self,
        groups: Vec<LogRowGroup>,
        ask: &RowQuery<'_>,
        damaged: &mut Vec<LogError>,
    ) -> Result<Vec<FoundRows>, LogError> {
        let found = await_concurrently(groups.into_iter().map(|group| async move {
            let file = group.file.clone();
            let ranges = decode_guarded(&file.key, || group.deciding_ranges(ask))?;
            let bytes = self.fetch_ranges(&file, ranges).await?;
            decode_guarded(&file.key, || group.find_rows(ask, bytes))
        }));
        set_damaged_apart(found.await, damaged)
    }

    /// The records of rows that were found.
    pub(crate) async fn read_records(
        &self,
        found: Vec<FoundRows>,
        ask: &RowQuery<'_>,
        damaged: &mut Vec<LogError>,
    ) -> Result<Vec<LogRecord>, LogError> {
        let found = found.into_iter().filter(|found| !found.rows.is_empty());
        let records = await_concurrently(found.map(|found| async move {
            let file = &found.group.file;
            let ranges = decode_guarded(&file.key, || found.record_ranges(ask))?;
            let bytes = self.fetch_ranges(file, ranges).await?;
            decode_guarded(&file.key, || found.read_records(ask, bytes))
        }));
        Ok(set_damaged_apart(records.await, damaged)?
            .into_iter()
            .flatten()
            .collect())
    }

    async fn read_footer(&self, file: &LogFile) -> Result<Arc<FileFooter>, LogError> {
        if let Some(footer) = self.footers.get(&file.key) {
            return Ok(footer);
        }
        if file.size == 0 {
            return Err(LogError::damaged(&file.key, "the file is empty"));
        }
        let tail = self.read_range(file, footer::tail_range(file.size)).await?;
        let missing = match decode_guarded(&file.key, || footer::missing_range(file.size, &tail))? {
            Some(range) => Some(self.read_range(file, range).await?),
            None => None,
        };
        let footer = Arc::new(decode_guarded(&file.key, || footer::parse(missing, &tail))?);
        self.footers.put(&file.key, &footer);
        Ok(footer)
    }

    async fn fetch_ranges(
        &self,
        file: &LogFile,
        ranges: Vec<Range<u64>>,
    ) -> Result<FileSegments, LogError> {
        let parts =
            await_concurrently(coalesce_ranges(ranges).into_iter().map(|range| async move {
                Ok((range.start, self.read_range(file, range).await?))
            }));
        Ok(FileSegments::new(
            parts.await.into_iter().collect::<Result<_, _>>()?,
            file.size,
        ))
    }

    /// Reads a range of a file. A range past its end can only be named by damaged bytes.
    async fn read_range(&self, file: &LogFile, range: Range<u64>) -> Result<Bytes, LogError> {
        if range.start >= range.end || range.end > file.size {
            return Err(LogError::damaged(
                &file.key,
                "it names bytes behind its end",
            ));
        }
        let mut read = Vec::new();
        for piece in range_pieces(range) {
            let bytes = self.store.get_range(&file.key, piece).await;
            read.push(bytes.map_err(|source| LogError::Read {
                file: file.key.clone(),
                source,
            })?);
        }
        Ok(join_pieces(read))
    }

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

fn join_pieces(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 | 1 => pieces.pop().unwrap_or_default(),
        _ => pieces
            .into_iter()
            .fold(BytesMut::new(), |mut all, piece| {
                all.extend_from_slice(&piece);
                all
            })
            .freeze(),
    }
}

/// Awaits all, some at a time. The results are in the order of what was given.
async fn await_concurrently<U>(
    all: impl Iterator<Item = impl Future<Output = Result<U, LogError>> + Send>,
) -> Vec<Result<U, LogError>> {
    // Collected, because the compiler sees no `Send` in a stream of closures that borrow.
    stream::iter(all.collect::<Vec<_>>())
        .buffered(CONCURRENCY)
        .collect()
        .await
}
