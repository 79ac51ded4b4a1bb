//! What deliver is told.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use posthaste_core::circuit::HealthSettings;
use posthaste_deliver::DeliverSettings;

use super::{
    ALLOW_ENDPOINTS, CommonEnvironment, DEADLETTERS_QUEUE_URL, DELIVERIES_QUEUE_URL, DNS_SERVER, Environment,
    EnvironmentError, REQUESTS_MAX, REQUESTS_PER_LINK_MAX, REQUESTS_PER_LINK_START, Variables,
    WAITING_PER_CONNECTION, WEBHOOK_ORIGIN, kinds,
};

/// Most requests open at once where nothing is set. One instance of a Lambda function works on one batch at a time.
const REQUESTS_DEFAULT: u16 = 256;

/// Most requests open at once that may be set. Lambda gives a process 1,024 file descriptors. A request takes one, or
/// two while it tries a second address of its endpoint; 128 are kept for idle connections, and the rest is for the
/// payloads that are read ([`PAYLOAD_READS_MAX`]), the topics that are looked up (as many), the queue and the process
/// itself.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const REQUESTS_LIMIT: u16 = 400;

/// Requests open at once to one link, at first and at most, and for how many that wait there is one more, where nothing
/// is set: as embedded.
const REQUESTS_PER_LINK_START_DEFAULT: u16 = 10;
const REQUESTS_PER_LINK_DEFAULT: u16 = 64;
const WAITING_PER_CONNECTION_DEFAULT: u16 = 20;

/// For how many that wait there may be one more request: as many as an invocation has under way, so that there is
/// never one.
const WAITING_PER_CONNECTION_LIMIT: u16 = 1000;

/// Most bytes of stored payloads held at once. A request's body takes as much again, so that 128 MiB of the function's
/// 512 MB, or of the 256 it has at least, are filled by them. A batch of messages has 6 MB, and its bodies as much.
const PAYLOAD_BYTES_MAX: u32 = 64 << 20;

/// Most stored payloads read at once. One takes S3 some 30 ms, so that these are a thousand a second: more than a
/// function of this size posts.
const PAYLOAD_READS_MAX: usize = 32;

/// What deliver is told.
#[derive(Debug, Clone)]
pub struct DeliverEnvironment {
    /// What every function is told.
    pub common: CommonEnvironment,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// How old a topic may be before it is looked up again.
    pub registry_max_age: Duration,
    /// The bounds on requests, and who asks.
    pub settings: DeliverSettings,
    /// Addresses that endpoints may have although they are not public.
    pub allow_endpoints: Vec<IpNet>,
    /// The only name server that is asked for endpoints' names; `None` for the system's.
    pub dns_server: Option<SocketAddr>,
    /// When endpoints that fail are left alone, and for how long.
    pub links: HealthSettings,
}

impl Environment for DeliverEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            deliveries_queue_url: variables.required(DELIVERIES_QUEUE_URL, &kinds::QUEUE_URL),
            dead_letters_queue_url: variables.required(DEADLETTERS_QUEUE_URL, &kinds::QUEUE_URL),
            registry_max_age: variables.registry_max_age(),
            settings: deliver_settings(&mut variables),
            allow_endpoints: variables.optional(ALLOW_ENDPOINTS, &kinds::NETWORKS).unwrap_or_default(),
            dns_server: variables.optional(DNS_SERVER, &kinds::DNS_SERVER),
            links: variables.link_settings(),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}

fn deliver_settings(variables: &mut Variables<'_>) -> DeliverSettings {
    let bounds = 1..=REQUESTS_LIMIT;
    let requests_max = variables.number(REQUESTS_MAX, REQUESTS_DEFAULT, bounds.clone());
    let per_link_start =
        variables.number(REQUESTS_PER_LINK_START, REQUESTS_PER_LINK_START_DEFAULT, bounds.clone());
    let per_link_max = variables.number(REQUESTS_PER_LINK_MAX, REQUESTS_PER_LINK_DEFAULT, bounds);
    let waiting = 1..=WAITING_PER_CONNECTION_LIMIT;
    let waiting_per_connection =
        variables.number(WAITING_PER_CONNECTION, WAITING_PER_CONNECTION_DEFAULT, waiting);
    let default = DeliverSettings::default();
    let settings = DeliverSettings {
        requests_max: requests_max.into(),
        requests_per_link_start: per_link_start.into(),
        waiting_per_connection: waiting_per_connection.into(),
        requests_per_link_max: per_link_max.into(),
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        payload_reads_max: PAYLOAD_READS_MAX,
        origin: variables.optional(WEBHOOK_ORIGIN, &kinds::ORIGIN).unwrap_or(default.origin),
    };
    if let Err(error) = settings.check_link_bounds() {
        variables.refuse(REQUESTS_PER_LINK_START, &error);
    }
    settings
}
