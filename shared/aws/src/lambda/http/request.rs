//! The event of a Function URL or an HTTP API, and the HTTP request that it stands for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use axum::body::Body;
use axum::http::header::{COOKIE, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Uri};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use posthaste_core::api::PeerAddress;
use serde::Deserialize;

/// A request as Lambda passes it on. It holds keys, cookies and events, so it has no `Debug` that
/// could show them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UrlRequest {
    raw_path: String,
    raw_query_string: Option<String>,
    cookies: Option<Vec<String>>,
    /// Several values of one header are joined by commas already.
    headers: Option<BTreeMap<String, String>>,
    request_context: RequestContext,
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext {
    http: HttpContext,
    /// The host that the client asked.
    domain_name: Option<String>,
}

impl RequestContext {
    /// Whether the request came through an HTTP API, under its own name or one of the user's. The
    /// names of Function URLs cannot be chosen.
    /// <https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html>
    fn is_of_http_api(&self) -> bool {
        const FUNCTION_URL: &str = ".lambda-url.";
        let name = self.domain_name.as_deref();
        name.is_some_and(|name| !name.contains(FUNCTION_URL))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HttpContext {
    method: String,
    /// The address of the client.
    source_ip: Option<String>,
}

/// Reasons for which an event is not a request. The client gets a 400.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the method cannot be read")]
    Method,
    #[error("the path or the query cannot be read")]
    Target,
    #[error("a header or a cookie cannot be read")]
    Header,
    #[error("the body is not the base64 that it is said to be")]
    Body,
}

impl UrlRequest {
    /// The request as the client sent it, as far as Lambda passes it on.
    pub(super) fn into_request(self) -> Result<Request<Body>, RequestError> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = parse_method(&self.request_context.http.method)?;
        let path = if self.request_context.is_of_http_api() {
            reencode_percent(&self.raw_path)
        } else {
            Cow::Borrowed(&*self.raw_path)
        };
        *request.uri_mut() =
            request_target(&path, self.raw_query_string.as_deref().unwrap_or_default())?;
        *request.headers_mut() = header_map(
            self.headers.unwrap_or_default(),
            &self.cookies.unwrap_or_default(),
        )?;
        let address = self.request_context.http.source_ip;
        if let Some(address) = address.and_then(|address| address.parse().ok()) {
            request.extensions_mut().insert(PeerAddress(address));
        }
        *request.body_mut() = decode_body(self.body.unwrap_or_default(), self.is_base64_encoded)?;
        Ok(request)
    }
}

fn parse_method(method: &str) -> Result<Method, RequestError> {
    Method::from_bytes(method.as_bytes()).map_err(|_| RequestError::Method)
}

/// Path and query unchanged: nothing is decoded and no dots are removed, because the router, its
/// handlers and their checks of names must see the same text as outside of Lambda.
fn request_target(path: &str, query: &str) -> Result<Uri, RequestError> {
    if !path.starts_with('/') {
        return Err(RequestError::Target);
    }
    let mut target = percent_encode(path, b"/").into_owned();
    if !query.is_empty() {
        target.push('?');
        target.push_str(&percent_encode(query, b"/?"));
    }
    Uri::try_from(target).map_err(|_| RequestError::Target)
}

/// The path of an HTTP API, which decodes it, with each `%` as what it is: a character that the
/// client escaped. Otherwise it would be decoded again, and the id `a%41` become `aA`. Whether the
/// escape `%25` itself is decoded is not documented, and was seen either way. So an id that has
/// these characters goes into the query, as all that are not plain.
fn reencode_percent(path: &str) -> Cow<'_, str> {
    let mut parts = path.split('%');
    let mut undecoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        undecoded.push_str(if part.starts_with("25") { "%" } else { "%25" });
        undecoded.push_str(part);
    }
    if undecoded.len() == path.len() {
        return Cow::Borrowed(path);
    }
    Cow::Owned(undecoded)
}

/// Encodes characters that a path or query may not hold. Lambda decodes some of them: a `+` of a
/// query arrives as a space, and an HTTP API decodes the path.
/// <https://www.rfc-editor.org/rfc/rfc3986#section-3.3>
fn percent_encode<'a>(text: &'a str, delimiters: &[u8]) -> Cow<'a, str> {
    if text.bytes().all(|byte| is_allowed(byte, delimiters)) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if is_allowed(byte, delimiters) {
            encoded.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    Cow::Owned(encoded)
}

fn is_allowed(byte: u8, delimiters: &[u8]) -> bool {
    byte.is_ascii_alphanumeric()
        || b"-._~%!$&'()*+,;=:@".contains(&byte)
        || delimiters.contains(&byte)
}

