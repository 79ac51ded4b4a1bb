//! Work on threads that may block, and files in progress. Those have no names, so that a crash
//! leaves none behind.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use bytes::Bytes;
use posthaste_services::catch_panic::CaughtPanic;

use crate::error::RecordError;

/// Does work that computes for long, or waits for a disk, without holding up others. Dropping the
/// future does not stop it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RecordError> + Send + 'static,
) -> Result<T, RecordError> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or(Err(RecordError::Panicked(CaughtPanic)))
}

/// An empty file.
pub(crate) fn empty(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// A file of these bytes.
pub(crate) fn filled(folder: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = empty(folder)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// All bytes of a file.
pub(crate) fn contents(mut file: File) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(Bytes::from(bytes))
}
