//! The note in a data folder that was made of a backup: from when it is.

use std::fs;
use std::path::Path;

use posthaste_core::model::Timestamp;
use serde::{Deserialize, Serialize};

/// The name of the file.
pub(super) const RESTORED_FILE: &str = "restored.json";

/// A data folder that was made of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreNote {
    /// The moment of the backup, in RFC 3339.
    pub taken_at: String,
    /// The version of the program whose data folder it was.
    pub version: String,
    /// The time at which the folder was made of it, in RFC 3339.
    pub restored_at: String,
}

impl RestoreNote {
    /// The moment of the backup of which a data folder was made. `None` if there is no note, or
    /// none that can be read.
    pub fn moment_of(data_dir: &Path) -> Option<Timestamp> {
        let bytes = fs::read(data_dir.join(RESTORED_FILE)).ok()?;
        let note: Self = serde_json::from_slice(&bytes).ok()?;
        Timestamp::parse(&note.taken_at).ok()
    }
}
