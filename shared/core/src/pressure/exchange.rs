//! The settings of back pressure under Exchange's names: a flat map of keys as they stand in
//! `EdgeTransport.exe.config`, with ours beside them in the same style. One reader for both hosts,
//! whatever the format the map comes in.
//!
//! A key that is left out keeps the profile's default. An unknown key is refused, and so is one
//! that has no counterpart here with any other value than the documents'.

mod value;

use std::time::Duration;

use serde::Deserialize;

use self::value::{ByteSize, TimeSpan};
use super::table::FORMULA_STEPS;
use super::{
    PressureProfile, PressureSettings, Resource, SettingBound, SettingsError, ThresholdRule,
    ThresholdSettings, keys, rows_of_profile, rule,
};

/// The range of `PercentagePhysicalMemoryUsedLimit`: the normal threshold, 4 less, stays above
/// zero.
const MEMORY_LIMIT: SettingBound<u64> = SettingBound::Within(5, 100);

/// The time after which a message of a batch expires in the documents.
const ITEM_EXPIRY: Duration = Duration::from_mins(5);

/// The keys of a file of settings, as they stand there. A file of nothing but comments has none.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Option<ExchangeKeys>")]
pub struct ExchangeSettings(ExchangeKeys);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct ExchangeKeys {
    enable_resource_monitoring: Option<bool>,
    resource_monitoring_interval: Option<TimeSpan>,
    #[serde(rename = "SMTPBaseThrottlingDelayInterval")]
    tarpit_base: Option<TimeSpan>,
    #[serde(rename = "SMTPStartThrottlingDelayInterval")]
    tarpit_start: Option<TimeSpan>,
    #[serde(rename = "SMTPStepThrottlingDelayInterval")]
    tarpit_step: Option<TimeSpan>,
    #[serde(rename = "SMTPMaxThrottlingDelayInterval")]
    tarpit_max: Option<TimeSpan>,
    database_check_point_depth_max: Option<ByteSize>,
    database_disk_space_reserve: Option<ByteSize>,
    database_logging_disk_space_reserve_max: Option<ByteSize>,
    dehydrate_messages_under_memory_pressure: Option<bool>,
    percentage_physical_memory_used_limit: Option<u64>,
    batch_point_use_cost_for_pressure: Option<bool>,
    batch_point_batch_size: Option<u32>,
    batch_point_batch_timeout: Option<TimeSpan>,
    batch_point_item_expiry_interval: Option<TimeSpan>,
    submission_queue_history_depth: Option<u32>,
    version_buckets_history_depth: Option<u32>,
    batch_point_history_depth: Option<u32>,
    private_bytes_history_depth: Option<u32>,
    dead_letter_backlog_history_depth: Option<u32>,
    drain_time_history_depth: Option<u32>,
    submission_queue_normal_threshold: Option<u64>,
    submission_queue_medium_threshold: Option<u64>,
    submission_queue_high_threshold: Option<u64>,
    version_buckets_normal_threshold: Option<u64>,
    version_buckets_medium_threshold: Option<u64>,
    version_buckets_high_threshold: Option<u64>,
    batch_point_normal_threshold: Option<u64>,
    batch_point_medium_threshold: Option<u64>,
    batch_point_high_threshold: Option<u64>,
    percentage_database_disk_space_used_normal_threshold: Option<u64>,
    percentage_database_disk_space_used_medium_threshold: Option<u64>,
    percentage_database_disk_space_used_high_threshold: Option<u64>,
    percentage_database_logging_disk_space_used_normal_threshold: Option<u64>,
    percentage_database_logging_disk_space_used_medium_threshold: Option<u64>,
    percentage_database_logging_disk_space_used_high_threshold: Option<u64>,
    percentage_private_bytes_used_normal_threshold: Option<u64>,
    percentage_private_bytes_used_medium_threshold: Option<u64>,
    percentage_private_bytes_used_high_threshold: Option<u64>,
    dead_letter_backlog_normal_threshold: Option<u64>,
    dead_letter_backlog_medium_threshold: Option<u64>,
    dead_letter_backlog_high_threshold: Option<u64>,
    drain_time_normal_threshold: Option<u64>,
    drain_time_medium_threshold: Option<u64>,
    drain_time_high_threshold: Option<u64>,
    percentage_in_flight_used_normal_threshold: Option<u64>,
    percentage_in_flight_used_medium_threshold: Option<u64>,
    percentage_in_flight_used_high_threshold: Option<u64>,
}

