//! The merge: a run looks for hours with files to merge, and merges them under a lease, the newest
//! first. A run in which nothing is to be done takes no lease.

mod files;
mod hour;
mod report;

use std::collections::BTreeSet;
use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use posthaste_core::delivery_log::{
    DATES, HoursToMerge, LogHour, MergeCheckpoint, MergeLook, SizedFile,
};
use posthaste_core::stored::RECORD_LEASE;
use posthaste_delivery_log::LogFile;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LeaseObject, list_objects, timeout_at};

use crate::error::LogFilesError;
use crate::record::{LogRecorder, RecordPorts};
use crate::summarized::{HoursOfFiles, UnsummarizedHours};
use hour::HourMerge;
pub use report::MergeReport;
use report::RunTimes;

/// The lease that keeps two runs apart. It is longer than a run.
const LEASE: LeaseObject = LeaseObject {
    key: RECORD_LEASE,
    length: Duration::from_secs(150),
};

/// Longest time of a run without a deadline of its own.
const RUN_MAX: Duration = Duration::from_secs(110);

/// Time before the deadline in which no merge begins: the longest takes less on a quarter of a
/// processor.
pub(crate) const BEGUN_BEFORE: Duration = Duration::from_secs(45);

/// Time before the deadline at which all work is given up, so that the lease is still given back.
const WORKED_BEFORE: Duration = Duration::from_secs(3);

impl<P: Ports> LogRecorder<P> {
    /// Merges what is to be merged, for less than two minutes.
    pub async fn merge(&self) -> Result<MergeReport, LogFilesError> {
        self.merge_until(self.ports.clock.monotonic() + RUN_MAX)
            .await
    }

    /// Merges what is to be merged, and ends before `deadline`, a time of [`Clock::monotonic`].
    pub async fn merge_until(&self, deadline: Duration) -> Result<MergeReport, LogFilesError> {
        self.look_at_waiting(deadline.saturating_sub(BEGUN_BEFORE))
            .await;
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
        let RecordPorts {
            state,
            clock,
            entropy,
            ..
        } = &self.ports;
        let [begin, work] =
            [BEGUN_BEFORE, WORKED_BEFORE].map(|before| deadline.saturating_sub(before));
        let find = async {
            LEASE
                .find::<MergeCheckpoint>(state)
                .await
                .map_err(LogFilesError::Lease)
        };
        let found = self.in_time(work, find).await?;
        let look = match only {
            Some(_) => MergeLook::for_one_hour(clock.now()),
            None => MergeLook::begin(&found.checkpoint, clock.now()),
        };
        let listed = self.in_time(work, self.listed_hours(look, only)).await?;
        let (hours, mut unsummarized) = listed;
        if hours.is_empty() && !look.is_whole {
            // Summaries need no lease: each is whole, and says what it was made of.
            let left = self.summarize_hours(unsummarized, [begin, work]).await;
            return Ok(MergeReport {
                hours_left: left.late + left.failed,
                ..MergeReport::default()
            });
        }
        let take = async {
            found
                .take(state, clock, entropy)
                .await
                .map_err(LogFilesError::Lease)
        };
        let Some(lease) = self.in_time(work, take).await? else {
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
        let left = self.summarize_hours(unsummarized, [begin, work]).await;
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
        let mut unsummarized = UnsummarizedHours::new(&self.summarized);
        let mut listed = pin!(list_objects(&self.ports.log, &prefix, after));
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
            let mut merge = HourMerge::new(self, hour, look.is_closed(hour), times, &mut report);
            unsummarized.remove(&hour);
            match self.in_time(times.work, Box::pin(merge.run())).await {
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
