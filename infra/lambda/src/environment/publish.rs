//! The environment of publish.

use std::time::Duration;

use posthaste_publish::PublishSettings;
use posthaste_settings::Values;
use posthaste_settings::table::{self, publish_settings};

use super::common::CommonEnvironment;
use super::read::Environment;
use super::variables::{EnvironmentError, Variables};

/// The environment of publish.
#[derive(Debug, Clone)]
pub struct PublishEnvironment {
    /// The part that every function has.
    pub common: CommonEnvironment,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// Greatest age of a cached topic.
    pub registry_max_age: Duration,
    /// Settings of the function.
    pub settings: PublishSettings,
}

impl Environment for PublishEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            deliveries_queue_url: variables.get(&table::DELIVERIES_QUEUE_URL).unwrap_or_default(),
            registry_max_age: variables.registry_max_age(),
            settings: publish_settings(&mut variables, PublishSettings::default()),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
