//! The request as it goes on the wire: the caller's headers, and the few that are the client's.

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, uri};
use posthaste_core::model::EndpointUrl;
use posthaste_ports::WebhookRequest;
use url::Position;

use crate::body::SlicesBody;

/// Renders a request. Its slices and headers are shared, not copied, so that one request can be
/// sent twice.
///
/// # Errors
/// The path and query are longer than 64 KiB, or hold what a request line must not.
pub(crate) fn render_request(request: &WebhookRequest) -> Result<Request<SlicesBody>, http::Error> {
    let body = SlicesBody::new(request.body.clone());
    let mut rendered = Request::new(body);
    *rendered.uri_mut() = request_target(&request.url)?;
    *rendered.headers_mut() = request_headers(request, rendered.body().len())?;
    rendered.method_mut().clone_from(&request.method);
    Ok(rendered)
}

fn request_target(url: &EndpointUrl) -> Result<Uri, http::Error> {
    let path_and_query = Bytes::copy_from_slice(url.path_and_query().as_bytes());
    let mut parts = uri::Parts::default();
    parts.path_and_query = Some(uri::PathAndQuery::from_maybe_shared(path_and_query)?);
    Ok(Uri::from_parts(parts)?)
}

/// `host` first, as RFC 9110 asks for, then the caller's, then the coding that a response may have
/// and the length.
fn request_headers(request: &WebhookRequest, body_bytes: u64) -> Result<HeaderMap, http::Error> {
    let mut headers = HeaderMap::with_capacity(request.headers.len() + 3);
    let host = &request.url.url()[Position::BeforeHost..Position::AfterPort];
    headers.insert(header::HOST, HeaderValue::from_str(host)?);
    for (name, value) in &request.headers {
        if !is_connection_header(name) {
            headers.append(name, value.clone());
        }
    }
    // People read the responses of endpoints, and posthaste reads reports in them. Without this
    // header a server may use any coding (RFC 9110, 12.5.3).
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    if body_bytes > 0 || expects_a_body(&request.method) {
        headers.insert(header::CONTENT_LENGTH, body_bytes.into());
    }
    Ok(headers)
}

/// Headers that belong to the connection. A subscription's own headers must not reach them: a
/// second framing of the body, or an upgrade, would let a request carry another inside (request
/// smuggling), and `expect` would wait.
fn is_connection_header(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::HOST
            | header::CONTENT_LENGTH
            | header::TRANSFER_ENCODING
            | header::CONNECTION
            | header::UPGRADE
            | header::TE
            | header::TRAILER
            | header::EXPECT
    ) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Whether a method announces an empty body too (RFC 9110, 8.6).
fn expects_a_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn request(
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: &[&'static str],
    ) -> WebhookRequest {
        WebhookRequest {
            method,
            url: EndpointUrl::parse(url).unwrap(),
            headers: headers
                .iter()
                .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
                .collect(),
            body: body.iter().copied().map(Bytes::from).collect(),
            needs_new_connection: false,
            needs_body: false,
            timeout: Duration::from_secs(30),
        }
    }

    fn check(request: &WebhookRequest, expected: &str) {
        let rendered = render_request(request).unwrap();
        let headers: Vec<_> = rendered
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        assert_eq!(
            format!(
                "{} {} | {}",
                rendered.method(),
                rendered.uri(),
                headers.join(" | ")
            ),
            expected
        );
    }

    #[test]
    fn host_and_length_are_the_clients_own() {
        check(
            &request(
                Method::POST,
                "https://a.example/hook?x=1",
                &[("webhook-id", "e1")],
                &["[", "{}", "]"],
            ),
            "POST /hook?x=1 | host: a.example | webhook-id: e1 | accept-encoding: identity | content-length: 4",
        );
        check(
            &request(Method::POST, "http://[::1]:9000", &[], &[]),
            "POST / | host: [::1]:9000 | accept-encoding: identity | content-length: 0",
        );
        check(
            &request(Method::OPTIONS, "https://a.example:8443/", &[], &[]),
            "OPTIONS / | host: a.example:8443 | accept-encoding: identity",
        );
    }

    #[test]
    fn a_custom_header_cannot_reframe_the_request() {
        let custom = [
            ("Host", "evil"),
            ("Content-Length", "0"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "upgrade"),
            ("Upgrade", "h2c"),
            ("Expect", "100-continue"),
            ("TE", "trailers"),
            ("Trailer", "x"),
            ("Keep-Alive", "1"),
            ("Proxy-Connection", "x"),
            ("X-Tenant", "acme"),
        ];
        check(
            &request(Method::POST, "https://a.example/", &custom, &["{}"]),
            "POST / | host: a.example | x-tenant: acme | accept-encoding: identity | content-length: 2",
        );
    }

    #[test]
    fn a_target_too_long_for_a_request_line_is_refused() {
        let url = format!("https://a.example/{}", "x".repeat(70_000));
        assert!(render_request(&request(Method::POST, &url, &[], &[])).is_err());
    }

    proptest! {
        #[test]
        fn every_endpoint_has_a_request_target(path in "\\PC{0,40}", query in "\\PC{0,40}") {
            let url = format!("https://a.example/{}?{}", path.replace('#', ""), query.replace('#', ""));
            if let Ok(url) = EndpointUrl::parse(&url) {
                prop_assert_eq!(request_target(&url).unwrap().to_string(), url.path_and_query());
            }
        }
    }
}
