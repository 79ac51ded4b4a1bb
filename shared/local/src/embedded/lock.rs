//! One process per data folder: locks that the operating system frees when the process ends,
//! however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::disk::ENGINE_FILE;
use super::failure::OpenError;
use super::open_files::{OpenStoreFiles, PlacedFile};
use crate::private;

/// The lock file.
pub(super) const LOCK_FILE: &str = "lock";

/// The locks, held until this is dropped.
#[derive(Debug)]
pub(super) struct FolderLock {
    lock: Option<File>,
    /// The lock of the engine's file: a person may delete the lock file while tidying up.
    engine: Option<File>,
}

impl FolderLock {
    /// Takes the lock of an existing folder.
    pub(super) fn take_folder(dir: &Path) -> Result<Self, OpenError> {
        let options = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .clone();
        let mut file = private::open(&options, &dir.join(LOCK_FILE))
            .map_err(|error| OpenError::for_folder(dir, error))?;
        if try_lock(dir, &file)? {
            return Ok(Self {
                lock: Some(file),
                engine: None,
            });
        }
        Err(OpenError::Locked {
            path: dir.to_owned(),
            pid: read_pid(&mut file),
        })
    }

    /// Takes the lock of the engine's file, which exists, and writes down which process has both.
    /// Returns where both files are.
    pub(super) fn take_engine(&mut self, dir: &Path) -> Result<OpenStoreFiles, OpenError> {
        // Opened for writing too: NFS turns this into a lock on its server, which requires that.
        let options = OpenOptions::new().read(true).write(true).clone();
        let engine = options
            .open(dir.join(ENGINE_FILE))
            .map_err(|error| OpenError::for_folder(dir, error))?;
        if !try_lock(dir, &engine)? {
            return Err(OpenError::Locked {
                path: dir.to_owned(),
                pid: None,
            });
        }
        let place = OpenStoreFiles {
            engine: placed_file(dir, &engine, ENGINE_FILE)?,
            lock: self
                .lock
                .as_ref()
                .map(|lock| placed_file(dir, lock, LOCK_FILE))
                .transpose()?,
        };
        self.engine = Some(engine);
        if let Some(lock) = &mut self.lock {
            // Only the error message of the next process needs it, so a failure to write it is no
            // error.
            let _ = write_pid(lock);
        }
        Ok(place)
    }

    /// A lock that locks nothing, for disks that are not folders.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self {
            lock: None,
            engine: None,
        }
    }
}

fn placed_file(dir: &Path, file: &File, name: &str) -> Result<PlacedFile, OpenError> {
    PlacedFile::from_open_file(file, &dir.join(name))
        .map_err(|source| OpenError::for_folder(dir, source))
}

/// True if the file was free.
fn try_lock(dir: &Path, file: &File) -> Result<bool, OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(OpenError::for_folder(dir, source)),
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    /// More digits than any process id has.
    const PID_BYTES_MAX: u64 = 20;
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use rustix::fs::{OFlags, fcntl_getfl};

    use super::*;

    /// The handle that locks the engine's file may write, as NFS demands.
    #[test]
    fn engine_file_lock_uses_a_writable_handle() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(ENGINE_FILE), "x").unwrap();
        let mut lock = FolderLock::take_folder(folder.path()).unwrap();
        lock.take_engine(folder.path()).unwrap();
        let flags = fcntl_getfl(lock.engine.as_ref().unwrap()).unwrap();
        assert_eq!(flags & OFlags::ACCMODE, OFlags::RDWR);
    }
}
