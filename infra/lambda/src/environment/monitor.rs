//! What monitor is told.

use std::ops::RangeInclusive;
use std::time::Duration;

use posthaste_core::model::name::TopicName;
use posthaste_core::pressure::{ExchangeError, ExchangeSettings, PressureSettings};

use super::{
    CommonEnvironment, DEADLETTERS_QUEUE_URL, DELIVERIES_QUEUE_URL, Environment, EnvironmentError,
    NOTICES_TOPIC, PRESSURE_INTERVAL_SECONDS, PRESSURE_PROFILE, PRESSURE_SETTINGS, Variables, kinds,
};

/// The time between two samples where nothing is set (SPEC §7).
const INTERVAL_DEFAULT: Duration = Duration::from_secs(10);

/// Seconds between two samples that may be set: the schedule starts the function once a minute.
const INTERVAL_SECS: RangeInclusive<u16> = 1..=60;

/// From when a state is stale: after two starts of the function that did not happen (SPEC §7).
const STALE_AFTER: Duration = Duration::from_secs(150);

/// What monitor is told.
#[derive(Debug, Clone)]
pub struct MonitorEnvironment {
    /// What every function is told.
    pub common: CommonEnvironment,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// When producers are slowed and refused.
    pub pressure: PressureSettings,
    /// The topic that is told of changes of the pressure.
    pub notices_topic: Option<TopicName>,
}

impl Environment for MonitorEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            deliveries_queue_url: variables.required(DELIVERIES_QUEUE_URL, &kinds::QUEUE_URL),
            dead_letters_queue_url: variables.required(DEADLETTERS_QUEUE_URL, &kinds::QUEUE_URL),
            pressure: pressure_settings(&mut variables),
            notices_topic: variables.optional(NOTICES_TOPIC, &kinds::TOPIC),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}

/// The profile, changed by the settings under Exchange's names. An interval of its own variable wins over theirs.
fn pressure_settings(variables: &mut Variables<'_>) -> PressureSettings {
    let profile = variables.optional(PRESSURE_PROFILE, &kinds::PRESSURE_PROFILE).unwrap_or_default();
    let changes: Option<ExchangeSettings> = variables.json(PRESSURE_SETTINGS);
    let interval_secs = variables.number_if_set(PRESSURE_INTERVAL_SECONDS, INTERVAL_SECS);
    let defaults = PressureSettings { interval: INTERVAL_DEFAULT, stale_after: Some(STALE_AFTER), ..profile };
    let applied = changes.unwrap_or_default().apply_to(defaults.clone()).and_then(within_the_minute);
    let settings = applied.unwrap_or_else(|error| {
        variables.refuse(PRESSURE_SETTINGS, &error);
        defaults
    });
    let interval = interval_secs.map_or(settings.interval, |secs| Duration::from_secs(secs.into()));
    PressureSettings { interval, ..settings }
}

/// The schedule starts the function once a minute, and every sample asks SQS.
fn within_the_minute(settings: PressureSettings) -> Result<PressureSettings, ExchangeError> {
    let secs = |secs: u16| Duration::from_secs(secs.into());
    settings.validate_interval(secs(*INTERVAL_SECS.start())..=secs(*INTERVAL_SECS.end()))?;
    Ok(settings)
}
