//! The reader of the log: footers, row groups that may have what is asked for, and their rows.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use posthaste_core::delivery_log::{LogRecord, MergeNote};
use posthaste_ports::{EvictedAmount, ObjectStore};
use posthaste_services::busy::run_off_worker;

use crate::ask::Ask;
use crate::bloom;
use crate::error::{LogError, decode, without_damaged};
use crate::footer::{self, Footer};
use crate::footer_cache::FooterCache;
use crate::group::{Found, Group};
use crate::log_file::LogFile;
use crate::segments::{Segments, coalesce, pieces};
use crate::summaries::Summaries;

/// Most ranges that one question reads side by side.
const CONCURRENCY: usize = 64;

/// Reads the log's files from a store. Footers are kept, as many as fit.
#[derive(Debug)]
pub struct LogReader<S> {
    store: S,
    summaries: Option<Summaries<S>>,
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
    pub fn with_summaries(self, summaries: Summaries<S>) -> Self {
        let summaries = Some(summaries);
        Self { summaries, ..self }
    }

    /// The summaries, if the reader has them.
    pub(crate) fn summaries(&self) -> Option<&Summaries<S>> {
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

    /// Forgets all footers, and says what they took.
    pub fn forget_footers(&self) -> EvictedAmount {
        self.footers.clear()
    }

    /// The words of a file about the merge that made it; `None` if none did.
    pub async fn merge_note(&self, file: &LogFile) -> Result<Option<MergeNote>, LogError> {
        Ok(self.footer(file).await?.merge_note())
    }

    /// The row groups of files that may have a row that is asked for, in the order of the files.
    pub(crate) async fn groups(
        &self,
        files: Vec<LogFile>,
        ask: &Ask<'_>,
        damaged: &mut Vec<LogError>,
    ) -> Result<Vec<Group>, LogError> {
        let footers = side_by_side(files.into_iter().map(|file| async move {
            let footer = self.footer(&file).await?;
            Ok((file, footer))
        }));
        let footers = without_damaged(footers.await, damaged)?;
        let groups = footers.into_iter().flat_map(|(file, footer)| {
            let indexes = (0..footer.meta.num_row_groups()).collect::<Vec<_>>();
            indexes.into_iter().map(move |index| Group {
                file: file.clone(),
                footer: footer.clone(),
                index,
            })
        });
        let groups = groups.filter(|group| ask.may_be_in(&group.footer, group.index));
        let groups =
            side_by_side(groups.map(|group| async move {
                Ok(self.may_have(&group, ask).await?.then_some(group))
            }));
        Ok(without_damaged(groups.await, damaged)?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The values of columns of texts in a file, row group by row group, given to `take` one by one.
    pub(crate) async fn texts(
        &self,
        file: &LogFile,
        columns: &[&str],
        mut take: impl FnMut(&str, &str) + Send,
    ) -> Result<(), LogError> {
        let footer = self.footer(file).await?;
        for index in 0..footer.meta.num_row_groups() {
            let group = Group {
                file: file.clone(),
                footer: footer.clone(),
                index,
            };
            let ranges = decode(&file.key, || group.ranges_of(columns.iter().copied()))?;
            let bytes = self.fetch(file, ranges).await?;
            // Thousands of texts, while a summary is made on the worker of deliveries.
            run_off_worker(|| decode(&file.key, || group.texts(columns, bytes, &mut take)))?;
        }
        Ok(())
    }

    /// Whether the bloom filter of a row group lets the value pass that is asked for.
    async fn may_have(&self, group: &Group, ask: &Ask<'_>) -> Result<bool, LogError> {
        let Some((name, value)) = ask.bloom() else {
            return Ok(true);
        };
        let chunk = group.footer.chunk(group.index, name);
        let Some(range) = chunk.and_then(|chunk| bloom::block_range(chunk, value)) else {
            return Ok(true);
        };
        let block = self.read(&group.file, range).await?;
        Ok(bloom::may_contain(&block, value))
    }

    /// The rows of groups that are asked for.
    pub(crate) async fn find(
        &self,
        groups: Vec<Group>,
        ask: &Ask<'_>,
        damaged: &mut Vec<LogError>,
    ) -> Result<Vec<Found>, LogError> {
        let found = side_by_side(groups.into_iter().map(|group| async move {
            let file = group.file.clone();
            let ranges = decode(&file.key, || group.deciding_ranges(ask))?;
            let bytes = self.fetch(&file, ranges).await?;
            decode(&file.key, || group.find(ask, bytes))
        }));
        without_damaged(found.await, damaged)
    }

    /// The records of rows that were found.
    pub(crate) async fn records(
        &self,
        found: Vec<Found>,
        ask: &Ask<'_>,
        damaged: &mut Vec<LogError>,
    ) -> Result<Vec<LogRecord>, LogError> {
        let found = found.into_iter().filter(|found| !found.rows.is_empty());
        let records = side_by_side(found.map(|found| async move {
            let file = &found.group.file;
            let ranges = decode(&file.key, || found.ranges(ask))?;
            let bytes = self.fetch(file, ranges).await?;
            decode(&file.key, || found.records(ask, bytes))
        }));
        Ok(without_damaged(records.await, damaged)?
            .into_iter()
            .flatten()
            .collect())
    }

    async fn footer(&self, file: &LogFile) -> Result<Arc<Footer>, LogError> {
        if let Some(footer) = self.footers.get(&file.key) {
            return Ok(footer);
        }
        if file.size == 0 {
            return Err(LogError::damaged(&file.key, "the file is empty"));
        }
        let tail = self.read(file, footer::tail_range(file.size)).await?;
        let missing = match decode(&file.key, || footer::missing_range(file.size, &tail))? {
            Some(range) => Some(self.read(file, range).await?),
            None => None,
        };
        let footer = Arc::new(decode(&file.key, || footer::parse(missing, &tail))?);
        self.footers.put(&file.key, &footer);
        Ok(footer)
    }

    async fn fetch(&self, file: &LogFile, ranges: Vec<Range<u64>>) -> Result<Segments, LogError> {
        let parts = side_by_side(
            coalesce(ranges)
                .into_iter()
                .map(|range| async move { Ok((range.start, self.read(file, range).await?)) }),
        );
        Ok(Segments::new(
            parts.await.into_iter().collect::<Result<_, _>>()?,
            file.size,
        ))
    }

    /// Reads a range of a file. A range past its end can only be named by damaged bytes.
    async fn read(&self, file: &LogFile, range: Range<u64>) -> Result<Bytes, LogError> {
        if range.start >= range.end || range.end > file.size {
            return Err(LogError::damaged(
                &file.key,
                "it names bytes behind its end",
            ));
        }
        let mut read = Vec::new();
        for piece in pieces(range) {
            let bytes = self.store.get_range(&file.key, piece).await;
            read.push(bytes.map_err(|source| LogError::Read {
                file: file.key.clone(),
                source,
            })?);
        }
        Ok(joined(read))
    }
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
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
async fn side_by_side<U>(
    all: impl Iterator<Item = impl Future<Output = Result<U, LogError>> + Send>,
) -> Vec<Result<U, LogError>> {
    // Collected, because the compiler sees no `Send` in a stream of closures that borrow.
    stream::iter(all.collect::<Vec<_>>())
        .buffered(CONCURRENCY)
        .collect()
        .await
}
