//! The merge: a run looks for hours with files to merge, and merges them under a lease, the newest
//! first. A run in which nothing is to be done takes no lease.

mod files;
mod hour;
mod report;

use std::collections::BTreeSet;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use posthaste_core::delivery_log::{
    DATES, HoursToMerge, LogHour, MergeCheckpoint, MergeLook, SizedFile,
};
use posthaste_core::stored::RECORD_LEASE;
use posthaste_delivery_log::LogFile;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LeaseObject, list_objects, timeout_at};

use crate::deadlines::in_time;
use crate::error::LogFilesError;
use crate::summarize::DaySummarizer;
use crate::summarized::{HoursOfFiles, UnsummarizedHours};
use hour::HourMerge;
pub(crate) use hour::HourMergePorts;
pub use report::MergeReport;
use report::RunTimes;

/// The lease that keeps two runs apart. It is longer than a run.
const LEASE: LeaseObject = LeaseObject {
    key: RECORD_LEASE,
    length: Duration::from_secs(150),
};

/// Time before the deadline in which no merge begins: the longest takes less on a quarter of a
/// processor.
pub(crate) const BEGUN_BEFORE: Duration = Duration::from_secs(45);

/// Time before the deadline at which all work is given up, so that the lease is still given back.
const WORKED_BEFORE: Duration = Duration::from_secs(3);

/// Merges hours of the log.
pub(crate) struct LogMerger<P: Ports> {
    /// The state bucket, for the lease.
    pub(crate) state: P::Store,
    pub(crate) log: Arc<P::Log>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    pub(crate) hours: HourMergePorts<P>,
    pub(crate) summarizer: DaySummarizer<P>,
}

impl<P: Ports> LogMerger<P> {
    /// Merges what is to be merged, and ends before `deadline`, a time of [`Clock::monotonic`].
    pub(crate) async fn merge_log(&self, deadline: Duration) -> Result<MergeReport, LogFilesError> {
        self.merge_some(None, deadline).await
    }

    /// Merges one hour, if it has enough files, and ends before `deadline`.
    pub(crate) async fn merge_hour(
        &self,
        hour: LogHour,
        deadline: Duration,
    ) -> Result<MergeReport, LogFilesError> {
        self.merge_some(Some(hour), deadline).await
    }

    async fn merge_some(
        &self,
        only: Option<LogHour>,
        deadline: Duration,
    ) -> Result<MergeReport, LogFilesError> {
        let Self { state, clock, .. } = self;
        let begin = deadline.saturating_sub(BEGUN_BEFORE);
        let work = deadline.saturating_sub(WORKED_BEFORE);
        let find = async {
            LEASE
                .find::<MergeCheckpoint>(state)
                .await
                .map_err(LogFilesError::Lease)
        };
        let found = in_time(clock, work, find).await?;
        let look = match only {
            Some(_) => MergeLook::for_one_hour(clock.now()),
            None => MergeLook::begin(&found.checkpoint, clock.now()),
        };
        let listed = in_time(clock, work, self.listed_hours(look, only)).await?;
        let (hours, mut unsummarized) = listed;
        if hours.is_empty() && !look.is_whole {
            // Summaries need no lease: each is whole, and says what it was made of.
            let left = self
                .summarizer
                .summarize_hours(unsummarized, begin, work)
                .await;
            return Ok(MergeReport {
                hours_left: left.late + left.failed,
                ..MergeReport::default()
            });
        }
        let take = async {
            found
                .take(state, clock, &self.entropy)
                .await
                .map_err(LogFilesError::Lease)
        };
        let Some(lease) = in_time(clock, work, take).await? else {
            return Ok(MergeReport {
                was_busy: true,
                ..MergeReport::default()
            });
        };
        let times = RunTimes {
            begin,
            work,
            lapses_at: lease.lapses_at,
        };
        let merged = self.merge_hours(hours, look, times, &mut unsummarized);
        let mut report = Box::pin(merged).await;
        let left = self
            .summarizer
            .summarize_hours(unsummarized, begin, work)
            .await;
        let is_all_merged = report.hours_left + left.late == 0;
        let checkpoint = look.next_checkpoint(&lease.checkpoint, is_all_merged);
        report.hours_left += left.late + left.failed;
        // If this hangs the lease lapses by itself.
        let _ = timeout_at(clock, deadline, lease.give_back(state, checkpoint)).await;
        report.log_merge();
        Ok(report)
    }

    /// The hours in which something is to be merged or cleared away, and of a look at several hours
    /// those whose filters are not up to date.
    async fn listed_hours(
        &self,
        look: MergeLook,
        only: Option<LogHour>,
    ) -> Result<(BTreeSet<LogHour>, HoursOfFiles), LogFilesError> {
        let (prefix, after) = match only {
            Some(hour) => (hour.key_prefix(), None),
            None => (DATES.to_owned(), look.start_after_key()),
        };
        let mut hours = HoursToMerge::new(look);
        let mut unsummarized = UnsummarizedHours::new(&self.summarizer.summarized);
        let mut listed = pin!(list_objects(&*self.log, &prefix, after));
        while let Some(object) = listed.try_next().await.map_err(LogFilesError::Store)? {
            if let Some(file) = SizedFile::new(&object.key, object.size) {
                hours.push(file);
            }
            let file = LogFile::new(object.key, object.size);
            if let Some(file) = file.filter(|file| only.is_none() && look.is_closed(file.hour)) {
                unsummarized.push(file);
            }
        }
        Ok((hours.finish(), unsummarized.into_hours()))
    }

    /// Merges hours, the newest first, while there is time. An hour that fails holds up no other.
    /// Closed ones are `unsummarized` then, with the files that they have.
    async fn merge_hours(
        &self,
        hours: BTreeSet<LogHour>,
        look: MergeLook,
        times: RunTimes,
        unsummarized: &mut HoursOfFiles,
    ) -> MergeReport {
        let mut report = MergeReport::default();
        for hour in hours.into_iter().rev() {
            let mut merge =
                HourMerge::new(&self.hours, hour, look.is_closed(hour), times, &mut report);
            unsummarized.remove(&hour);
            match in_time(&self.clock, times.work, Box::pin(merge.run())).await {
                Ok(files) => unsummarized.extend(files.map(|files| (hour, files))),
                Err(error) => {
                    report.hours_left += 1;
                    let hour = hour.key_prefix();
                    let error = &error as &dyn Error;
                    tracing::warn!(
                        hour,
                        error,
                        "an hour of the delivery log is left to the next merge"
                    );
                }
            }
        }
        report
    }
}
