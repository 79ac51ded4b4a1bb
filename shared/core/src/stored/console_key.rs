//! The key that signs the sessions of the console.
//!
//! Key `console-key.json`. Version 1; written by the console at the first visit, and again when the
//! admin key has changed; read by every process that serves the console. Fixture:
//! `console-key-v1.json`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::{FormatError, Secret, StoredFormat};

/// The key of the object.
pub const CONSOLE_KEY: &str = "console-key.json";

const FORMAT: StoredFormat = StoredFormat {
    name: "a key of console sessions",
    newest: 1,
};

/// The key of sessions.
#[derive(Debug, Clone)]
pub struct ConsoleKey {
    /// The key, in base64url.
    pub key: Secret,
    /// A tag of the admin key for which it was made, under the key itself.
    pub admin_key: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConsoleKeyWire {
    key: String,
    admin_key: String,
}

impl ConsoleKey {
    /// Reads a key.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let ConsoleKeyWire { key, admin_key } = FORMAT.read(bytes)?;
        Ok(Self {
            key: Secret::new(key),
            admin_key,
        })
    }

    /// Writes the key.
    pub fn render(&self) -> Bytes {
        FORMAT.render(&ConsoleKeyWire {
            key: self.key.expose().to_owned(),
            admin_key: self.admin_key.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = include_str!("fixtures/console-key-v1.json");

    #[test]
    fn a_key_is_written_as_it_always_was_and_read_back() {
        let read = ConsoleKey::parse(FIXTURE.as_bytes()).unwrap();
        assert_eq!(
            (read.key.expose(), read.admin_key.as_str()),
            ("AAECAwQ", "BQYHCAk")
        );
        assert_eq!(read.render(), FIXTURE.trim_end());
    }

    #[test]
    fn a_newer_version_is_told_apart_and_nothing_shows_the_key() {
        assert!(matches!(
            ConsoleKey::parse(br#"{"v":2}"#),
            Err(FormatError::Newer(2))
        ));
        let shown = format!("{:?}", ConsoleKey::parse(FIXTURE.as_bytes()).unwrap());
        assert!(!shown.contains("AAECAwQ"), "{shown}");
    }
}
