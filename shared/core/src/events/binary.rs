//! CloudEvents in binary mode: attributes in `ce-*` headers, data in the body; rendered to
//! structured JSON once.
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md>

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::value::RawValue;

use super::media_type::MediaType;
use super::{EventError, EventExpectation};
use crate::model::is_attribute_name;

/// The beginning of the name of every attribute's header.
const PREFIX: &str = "ce-";

/// Whether the headers carry a CloudEvent's attributes.
pub(super) fn is_binary(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with(PREFIX))
}

/// The event as JSON. Names are checked here, because they become members; the reader of the JSON
/// checks the values.
pub(super) fn render_json(
    headers: &HeaderMap,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<String, EventError> {
    let mut json = String::with_capacity(body.len() + 512);
    for name in headers.keys() {
        if let Some(attribute) = name.as_str().strip_prefix(PREFIX) {
            let text = attribute_text(headers, attribute, name)
                .map_err(|expected| EventError::for_member(attribute, expected))?;
            push_member(&mut json, attribute, &quote_json(text));
        }
    }
    if let Some(content_type) = content_type {
        push_member(
            &mut json,
            "datacontenttype",
            &quote_json(content_type.to_owned()),
        );
    }
    if !body.is_empty() {
        let (name, value) = data_member(content_type, body)
            .map_err(|expected| EventError::for_member("data", expected))?;
        push_member(&mut json, name, &value);
    }
    json.push('}');
    Ok(json)
}

fn push_member(json: &mut String, name: &str, value: &str) {
    let before = if json.is_empty() { "{\"" } else { ",\"" };
    json.extend([before, name, "\":", value]);
}

fn quote_json(text: String) -> String {
    serde_json::Value::String(text).to_string()
}

fn attribute_text(
    headers: &HeaderMap,
    attribute: &str,
    name: &http::HeaderName,
) -> Result<String, EventExpectation> {
    if matches!(attribute, "data" | "datacontenttype") {
        return Err(EventExpectation::NotInHeader);
    }
    if !is_attribute_name(attribute) {
        return Err(EventExpectation::AttributeName);
    }
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => {
            decode_header(value.as_bytes()).ok_or(EventExpectation::HeaderEncoding)
        }
        _ => Err(EventExpectation::Once),
    }
}

/// The body as the JSON format has it: JSON as it is, text as a string, all else as base64. Data
/// without a content type counts as JSON where it is JSON, because that is what CloudEvents says of
/// it and what its Python client sends.
fn data_member(
    content_type: Option<&str>,
    body: &[u8],
) -> Result<(&'static str, String), EventExpectation> {
    let media_type = MediaType::parse(content_type.unwrap_or_default());
    if media_type.is_json() || content_type.is_none() {
        match checked_json(body) {
            Err(_) if content_type.is_none() => {}
            json => return json.map(|json| ("data", json)),
        }
    }
    match std::str::from_utf8(body) {
        Ok(text) if media_type.is_text() && media_type.is_utf8() => {
            Ok(("data", quote_json(text.to_owned())))
        }
        _ => Ok(("data_base64", quote_json(STANDARD.encode(body)))),
    }
}

fn checked_json(body: &[u8]) -> Result<String, EventExpectation> {
    let text = std::str::from_utf8(body).map_err(|_| EventExpectation::Utf8)?;
    let json: &RawValue = serde_json::from_str(text).map_err(EventExpectation::Json)?;
    Ok(json.get().to_owned())
}

/// Decodes a header value: quotes first, then one round of percent-decoding (HTTP binding,
/// 3.1.3.2).
fn decode_header(value: &[u8]) -> Option<String> {
    let unquoted = unquote_header(value.trim_ascii())?;
    let mut text = Vec::with_capacity(unquoted.len());
    let mut rest = unquoted.as_slice();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let ([high, low], after) = after.split_first_chunk()?;
            text.push(hex_value(*high)? << 4 | hex_value(*low)?);
            rest = after;
        } else {
            text.push(byte);
        }
    }
    String::from_utf8(text).ok()
}

