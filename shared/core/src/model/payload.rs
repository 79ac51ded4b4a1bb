//! The text of an event in a delivery, or the place where it is stored.

use std::fmt;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::hex;
use crate::model::EventNames;

/// The place of an event's JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventPayload {
    /// Here, exactly as it was accepted.
    Inline(Bytes),
    /// In the state bucket, under this key.
    Stored {
        /// The object's key.
        key: String,
        /// The size in bytes.
        bytes: usize,
        /// The digest of the text as it was stored; `None` in messages of a version that did not
        /// have it.
        digest: Option<PayloadDigest>,
        /// The event's names, so that a record of it that is made without its text has them. `None`
        /// where its envelope has them, or a program before 0.2 accepted it.
        names: Option<Box<EventNames<'static>>>,
    },
}

/// The SHA-256 of a stored payload: what is read must be what was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadDigest([u8; DIGEST_BYTES]);

const DIGEST_BYTES: usize = 32;

/// The bytes that a digest and its member's name take in a message.
const DIGEST_WIRE_BYTES: usize = r#","sha256":"""#.len() + 2 * DIGEST_BYTES;

/// The bytes of the name of the member that has a stored event's names.
const NAMES_WIRE_BYTES: usize = r#","names":"#.len();

impl EventPayload {
    /// The size of the event's JSON, in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Inline(json) => json.len(),
            Self::Stored { bytes, .. } => *bytes,
        }
    }

    /// Whether there is nothing. No accepted event is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes it takes in a message.
    pub fn message_bytes(&self) -> usize {
        match self {
            Self::Inline(json) => json.len(),
            Self::Stored {
                key, digest, names, ..
            } => {
                let names = names
                    .as_ref()
                    .map_or(0, |names| NAMES_WIRE_BYTES + names.byte_len());
                key.len() + digest.map_or(0, |_| DIGEST_WIRE_BYTES) + names
            }
        }
    }

    /// Whether what was read from where this event is stored is still what was stored there.
    pub fn matches_text(&self, read: &[u8]) -> bool {
        match self {
            Self::Inline(json) => json == read,
            Self::Stored { bytes, digest, .. } => {
                read.len() == *bytes
                    && digest.is_none_or(|digest| digest == PayloadDigest::for_json(read))
            }
        }
    }
}

impl PayloadDigest {
    /// The digest of an event's JSON.
    pub fn for_json(json: &[u8]) -> Self {
        Self(Sha256::digest(json).into())
    }

    /// Reads 64 hexadecimal digits, small letters only.
    pub fn parse(text: &str) -> Option<Self> {
        hex::parse(text).map(Self)
    }
}

impl fmt::Display for PayloadDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_as_sha256sum_writes_it_and_read_back() {
        let digest = PayloadDigest::for_json(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            (digest.to_string(), PayloadDigest::parse(text)),
            (text.to_owned(), Some(digest))
        );
        for bad in [
            "",
            &text[1..],
            &text.to_uppercase(),
            &text.replace('b', "g"),
            &"ü".repeat(32),
        ] {
            assert_eq!(PayloadDigest::parse(bad), None, "{bad}");
        }
    }

    /// Text that is read must have the length and digest of what was stored.
    #[test]
    fn payload_matches_only_the_stored_text() {
        let stored = |digest| EventPayload::Stored {
            key: "payloads/1/x".to_owned(),
            bytes: 3,
            digest,
            names: None,
        };
        for digest in [None, Some(PayloadDigest::for_json(b"abc"))] {
            assert!(stored(digest).matches_text(b"abc"));
            assert!(
                !stored(digest).matches_text(b"ab")
                    && !stored(digest).matches_text(b"abcd")
                    && !stored(digest).matches_text(b"")
            );
        }
        assert!(!stored(Some(PayloadDigest::for_json(b"abc"))).matches_text(b"abd"));
    }
}
