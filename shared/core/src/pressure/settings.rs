//! Settings of back pressure, with Exchange's defaults, and the rules that a setting must keep.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{
    DatabaseSpace, PressureProfile, Resource, ResourceReadings, ResourceRow, STATE_FORGOTTEN_AFTER,
    STATE_STALE_AFTER_POLLS, SettingBound, SettingsError, keys, rows_of_profile, rule,
};
use crate::model::SQS_IN_FLIGHT_MAX;

pub(super) const MIB: u64 = 1024 * 1024;
pub(super) const GIB: u64 = 1024 * MIB;

/// Shortest and longest time between two polls. Three of the longest pass before a state is
/// forgotten.
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(4);

/// Shortest and longest time that a batch may take messages.
const BATCH_TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_mins(1);

/// Longest tarpit delay that may be set: beyond it no client waits any more.
pub const TARPIT_LIMIT: Duration = Duration::from_mins(5);

/// The tarpit: how long acknowledgements wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TarpitSettings {
    /// The wait of every acknowledgement, also at Normal (`SMTPBaseThrottlingDelayInterval`). The
    /// others are as long as they say, never added to it.
    pub base: Duration,
    /// The wait after the first poll under pressure (`SMTPStartThrottlingDelayInterval`).
    pub start: Duration,
    /// The time that each further poll adds, and each one without pressure takes off
    /// (`SMTPStepThrottlingDelayInterval`).
    pub step: Duration,
    /// The longest wait (`SMTPMaxThrottlingDelayInterval`).
    pub max: Duration,
}

/// The constants in the disks' formulas, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskConstants {
    /// The bytes kept free on the database's disk: 500 MB.
    pub database_bytes: u64,
    /// The most that is kept free on the journal's disk: 5 GB.
    pub log_bytes_max: u64,
    /// A third of what is else kept free there: 384 MB (`DatabaseCheckPointDepthMax`).
    pub checkpoint_depth_bytes: u64,
}

/// Thresholds as an operator sets them. What is left out follows from the row of the table: it
/// stands there, or its formula gives the high one, and each lower one is 2 less than the next
/// higher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThresholdSettings {
    /// The normal threshold: below it the level goes back to Normal.
    pub normal: Option<u64>,
    /// The threshold from which the level is Medium.
    pub medium: Option<u64>,
    /// The threshold from which the level is High.
    pub high: Option<u64>,
}

/// The counting of batch points in the embedded store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPointSettings {
    /// Whether a large event counts as several (`BatchPointUseCostForPressure`).
    pub uses_cost: bool,
    /// Messages that make a batch (`BatchPointBatchSize`).
    pub batch_size: u32,
    /// The time for which a batch takes messages (`BatchPointBatchTimeout`).
    pub batch_timeout: Duration,
}

/// All settings of back pressure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PressureSettings {
    /// The master switch (`EnableResourceMonitoring`).
    pub enable_resource_monitoring: bool,
    /// The time between two polls (`ResourceMonitoringInterval`).
    pub interval: Duration,
    /// The age from which the state is stale; three polls where it is `None`.
    pub stale_after: Option<Duration>,
    /// The profile, which says which rows act.
    pub profile: PressureProfile,
    /// Thresholds that take the place of the table's or a formula's.
    pub thresholds: BTreeMap<Resource, ThresholdSettings>,
    /// Thresholds of the share of messages in flight, which on AWS takes the place of the
    /// database's disk.
    pub in_flight: ThresholdSettings,
    /// The most messages that deliver may have in flight there: its invocations, each with a full
    /// batch, as far as a queue allows it.
    pub in_flight_max: u64,
    /// History depths that take the place of the table's, in polls.
    pub history_depths: BTreeMap<Resource, u32>,
    /// The tarpit.
    pub tarpit: TarpitSettings,
    /// The constants in the disks' formulas.
    pub disk: DiskConstants,
    /// Whether memory under pressure sends payloads to the object store
    /// (`DehydrateMessagesUnderMemoryPressure`).
    pub dehydrates_for_memory: bool,
    /// The counting of batch points.
    pub batch_points: BatchPointSettings,
    /// The share of the free disk, in per cent, above which the waiting messages of one subscription
    /// slow its topic, whatever the others of the topic do.
    pub subscription_disk_percent: u64,
}

