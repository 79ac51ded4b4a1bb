//! Standard Webhooks signatures over `id.timestamp.body`: `v1`, HMAC-SHA256 with a secret that both
//! sides know, and `v1a`, ed25519 with a private key that only we know.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

mod ed25519;
mod error;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use utoipa::ToSchema;

pub use self::ed25519::PublicKey;
use self::ed25519::SigningKey;
pub use self::error::SigningSecretError;
use crate::model::pasted::read_pasted;
use crate::model::word::display_the_word;
use crate::model::{SIGNING_SECRET_BYTES, Secret, Timestamp};

/// The prefix of a secret that both sides know, before its base64.
const SYMMETRIC_PREFIX: &str = "whsec_";

/// The prefix of a private key, before its base64.
const ASYMMETRIC_PREFIX: &str = "whsk_";

/// Bytes of a secret that is made here, of either kind.
pub const MADE_SECRET_BYTES: usize = 32;

/// A kind of signature, by its identifier in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SignatureKind {
    /// HMAC-SHA256; its secrets begin with `whsec_`.
    V1,
    /// ed25519; its private keys begin with `whsk_`, its public ones with `whpk_`.
    V1a,
}

display_the_word!(SignatureKind);

/// A signing secret: its text as users exchange it, the keyed state computed once, and when it
/// ends.
#[derive(Clone)]
pub struct SigningSecret {
    text: Secret,
    key: SignatureKey,
    expires_at: Option<Timestamp>,
}

#[derive(Clone)]
enum SignatureKey {
    Symmetric(Hmac<Sha256>),
    Asymmetric(SigningKey),
}

impl SignatureKind {
    /// The kind of a secret, by its prefix. Whether it is one at all, [`SigningSecret::parse`]
    /// tells.
    pub fn for_secret(secret: &str) -> Self {
        if secret.starts_with(ASYMMETRIC_PREFIX) {
            Self::V1a
        } else {
            Self::V1
        }
    }

    /// A secret of this kind, made of random bytes.
    pub fn make_secret(self, random: &[u8; MADE_SECRET_BYTES]) -> Secret {
        let prefix = match self {
            Self::V1 => SYMMETRIC_PREFIX,
            Self::V1a => ASYMMETRIC_PREFIX,
        };
        Secret::new(format!("{prefix}{}", STANDARD.encode(random)))
    }
}

impl SigningSecret {
    /// Parses `whsec_` or `whsk_` and base64, without what is around it where it was pasted. It
    /// never ends.
    pub fn parse(text: &str) -> Result<Self, SigningSecretError> {
        let text = read_pasted(text).map_err(SigningSecretError::Pasted)?;
        let key = if let Some(encoded) = text.strip_prefix(SYMMETRIC_PREFIX) {
            SignatureKey::Symmetric(keyed_hmac(&decode_key(encoded)?)?)
        } else if let Some(encoded) = text.strip_prefix(ASYMMETRIC_PREFIX) {
            SignatureKey::Asymmetric(SigningKey::from_bytes(&decode_key(encoded)?)?)
        } else {
            return Err(SigningSecretError::Prefix);
        };
        Ok(Self {
            text: Secret::new(text),
            key,
            expires_at: None,
        })
    }

    /// The same secret, which signs attempts before this time only.
    pub fn with_expiry(self, expires_at: Option<Timestamp>) -> Self {
        Self { expires_at, ..self }
    }

    /// The secret as text.
    pub fn text(&self) -> &Secret {
        &self.text
    }

    /// The key that receivers verify with, if it is not the secret itself.
    pub fn public_key(&self) -> Option<PublicKey> {
        match &self.key {
            SignatureKey::Symmetric(_) => None,
            SignatureKey::Asymmetric(key) => Some(key.public_key()),
        }
    }

    /// Whether it is the same secret, with the same end.
    pub fn is_same(&self, other: &Self) -> bool {
        self.text.matches(other.text.expose()) && self.expires_at == other.expires_at
    }

    /// Whether it signs an attempt of this time.
    pub fn is_live(&self, at: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| at < end)
    }

    fn sign(&self, id: &str, timestamp: u64, body: &[Bytes]) -> String {
        let head = format!("{id}.{timestamp}.");
        match &self.key {
            SignatureKey::Symmetric(keyed) => {
                let mut mac = keyed.clone();
                mac.update(head.as_bytes());
                for slice in body {
                    mac.update(slice);
                }
                format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
            }
            SignatureKey::Asymmetric(key) => {
                format!("v1a,{}", STANDARD.encode(key.sign(&head, body)))
            }
        }
    }
}

