//! Headers that a subscription adds to its requests: fixed ones, secret or not, and ones with a
//! value of the event.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::model::json_pointer::decode_string;
use crate::model::pasted::{PastedError, read_pasted};
use crate::model::{
    DELIVERY_HEADER_NAME_BYTES_MAX, DELIVERY_HEADER_VALUE_BYTES_MAX, JsonPointer, JsonPointerError,
};

/// The beginnings of the names of whole families: the body's own headers, and those of the
/// contracts that posthaste keeps. `posthaste-` is kept for what it may have to say one day.
const FAMILIES: [&str; 6] = [
    "content-",
    "webhook-",
    "aeg-",
    "ce-",
    "proxy-",
    "posthaste-",
];

/// Hop-by-hop headers (RFC 9110 §7.6.1), what steers the exchange itself, and what posthaste sets:
/// who sends and when, and the event's trace. A custom `accept-encoding` could make an answer
/// unreadable.
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

/// A header that a subscription adds to its requests. Its name is not one that posthaste or HTTP
/// itself sets. A secret's value is marked as sensitive, so that `Debug` does not show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryHeader {
    name: HeaderName,
    value: HeaderValueSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HeaderValueSource {
    Fixed(HeaderValue),
    FromEvent(JsonPointer),
}

/// Why a header cannot be added.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DeliveryHeaderError {
    /// Not of the letters, digits, hyphens and underscores that all servers keep apart.
    #[error(
        "expected a header name of 1 to {DELIVERY_HEADER_NAME_BYTES_MAX} letters, digits, - or _"
    )]
    Name,
    /// A name that posthaste or HTTP sets.
    #[error("the header is reserved: posthaste or HTTP itself sets it")]
    Reserved,
    /// A character in it is not seen.
    #[error("{0}")]
    Pasted(PastedError),
    /// Empty, or too long.
    #[error("expected 1 to {DELIVERY_HEADER_VALUE_BYTES_MAX} bytes, found {0}")]
    ValueLength(usize),
    /// A byte outside of printable ASCII (a line break, a letter with an accent), or a space at
    /// either end.
    #[error("expected printable ASCII without a space at either end")]
    Value,
    /// Not a pointer.
    #[error("{0}")]
    Pointer(JsonPointerError),
}

impl DeliveryHeader {
    /// A header with a fixed value.
    pub fn with_value(
        name: &str,
        value: &str,
        is_secret: bool,
    ) -> Result<Self, DeliveryHeaderError> {
        let value = read_pasted(value).map_err(DeliveryHeaderError::Pasted)?;
        let mut fixed = fixed_value(value)?;
        fixed.set_sensitive(is_secret);
        Ok(Self {
            name: parse_name(name)?,
            value: HeaderValueSource::Fixed(fixed),
        })
    }

    /// A header with the value that `pointer` leads to in the event as it is sent.
    pub fn from_event(name: &str, pointer: &str) -> Result<Self, DeliveryHeaderError> {
        let pointer = JsonPointer::parse(pointer).map_err(DeliveryHeaderError::Pointer)?;
        Ok(Self {
            name: parse_name(name)?,
            value: HeaderValueSource::FromEvent(pointer),
        })
    }

    /// The name of the header.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The value that it has in every request; `None` if each event has its own.
    pub fn fixed_text(&self) -> Option<&str> {
        match &self.value {
            HeaderValueSource::Fixed(value) => value.to_str().ok(),
            HeaderValueSource::FromEvent(_) => None,
        }
    }

    /// The value in a request that carries `event`; `None` if the event has nothing for it.
    fn value_for_event(&self, event: Option<&[u8]>) -> Option<HeaderValue> {
        match &self.value {
            HeaderValueSource::Fixed(value) => Some(value.clone()),
            HeaderValueSource::FromEvent(pointer) => event_value(pointer.find(event?)?),
        }
    }
}

