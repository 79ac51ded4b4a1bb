//! Reading and writing that all persistent formats share.
//!
//! Bytes of a newer version and bytes that are not ours at all are two errors: the first are left
//! to a newer program, the second are put aside or replaced.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Why a message or an object cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Empty, truncated, or not ours.
    #[error("not {0}")]
    Malformed(&'static str, #[source] serde_json::Error),
    /// Written by a newer program.
    #[error("version {0} is newer than this program")]
    Newer(u32),
}

/// A versioned JSON format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredFormat {
    /// The name in errors, with its article.
    pub(crate) name: &'static str,
    /// The newest version that this program reads.
    pub(crate) newest: u32,
}

#[derive(Deserialize)]
struct VersionMember {
    v: u32,
}

/// A value that has no version of its own, with the version of its format in front.
#[derive(Serialize, Deserialize)]
struct VersionedValue<T> {
    v: u32,
    #[serde(flatten)]
    value: T,
}

impl StoredFormat {
    /// Reads bytes; `version` answers the version that they say. Bytes that cannot be read may be
    /// of a newer version.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(
        self,
        bytes: &'a [u8],
        version: impl FnOnce(&T) -> u32,
    ) -> Result<T, FormatError> {
        // Text as a whole is checked faster than string by string.
        let value = match std::str::from_utf8(bytes) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(bytes),
        };
        let value = value.map_err(|error| self.unreadable_error(bytes, error))?;
        let version = version(&value);
        if version > self.newest {
            Err(FormatError::Newer(version))
        } else {
            Ok(value)
        }
    }

    /// Reads a value that [`Self::render_json`] wrote.
    pub(crate) fn read<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, FormatError> {
        Ok(self
            .parse(bytes, |object: &VersionedValue<T>| object.v)?
            .value)
    }

    /// Writes a value with the newest version in front.
    pub(crate) fn render(self, value: &impl Serialize) -> Bytes {
        render_json(&VersionedValue {
            v: self.newest,
            value,
        })
    }

    /// The error of bytes that are JSON of the right version, but break another rule of the format.
    pub(crate) fn malformed_error(self, why: &str) -> FormatError {
        FormatError::Malformed(self.name, serde::de::Error::custom(why))
    }

    fn unreadable_error(self, bytes: &[u8], error: serde_json::Error) -> FormatError {
        match serde_json::from_slice::<VersionMember>(bytes) {
            Ok(VersionMember { v }) if v > self.newest => FormatError::Newer(v),
            _ => FormatError::Malformed(self.name, error),
        }
    }
}

/// The JSON of plain data with text keys, for which serialising cannot fail.
pub(crate) fn render_json(value: &impl Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}
