//! One kept CloudEvent in binary mode: `ce-*` headers and the data as the body.
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md#31-binary-content-mode>

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::events::media_type::MediaType;
use crate::events::members::{EventMembers, MemberValue};
use crate::events::{EventError, EventExpectation};
use crate::model::{BINARY_HEADERS_BYTES_MAX, lossy_text};

/// The content type of data where the event names none.
const CONTENT_TYPE_DEFAULT: HeaderValue = HeaderValue::from_static("application/json");

/// The bytes of a header without its name and value: a colon, a space, and the end of its line.
const HEADER_FRAME_BYTES: usize = 4;

/// An event as headers and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryEvent {
    /// `ce-*` and `content-type`.
    pub headers: HeaderMap,
    /// The data; never empty.
    pub body: Bytes,
}

/// The reason why a kept text cannot be sent in binary mode. An accepted event never is the cause.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Not a CloudEvent.
    #[error("not a CloudEvent: {0}")]
    NotAnEvent(#[from] EventError),
    /// An attribute cannot be a header.
    #[error("attribute {attribute} cannot be a header")]
    Header {
        /// The name of the attribute.
        attribute: String,
    },
}

/// Renders one kept CloudEvent. JSON data is a slice of `event`; base64 is decoded; a string whose
/// content type is not JSON becomes its text, with U+FFFD for lone surrogates, which no text can
/// hold.
///
/// `None` for an event whose data is missing, empty, or bytes of an unsaid type: a webhook must
/// carry a payload and a content type, so such an event travels in structured mode, whose body is
/// never empty. The same for one whose attributes are more than servers take as headers
/// ([`BINARY_HEADERS_BYTES_MAX`]), or whose content type is not ASCII. That is for the sender to
/// choose, and the receiver sees it by the content type.
/// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#21-delivery-request>
pub fn binary_request(event: &Bytes) -> Result<Option<BinaryEvent>, OutputError> {
    let json =
        std::str::from_utf8(event).map_err(|_| EventError::for_event(EventExpectation::Utf8))?;
    let members = EventMembers::parse(json)?;
    let mut headers = HeaderMap::new();
    let mut data: Option<(bool, MemberValue<'_>)> = None;
    let mut bytes = 0;
    for (name, value) in members.iter() {
        match name {
            // Data that is `null` is data; every other member that is `null` is not there.
            _ if value.is_null() && name != "data" => {}
            "data" | "data_base64" => data = Some((name == "data_base64", value)),
            _ => {
                let Some((header, value)) = attribute_header(name, value)? else {
                    return Ok(None);
                };
                bytes += header.as_str().len() + value.len() + HEADER_FRAME_BYTES;
                if bytes > BINARY_HEADERS_BYTES_MAX {
                    return Ok(None);
                }
                let attribute = header.as_str().to_owned();
                headers
                    .try_insert(header, value)
                    .map_err(|_| OutputError::Header { attribute })?;
            }
        }
    }
    let body = match data {
        None => Bytes::new(),
        Some((true, value)) => decode_base64(value)
            .map_err(|expected| EventError::for_member("data_base64", expected))?,
        Some((false, value)) => {
            let content_type = headers.entry(CONTENT_TYPE).or_insert(CONTENT_TYPE_DEFAULT);
            let is_json =
                MediaType::parse(&String::from_utf8_lossy(content_type.as_bytes())).is_json();
            if value.is_null() && !is_json {
                Bytes::new()
            } else if is_json || !value.is_string() {
                event.slice_ref(value.json().as_bytes())
            } else {
                Bytes::copy_from_slice(lossy_text(value.json()).as_bytes())
            }
        }
    };
    let is_webhook = !body.is_empty() && headers.contains_key(CONTENT_TYPE);
    Ok(is_webhook.then_some(BinaryEvent { headers, body }))
}

/// An attribute as a header; `None` for a content type that no header should have.
fn attribute_header(
    name: &str,
    value: MemberValue<'_>,
) -> Result<Option<(HeaderName, HeaderValue)>, OutputError> {
    let text = if value.is_string() {
        value
            .decode_string()
            .map_err(|expected| EventError::for_member(name, expected))?
    } else {
        value.json().into()
    };
    if name == "datacontenttype" {
        let is_visible = text
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic());
        return Ok(HeaderValue::from_str(&text)
            .ok()
            .filter(|_| is_visible)
            .map(|value| (CONTENT_TYPE, value)));
    }
    let header = HeaderName::from_bytes(format!("ce-{name}").as_bytes());
    let value = HeaderValue::from_str(&percent_encoded(&text));
    match (header, value) {
        (Ok(header), Ok(value)) => Ok(Some((header, value))),
        _ => Err(OutputError::Header {
            attribute: name.to_owned(),
        }),
    }
}

/// Space, `"`, `%` and everything outside of printable ASCII as `%XY` (HTTP binding, 3.1.3.2).
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!' | b'#' | b'$' | b'&'..=b'~' => encoded.push(char::from(byte)),
            _ => encoded.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 15)]),
        }
    }
    encoded
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16)
        .unwrap_or('0')
        .to_ascii_uppercase()
}

