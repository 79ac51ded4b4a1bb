//! The delivery log over its store: its files are listed, and then searched side by side.

use std::collections::BTreeMap;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use posthaste_core::delivery_log::{LogHour, RecordCursor, RecordFilter, RecordLookup, time_in_id};
use posthaste_core::model::Timestamp;
use posthaste_ports::{EvictableCache, EvictedAmount, ObjectStore};
use posthaste_services::pages::list_objects;

use crate::{LogError, LogFile, LogReader, LookUpResult, RecordPage, SummaryStore};

/// Most bytes of footers that are kept. Those of a day of ten million records take 3.2 MB
/// (measured).
const FOOTER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Most files of the log that a request looks for. An hour has one after its merge, and 120 at the
/// most before it.
const FILES_MAX: usize = 100_000;

/// Hours that a list reads side by side, at most: as many as it has read before without finding
/// enough.
const HOURS_AT_ONCE_MAX: usize = 8;

/// Files of which a list reads the footers, before it returns what it has and the place to continue
/// from.
const LIST_FILES_MAX: usize = 1_000;

/// Most times that the files are listed again, because some were merged into others in between.
const LISTED_AGAIN_MAX: usize = 2;

/// The log over its store.
#[derive(Debug)]
pub struct DeliveryLog<S> {
    reader: Arc<LogReader<S>>,
}

/// The files of an hour.
type HourFiles = (LogHour, Vec<LogFile>);

impl<S> Clone for DeliveryLog<S> {
    fn clone(&self) -> Self {
        Self {
            reader: Arc::clone(&self.reader),
        }
    }
}

impl<S: ObjectStore> DeliveryLog<S> {
    /// The log in this store, which has nothing else.
    pub fn new(store: S) -> Self {
        Self {
            reader: Arc::new(LogReader::new(store, FOOTER_BYTES_MAX)),
        }
    }

    /// The log with its summaries, by which a look-up leaves hours out.
    pub fn with_summaries(store: S, summaries: SummaryStore<S>) -> Self {
        let reader = LogReader::new(store, FOOTER_BYTES_MAX).with_summaries(summaries);
        Self {
            reader: Arc::new(reader),
        }
    }

    /// The store of its files.
    pub fn store(&self) -> &S {
        self.reader.store()
    }

    /// The records of an event, searched while `has_time`. If there are none since the time in its
    /// id, all are searched: the clock of its producer may be ahead.
    pub async fn look_up_event(
        &self,
        look_up: RecordLookup,
        has_time: impl Fn() -> bool + Send + Sync,
    ) -> Result<LookUpResult, LogError> {
        let found = self.look_up(&look_up, &has_time).await?;
        let has_time_in_id = look_up.event_id.as_deref().and_then(time_in_id).is_some();
        if !found.records.is_empty() || found.searched_from.is_some() || !has_time_in_id {
            return Ok(found);
        }
        self.look_up(
            &RecordLookup {
                whole: true,
                ..look_up
            },
            &has_time,
        )
        .await
    }

    async fn look_up(
        &self,
        look_up: &RecordLookup,
        has_time: &(impl Fn() -> bool + Sync),
    ) -> Result<LookUpResult, LogError> {
        for _ in 0..=LISTED_AGAIN_MAX {
            let files = self.list_files(look_up.earliest_time(), look_up.to).await?;
            match self.reader.look_up_while(&files, look_up, has_time).await {
                Err(error) if error.is_gone() => {}
                found => return found,
            }
        }
        Err(LogError::Changing)
    }

    /// The newest records that a filter selects, at most `limit`. Hours are read from the newest
    /// back, until there are enough. The walk continues while `has_time`.
    pub async fn list_records(
        &self,
        filter: &RecordFilter,
        limit: usize,
        has_time: impl Fn() -> bool + Send + Sync,
    ) -> Result<RecordPage, LogError> {
        for _ in 0..=LISTED_AGAIN_MAX {
            let files = self.list_files(filter.from, filter.end_time()).await?;
            let page = match filter.webhook_id {
                Some(_) => {
                    self.reader
                        .list_request(&files, filter, limit, &has_time)
                        .await
                }
                None => {
                    self.walk_hours(&files_by_hour(files, filter), filter, limit, &has_time)
                        .await
                }
            };
            match page {
                Err(error) if error.is_gone() => {}
                page => return page,
            }
        }
        Err(LogError::Changing)
    }