/// Undoes a quoted string (RFC 9110, 5.6.4), which older producers send. Quotes elsewhere are
/// ordinary characters.
fn unquote_header(value: &[u8]) -> Option<Vec<u8>> {
    let Some(quoted) = value.strip_prefix(b"\"") else {
        return Some(value.to_vec());
    };
    let mut text = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter().copied();
    loop {
        match bytes.next()? {
            b'"' => break,
            b'\\' => text.push(bytes.next()?),
            byte => text.push(byte),
        }
    }
    bytes.next().is_none().then_some(text)
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    fn rendered(
        headers: &[(&str, &str)],
        content_type: Option<&str>,
        body: &[u8],
    ) -> Result<String, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        render_json(&map, content_type, body).map_err(|e| e.to_string())
    }

    #[test]
    fn header_values_are_decoded_as_the_binding_says() {
        let check = |value: &str, expected: Option<&str>| {
            assert_eq!(
                decode_header(value.as_bytes()).as_deref(),
                expected,
                "{value}"
            );
        };
        check("Euro%20%E2%82%AC%20%F0%9F%98%80", Some("Euro € 😀"));
        check("Euro%20%e2%82%ac", Some("Euro €"));
        check("%41%25", Some("A%"));
        check("  plain text ", Some("plain text"));
        check(r#""a \"quoted\" \\ %22""#, Some(r#"a "quoted" \ ""#));
        check("a\"b", Some("a\"b"));
        check("€", Some("€"));
        check("", Some(""));
        check("%C0%A0", None);
        check("%ff", None);
        check("100%", None);
        check("%zz", None);
        check("%+1", None);
        check("\"open", None);
        check("\"closed\" and more", None);
        check("\"ends in \\", None);
    }

    #[test]
    fn data_is_put_where_its_content_type_belongs() {
        let check = |content_type, body: &[u8], expected: &str| {
            assert_eq!(
                rendered(&[("ce-id", "1")], content_type, body),
                Ok(format!("{{\"id\":\"1\"{expected}}}"))
            );
        };
        check(
            Some("application/json"),
            b" {\"n\": 1e999999} ",
            r#","datacontenttype":"application/json","data":{"n": 1e999999}"#,
        );
        check(
            Some("application/vnd.x+json"),
            b"1",
            r#","datacontenttype":"application/vnd.x+json","data":1"#,
        );
        check(
            Some("text/plain"),
            "é\"\n".as_bytes(),
            r#","datacontenttype":"text/plain","data":"é\"\n""#,
        );
        check(
            Some("text/plain"),
            b"\xff",
            r#","datacontenttype":"text/plain","data_base64":"/w==""#,
        );
        check(
            Some("text/plain; charset=latin1"),
            b"a",
            r#","datacontenttype":"text/plain; charset=latin1","data_base64":"YQ==""#,
        );
        check(
            Some("image/png"),
            b"abc",
            r#","datacontenttype":"image/png","data_base64":"YWJj""#,
        );
        check(None, b"abc", r#","data_base64":"YWJj""#);
        check(
            Some("application/json"),
            b"",
            r#","datacontenttype":"application/json""#,
        );
        check(None, b"{\"a\": 1}", r#","data":{"a": 1}"#);
        check(None, b"", "");
    }

    #[test]
    fn every_malformed_header_is_named() {
        let check = |name: &str, value: &str, expected: &str| {
            assert_eq!(
                rendered(&[(name, value)], None, b""),
                Err(expected.to_owned())
            );
        };
        check(
            "ce-subject",
            "%c3%28",
            "subject: expected percent-encoded UTF-8",
        );
        check(
            "ce-",
            "x",
            ": expected an attribute name of lower-case letters and digits",
        );
        check(
            "ce-data_base64",
            "x",
            "data_base64: expected an attribute name of lower-case letters and digits",
        );
        check(
            "ce-data",
            "x",
            "data: expected in the body and content-type, not in a ce- header",
        );
        check(
            "ce-datacontenttype",
            "x",
            "datacontenttype: expected in the body and content-type, not in a ce- header",
        );
        assert_eq!(
            rendered(&[("ce-id", "1"), ("CE-ID", "1")], None, b""),
            Err("id: expected at most once".to_owned())
        );
    }

    #[test]
    fn json_data_is_checked() {
        let check = |body: &[u8], expected: &str| {
            assert_eq!(
                rendered(&[("ce-id", "1")], Some("application/json"), body),
                Err(expected.to_owned())
            );
        };
        check(
            b"{",
            "data: expected JSON: EOF while parsing an object at line 1 column 1",
        );
        check(
            b"1 2",
            "data: expected JSON: trailing characters at line 1 column 3",
        );
        check(b"\"\xff\"", "data: expected UTF-8");
    }

    proptest! {
        #[test]
        fn whatever_the_value_the_rendering_is_json(value in ".{0,30}", body in ".{0,30}") {
            let encoded: Vec<String> = value.bytes().map(|b| format!("%{b:02x}")).collect();
            let headers = [("ce-subject", &*encoded.concat())];
            let json = rendered(&headers, Some("text/x"), body.as_bytes()).unwrap();
            let read: serde_json::Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read["subject"], &value);
            prop_assert_eq!(read["data"].as_str().unwrap_or_default(), body);
        }

        #[test]
        fn no_bytes_panic(value in proptest::collection::vec(any::<u8>(), 0..20)) {
            let _ = decode_header(&value);
        }
    }
}
