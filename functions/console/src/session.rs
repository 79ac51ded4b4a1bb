//! Sessions: what a browser's cookie says, signed so that only this installation can have written
//! it. A visitor is signed in as long as the book of open sessions has the session too.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use posthaste_core::model::{KeyDigest, Timestamp, hex};
use posthaste_core::stored::SessionDigest;
use posthaste_ports::Entropy;
use sha2::Sha256;

/// The time for which a visitor stays signed in.
pub(crate) const SIGNED_IN: Duration = Duration::from_hours(12);

/// The time for which the form of the sign-in page can be sent.
const VISITING: Duration = Duration::from_hours(1);

/// Random bytes in a session.
const ID_BYTES: usize = 16;

/// Bytes of a signature.
const MAC_BYTES: usize = 32;

/// Bytes before the signature: the kind, the end in milliseconds, and the id.
const HEAD_BYTES: usize = 1 + 8 + ID_BYTES;

/// Prefixes of the signed text, so that a signature for one purpose is of no use for another.
const SESSION_DOMAIN: &[u8] = b"posthaste console session\0";
const FORM_DOMAIN: &[u8] = b"posthaste console form\0";
const ADMIN_KEY_DOMAIN: &[u8] = b"posthaste console admin key\0";
const KEY_TAG_DOMAIN: &[u8] = b"posthaste console key tag\0";

/// Bytes of the tag of a key.
const KEY_TAG_BYTES: usize = 4;

/// The key that signs sessions: random, and kept in the state store.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SessionKey([u8; SessionKey::BYTES]);

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl SessionKey {
    /// Bytes of the key.
    pub(crate) const BYTES: usize = 32;

    /// A new key.
    pub(crate) fn random(entropy: &impl Entropy) -> Self {
        let mut bytes = [0; Self::BYTES];
        entropy.fill(&mut bytes);
        Self(bytes)
    }

    /// Reads a key as it is stored.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// The key as it is stored.
    pub(crate) fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// A tag of the admin key, which tells whether it is still the one for which this key was made.
    pub(crate) fn admin_key_tag(&self, admin_key: &KeyDigest) -> String {
        URL_SAFE_NO_PAD.encode(
            self.domain_mac(ADMIN_KEY_DOMAIN, &admin_key.to_bytes())
                .finalize()
                .into_bytes(),
        )
    }

    /// A tag that tells sessions of this key from those of another.
    pub(crate) fn tag(&self) -> String {
        let mac = self.domain_mac(KEY_TAG_DOMAIN, b"").finalize().into_bytes();
        hex::encode(&mac[..KEY_TAG_BYTES])
    }

    fn domain_mac(&self, domain: &[u8], text: &[u8]) -> Hmac<Sha256> {
        // HMAC takes keys of any length.
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of HMAC");
        mac.chain_update(domain).chain_update(text)
    }
}

/// One browser's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConsoleSession {
    /// Whether its visitor has shown the admin key. Otherwise it only ties the form of the sign-in
    /// page to a browser.
    pub(crate) is_signed_in: bool,
    /// The time at which it ends.
    pub(crate) ends_at: Timestamp,
    id: [u8; ID_BYTES],
}

impl ConsoleSession {
    /// A session that begins now.
    pub(crate) fn begin(is_signed_in: bool, now: Timestamp, entropy: &impl Entropy) -> Self {
        let mut id = [0; ID_BYTES];
        entropy.fill(&mut id);
        Self {
            is_signed_in,
            ends_at: now + if is_signed_in { SIGNED_IN } else { VISITING },
            id,
        }
    }

    /// The digest of its id, which the book of open sessions has.
    pub(crate) fn digest(&self) -> SessionDigest {
        SessionDigest::for_id(&self.id)
    }

