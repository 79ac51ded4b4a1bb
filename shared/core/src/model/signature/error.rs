//! Texts that are not signing secrets.

use crate::model::pasted::PastedError;

/// Why a text is not a signing secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SigningSecretError {
    /// A character in it is not seen.
    #[error("{0}")]
    Pasted(PastedError),
    /// Neither `whsec_` nor `whsk_` in front.
    #[error("a signing secret starts with whsec_ or whsk_")]
    Prefix,
    /// The rest is not base64.
    #[error("what follows whsec_ or whsk_ is not base64")]
    Base64,
    /// Too short to be safe, or too long.
    #[error("a whsec_ secret has 24 to 64 bytes, this one has {0}")]
    Length(usize),
    /// Neither a seed nor a seed with its public key.
    #[error("a whsk_ key has 32 bytes, or 64 with its public key, this one has {0}")]
    KeyLength(usize),
    /// The public key behind the seed is another one's.
    #[error("the two halves of the whsk_ key do not belong together")]
    KeyPair,
}