fn decode_key(encoded: &str) -> Result<Vec<u8>, SigningSecretError> {
    STANDARD
        .decode(encoded)
        .map_err(|_| SigningSecretError::Base64)
}

impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text.fmt(f)
    }
}

/// The `webhook-signature` header of an attempt: one signature per secret that is live then,
/// separated by spaces, so that during a rotation the old and the new secret both verify. Empty
/// without secrets.
pub fn header_value(secrets: &[SigningSecret], id: &str, at: Timestamp, body: &[Bytes]) -> String {
    let live = secrets.iter().filter(|secret| secret.is_live(at));
    let signatures: Vec<_> = live
        .map(|secret| secret.sign(id, at.as_secs(), body))
        .collect();
    signatures.join(" ")
}

fn keyed_hmac(key: &[u8]) -> Result<Hmac<Sha256>, SigningSecretError> {
    let error = SigningSecretError::Length(key.len());
    if !SIGNING_SECRET_BYTES.contains(&key.len()) {
        return Err(error);
    }
    Hmac::<Sha256>::new_from_slice(key).map_err(|_| error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The example of the specification's own library for Go, with the signature that it expects.
    const PRIVATE: &str = "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=";
    const SIGNED: &str = "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==";

    const AT: Timestamp = Timestamp::from_millis(1_614_265_330_000);

    fn parse(text: &str) -> SigningSecret {
        SigningSecret::parse(text).unwrap()
    }

    fn signed(secrets: &[SigningSecret]) -> String {
        let body = [
            Bytes::from_static(b"{\"test\""),
            Bytes::from_static(b": 2432232314}"),
        ];
        header_value(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", AT, &body)
    }

    #[test]
    fn the_specification_s_examples_are_signed_alike() {
        assert_eq!(
            signed(&[parse(SECRET)]),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert_eq!(signed(&[parse(PRIVATE)]), SIGNED);
    }

    #[test]
    fn during_a_rotation_all_live_secrets_sign_in_their_order() {
        let both = signed(&[parse(PRIVATE), parse(SECRET)]);
        assert_eq!(
            both,
            format!("{SIGNED} v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        );
        assert_eq!(signed(&[]), "");
    }

    #[test]
    fn a_secret_signs_until_it_ends_and_not_then() {
        let after = Timestamp::from_millis(1_614_265_330_001);
        let ending = |end| signed(&[parse(SECRET), parse(PRIVATE).with_expiry(Some(end))]);
        assert_eq!(ending(after).split(' ').count(), 2);
        assert_eq!(ending(AT), signed(&[parse(SECRET)]));
        assert_eq!(signed(&[parse(SECRET).with_expiry(Some(AT))]), "");
    }

    #[test]
    fn invalid_secrets_are_refused() {
        let check =
            |text: &str, error| assert_eq!(SigningSecret::parse(text).err(), Some(error), "{text}");
        check(
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            SigningSecretError::Prefix,
        );
        check(
            "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            SigningSecretError::Prefix,
        );
        check("whsec_???", SigningSecretError::Base64);
        check("whsec_AAAA", SigningSecretError::Length(3));
        check("whsk_???", SigningSecretError::Base64);
        check("whsk_AAAA", SigningSecretError::KeyLength(3));
        check(
            &format!("whsk_{}", STANDARD.encode([7; 64])),
            SigningSecretError::KeyPair,
        );
    }

    #[test]
    fn a_made_secret_is_one_of_its_kind() {
        for kind in [SignatureKind::V1, SignatureKind::V1a] {
            let made = kind.make_secret(&[7; MADE_SECRET_BYTES]);
            assert_eq!(SignatureKind::for_secret(made.expose()), kind);
            assert_eq!(
                parse(made.expose()).public_key().is_some(),
                kind == SignatureKind::V1a
            );
        }
    }

    #[test]
    fn debug_shows_nothing_of_it() {
        assert_eq!(format!("{:?}", parse(SECRET)), "[redacted]");
        assert_eq!(format!("{:?}", parse(PRIVATE)), "[redacted]");
    }
}
