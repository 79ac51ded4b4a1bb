//! Work on threads that may block, and files in progress. Those have no names, so that a crash
//! leaves none behind.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use bytes::Bytes;
use posthaste_services::catch_panic::CaughtPanic;

use crate::error::LogFilesError;

/// Does work that computes for long, or waits for a disk, without holding up others. Dropping the
/// future does not stop it.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogFilesError> + Send + 'static,
) -> Result<T, LogFilesError> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or(Err(LogFilesError::Panicked(CaughtPanic)))
}

/// An empty file.
pub(crate) fn empty_file(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// A file of these bytes.
pub(crate) fn filled_file(folder: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = empty_file(folder)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// All bytes of a file.
pub(crate) fn read_contents(mut file: File) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(Bytes::from(bytes))
}
