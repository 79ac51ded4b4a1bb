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
    let mut bytes = read_bytes(path).map_err(|source| InputError {
        path: path.to_owned(),
        source,
    })?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(bytes)
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let count = if path == Path::new("-") {
        let input = io::stdin().lock();
        input.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?
    } else {
        let file = File::open(path)?;
        file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?
    };
    if count as u64 > INPUT_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(bytes)
}
