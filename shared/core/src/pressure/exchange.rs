//! The settings of back pressure under Exchange's names: a flat map of keys as they stand in
//! `EdgeTransport.exe.config`, with ours beside them in the same style. One reader for both hosts,
//! whatever the format the map comes in.
//!
//! A key that is left out keeps the profile's default. An unknown key is refused, and so is one
//! that has no counterpart here with any other value than the documents'.

mod meaning;
mod value;

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

pub use self::meaning::ExchangeKeyError;
use self::meaning::find_meaning;
use self::value::SettingValue;
use super::{PressureSettings, SettingsError, keys};

/// Most entries that are read: more than there are keys.
const ENTRIES_MAX: usize = 100;

/// The entries of a file of settings, as they stand there.
#[derive(Debug, Clone, Default)]
pub struct ExchangeSettings {
    entries: Vec<(String, SettingValue)>,
}

/// The reason why a file of settings is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// A key, or its value.
    #[error(transparent)]
    Key(#[from] ExchangeKeyError),
    /// The settings as a whole break a rule.
    #[error(transparent)]
    Rule(#[from] SettingsError),
}

impl ExchangeSettings {
    /// Lays the entries over `settings`, a profile's defaults, and checks the result.
    pub fn apply_to(
        &self,
        mut settings: PressureSettings,
    ) -> Result<PressureSettings, ExchangeError> {
        let was_on = settings.enable_resource_monitoring;
        for (key, value) in &self.entries {
            let meaning = find_meaning(key)?;
            if !value.is_nothing() {
                meaning.apply_value(key, value, &mut settings)?;
            }
        }
        if settings.enable_resource_monitoring && !was_on {
            return Err(ExchangeKeyError::SwitchedOff.into());
        }
        settings.validate()?;
        Ok(settings)
    }
}

impl ExchangeError {
    /// The key at fault, if it is one alone.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Key(ExchangeKeyError::Unknown(key) | ExchangeKeyError::Value { key, .. }) => {
                Some(key)
            }
            Self::Key(ExchangeKeyError::SwitchedOff) => Some(keys::ENABLED),
            Self::Rule(error) => error.key(),
        }
    }
}

impl<'de> Deserialize<'de> for ExchangeSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not `deserialize_map`: a file of nothing but comments changes nothing, and is no error.
        deserializer.deserialize_any(ExchangeVisitor)
    }
}

struct ExchangeVisitor;

impl<'de> Visitor<'de> for ExchangeVisitor {
    type Value = ExchangeSettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys of back pressure and their values")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(ExchangeSettings::default())
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        self.visit_unit()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            if entries.len() == ENTRIES_MAX {
                return Err(A::Error::custom(TooManySettingKeys));
            }
            entries.push(entry);
        }
        Ok(ExchangeSettings { entries })
    }
}

/// More entries than there are keys.
#[derive(Debug, thiserror::Error)]
#[error("more than {ENTRIES_MAX} keys")]
struct TooManySettingKeys;

#[cfg(test)]
mod tests;