    async fn walk_hours(
        &self,
        hours: &[HourFiles],
        filter: &RecordFilter,
        limit: usize,
        has_time: &(impl Fn() -> bool + Sync),
    ) -> Result<RecordPage, LogError> {
        let mut listed = RecordPage::default();
        let mut rest = hours;
        let mut files = 0;
        while !rest.is_empty() {
            let at_once = (hours.len() - rest.len()).clamp(1, HOURS_AT_ONCE_MAX);
            let (step, later) = rest.split_at(at_once.min(rest.len()));
            for (page, left) in self
                .list_hours(step, filter, limit)
                .await?
                .into_iter()
                .zip((0..step.len()).rev())
            {
                if add_hour(&mut listed, page, limit, left > 0 || !later.is_empty()) {
                    return Ok(listed);
                }
            }
            files += step.iter().map(|(_, files)| files.len()).sum::<usize>();
            if !later.is_empty() && (files >= LIST_FILES_MAX || !has_time()) {
                listed.next = step
                    .last()
                    .map(|(hour, _)| RecordCursor::behind_hour(*hour));
                return Ok(listed);
            }
            rest = later;
        }
        Ok(listed)
    }

    async fn list_hours(
        &self,
        hours: &[HourFiles],
        filter: &RecordFilter,
        limit: usize,
    ) -> Result<Vec<RecordPage>, LogError> {
        let pages: Vec<_> = hours
            .iter()
            .map(|(_, files)| self.reader.list_records(files, filter, limit))
            .collect();
        stream::iter(pages)
            .buffered(HOURS_AT_ONCE_MAX)
            .try_collect()
            .await
    }

    /// The time before which the log has nothing; `None` if it is empty.
    pub async fn begins_at(&self) -> Result<Option<Timestamp>, LogError> {
        let files = list_objects(self.reader.store(), "", None);
        let hours = files.try_filter_map(|object| ready(Ok(LogFile::new(object.key, object.size))));
        let first = pin!(hours).try_next().await.map_err(LogError::List)?;
        Ok(first.map(|file| file.hour.start()))
    }

    /// The files that may have records of this time.
    async fn list_files(
        &self,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Result<Vec<LogFile>, LogError> {
        let after = from.map(|from| LogHour::containing(from).key_prefix());
        let end = to.map(|to| LogHour::containing(LogHour::containing(to).end()).key_prefix());
        let files: Vec<_> = list_objects(self.reader.store(), "", after)
            .try_take_while(|object| ready(Ok(end.as_ref().is_none_or(|end| object.key < *end))))
            .take(FILES_MAX + 1)
            .try_filter_map(|object| ready(Ok(LogFile::new(object.key, object.size))))
            .try_collect()
            .await
            .map_err(LogError::List)?;
        if files.len() > FILES_MAX {
            Err(LogError::TooManyFiles(FILES_MAX))
        } else {
            Ok(files)
        }
    }
}

/// Adds the records of an hour to a page, and returns whether there are enough now.
fn add_hour(listed: &mut RecordPage, hour: RecordPage, limit: usize, has_older: bool) -> bool {
    listed.damaged.extend(hour.damaged);
    listed.records.extend(hour.records);
    let is_over = listed.records.len() > limit;
    listed.records.truncate(limit);
    let is_full = listed.records.len() == limit || hour.next.is_some();
    let has_more = is_over || hour.next.is_some() || has_older;
    listed.next = listed
        .records
        .last()
        .filter(|_| is_full && has_more)
        .map(RecordCursor::after_record);
    is_full
}

/// The files by hour, the newest first, without hours that have nothing of the list.
fn files_by_hour(files: Vec<LogFile>, filter: &RecordFilter) -> Vec<HourFiles> {
    let mut hours = BTreeMap::<LogHour, Vec<LogFile>>::new();
    for file in files.into_iter().filter(|file| filter.may_be_in(file.hour)) {
        hours.entry(file.hour).or_default().push(file);
    }
    hours.into_iter().rev().collect()
}

impl<S: ObjectStore + 'static> EvictableCache for DeliveryLog<S> {
    fn trim(&self) -> EvictedAmount {
        self.reader.forget_footers()
    }
}
