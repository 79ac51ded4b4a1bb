//! What a server is told, read once.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::HeaderValue;
use ipnet::IpNet;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::name::TopicName;
use posthaste_core::model::origin;
use posthaste_core::pressure::PressureSettings;
use posthaste_deliver::DeliverSettings;
use url::Url;

use super::ServeError;
use super::http::ConnectionLimits;
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
    /// How deliver goes about its work.
    pub deliver: DeliverSettings,
    /// How many connections there may be.
    pub connections: ConnectionLimits,
}

impl ServeSettings {
    /// The settings of a command line, with those of back pressure and of links read from their files. An error where the
    /// bounds of requests to one link contradict each other.
    pub fn of(
        global: &Global,
        arguments: &ServeArgs,
        pressure: PressureSettings,
        links: HealthSettings,
    ) -> Result<Self, ServeError> {
        let origin = arguments
            .webhook_origin
            .clone()
            .unwrap_or_else(|| origin::of_public_url(arguments.public_url.as_ref()));
        let deliver = DeliverSettings {
            requests_per_link_start: arguments.requests_per_link_start.into(),
            waiting_per_connection: arguments.waiting_per_connection.into(),
            requests_per_link_max: arguments.requests_per_link_max.into(),
            origin: origin.clone(),
            ..DeliverSettings::default()
        };
        deliver.check_link_bounds()?;
        Ok(Self {
            listen: arguments.listen,
            data_dir: data_dir(global),
            allow_endpoints: arguments.allow_endpoints.clone(),
            notices_topic: arguments.notices_topic.clone(),
            pressure,
            links,
            extra_ca: arguments.extra_ca.clone(),
            dns_server: arguments.dns_server,
            public_url: arguments.public_url.clone(),
            origin,
            deliver,
            connections: ConnectionLimits {
                requests_max: usize::try_from(arguments.connections_max).unwrap_or(usize::MAX),
                trusted_proxies: arguments.trusted_proxies.clone(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        global: Global,
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn deliver(options: &[&str]) -> Result<[usize; 3], String> {
        let line =
            Line::try_parse_from(["serve"].iter().chain(options)).map_err(|error| error.to_string())?;
        let (pressure, links) = (PressureSettings::default(), HealthSettings::default());
        let settings = ServeSettings::of(&line.global, &line.serve, pressure, links);
        let it = settings.map_err(|error| error.to_string())?.deliver;
        Ok([it.requests_per_link_start, it.waiting_per_connection, it.requests_per_link_max])
    }

    #[test]
    fn requests_to_a_link_are_bounded_as_the_command_line_says_and_refused_by_name() {
        let default = DeliverSettings::default();
        let defaults =
            [default.requests_per_link_start, default.waiting_per_connection, default.requests_per_link_max];
        assert_eq!(deliver(&[]), Ok(defaults));
        let all = ["--requests-per-link-start=2", "--waiting-per-connection=3", "--requests-per-link-max=4"];
        assert_eq!(deliver(&all), Ok([2, 3, 4]));
        let message = deliver(&["--requests-per-link-max=9"]).unwrap_err();
        assert!(message.starts_with("--requests-per-link-start: 10 requests"), "{message}");
        for bad in ["--requests-per-link-start=0", "--waiting-per-connection=0", "--requests-per-link-max=0"]
        {
            assert!(deliver(&[bad]).unwrap_err().contains(&bad[..bad.len() - 2]), "{bad}");
        }
    }
}
