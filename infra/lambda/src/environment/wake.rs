//! The environment of wake.

use posthaste_core::circuit::HealthSettings;
use posthaste_settings::Values;
use posthaste_settings::table::{self, wake_settings};
use posthaste_wake::WakeSettings;

use super::common::CommonEnvironment;
use super::read::Environment;
use super::variables::{EnvironmentError, Variables};

/// The environment of wake.
#[derive(Debug, Clone)]
pub struct WakeEnvironment {
    /// The part that every function has.
    pub common: CommonEnvironment,
    /// The bucket of dead letters, for replays.
    pub dead_letter_bucket: String,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// When endpoints that fail get no requests, and for how long.
    pub links: HealthSettings,
    /// Settings of the function.
    pub settings: WakeSettings,
}

impl Environment for WakeEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            dead_letter_bucket: variables.get(&table::DEAD_LETTER_BUCKET).unwrap_or_default(),
            deliveries_queue_url: variables.get(&table::DELIVERIES_QUEUE_URL).unwrap_or_default(),
            links: variables.link_settings(),
            settings: wake_settings(&mut variables),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
