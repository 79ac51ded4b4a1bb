//! The meaning of each key, in one list, and the change that its value makes to the settings. The
//! keys of a resource come from the resource itself.

use std::time::Duration;

use super::value::SettingValue;
use crate::pressure::keys::{self, ResourceKeys};
use crate::pressure::table::FORMULA_STEPS;
use crate::pressure::{
    PressureProfile, PressureSettings, Resource, ThresholdRule, ThresholdSettings, rows_of_profile,
};

/// The range of `PercentagePhysicalMemoryUsedLimit`: the normal threshold, 4 less, stays above
/// zero.
const MEMORY_LIMIT: std::ops::RangeInclusive<u64> = 5..=100;

/// The time after which a message of a batch expires in the documents.
const ITEM_EXPIRY: Duration = Duration::from_mins(5);

/// The reason why it can be nothing else.
const ITEM_EXPIRY_EXPECTED: &str = "00:05:00, as the documents have it, because nothing here \
    corresponds to it: a batch ends with its commit, so that no message is ever left in it to expire";

/// The reason why a key is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeKeyError {
    /// There is no such key.
    #[error(
        "unknown key {0}; docs/src/reference/pressure-settings.md lists the keys of back pressure"
    )]
    Unknown(String),
    /// A key that switches on what the profile `off` switches off.
    #[error(
        "{} is true, but the pressure profile is off; expected one of the two alone",
        keys::ENABLED
    )]
    SwitchedOff,
    /// A value that is not of the key's kind, or changes nothing here.
    #[error("{key} is {value}; expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// The kind of value it should have.
        expected: &'static str,
    },
}

/// One of a resource's three thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThresholdBorder {
    Normal,
    Medium,
    High,
}

/// The meaning of a key.
#[derive(Clone, Copy)]
pub(super) enum KeyMeaning {
    /// A threshold of a resource; where a formula gives it, 0 leaves it to that.
    Threshold(Resource, ThresholdBorder),
    /// A threshold of the share of messages in flight; 0 leaves it to its default.
    InFlight(ThresholdBorder),
    /// A history depth, in polls.
    HistoryDepth(Resource),
    /// The limit of the machine's memory, from which its three thresholds follow.
    MemoryLimit,
    /// A switch.
    Flag(fn(&mut PressureSettings, bool)),
    /// A count.
    Count(fn(&mut PressureSettings, u32)),
    /// A size, in bytes.
    Size(fn(&mut PressureSettings, u64)),
    /// A length of time.
    Length(fn(&mut PressureSettings, Duration)),
    /// A length of time that nothing here corresponds to: the documents' own changes nothing, any
    /// other is refused.
    NoLengthBut(Duration, &'static str),
}

impl KeyMeaning {
    /// Changes the settings as this key with this value says.
    pub(super) fn apply_value(
        self,
        key: &str,
        value: &SettingValue,
        settings: &mut PressureSettings,
    ) -> Result<(), ExchangeKeyError> {
        self.apply_if_valid(value, settings)
            .ok_or_else(|| ExchangeKeyError::Value {
                key: key.to_owned(),
                value: value.to_string(),
                expected: self.expected_value(),
            })
    }

    /// `None`, and nothing is changed, where the value is not of its kind.
    fn apply_if_valid(self, value: &SettingValue, settings: &mut PressureSettings) -> Option<()> {
        match self {
            Self::Threshold(resource, border) => {
                let number = written_threshold(resource, value.as_number()?);
                *border.threshold_in(settings.thresholds.entry(resource).or_default()) = number;
            }
            Self::InFlight(border) => {
                *border.threshold_in(&mut settings.in_flight) =
                    Some(value.as_number()?).filter(|number| *number > 0);
            }
            Self::HistoryDepth(resource) => {
                settings.history_depths.insert(resource, value.as_count()?);
            }
            Self::MemoryLimit => {
                let limit = value
                    .as_number()
                    .filter(|limit| MEMORY_LIMIT.contains(limit))?;
                settings
                    .thresholds
                    .insert(Resource::SystemMemory, memory_thresholds(limit));
            }
            Self::Flag(set) => set(settings, value.as_flag()?),
            Self::Count(set) => set(settings, value.as_count()?),
            Self::Size(set) => set(settings, value.as_size()?),
            Self::Length(set) => set(settings, value.as_length()?),
            Self::NoLengthBut(only, _) => return (value.as_length()? == only).then_some(()),
        }
        Some(())
    }

    const fn expected_value(self) -> &'static str {
        match self {
            Self::Threshold(..) | Self::InFlight(_) | Self::HistoryDepth(_) | Self::Count(_) => {
                "a whole number"
            }
            Self::MemoryLimit => "a whole number from 5 to 100",
            Self::Flag(_) => "true or false",
            Self::Size(_) => "a number of bytes or a size such as 384 MB",
            Self::Length(_) => "a duration such as 00:00:02, 00:00:00.100 or PT2S",
            Self::NoLengthBut(_, expected) => expected,
        }
    }
}