    /// Reads a cookie's value. `None` for one that `key` did not sign, and for one that has ended.
    pub(crate) fn parse(text: &str, key: &SessionKey, now: Timestamp) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (head, signature) = bytes.split_at_checked(HEAD_BYTES)?;
        key.domain_mac(SESSION_DOMAIN, head)
            .verify_slice(signature)
            .ok()?;
        let (kind, rest) = head.split_first()?;
        let (ends_at, id) = rest.split_first_chunk::<8>()?;
        let session = Self {
            is_signed_in: *kind == 1,
            ends_at: Timestamp::from_millis(u64::from_be_bytes(*ends_at)),
            id: id.try_into().ok()?,
        };
        (now < session.ends_at).then_some(session)
    }

    /// The cookie's value.
    pub(crate) fn cookie_value(&self, key: &SessionKey) -> String {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + MAC_BYTES);
        bytes.push(u8::from(self.is_signed_in));
        bytes.extend(self.ends_at.as_millis().to_be_bytes());
        bytes.extend(self.id);
        let signature = key
            .domain_mac(SESSION_DOMAIN, &bytes)
            .finalize()
            .into_bytes();
        bytes.extend(signature);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The token that each form of this session carries: another site does not know it.
    pub(crate) fn form_token(&self, key: &SessionKey) -> String {
        URL_SAFE_NO_PAD.encode(self.form_mac(key).finalize().into_bytes())
    }

    /// Whether `offered` is the token of this session, in a time that says nothing about the token.
    pub(crate) fn is_form_token(&self, key: &SessionKey, offered: &str) -> bool {
        let offered = URL_SAFE_NO_PAD.decode(offered).unwrap_or_default();
        self.form_mac(key).verify_slice(&offered).is_ok()
    }

    fn form_mac(&self, key: &SessionKey) -> Hmac<Sha256> {
        key.domain_mac(FORM_DOMAIN, &self.id)
    }
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::SeededEntropy;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn key(seed: u64) -> SessionKey {
        SessionKey::random(&SeededEntropy::new(seed))
    }

    fn session(is_signed_in: bool) -> ConsoleSession {
        ConsoleSession::begin(is_signed_in, NOW, &SeededEntropy::new(7))
    }

    #[test]
    fn a_session_is_read_back_until_it_ends() {
        for (is_signed_in, length) in [(true, SIGNED_IN), (false, VISITING)] {
            let session = session(is_signed_in);
            let key = key(1);
            let text = session.cookie_value(&key);
            let last = NOW + length.checked_sub(Duration::from_millis(1)).unwrap();
            assert_eq!(ConsoleSession::parse(&text, &key, last), Some(session));
            assert_eq!(ConsoleSession::parse(&text, &key, NOW + length), None);
        }
    }

    #[test]
    fn a_session_that_was_changed_or_signed_by_another_key_is_none() {
        let text = session(false).cookie_value(&key(1));
        assert_eq!(ConsoleSession::parse(&text, &key(2), NOW), None);
        let signed = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for at in 0..signed.len() {
            let mut changed = signed.clone();
            changed[at] ^= 1;
            assert_eq!(
                ConsoleSession::parse(&URL_SAFE_NO_PAD.encode(&changed), &key(1), NOW),
                None,
                "byte {at}"
            );
            let cut = URL_SAFE_NO_PAD.encode(&signed[..at]);
            assert_eq!(
                ConsoleSession::parse(&cut, &key(1), NOW),
                None,
                "{at} bytes"
            );
        }
        assert_eq!(ConsoleSession::parse("not base64!", &key(1), NOW), None);
    }

    #[test]
    fn a_form_token_is_of_one_session_and_key() {
        let session = session(true);
        let other = ConsoleSession::begin(true, NOW, &SeededEntropy::new(8));
        let token = session.form_token(&key(1));
        assert!(session.is_form_token(&key(1), &token));
        assert!(!other.is_form_token(&key(1), &token) && !session.is_form_token(&key(2), &token));
        assert!(!session.is_form_token(&key(1), "") && !session.is_form_token(&key(1), "x"));
        assert_ne!(token, session.cookie_value(&key(1)));
    }
}
