//! Files that this process wrote, by hour, so that it knows which hours are busy.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use posthaste_core::delivery_log::LogHour;

/// Files of an hour that a process writes between two looks at it. 60 unmerged files begin a merge,
/// and two processes write on AWS: with what each writes until it looks, an hour has far fewer
/// than 120.
const FILES_BETWEEN_LOOKS: u32 = 10;

/// Files that this process wrote since it last looked at their hours.
#[derive(Debug, Default)]
pub(crate) struct WrittenFiles(Mutex<BTreeMap<LogHour, u32>>);

impl WrittenFiles {
    /// Counts a file.
    pub(crate) fn count_file(&self, hour: LogHour) {
        *self.0.lock().entry(hour).or_default() += 1;
    }

    /// The hours to look at.
    pub(crate) fn busy_hours(&self) -> Vec<LogHour> {
        let written = self.0.lock();
        written
            .iter()
            .filter(|(_, files)| **files >= FILES_BETWEEN_LOOKS)
            .map(|(hour, _)| *hour)
            .collect()
    }

    /// Begins to count anew.
    pub(crate) fn reset_hour(&self, hour: LogHour) {
        self.0.lock().remove(&hour);
    }
}
