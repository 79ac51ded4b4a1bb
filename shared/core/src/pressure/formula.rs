//! The documents' formulas: thresholds that follow from the size of a disk or of the memory.

use super::keys::{self, ResourceKeys};
use super::settings::GIB;
use super::table::FORMULA_STEPS;
use super::{
    ByteUsage, DatabaseSpace, DiskConstants, LevelThresholds, PressureSettings, Resource,
    ResourceReadings, ResourceRow, SettingBound, SettingsError, ThresholdRule, ThresholdSettings,
    rows_of_profile, rule,
};

/// The highest share of memory the process may take, in per cent
/// (`PercentagePrivateBytesUsedHighThreshold`).
const PROCESS_MEMORY_PERCENT: u64 = 75;

/// The most memory the process may take on the largest machine.
const PROCESS_MEMORY_BYTES_MAX: u64 = 1024 * GIB;

/// The high threshold of the share of messages in flight, which on AWS stand for the database's
/// disk, in per cent (`PercentageInFlightUsedHighThreshold`).
const IN_FLIGHT_HIGH: u64 = 75;

impl PressureSettings {
    /// The thresholds of a row: as set, or else as its rule says. `None` where the rule needs a
    /// reading that is not there.
    pub fn thresholds_of(
        &self,
        row: &ResourceRow,
        readings: &ResourceReadings,
    ) -> Result<Option<LevelThresholds>, SettingsError> {
        if row.resource == Resource::DatabaseDisk
            && matches!(readings.database, Some(DatabaseSpace::InFlight { .. }))
        {
            return self.thresholds_in_flight().map(Some);
        }
        let set = self
            .thresholds
            .get(&row.resource)
            .copied()
            .unwrap_or_default();
        let thresholds = match (row.thresholds, set.high) {
            (ThresholdRule::Fixed(fixed), _) => Some(set.or_fixed(fixed)),
            (_, Some(high)) => Some(set.below_high(high)),
            (rule, None) => self
                .high_by_formula(rule, row.resource, readings)?
                .map(|high| set.below_high(high)),
        };
        if let Some(thresholds) = thresholds {
            check_thresholds(row.resource, row.resource.setting_keys(), thresholds)?;
        }
        Ok(thresholds)
    }

    /// The share of a disk, in per cent, below which no level of it is above Normal, where database
    /// and journal both lie on it. `None` if nothing is measured, or the disk is too small for
    /// its formula.
    pub fn calm_disk_percent(&self, disk: ByteUsage) -> Option<u64> {
        let readings = ResourceReadings {
            database: Some(DatabaseSpace::Disk(disk)),
            log_disk: Some(disk),
            ..ResourceReadings::default()
        };
        if !self.enable_resource_monitoring {
            return None;
        }
        rows_of_profile(self.profile)
            .iter()
            .filter(|row| matches!(row.resource, Resource::DatabaseDisk | Resource::LogDisk))
            .filter_map(|row| Some(self.thresholds_of(row, &readings).ok()??.normal))
            .min()
    }

    /// The thresholds of the share of messages in flight. Those of a disk say nothing about it.
    pub(super) fn thresholds_in_flight(&self) -> Result<LevelThresholds, SettingsError> {
        let thresholds = self
            .in_flight
            .below_high(self.in_flight.high.unwrap_or(IN_FLIGHT_HIGH));
        check_thresholds(Resource::DatabaseDisk, keys::IN_FLIGHT, thresholds)?;
        Ok(thresholds)
    }

    /// The high threshold a formula gives.
    fn high_by_formula(
        &self,
        rule: ThresholdRule,
        resource: Resource,
        readings: &ResourceReadings,
    ) -> Result<Option<u64>, SettingsError> {
        match (rule, readings.database) {
            (ThresholdRule::DatabaseDisk, Some(DatabaseSpace::Disk(disk))) => {
                self.disk_high(resource, disk).map(Some)
            }
            (ThresholdRule::LogDisk, _) => readings
                .log_disk
                .map(|disk| self.disk_high(resource, disk))
                .transpose(),
            (ThresholdRule::ProcessMemory, _) => Ok(readings
                .memory
                .and_then(|memory| process_high(memory.total))),
            (ThresholdRule::DatabaseDisk | ThresholdRule::Fixed(_), _) => Ok(None),
        }
    }

    fn disk_high(&self, resource: Resource, disk: ByteUsage) -> Result<u64, SettingsError> {
        let DiskConstants {
            database_bytes,
            log_bytes_max,
            checkpoint_depth_bytes,
        } = self.disk;
        let (reserve_bytes, reserve_key) = match resource {
            Resource::LogDisk => (
                log_bytes_max.min(checkpoint_depth_bytes.saturating_mul(3)),
                keys::CHECKPOINT_DEPTH,
            ),
            _ => (database_bytes, keys::DATABASE_RESERVE),
        };
        let high = ByteUsage {
            used: disk.total.saturating_sub(reserve_bytes),
            total: disk.total,
        }
        .percent_used();
        high.and_then(with_room_below)
            .ok_or(SettingsError::DiskTooSmall {
                resource,
                disk_bytes: disk.total,
                reserve_bytes,
                reserve_key,
            })
    }
}

