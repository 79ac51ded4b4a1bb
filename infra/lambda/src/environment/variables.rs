//! Reading variables one by one, and keeping every problem, so that all of a function's are told at once.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use posthaste_core::api::LinkSettings;
use posthaste_core::circuit::HealthSettings;
use serde::de::DeserializeOwned;

use super::kinds::Kind;
use super::{LINK_SETTINGS, REGISTRY_MAX_AGE_SECONDS};

/// Seconds after which a topic is looked up again where nothing is set: how late a change may be seen.
const REGISTRY_MAX_AGE_SECS_DEFAULT: u16 = 5;

/// What may be set instead: at most five minutes, because a key that was taken away still opens its topic until then.
const REGISTRY_MAX_AGE_SECS: RangeInclusive<u16> = 0..=300;

/// What is wrong with one variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// It is needed, and absent or empty.
    #[error("{name} is not set, expected {expected}")]
    NotSet {
        /// The variable.
        name: &'static str,
        /// What it should be.
        expected: String,
    },
    /// Its value means nothing.
    #[error("{name} is {value:?}, expected {expected}")]
    Unusable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: String,
    },
    /// It holds several settings, and one of them is refused.
    #[error("{name}: {problem}")]
    Refused {
        /// The variable.
        name: &'static str,
        /// Which of them, and why.
        problem: String,
    },
    /// Its value means nothing, and is kept to itself because it may be a secret.
    #[error("{name} is not usable, expected {expected}")]
    UnusableSecret {
        /// The variable.
        name: &'static str,
        /// What it should be.
        expected: String,
    },
}

/// A function's environment cannot be used: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct EnvironmentError {
    /// The problems, in the order in which the variables are read; at least one.
    pub problems: Vec<VariableError>,
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<_> = self.problems.iter().map(ToString::to_string).collect();
        f.write_str(&problems.join("; "))
    }
}

/// Reads variables. A variable that cannot be used is noted and answered with a placeholder, so that the others are
/// read all the same; [`Variables::finish`] lets no placeholder out.
pub(crate) struct Variables<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<VariableError>,
}

impl<'a> Variables<'a> {
    pub(crate) fn new(read: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { read, problems: Vec::new() }
    }

    /// A variable that must be set.
    pub(crate) fn required<T: Default>(&mut self, name: &'static str, kind: &Kind<T>) -> T {
        if let Some(value) = self.value(name) {
            return self.parse(name, value, kind).unwrap_or_default();
        }
        self.problems.push(VariableError::NotSet { name, expected: kind.expected.to_owned() });
        T::default()
    }

    /// A variable that may be left out.
    pub(crate) fn optional<T>(&mut self, name: &'static str, kind: &Kind<T>) -> Option<T> {
        let value = self.value(name)?;
        self.parse(name, value, kind)
    }

    /// A whole number that may be left out.
    pub(crate) fn number(&mut self, name: &'static str, default: u16, range: RangeInclusive<u16>) -> u16 {
        self.number_if_set(name, range).unwrap_or(default)
    }

    /// A whole number, if it is set.
    pub(crate) fn number_if_set(&mut self, name: &'static str, range: RangeInclusive<u16>) -> Option<u16> {
        let value = self.value(name)?;
        let number = value.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            self.problems.push(VariableError::Unusable { name, value, expected });
        }
        number
    }

    /// JSON that may be left out, whose own errors say what is wrong with it.
    pub(crate) fn json<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let value = self.value(name)?;
        serde_json::from_str(&value).map_err(|error| self.refuse(name, &error)).ok()
    }

    /// Notes that what a variable says is refused.
    pub(crate) fn refuse(&mut self, name: &'static str, error: &dyn std::error::Error) {
        self.problems.push(VariableError::Refused { name, problem: error.to_string() });
    }

    /// When endpoints that fail are left alone, and for how long.
    pub(crate) fn link_settings(&mut self) -> HealthSettings {
        let written: LinkSettings = self.json(LINK_SETTINGS).unwrap_or_default();
        written.applied().unwrap_or_else(|error| {
            self.refuse(LINK_SETTINGS, &error);
            HealthSettings::default()
        })
    }

    /// How old a topic may be before it is looked up again.
    pub(crate) fn registry_max_age(&mut self) -> Duration {
        let secs =
            self.number(REGISTRY_MAX_AGE_SECONDS, REGISTRY_MAX_AGE_SECS_DEFAULT, REGISTRY_MAX_AGE_SECS);
        Duration::from_secs(secs.into())
    }

    /// The settings that were read, unless there was a problem with any.
    pub(crate) fn finish<T>(self, settings: T) -> Result<T, EnvironmentError> {
        if self.problems.is_empty() {
            Ok(settings)
        } else {
            Err(EnvironmentError { problems: self.problems })
        }
    }

    /// The value. A template passes on a parameter that was left out as an empty text, so empty is not set.
    fn value(&self, name: &str) -> Option<String> {
        (self.read)(name).filter(|value| !value.is_empty())
    }

    fn parse<T>(&mut self, name: &'static str, value: String, kind: &Kind<T>) -> Option<T> {
        let parsed = (kind.parse)(&value);
        if parsed.is_none() {
            let expected = kind.expected.to_owned();
            self.problems.push(if kind.is_secret {
                VariableError::UnusableSecret { name, expected }
            } else {
                VariableError::Unusable { name, value, expected }
            });
        }
        parsed
    }
}
