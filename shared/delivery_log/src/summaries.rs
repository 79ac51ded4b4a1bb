//! The summaries of the log in their store, by which a search leaves hours out.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::TryStreamExt;
use posthaste_core::delivery_log::{LogDay, LogHour, SUMMARY_IN_LOG, is_webhook_id_summarized};
use posthaste_ports::{ErrorKind, ObjectStore, PortError, PutCondition};
use posthaste_services::list_objects;

use crate::log_file::LogFile;
use crate::row_query::WantedId;
use crate::summary::{
    DaySummary, ROW_BYTES, SummaryRow, files_digest, id_hash, row_for_hash, rows_for_bytes,
};

/// The store of summaries. Programs that read the log as a folder must not find them in it.
#[derive(Debug, Clone)]
pub struct SummaryStore<S> {
    store: S,
    prefix: &'static str,
}

/// The number of rows of each summary that there is.
pub(crate) type SummarySizes = BTreeMap<LogDay, usize>;

impl<S: ObjectStore> SummaryStore<S> {
    /// A store of their own: Polars reads every file of a folder, whatever its name.
    pub fn in_own_store(store: S) -> Self {
        Self { store, prefix: "" }
    }

    /// The bucket of the log itself, under a prefix that readers skip.
    pub fn in_log(store: S) -> Self {
        let prefix = SUMMARY_IN_LOG;
        Self { store, prefix }
    }

    /// The days that have a summary, with its bytes.
    pub async fn list_days(&self) -> Result<Vec<(LogDay, u64)>, PortError> {
        let listed: Vec<_> = list_objects(&self.store, self.prefix, None)
            .try_collect()
            .await?;
        Ok(listed
            .into_iter()
            .filter_map(|object| {
                let day = LogDay::parse(object.key.strip_prefix(self.prefix)?)?;
                Some((day, object.size))
            })
            .collect())
    }

    /// Whether the filters of a day's hours were made of these files, hour by hour. A summary that
    /// is missing or damaged was made of none.
    pub async fn are_made_of(
        &self,
        day: LogDay,
        hours: &[(LogHour, u64)],
    ) -> Result<bool, PortError> {
        let row = self.read_row(day, 0).await?;
        Ok(row.is_some_and(|row| {
            hours
                .iter()
                .all(|(hour, files)| row.hour_digest(*hour) == *files)
        }))
    }

    /// The summary of a day, to be changed. One that is missing or damaged begins empty.
    pub async fn read(&self, day: LogDay) -> Result<DaySummary, PortError> {
        let found = match self.store.get(&self.key(day)).await {
            Err(error) if error.kind == ErrorKind::Damaged => None,
            found => found?,
        };
        let parsed = found.and_then(|found| DaySummary::parse(day, &found.bytes));
        Ok(parsed.unwrap_or_else(|| DaySummary::new(day)))
    }

    /// Writes the summary of a day.
    pub async fn write(&self, day: LogDay, rendered: Bytes) -> Result<(), PortError> {
        let key = self.key(day);
        let put = self.store.put(&key, rendered, PutCondition::Always);
        put.await.map(drop)
    }

    /// Deletes the summary of a day.
    pub async fn delete(&self, day: LogDay) -> Result<(), PortError> {
        self.store.delete(&self.key(day)).await
    }

    fn key(&self, day: LogDay) -> String {
        format!("{}{}", self.prefix, day.summary_key())
    }

    /// A row of a day's summary, wherever it says that it belongs. `None` if there is none, or it
    /// is damaged.
    async fn read_row(&self, day: LogDay, row: usize) -> Result<Option<SummaryRow>, PortError> {
        let start = u64::try_from(row * ROW_BYTES).unwrap_or(u64::MAX);
        let range = start..start + ROW_BYTES as u64;
        match self.store.get_range(&self.key(day), range).await {
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Damaged) => {
                Ok(None)
            }
            bytes => Ok(SummaryRow::parse(bytes?, day)),
        }
    }

    /// The sizes of all summaries: none where they cannot be listed.
    pub(crate) async fn read_sizes(&self) -> SummarySizes {
        let days = self.list_days().await.unwrap_or_default();
        days.into_iter()
            .filter_map(|(day, bytes)| Some((day, rows_for_bytes(bytes)?)))
            .collect()
    }

    /// The files of a day, without those of hours that cannot have the id. An hour whose filter was
    /// not made of just these files stays.
    pub(crate) async fn may_have(
        &self,
        sizes: &SummarySizes,
        files: &[LogFile],
        id: &WantedId<'_>,
    ) -> Vec<LogFile> {
        let day = files.first().map(|file| LogDay::containing(file.hour));
        let Some((day, rows)) = day.and_then(|day| Some((day, *sizes.get(&day)?))) else {
            return files.to_vec();
        };
        let hash = id_hash(id.text);
        let place = row_for_hash(hash, rows);
        // A summary only saves reads: without it, all files of its day are read. If the store does
        // not answer, those reads fail too.
        let row = self.read_row(day, place).await.ok().flatten();
        let Some(row) = row.filter(|row| row.is_at(place, rows)) else {
            return files.to_vec();
        };
        files
            .chunk_by(|one, other| one.hour == other.hour)
            .filter(|files| {
                let hour = files[0].hour;
                row.may_have(hour, hash)
                    || row.hour_digest(hour) != files_digest(*files)
                    || !id.is_summarized(hour)
            })
            .flatten()
            .cloned()
            .collect()
    }
}

impl WantedId<'_> {
    /// Whether the filters of an hour have such an id at all.
    fn is_summarized(&self, hour: LogHour) -> bool {
        !self.is_of_request || is_webhook_id_summarized(self.text, hour)
    }
}
