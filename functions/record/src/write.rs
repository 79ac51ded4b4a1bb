//! Writing of fresh files.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::delivery_log::{FileKey, FileName, LogHour, LogRecord};
use posthaste_delivery_log::{RowGroups, write_file};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports, PutCondition};
use posthaste_services::LogTally;

use crate::deadlines::in_time;
use crate::error::LogFilesError;
use crate::receive::HourRecords;
use crate::refused::UnwrittenHour;
use crate::work::run_blocking;
use crate::written::WrittenFiles;

/// Minutes of an hour.
const MINUTES: u64 = 60;

/// Writes the records of hours.
pub(crate) struct HourWriter<P: Ports> {
    pub(crate) log: Arc<P::Log>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    /// Counts the files that this process wrote.
    pub(crate) written: Arc<WrittenFiles>,
    /// Tries to write a record that failed.
    pub(crate) unwritten: LogTally,
}

impl<P: Ports> HourWriter<P> {
    /// Writes the records of an hour into one file. An `Err` has the messages with records that are
    /// not durable.
    pub(crate) async fn write_hour(
        &self,
        hour: LogHour,
        gathered: HourRecords,
        deadline: Duration,
    ) -> Result<(), UnwrittenHour> {
        let HourRecords { records, messages } = gathered;
        let count = records.len();
        let key = self.fresh_key(hour);
        let write = self.write_log_file(&key, records);
        match in_time(&self.clock, deadline, write).await {
            Ok(bytes) => {
                self.written.count_file(hour);
                metrics::counter!("LogRecordsWrittenCount").increment(count as u64);
                metrics::counter!("LogFilesWrittenCount").increment(1);
                metrics::counter!("LogWrittenBytes").increment(bytes as u64);
                tracing::debug!(key, records = count, bytes, "records written");
                Ok(())
            }
            Err(error) => {
                self.report_unwritten(&key, count as u64, &error);
                let may_be_written =
                    matches!(error, LogFilesError::Store(_) | LogFilesError::OutOfTime);
                Err(UnwrittenHour {
                    messages,
                    may_be_written,
                })
            }
        }
    }

    /// Logs records that are not written: while none can be, one line a minute.
    fn report_unwritten(&self, key: &str, records: u64, error: &LogFilesError) {
        if let Some(records) = self.unwritten.add(records, self.clock.monotonic()) {
            let error = error as &dyn Error;
            tracing::error!(
                key,
                records,
                error,
                "records not written, their messages come back"
            );
        }
    }

    fn fresh_key(&self, hour: LogHour) -> String {
        let minute =
            u8::try_from(self.clock.now().minute_rounded_down() % MINUTES).unwrap_or_default();
        let name = FileName::Fresh {
            minute,
            id: self.entropy.uuid().to_string(),
        };
        FileKey { hour, name }.render()
    }

    /// Writes a file, and returns the number of its bytes.
    async fn write_log_file(
        &self,
        key: &str,
        records: Vec<LogRecord>,
    ) -> Result<usize, LogFilesError> {
        let file = run_blocking(move || {
            write_file(&records, RowGroups::default()).map_err(LogFilesError::Log)
        })
        .await?;
        let bytes = file.len();
        self.log
            .put(key, file, PutCondition::Always)
            .await
            .map_err(LogFilesError::Store)?;
        Ok(bytes)
    }
}
