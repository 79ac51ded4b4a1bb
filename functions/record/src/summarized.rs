//! Hours whose filters are known to be up to date, and those of a listing that are not.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use posthaste_core::delivery_log::LogHour;
use posthaste_delivery_log::{LogFile, digest_of_hour};

/// Hours whose filters are known to be made of their files. Every process finds it out once.
#[derive(Debug, Default)]
pub(crate) struct SummarizedHours(Mutex<BTreeMap<LogHour, u64>>);

/// Closed hours of a listing whose filters are not known to be made of their files.
pub(crate) struct UnsummarizedHours<'a> {
    known: &'a SummarizedHours,
    /// The files of the hour that the listing has come to.
    files: Vec<LogFile>,
    found: HoursOfFiles,
}

/// Hours with all their files.
pub(crate) type HoursOfFiles = BTreeMap<LogHour, Vec<LogFile>>;

impl SummarizedHours {
    fn is_up_to_date(&self, hour: LogHour, files: &[LogFile]) -> bool {
        self.0.lock().get(&hour) == Some(&digest_of_hour(files))
    }

    pub(crate) fn note_hour(&self, hour: LogHour, files: &[LogFile]) {
        self.0.lock().insert(hour, digest_of_hour(files));
    }
}

impl<'a> UnsummarizedHours<'a> {
    /// Nothing was listed yet.
    pub(crate) fn new(known: &'a SummarizedHours) -> Self {
        Self {
            known,
            files: Vec::new(),
            found: HoursOfFiles::new(),
        }
    }

    /// Takes the next file of a closed hour. The listing is in the order of the keys.
    pub(crate) fn push(&mut self, file: LogFile) {
        if self.files.last().is_some_and(|last| last.hour != file.hour) {
            self.end_hour();
        }
        self.files.push(file);
    }

    /// The hours, once everything was listed.
    pub(crate) fn into_hours(mut self) -> HoursOfFiles {
        self.end_hour();
        self.found
    }

    fn end_hour(&mut self) {
        let files = std::mem::take(&mut self.files);
        if let Some(hour) = files.first().map(|file| file.hour)
            && !self.known.is_up_to_date(hour, &files)
        {
            self.found.insert(hour, files);
        }
    }
}
