//! Everything that the log has about an id.

use posthaste_core::delivery_log::{LookUp, Record, newest_first, without_duplicates};
use posthaste_core::model::LOG_LOOK_UP_RECORDS_MAX;
use posthaste_ports::ObjectStore;

use crate::ask::Ask;
use crate::error::LogError;
use crate::group::{Found, Group};
use crate::log_file::LogFile;
use crate::reader::LogReader;

/// Row groups that are searched side by side, before it is seen whether there are too many rows. An id is in
/// few of them, unless a producer gives many events the same one.
const GROUPS_AT_ONCE: usize = 16;

/// The records of an id.
#[derive(Debug)]
pub struct LookedUp {
    /// The records, the newest first, each once.
    pub records: Vec<Record>,
    /// Whether there may be more, in older hours.
    pub is_cut: bool,
    /// Files that are damaged, each once. They may have had more.
    pub damaged: Vec<LogError>,
}

impl<S: ObjectStore> LogReader<S> {
    /// The records of an event's or a request's id, at most [`LOG_LOOK_UP_RECORDS_MAX`] from the newest hour
    /// back. `files` are those of a listing; those of hours that cannot have such a record are not opened.
    pub async fn look_up(&self, files: &[LogFile], look_up: &LookUp) -> Result<LookedUp, LogError> {
        let mut files: Vec<_> = files.iter().filter(|file| look_up.may_be_in(file.hour)).cloned().collect();
        files.sort_by(|one, other| other.hour.cmp(&one.hour).then_with(|| one.key.cmp(&other.key)));
        let (ask, mut damaged) = (Ask::from(look_up), Vec::new());
        let groups = self.groups(files, &ask, &mut damaged).await?;
        let (found, is_cut) = self.find_some(groups, &ask, &mut damaged).await?;
        let mut records = self.records(found, &ask, &mut damaged).await?;
        records.sort_by(newest_first);
        Ok(LookedUp { records: without_duplicates(records), is_cut, damaged })
    }

    /// Rows that are asked for, from the first groups on, and whether there may be more.
    async fn find_some(
        &self,
        mut groups: Vec<Group>,
        ask: &Ask<'_>,
        damaged: &mut Vec<LogError>,
    ) -> Result<(Vec<Found>, bool), LogError> {
        let (mut found, mut rows) = (Vec::new(), 0);
        while !groups.is_empty() && rows < LOG_LOOK_UP_RECORDS_MAX {
            let rest = groups.split_off(GROUPS_AT_ONCE.min(groups.len()));
            let more = self.find(std::mem::replace(&mut groups, rest), ask, damaged).await?;
            rows += more.iter().map(|found| found.rows.len()).sum::<usize>();
            found.extend(more);
        }
        keep_first(&mut found, LOG_LOOK_UP_RECORDS_MAX);
        Ok((found, !groups.is_empty() || rows > LOG_LOOK_UP_RECORDS_MAX))
    }
}

fn keep_first(found: &mut [Found], mut rows_left: usize) {
    for found in found {
        found.rows.truncate(rows_left);
        rows_left -= found.rows.len();
    }
}
