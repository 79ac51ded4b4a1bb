//! The URL of a subscriber's endpoint and the link it belongs to.

use std::fmt;
use std::sync::Arc;

use url::Url;

use crate::model::limits::URL_BYTES_MAX;
use crate::model::pasted::read_pasted;
use crate::model::url_text::{UrlTextError, check_written};

/// Why a text is not an endpoint URL.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EndpointUrlError {
    /// Not an absolute URL.
    #[error("not an absolute URL such as https://example.com/hooks: {0}")]
    NotAUrl(url::ParseError),
    /// Neither `https` nor `http`.
    #[error("the scheme is {0:?}, expected https")]
    Scheme(String),
    /// User name or password in the URL.
    #[error("credentials in a URL are not accepted; use a header")]
    Credentials,
    /// A fragment, which would never be sent.
    #[error("a fragment is never sent; remove it")]
    Fragment,
    /// Not a URL without a repair.
    #[error("{0}")]
    Text(UrlTextError),
    /// Longer than a URL may be that is written now.
    #[error("has {0} bytes; expected at most {URL_BYTES_MAX}")]
    TooLong(usize),
}

/// An absolute `http` or `https` URL with a host and without credentials or a fragment. Whether
/// plain `http` and its port and address are allowed is decided when it is used, by
/// [`AddressPolicy`](crate::model::AddressPolicy).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EndpointUrl(Arc<ParsedEndpoint>);

/// The facts that every delivery needs of its endpoint.
#[derive(PartialEq, Eq, Hash)]
struct ParsedEndpoint {
    url: Url,
    link: Link,
}

/// Scheme, host and port: every endpoint on one link shares its fate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// Whether it is `https`.
    pub is_tls: bool,
    /// A name, or an address without brackets, in lower case.
    pub host: Arc<str>,
    /// The port, spelled out or the scheme's.
    pub port: u16,
}

impl EndpointUrl {
    /// Parses an endpoint URL that is being written. One that was stored by an older release may be
    /// longer, or need a repair.
    pub fn parse_written(text: &str) -> Result<Self, EndpointUrlError> {
        let text = read_pasted(text)
            .map_err(|error| EndpointUrlError::Text(UrlTextError::Pasted(error)))?;
        if text.len() > URL_BYTES_MAX {
            return Err(EndpointUrlError::TooLong(text.len()));
        }
        let parsed = Self::parse(text)?;
        check_written(text, parsed.url()).map_err(EndpointUrlError::Text)?;
        Ok(parsed)
    }

    /// Whether two texts are the same endpoint URL in other spellings.
    pub fn is_same(one: &str, other: &str) -> bool {
        if one == other {
            return true;
        }
        match (Self::parse(one), Self::parse(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
    }

    /// Parses an endpoint URL.
    pub fn parse(text: &str) -> Result<Self, EndpointUrlError> {
        let url = Url::parse(text).map_err(EndpointUrlError::NotAUrl)?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(EndpointUrlError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointUrlError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(EndpointUrlError::Fragment);
        }
        let link = link_of(&url);
        Ok(Self(Arc::new(ParsedEndpoint { url, link })))
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        self.0.url.as_str()
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.0.url
    }

    /// The path and query as they stand in the request line.
    pub fn path_and_query(&self) -> &str {
        &self.0.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// The URL without its query, which may hold a token.
    pub fn without_query(&self) -> &str {
        &self.0.url[..url::Position::AfterPath]
    }

    /// Whether its query holds an access token, so that no cache on the way may store its requests.
    /// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#32-uri-query-parameter>
    pub fn has_access_token(&self) -> bool {
        self.0
            .url
            .query_pairs()
            .any(|(name, _)| name == "access_token")
    }

    /// The link it belongs to.
    pub fn link(&self) -> Link {
        self.0.link.clone()
    }
}

fn link_of(url: &Url) -> Link {
    let host = match url.host() {
        Some(url::Host::Domain(name)) => name.into(),
        Some(url::Host::Ipv4(address)) => address.to_string().into(),
        Some(url::Host::Ipv6(address)) => address.to_string().into(),
        // An http(s) URL always has a host; the parser refuses one without.
        None => "".into(),
    };
    Link {
        is_tls: url.scheme() == "https",
        host,
        port: url.port_or_known_default().unwrap_or(443),
    }
}

impl fmt::Debug for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may carry a token, so only scheme, host, port and path are shown.
        write!(f, "{}{}", self.link(), self.0.url.path())
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_scheme_host_and_port() {
        let check = |url: &str, link: &str| {
            assert_eq!(EndpointUrl::parse(url).unwrap().link().to_string(), link);
        };
        check(
            "https://Billing.Example.com/hooks?a=b",
            "https://billing.example.com:443",
        );
        check("http://127.0.0.1:9000", "http://127.0.0.1:9000");
        check("https://[2001:db8::1]/x", "https://[2001:db8::1]:443");
    }

    #[test]
    fn written_url_has_a_length_limit_and_stored_url_has_none() {
        let of = |bytes: usize| {
            format!(
                "https://a.example/{}",
                "x".repeat(bytes - "https://a.example/".len())
            )
        };
        assert!(EndpointUrl::parse_written(&of(URL_BYTES_MAX)).is_ok());
        let long = of(URL_BYTES_MAX + 1);
        assert_eq!(
            EndpointUrl::parse_written(&long),
            Err(EndpointUrlError::TooLong(URL_BYTES_MAX + 1))
        );
        assert!(EndpointUrl::parse(&long).is_ok());
    }

    #[test]
    fn url_that_is_written_needs_no_repair_and_a_stored_one_may() {
        let repaired = "https:a.example";
        let normal = "https://a.example/".to_owned();
        assert_eq!(
            EndpointUrl::parse_written(repaired),
            Err(EndpointUrlError::Text(UrlTextError::Repaired { normal }))
        );
        assert_eq!(
            EndpointUrl::parse(repaired).unwrap().as_str(),
            "https://a.example/"
        );
    }

    #[test]
    fn spellings_of_one_url_are_the_same() {
        let check = |one, other, expected: bool| {
            assert_eq!(EndpointUrl::is_same(one, other), expected, "{one} {other}");
        };
        check("https://A.example", "https://a.example/", true);
        check("https://a.example/", "https://a.example/x", false);
        check("no URL", "no URL", true);
        check("no URL", "neither", false);
    }

    #[test]
    fn an_access_token_is_a_parameter_of_that_name() {
        let check = |url: &str, expected: bool| {
            assert_eq!(
                EndpointUrl::parse(url).unwrap().has_access_token(),
                expected,
                "{url}"
            );
        };
        check("https://a.example/x?p=q&access_token=t", true);
        check("https://a.example/x?access%5Ftoken=t", true);
        check("https://a.example/access_token?code=access_token", false);
        check("https://a.example/", false);
    }

    #[test]
    fn invalid_endpoint_url_is_refused() {
        for bad in [
            "",
            "hooks",
            "ftp://a.example/",
            "https://user:pw@a.example/",
            "https://a.example/#x",
            "https://",
        ] {
            assert!(EndpointUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_hides_the_query() {
        let url = EndpointUrl::parse("https://a.example/hook?token=s3cret").unwrap();
        assert_eq!(format!("{url:?}"), "https://a.example:443/hook");
        assert_eq!(url.path_and_query(), "/hook?token=s3cret");
        assert_eq!(url.without_query(), "https://a.example/hook");
    }
}
