//! Keys that are refused.

use crate::pressure::keys;

/// Why a key is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no such key.
    #[error("unknown key {0}; docs/reference/pressure-settings.md lists the keys of back pressure")]
    Unknown(String),
    /// It stands there twice, and which of them is meant cannot be told.
    #[error("{0} is set twice")]
    Twice(String),
    /// It switches on what the profile `off` switches off.
    #[error("{} is true, but the pressure profile is off; expected one of the two alone", keys::ENABLED)]
    SwitchedOff,
    /// Its value is not of its kind, or there is nothing here that it could change.
    #[error("{key} is {value}; expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}
