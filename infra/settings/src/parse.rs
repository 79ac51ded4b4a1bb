//! How the text of each kind of value is read.

use std::ops::RangeInclusive;
use std::str::FromStr;

use posthaste_core::model::KeyDigest;
use posthaste_core::pressure::{PressureSettings, Profile};
use posthaste_publish::Tarpit;
use serde::de::DeserializeOwned;
use tracing::level_filters::LevelFilter;
use url::Url;

use crate::setting::Refusal;

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

/// Error of a text that is not of the expected form, which the setting's row says.
#[derive(Debug, thiserror::Error)]
#[error("not of the expected form")]
struct Unexpected;

/// Error of a text that is not the server's public URL.
#[derive(Debug, thiserror::Error)]
pub enum PublicUrlError {
    #[error("expected a URL that begins with https:// or http://, without a query or fragment")]
    NotOfTheWeb,
    #[error("not an absolute URL: {0}")]
    NotAUrl(url::ParseError),
}

/// A value by its own parser.
pub(crate) fn parsed<T>(text: &str) -> Result<T, Refusal>
where
    T: FromStr,
    Refusal: From<T::Err>,
{
    Ok(text.parse()?)
}

/// Settings in one variable.
pub(crate) fn json<T: DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    Ok(serde_json::from_str(text)?)
}

pub(crate) fn bucket(text: &str) -> Result<String, Refusal> {
    let is_name = BUCKET_CHARS.contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'));
    expected(is_name.then(|| text.to_owned()))
}

/// A queue's URL ends in `/{account}/{name}`. A bare host would look like a queue, and fail at every call.
pub(crate) fn queue_url(text: &str) -> Result<String, Refusal> {
    let url = web_url(text)?;
    let has_name = url.path_segments().and_then(|mut path| path.next_back()).is_some_and(|it| !it.is_empty());
    expected(has_name.then(|| text.to_owned()))
}

pub(crate) fn web_url(text: &str) -> Result<Url, Refusal> {
    expected(Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http")))
}

/// Endpoints can only call a URL of the web.
pub(crate) fn public_url(text: &str) -> Result<Url, Refusal> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "https" | "http") && url.query().or(url.fragment()).is_none() => {
            Ok(url)
        }
        Ok(_) => Err(PublicUrlError::NotOfTheWeb.into()),
        Err(error) => Err(PublicUrlError::NotAUrl(error).into()),
    }
}

pub(crate) fn key_digest(text: &str) -> Result<KeyDigest, Refusal> {
    expected(KeyDigest::parse(text))
}

pub(crate) fn namespace(text: &str) -> Result<String, Refusal> {
    let is_name = text.len() <= NAMESPACE_CHARS_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_/#:".contains(&byte));
    expected(is_name.then(|| text.to_owned()))
}

pub(crate) fn tarpit(text: &str) -> Result<Tarpit, Refusal> {
    expected(match text {
        "advise" => Some(Tarpit::Advise),
        "delay" => Some(Tarpit::Delay),
        _ => None,
    })
}

pub(crate) fn log_format(text: &str) -> Result<LogFormat, Refusal> {
    expected(match text {
        "json" => Some(LogFormat::Json),
        "pretty" => Some(LogFormat::Pretty),
        _ => None,
    })
}

/// A level by its name in small letters; `LevelFilter`'s own parser also takes numbers and capitals.
pub(crate) fn log_level(text: &str) -> Result<LevelFilter, Refusal> {
    expected(match text {
        "off" => Some(LevelFilter::OFF),
        "error" => Some(LevelFilter::ERROR),
        "warn" => Some(LevelFilter::WARN),
        "info" => Some(LevelFilter::INFO),
        "debug" => Some(LevelFilter::DEBUG),
        "trace" => Some(LevelFilter::TRACE),
        _ => None,
    })
}

/// The defaults of a profile. `off` is no profile: it switches the monitoring off.
pub(crate) fn pressure_profile(text: &str) -> Result<PressureSettings, Refusal> {
    let (profile, enable_resource_monitoring) = match text {
        "scaled" => (Profile::Scaled, true),
        "exchange-2013" => (Profile::Exchange2013, true),
        "exchange-2013-german" => (Profile::Exchange2013German, true),
        "off" => (Profile::default(), false),
        _ => return Err(Unexpected.into()),
    };
    Ok(PressureSettings { profile, enable_resource_monitoring, ..PressureSettings::default() })
}

fn expected<T>(value: Option<T>) -> Result<T, Refusal> {
    value.ok_or_else(|| Unexpected.into())
}
