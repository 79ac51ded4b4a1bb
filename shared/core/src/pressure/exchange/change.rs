//! A key with its value read: one change to the settings.

use std::time::Duration;

use super::super::settings::{PressureSettings, ThresholdSettings};
use super::super::table::{ThresholdRule, table};
use super::super::{Profile, Resource};
use super::KeyError;
use super::value::Value;

/// What `PercentagePhysicalMemoryUsedLimit` may be: the normal threshold, 4 less, stays above zero.
const MEMORY_LIMIT: std::ops::RangeInclusive<u64> = 5..=100;

/// How far the medium and the normal threshold of the machine's memory lie below its limit.
const MEMORY_STEPS: (u64, u64) = (2, 4);

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
}

/// A change to the settings.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Threshold(Resource, Border, Option<u64>),
    HistoryDepth(Resource, u32),
    MemoryLimit(u64),
    Flag(fn(&mut PressureSettings, bool), bool),
    Count(fn(&mut PressureSettings, u32), u32),
    Size(fn(&mut PressureSettings, u64), u64),
    Length(fn(&mut PressureSettings, Duration), Duration),
}

impl Meaning {
    /// The change that a value makes.
    pub(super) fn read(self, key: &str, value: &Value) -> Result<Change, KeyError> {
        let read = match self {
            Self::Threshold(resource, border) => {
                value.number().map(|number| Change::Threshold(resource, border, threshold(resource, number)))
            }
            Self::HistoryDepth(resource) => value.count().map(|depth| Change::HistoryDepth(resource, depth)),
            Self::MemoryLimit => {
                value.number().filter(|limit| MEMORY_LIMIT.contains(limit)).map(Change::MemoryLimit)
            }
            Self::Flag(set) => value.flag().map(|flag| Change::Flag(set, flag)),
            Self::Count(set) => value.count().map(|count| Change::Count(set, count)),
            Self::Size(set) => value.size().map(|bytes| Change::Size(set, bytes)),
            Self::Length(set) => value.length().map(|length| Change::Length(set, length)),
        };
        read.ok_or_else(|| KeyError::Value {
            key: key.to_owned(),
            value: value.to_string(),
            expected: self.expected(),
        })
    }

    const fn expected(self) -> &'static str {
        match self {
            Self::Threshold(..) | Self::HistoryDepth(_) | Self::Count(_) => "a whole number",
            Self::MemoryLimit => "a whole number from 5 to 100",
            Self::Flag(_) => "true or false",
            Self::Size(_) => "a number of bytes or a size such as 384 MB",
            Self::Length(_) => "a duration such as 00:00:02, 00:00:00.100 or PT2S",
        }
    }
}

impl Change {
    pub(super) fn apply(self, settings: &mut PressureSettings) {
        match self {
            Self::Threshold(resource, border, value) => {
                *border.of(settings.thresholds.entry(resource).or_default()) = value;
            }
            Self::HistoryDepth(resource, depth) => {
                settings.history_depths.insert(resource, depth);
            }
            Self::MemoryLimit(limit) => {
                let (medium, normal) = MEMORY_STEPS;
                let thresholds = ThresholdSettings {
                    normal: Some(limit - normal),
                    medium: Some(limit - medium),
                    high: Some(limit),
                };
                settings.thresholds.insert(Resource::SystemMemory, thresholds);
            }
            Self::Flag(set, flag) => set(settings, flag),
            Self::Count(set, count) => set(settings, count),
            Self::Size(set, bytes) => set(settings, bytes),
            Self::Length(set, length) => set(settings, length),
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

/// 0 leaves a threshold to its formula; where there is none, it is a threshold like any other, and refused later.
fn threshold(resource: Resource, number: u64) -> Option<u64> {
    // Whether there is a formula is the same in every profile.
    let row = table(Profile::Scaled).iter().find(|row| row.resource == resource);
    let has_formula = row.is_some_and(|row| !matches!(row.thresholds, ThresholdRule::Fixed(_)));
    Some(number).filter(|number| *number > 0 || !has_formula)
}