impl ThresholdBorder {
    fn threshold_in(self, thresholds: &mut ThresholdSettings) -> &mut Option<u64> {
        match self {
            Self::Normal => &mut thresholds.normal,
            Self::Medium => &mut thresholds.medium,
            Self::High => &mut thresholds.high,
        }
    }
}

fn memory_thresholds(limit: u64) -> ThresholdSettings {
    let (medium, normal) = FORMULA_STEPS;
    ThresholdSettings {
        normal: Some(limit - normal),
        medium: Some(limit - medium),
        high: Some(limit),
    }
}

/// A threshold as written. 0 leaves it to its formula; without one, 0 is a threshold like any
/// other, and refused later.
fn written_threshold(resource: Resource, number: u64) -> Option<u64> {
    // Whether there is a formula is the same in every profile.
    let row = rows_of_profile(PressureProfile::Scaled)
        .iter()
        .find(|row| row.resource == resource);
    let has_formula = row.is_some_and(|row| !matches!(row.thresholds, ThresholdRule::Fixed(_)));
    Some(number).filter(|number| *number > 0 || !has_formula)
}

/// The keys that belong to no resource.
pub(super) const GENERAL: [(&str, KeyMeaning); 15] = [
    (
        keys::ENABLED,
        KeyMeaning::Flag(|settings, on| settings.enable_resource_monitoring = on),
    ),
    (
        keys::INTERVAL,
        KeyMeaning::Length(|settings, length| settings.interval = length),
    ),
    (
        keys::TARPIT_BASE,
        KeyMeaning::Length(|settings, length| settings.tarpit.base = length),
    ),
    (
        keys::TARPIT_START,
        KeyMeaning::Length(|settings, length| settings.tarpit.start = length),
    ),
    (
        keys::TARPIT_STEP,
        KeyMeaning::Length(|settings, length| settings.tarpit.step = length),
    ),
    (
        keys::TARPIT_MAX,
        KeyMeaning::Length(|settings, length| settings.tarpit.max = length),
    ),
    (
        keys::CHECKPOINT_DEPTH,
        KeyMeaning::Size(|settings, bytes| settings.disk.checkpoint_depth_bytes = bytes),
    ),
    (
        keys::DATABASE_RESERVE,
        KeyMeaning::Size(|settings, bytes| settings.disk.database_bytes = bytes),
    ),
    (
        keys::LOG_RESERVE_MAX,
        KeyMeaning::Size(|settings, bytes| settings.disk.log_bytes_max = bytes),
    ),
    (
        keys::DEHYDRATES,
        KeyMeaning::Flag(|settings, on| settings.dehydrates_for_memory = on),
    ),
    (
        keys::BATCH_COST,
        KeyMeaning::Flag(|settings, on| settings.batch_points.uses_cost = on),
    ),
    (
        keys::BATCH_SIZE,
        KeyMeaning::Count(|settings, count| settings.batch_points.batch_size = count),
    ),
    (
        keys::BATCH_TIMEOUT,
        KeyMeaning::Length(|settings, length| settings.batch_points.batch_timeout = length),
    ),
    (
        keys::BATCH_ITEM_EXPIRY,
        KeyMeaning::NoLengthBut(ITEM_EXPIRY, ITEM_EXPIRY_EXPECTED),
    ),
    (keys::MEMORY_LIMIT, KeyMeaning::MemoryLimit),
];

/// Finds the meaning of a key.
pub(super) fn find_meaning(key: &str) -> Result<KeyMeaning, ExchangeKeyError> {
    let general = GENERAL
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, meaning)| *meaning);
    let in_flight = || find_border(keys::IN_FLIGHT, key).map(KeyMeaning::InFlight);
    let of_resource = || {
        Resource::ALL
            .into_iter()
            .find_map(|resource| find_resource_meaning(resource, key))
    };
    general
        .or_else(in_flight)
        .or_else(of_resource)
        .ok_or_else(|| ExchangeKeyError::Unknown(key.to_owned()))
}

fn find_resource_meaning(resource: Resource, key: &str) -> Option<KeyMeaning> {
    let keys = resource.setting_keys();
    if keys.history_depth == Some(key) {
        return Some(KeyMeaning::HistoryDepth(resource));
    }
    find_border(keys, key).map(|border| KeyMeaning::Threshold(resource, border))
}

fn find_border(keys: ResourceKeys, key: &str) -> Option<ThresholdBorder> {
    let borders = [
        (keys.normal, ThresholdBorder::Normal),
        (keys.medium, ThresholdBorder::Medium),
        (keys.high, ThresholdBorder::High),
    ];
    borders
        .into_iter()
        .find_map(|(name, border)| (name == key).then_some(border))
}
