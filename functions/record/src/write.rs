//! Writing of fresh files.

use std::error::Error;
use std::time::Duration;

use posthaste_core::delivery_log::{FileKey, FileName, LogHour, LogRecord};
use posthaste_delivery_log::{RowGroups, write_file};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports, PutCondition};

use crate::error::RecordError;
use crate::receive::Gathered;
use crate::record::Record;
use crate::refused::Unwritten;
use crate::work::blocking;

/// Minutes of an hour.
const MINUTES: u64 = 60;

impl<P: Ports> Record<P> {
    /// Writes the records of an hour into one file. An `Err` has the messages with records that are
    /// not durable.
    pub(crate) async fn write_hour(
        &self,
        hour: LogHour,
        gathered: Gathered,
        deadline: Duration,
    ) -> Result<(), Unwritten> {
        let Gathered { records, messages } = gathered;
        let count = records.len();
        let key = self.fresh_key(hour);
        match self.in_time(deadline, self.write(&key, records)).await {
            Ok(bytes) => {
                self.written.add(hour);
                metrics::counter!("LogRecordsWrittenCount").increment(count as u64);
                metrics::counter!("LogFilesWrittenCount").increment(1);
                metrics::counter!("LogWrittenBytes").increment(bytes as u64);
                tracing::debug!(key, records = count, bytes, "records written");
                Ok(())
            }
            Err(error) => {
                self.report_unwritten(&key, count as u64, &error);
                let may_be_written =
                    matches!(error, RecordError::Store(_) | RecordError::OutOfTime);
                Err(Unwritten {
                    messages,
                    may_be_written,
                })
            }
        }
    }

    /// Logs records that are not written: while none can be, one line a minute.
    fn report_unwritten(&self, key: &str, records: u64, error: &RecordError) {
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
    async fn write(&self, key: &str, records: Vec<LogRecord>) -> Result<usize, RecordError> {
        let file = move || write_file(&records, RowGroups::default()).map_err(RecordError::Log);
        let file = blocking(file).await?;
        let bytes = file.len();
        self.ports
            .log
            .put(key, file, PutCondition::Always)
            .await
            .map_err(RecordError::Store)?;
        Ok(bytes)
    }
}
