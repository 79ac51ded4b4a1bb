//! The search for endpoint URLs by a host or by their beginnings.

use url::{Position, Url};

/// A text by which endpoints are looked for: a host, a domain above it, the beginning of a URL, or
/// a whole one. The query, credentials and fragment of the text do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlSearch {
    /// The beginnings of URLs, in the spellings that a URL may have for the text.
    beginnings: Vec<String>,
    /// The end of a host below this domain, if the text is a host and nothing else.
    below_domain: Option<String>,
}

impl UrlSearch {
    /// Reads what a user has of a URL. `None` if it has no host.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = split_scheme(text);
        let path_at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(path_at);
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host.to_ascii_lowercase();
        if host.is_empty() {
            return None;
        }
        let is_host_alone = scheme.is_none() && path.is_empty() && !host.contains(':');
        Some(Self {
            below_domain: is_host_alone.then(|| format!(".{host}")),
            beginnings: url_beginnings(scheme, &host, path),
        })
    }

    /// Whether an endpoint is looked for. Its URL has no query, and is normal, as
    /// [`EndpointUrl`](crate::model::EndpointUrl) has it.
    pub fn matches(&self, url: &str) -> bool {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let host = rest.split(['/', ':']).next().unwrap_or_default();
        self.below_domain
            .as_ref()
            .is_some_and(|domain| host.ends_with(domain.as_str()))
            || self.beginnings.iter().any(|it| url.starts_with(it))
    }
}

/// The scheme, if the text has one, and what follows it.
fn split_scheme(text: &str) -> (Option<&'static str>, &str) {
    for scheme in ["https", "http"] {
        let after = text
            .get(..scheme.len())
            .filter(|begin| begin.eq_ignore_ascii_case(scheme))
            .and_then(|begin| text[begin.len()..].strip_prefix("://"));
        if let Some(rest) = after {
            return (Some(scheme), rest);
        }
    }
    (None, text)
}

/// The text as it was written, and as a URL has it: with escaped characters, and without the port
/// that its scheme has anyway. A text without a scheme may have either.
fn url_beginnings(scheme: Option<&'static str>, host: &str, path: &str) -> Vec<String> {
    let mut beginnings = Vec::new();
    for scheme in ["https", "http"]
        .into_iter()
        .filter(|it| scheme.is_none_or(|wanted| wanted == *it))
    {
        let written = format!("{scheme}://{host}{path}");
        if let Ok(url) = Url::parse(&written) {
            let end = if path.is_empty() {
                Position::BeforePath
            } else {
                Position::AfterPath
            };
            beginnings.push(url[..end].to_owned());
        }
        beginnings.push(written);
    }
    beginnings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::EndpointUrl;

    const HOOKS: &str = "https://billing.example.com/hooks/a";

    #[track_caller]
    fn check(text: &str, url: &str, expected: bool) {
        let search = UrlSearch::parse(text).unwrap();
        assert_eq!(search.matches(url), expected, "{text} {url}");
    }

    #[test]
    fn host_domain_beginning_and_whole_url_match() {
        for text in [
            "billing.example.com",
            " Billing.Example.COM\n",
            "billing",
            "example.com",
            "com",
            "billing.example.com:443",
            "billing.example.com/hooks",
            "https://bill",
            "HTTPS://billing.example.com",
            "https://billing.example.com/",
            "https://billing.example.com:443/hooks/a",
            "https://user:pw@billing.example.com/hooks/a?token=s3cret#x",
            HOOKS,
        ] {
            check(text, HOOKS, true);
        }
        for text in [
            "ample.com",
            "hooks",
            "http://billing.example.com",
            "https://example.com",
            "https://billing.example.com:80",
            "billing.example.com:8443",
            "https://billing.example.com/Hooks",
            "https://billing.example.com/hooks/a/b",
            "https://billing.example.com/hooks/a/",
        ] {
            check(text, HOOKS, false);
        }
    }

    #[test]
    fn port_address_and_escaped_path_match() {
        check("127.0.0.1:9000", "http://127.0.0.1:9000/x", true);
        check("127.0.0.1", "http://127.0.0.1:9000/x", true);
        check("127.0.0.1:90", "http://127.0.0.1:9000/x", true);
        check("a.example:80/x", "http://a.example/x", true);
        check("a.example:80/x", "https://a.example/x", false);
        check("[2001:DB8::1]", "https://[2001:db8::1]/x", true);
        check(
            "https://bücher.example/ü",
            "https://xn--bcher-kva.example/%C3%BC",
            true,
        );
    }

    #[test]
    fn text_without_a_host_is_no_search() {
        for text in ["", " ", "?a=b", "/hooks", "https://", "https:///x", "user@"] {
            assert_eq!(UrlSearch::parse(text), None, "{text}");
        }
    }

    #[test]
    fn text_that_is_no_url_matches_nothing() {
        for text in ["a b", "\u{0}", "<script>", "msg_1-0", "éhttps://a"] {
            check(text, HOOKS, false);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String, url: String) {
            if let Some(search) = UrlSearch::parse(&text) {
                search.matches(&url);
            }
        }

        #[test]
        fn each_endpoint_is_found_by_its_own_url(path in "[a-zA-Z0-9/%é?. -]{0,20}", port in 1_u16..) {
            let written = format!("http://a.example:{port}/{path}");
            let url = EndpointUrl::parse(&written).unwrap();
            for text in [written.trim(), url.as_str(), url.without_query()] {
                let search = UrlSearch::parse(text).unwrap();
                prop_assert!(search.matches(url.without_query()), "{}", text);
            }
        }
    }
}
