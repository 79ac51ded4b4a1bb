//! What `serve` can be told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use http::HeaderValue;
use ipnet::IpNet;
use posthaste_core::model::name::TopicName;
use posthaste_core::model::origin;
use posthaste_core::model::time::parse_duration;
use posthaste_http::parse_dns_server;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use url::Url;

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The address and port to listen on. Port 0 takes a free one; the log says which.
    #[arg(long, env = "POSTHASTE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// A YAML file to apply at the start, as `apply -f` does. May be given more than once.
    #[arg(long, env = "POSTHASTE_CONFIG", value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Addresses that endpoints may have although they are not public, and that plain http and any port are allowed
    /// to. For development, such as 127.0.0.0/8. May be given more than once, or as a list with commas.
    #[arg(long, env = "ALLOW_ENDPOINTS", value_name = "CIDR", value_delimiter = ',')]
    pub allow_endpoints: Vec<IpNet>,
    /// By which thresholds producers are slowed and refused.
    #[arg(long, env = "POSTHASTE_PRESSURE_PROFILE", value_enum, default_value_t = PressureProfile::Scaled)]
    pub pressure_profile: PressureProfile,
    /// The topic that is told of what is about no topic: that the pressure changed, that a link is down or up again.
    #[arg(long, env = "POSTHASTE_NOTICES_TOPIC", value_name = "NAME", value_parser = TopicName::parse)]
    pub notices_topic: Option<TopicName>,
    /// A YAML file with settings of back pressure under Exchange's names, over the profile's defaults.
    /// docs/reference/pressure-settings.md lists its keys.
    #[arg(long, env = "POSTHASTE_PRESSURE_SETTINGS", value_name = "FILE")]
    pub pressure_settings: Option<PathBuf>,
    /// A YAML file with settings of failing endpoints. README.md lists its keys.
    #[arg(long, env = "POSTHASTE_LINK_SETTINGS", value_name = "FILE")]
    pub link_settings: Option<PathBuf>,
    /// Requests that are open at once to one scheme, host and port while few wait for it.
    #[arg(long, env = "POSTHASTE_REQUESTS_PER_LINK_START", default_value_t = 10, value_name = "NUMBER", value_parser = value_parser!(u16).range(1..))]
    pub requests_per_link_start: u16,
    /// For every so many requests that wait for one scheme, host and port, one more is open at once.
    #[arg(long, env = "POSTHASTE_WAITING_PER_CONNECTION", default_value_t = 20, value_name = "NUMBER", value_parser = value_parser!(u16).range(1..))]
    pub waiting_per_connection: u16,
    /// Most requests that are open at once to one scheme, host and port, however many wait.
    #[arg(long, env = "POSTHASTE_REQUESTS_PER_LINK_MAX", default_value_t = 64, value_name = "NUMBER", value_parser = value_parser!(u16).range(1..))]
    pub requests_per_link_max: u16,
    /// Most requests that are answered at once. Beyond them health, metrics and requests with the admin key are still
    /// answered, and all others get 503.
    #[arg(long, env = "POSTHASTE_CONNECTIONS_MAX", default_value_t = 4096, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..))]
    pub connections_max: u32,
    /// Addresses of proxies in front of this server, such as 10.0.0.0/8. Connections of any other address that have not
    /// sent a request yet are bounded. May be given more than once, or as a list with commas.
    #[arg(long, env = "POSTHASTE_TRUSTED_PROXIES", value_name = "CIDR", value_delimiter = ',')]
    pub trusted_proxies: Vec<IpNet>,
    /// How the log is written, on standard error [default: pretty on a terminal, else json].
    #[arg(long, env = "POSTHASTE_LOG_FORMAT", value_enum)]
    pub log: Option<LogFormat>,
    /// What is logged, such as `debug` or `info,posthaste_deliver=debug`.
    #[arg(long, env = "POSTHASTE_LOG", default_value = "info", value_name = "FILTER", value_parser = check_log_filter)]
    pub log_filter: String,
    /// A PEM file with root certificates that endpoints may have beside the platform's.
    #[arg(long, env = "POSTHASTE_EXTRA_CA", value_name = "FILE")]
    pub extra_ca: Option<PathBuf>,
    /// The only name server that is asked for endpoints' host names, by address and port, and the hosts file not at all
    /// [default: as the system does].
    #[arg(long, env = "POSTHASTE_DNS_SERVER", value_name = "ADDRESS", value_parser = parse_dns_server)]
    pub dns_server: Option<SocketAddr>,
    /// Where endpoints reach this server, such as `https://hooks.example.com`. With it, an endpoint that is asked whether
    /// it wants events (`endpoint.validation`) may also consent later, by calling an address under it.
    #[arg(long, env = "POSTHASTE_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub public_url: Option<Url>,
    /// The host name that requests to endpoints carry as `WebHook-Request-Origin`, and to which endpoints that are
    /// asked consent [default: the public URL's, else posthaste].
    #[arg(long, env = "WEBHOOK_ORIGIN", value_name = "NAME", value_parser = origin::parse)]
    pub webhook_origin: Option<HeaderValue>,
    /// How long SIGTERM waits for what is in flight. A second signal waits for nothing.
    #[arg(long, env = "POSTHASTE_DRAIN_TIMEOUT", default_value = "PT60S", value_parser = parse_duration, value_name = "DURATION")]
    pub drain_timeout: Duration,
}

/// By which thresholds producers are slowed and refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PressureProfile {
    /// The queue's length counts only while it drains slowly.
    Scaled,
    /// Exchange 2013's table to the letter.
    #[value(name = "exchange-2013")]
    Exchange2013,
    /// The same with the version buckets of the older, German page.
    #[value(name = "exchange-2013-german")]
    Exchange2013German,
    /// Nothing is measured, and nobody is slowed.
    Off,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Pretty,
}

/// A filter as it is, if it says what is logged. To `tracing` a word that is no level is the name of a target, and a
/// mistyped level would silence everything else.
fn check_log_filter(text: &str) -> Result<String, LogFilterError> {
    EnvFilter::builder().parse(text)?;
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let mut words =
        text.split(',').map(str::trim).filter(|word| !word.is_empty() && !word.contains(['=', '[']));
    match words.find(|word| !is_level(word)) {
        Some(word) => Err(LogFilterError::NotALevel(word.to_owned())),
        None => Ok(text.to_owned()),
    }
}

/// Why a text says not what is logged.
#[derive(Debug, thiserror::Error)]
enum LogFilterError {
    #[error(transparent)]
    Directive(#[from] ParseError),
    #[error(
        "{0:?} is not one of off, error, warn, info, debug, trace; of one target it is written as {0}=debug"
    )]
    NotALevel(String),
}

/// A URL that is not one of the web is of no use to an endpoint.
fn parse_public_url(text: &str) -> Result<Url, PublicUrlError> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "https" | "http") && url.query().or(url.fragment()).is_none() => {
            Ok(url)
        }
        Ok(_) => Err(PublicUrlError::NotOfTheWeb),
        Err(error) => Err(PublicUrlError::NotAUrl(error)),
    }
}

/// Why a text is not the server's public URL.
#[derive(Debug, thiserror::Error)]
enum PublicUrlError {
    #[error("expected a URL that begins with https:// or http://, without a query or fragment")]
    NotOfTheWeb,
    #[error("not an absolute URL: {0}")]
    NotAUrl(url::ParseError),
}