impl ThresholdSettings {
    /// The thresholds that are set, in place of a table's.
    fn or_fixed(self, fixed: LevelThresholds) -> LevelThresholds {
        let Self {
            normal,
            medium,
            high,
        } = self;
        LevelThresholds::new(
            normal.unwrap_or(fixed.normal),
            medium.unwrap_or(fixed.medium),
            high.unwrap_or(fixed.high),
        )
    }

    /// The thresholds that are set, below a high one.
    fn below_high(self, high: u64) -> LevelThresholds {
        let (to_medium, to_normal) = FORMULA_STEPS;
        let medium = self.medium.unwrap_or(high.saturating_sub(to_medium));
        let normal = self
            .normal
            .unwrap_or(medium.saturating_sub(to_normal - to_medium));
        LevelThresholds::new(normal, medium, high)
    }
}

/// Thresholds are in order, and a share is at most everything.
fn check_thresholds(
    resource: Resource,
    keys: ResourceKeys,
    thresholds: LevelThresholds,
) -> Result<(), SettingsError> {
    let LevelThresholds {
        normal,
        medium,
        high,
    } = thresholds;
    rule::check_number(keys.normal, normal, SettingBound::Min(1))?;
    rule::check_number(
        keys.medium,
        medium,
        SettingBound::AtLeast(keys.normal, normal),
    )?;
    rule::check_number(keys.high, high, SettingBound::AtLeast(keys.medium, medium))?;
    if resource.is_percentage() {
        rule::check_number(keys.high, high, SettingBound::Max(100))?;
    }
    Ok(())
}

/// The smaller of 75 % and 1 TB, as a share of the memory, rounded down.
fn process_high(total_bytes: u64) -> Option<u64> {
    let share = ByteUsage {
        used: PROCESS_MEMORY_BYTES_MAX,
        total: total_bytes,
    }
    .percent_used()?;
    with_room_below(share.min(PROCESS_MEMORY_PERCENT))
}

/// A high threshold with room above zero for the two lower ones.
fn with_room_below(high: u64) -> Option<u64> {
    Some(high).filter(|high| *high > FORMULA_STEPS.1)
}

#[cfg(test)]
mod tests {
    use super::super::PressureProfile;
    use super::super::settings::MIB;
    use super::*;

    const TIB: u64 = 1024 * GIB;

    fn disks(database: u64, log: u64) -> ResourceReadings {
        ResourceReadings {
            database: Some(DatabaseSpace::Disk(ByteUsage {
                used: 0,
                total: database,
            })),
            log_disk: Some(ByteUsage {
                used: 0,
                total: log,
            }),
            ..ResourceReadings::default()
        }
    }

    fn disk_thresholds(database: u64, log: u64) -> [Option<LevelThresholds>; 2] {
        let readings = disks(database, log);
        let rows = rows_of_profile(PressureProfile::Scaled);
        [3, 4].map(|i| {
            PressureSettings::default()
                .thresholds_of(&rows[i], &readings)
                .unwrap()
        })
    }

    #[test]
    fn the_disks_follow_the_documents_formulas() {
        // 100·(100 GB − 500 MB)/100 GB = 99.51; 100·(100 GB − 1152 MB)/100 GB = 98.87.
        let expected = [
            LevelThresholds::new(95, 97, 99),
            LevelThresholds::new(94, 96, 98),
        ];
        assert_eq!(disk_thresholds(100 * GIB, 100 * GIB), expected.map(Some));
        let expected = [
            LevelThresholds::new(71, 73, 75),
            LevelThresholds::new(39, 41, 43),
        ];
        assert_eq!(disk_thresholds(2000 * MIB, 2048 * MIB), expected.map(Some));
    }

    /// A disk too small for a formula is refused unless its thresholds are set.
    #[test]
    fn disk_too_small_for_a_formula_needs_thresholds_that_are_set() {
        let mut settings = PressureSettings::default();
        assert_eq!(
            settings.validate_machine(&disks(600 * MIB, 2 * GIB)),
            Ok(())
        );
        let small = disks(600 * MIB, 1152 * MIB);
        assert_eq!(
            settings.validate_machine(&small).unwrap_err().to_string(),
            "log-disk: a disk of 1207959552 bytes is too small for the formula \
             high = floor(100*(size - 1207959552)/size), which must give at least 5; \
             set PercentageDatabaseLoggingDiskSpaceUsedHighThreshold, or a smaller DatabaseCheckPointDepthMax"
        );
        let set = ThresholdSettings {
            normal: Some(50),
            medium: Some(60),
            high: Some(70),
        };
        settings.thresholds.insert(Resource::LogDisk, set);
        assert_eq!(settings.validate_machine(&small), Ok(()));
        assert_eq!(
            settings.validate_machine(&ResourceReadings::default()),
            Ok(())
        );
    }

