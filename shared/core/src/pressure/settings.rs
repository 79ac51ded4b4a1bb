//! What an operator may change about back pressure, with Exchange's defaults, and the rules a setting must keep.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::admit::{STATE_FORGOTTEN_AFTER, STATE_STALE_AFTER_POLLS, Staleness};
use super::formula::FORMULA_STEPS;
use super::readings::Readings;
use super::table::{Row, Thresholds, table};
use super::{Profile, Resource};

pub(super) const MIB: u64 = 1024 * 1024;
pub(super) const GIB: u64 = 1024 * MIB;

/// Shortest and longest time between two polls.
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(5);

/// Longest tarpit delay that may be set: beyond it no client waits any more.
pub const TARPIT_LIMIT: Duration = Duration::from_mins(5);

/// The tarpit: how long acknowledgements wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TarpitSettings {
    /// The wait after the first poll under pressure (`SMTPStartThrottlingDelayInterval`).
    pub start: Duration,
    /// How much longer after each further one, and shorter after each one without
    /// (`SMTPStepThrottlingDelayInterval`).
    pub step: Duration,
    /// The longest wait (`SMTPMaxThrottlingDelayInterval`).
    pub max: Duration,
}

/// The constants in the disks' formulas, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskConstants {
    /// What is kept free on the database's disk: 500 MB.
    pub database_bytes: u64,
    /// The most that is kept free on the journal's disk: 5 GB.
    pub log_bytes_max: u64,
    /// A third of what is else kept free there: 384 MB (`DatabaseCheckPointDepthMax`).
    pub checkpoint_depth_bytes: u64,
}

/// All settings of back pressure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PressureSettings {
    /// The master switch (`EnableResourceMonitoring`).
    pub enable_resource_monitoring: bool,
    /// The time between two polls (`ResourceMonitoringInterval`).
    pub interval: Duration,
    /// When the state counts as stale; where it is `None`, after three polls.
    pub stale_after: Option<Duration>,
    /// Which rows act.
    pub profile: Profile,
    /// Thresholds that take the place of the table's or a formula's.
    pub thresholds: BTreeMap<Resource, Thresholds>,
    /// History depths that take the place of the table's, in polls.
    pub history_depths: BTreeMap<Resource, u32>,
    /// The tarpit.
    pub tarpit: TarpitSettings,
    /// The constants in the disks' formulas.
    pub disk: DiskConstants,
}

/// A setting that makes no sense, and the rule it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Thresholds out of order.
    #[error(
        "{resource}: thresholds normal {}, medium {}, high {}; expected 1 <= normal <= medium <= high",
        .thresholds.normal, .thresholds.medium, .thresholds.high
    )]
    ThresholdOrder {
        /// Whose.
        resource: Resource,
        /// As they were set.
        thresholds: Thresholds,
    },
    /// A share of more than everything.
    #[error("{resource}: high threshold {high}, expected at most 100 per cent")]
    ThresholdPercent {
        /// Whose.
        resource: Resource,
        /// As it was set.
        high: u64,
    },
    /// A history of no polls.
    #[error("{0}: history depth 0, expected at least 1 poll")]
    HistoryDepth(Resource),
    /// A history for a resource that refuses at once.
    #[error("{0}: has no history depth, because it refuses producers at once")]
    NoHistory(Resource),
    /// Tarpit delays out of order.
    #[error(
        "tarpit start {start:?}, step {step:?}, max {max:?}; expected 0 < start <= max <= {TARPIT_LIMIT:?} and 0 < step"
    )]
    Tarpit {
        /// The first delay.
        start: Duration,
        /// The step.
        step: Duration,
        /// The longest delay.
        max: Duration,
    },
    /// Polls too often or too seldom.
    #[error("interval {0:?}, expected {start:?} to {end:?}", start = INTERVAL.start(), end = INTERVAL.end())]
    Interval(Duration),
    /// A state that would be stale before its successor is there, or that never gets stale before it is forgotten.
    #[error(
        "stale after {stale:?}, expected more than the interval of {interval:?} and less than {STATE_FORGOTTEN_AFTER:?}"
    )]
    StaleAfter {
        /// As it was set.
        stale: Duration,
        /// The interval.
        interval: Duration,
    },
    /// The disk is too small for its formula.
    #[error(
        "{resource}: a disk of {disk_bytes} bytes is too small for the formula \
         high = floor(100*(size - {reserve_bytes})/size), which must give at least {min}; \
         set its thresholds, or smaller constants", min = FORMULA_STEPS.1 + 1
    )]
    DiskTooSmall {
        /// Which disk.
        resource: Resource,
        /// Its size.
        disk_bytes: u64,
        /// What the formula keeps free.
        reserve_bytes: u64,
    },
}

impl Default for PressureSettings {
    fn default() -> Self {
        Self {
            enable_resource_monitoring: true,
            interval: Duration::from_secs(2),
            stale_after: None,
            profile: Profile::default(),
            thresholds: BTreeMap::new(),
            history_depths: BTreeMap::new(),
            tarpit: TarpitSettings::default(),
            disk: DiskConstants::default(),
        }
    }
}

