//! The environment of monitor.

use std::ops::RangeInclusive;
use std::time::Duration;

use posthaste_core::pressure::{ExchangeError, PressureSettings};
use posthaste_monitor::MonitorSettings;
use posthaste_settings::Values;
use posthaste_settings::table::{self, monitor_settings};

use super::common::CommonEnvironment;
use super::read::Environment;
use super::variables::{EnvironmentError, Variables};

/// The time between two samples where nothing is set.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(10);

/// The times between two samples that the settings under Exchange's names may ask for.
const INTERVALS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_mins(1);

/// Age at which a state is stale: two starts of the function did not happen.
const STALE_AFTER: Duration = Duration::from_secs(150);

/// The environment of monitor.
#[derive(Debug, Clone)]
pub struct MonitorEnvironment {
    /// The part that every function has.
    pub common: CommonEnvironment,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// Settings of the function.
    pub settings: MonitorSettings,
}

impl Environment for MonitorEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            deliveries_queue_url: variables.get(&table::DELIVERIES_QUEUE_URL).unwrap_or_default(),
            dead_letters_queue_url: variables.get(&table::DEADLETTERS_QUEUE_URL).unwrap_or_default(),
            settings: settings(&mut variables),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}

fn settings(variables: &mut Variables<'_>) -> MonitorSettings {
    let pressure = pressure_settings(variables);
    monitor_settings(variables, pressure)
}

/// The profile, changed by the settings under Exchange's names. An interval of its own variable wins over
/// theirs.
fn pressure_settings(variables: &mut Variables<'_>) -> PressureSettings {
    let profile = variables.get(&table::PRESSURE_PROFILE).unwrap_or_default();
    let changes = variables.get(&table::PRESSURE_SETTINGS).unwrap_or_default();
    let interval_secs = variables.get(&table::PRESSURE_INTERVAL_SECONDS);
    let defaults = PressureSettings { interval: INTERVAL_DEFAULT, stale_after: Some(STALE_AFTER), ..profile };
    let settings = changes.apply_to(defaults.clone()).and_then(within_the_minute).unwrap_or_else(|error| {
        variables.refuse(&table::PRESSURE_SETTINGS, &error);
        defaults
    });
    let interval = interval_secs.map_or(settings.interval, |secs| Duration::from_secs(secs.into()));
    PressureSettings { interval, ..settings }
}

/// The schedule starts the function once a minute, and every sample asks SQS.
fn within_the_minute(settings: PressureSettings) -> Result<PressureSettings, ExchangeError> {
    settings.validate_interval(INTERVALS)?;
    Ok(settings)
}