/// Default of [`PressureSettings::subscription_disk_percent`].
pub const SUBSCRIPTION_DISK_PERCENT: u64 = 10;

impl Default for PressureSettings {
    fn default() -> Self {
        Self {
            enable_resource_monitoring: true,
            interval: Duration::from_secs(2),
            stale_after: None,
            profile: PressureProfile::default(),
            thresholds: BTreeMap::new(),
            in_flight: ThresholdSettings::default(),
            in_flight_max: SQS_IN_FLIGHT_MAX,
            history_depths: BTreeMap::new(),
            tarpit: TarpitSettings::default(),
            disk: DiskConstants::default(),
            dehydrates_for_memory: true,
            batch_points: BatchPointSettings::default(),
            subscription_disk_percent: SUBSCRIPTION_DISK_PERCENT,
        }
    }
}

impl Default for TarpitSettings {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            base: Duration::ZERO,
            start: secs(10),
            step: secs(5),
            max: secs(55),
        }
    }
}

impl Default for BatchPointSettings {
    fn default() -> Self {
        Self {
            uses_cost: true,
            batch_size: 40,
            batch_timeout: Duration::from_millis(100),
        }
    }
}

impl Default for DiskConstants {
    fn default() -> Self {
        Self {
            database_bytes: 500 * MIB,
            log_bytes_max: 5 * GIB,
            checkpoint_depth_bytes: 384 * MIB,
        }
    }
}

impl PressureSettings {
    /// Checks what can be checked without knowing the machine.
    pub fn validate(&self) -> Result<(), SettingsError> {
        self.validate_interval(INTERVAL)?;
        let stale = self.stale_after();
        let interval = self.interval;
        if stale <= interval || stale >= STATE_FORGOTTEN_AFTER {
            return Err(SettingsError::StaleAfter { stale, interval });
        }
        self.tarpit.validate()?;
        self.disk.validate()?;
        self.batch_points.validate()?;
        self.history_depths
            .iter()
            .try_for_each(|(resource, depth)| check_depth(*resource, *depth))?;
        self.thresholds_in_flight()?;
        self.validate_machine(&ResourceReadings::default())
    }

    /// Checks that polls are as often as a host can have them.
    pub fn validate_interval(&self, range: RangeInclusive<Duration>) -> Result<(), SettingsError> {
        rule::check_length(
            keys::INTERVAL,
            self.interval,
            SettingBound::Within(*range.start(), *range.end()),
        )
    }

    /// Checks what depends on the machine as a first poll found it: whether its disks are large
    /// enough for their formulas, and whether the thresholds that were set fit those that
    /// follow from its disks and memory.
    pub fn validate_machine(&self, readings: &ResourceReadings) -> Result<(), SettingsError> {
        rows_of_profile(self.profile)
            .iter()
            .try_for_each(|row| self.thresholds_of(row, readings).map(drop))
    }

    /// The rows whose thresholds do not fit what was read, each with the rule: a disk may shrink
    /// while the program runs.
    pub fn misfit_rows(&self, readings: &ResourceReadings) -> Vec<(Resource, SettingsError)> {
        let rows = rows_of_profile(self.profile).iter();
        rows.filter_map(|row| Some((row.resource, self.thresholds_of(row, readings).err()?)))
            .collect()
    }

    /// Whether subscriptions that are limited by themselves are left out of what the installation
    /// is judged by. The documents' profiles count everything.
    pub fn leaves_out_self_limited(&self) -> bool {
        self.profile == PressureProfile::Scaled
    }

    /// The drain time below which no topic is slow.
    pub fn slow_drain_secs(&self) -> u64 {
        let row = rows_of_profile(self.profile)
            .iter()
            .find(|row| row.resource == Resource::DrainTime);
        let thresholds =
            row.and_then(|row| self.thresholds_of(row, &ResourceReadings::default()).ok()?);
        thresholds.map_or(0, |thresholds| thresholds.normal)
    }