    #[test]
    fn a_disk_is_calm_below_the_lower_of_its_normal_thresholds() {
        let disk = ByteUsage {
            used: 0,
            total: 100 * GIB,
        };
        let mut settings = PressureSettings::default();
        assert_eq!(settings.calm_disk_percent(disk), Some(94));
        let set = ThresholdSettings {
            high: Some(80),
            ..ThresholdSettings::default()
        };
        settings.thresholds.insert(Resource::DatabaseDisk, set);
        assert_eq!(settings.calm_disk_percent(disk), Some(76));
        assert_eq!(
            settings.calm_disk_percent(ByteUsage {
                used: 0,
                total: MIB
            }),
            Some(76)
        );
        settings.enable_resource_monitoring = false;
        assert_eq!(settings.calm_disk_percent(disk), None);
    }

    #[test]
    fn process_may_take_three_quarters_of_memory_or_a_terabyte() {
        assert_eq!(
            [GIB, 2 * TIB, 100 * TIB, 0].map(process_high),
            [Some(75), Some(50), None, None]
        );
    }

    /// The thresholds of the database's disk of 100 GiB, whose formula gives 99, with these set.
    fn set(
        normal: Option<u64>,
        medium: Option<u64>,
        high: Option<u64>,
    ) -> Result<LevelThresholds, String> {
        let mut settings = PressureSettings::default();
        settings.thresholds.insert(
            Resource::DatabaseDisk,
            ThresholdSettings {
                normal,
                medium,
                high,
            },
        );
        let readings = disks(100 * GIB, 100 * GIB);
        let found = settings.thresholds_of(&rows_of_profile(PressureProfile::Scaled)[3], &readings);
        found.map(Option::unwrap).map_err(|error| error.to_string())
    }

    /// Each threshold left to a formula is two less than the next higher one.
    #[test]
    fn formula_threshold_is_two_less_than_the_next_higher() {
        assert_eq!(set(None, None, None), Ok(LevelThresholds::new(95, 97, 99)));
        assert_eq!(
            set(None, None, Some(80)),
            Ok(LevelThresholds::new(76, 78, 80))
        );
        assert_eq!(
            set(None, Some(50), Some(80)),
            Ok(LevelThresholds::new(48, 50, 80))
        );
        assert_eq!(
            set(None, Some(90), None),
            Ok(LevelThresholds::new(88, 90, 99))
        );
        assert_eq!(
            set(Some(10), None, None),
            Ok(LevelThresholds::new(10, 97, 99))
        );
        let normal = "PercentageDatabaseDiskSpaceUsedNormalThreshold";
        let medium = "PercentageDatabaseDiskSpaceUsedMediumThreshold";
        assert_eq!(
            set(None, None, Some(4)),
            Err(format!("{normal} is 0; expected at least 1"))
        );
        assert_eq!(
            set(Some(98), None, None),
            Err(format!("{medium} is 97; expected at least {normal}, 98"))
        );
    }

    /// Thresholds of the share in flight from these settings of its own, beside a disk's high
    /// threshold of 98 per cent.
    fn in_flight(
        normal: Option<u64>,
        medium: Option<u64>,
        high: Option<u64>,
    ) -> Result<LevelThresholds, String> {
        let mut settings = PressureSettings {
            in_flight: ThresholdSettings {
                normal,
                medium,
                high,
            },
            ..PressureSettings::default()
        };
        let disk = ThresholdSettings {
            high: Some(98),
            ..ThresholdSettings::default()
        };
        settings.thresholds.insert(Resource::DatabaseDisk, disk);
        let row = &rows_of_profile(PressureProfile::Scaled)[3];
        let on_disk = settings.thresholds_of(row, &disks(100 * GIB, 100 * GIB));
        assert_eq!(on_disk, Ok(Some(LevelThresholds::new(94, 96, 98))));
        let readings = ResourceReadings {
            database: Some(DatabaseSpace::InFlight {
                messages: 0,
                max: 500,
            }),
            ..ResourceReadings::default()
        };
        let found = settings
            .thresholds_of(row, &readings)
            .map_err(|error| error.to_string());
        assert_eq!(
            settings.validate().map_err(|error| error.to_string()).err(),
            found.clone().err()
        );
        found.map(Option::unwrap)
    }

    #[test]
    fn the_share_in_flight_has_thresholds_of_its_own() {
        assert_eq!(
            in_flight(None, None, None),
            Ok(LevelThresholds::new(71, 73, 75))
        );
        assert_eq!(
            in_flight(None, None, Some(80)),
            Ok(LevelThresholds::new(76, 78, 80))
        );
        assert_eq!(
            in_flight(Some(60), Some(70), None),
            Ok(LevelThresholds::new(60, 70, 75))
        );
        let high = "PercentageInFlightUsedHighThreshold";
        assert_eq!(
            in_flight(None, None, Some(101)),
            Err(format!("{high} is 101; expected at most 100"))
        );
        let medium = "PercentageInFlightUsedMediumThreshold";
        assert_eq!(
            in_flight(None, Some(80), None),
            Err(format!("{high} is 75; expected at least {medium}, 80"))
        );
    }
}
