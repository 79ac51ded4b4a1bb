//! File calls with the meaning the store needs. Nothing here knows keys or objects.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use posthaste_ports::{ErrorKind, PortError};

use crate::private;

/// A file system's error by what a caller can do about it.
pub(super) fn port_error(doing: &'static str, error: io::Error) -> PortError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
        io::ErrorKind::TimedOut => ErrorKind::TimedOut,
        // A segment that is too long, or a key that is also the folder of another.
        io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::AlreadyExists => ErrorKind::Invalid,
        _ => ErrorKind::Other,
    };
    PortError::with_cause(doing, kind, error)
}

/// Turns the error "there is none" into success.
pub(super) fn ignore_absent(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if means_absent(&error) => Ok(()),
        other => other,
    }
}

/// The whole file; `None` if there is none, or a folder instead.
pub(super) fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if means_absent(&error) || error.kind() == io::ErrorKind::IsADirectory => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A part of a file.
pub(super) enum FilePart {
    /// All bytes that were asked for.
    Whole(Vec<u8>),
    /// No part, because the file ends before it.
    Short {
        /// The length, in bytes.
        length: u64,
    },
}

/// A part of a file, without the rest of it; `None` if there is no file, or a folder instead.
pub(super) fn read_range(path: &Path, range: &Range<u64>) -> io::Result<Option<FilePart>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if means_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if found.is_dir() {
        return Ok(None);
    }
    if found.len() < range.end {
        return Ok(Some(FilePart::Short {
            length: found.len(),
        }));
    }
    let length = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(Some(FilePart::Whole(bytes)))
}

/// True if there is a file, or anything else that is no folder.
pub(super) fn is_file(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(!found.is_dir()),
        Err(error) if means_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Whether an error means that there is no such file: a parent that is a file, or a name that no
/// file can have, means so too.
pub(super) fn means_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

/// A file that is removed when this is dropped, unless it was moved into place.
pub(super) struct TemporaryFile {
    path: PathBuf,
    is_moved: bool,
}

impl TemporaryFile {
    /// Writes a new file and makes its content durable.
    pub(super) fn write(path: PathBuf, bytes: &[u8]) -> io::Result<Self> {
        let mut file = private::open(OpenOptions::new().write(true).create_new(true), &path)?;
        let temporary = Self {
            path,
            is_moved: false,
        };
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(temporary)
    }

    /// Moves the file to `target` and replaces a file there; durable once the folder is synced.
    pub(super) fn move_to(&mut self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)?;
        self.is_moved = true;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_moved {
            // A file that cannot be removed now is removed at the next start.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
