//! Parsers of values.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use http::HeaderMap;
use ipnet::IpNet;
use posthaste_core::api::{compile_sender_headers, read_json};
use posthaste_core::model::pasted::{read_key, trim_unseen};
use posthaste_core::model::size::{DiskShare, parse_size};
use posthaste_core::model::time::parse_duration;
use posthaste_core::model::url_text::{UrlTextError, parse_written};
use posthaste_core::model::{
    DEAD_LETTER_RETENTION_MAX, DEAD_LETTER_RETENTION_MIN, DeliveryLogMode, KeyDigest,
    LOG_BYTES_KEPT, LOG_RETENTION_MAX, LOG_RETENTION_MIN, SenderHeaders,
};
use posthaste_core::pressure::{PressureProfile, PressureSettings};
use posthaste_core::trace::collector::{ResourceAttributes, parse_headers, parse_resource};
use posthaste_deliver::SlowLaneMode;
use posthaste_publish::TarpitMode;
use serde::de::DeserializeOwned;
use url::Url;

use crate::setting::SettingRefusal;

/// Shortest and longest name of a bucket, in characters.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>
const BUCKET_CHARS: RangeInclusive<usize> = 3..=63;

/// Longest namespace of metrics, in characters.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html>
const NAMESPACE_CHARS_MAX: usize = 255;

/// Form of the log of `serve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Pretty,
}

/// Error of a text that is not of the form in the setting's row.
#[derive(Debug, thiserror::Error)]
#[error("not of the expected form")]
struct UnexpectedForm;

/// Error of a text that is no address to listen on.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected an address and port such as 127.0.0.1:8080 or localhost:8080, or a port alone such as 8080"
)]
struct NotAnAddress;

/// Error of a text that is neither a network nor an address.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected a network such as 10.0.0.0/8, or an address such as 127.0.0.1; names are not looked up"
)]
struct NotANetwork;

/// Error of a length of time that is no retention.
#[derive(Debug, thiserror::Error)]
#[error("expected at least an hour (PT1H) and at most ten years (P3650D)")]
struct NotARetention;

/// Error of a length of time for which dead letters cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("expected at least an hour (PT1H) and at most a hundred years (P36500D)")]
struct NotADeadLetterRetention;

/// Error of a text that is not the size of a delivery log.
#[derive(Debug, thiserror::Error)]
#[error("expected a share of the disk such as 5%, or a size of at least 16 MB such as 20GB")]
struct NotALogSize;

/// Error of a text that is not the room for what disabled subscriptions miss.
#[derive(Debug, thiserror::Error)]
#[error("expected a share of the disk such as 10%, or a size such as 20GB")]
struct NotADiskShare;

/// Error of a text that is not a size.
#[derive(Debug, thiserror::Error)]
#[error("expected a size such as 20GB")]
struct NotASize;

/// Error of a text that is not the server's public URL.
#[derive(Debug, thiserror::Error)]
pub enum PublicUrlError {
    #[error("expected a URL that begins with https:// or http://, without a query or fragment")]
    NotOfTheWeb,
    #[error("{0}")]
    Text(UrlTextError),
}

/// A value by its own parser.
pub(crate) fn parse_value<T>(text: &str) -> Result<T, SettingRefusal>
where
    T: FromStr,
    SettingRefusal: From<T::Err>,
{
    Ok(text.parse()?)
}

/// A network, or one address, which is the network of that address alone.
pub(crate) fn network(text: &str) -> Result<IpNet, SettingRefusal> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    Ok(address.or_else(|_| text.parse()).map_err(|_| NotANetwork)?)
}

/// An address and port. A port alone, or with the name `localhost`, is one of IPv4's loopback.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, SettingRefusal> {
    let port = text
        .strip_prefix("localhost:")
        .unwrap_or(text)
        .parse::<u16>();
    let address = port.map(|port| (Ipv4Addr::LOCALHOST, port).into());
    Ok(address
        .or_else(|_| text.parse())
        .map_err(|_| NotAnAddress)?)
}

/// Settings in one variable.
pub(crate) fn json_settings<T: DeserializeOwned>(text: &str) -> Result<T, SettingRefusal> {
    Ok(read_json(text.as_bytes(), |_| Ok(()))?)
}