/// Sets the headers of a request that carries `events`. Those with a value of the event are for
/// requests of one event only; one whose event has nothing that can stand in a header is left out,
/// and the request is made without it.
pub(crate) fn add_to_request(headers: &mut HeaderMap, added: &[DeliveryHeader], events: &[&[u8]]) {
    let event = if let [event] = events {
        Some(*event)
    } else {
        None
    };
    for header in added {
        if let Some(value) = header.value_for_event(event) {
            headers.insert(&header.name, value);
        }
    }
}

/// A string is sent as it is, a number or a boolean as it is written; objects, arrays and null are
/// not sent.
fn event_value(json: &str) -> Option<HeaderValue> {
    if json.starts_with('"') {
        return fixed_value(&decode_string(json)?).ok();
    }
    if json.starts_with(['{', '[']) || json == "null" {
        None
    } else {
        fixed_value(json).ok()
    }
}

/// A value that arrives unchanged: HTTP strips spaces at the ends, and few receivers agree on
/// anything but printable ASCII.
fn fixed_value(text: &str) -> Result<HeaderValue, DeliveryHeaderError> {
    if !(1..=DELIVERY_HEADER_VALUE_BYTES_MAX).contains(&text.len()) {
        return Err(DeliveryHeaderError::ValueLength(text.len()));
    }
    if text.trim().len() != text.len() || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(DeliveryHeaderError::Value);
    }
    HeaderValue::from_str(text).map_err(|_| DeliveryHeaderError::Value)
}

fn parse_name(name: &str) -> Result<HeaderName, DeliveryHeaderError> {
    // A token of RFC 9110 may have other characters too, but CGI-style servers turn each of them
    // into an underscore: `webhook.signature` would pass for `webhook-signature` there.
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !is_plain || !(1..=DELIVERY_HEADER_NAME_BYTES_MAX).contains(&name.len()) {
        return Err(DeliveryHeaderError::Name);
    }
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| DeliveryHeaderError::Name)?;
    if is_reserved(&parsed) {
        Err(DeliveryHeaderError::Reserved)
    } else {
        Ok(parsed)
    }
}

