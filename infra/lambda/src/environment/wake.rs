//! What wake is told.

use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::name::TopicName;

use super::{
    CommonEnvironment, DEAD_LETTER_BUCKET, DELIVERIES_QUEUE_URL, Environment, EnvironmentError,
    NOTICES_TOPIC, Variables, kinds,
};

/// What wake is told.
#[derive(Debug, Clone)]
pub struct WakeEnvironment {
    /// What every function is told.
    pub common: CommonEnvironment,
    /// The bucket of dead letters, for replays.
    pub dead_letter_bucket: String,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// When endpoints that fail are left alone, and for how long.
    pub links: HealthSettings,
    /// The topic that is told of links that are down or up again.
    pub notices_topic: Option<TopicName>,
}

impl Environment for WakeEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            dead_letter_bucket: variables.required(DEAD_LETTER_BUCKET, &kinds::BUCKET),
            deliveries_queue_url: variables.required(DELIVERIES_QUEUE_URL, &kinds::QUEUE_URL),
            links: variables.link_settings(),
            notices_topic: variables.optional(NOTICES_TOPIC, &kinds::TOPIC),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
