//! A secret as users write it. It is masked wherever it is shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::model::pasted::trim_unseen;

/// The mask that is shown instead of a secret. Written back, it means "the one you have".
pub const MASKED: &str = "(masked)";

/// The beginning of a mask that names one of several secrets.
const MASK_START: &str = "(masked:";

/// The text that is hashed before the secret, so that the digest is of no use elsewhere.
const MASK_DOMAIN: &[u8] = b"posthaste mask\0";

/// A secret's text, or a mask, without what is around it where it was pasted. `Debug` is redacted;
/// `Serialize` is not, because the record in the state bucket must hold it: views call `masked`
/// first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(from = "String", into = "String")]
#[schema(value_type = String, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. The caller answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The mask of a secret.
    pub fn masked(&self) -> Self {
        Self(MASKED.to_owned())
    }

    /// The mask of one of several secrets. It names the secret by the first four bytes of a digest.
    /// They are enough to tell a few secrets apart. A secret has at least 24 random bytes, so
    /// they do not help to guess it. A mask stays as it is.
    pub fn masked_as_one_of_several(&self) -> Self {
        if self.is_masked() {
            return self.clone();
        }
        let digest = Sha256::new()
            .chain_update(MASK_DOMAIN)
            .chain_update(&self.0)
            .finalize();
        let shown = u32::from_be_bytes(std::array::from_fn(|at| digest[at]));
        Self(format!("{MASK_START}{shown:08x})"))
    }

    /// Whether this stands for a secret that is already there.
    pub fn is_masked(&self) -> bool {
        self.is_plain_mask() || (self.0.starts_with(MASK_START) && self.0.ends_with(')'))
    }

    /// Whether this is a mask that does not say which secret it stands for.
    pub fn is_plain_mask(&self) -> bool {
        self.0 == MASKED
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        let is_plain = trim_unseen(&text).len() == text.len();
        Self(if is_plain {
            text
        } else {
            trim_unseen(&text).to_owned()
        })
    }
}

impl From<SecretText> for String {
    fn from(secret: SecretText) -> Self {
        secret.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_characters_around_a_pasted_secret_are_left_out() {
        let read = |text: &str| serde_json::from_value::<SecretText>(text.into()).unwrap();
        for around in ["", "\n", "\u{feff}", " \u{a0}\u{200b}"] {
            let text = format!("{around}whsec_a{around}");
            assert_eq!(read(&text).expose(), "whsec_a", "{text:?}");
        }
        assert!(read("(masked)\n").is_plain_mask());
    }
}