/// The reason why the keys of a file, each of which can be read, are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// A key that switches on what the profile `off` switches off.
    #[error(
        "{} is true, but the pressure profile is off; expected one of the two alone",
        keys::ENABLED
    )]
    SwitchedOff,
    /// A length of time that nothing here corresponds to, other than the documents'.
    #[error(
        "{} is {found:?}; expected 00:05:00, as the documents have it, because nothing here \
         corresponds to it: a batch ends with its commit, so that no message is ever left in it \
         to expire",
        keys::BATCH_ITEM_EXPIRY
    )]
    ItemExpiry {
        /// The length as it was set.
        found: Duration,
    },
    /// The settings as a whole break a rule.
    #[error(transparent)]
    Rule(#[from] SettingsError),
}

impl ExchangeError {
    /// The key at fault, if it is one alone.
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Self::SwitchedOff => Some(keys::ENABLED),
            Self::ItemExpiry { .. } => Some(keys::BATCH_ITEM_EXPIRY),
            Self::Rule(error) => error.key(),
        }
    }
}

impl From<Option<ExchangeKeys>> for ExchangeSettings {
    fn from(keys: Option<ExchangeKeys>) -> Self {
        Self(keys.unwrap_or_default())
    }
}

impl ExchangeSettings {
    /// Lays the keys over `settings`, a profile's defaults, and checks the result.
    pub fn apply_to(
        &self,
        mut settings: PressureSettings,
    ) -> Result<PressureSettings, ExchangeError> {
        self.0.check()?;
        let was_on = settings.enable_resource_monitoring;
        self.0.change_single_values(&mut settings);
        self.0.change_thresholds(&mut settings);
        if settings.enable_resource_monitoring && !was_on {
            return Err(ExchangeError::SwitchedOff);
        }
        settings.validate()?;
        Ok(settings)
    }
}

impl ExchangeKeys {
    /// Checks what is no setting of its own here.
    fn check(&self) -> Result<(), ExchangeError> {
        if let Some(limit) = self.percentage_physical_memory_used_limit {
            rule::check_number(keys::MEMORY_LIMIT, limit, MEMORY_LIMIT)?;
        }
        match self.batch_point_item_expiry_interval.map(Duration::from) {
            Some(found) if found != ITEM_EXPIRY => Err(ExchangeError::ItemExpiry { found }),
            Some(_) | None => Ok(()),
        }
    }

    fn change_single_values(&self, settings: &mut PressureSettings) {
        let tarpit = &mut settings.tarpit;
        replace(&mut tarpit.base, self.tarpit_base);
        replace(&mut tarpit.start, self.tarpit_start);
        replace(&mut tarpit.step, self.tarpit_step);
        replace(&mut tarpit.max, self.tarpit_max);
        let disk = &mut settings.disk;
        replace(
            &mut disk.checkpoint_depth_bytes,
            self.database_check_point_depth_max,
        );
        replace(&mut disk.database_bytes, self.database_disk_space_reserve);
        replace(
            &mut disk.log_bytes_max,
            self.database_logging_disk_space_reserve_max,
        );
        let batch_points = &mut settings.batch_points;
        replace(
            &mut batch_points.uses_cost,
            self.batch_point_use_cost_for_pressure,
        );
        replace(&mut batch_points.batch_size, self.batch_point_batch_size);
        replace(
            &mut batch_points.batch_timeout,
            self.batch_point_batch_timeout,
        );
        replace(
            &mut settings.enable_resource_monitoring,
            self.enable_resource_monitoring,
        );
        replace(&mut settings.interval, self.resource_monitoring_interval);
        replace(
            &mut settings.dehydrates_for_memory,
            self.dehydrate_messages_under_memory_pressure,
        );
    }

