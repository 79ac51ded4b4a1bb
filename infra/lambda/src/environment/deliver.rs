//! The environment of deliver.

use std::time::Duration;

use posthaste_core::circuit::HealthSettings;
use posthaste_deliver::DeliverSettings;
use posthaste_http::ClientSettings;
use posthaste_settings::Values;
use posthaste_settings::table::{self, client_settings, deliver_settings};

use super::common::CommonEnvironment;
use super::read::Environment;
use super::variables::{EnvironmentError, Variables};

/// Most bytes of stored payloads held at once. A request's body takes as much again, so that 128 MiB of the
/// function's 512 MB, or of the 256 it has at least, are filled by them. A batch of messages has 6 MB, and
/// its bodies as much.
const PAYLOAD_BYTES_MAX: u32 = 64 << 20;

/// Most stored payloads read at once. One takes S3 some 30 ms, so that these are a thousand a second: more
/// than a function of this size posts.
const PAYLOAD_READS_MAX: usize = 32;

/// The environment of deliver.
#[derive(Debug, Clone)]
pub struct DeliverEnvironment {
    /// The part that every function has.
    pub common: CommonEnvironment,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// Greatest age of a cached topic.
    pub registry_max_age: Duration,
    /// Bounds of requests, and their origin.
    pub settings: DeliverSettings,
    /// Settings of the webhook client.
    pub client: ClientSettings,
    /// When endpoints that fail get no requests, and for how long.
    pub links: HealthSettings,
}

impl Environment for DeliverEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            deliveries_queue_url: variables.get(&table::DELIVERIES_QUEUE_URL).unwrap_or_default(),
            dead_letters_queue_url: variables.get(&table::DEADLETTERS_QUEUE_URL).unwrap_or_default(),
            registry_max_age: variables.registry_max_age(),
            settings: settings(&mut variables),
            client: client_settings(&mut variables, ClientSettings::default()),
            links: variables.link_settings(),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}

fn settings(variables: &mut Variables<'_>) -> DeliverSettings {
    let base = DeliverSettings {
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        payload_reads_max: PAYLOAD_READS_MAX,
        ..DeliverSettings::default()
    };
    let settings = deliver_settings(variables, base);
    if let Err(error) = settings.check_link_bounds() {
        variables.refuse(&table::REQUESTS_PER_LINK_START, &error);
    }
    settings
}