/// The headers that say who sends. The error names the member.
pub(crate) fn sender_headers(text: &str) -> Result<SenderHeaders, SettingRefusal> {
    Ok(compile_sender_headers("", &json_settings(text)?)?)
}

pub(crate) fn otlp_headers(text: &str) -> Result<HeaderMap, SettingRefusal> {
    Ok(parse_headers(text)?)
}

pub(crate) fn otlp_resource(text: &str) -> Result<ResourceAttributes, SettingRefusal> {
    Ok(parse_resource(text)?)
}

pub(crate) fn bucket_name(text: &str) -> Result<String, SettingRefusal> {
    let is_name = BUCKET_CHARS.contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'));
    or_unexpected(is_name.then(|| text.to_owned()))
}

/// A queue's URL ends in `/{account}/{name}`. A bare host would look like a queue, and fail at
/// every call.
pub(crate) fn queue_url(text: &str) -> Result<String, SettingRefusal> {
    let url = web_url(text)?;
    let has_name = url
        .path_segments()
        .and_then(|mut path| path.next_back())
        .is_some_and(|it| !it.is_empty());
    or_unexpected(has_name.then(|| trim_unseen(text).to_owned()))
}

pub(crate) fn web_url(text: &str) -> Result<Url, SettingRefusal> {
    let url = match parse_written(text) {
        Ok(url) => Some(url),
        Err(UrlTextError::NotAUrl(_)) => None,
        Err(error) => return Err(error.into()),
    };
    or_unexpected(url.filter(|url| matches!(url.scheme(), "https" | "http")))
}

/// Endpoints can only call a URL of the web.
pub(crate) fn public_url(text: &str) -> Result<Url, SettingRefusal> {
    let url = parse_written(text).map_err(PublicUrlError::Text)?;
    if !matches!(url.scheme(), "https" | "http") || url.query().or(url.fragment()).is_some() {
        return Err(PublicUrlError::NotOfTheWeb.into());
    }
    Ok(url)
}

pub(crate) fn key_digest(text: &str) -> Result<KeyDigest, SettingRefusal> {
    or_unexpected(KeyDigest::parse(read_key(text)?))
}

pub(crate) fn metrics_namespace(text: &str) -> Result<String, SettingRefusal> {
    let is_name = text.len() <= NAMESPACE_CHARS_MAX
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_/#:".contains(&byte));
    or_unexpected(is_name.then(|| text.to_owned()))
}

pub(crate) fn tarpit(text: &str) -> Result<TarpitMode, SettingRefusal> {
    value_named(
        text,
        [("advise", TarpitMode::Advise), ("delay", TarpitMode::Delay)],
    )
}

/// Whether the queue is read is up to the template.
pub(crate) fn slow_lane(text: &str) -> Result<SlowLaneMode, SettingRefusal> {
    value_named(
        text,
        [
            ("on", SlowLaneMode::On),
            ("drain", SlowLaneMode::Drained),
            ("off", SlowLaneMode::Drained),
        ],
    )
}

pub(crate) fn delivery_log_mode(text: &str) -> Result<DeliveryLogMode, SettingRefusal> {
    or_unexpected(DeliveryLogMode::parse(text))
}

/// A time for which the delivery log keeps records.
pub(crate) fn log_retention(text: &str) -> Result<Duration, SettingRefusal> {
    let retention = parse_duration(text)?;
    if (LOG_RETENTION_MIN..=LOG_RETENTION_MAX).contains(&retention) {
        Ok(retention)
    } else {
        Err(NotARetention.into())
    }
}

/// A time for which dead letters are kept.
pub(crate) fn dead_letter_retention(text: &str) -> Result<Duration, SettingRefusal> {
    let retention = parse_duration(text)?;
    if (DEAD_LETTER_RETENTION_MIN..=DEAD_LETTER_RETENTION_MAX).contains(&retention) {
        Ok(retention)
    } else {
        Err(NotADeadLetterRetention.into())
    }
}

