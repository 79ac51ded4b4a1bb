//! The key pairs of `v1a`: signing, and the public halves in the two forms in which receivers want
//! them.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use ring::signature::{Ed25519KeyPair, KeyPair};
use sha2::{Digest, Sha256};

use super::error::SigningSecretError;

/// The prefix of a public key, before its base64 (Standard Webhooks).
const PUBLIC_PREFIX: &str = "whpk_";

/// Bytes of a seed, and of a public key (RFC 8032).
const KEY_BYTES: usize = 32;

/// A private key. Signing is deterministic: it needs no chance.
#[derive(Clone)]
pub(super) struct SigningKey(Arc<Ed25519KeyPair>);

/// A public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; KEY_BYTES]);

impl SigningKey {
    /// The seed, as the specification's own libraries write a private key, or seed and public key,
    /// as others do.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, SigningSecretError> {
        let pair = match bytes.split_at_checked(KEY_BYTES) {
            Some((seed, [])) => Ed25519KeyPair::from_seed_unchecked(seed),
            Some((seed, public)) if public.len() == KEY_BYTES => {
                Ed25519KeyPair::from_seed_and_public_key(seed, public)
            }
            Some(_) | None => return Err(SigningSecretError::KeyLength(bytes.len())),
        };
        pair.map(|pair| Self(Arc::new(pair)))
            .map_err(|_| SigningSecretError::KeyPair)
    }

    /// The signature over `head` and `body`. Ed25519 reads its message twice, so it is copied
    /// together here.
    pub(super) fn sign(&self, head: &str, body: &[Bytes]) -> Vec<u8> {
        let mut message =
            Vec::with_capacity(head.len() + body.iter().map(Bytes::len).sum::<usize>());
        message.extend_from_slice(head.as_bytes());
        for slice in body {
            message.extend_from_slice(slice);
        }
        self.0.sign(&message).as_ref().to_vec()
    }

    pub(super) fn public_key(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref();
        PublicKey(std::array::from_fn(|at| {
            bytes.get(at).copied().unwrap_or_default()
        }))
    }
}

impl PublicKey {
    /// The key as the member `jwk_x` of a JSON Web Key (RFC 8037).
    pub fn jwk_x(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// The key's thumbprint (RFC 7638): the same for the same key, wherever it is made.
    pub fn thumbprint(&self) -> String {
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, self.jwk_x());
        URL_SAFE_NO_PAD.encode(Sha256::digest(members))
    }
}

/// The key as Standard Webhooks writes it: `whpk_` and base64.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_PREFIX}{}", STANDARD.encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 8037 appendix A, and its public half and thumbprint.
    const SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

    fn seed() -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(SEED).unwrap()
    }

    #[test]
    fn the_public_key_and_its_thumbprint_are_those_of_the_rfc() {
        let public = SigningKey::from_bytes(&seed()).unwrap().public_key();
        assert_eq!(
            (public.jwk_x().as_str(), public.thumbprint().as_str()),
            (X, THUMBPRINT)
        );
        assert_eq!(
            public.to_string(),
            "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
        );
    }

    #[test]
    fn a_seed_with_its_public_key_is_the_same_key() {
        let both = [seed(), URL_SAFE_NO_PAD.decode(X).unwrap()].concat();
        let one = SigningKey::from_bytes(&seed()).unwrap();
        let other = SigningKey::from_bytes(&both).unwrap();
        assert_eq!(one.sign("a", &[]), other.sign("a", &[]));
    }
}
