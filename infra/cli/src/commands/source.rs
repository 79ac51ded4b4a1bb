//! Input files of commands: a path, or `-` for standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::CommandFailure;

/// Most bytes of an input file. No request may carry as much, so that the server gives the exact
/// reason.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// An input file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {}", path.display())]
pub struct InputError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl CommandFailure for InputError {}

/// The byte order mark of UTF-8, with which some programs begin a file (PowerShell, Excel).
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads a whole file, or standard input for `-`, without a byte order mark.
pub fn read_input(path: &Path) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin()
            .lock()
            .take(INPUT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    let failed = |source| InputError {
        path: path.to_owned(),
        source,
    };
    let count = read.map_err(failed)?;
    if count as u64 > INPUT_BYTES_MAX {
        return Err(failed(io::Error::from(io::ErrorKind::FileTooLarge)));
    }
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(bytes)
}
