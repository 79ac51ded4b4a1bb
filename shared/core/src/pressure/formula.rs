//! The documents' formulas: thresholds that follow from the size of a disk or of the memory.

use super::Resource;
use super::readings::{Readings, Space, Usage};
use super::settings::{DiskConstants, GIB, PressureSettings, SettingsError};
use super::table::{Row, ThresholdRule, Thresholds};

/// How far the medium and the normal threshold of a formula lie below the high one, in per cent.
pub(super) const FORMULA_STEPS: (u64, u64) = (2, 4);

/// The highest share of memory the process may take, in per cent (`PercentagePrivateBytesUsedHighThreshold`).
const PROCESS_MEMORY_PERCENT: u64 = 75;

/// The most memory the process may take on the largest machine.
const PROCESS_MEMORY_BYTES_MAX: u64 = 1024 * GIB;

/// Thresholds of the share of messages in flight, which on AWS stand for the database's disk, in per cent.
const IN_FLIGHT: Thresholds = Thresholds::new(71, 73, 75);

impl PressureSettings {
    /// The thresholds of a row: as set, or else as its rule says. `None` where the rule needs a reading that is not
    /// there.
    pub fn thresholds_of(&self, row: &Row, readings: &Readings) -> Result<Option<Thresholds>, SettingsError> {
        if let Some(set) = self.thresholds.get(&row.resource) {
            return Ok(Some(*set));
        }
        match row.thresholds {
            ThresholdRule::Fixed(thresholds) => Ok(Some(thresholds)),
            ThresholdRule::DatabaseDisk => match readings.database {
                Some(Space::InFlight(_)) => Ok(Some(IN_FLIGHT)),
                Some(Space::Disk(disk)) => self.disk_thresholds(row.resource, disk).map(Some),
                None => Ok(None),
            },
            ThresholdRule::LogDisk => {
                readings.log_disk.map(|disk| self.disk_thresholds(row.resource, disk)).transpose()
            }
            ThresholdRule::ProcessMemory => {
                Ok(readings.memory.and_then(|memory| process_thresholds(memory.total)))
            }
        }
    }

    fn disk_thresholds(&self, resource: Resource, disk: Usage) -> Result<Thresholds, SettingsError> {
        let DiskConstants { database_bytes, log_bytes_max, checkpoint_depth_bytes } = self.disk;
        let reserve = match resource {
            Resource::LogDisk => log_bytes_max.min(checkpoint_depth_bytes.saturating_mul(3)),
            _ => database_bytes,
        };
        let high = Usage { used: disk.total.saturating_sub(reserve), total: disk.total }.percent();
        high.and_then(below).ok_or(SettingsError::DiskTooSmall {
            resource,
            disk_bytes: disk.total,
            reserve_bytes: reserve,
        })
    }
}

/// The smaller of 75 % and 1 TB, as a share of the memory, rounded down.
fn process_thresholds(total_bytes: u64) -> Option<Thresholds> {
    let share = Usage { used: PROCESS_MEMORY_BYTES_MAX, total: total_bytes }.percent()?;
    below(share.min(PROCESS_MEMORY_PERCENT))
}

/// The two lower thresholds of a formula; `None` where there is no room for them above zero.
fn below(high: u64) -> Option<Thresholds> {
    let (medium, normal) = FORMULA_STEPS;
    (high > normal).then(|| Thresholds::new(high - normal, high - medium, high))
}

#[cfg(test)]
mod tests {
    use super::super::settings::MIB;
    use super::super::{Profile, table};
    use super::*;

    const TIB: u64 = 1024 * GIB;

    fn disks(database: u64, log: u64) -> Readings {
        Readings {
            database: Some(Space::Disk(Usage { used: 0, total: database })),
            log_disk: Some(Usage { used: 0, total: log }),
            ..Readings::default()
        }
    }

    fn disk_thresholds(database: u64, log: u64) -> [Option<Thresholds>; 2] {
        let readings = disks(database, log);
        let rows = table(Profile::Scaled);
        [3, 4].map(|i| PressureSettings::default().thresholds_of(&rows[i], &readings).unwrap())
    }

    #[test]
    fn the_disks_follow_the_documents_formulas() {
        // 100·(100 GB − 500 MB)/100 GB = 99.51; 100·(100 GB − 1152 MB)/100 GB = 98.87.
        let expected = [Thresholds::new(95, 97, 99), Thresholds::new(94, 96, 98)];
        assert_eq!(disk_thresholds(100 * GIB, 100 * GIB), expected.map(Some));
        let expected = [Thresholds::new(71, 73, 75), Thresholds::new(39, 41, 43)];
        assert_eq!(disk_thresholds(2000 * MIB, 2048 * MIB), expected.map(Some));
    }

    #[test]
    fn a_disk_too_small_for_a_formula_is_refused_unless_its_thresholds_are_set() {
        let mut settings = PressureSettings::default();
        assert_eq!(settings.validate_disks(&disks(600 * MIB, 2 * GIB)), Ok(()));
        let small = disks(600 * MIB, 1152 * MIB);
        assert_eq!(
            settings.validate_disks(&small).unwrap_err().to_string(),
            "log-disk: a disk of 1207959552 bytes is too small for the formula \
             high = floor(100*(size - 1207959552)/size), which must give at least 5; \
             set its thresholds, or smaller constants"
        );
        settings.thresholds.insert(Resource::LogDisk, Thresholds::new(50, 60, 70));
        assert_eq!(settings.validate_disks(&small), Ok(()));
        assert_eq!(settings.validate_disks(&Readings::default()), Ok(()));
    }

    #[test]
    fn the_process_may_take_three_quarters_of_the_memory_or_one_terabyte() {
        assert_eq!(process_thresholds(GIB), Some(Thresholds::new(71, 73, 75)));
        assert_eq!(process_thresholds(2 * TIB), Some(Thresholds::new(46, 48, 50)));
        assert_eq!(process_thresholds(0), None);
    }
}
