//! What manage is told.

use std::net::SocketAddr;

use http::HeaderValue;
use ipnet::IpNet;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::secret::KeyDigest;
use posthaste_deliver::DeliverSettings;
use url::Url;

use super::{
    ADMIN_KEY_SHA256, ALLOW_ENDPOINTS, CommonEnvironment, DEAD_LETTER_BUCKET, DNS_SERVER, Environment,
    EnvironmentError, MANAGE_URL, PUBLISH_URL, Variables, WEBHOOK_ORIGIN, kinds,
};

/// What manage is told.
#[derive(Debug, Clone)]
pub struct ManageEnvironment {
    /// What every function is told.
    pub common: CommonEnvironment,
    /// The bucket of dead letters.
    pub dead_letter_bucket: String,
    /// The digest of the key of the management API.
    pub admin_key: KeyDigest,
    /// Where events are published, as a topic's `endpoint` shows it.
    pub publish_url: Option<Url>,
    /// Where manage itself is reached from outside. A function cannot be told its own URL when it is made.
    pub public_url: Option<Url>,
    /// Who asks endpoints for their consent: the same as in deliver.
    pub origin: HeaderValue,
    /// Addresses that endpoints may have although they are not public.
    pub allow_endpoints: Vec<IpNet>,
    /// The only name server that is asked for endpoints' names; `None` for the system's.
    pub dns_server: Option<SocketAddr>,
    /// When endpoints that fail are left alone, and for how long.
    pub links: HealthSettings,
}

impl Environment for ManageEnvironment {
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables::new(read);
        let environment = Self {
            common: CommonEnvironment::read(&mut variables),
            dead_letter_bucket: variables.required(DEAD_LETTER_BUCKET, &kinds::BUCKET),
            admin_key: variables.required(ADMIN_KEY_SHA256, &kinds::KEY_DIGEST),
            publish_url: variables.optional(PUBLISH_URL, &kinds::PUBLIC_URL),
            public_url: variables.optional(MANAGE_URL, &kinds::PUBLIC_URL),
            origin: variables
                .optional(WEBHOOK_ORIGIN, &kinds::ORIGIN)
                .unwrap_or_else(|| DeliverSettings::default().origin),
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
