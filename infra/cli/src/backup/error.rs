//! Errors of backups.

use std::io;
use std::path::{Path, PathBuf};

use posthaste_local::RebuildError;

use super::parts::MANIFEST_FILE;
use crate::error::CommandFailure;

/// Error of a file or folder.
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing} {}", path.display())]
pub struct FolderError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Error of a backup that cannot be taken or put back.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder that is to be filled holds something.
    #[error("the folder {} is not empty, expected an empty one or none", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FolderError),
    /// The data that comes is cut off, or is no backup.
    #[error("the backup did not come whole")]
    CutOff(#[source] io::Error),
    /// The other side could not read on.
    #[error("the backup could not be read to its end: {reason}")]
    Failed {
        /// The reason that the other side gives.
        reason: String,
    },
    /// The database cannot be written.
    #[error("failed to make the database of the backup")]
    Database(#[source] RebuildError),
    /// A file that no data folder has.
    #[error("the backup has a file {path:?}, which no data folder has")]
    Foreign {
        /// The path that was given.
        path: String,
    },
    /// The folder holds no backup, or one that was not taken to its end.
    #[error("{} holds no whole backup: it has no {}", path.display(), MANIFEST_FILE)]
    Unfinished {
        /// The folder.
        path: PathBuf,
    },
    /// The file that describes the backup cannot be read.
    #[error("{} does not describe a backup", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        source: serde_json::Error,
    },
    /// A newer version took the backup.
    #[error(
        "a newer version of posthaste took the backup (format {format}, this one knows {known})"
    )]
    Newer {
        /// The format of the backup.
        format: u32,
        /// The newest format that is known.
        known: u32,
    },
    /// A file is not the one that was backed up.
    #[error("the backup is damaged: {} is not the file that was backed up", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

impl FolderError {
    /// An error, from what was done with which path.
    pub(super) fn failed_to(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the file was not there.
    pub(super) fn is_absent(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

impl CommandFailure for FolderError {}

impl CommandFailure for BackupError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotEmpty { .. } => "name a folder that is not there yet; nothing was changed",
            Self::Unfinished { .. } => {
                "a backup that ended; this one was cut off, or is a copy of a data folder, with \
                 which a server starts as it is"
            }
            Self::Newer { .. } => "the version of posthaste that took it, or a newer one",
            Self::Damaged { .. } => "another backup; nothing was restored",
            Self::CutOff(_) | Self::Failed { .. } => {
                "again, into another folder; a backup without backup.json is never restored"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
