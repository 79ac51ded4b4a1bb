//! The environment of deadletter.

use std::time::Duration;

use posthaste_settings::{Values, table};

use super::common::CommonEnvironment;
use super::read::Environment;
use super::variables::{EnvironmentError, Variables};

/// The environment of deadletter.
#[derive(Debug, Clone)]
pub struct DeadLetterEnvironment {
    /// The part that every function has.
    pub common: CommonEnvironment,
    /// The bucket of dead letters.
    pub dead_letter_bucket: String,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// URL of the queue of messages that functions failed on many times.
    pub redrive_queue_url: String,
    /// Greatest age of a cached topic.
    pub registry_max_age: Duration,
}

impl Environment for DeadLetterEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            dead_letter_bucket: variables.get(&table::DEAD_LETTER_BUCKET).unwrap_or_default(),
            deliveries_queue_url: variables.get(&table::DELIVERIES_QUEUE_URL).unwrap_or_default(),
            dead_letters_queue_url: variables.get(&table::DEADLETTERS_QUEUE_URL).unwrap_or_default(),
            redrive_queue_url: variables.get(&table::REDRIVE_QUEUE_URL).unwrap_or_default(),
            registry_max_age: variables.registry_max_age(),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