fn decode_base64(value: MemberValue<'_>) -> Result<Bytes, EventExpectation> {
    STANDARD
        .decode(value.decode_string()?.as_bytes())
        .map(Bytes::from)
        .map_err(|_| EventExpectation::Base64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: &str = r#""specversion":"1.0","id":"1","source":"/s","type":"t""#;

    fn binary(members: &str) -> Option<BinaryEvent> {
        binary_request(&Bytes::from(format!("{{{BASE}{members}}}"))).unwrap()
    }

    fn rendered(members: &str) -> (Vec<String>, Vec<u8>) {
        let event = binary(members).unwrap();
        let headers = event
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let mut headers: Vec<String> = headers.collect();
        headers.sort_unstable();
        (headers, event.body.to_vec())
    }

    #[test]
    fn attributes_become_headers() {
        let (headers, body) = rendered(
            r#","subject":"Euro \u20ac \"%\"","n":-1.50,"yes":true,"gone":null,"datacontenttype":"application/json","data":1"#,
        );
        let expected = [
            "ce-id: 1",
            "ce-n: -1.50",
            "ce-source: /s",
            "ce-specversion: 1.0",
            "ce-subject: Euro%20%E2%82%AC%20%22%25%22",
            "ce-type: t",
            "ce-yes: true",
            "content-type: application/json",
        ];
        assert_eq!(headers, expected);
        assert_eq!(body, b"1");
    }

    #[test]
    fn data_becomes_the_body() {
        let check = |members: &str, content_type: &str, expected: &[u8]| {
            let event = binary(members).unwrap();
            let sent = (
                event.headers[CONTENT_TYPE].to_str().unwrap(),
                &event.body[..],
            );
            assert_eq!(sent, (content_type, expected), "{members}");
        };
        check(r#","data":null"#, "application/json", b"null");
        check(r#","data":"""#, "application/json", b"\"\"");
        check(
            r#","data":{ "n": 1e999999 }"#,
            "application/json",
            b"{ \"n\": 1e999999 }",
        );
        check(r#","data":"\ud800""#, "application/json", br#""\ud800""#);
        check(
            r#","data":"a\nb","datacontenttype":"text/plain""#,
            "text/plain",
            b"a\nb",
        );
        check(
            r#","data":{"a":1},"datacontenttype":"text/x""#,
            "text/x",
            b"{\"a\":1}",
        );
        check(
            r#","data_base64":"YQ==","datacontenttype":"image/png""#,
            "image/png",
            b"a",
        );
    }

    #[test]
    fn without_a_payload_or_a_content_type_there_is_no_binary_form() {
        let check = |members: &str| assert_eq!(binary(members), None, "{members}");
        check("");
        check(r#","datacontenttype":"application/json""#);
        check(r#","data":"","datacontenttype":"text/plain""#);
        check(r#","data":null,"datacontenttype":"text/plain""#);
        check(r#","data_base64":"","datacontenttype":"image/png""#);
        check(r#","data_base64":"\/w==""#);
    }

    /// Event whose headers servers would not accept has no binary form.
    #[test]
    fn oversized_headers_prevent_the_binary_form() {
        let with =
            |members: &str| binary(&format!(r#"{members},"data":1"#)).map(|event| event.headers);
        let bytes = |headers: &HeaderMap| {
            headers
                .iter()
                .map(|(name, value)| name.as_str().len() + value.len() + 4)
                .sum::<usize>()
        };
        let subject = |length: usize| format!(r#","subject":"{}""#, "s".repeat(length));
        // The content type that is added is not the event's own.
        let added = CONTENT_TYPE.as_str().len() + CONTENT_TYPE_DEFAULT.len() + 4;
        let room = BINARY_HEADERS_BYTES_MAX + added + 1 - bytes(&with(&subject(1)).unwrap());
        assert_eq!(
            with(&subject(room)).as_ref().map(bytes),
            Some(BINARY_HEADERS_BYTES_MAX + added)
        );
        assert_eq!(with(&subject(room + 1)), None);
        assert_eq!(with(&format!(r#","subject":"{}""#, "é".repeat(2000))), None);
        let extensions: Vec<_> = (0..30_000).map(|n| format!(r#","x{n}":1"#)).collect();
        assert_eq!(with(&extensions.concat()), None);
        assert_eq!(with(r#","datacontenttype":"text/plain; x=ü""#), None);
        assert!(with(r#","datacontenttype":"text/plain; x=u""#).is_some());
    }

    #[test]
    fn a_lone_surrogate_in_text_is_replaced() {
        let (_, body) = rendered(r#","data":"a\ud800b","datacontenttype":"text/plain""#);
        assert_eq!(
            String::from_utf8(body).unwrap(),
            "a\u{fffd}\u{fffd}\u{fffd}b"
        );
    }

    #[test]
    fn json_data_is_a_slice_of_the_event() {
        let event = Bytes::from(format!(r#"{{{BASE},"data":[1,2]}}"#));
        let body = binary_request(&event).unwrap().unwrap().body;
        assert_eq!(body.as_ptr(), event[event.len() - 6..].as_ptr());
    }

    #[test]
    fn invalid_event_is_an_error() {
        let error = |json: &'static [u8]| {
            binary_request(&Bytes::from_static(json))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(b"\xff"), "not a CloudEvent: expected UTF-8");
        assert_eq!(
            error(b"[]"),
            "not a CloudEvent: expected a JSON object, found an array"
        );
        assert_eq!(error(br#"{"a b":1}"#), "attribute a b cannot be a header");
        assert_eq!(
            error(br#"{"data_base64":"?"}"#),
            "not a CloudEvent: data_base64: expected base64"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(json in "(\\{|\\[|\"|data|:|,|1|\\}|\\]|null| ){0,12}") {
            let _ = binary_request(&Bytes::from(json));
        }
    }
}
