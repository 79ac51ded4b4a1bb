//! What a key can mean, and how its value changes the settings.

use std::time::Duration;

use super::super::settings::{PressureSettings, ThresholdSettings};
use super::super::table::{FORMULA_STEPS, ThresholdRule, table};
use super::super::{Profile, Resource};
use super::key_error::KeyError;
use super::value::Value;

/// What `PercentagePhysicalMemoryUsedLimit` may be: the normal threshold, 4 less, stays above zero.
const MEMORY_LIMIT: std::ops::RangeInclusive<u64> = 5..=100;

/// One of a resource's three thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Border {
    Normal,
    Medium,
    High,
}

/// What a key means.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// A threshold of a resource; where a formula gives it, 0 leaves it to that.
    Threshold(Resource, Border),
    /// A threshold of the share of messages in flight; 0 leaves it to its default.
    InFlight(Border),
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
    /// A length of time that nothing here corresponds to: the documents' own changes nothing, any other is
    /// refused.
    NoLengthBut(Duration, &'static str),
}

impl Meaning {
    /// Changes the settings as this key with this value says.
    pub(super) fn set(
        self,
        key: &str,
        value: &Value,
        settings: &mut PressureSettings,
    ) -> Result<(), KeyError> {
        self.read(value, settings).ok_or_else(|| KeyError::Value {
            key: key.to_owned(),
            value: value.to_string(),
            expected: self.expected(),
        })
    }

    /// `None`, and nothing is changed, where the value is not of its kind.
    fn read(self, value: &Value, settings: &mut PressureSettings) -> Option<()> {
        match self {
            Self::Threshold(resource, border) => {
                let number = threshold(resource, value.number()?);
                *border.of(settings.thresholds.entry(resource).or_default()) = number;
            }
            Self::InFlight(border) => {
                *border.of(&mut settings.in_flight) = Some(value.number()?).filter(|number| *number > 0);
            }
            Self::HistoryDepth(resource) => {
                settings.history_depths.insert(resource, value.count()?);
            }
            Self::MemoryLimit => {
                let limit = value.number().filter(|limit| MEMORY_LIMIT.contains(limit))?;
                settings.thresholds.insert(Resource::SystemMemory, memory_thresholds(limit));
            }
            Self::Flag(set) => set(settings, value.flag()?),
            Self::Count(set) => set(settings, value.count()?),
            Self::Size(set) => set(settings, value.size()?),
            Self::Length(set) => set(settings, value.length()?),
            Self::NoLengthBut(only, _) => return (value.length()? == only).then_some(()),
        }
        Some(())
    }

    const fn expected(self) -> &'static str {
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

impl Border {
    fn of(self, thresholds: &mut ThresholdSettings) -> &mut Option<u64> {
        match self {
            Self::Normal => &mut thresholds.normal,
            Self::Medium => &mut thresholds.medium,
            Self::High => &mut thresholds.high,
        }
    }
}

fn memory_thresholds(limit: u64) -> ThresholdSettings {
    let (medium, normal) = FORMULA_STEPS;
    ThresholdSettings { normal: Some(limit - normal), medium: Some(limit - medium), high: Some(limit) }
}

/// 0 leaves a threshold to its formula; where there is none, it is a threshold like any other, and refused
/// later.
fn threshold(resource: Resource, number: u64) -> Option<u64> {
    // Whether there is a formula is the same in every profile.
    let row = table(Profile::Scaled).iter().find(|row| row.resource == resource);
    let has_formula = row.is_some_and(|row| !matches!(row.thresholds, ThresholdRule::Fixed(_)));
    Some(number).filter(|number| *number > 0 || !has_formula)
}
