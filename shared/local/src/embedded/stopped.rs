//! The file of a data folder that no process has open.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::disk::ENGINE_FILE;
use super::failure::OpenError;

/// Opens the file to be read. No process can open the folder while the file lives.
pub(super) fn open_stopped(dir: &Path) -> Result<File, OpenError> {
    let file =
        File::open(dir.join(ENGINE_FILE)).map_err(|source| OpenError::for_folder(dir, source))?;
    // Shared: NFS refuses any other lock of a file that is not opened to be written.
    match file.try_lock_shared() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
            path: dir.to_owned(),
            pid: None,
        }),
        Err(TryLockError::Error(source)) => Err(OpenError::for_folder(dir, source)),
    }
}