/// Whether a header is not a subscription's to set. An underscore counts as a hyphen, because CGI
/// and what follows it (WSGI, Rack, PHP) make one of both: `webhook_signature` would stand in for
/// `webhook-signature` there.
fn is_reserved(name: &HeaderName) -> bool {
    let name = name.as_str().replace('_', "-");
    NAMES.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EVENT: &str = r#"{"id":"A-1","time":"2026-11-21T10:00:00Z","data":{"n":1.00,"big":12345678901234567890,
        "yes":true,"none":null,"list":[1,{"x":"in a list"}],"object":{},"crlf":"a\r\nx: y","umlaut":"Müller",
        "empty":"","padded":" a ","escaped":"a\u0062\"","lone":"\ud800"}}"#;

    fn check(pointer: &str, expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        let header = DeliveryHeader::from_event("X-Value", pointer).unwrap();
        add_to_request(&mut headers, &[header], &[EVENT.as_bytes()]);
        assert_eq!(
            headers.get("x-value").map(|value| value.to_str().unwrap()),
            expected,
            "{pointer}"
        );
    }

    fn refused(name: &str, value: &str, error: &DeliveryHeaderError) {
        assert_eq!(
            DeliveryHeader::with_value(name, value, false)
                .as_ref()
                .err(),
            Some(error),
            "{name}: {value:?}"
        );
    }

    #[test]
    fn strings_numbers_and_booleans_are_sent_as_they_are() {
        check("/id", Some("A-1"));
        check("/time", Some("2026-11-21T10:00:00Z"));
        check("/data/n", Some("1.00"));
        check("/data/big", Some("12345678901234567890"));
        check("/data/yes", Some("true"));
        check("/data/escaped", Some("ab\""));
        check("/data/list/1/x", Some("in a list"));
    }

    #[test]
    fn value_unfit_for_a_header_is_left_out() {
        for member in [
            "none", "list", "object", "crlf", "umlaut", "empty", "padded", "lone", "missing",
        ] {
            check(&format!("/data/{member}"), None);
        }
        check("/id/x", None);
        let long = format!(
            r#"{{"id":"{}"}}"#,
            "a".repeat(DELIVERY_HEADER_VALUE_BYTES_MAX + 1)
        );
        let mut headers = HeaderMap::new();
        let header = DeliveryHeader::from_event("x-value", "/id").unwrap();
        add_to_request(
            &mut headers,
            std::slice::from_ref(&header),
            &[long.as_bytes()],
        );
        add_to_request(&mut headers, &[header], &[b"not json"]);
        assert!(headers.is_empty());
    }

    #[test]
    fn requests_of_several_events_take_no_value_from_events() {
        let headers = [
            DeliveryHeader::from_event("x-id", "/id").unwrap(),
            DeliveryHeader::with_value("x-tenant", "acme", false).unwrap(),
        ];
        let mut set_of_two = HeaderMap::new();
        add_to_request(
            &mut set_of_two,
            &headers,
            &[EVENT.as_bytes(), EVENT.as_bytes()],
        );
        assert_eq!(
            set_of_two,
            HeaderMap::from_iter([("x-tenant".parse().unwrap(), "acme".parse().unwrap())])
        );
    }

    #[test]
    fn invalid_headers_are_refused() {
        for name in [
            "",
            "a b",
            "a:",
            "ä",
            "a\r\nb",
            &"a".repeat(DELIVERY_HEADER_NAME_BYTES_MAX + 1),
        ] {
            refused(name, "v", &DeliveryHeaderError::Name);
        }
        for separator in "!#$%&'*+.^`|~".chars() {
            for [family, rest] in [
                ["webhook", "signature"],
                ["ce", "id"],
                ["aeg", "event"],
                ["x", "a"],
            ] {
                refused(
                    &format!("{family}{separator}{rest}"),
                    "v",
                    &DeliveryHeaderError::Name,
                );
            }
        }
        refused("webhook_signature", "v", &DeliveryHeaderError::Reserved);
        assert!(DeliveryHeader::with_value("X_a-1", "v", false).is_ok());
        for value in ["a\r\nb", "a\nb", "a\0b", "a\tb"] {
            let found = DeliveryHeader::with_value("x-a", value, false).unwrap_err();
            assert!(matches!(found, DeliveryHeaderError::Pasted(_)), "{value:?}");
        }
        refused("x-a", "ä", &DeliveryHeaderError::Value);
        for value in [" a", "a ", "\ta"] {
            assert!(DeliveryHeader::with_value("x-a", value, false).is_ok());
        }
        refused("x-a", "", &DeliveryHeaderError::ValueLength(0));
        refused(
            "x-a",
            &"a".repeat(4097),
            &DeliveryHeaderError::ValueLength(4097),
        );
        assert!(DeliveryHeader::with_value("Authorization", &"a".repeat(4096), true).is_ok());
    }

    #[test]
    fn debug_shows_no_secret() {
        let secret = DeliveryHeader::with_value("authorization", "Bearer abc", true).unwrap();
        assert!(!format!("{secret:?}").contains("abc"));
    }

    proptest! {
        #[test]
        fn no_event_makes_a_header_that_http_refuses(id: String) {
            let json = serde_json::json!({ "id": id }).to_string();
            let mut headers = HeaderMap::new();
            add_to_request(&mut headers, &[DeliveryHeader::from_event("x-id", "/id").unwrap()], &[json.as_bytes()]);
            if let Some(value) = headers.get("x-id") {
                prop_assert_eq!(value.to_str().unwrap(), id);
            }
        }
    }

    fn check_reserved(name: &str, expected: bool) {
        assert_eq!(
            is_reserved(&HeaderName::from_bytes(name.as_bytes()).unwrap()),
            expected,
            "{name}"
        );
    }

    #[test]
    fn names_set_by_posthaste_or_http_are_reserved_in_any_case() {
        for name in NAMES {
            check_reserved(name, true);
            check_reserved(&name.to_ascii_uppercase(), true);
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
            check_reserved(name, true);
        }
    }

    #[test]
    fn names_that_receivers_may_ask_for_are_not_reserved() {
        for name in [
            "authorization",
            "x-api-key",
            "X-Tenant",
            "cookie",
            "accept",
            "tracestate",
            "center",
            "cells",
        ] {
            check_reserved(name, false);
        }
    }
}
