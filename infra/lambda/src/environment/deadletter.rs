//! What deadletter is told.

use std::time::Duration;

use super::{
    CommonEnvironment, DEAD_LETTER_BUCKET, DEADLETTERS_QUEUE_URL, DELIVERIES_QUEUE_URL, Environment,
    EnvironmentError, REDRIVE_QUEUE_URL, Variables, kinds,
};

/// What deadletter is told.
#[derive(Debug, Clone)]
pub struct DeadLetterEnvironment {
    /// What every function is told.
    pub common: CommonEnvironment,
    /// The bucket of dead letters.
    pub dead_letter_bucket: String,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// The URL of the queue of messages that functions failed on again and again.
    pub redrive_queue_url: String,
    /// How old a topic may be before it is looked up again.
    pub registry_max_age: Duration,
}

impl Environment for DeadLetterEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            dead_letter_bucket: variables.required(DEAD_LETTER_BUCKET, &kinds::BUCKET),
            deliveries_queue_url: variables.required(DELIVERIES_QUEUE_URL, &kinds::QUEUE_URL),
            dead_letters_queue_url: variables.required(DEADLETTERS_QUEUE_URL, &kinds::QUEUE_URL),
            redrive_queue_url: variables.required(REDRIVE_QUEUE_URL, &kinds::QUEUE_URL),
            registry_max_age: variables.registry_max_age(),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
