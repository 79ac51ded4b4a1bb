//! Busy hours. Where the schedule of the merge comes too seldom for the files that are written, the
//! writers merge themselves.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::delivery_log::LogHour;
use posthaste_ports::{Clock, Ports};

use crate::error::LogFilesError;
use crate::merge::{BEGUN_BEFORE, LogMerger};
use crate::written::WrittenFiles;

/// Time between two tries while another run merges.
const TRY_PERIOD: Duration = Duration::from_secs(1);

/// Merges busy hours.
pub(crate) struct BusyHours<P: Ports> {
    pub(crate) merger: Arc<LogMerger<P>>,
    pub(crate) written: Arc<WrittenFiles>,
    pub(crate) clock: P::Clock,
    /// Whether batches merge busy hours, because the schedule of the merge comes seldom.
    pub(crate) is_on: bool,
}

impl<P: Ports> BusyHours<P> {
    /// Merges the hours of which this process has written many files, if they have too many. While
    /// another run merges, it waits and writes nothing, so that no hour gets more than its
    /// files. What there is no time for is left to the next batch.
    pub(crate) async fn merge_busy_hours(&self, deadline: Duration) {
        if !self.is_on {
            return;
        }
        for hour in self.written.busy_hours() {
            match self.merge_when_free(hour, deadline).await {
                Ok(true) => self.written.reset_hour(hour),
                Ok(false) => {}
                Err(error) => {
                    let hour = hour.key_prefix();
                    let error = &error as &dyn Error;
                    tracing::warn!(
                        hour,
                        error,
                        "a busy hour of the delivery log is left to the next batch"
                    );
                }
            }
        }
    }

    /// Returns whether the hour has no more files than it may have.
    async fn merge_when_free(
        &self,
        hour: LogHour,
        deadline: Duration,
    ) -> Result<bool, LogFilesError> {
        let clock = &self.clock;
        while clock.monotonic() + BEGUN_BEFORE < deadline {
            let report = self.merger.merge_hour(hour, deadline).await?;
            if !report.was_busy {
                return Ok(report.hours_left == 0);
            }
            clock.sleep(TRY_PERIOD).await;
        }
        Ok(false)
    }
}
