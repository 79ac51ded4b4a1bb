//! Text that must not leak: its `Debug` is redacted and it is compared in constant time; and the
//! digest of a key, for a program that must recognise a key and need not know it.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::hex;

/// A key or secret. It has no `Display`; [`Secret::expose`] is the only way to its text.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `offered` is this secret, in a time that depends only on the lengths.
    pub fn matches(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Shortest publish key that may be written, in characters: 24 random bytes in base64, as many as a
/// signing secret has at least. Those that are made have 44.
pub const PUBLISH_KEY_CHARS_MIN: usize = 32;

/// Longest publish key that may be written, in characters. A key travels in a header of each
/// request.
pub const PUBLISH_KEY_CHARS_MAX: usize = 256;

/// Shortest key of the management API, in characters: one that is guessed opens everything.
pub const ADMIN_KEY_CHARS_MIN: usize = 16;

/// Bytes of a SHA-256 digest.
const DIGEST_BYTES: usize = 32;

/// Bytes of a key's tag.
const TAG_BYTES: usize = 4;

/// The text before a digest in a tag, so that the tag is the beginning of no other digest.
const TAG_DOMAIN: &[u8] = b"posthaste tag of an admin key\0";

/// The SHA-256 digest of a key: enough to recognise the key, and not to learn it if it is random.
/// The default is all zeroes, the digest of no key that is known.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyDigest([u8; DIGEST_BYTES]);

impl KeyDigest {
    /// The digest of a key.
    pub fn for_key(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// Reads 64 hexadecimal digits, in any case, as `sha256sum` writes them. `None` for anything
    /// else, and for the digest of nothing, which is what a shell makes of a variable that is
    /// not set.
    pub fn parse(text: &str) -> Option<Self> {
        let digest = Self(hex::parse(&text.to_ascii_lowercase())?);
        (digest != Self::for_key("")).then_some(digest)
    }

    /// The digest itself.
    pub fn to_bytes(&self) -> [u8; DIGEST_BYTES] {
        self.0
    }

    /// A tag that tells this key from others: the first four bytes of a digest of the digest. A key
    /// that was made has at least 24 random bytes, so the tag does not help to guess it.
    pub fn tag(&self) -> String {
        let digest = Sha256::new()
            .chain_update(TAG_DOMAIN)
            .chain_update(self.0)
            .finalize();
        hex::encode(&digest[..TAG_BYTES])
    }

    /// Whether `offered` is the key, in a time that says nothing about the key.
    pub fn matches_key(&self, offered: &str) -> bool {
        self.0.ct_eq(&Self::for_key(offered).0).into()
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `printf %s abc | sha256sum`.
    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_digest_recognises_its_key_alone() {
        for text in [OF_ABC, &OF_ABC.to_uppercase()] {
            let digest = KeyDigest::parse(text).unwrap();
            assert!(digest.matches_key("abc"));
            assert!(
                !digest.matches_key("abd")
                    && !digest.matches_key("")
                    && !digest.matches_key("abc\n")
                    && !digest.matches_key(OF_ABC)
            );
        }
        assert_eq!(KeyDigest::parse(OF_ABC).unwrap(), KeyDigest::for_key("abc"));
    }

    #[test]
    fn malformed_key_digest_is_refused() {
        let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let with_a_newline = format!("{OF_ABC}\n");
        for text in [
            "",
            "abc",
            &OF_ABC[1..],
            &OF_ABC.replace('b', "g"),
            &with_a_newline,
            of_nothing,
        ] {
            assert!(KeyDigest::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn debug_shows_no_digest() {
        assert_eq!(format!("{:?}", KeyDigest::for_key("abc")), "[redacted]");
    }

    #[test]
    fn debug_shows_nothing_of_it() {
        assert_eq!(format!("{:?}", Secret::new("whsec_abc")), "[redacted]");
    }

    #[test]
    fn only_the_same_text_matches() {
        let secret = Secret::new("abc");
        assert!(secret.matches("abc"));
        assert!(!secret.matches("abd") && !secret.matches("ab") && !secret.matches(""));
    }
}
