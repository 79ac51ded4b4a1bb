//! The rules that a setting must keep, and the words for a broken one: the key, its value, and what
//! is expected.

use std::fmt;
use std::time::Duration;

use super::table::FORMULA_STEPS;
use super::{Resource, STATE_FORGOTTEN_AFTER, keys};

/// The bound that a value is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingBound<T> {
    /// At least this.
    Min(T),
    /// At most this.
    Max(T),
    /// Between the two, both included.
    Within(T, T),
    /// At least the value of another key.
    AtLeast(&'static str, T),
    /// More than the value of another key.
    MoreThan(&'static str, T),
}

impl<T: fmt::Debug> fmt::Display for SettingBound<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Min(min) => write!(f, "at least {min:?}"),
            Self::Max(max) => write!(f, "at most {max:?}"),
            Self::Within(min, max) => write!(f, "{min:?} to {max:?}"),
            Self::AtLeast(key, value) => write!(f, "at least {key}, {value:?}"),
            Self::MoreThan(key, value) => write!(f, "more than {key}, {value:?}"),
        }
    }
}

impl<T: PartialOrd> SettingBound<T> {
    fn allows(&self, value: &T) -> bool {
        match self {
            Self::Min(min) | Self::AtLeast(_, min) => value >= min,
            Self::Max(max) => value <= max,
            Self::Within(min, max) => (min..=max).contains(&value),
            Self::MoreThan(_, other) => value > other,
        }
    }
}

/// A setting that makes no sense, and the rule it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A count, a share or a size.
    #[error("{key} is {value}; expected {expected}")]
    Number {
        /// The key of the setting.
        key: &'static str,
        /// The value as it was set, or as it follows from what was set.
        value: u64,
        /// The rule.
        expected: SettingBound<u64>,
    },
    /// A length of time.
    #[error("{key} is {value:?}; expected {expected}")]
    Length {
        /// The key of the setting.
        key: &'static str,
        /// The value as it was set.
        value: Duration,
        /// The rule.
        expected: SettingBound<Duration>,
    },
    /// A history for a resource that refuses at once.
    #[error("{0}: has no history depth, because it refuses producers at once")]
    NoHistory(Resource),
    /// A state that would be stale before its successor is there, or that never gets stale before
    /// it is forgotten.
    #[error(
        "stale after {stale:?}, expected more than {}, {interval:?}, and less than {STATE_FORGOTTEN_AFTER:?}",
        keys::INTERVAL
    )]
    StaleAfter {
        /// The age as it was set.
        stale: Duration,
        /// The interval.
        interval: Duration,
    },
    /// The disk is too small for its formula.
    #[error(
        "{resource}: a disk of {disk_bytes} bytes is too small for the formula \
         high = floor(100*(size - {reserve_bytes})/size), which must give at least {min}; \
         set {}, or a smaller {reserve_key}", .resource.setting_keys().high, min = FORMULA_STEPS.1 + 1
    )]
    DiskTooSmall {
        /// The disk.
        resource: Resource,
        /// The size of the disk.
        disk_bytes: u64,
        /// The bytes that the formula keeps free.
        reserve_bytes: u64,
        /// The key that says so.
        reserve_key: &'static str,
    },
}

impl SettingsError {
    /// The key at fault, if it is one alone.
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Self::Number { key, .. } | Self::Length { key, .. } => Some(key),
            Self::StaleAfter { .. } => Some(keys::INTERVAL),
            Self::NoHistory(_) | Self::DiskTooSmall { .. } => None,
        }
    }
}

pub(super) fn check_number(
    key: &'static str,
    value: u64,
    expected: SettingBound<u64>,
) -> Result<(), SettingsError> {
    if expected.allows(&value) {
        Ok(())
    } else {
        Err(SettingsError::Number {
            key,
            value,
            expected,
        })
    }
}

pub(super) fn check_length(
    key: &'static str,
    value: Duration,
    expected: SettingBound<Duration>,
) -> Result<(), SettingsError> {
    if expected.allows(&value) {
        Ok(())
    } else {
        Err(SettingsError::Length {
            key,
            value,
            expected,
        })
    }
}
