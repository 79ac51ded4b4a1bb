//! The origin of requests: the value of `WebHook-Request-Origin` and `Origin` in every request to
//! an endpoint, handshakes included.
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#412-webhook-request-origin>

use http::header::HeaderValue;
use url::Url;

use crate::model::limits::DNS_NAME_BYTES_MAX;

/// The default origin.
pub const DEFAULT: HeaderValue = HeaderValue::from_static("posthaste");

/// Why a text is not an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a host name such as hooks.example.com")]
pub struct OriginError;

/// Reads a DNS name: letters, digits and hyphens between full stops.
pub fn parse(text: &str) -> Result<HeaderValue, OriginError> {
    if text.len() > DNS_NAME_BYTES_MAX || !text.split('.').all(is_dns_label) {
        return Err(OriginError);
    }
    HeaderValue::from_str(text).map_err(|_| OriginError)
}

fn is_dns_label(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The origin of a system without a setting for it: the name under which it is reached, where that
/// is known.
pub fn from_public_url(url: Option<&Url>) -> HeaderValue {
    url.and_then(Url::host_str)
        .and_then(|host| parse(host).ok())
        .unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_dns_name() {
        let check =
            |text: &str, expected: bool| assert_eq!(parse(text).is_ok(), expected, "{text}");
        check("posthaste", true);
        check("events-1.Example.com", true);
        check(&"a".repeat(253), true);
        for bad in [
            "",
            ".",
            "a..b",
            "a.",
            "https://a.example",
            "a.example:443",
            "a b",
            "münchen.example",
            "a\r\nb",
        ] {
            check(bad, false);
        }
        check(&"a".repeat(254), false);
    }

    #[test]
    fn without_one_it_is_the_name_of_the_public_url() {
        let check = |url: &str, expected: &str| {
            assert_eq!(from_public_url(Url::parse(url).ok().as_ref()), expected);
        };
        check("https://hooks.example.com:8443/x", "hooks.example.com");
        check("http://127.0.0.1:8080", "127.0.0.1");
        check("http://[::1]:8080", "posthaste");
        check("", "posthaste");
    }
}
