//! The files by which a system resolves names, and whether they have changed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Most bytes of a file that are read. Lists of blocked hosts have a few MiB.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The paths of the files.
pub(super) struct SystemFiles {
    pub(super) resolv_conf: Box<Path>,
    pub(super) hosts: Box<Path>,
}

impl Default for SystemFiles {
    fn default() -> Self {
        Self {
            resolv_conf: Path::new("/etc/resolv.conf").into(),
            hosts: Path::new("/etc/hosts").into(),
        }
    }
}

/// A file as it was read.
pub(super) struct SystemFile {
    stamp: Option<FileStamp>,
    pub(super) text: io::Result<Vec<u8>>,
}

impl Default for SystemFile {
    /// The state of a file that does not exist.
    fn default() -> Self {
        Self {
            stamp: None,
            text: Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl SystemFile {
    pub(super) fn read(path: &Path) -> Self {
        // The stamp first: a file that changes in between is read again at the next look.
        let stamp = FileStamp::from_path(path);
        let mut text = Vec::new();
        let read =
            File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text));
        Self {
            stamp,
            text: read.map(|_| text),
        }
    }

    /// Whether the file is the one that was read, and unchanged.
    pub(super) fn is_same(&self, path: &Path) -> bool {
        FileStamp::from_path(path) == self.stamp
    }
}

/// The identity of the file at a path, and its last change. The time of the change is the kernel's
/// own, which no program sets.
#[derive(Debug, PartialEq, Eq)]
struct FileStamp {
    file: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of the file at a path, behind links; `None` without one.
    fn from_path(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        Some(Self {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}
