//! Standard Webhooks signatures, version `v1`: HMAC-SHA256 over `id.timestamp.body`.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::limits::SIGNING_SECRET_BYTES;
use crate::secret::Secret;
use crate::time::Timestamp;

const PREFIX: &str = "whsec_";

/// Why a text is not a signing secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SigningSecretError {
    /// No `whsec_` in front.
    #[error("a signing secret starts with whsec_")]
    Prefix,
    /// The rest is not base64.
    #[error("what follows whsec_ is not base64")]
    Base64,
    /// Too short to be safe, or too long.
    #[error("a signing secret has 24 to 64 bytes, this one has {0}")]
    Length(usize),
}

/// A signing secret: its text as users exchange it, and the keyed state computed once.
#[derive(Clone)]
pub struct SigningSecret {
    text: Secret,
    keyed: Hmac<Sha256>,
}

impl SigningSecret {
    /// Parses `whsec_` and base64.
    pub fn parse(text: &str) -> Result<Self, SigningSecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SigningSecretError::Prefix)?;
        let key = STANDARD.decode(encoded).map_err(|_| SigningSecretError::Base64)?;
        Self::from_key(&key)
    }

    /// Makes a secret of random bytes.
    pub fn from_key(key: &[u8]) -> Result<Self, SigningSecretError> {
        if !SIGNING_SECRET_BYTES.contains(&key.len()) {
            return Err(SigningSecretError::Length(key.len()));
        }
        let keyed = Hmac::<Sha256>::new_from_slice(key).map_err(|_| SigningSecretError::Length(key.len()))?;
        Ok(Self { text: Secret::new(format!("{PREFIX}{}", STANDARD.encode(key))), keyed })
    }

    /// The secret as text.
    pub fn text(&self) -> &Secret {
        &self.text
    }

    fn sign(&self, id: &str, timestamp: u64, body: &[Bytes]) -> String {
        let mut mac = self.keyed.clone();
        mac.update(id.as_bytes());
        mac.update(format!(".{timestamp}.").as_bytes());
        for slice in body {
            mac.update(slice);
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text.fmt(f)
    }
}

/// The `webhook-signature` header: one signature per secret, separated by spaces, so that during a rotation the
/// old and the new secret both verify. Empty without secrets.
pub fn header(secrets: &[SigningSecret], id: &str, at: Timestamp, body: &[Bytes]) -> String {
    let signatures: Vec<_> = secrets.iter().map(|secret| secret.sign(id, at.as_secs(), body)).collect();
    signatures.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_specification_s_example_is_signed_alike() {
        let secret = SigningSecret::parse(SECRET).unwrap();
        let at = Timestamp::from_millis(1_614_265_330_000);
        let body = [Bytes::from_static(b"{\"test\""), Bytes::from_static(b": 2432232314}")];
        assert_eq!(
            header(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", at, &body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn during_a_rotation_both_secrets_sign() {
        let secrets = [SigningSecret::parse(SECRET).unwrap(), SigningSecret::from_key(&[7; 32]).unwrap()];
        let both = header(&secrets, "a", Timestamp::EPOCH, &[]);
        assert_eq!(both.split(' ').count(), 2);
        assert!(both.split(' ').all(|one| one.starts_with("v1,")));
        assert_eq!(header(&[], "a", Timestamp::EPOCH, &[]), "");
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let check = |text: &str, error| assert_eq!(SigningSecret::parse(text).err(), Some(error));
        check("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", SigningSecretError::Prefix);
        check("whsec_???", SigningSecretError::Base64);
        check("whsec_AAAA", SigningSecretError::Length(3));
    }

    #[test]
    fn debug_shows_nothing_of_it() {
        assert_eq!(format!("{:?}", SigningSecret::parse(SECRET).unwrap()), "[redacted]");
    }
}