    fn change_thresholds(&self, settings: &mut PressureSettings) {
        for resource in Resource::ALL {
            if let Some(depth) = self.history_depth_of(resource) {
                settings.history_depths.insert(resource, depth);
            }
            let written = self.thresholds_of(resource);
            if written != [None; 3] {
                let thresholds = settings.thresholds.entry(resource).or_default();
                change_levels(thresholds, written, has_formula(resource));
            }
        }
        let in_flight = [
            self.percentage_in_flight_used_normal_threshold,
            self.percentage_in_flight_used_medium_threshold,
            self.percentage_in_flight_used_high_threshold,
        ];
        change_levels(&mut settings.in_flight, in_flight, true);
    }

    fn history_depth_of(&self, resource: Resource) -> Option<u32> {
        match resource {
            Resource::SubmissionQueue => self.submission_queue_history_depth,
            Resource::VersionBuckets => self.version_buckets_history_depth,
            Resource::BatchPoints => self.batch_point_history_depth,
            Resource::ProcessMemory => self.private_bytes_history_depth,
            Resource::DeadLetterBacklog => self.dead_letter_backlog_history_depth,
            Resource::DrainTime => self.drain_time_history_depth,
            Resource::DatabaseDisk | Resource::LogDisk | Resource::SystemMemory => None,
        }
    }

    /// The thresholds of a resource as they are written, the normal one first.
    fn thresholds_of(&self, resource: Resource) -> [Option<u64>; 3] {
        match resource {
            Resource::SubmissionQueue => [
                self.submission_queue_normal_threshold,
                self.submission_queue_medium_threshold,
                self.submission_queue_high_threshold,
            ],
            Resource::VersionBuckets => [
                self.version_buckets_normal_threshold,
                self.version_buckets_medium_threshold,
                self.version_buckets_high_threshold,
            ],
            Resource::BatchPoints => [
                self.batch_point_normal_threshold,
                self.batch_point_medium_threshold,
                self.batch_point_high_threshold,
            ],
            Resource::DatabaseDisk => [
                self.percentage_database_disk_space_used_normal_threshold,
                self.percentage_database_disk_space_used_medium_threshold,
                self.percentage_database_disk_space_used_high_threshold,
            ],
            Resource::LogDisk => [
                self.percentage_database_logging_disk_space_used_normal_threshold,
                self.percentage_database_logging_disk_space_used_medium_threshold,
                self.percentage_database_logging_disk_space_used_high_threshold,
            ],
            Resource::ProcessMemory => [
                self.percentage_private_bytes_used_normal_threshold,
                self.percentage_private_bytes_used_medium_threshold,
                self.percentage_private_bytes_used_high_threshold,
            ],
            Resource::SystemMemory => {
                let (medium, normal) = FORMULA_STEPS;
                let limit = self.percentage_physical_memory_used_limit;
                [normal, medium, 0].map(|step| Some(limit? - step))
            }
            Resource::DeadLetterBacklog => [
                self.dead_letter_backlog_normal_threshold,
                self.dead_letter_backlog_medium_threshold,
                self.dead_letter_backlog_high_threshold,
            ],
            Resource::DrainTime => [
                self.drain_time_normal_threshold,
                self.drain_time_medium_threshold,
                self.drain_time_high_threshold,
            ],
        }
    }
}

fn replace<T>(place: &mut T, written: Option<impl Into<T>>) {
    if let Some(written) = written {
        *place = written.into();
    }
}

/// Writes thresholds over others. 0 leaves one to its formula; without one, 0 is a threshold like
/// any other, and refused later.
fn change_levels(
    thresholds: &mut ThresholdSettings,
    written: [Option<u64>; 3],
    zero_is_formula: bool,
) {
    let ThresholdSettings {
        normal,
        medium,
        high,
    } = thresholds;
    for (place, written) in [normal, medium, high].into_iter().zip(written) {
        if let Some(number) = written {
            *place = Some(number).filter(|number| *number > 0 || !zero_is_formula);
        }
    }
}

/// Whether a formula gives the thresholds of a resource, which is the same in every profile.
fn has_formula(resource: Resource) -> bool {
    rows_of_profile(PressureProfile::Scaled)
        .iter()
        .any(|row| row.resource == resource && !matches!(row.thresholds, ThresholdRule::Fixed(_)))
}

#[cfg(test)]
mod tests;
