//! The environment of wake.

use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::TopicName;
use posthaste_settings::{Values, table};

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
    /// Topic for notices about links that are down or up again.
    pub notices_topic: Option<TopicName>,
}

impl Environment for WakeEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            dead_letter_bucket: variables.get(&table::DEAD_LETTER_BUCKET).unwrap_or_default(),
            deliveries_queue_url: variables.get(&table::DELIVERIES_QUEUE_URL).unwrap_or_default(),
            links: variables.link_settings(),
            notices_topic: variables.get(&table::NOTICES_TOPIC),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
