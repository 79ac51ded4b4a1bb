//! What publish is told.

use std::time::Duration;

use posthaste_publish::Tarpit;

use super::{
    CommonEnvironment, DELIVERIES_QUEUE_URL, Environment, EnvironmentError, TARPIT, Variables, kinds,
};

/// What publish is told.
#[derive(Debug, Clone)]
pub struct PublishEnvironment {
    /// What every function is told.
    pub common: CommonEnvironment,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// How old a topic may be before it is looked up again.
    pub registry_max_age: Duration,
    /// How producers are slowed.
    pub tarpit: Tarpit,
}

impl Environment for PublishEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            deliveries_queue_url: variables.required(DELIVERIES_QUEUE_URL, &kinds::QUEUE_URL),
            registry_max_age: variables.registry_max_age(),
            tarpit: variables.optional(TARPIT, &kinds::TARPIT).unwrap_or(Tarpit::Advise),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
