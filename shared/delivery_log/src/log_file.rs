//! Files of the log in their store.

use posthaste_core::delivery_log::{FileKey, LogHour};

/// A file of the log, as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The key.
    pub key: String,
    /// The size, in bytes.
    pub size: u64,
    /// The hour of its records.
    pub hour: LogHour,
}

impl LogFile {
    /// A file of a listing. `None` if its key is not one of the log: others may put files beside
    /// ours.
    pub fn new(key: String, size: u64) -> Option<Self> {
        let hour = FileKey::parse(&key)?.hour;
        Some(Self { key, size, hour })
    }
}
