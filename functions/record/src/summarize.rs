//! The summaries of days. An hour has its filter once it is closed, and a new one when its files
//! changed: readers search an hour whose filter was made of other files, so that none is ever too
//! late.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::delivery_log::LogDay;
use posthaste_delivery_log::{HourFilter, LogReader, SummaryStore, digest_of_hour};
use posthaste_ports::{Clock, Ports};

use crate::deadlines::in_time;
use crate::error::LogFilesError;
use crate::stop::StopFlag;
use crate::summarized::{HoursOfFiles, SummarizedHours};
use crate::work::run_blocking;

/// Bytes of footers that are kept while a day is summarized: each is read once.
const FOOTERS_BYTES_MAX: usize = 1 << 20;

/// Hours whose filters are not up to date after a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HoursLeft {
    /// For want of time: the next look has to see them again, however old they are.
    pub(crate) late: usize,
    /// Because of an error: the usual looks try again, and each other look begins with the oldest
    /// hour anyway.
    pub(crate) failed: usize,
}

/// Makes summaries.
pub(crate) struct DaySummarizer<P: Ports> {
    pub(crate) summaries: Arc<SummaryStore<P::Log>>,
    pub(crate) log: Arc<P::Log>,
    pub(crate) clock: P::Clock,
    pub(crate) summarized: SummarizedHours,
    pub(crate) stopped: StopFlag,
}

impl<P: Ports> DaySummarizer<P> {
    /// Brings the summaries of these hours up to date, the newest day first. No hour is begun from
    /// `begin` on, and all work ends by `end`, by the clock's `monotonic`. Returns what is
    /// left to the next run.
    pub(crate) async fn summarize_hours(
        &self,
        hours: HoursOfFiles,
        begin: Duration,
        end: Duration,
    ) -> HoursLeft {
        let mut days = BTreeMap::<LogDay, HoursOfFiles>::new();
        for (hour, files) in hours {
            days.entry(LogDay::containing(hour))
                .or_default()
                .insert(hour, files);
        }
        let mut left = HoursLeft::default();
        for (day, hours) in days.into_iter().rev() {
            let all = hours.len();
            let summarized = Box::pin(self.summarize_day(day, hours, begin));
            match in_time(&self.clock, end, summarized).await {
                Ok(HoursLeft { late, failed }) => {
                    left.late += late;
                    left.failed += failed;
                }
                Err(error) => {
                    // What is cut off was not begun, or not finished: the next look sees it again.
                    if matches!(error, LogFilesError::OutOfTime) {
                        left.late += all;
                    } else {
                        left.failed += all;
                    }
                    log_left_summary(day, &error);
                }
            }
        }
        left
    }

    async fn summarize_day(
        &self,
        day: LogDay,
        hours: HoursOfFiles,
        begin: Duration,
    ) -> Result<HoursLeft, LogFilesError> {
        let summaries = &self.summaries;
        let digests: Vec<_> = hours
            .iter()
            .map(|(hour, files)| (*hour, digest_of_hour(files)))
            .collect();
        let made = summaries.are_made_of(day, &digests).await;
        if made.map_err(LogFilesError::Store)? {
            self.remember_summarized(&hours);
            return Ok(HoursLeft::default());
        }
        let mut summary = summaries.read(day).await.map_err(LogFilesError::Store)?;
        let reader = LogReader::new(&*self.log, FOOTERS_BYTES_MAX);
        let mut done = HoursOfFiles::new();
        let mut left = HoursLeft {
            late: hours.len(),
            failed: 0,
        };
        for (hour, files) in hours.into_iter().rev() {
            if self.stopped.is_stopped() || self.clock.monotonic() >= begin {
                break;
            }
            if summary.hour_digest(hour) != digest_of_hour(&files) {
                match HourFilter::read_from(&reader, hour, &files).await {
                    // Another run merged it in between: the next one sees what it has then.
                    Err(error) if error.is_gone() => continue,
                    // The others of the day are found by their filters all the same.
                    Err(error) => {
                        log_left_summary(day, &LogFilesError::Log(error));
                        left.late -= 1;
                        left.failed += 1;
                        continue;
                    }
                    Ok(filter) => filter.put_into(&mut summary),
                }
            }
            left.late -= 1;
            done.insert(hour, files);
        }
        if done.is_empty() {
            return Ok(left);
        }
        let bytes = run_blocking(move || Ok(summary.render())).await?;
        let written = summaries.write(day, bytes).await;
        written.map_err(LogFilesError::Store)?;
        self.remember_summarized(&done);
        Ok(left)
    }

    fn remember_summarized(&self, hours: &HoursOfFiles) {
        for (hour, files) in hours {
            self.summarized.note_hour(*hour, files);
        }
    }
}

fn log_left_summary(day: LogDay, error: &LogFilesError) {
    let error = error as &dyn Error;
    tracing::warn!(
        date = day.summary_key(),
        error,
        "a summary of the delivery log is left to the next merge"
    );
}