impl Default for TarpitSettings {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self { start: secs(10), step: secs(5), max: secs(55) }
    }
}

impl Default for DiskConstants {
    fn default() -> Self {
        Self { database_bytes: 500 * MIB, log_bytes_max: 5 * GIB, checkpoint_depth_bytes: 384 * MIB }
    }
}

impl PressureSettings {
    /// Checks what can be checked without knowing the disks.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if !INTERVAL.contains(&self.interval) {
            return Err(SettingsError::Interval(self.interval));
        }
        let (stale, interval) = (self.staleness().stale_after, self.interval);
        if stale <= interval || stale >= STATE_FORGOTTEN_AFTER {
            return Err(SettingsError::StaleAfter { stale, interval });
        }
        self.tarpit.validate()?;
        self.thresholds.iter().try_for_each(|(resource, thresholds)| check_order(*resource, *thresholds))?;
        self.history_depths.iter().try_for_each(|(resource, depth)| check_depth(*resource, *depth))
    }

    /// Checks that the disks a first poll found are large enough for their formulas.
    pub fn validate_disks(&self, readings: &Readings) -> Result<(), SettingsError> {
        for row in table(self.profile).iter().filter(|row| row.resource.is_disk()) {
            self.thresholds_of(row, readings)?;
        }
        Ok(())
    }

    /// From when a state is stale and from when it is forgotten.
    pub fn staleness(&self) -> Staleness {
        let stale_after = self.stale_after.unwrap_or(self.interval.saturating_mul(STATE_STALE_AFTER_POLLS));
        Staleness { stale_after, forgotten_after: STATE_FORGOTTEN_AFTER }
    }

    /// The history depth of a row, in polls.
    pub fn history_depth_of(&self, row: &Row) -> Option<u32> {
        let depth = row.history_depth?;
        Some(self.history_depths.get(&row.resource).copied().unwrap_or(depth))
    }
}

impl TarpitSettings {
    fn validate(self) -> Result<(), SettingsError> {
        let Self { start, step, max } = self;
        if start.is_zero() || step.is_zero() || start > max || max > TARPIT_LIMIT {
            return Err(SettingsError::Tarpit { start, step, max });
        }
        Ok(())
    }
}

fn check_order(resource: Resource, thresholds: Thresholds) -> Result<(), SettingsError> {
    let Thresholds { normal, medium, high } = thresholds;
    if normal == 0 || normal > medium || medium > high {
        return Err(SettingsError::ThresholdOrder { resource, thresholds });
    }
    if resource.is_percentage() && high > 100 {
        return Err(SettingsError::ThresholdPercent { resource, high });
    }
    Ok(())
}

fn check_depth(resource: Resource, depth: u32) -> Result<(), SettingsError> {
    // Whether there is a history is the same in every profile.
    let has_history =
        table(Profile::Scaled).iter().any(|row| row.resource == resource && row.history_depth.is_some());
    match (has_history, depth) {
        (false, _) => Err(SettingsError::NoHistory(resource)),
        (true, 0) => Err(SettingsError::HistoryDepth(resource)),
        (true, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(change: impl FnOnce(&mut PressureSettings)) -> String {
        let mut settings = PressureSettings::default();
        change(&mut settings);
        settings.validate().unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_keep_every_rule() {
        assert_eq!(PressureSettings::default().validate(), Ok(()));
    }

    #[test]
    fn thresholds_out_of_order_are_refused_with_the_rule() {
        for (normal, medium, high) in [(4000, 2000, 10_000), (0, 1, 2), (1, 3, 2), (5, 6, 4)] {
            let thresholds = Thresholds::new(normal, medium, high);
            let text = rule(|s| assert_eq!(s.thresholds.insert(Resource::SubmissionQueue, thresholds), None));
            assert_eq!(
                text,
                format!(
                    "submission-queue: thresholds normal {normal}, medium {medium}, high {high}; \
                     expected 1 <= normal <= medium <= high"
                )
            );
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_rule_it_breaks() {
        let over = Thresholds::new(90, 95, 101);
        assert_eq!(
            rule(|s| assert_eq!(s.thresholds.insert(Resource::SystemMemory, over), None)),
            "system-memory: high threshold 101, expected at most 100 per cent"
        );
        assert_eq!(
            rule(|s| assert_eq!(s.history_depths.insert(Resource::DrainTime, 0), None)),
            "drain-time: history depth 0, expected at least 1 poll"
        );
        assert_eq!(
            rule(|s| assert_eq!(s.history_depths.insert(Resource::LogDisk, 3), None)),
            "log-disk: has no history depth, because it refuses producers at once"
        );
        assert_eq!(rule(|s| s.interval = Duration::ZERO), "interval 0ns, expected 100ms to 300s");
        assert_eq!(
            rule(|s| s.stale_after = Some(Duration::from_secs(2))),
            "stale after 2s, expected more than the interval of 2s and less than 900s"
        );
        assert_eq!(
            rule(|s| s.tarpit.start = Duration::from_secs(56)),
            "tarpit start 56s, step 5s, max 55s; expected 0 < start <= max <= 300s and 0 < step"
        );
    }
}
