//! The kinds of values that variables have, each with the words in which it is asked for.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use http::HeaderValue;
use ipnet::IpNet;
use posthaste_aws::telemetry::MetricsBy;
use posthaste_core::model::name::TopicName;
use posthaste_core::model::secret::KeyDigest;
use posthaste_core::pressure::{PressureSettings, Profile};
use posthaste_http::parse_dns_server;
use posthaste_publish::Tarpit;
use tracing::level_filters::LevelFilter;
use url::Url;

/// Shortest and longest name of a bucket, in characters.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>
const BUCKET_CHARS: RangeInclusive<usize> = 3..=63;

/// Longest namespace of metrics, in characters.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html>
const NAMESPACE_CHARS_MAX: usize = 255;

/// A kind of value.
pub(crate) struct Kind<T> {
    /// What is expected, as it fits "expected …".
    pub(crate) expected: &'static str,
    /// Whether a value must not be shown.
    pub(crate) is_secret: bool,
    /// Reads a value; `None` if it means nothing.
    pub(crate) parse: fn(&str) -> Option<T>,
}

impl<T> Kind<T> {
    pub(crate) const fn new(expected: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Self { expected, is_secret: false, parse }
    }
}

pub(crate) const BUCKET: Kind<String> = Kind::new("the name of a bucket", bucket);

pub(crate) const QUEUE_URL: Kind<String> = Kind::new("the URL of a queue", queue_url);

pub(crate) const ORIGIN: Kind<HeaderValue> = Kind::new("a host name such as hooks.example.com", origin);

pub(crate) const NETWORKS: Kind<Vec<IpNet>> =
    Kind::new("networks as in 10.0.0.0/8,fd00::/8, separated by commas", networks);

pub(crate) const DNS_SERVER: Kind<SocketAddr> =
    Kind::new("an address and port such as 10.0.0.2:53", |text| parse_dns_server(text).ok());

pub(crate) const PUBLIC_URL: Kind<Url> = Kind::new("a URL that begins with https:// or http://", web_url);

pub(crate) const KEY_DIGEST: Kind<KeyDigest> = Kind {
    is_secret: true,
    ..Kind::new("the SHA-256 digest of the admin key, as 64 hexadecimal digits", KeyDigest::parse)
};

pub(crate) const TARPIT: Kind<Tarpit> = Kind::new("advise or delay", tarpit);

pub(crate) const NAMESPACE: Kind<String> =
    Kind::new("1 to 255 letters, digits and .-_/#: as CloudWatch has them", namespace);

pub(crate) const METRICS_BY: Kind<MetricsBy> =
    Kind::new("stack, topic or subscription", |text| text.parse().ok());

pub(crate) const LOG_LEVEL: Kind<LevelFilter> =
    Kind::new("off, error, warn, info, debug or trace", log_level);

pub(crate) const PRESSURE_PROFILE: Kind<PressureSettings> =
    Kind::new("scaled, exchange-2013, exchange-2013-german or off", pressure);

pub(crate) const TOPIC: Kind<TopicName> =
    Kind::new("the name of a topic", |text| TopicName::parse(text).ok());

fn bucket(text: &str) -> Option<String> {
    let is_name = BUCKET_CHARS.contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'));
    is_name.then(|| text.to_owned())
}

/// A queue's URL ends in `/{account}/{name}`; a bare host would be taken for a queue's only to fail at every call.
fn queue_url(text: &str) -> Option<String> {
    let name = web_url(text)?.path_segments()?.next_back()?.to_owned();
    (!name.is_empty()).then(|| text.to_owned())
}

fn web_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http"))
}

fn origin(text: &str) -> Option<HeaderValue> {
    posthaste_core::model::origin::parse(text).ok()
}

fn networks(text: &str) -> Option<Vec<IpNet>> {
    text.split(',').map(|network| network.trim().parse().ok()).collect()
}

fn tarpit(text: &str) -> Option<Tarpit> {
    match text {
        "advise" => Some(Tarpit::Advise),
        "delay" => Some(Tarpit::Delay),
        _ => None,
    }
}

fn namespace(text: &str) -> Option<String> {
    let is_name = text.len() <= NAMESPACE_CHARS_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_/#:".contains(&byte));
    is_name.then(|| text.to_owned())
}

fn log_level(text: &str) -> Option<LevelFilter> {
    match text {
        "off" => Some(LevelFilter::OFF),
        "error" => Some(LevelFilter::ERROR),
        "warn" => Some(LevelFilter::WARN),
        "info" => Some(LevelFilter::INFO),
        "debug" => Some(LevelFilter::DEBUG),
        "trace" => Some(LevelFilter::TRACE),
        _ => None,
    }
}

/// `off` is no profile: it switches the monitoring off.
fn pressure(text: &str) -> Option<PressureSettings> {
    let profile = match text {
        "scaled" => Profile::Scaled,
        "exchange-2013" => Profile::Exchange2013,
        "exchange-2013-german" => Profile::Exchange2013German,
        "off" => {
            return Some(PressureSettings {
                enable_resource_monitoring: false,
                ..PressureSettings::default()
            });
        }
        _ => return None,
    };
    Some(PressureSettings { profile, ..PressureSettings::default() })
}
