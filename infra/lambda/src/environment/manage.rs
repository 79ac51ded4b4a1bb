//! The environment of manage.

use std::net::SocketAddr;

use http::HeaderValue;
use ipnet::IpNet;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{KeyDigest, origin};
use posthaste_settings::{Values, table};
use url::Url;

use super::common::CommonEnvironment;
use super::read::Environment;
use super::variables::{EnvironmentError, Variables};

/// The environment of manage.
#[derive(Debug, Clone)]
pub struct ManageEnvironment {
    /// The part that every function has.
    pub common: CommonEnvironment,
    /// The bucket of dead letters.
    pub dead_letter_bucket: String,
    /// The digest of the key of the management API.
    pub admin_key: KeyDigest,
    /// URL of publish, as a topic's `endpoint` shows it.
    pub publish_url: Option<Url>,
    /// URL of manage itself. A template cannot give a function its own URL when it makes the function.
    pub public_url: Option<Url>,
    /// Origin of handshakes: the same as in deliver.
    pub origin: HeaderValue,
    /// Addresses that endpoints may have although they are not public.
    pub allow_endpoints: Vec<IpNet>,
    /// The only name server that is asked for endpoints' names; `None` for the system's.
    pub dns_server: Option<SocketAddr>,
    /// When endpoints that fail get no requests, and for how long.
    pub links: HealthSettings,
}

impl Environment for ManageEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            dead_letter_bucket: variables.get(&table::DEAD_LETTER_BUCKET).unwrap_or_default(),
            admin_key: variables.get(&table::ADMIN_KEY_SHA256).unwrap_or_default(),
            publish_url: variables.get(&table::PUBLISH_URL),
            public_url: variables.get(&table::MANAGE_URL),
            origin: variables.get(&table::WEBHOOK_ORIGIN).unwrap_or(origin::DEFAULT),
            allow_endpoints: variables.list(&table::ALLOW_ENDPOINTS),
            dns_server: variables.get(&table::DNS_SERVER),
            links: variables.link_settings(),
        };
        variables.finish(environment)
    }

    fn common(&self) -> &CommonEnvironment {
        &self.common
    }
}
