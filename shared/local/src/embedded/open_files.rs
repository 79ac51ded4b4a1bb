//! The files that a data folder keeps open, with their paths, which may come to name other files.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use crate::identity::{DisplacedPath, FileIdentity};

/// The files that a data folder keeps open.
#[derive(Debug)]
pub struct OpenStoreFiles {
    /// The database.
    pub engine: PlacedFile,
    /// The lock file. The database's own lock keeps a second process out too.
    pub lock: Option<PlacedFile>,
}

/// An open file, and the path at which it was opened.
#[derive(Debug)]
pub struct PlacedFile {
    path: PathBuf,
    identity: FileIdentity,
    descriptor: RawFd,
}

impl PlacedFile {
    pub(super) fn from_open_file(file: &File, path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: std::path::absolute(path)?,
            identity: FileIdentity::from_file(file)?,
            descriptor: file.as_raw_fd(),
        })
    }

    pub(super) fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// The path, from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an error if the path no longer names the open file. Blocks.
    pub fn check_path(&self) -> Result<(), DisplacedPath> {
        self.identity.expect_at(&self.path)
    }

    /// The name by which another process can read the open file while this one runs, also when it
    /// was deleted.
    pub fn open_name(&self) -> PathBuf {
        let process = std::process::id();
        PathBuf::from(format!("/proc/{process}/fd/{}", self.descriptor))
    }
}
