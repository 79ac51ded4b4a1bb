//! What monitor is told.

use std::time::Duration;

use posthaste_core::name::TopicName;
use posthaste_core::pressure::PressureSettings;

use super::{
    CommonEnvironment, DEADLETTERS_QUEUE_URL, DELIVERIES_QUEUE_URL, Environment, EnvironmentError,
    NOTICES_TOPIC, PRESSURE_INTERVAL_SECONDS, PRESSURE_PROFILE, Variables, kinds,
};

/// Seconds between two samples where nothing is set (SPEC §7).
const INTERVAL_SECS_DEFAULT: u16 = 10;

/// Most seconds between two samples: the schedule starts the function once a minute.
const INTERVAL_SECS_MAX: u16 = 60;

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

fn pressure_settings(variables: &mut Variables<'_>) -> PressureSettings {
    let pressure = variables.optional(PRESSURE_PROFILE, &kinds::PRESSURE_PROFILE).unwrap_or_default();
    let interval_secs =
        variables.number(PRESSURE_INTERVAL_SECONDS, INTERVAL_SECS_DEFAULT, 1..=INTERVAL_SECS_MAX);
    PressureSettings {
        interval: Duration::from_secs(interval_secs.into()),
        stale_after: Some(STALE_AFTER),
        ..pressure
    }
}
