//! What a server is told, read once.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::HeaderValue;
use ipnet::IpNet;
use posthaste_core::health::HealthSettings;
use posthaste_core::name::TopicName;
use posthaste_core::origin;
use posthaste_core::pressure::PressureSettings;
use url::Url;

use crate::cli::{Global, ServeArgs};
use crate::commands::data_dir;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Where it listens; a free port with port 0.
    pub listen: SocketAddr,
    /// The data folder.
    pub data_dir: PathBuf,
    /// Addresses that endpoints may have although they are not public.
    pub allow_endpoints: Vec<IpNet>,
    /// The topic that is told of changes of the pressure, and of links that are down or up again.
    pub notices_topic: Option<TopicName>,
    /// When producers are slowed and refused.
    pub pressure: PressureSettings,
    /// When endpoints that fail are left alone, and for how long.
    pub links: HealthSettings,
    /// Root certificates that endpoints may have beside the platform's.
    pub extra_ca: Option<PathBuf>,
    /// The only name server that is asked for endpoints' names; `None` for the system's.
    pub dns_server: Option<SocketAddr>,
    /// Where the server is reached from outside, if that is known.
    pub public_url: Option<Url>,
    /// Who requests to endpoints say they come from.
    pub origin: HeaderValue,
}

impl ServeSettings {
    /// The settings of a command line, with those of back pressure and of links read from their files.
    pub fn of(
        global: &Global,
        arguments: &ServeArgs,
        pressure: PressureSettings,
        links: HealthSettings,
    ) -> Self {
        Self {
            listen: arguments.listen,
            data_dir: data_dir(global),
            allow_endpoints: arguments.allow_endpoints.clone(),
            notices_topic: arguments.notices_topic.clone(),
            pressure,
            links,
            extra_ca: arguments.extra_ca.clone(),
            dns_server: arguments.dns_server,
            public_url: arguments.public_url.clone(),
            origin: arguments
                .webhook_origin
                .clone()
                .unwrap_or_else(|| origin::of_public_url(arguments.public_url.as_ref())),
        }
    }
}
