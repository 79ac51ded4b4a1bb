//! The delivery log's files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use posthaste_tests::home::Home;
use posthaste_tests::patience::{now, wait_until};

/// The delivery log writes a file a second. After this time without a change all of it is written.
const QUIET: Duration = Duration::from_secs(3);

/// Waits until the files have not grown for a while, and answers their bytes.
pub(crate) fn wait_for(home: &Home) -> u64 {
    let mut bytes = 0;
    let mut since = now();
    wait_until("the delivery log to be written", || {
        let found = bytes_below(&home.path().join("log"));
        if found != bytes {
            bytes = found;
            since = now();
        }
        (now() >= since + QUIET).then_some(bytes)
    })
}

/// The bytes of all files below a folder; of a file that is gone, none.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
