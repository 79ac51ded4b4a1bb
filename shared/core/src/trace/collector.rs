//! The collector of traces and metrics: its address, and what every request to it says.

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use url::Url;

use super::SampleRatio;

/// The exported signals, and the collector that receives them.
#[derive(Debug, Clone)]
pub struct ExportSettings {
    /// The collector.
    pub collector: CollectorSettings,
    /// The share of events without a trace of their own that are traced.
    pub ratio: SampleRatio,
    /// Whether endpoints are told the span of their request.
    pub tells_endpoints: bool,
}

/// Names and values that say where a process runs.
pub type ResourceAttributes = Vec<(String, String)>;

/// A collector.
#[derive(Debug, Clone)]
pub struct CollectorSettings {
    /// The collector's base URL, below which each signal has its path.
    pub endpoint: Url,
    /// Further headers, such as a key.
    pub headers: HeaderMap,
    /// Attributes of the process, such as where it runs.
    pub resource: ResourceAttributes,
}

/// Error of a text that is no list of names and values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairsError {
    /// A part without `=`, or without a name before it.
    #[error("expected name=value with commas in between, found {0:?}")]
    Pair(String),
    /// A value that is not UTF-8 once it is decoded.
    #[error("the value of {0} is not UTF-8 once its percent signs are decoded")]
    Encoding(String),
    /// A name that no header has.
    #[error("{0:?} is no name of a header")]
    HeaderName(String),
    /// A value that no header takes.
    #[error("the value of {0} has characters that no header takes")]
    HeaderValue(String),
}

/// Reads `name=value,name=value`, the values percent-encoded where they have commas.
/// <https://opentelemetry.io/docs/specs/otel/resource/sdk/#specifying-resource-information-via-an-environment-variable>
pub fn parse_resource(text: &str) -> Result<ResourceAttributes, PairsError> {
    let parts = text.split(',').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(parse_pair).collect()
}

/// Reads headers in the same form.
/// <https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables>
pub fn parse_headers(text: &str) -> Result<HeaderMap, PairsError> {
    let mut headers = HeaderMap::new();
    for (name, value) in parse_resource(text)? {
        let header =
            HeaderName::try_from(&name).map_err(|_| PairsError::HeaderName(name.clone()))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| PairsError::HeaderValue(name))?;
        value.set_sensitive(true);
        headers.append(header, value);
    }
    Ok(headers)
}

fn parse_pair(part: &str) -> Result<(String, String), PairsError> {
    let (name, value) = part
        .split_once('=')
        .map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(name, _)| !name.is_empty())
        // What stands there may be a secret without its name.
        .ok_or_else(|| PairsError::Pair(part.chars().take(PART_SHOWN_CHARS).collect()))?;
    let value = percent_decode_str(value).decode_utf8();
    let value = value.map_err(|_| PairsError::Encoding(name.to_owned()))?;
    Ok((name.to_owned(), value.into_owned()))
}

/// The part of a wrong text that is shown, in characters.
const PART_SHOWN_CHARS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_commas_between_them() {
        let read = parse_resource("deployment.environment=prod, note=a%2Cb ,empty=").unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let expected = [
            ("deployment.environment", "prod"),
            ("note", "a,b"),
            ("empty", ""),
        ];
        assert_eq!(read, expected);
        assert_eq!(parse_resource(""), Ok(Vec::new()));
    }

    #[test]
    fn headers_are_read_and_never_shown() {
        let headers = parse_headers("Authorization=Bearer%20abc=,x-team=a").unwrap();
        assert_eq!(headers["authorization"], "Bearer abc=");
        assert_eq!(headers["x-team"], "a");
        assert!(!format!("{headers:?}").contains("abc"));
    }

    #[test]
    fn wrong_pair_is_named() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse_headers(text).unwrap_err().to_string(), expected);
        };
        check(
            "secret-without-name",
            "expected name=value with commas in between, found \"secret-w\"",
        );
        check(
            "=a",
            "expected name=value with commas in between, found \"=a\"",
        );
        check("a b=c", "\"a b\" is no name of a header");
        check(
            "a=b%0Ac",
            "the value of a has characters that no header takes",
        );
        check(
            "a=%ff",
            "the value of a is not UTF-8 once its percent signs are decoded",
        );
    }
}
