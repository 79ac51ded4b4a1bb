//! Errors of the log.

use std::error::Error;
use std::io;

use parquet::errors::ParquetError;
use posthaste_ports::caught::catch_expected_panic;
use posthaste_ports::{ErrorKind, PortError};

/// Why the log could not be written, read or merged.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A range of a file could not be read.
    #[error("failed to read {file}")]
    Read {
        /// The file's key.
        file: String,
        /// The store's failure.
        #[source]
        source: PortError,
    },
    /// A file is truncated, changed, or not a file of the log.
    #[error("{file} is damaged or no file of the delivery log")]
    Damaged {
        /// The file's key.
        file: String,
        /// The fault.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The files could not be listed.
    #[error("failed to list the files of the delivery log")]
    List(#[source] PortError),
    /// The time that is asked for has too many files.
    #[error("the log has more than {0} files in the time that is asked for; begin later")]
    TooManyFiles(usize),
    /// Files were merged into others while they were read, each time.
    #[error("the files of the delivery log were merged while they were read")]
    Changing,
    /// A file could not be made.
    #[error("failed to make a file of the delivery log")]
    Write(#[source] Box<dyn Error + Send + Sync>),
}

impl LogError {
    /// Whether the file is gone, as after a merge. Listing the files again helps.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind == ErrorKind::NotFound)
    }

    /// The file's key, if the file is damaged. The other files may have the records that were asked
    /// for.
    pub fn damaged_file(&self) -> Option<&str> {
        match self {
            Self::Damaged { file, .. } => Some(file),
            Self::Read { file, source } if source.kind == ErrorKind::Damaged => Some(file),
            _ => None,
        }
    }

    pub(crate) fn damaged(file: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Damaged {
            file: file.to_owned(),
            source: source.into(),
        }
    }

    /// Converts an error of the Parquet crate. A refusal of the operating system says nothing about
    /// the bytes.
    fn from_parquet_error(file: &str, error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) if is_system_error(source.as_ref()) => Self::Read {
                file: file.to_owned(),
                source: PortError::with_cause("read a file in progress", ErrorKind::Other, source),
            },
            error => Self::damaged(file, error),
        }
    }

    pub(crate) fn write_failed(source: ParquetError) -> Self {
        Self::Write(source.into())
    }
}

/// Whether the operating system made an error, and not a decoder, which uses the same type.
fn is_system_error(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.raw_os_error().is_some())
}

/// Decodes bytes of a file. The Parquet crate panics on some bytes that no writer makes: then the
/// file counts as damaged.
pub(crate) fn decode_guarded<T>(
    file: &str,
    decode: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, LogError> {
    match catch_expected_panic(decode) {
        Ok(decoded) => decoded.map_err(|error| LogError::from_parquet_error(file, error)),
        Err(_) => Err(LogError::damaged(file, "its bytes make no sense")),
    }
}

/// Moves the errors of damaged files to a list, each file once. Any other failure fails the whole
/// call.
pub(crate) fn set_damaged_apart<T>(
    results: Vec<Result<T, LogError>>,
    damaged: &mut Vec<LogError>,
) -> Result<Vec<T>, LogError> {
    let mut kept = Vec::new();
    for result in results {
        match result {
            Ok(value) => kept.push(value),
            Err(error) if error.damaged_file().is_none() => return Err(error),
            Err(error)
                if damaged
                    .iter()
                    .any(|known| known.damaged_file() == error.damaged_file()) => {}
            Err(error) => damaged.push(error),
        }
    }
    Ok(kept)
}

/// An error about the bytes of a file.
pub(crate) fn broken_bytes(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
