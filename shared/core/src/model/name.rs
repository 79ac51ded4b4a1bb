//! Names of topics and subscriptions, parsed once.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::model::limits::NAME_BYTES_MAX;

/// A name no entity may have: dead-letter objects of unreadable messages live under `MALFORMED/`.
const RESERVED: &str = "malformed";

/// Why a text is not a name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    /// Wrong characters or length.
    #[error("{0:?} is not a name: expected [A-Za-z0-9][A-Za-z0-9-]{{0,63}}")]
    Form(String),
    /// The name is kept for the program itself.
    #[error("{0:?} is reserved")]
    Reserved(String),
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        /// Guaranteed `[A-Za-z0-9][A-Za-z0-9-]{0,63}` and not reserved. Case is kept as written;
        /// look-ups compare [`folded`](Self::folded) forms.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Parses a name.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                check_name(text).map(|()| Self(text.into()))
            }

            /// The name as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The name as written, shared.
            pub fn shared(&self) -> Arc<str> {
                Arc::clone(&self.0)
            }

            /// The form in which names are compared and stored: lower case.
            pub fn folded(&self) -> String {
                self.0.to_ascii_lowercase()
            }

            /// The same, borrowed where the name is in lower case already.
            pub fn folded_text(&self) -> Cow<'_, str> {
                if self.0.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    Cow::Owned(self.folded())
                } else {
                    Cow::Borrowed(&self.0)
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }

    };
}

name!(
    /// The name of a topic, unique without regard to case.
    TopicName
);
name!(
    /// The name of a subscription, unique within its topic without regard to case.
    SubscriptionName
);

fn check_name(text: &str) -> Result<(), NameError> {
    let form = text.len() <= NAME_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !form {
        return Err(NameError::Form(text.to_owned()));
    }
    if text.eq_ignore_ascii_case(RESERVED) {
        return Err(NameError::Reserved(text.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_digits_and_hyphens() {
        for good in ["a", "Orders", "0", "a-", "billing-2", &"x".repeat(64)] {
            assert_eq!(
                TopicName::parse(good).map(|name| name.to_string()),
                Ok(good.to_owned())
            );
        }
        for bad in ["", "-a", "a.b", "a/b", "ä", "a b", "a\r\n", &"x".repeat(65)] {
            assert_eq!(TopicName::parse(bad), Err(NameError::Form(bad.to_owned())));
        }
    }

    #[test]
    fn malformed_is_reserved_in_any_case() {
        assert_eq!(
            SubscriptionName::parse("MalFormed"),
            Err(NameError::Reserved("MalFormed".to_owned()))
        );
    }
}
