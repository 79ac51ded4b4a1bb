//! One process per data folder: a lock file that the operating system frees when the process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::{LOCK_FILE, OpenError};

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: Option<File>,
}

impl FolderLock {
    /// Takes the lock of an existing folder.
    pub(super) fn take(dir: &Path) -> Result<Self, OpenError> {
        let folder = |source| OpenError::Folder { path: dir.to_owned(), source };
        let options = OpenOptions::new().create(true).read(true).write(true).truncate(false).clone();
        let mut file = options.open(dir.join(LOCK_FILE)).map_err(folder)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Locked { path: dir.to_owned(), pid: written_pid(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(folder(source)),
        }
        // Only for the error message of the next one, so it is no error if the process id cannot be written.
        let _ = write_pid(&mut file);
        Ok(Self { _file: Some(file) })
    }

    /// No lock, for disks that are no folder.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { _file: None }
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn written_pid(file: &mut File) -> Option<u32> {
    /// More digits than any process id has.
    const PID_BYTES_MAX: u64 = 20;
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
