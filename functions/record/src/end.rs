//! The end of records: files that are too old, or too many for their disk, are deleted.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::delivery_log::{
    ListedFile, LogDay, LogDisk, LogHour, files_to_delete, first_kept_hour, log_bytes_max,
};
use posthaste_core::model::Timestamp;
use posthaste_core::model::size::DiskShare;
use posthaste_delivery_log::SummaryStore;
use posthaste_ports::{Clock, ObjectStore, Ports};
use posthaste_services::list_pages;

use crate::aside::{DELETED_AT_ONCE, LogFiles};
use crate::error::LogFilesError;

/// The files that one run deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndedFiles {
    /// Files older than the retention.
    pub old: usize,
    /// Files that made room.
    pub over: usize,
    /// The first moment of the oldest hour that is left.
    pub reaches_back_to: Option<Timestamp>,
}

/// Deletes files that are too old or too many.
pub(crate) struct LogRetention<P: Ports> {
    pub(crate) files: Arc<LogFiles<P>>,
    pub(crate) summaries: Arc<SummaryStore<P::Log>>,
    pub(crate) clock: P::Clock,
    /// Time for which records are kept. `None` where the bucket's lifecycle deletes them.
    pub(crate) kept_for: Option<Duration>,
    /// The most that the log may take. `None` for no bound.
    pub(crate) size_max: Option<DiskShare>,
}

impl<P: Ports> LogRetention<P> {
    /// Deletes files as the settings say. No file is deleted for a share of a disk that is not
    /// known.
    pub(crate) async fn delete_ended_files(
        &self,
        disk: Option<LogDisk>,
    ) -> Result<EndedFiles, LogFilesError> {
        let first_kept = self
            .kept_for
            .map(|retention| first_kept_hour(self.clock.now(), retention));
        if first_kept.is_none() && self.size_max.is_none() {
            return Ok(EndedFiles::default());
        }
        if let Err(error) = self.files.move_misplaced_files().await {
            // What ends may make the room that the move needs.
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "damaged files of an earlier version stay in the delivery log for now"
            );
        }
        let files = self.all_files().await?.into_iter();
        let (old, kept): (Vec<_>, Vec<_>) =
            files.partition(|file| first_kept.is_some_and(|first| file.hour < first));
        let summaries = self
            .summaries
            .list_days()
            .await
            .map_err(LogFilesError::Store)?;
        let of_summaries: u64 = summaries.iter().map(|(_, bytes)| bytes).sum();
        let bytes = kept.iter().map(|file| file.bytes).sum::<u64>() + of_summaries;
        let bytes_max = self
            .size_max
            .and_then(|size| log_bytes_max(size, disk, bytes));
        let files_max = bytes_max.unwrap_or(u64::MAX).saturating_sub(of_summaries);
        let over = files_to_delete(&kept, files_max);
        self.end_files(&old.iter().collect::<Vec<_>>(), "retention")
            .await?;
        self.end_files(&over, "disk").await?;
        let left = kept
            .iter()
            .filter(|file| !over.contains(file))
            .map(|file| file.hour);
        let oldest = left.min();
        for (day, _) in summaries {
            if oldest.is_none_or(|oldest| day < LogDay::containing(oldest)) {
                let deleted = self.summaries.delete(day).await;
                deleted.map_err(LogFilesError::Store)?;
            }
        }
        let ended = EndedFiles {
            old: old.len(),
            over: over.len(),
            reaches_back_to: oldest.map(LogHour::start),
        };
        ended.log_ended();
        Ok(ended)
    }

    /// All files of the log, and those that were set aside.
    async fn all_files(&self) -> Result<Vec<ListedFile>, LogFilesError> {
        let aside = &self.files.aside;
        let mut files = list_files(&*self.files.log, "").await?;
        for file in list_files(&aside.store, aside.prefix).await? {
            let is_aside = true;
            files.push(ListedFile { is_aside, ..file });
        }
        Ok(files)
    }

    async fn end_files(
        &self,
        files: &[&ListedFile],
        reason: &'static str,
    ) -> Result<(), LogFilesError> {
        let ends: Vec<_> = files
            .iter()
            .map(|file| self.end_file(file, reason))
            .collect();
        stream::iter(ends)
            .buffer_unordered(DELETED_AT_ONCE)
            .try_collect()
            .await
    }

    async fn end_file(&self, file: &ListedFile, reason: &'static str) -> Result<(), LogFilesError> {
        if file.is_aside {
            let aside = &self.files.aside;
            let deleted = aside.store.delete(&aside.key_for(&file.key)).await;
            deleted.map_err(LogFilesError::Store)?;
        } else {
            self.files.delete_file(file.key.clone()).await?;
        }
        metrics::counter!("LogFilesEndedCount", "reason" => reason).increment(1);
        Ok(())
    }
}

/// The files of the log under a prefix of a store, by their keys behind it.
async fn list_files(
    store: &impl ObjectStore,
    prefix: &str,
) -> Result<Vec<ListedFile>, LogFilesError> {
    let mut files = Vec::new();
    let mut pages = pin!(list_pages(store, prefix, None));
    while let Some(page) = pages.try_next().await.map_err(LogFilesError::Store)? {
        files.extend(page.objects.into_iter().filter_map(|it| {
            let of_log = it.key.strip_prefix(prefix)?.to_owned();
            ListedFile::new(of_log, it.size, it.modified_at)
        }));
    }
    Ok(files)
}

impl EndedFiles {
    fn log_ended(&self) {
        let Self {
            old,
            over,
            reaches_back_to,
        } = *self;
        let reaches_back_to = reaches_back_to.map(tracing::field::display);
        if old > 0 {
            tracing::info!(
                files = old,
                reaches_back_to,
                "old files of the delivery log deleted"
            );
        }
        if over > 0 {
            tracing::warn!(
                files = over,
                reaches_back_to,
                "files of the delivery log deleted to make room"
            );
        }
    }
}