    /// The most bytes that the waiting messages of one subscription may take before its topic is
    /// judged by it; `None` where there is no disk.
    pub fn subscription_bytes_max(&self, database: Option<DatabaseSpace>) -> Option<u64> {
        match database? {
            DatabaseSpace::Disk(disk) => {
                Some(disk.free_bytes() / 100 * self.subscription_disk_percent)
            }
            DatabaseSpace::InFlight { .. } => None,
        }
    }

    /// The age from which a state is stale.
    pub fn stale_after(&self) -> Duration {
        self.stale_after
            .unwrap_or(self.interval.saturating_mul(STATE_STALE_AFTER_POLLS))
    }

    /// The history depth of a row, in polls.
    pub fn history_depth_of(&self, row: &ResourceRow) -> Option<u32> {
        let depth = row.history_depth?;
        Some(
            self.history_depths
                .get(&row.resource)
                .copied()
                .unwrap_or(depth),
        )
    }
}

impl TarpitSettings {
    fn validate(self) -> Result<(), SettingsError> {
        let Self {
            base,
            start,
            step,
            max,
        } = self;
        rule::check_length(
            keys::TARPIT_START,
            start,
            SettingBound::MoreThan(keys::TARPIT_BASE, base),
        )?;
        rule::check_length(
            keys::TARPIT_STEP,
            step,
            SettingBound::Min(Duration::from_millis(1)),
        )?;
        rule::check_length(
            keys::TARPIT_MAX,
            max,
            SettingBound::AtLeast(keys::TARPIT_START, start),
        )?;
        rule::check_length(keys::TARPIT_MAX, max, SettingBound::Max(TARPIT_LIMIT))
    }
}

impl DiskConstants {
    fn validate(self) -> Result<(), SettingsError> {
        rule::check_number(
            keys::DATABASE_RESERVE,
            self.database_bytes,
            SettingBound::Min(1),
        )?;
        rule::check_number(
            keys::LOG_RESERVE_MAX,
            self.log_bytes_max,
            SettingBound::Min(1),
        )?;
        rule::check_number(
            keys::CHECKPOINT_DEPTH,
            self.checkpoint_depth_bytes,
            SettingBound::Min(1),
        )
    }
}

impl BatchPointSettings {
    fn validate(self) -> Result<(), SettingsError> {
        rule::check_number(
            keys::BATCH_SIZE,
            self.batch_size.into(),
            SettingBound::Min(1),
        )?;
        let timeout = SettingBound::Within(*BATCH_TIMEOUT.start(), *BATCH_TIMEOUT.end());
        rule::check_length(keys::BATCH_TIMEOUT, self.batch_timeout, timeout)
    }
}

