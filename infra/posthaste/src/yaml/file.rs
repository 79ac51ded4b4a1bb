//! Reads one YAML file, up to its first error.

use std::error::Error;
use std::path::{Path, PathBuf};

use posthaste_yaml::{Place, TextError};
use serde::de::DeserializeOwned;

use crate::error::Failure;

/// Error of a YAML file: it is not the expected YAML, or its content breaks a rule.
#[derive(Debug, thiserror::Error)]
#[error("{}", with_place(path, *place))]
pub struct FileError {
    path: PathBuf,
    /// Place in the file, if the member at fault is in it.
    place: Option<Place>,
    source: Box<dyn Error + Send + Sync>,
}

/// Reads the text of a file.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, FileError> {
    posthaste_yaml::parse(text).map_err(|error| FileError::of(path, error))
}

/// Error of a file whose `member`, as a path such as `topics.a.retry`, breaks a rule.
pub fn refused(
    path: &Path,
    text: &[u8],
    member: Option<&str>,
    rule: impl Error + Send + Sync + 'static,
) -> FileError {
    FileError::of(path, posthaste_yaml::refused(text, member, rule))
}

/// A file, and a place in it: `topics.yaml:3:7`.
pub(super) fn with_place(path: &Path, place: Option<Place>) -> String {
    let place = place
        .map(|Place { line, column }| format!(":{line}:{column}"))
        .unwrap_or_default();
    format!("{}{place}", path.display())
}

impl FileError {
    fn of(path: &Path, error: TextError) -> Self {
        Self {
            path: path.to_owned(),
            place: error.place,
            source: error.source,
        }
    }
}

impl Failure for FileError {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}