/// A share of a disk, or a number of bytes with its unit.
pub(crate) fn disk_share(text: &str) -> Result<DiskShare, SettingRefusal> {
    DiskShare::parse(text, 0).ok_or_else(|| NotADiskShare.into())
}

/// A number of bytes with its unit.
pub(crate) fn size_bytes(text: &str) -> Result<u64, SettingRefusal> {
    parse_size(text).ok_or_else(|| NotASize.into())
}

pub(crate) fn log_size(text: &str) -> Result<DiskShare, SettingRefusal> {
    DiskShare::parse(text, LOG_BYTES_KEPT).ok_or_else(|| NotALogSize.into())
}

pub(crate) fn on_off(text: &str) -> Result<bool, SettingRefusal> {
    value_named(text, [("on", true), ("off", false)])
}

pub(crate) fn log_format(text: &str) -> Result<LogFormat, SettingRefusal> {
    value_named(
        text,
        [("json", LogFormat::Json), ("pretty", LogFormat::Pretty)],
    )
}

/// The defaults of a profile. `off` is no profile: it switches the monitoring off.
pub(crate) fn pressure_profile(text: &str) -> Result<PressureSettings, SettingRefusal> {
    let profiles = [
        ("scaled", (PressureProfile::Scaled, true)),
        ("exchange-2013", (PressureProfile::Exchange2013, true)),
        (
            "exchange-2013-german",
            (PressureProfile::Exchange2013German, true),
        ),
        ("off", (PressureProfile::default(), false)),
    ];
    let (profile, enable_resource_monitoring) = value_named(text, profiles)?;
    Ok(PressureSettings {
        profile,
        enable_resource_monitoring,
        ..PressureSettings::default()
    })
}

/// The value with this name.
fn value_named<T, const N: usize>(text: &str, values: [(&str, T); N]) -> Result<T, SettingRefusal> {
    or_unexpected(
        values
            .into_iter()
            .find_map(|(name, value)| (name == text).then_some(value)),
    )
}

fn or_unexpected<T>(value: Option<T>) -> Result<T, SettingRefusal> {
    value.ok_or_else(|| UnexpectedForm.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_may_be_one_address() {
        assert_eq!(
            network("127.0.0.1").unwrap(),
            "127.0.0.1/32".parse::<IpNet>().unwrap()
        );
        assert_eq!(
            network("fd00::1").unwrap(),
            "fd00::1/128".parse::<IpNet>().unwrap()
        );
        assert_eq!(
            network("10.0.0.0/8").unwrap(),
            "10.0.0.0/8".parse::<IpNet>().unwrap()
        );
        assert!(network("10.0.0").is_err() && network("").is_err());
    }

    #[test]
    fn url_that_needs_a_repair_is_refused() {
        let said = "is not a URL as it is written; if https://a.example/ is meant, write that";
        for text in ["https:a.example", "https://a.example\\"] {
            assert_eq!(web_url(text).unwrap_err().to_string(), said, "{text}");
            assert_eq!(public_url(text).unwrap_err().to_string(), said, "{text}");
        }
        let pasted = "\u{feff}https://a.example/\r\n";
        assert_eq!(web_url(pasted).unwrap().as_str(), "https://a.example/");
        assert_eq!(public_url(pasted).unwrap().as_str(), "https://a.example/");
        let queue = "https://sqs.example/1/q";
        assert_eq!(queue_url(&format!("{queue}\n")).unwrap(), queue);
        let spelled = "https://A.example";
        assert_eq!(web_url(spelled).unwrap().as_str(), "https://a.example/");
        assert_eq!(public_url(spelled).unwrap().as_str(), "https://a.example/");
        assert!(queue_url("https:sqs.example/1/q").is_err());
    }

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        for text in ["8093", "localhost:8093", "127.0.0.1:8093"] {
            assert_eq!(
                listen_address(text).unwrap(),
                "127.0.0.1:8093".parse().unwrap(),
                "{text}"
            );
        }
        assert_eq!(
            listen_address("[::1]:8093").unwrap(),
            "[::1]:8093".parse().unwrap()
        );
        assert!(
            ["localhost", "65536", "example.com:80", ""]
                .iter()
                .all(|text| listen_address(text).is_err())
        );
    }
}
