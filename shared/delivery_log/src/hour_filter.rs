//! The filter of an hour, made of the ids of its records.

use std::collections::HashSet;

use posthaste_core::delivery_log::{LogHour, is_webhook_id_summarized};
use posthaste_ports::ObjectStore;

use crate::error::LogError;
use crate::log_file::LogFile;
use crate::reader::LogReader;
use crate::row_query::{EVENT_ID, WEBHOOK_ID};
use crate::summary::{DaySummary, IDS_MAX, files_digest, id_hash};

/// The filter of an hour, and the files that it was made of.
#[derive(Debug)]
pub struct HourFilter {
    hour: LogHour,
    files: u64,
    /// `None` where the ids are not known, or too many.
    ids: Option<Vec<u64>>,
}

impl HourFilter {
    /// The filter of an hour with these files, which are all that it has. Where one is damaged, or
    /// there are too many ids, the filter says "maybe" of every id.
    pub async fn read_from<S: ObjectStore>(
        reader: &LogReader<S>,
        hour: LogHour,
        files: &[LogFile],
    ) -> Result<Self, LogError> {
        let mut ids = HashSet::new();
        let mut is_known = true;
        for file in files {
            let read = reader.read_texts(file, &[EVENT_ID, WEBHOOK_ID], |column, text| {
                if column == EVENT_ID || is_webhook_id_summarized(text, hour) {
                    ids.insert(id_hash(text));
                }
            });
            match read.await {
                Err(error) if error.damaged_file().is_none() => return Err(error),
                read => is_known &= read.is_ok(),
            }
            if !is_known || ids.len() > IDS_MAX {
                ids.clear();
                is_known = false;
                break;
            }
        }
        Ok(Self {
            hour,
            files: files_digest(files),
            ids: is_known.then(|| ids.into_iter().collect()),
        })
    }

    /// Puts the filter into the summary of its day.
    pub fn put_into(&self, summary: &mut DaySummary) {
        summary.set_hour(self.hour, self.files, self.ids.as_deref());
    }
}

/// The digest of the files of an hour, by which its filter is known.
pub fn digest_of_hour(files: &[LogFile]) -> u64 {
    files_digest(files)
}