fn check_depth(resource: Resource, depth: u32) -> Result<(), SettingsError> {
    match resource.setting_keys().history_depth {
        Some(key) => rule::check_number(key, depth.into(), SettingBound::Min(1)),
        None => Err(SettingsError::NoHistory(resource)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pressure::ByteUsage;

    fn rule(change: impl FnOnce(&mut PressureSettings)) -> String {
        let mut settings = PressureSettings::default();
        change(&mut settings);
        settings.validate().unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_keep_every_rule() {
        assert_eq!(PressureSettings::default().validate(), Ok(()));
    }

    /// The rule that these thresholds of the submission queue (2000, 4000, 10,000 where none is
    /// given) break.
    fn check(thresholds: [Option<u64>; 3], expected: &str) {
        let [normal, medium, high] = thresholds;
        let set = ThresholdSettings {
            normal,
            medium,
            high,
        };
        let text = rule(|s| assert_eq!(s.thresholds.insert(Resource::SubmissionQueue, set), None));
        assert_eq!(text, expected, "{thresholds:?}");
    }

    #[test]
    fn thresholds_out_of_order_are_refused_with_the_rule() {
        check(
            [None, Some(1000), None],
            "SubmissionQueueMediumThreshold is 1000; expected at least SubmissionQueueNormalThreshold, 2000",
        );
        check(
            [Some(5000), None, None],
            "SubmissionQueueMediumThreshold is 4000; expected at least SubmissionQueueNormalThreshold, 5000",
        );
        check(
            [Some(1), Some(3), Some(2)],
            "SubmissionQueueHighThreshold is 2; expected at least SubmissionQueueMediumThreshold, 3",
        );
        check(
            [Some(0), None, None],
            "SubmissionQueueNormalThreshold is 0; expected at least 1",
        );
    }

    #[test]
    fn nonsense_is_refused_with_the_rule_it_breaks() {
        let over = ThresholdSettings {
            normal: Some(90),
            medium: Some(95),
            high: Some(101),
        };
        assert_eq!(
            rule(|s| assert_eq!(s.thresholds.insert(Resource::ProcessMemory, over), None)),
            "PercentagePrivateBytesUsedHighThreshold is 101; expected at most 100"
        );
        assert_eq!(
            rule(|s| assert_eq!(s.history_depths.insert(Resource::DrainTime, 0), None)),
            "DrainTimeHistoryDepth is 0; expected at least 1"
        );
        assert_eq!(
            rule(|s| assert_eq!(s.history_depths.insert(Resource::LogDisk, 3), None)),
            "log-disk: has no history depth, because it refuses producers at once"
        );
        assert_eq!(
            rule(|s| s.interval = Duration::ZERO),
            "ResourceMonitoringInterval is 0ns; expected 100ms to 240s"
        );
        assert_eq!(
            rule(|s| s.stale_after = Some(Duration::from_secs(2))),
            "stale after 2s, expected more than ResourceMonitoringInterval, 2s, and less than 900s"
        );
        assert_eq!(
            rule(|s| s.batch_points.batch_size = 0),
            "BatchPointBatchSize is 0; expected at least 1"
        );
        assert_eq!(
            rule(|s| s.batch_points.batch_timeout = Duration::ZERO),
            "BatchPointBatchTimeout is 0ns; expected 1ms to 60s"
        );
        assert_eq!(
            rule(|s| s.disk.checkpoint_depth_bytes = 0),
            "DatabaseCheckPointDepthMax is 0; expected at least 1"
        );
    }

    #[test]
    fn delays_of_the_tarpit_are_in_order() {
        let secs = Duration::from_secs;
        assert_eq!(
            rule(|s| s.tarpit.start = secs(56)),
            "SMTPMaxThrottlingDelayInterval is 55s; expected at least SMTPStartThrottlingDelayInterval, 56s"
        );
        assert_eq!(
            rule(|s| s.tarpit.base = secs(10)),
            "SMTPStartThrottlingDelayInterval is 10s; expected more than SMTPBaseThrottlingDelayInterval, 10s"
        );
        assert_eq!(
            rule(|s| s.tarpit.max = secs(301)),
            "SMTPMaxThrottlingDelayInterval is 301s; expected at most 300s"
        );
        assert_eq!(
            rule(|s| s.tarpit.step = Duration::ZERO),
            "SMTPStepThrottlingDelayInterval is 0ns; expected at least 1ms"
        );
    }

    #[test]
    fn the_longest_interval_keeps_every_rule() {
        let settings = PressureSettings {
            interval: *INTERVAL.end(),
            ..PressureSettings::default()
        };
        assert_eq!(settings.validate(), Ok(()));
    }

    #[test]
    fn single_subscription_may_take_a_tenth_of_the_free_disk() {
        let settings = PressureSettings::default();
        let disk = DatabaseSpace::Disk(ByteUsage {
            used: 40 * GIB,
            total: 50 * GIB,
        });
        assert_eq!(
            settings.subscription_bytes_max(Some(disk)),
            Some(10 * GIB / 100 * 10)
        );
        assert_eq!(
            settings.subscription_bytes_max(Some(DatabaseSpace::InFlight {
                messages: 9,
                max: 500
            })),
            None
        );
        assert_eq!(settings.subscription_bytes_max(None), None);
        assert_eq!(settings.slow_drain_secs(), 30);
    }
}