fn header_map(
    sent: BTreeMap<String, String>,
    cookies: &[String],
) -> Result<HeaderMap, RequestError> {
    let mut headers = HeaderMap::with_capacity(sent.len() + 1);
    for (name, value) in sent {
        let name = HeaderName::try_from(name).map_err(|_| RequestError::Header)?;
        headers.insert(
            name,
            HeaderValue::try_from(value).map_err(|_| RequestError::Header)?,
        );
    }
    if !cookies.is_empty() {
        // The list is complete; a header beside it would say the same.
        headers.insert(
            COOKIE,
            HeaderValue::try_from(cookies.join("; ")).map_err(|_| RequestError::Header)?,
        );
    }
    Ok(headers)
}

fn decode_body(body: String, is_base64_encoded: bool) -> Result<Body, RequestError> {
    if !is_base64_encoded {
        return Ok(Body::from(body));
    }
    BASE64_STANDARD
        .decode(body)
        .map(Body::from)
        .map_err(|_| RequestError::Body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(path: &str, query: &str, expected: &str) {
        let target = request_target(path, query).unwrap();
        assert_eq!(target.to_string(), expected);
    }

    #[test]
    fn a_target_stays_as_it_is() {
        check("/topics/orders", "", "/topics/orders");
        check("/", "a=1&a=2&b=x%20y&c=1+2&d", "/?a=1&a=2&b=x%20y&c=1+2&d");
        check(
            "/a%2Fb/../c//d/%2e%2e/",
            "x=%00&y=/?",
            "/a%2Fb/../c//d/%2e%2e/?x=%00&y=/?",
        );
    }

    #[test]
    fn characters_that_lambda_decoded_are_encoded_again() {
        check("/a b", "q=a b", "/a%20b?q=a%20b");
        check("/a?b#c", "q=\"{x}\"#", "/a%3Fb%23c?q=%22%7Bx%7D%22%23");
        check("/grün", "q=👋\n", "/gr%C3%BCn?q=%F0%9F%91%8B%0A");
    }

    #[test]
    fn percent_sign_that_an_http_api_decoded_is_encoded_again() {
        let check = |path: &str, expected: &str| assert_eq!(reencode_percent(path), expected);
        check("/topics/t/events/a", "/topics/t/events/a");
        check("/a%41", "/a%2541");
        check("/50%", "/50%25");
        check("/%2F%", "/%252F%25");
        check("/a%2541", "/a%2541");
        check("/100%25 of ü", "/100%25 of ü");
    }

    #[test]
    fn path_of_an_http_api_is_told_by_the_name_of_its_host() {
        let check = |domain_name: Option<&str>, expected: bool| {
            let http = HttpContext {
                method: "GET".to_owned(),
                source_ip: None,
            };
            let domain_name = domain_name.map(str::to_owned);
            let context = RequestContext { http, domain_name };
            assert_eq!(context.is_of_http_api(), expected);
        };
        check(Some("a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"), true);
        check(Some("events.example.com"), true);
        check(Some("abc.lambda-url.eu-west-1.on.aws"), false);
        check(None, false);
    }

    #[test]
    fn a_target_without_a_path_is_refused() {
        for path in ["", "topics"] {
            assert_eq!(
                request_target(path, "").map(|uri| uri.to_string()),
                Err(RequestError::Target),
                "{path}"
            );
        }
    }

    #[test]
    fn a_header_that_cannot_be_one_is_refused() {
        for (name, value) in [("a b", "x"), ("", "x"), ("a", "x\ny")] {
            let sent = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            assert_eq!(
                header_map(sent, &[]),
                Err(RequestError::Header),
                "{name}: {value}"
            );
        }
    }

    proptest! {
        /// A path is that of its request, and is not decoded on the way.
        #[test]
        fn any_path_and_query_are_a_target_or_refused(path in "\\PC{0,30}", query in ".{0,30}") {
            let path = format!("/{path}");
            let path = reencode_percent(&path);
            let target = request_target(&path, &query).unwrap();
            prop_assert_eq!(target.path(), percent_encode(&path, b"/"));
            prop_assert_eq!(target.query().unwrap_or_default(), percent_encode(&query, b"/?"));
        }

        #[test]
        fn any_headers_and_body_are_a_request_or_refused(
            sent in prop::collection::btree_map(".{0,12}", ".{0,20}", 0..4),
            cookies in prop::collection::vec(".{0,20}", 0..3),
            text in ".{0,40}",
            is_base64_encoded: bool,
        ) {
            let count = sent.len();
            if let Ok(headers) = header_map(sent, &cookies) {
                prop_assert!(headers.len() <= count + 1);
            }
            let refused = decode_body(text.clone(), is_base64_encoded).is_err();
            prop_assert_eq!(refused, is_base64_encoded && BASE64_STANDARD.decode(text).is_err());
        }
    }
}
