//! Text that must not leak: its `Debug` is redacted and it is compared in constant time.

use std::fmt;

use subtle::ConstantTimeEq;

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

#[cfg(test)]
mod tests {
    use super::*;

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
