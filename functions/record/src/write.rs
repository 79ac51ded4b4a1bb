//! Writing of fresh files.

use std::error::Error;
use std::time::Duration;

use posthaste_core::delivery_log::{FileKey, FileName, LogHour, LogRecord};
use posthaste_delivery_log::{RowGroups, write_file};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports, PutCondition};

use crate::error::LogFilesError;
use crate::receive::HourRecords;
use crate::record::LogRecorder;
use crate::refused::UnwrittenHour;
use crate::work::run_blocking;

/// Minutes of an hour.
const MINUTES: u64 = 60;

impl<P: Ports> LogRecorder<P> {
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
        match self
            .in_time(deadline, self.write_log_file(&key, records))
            .await
        {
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
        if let Some(records) = self.unwritten.add(records, self.ports.clock.monotonic()) {
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
        let minute = u8::try_from(self.ports.clock.now().minute_rounded_down() % MINUTES)
            .unwrap_or_default();
        let name = FileName::Fresh {
            minute,
            id: self.ports.entropy.uuid().to_string(),
        };
        FileKey { hour, name }.render()
    }

    /// Writes a file, and answers its bytes.
    async fn write_log_file(
        &self,
        key: &str,
        records: Vec<LogRecord>,
    ) -> Result<usize, LogFilesError> {
        let file = move || write_file(&records, RowGroups::default()).map_err(LogFilesError::Log);
        let file = run_blocking(file).await?;
        let bytes = file.len();
        self.ports
            .log
            .put(key, file, PutCondition::Always)
            .await
            .map_err(LogFilesError::Store)?;
        Ok(bytes)
    }
}
