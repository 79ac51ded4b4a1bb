//! A secret as users write it. It is masked wherever it is shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What stands in the place of a secret that is shown. Written back, it means "the one you have".
pub const MASKED: &str = "(masked)";

/// A secret's text, or [`MASKED`]. `Debug` is redacted; `Serialize` is not, because the record in the state bucket
/// must hold it: views call `masked` first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What may be shown.
    pub fn masked(&self) -> Self {
        Self(MASKED.to_owned())
    }

    /// Whether this stands for the secret that is already there.
    pub fn is_masked(&self) -> bool {
        self.0 == MASKED
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
