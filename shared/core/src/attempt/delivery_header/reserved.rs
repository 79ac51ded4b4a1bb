//! The names that no subscription may set.

use http::header::HeaderName;

/// How the names of whole families begin: the body's own headers, and those of the contracts that posthaste
/// keeps. `posthaste-` is kept for what it may have to say one day.
const FAMILIES: [&str; 6] = ["content-", "webhook-", "aeg-", "ce-", "proxy-", "posthaste-"];

/// Hop-by-hop headers (RFC 9110 §7.6.1), what steers the exchange itself, and what posthaste sets: who sends
/// and when, and the event's trace. A custom `accept-encoding` could make an answer unreadable.
const NAMES: [&str; 14] = [
    "accept-encoding",
    "connection",
    "date",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "origin",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Whether a header is not a subscription's to set. An underscore counts as a hyphen, because CGI and what
/// follows it (WSGI, Rack, PHP) make one of both: `webhook_signature` would stand in for `webhook-signature`
/// there.
pub(crate) fn is_reserved(name: &HeaderName) -> bool {
    let name = name.as_str().replace('_', "-");
    NAMES.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: bool) {
        assert_eq!(is_reserved(&HeaderName::from_bytes(name.as_bytes()).unwrap()), expected, "{name}");
    }

    #[test]
    fn what_posthaste_or_http_sets_is_reserved_in_any_case() {
        for name in NAMES {
            check(name, true);
            check(&name.to_ascii_uppercase(), true);
        }
        for name in [
            "Content-Type",
            "content-length",
            "Content_Length",
            "Webhook-Id",
            "WebHook-Request-Origin",
            "webhook_signature",
            "aeg-event-type",
            "ce-id",
            "Proxy-Authorization",
            "Transfer-Encoding",
            "posthaste-tier",
        ] {
            check(name, true);
        }
    }

    #[test]
    fn what_a_receiver_may_ask_for_is_not() {
        for name in
            ["authorization", "x-api-key", "X-Tenant", "cookie", "accept", "tracestate", "center", "cells"]
        {
            check(name, false);
        }
    }
}
