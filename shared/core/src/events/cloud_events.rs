//! CloudEvents 1.0 in its JSON format: which members an event must and may have.
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::date_time::{self, OffsetForm};
use super::members::{EventAttributes, EventMembers, MemberValue};
use super::{EventError, EventExpectation};
use crate::model::{Timestamp, is_attribute_name};
use crate::trace::TraceContext;

/// Reads and checks the attributes. `data` is not looked at.
pub(super) fn read_attributes(json: &str) -> Result<EventAttributes, EventError> {
    let members = EventMembers::parse(json)?;
    let mut draft = CloudEventDraft::default();
    for (name, value) in members.iter() {
        draft
            .take_member(name, value)
            .map_err(|expected| value.to_error(name, expected))?;
    }
    draft.finish()
}

/// Whether an event may have this member.
pub(super) fn allows_member(name: &str, value: MemberValue<'_>) -> bool {
    CloudEventDraft::default().take_member(name, value).is_ok()
}

/// The members met so far.
#[derive(Default)]
struct CloudEventDraft {
    has_specversion: bool,
    id: Option<Box<str>>,
    source: Option<Box<str>>,
    event_type: Option<Box<str>>,
    rest: EventAttributes,
    has_data: bool,
    has_data_base64: bool,
}

impl CloudEventDraft {
    /// Takes one member. A member that is null counts as absent, as the JSON format says.
    fn take_member(&mut self, name: &str, value: MemberValue<'_>) -> Result<(), EventExpectation> {
        match name {
            _ if value.is_null() => {}
            "data" => self.has_data = true,
            "data_base64" => self.has_data_base64 = check_base64(value)?,
            "specversion" => self.has_specversion = check_specversion(value)?,
            "id" => self.id = Some(non_empty(value)?.into()),
            "type" => self.event_type = Some(non_empty(value)?.into()),
            "source" => self.source = Some(uri_reference(value)?.into()),
            "subject" => self.rest.subject = Some(non_empty(value)?.into()),
            "datacontenttype" => drop(non_empty(value)?),
            "dataschema" => absolute_uri(value)?,
            "time" => self.rest.time = Some(parse_time(value)?),
            "expirytime" => self.rest.expirytime = Some(parse_time(value)?),
            "traceparent" => self.rest.traceparent = parse_traceparent(value)?,
            _ if !is_attribute_name(name) => return Err(EventExpectation::AttributeName),
            _ => check_extension(value)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<EventAttributes, EventError> {
        if !self.has_specversion {
            return Err(EventError::for_member(
                "specversion",
                EventExpectation::SpecVersion,
            ));
        }
        if self.has_data && self.has_data_base64 {
            return Err(EventError::for_member(
                "data_base64",
                EventExpectation::OneData,
            ));
        }
        Ok(EventAttributes {
            id: require_member("id", self.id, EventExpectation::NonEmptyString)?,
            source: Some(require_member(
                "source",
                self.source,
                EventExpectation::UriReference,
            )?),
            event_type: require_member("type", self.event_type, EventExpectation::NonEmptyString)?,
            ..self.rest
        })
    }
}

/// The time in an attribute of a CloudEvent with this text, such as the one before which it is not
/// sent. `None` if it has no such attribute, or is not a CloudEvent.
pub fn attribute_time(json: &Bytes, name: &str) -> Result<Option<Timestamp>, EventError> {
    let members = EventMembers::from_event_text(json).map(|(_, members)| members);
    let value = members.and_then(|members| members.find_value(name));
    let value = value.filter(|value| !value.is_null());
    let time = value
        .map(|value| parse_time(value).map_err(|expected| EventError::for_member(name, expected)));
    time.transpose()
}

/// Whether an extension may have this name: no other attribute has it.
pub(crate) fn is_extension_name(name: &str) -> bool {
    const TAKEN: [&str; 11] = [
        "data",
        "dataschema",
        "datacontenttype",
        "expirytime",
        "id",
        "source",
        "specversion",
        "subject",
        "time",
        "traceparent",
        "type",
    ];
    !name.is_empty() && is_attribute_name(name) && !TAKEN.contains(&name)
}

/// Text as an attribute may have it, or `expected`.
fn attribute_text(
    value: MemberValue<'_>,
    expected: EventExpectation,
) -> Result<Cow<'_, str>, EventExpectation> {
    if !value.is_string() {
        return Err(expected);
    }
    let text = value.decode_string()?;
    if text.chars().any(char::is_control) {
        return Err(EventExpectation::NoControlCharacters);
    }
    Ok(text)
}

fn non_empty(value: MemberValue<'_>) -> Result<Cow<'_, str>, EventExpectation> {
    let text = attribute_text(value, EventExpectation::NonEmptyString)?;
    if text.is_empty() {
        Err(EventExpectation::NonEmptyString)
    } else {
        Ok(text)
    }
}

fn check_specversion(value: MemberValue<'_>) -> Result<bool, EventExpectation> {
    if attribute_text(value, EventExpectation::SpecVersion)? == "1.0" {
        Ok(true)
    } else {
        Err(EventExpectation::SpecVersion)
    }
}

/// Checks a URI reference loosely: its form differs between producers' libraries, and no code here
/// resolves one.
fn uri_reference(value: MemberValue<'_>) -> Result<Cow<'_, str>, EventExpectation> {
    let text = attribute_text(value, EventExpectation::UriReference)?;
    if text.is_empty() || text.contains(char::is_whitespace) {
        Err(EventExpectation::UriReference)
    } else {
        Ok(text)
    }
}

fn require_member(
    name: &str,
    found: Option<Box<str>>,
    expected: EventExpectation,
) -> Result<Box<str>, EventError> {
    found.ok_or_else(|| EventError::for_member(name, expected))
}

fn is_uri_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

fn absolute_uri(value: MemberValue<'_>) -> Result<(), EventExpectation> {
    let text = attribute_text(value, EventExpectation::AbsoluteUri)?;
    match text.split_once(':') {
        Some((scheme, rest))
            if is_uri_scheme(scheme) && !rest.is_empty() && !rest.contains(char::is_whitespace) =>
        {
            Ok(())
        }
        _ => Err(EventExpectation::AbsoluteUri),
    }
}

fn parse_time(value: MemberValue<'_>) -> Result<Timestamp, EventExpectation> {
    date_time::parse(
        &attribute_text(value, EventExpectation::DateTime)?,
        OffsetForm::Rfc3339,
    )
    .ok_or(EventExpectation::DateTime)
}

fn check_base64(value: MemberValue<'_>) -> Result<bool, EventExpectation> {
    let text = attribute_text(value, EventExpectation::Base64)?;
    STANDARD
        .decode(text.as_bytes())
        .map(|_| true)
        .map_err(|_| EventExpectation::Base64)
}

fn check_extension(value: MemberValue<'_>) -> Result<(), EventExpectation> {
    if value.is_composite() {
        return Err(EventExpectation::Scalar);
    }
    if value.is_string() {
        attribute_text(value, EventExpectation::Scalar)?;
    }
    Ok(())
}

/// A `traceparent` that is not in W3C's form stays in the event like any extension, but is not
/// offered as a header.
fn parse_traceparent(value: MemberValue<'_>) -> Result<Option<Box<str>>, EventExpectation> {
    check_extension(value)?;
    if !value.is_string() {
        return Ok(None);
    }
    let text = value.decode_string()?;
    Ok(TraceContext::parse(&text).map(|_| text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event with `members` besides the required ones.
    fn with(members: &str) -> Result<EventAttributes, String> {
        read_attributes(&format!(
            r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t"{members}}}"#
        ))
        .map_err(|e| e.to_string())
    }

    fn refused(json: &str, expected: &str) {
        assert_eq!(
            read_attributes(json).map_err(|e| e.to_string()),
            Err(expected.to_owned()),
            "{json}"
        );
    }

    fn refused_with(members: &str, expected: &str) {
        assert_eq!(with(members), Err(expected.to_owned()), "{members}");
    }

    #[test]
    fn the_four_required_attributes_are_required() {
        let required = [
            ("specversion", "\"1.0\""),
            ("id", "\"1\""),
            ("source", "\"/s\""),
            ("type", "\"t\""),
        ];
        let expectations = [
            "specversion: expected \"1.0\"",
            "id: expected a non-empty string",
            "source: expected a non-empty URI reference without spaces",
            "type: expected a non-empty string",
        ];
        for (at, (missing, _)) in required.iter().enumerate() {
            for instead in [
                None,
                Some("null"),
                Some("\"\""),
                Some("7"),
                Some("[\"x\"]"),
                Some("{}"),
            ] {
                let members: Vec<String> = required
                    .iter()
                    .filter_map(|(name, value)| {
                        let value = if name == missing {
                            instead
                        } else {
                            Some(*value)
                        };
                        value.map(|value| format!("\"{name}\":{value}"))
                    })
                    .collect();
                let found = match instead {
                    Some("7") => ", found a number",
                    Some("{}") => ", found an object",
                    Some("[\"x\"]") => ", found an array",
                    _ => "",
                };
                refused(
                    &format!("{{{}}}", members.join(",")),
                    &format!("{}{found}", expectations[at]),
                );
            }
        }
    }

    #[test]
    fn every_malformed_attribute_is_named() {
        refused_with(r#","subject":"""#, "subject: expected a non-empty string");
        refused_with(
            r#","subject":5"#,
            "subject: expected a non-empty string, found a number",
        );
        refused_with(
            r#","subject":"a\nb""#,
            "subject: expected text without control characters",
        );
        refused_with(
            r#","subject":"\ud800""#,
            "subject: expected valid Unicode, found a lone surrogate",
        );
        refused_with(
            r#","datacontenttype":"""#,
            "datacontenttype: expected a non-empty string",
        );
        for uri in ["", "schema", "//host/x", "1a:b", "a:", "a:b c"] {
            refused_with(
                &format!(",\"dataschema\":\"{uri}\""),
                "dataschema: expected an absolute URI",
            );
        }
        for name in ["time", "expirytime"] {
            for (value, found) in [
                ("\"tomorrow\"", ""),
                ("1700000000", ", found a number"),
                ("\"2026-11-21\"", ""),
                ("\"2026-11-21T10:00:00\"", ""),
            ] {
                let expected = "expected an RFC 3339 date-time such as 2026-11-21T10:00:00Z";
                refused_with(
                    &format!(",\"{name}\":{value}"),
                    &format!("{name}: {expected}{found}"),
                );
            }
        }
        for name in ["Upper", "under_score", "a-b", "", "ü", "with space"] {
            let expected = if name.is_empty() {
                String::new()
            } else {
                name.to_owned()
            } + ": expected an attribute \
                 name of lower-case letters and digits";
            refused_with(&format!(",\"{name}\":\"x\""), &expected);
        }
        refused_with(
            r#","ext":{"a":1}"#,
            "ext: expected a string, a number or a boolean, found an object",
        );
        refused_with(
            r#","ext":[]"#,
            "ext: expected a string, a number or a boolean, found an array",
        );
        refused_with(
            r#","ext":"\udfff""#,
            "ext: expected valid Unicode, found a lone surrogate",
        );
        refused_with(
            r#","traceparent":{}"#,
            "traceparent: expected a string, a number or a boolean, found an object",
        );
        refused_with(
            r#","data_base64":5"#,
            "data_base64: expected base64, found a number",
        );
        for value in ["\"a\"", "\"!!!!\"", "\"aGk\"", "\"aG k=\""] {
            refused_with(
                &format!(",\"data_base64\":{value}"),
                "data_base64: expected base64",
            );
        }
        refused_with(
            r#","data":1,"data_base64":"aGk=""#,
            "data_base64: expected either data or data_base64",
        );
        refused_with(r#","id":"2""#, "id: expected at most once");
        refused_with(r#","data":1,"data":1"#, "data: expected at most once");
    }

    #[test]
    fn a_source_with_a_space_or_a_control_character_is_refused() {
        let source = |text: &str| {
            format!(r#"{{"specversion":"1.0","id":"1","type":"t","source":"{text}"}}"#)
        };
        refused(
            &source("a b"),
            "source: expected a non-empty URI reference without spaces",
        );
        refused(
            &source("a\\u0000b"),
            "source: expected text without control characters",
        );
    }

    #[test]
    fn only_version_1_0_is_taken() {
        refused(
            r#"{"specversion":"0.3","id":"1"}"#,
            "specversion: expected \"1.0\"",
        );
        refused(
            r#"{"specversion":1.0,"id":"1"}"#,
            "specversion: expected \"1.0\", found a number",
        );
    }

    /// A long member name is shortened and an odd one escaped in the error.
    #[test]
    fn odd_member_name_is_shortened_and_escaped_in_the_error() {
        let expected = format!(
            "{}…: expected an attribute name of lower-case letters and digits",
            "A".repeat(64)
        );
        refused_with(&format!(",\"{}\":1", "A".repeat(1000)), &expected);
        refused_with(
            r#","a\nb":1"#,
            r"a\nb: expected an attribute name of lower-case letters and digits",
        );
    }

    #[test]
    fn everything_the_specification_allows_is_accepted() {
        for members in [
            r#","subject":null,"time":null,"dataschema":null,"ext":null,"data_base64":null"#,
            r#","data":null,"data_base64":"aGk=""#,
            r#","data_base64":"aG\/+""#,
            r#","ext":"","ext2":-12345678901234567890,"ext3":false"#,
            r#","averyveryverylongextensionnameofmorethantwentycharacters":"x""#,
            r#","data":{"a":1e999999,"b":[12345678901234567890],"c":"\ud800"}"#,
            r#","dataschema":"urn:x:y","datacontenttype":"text/plain; charset=utf-8""#,
        ] {
            assert_eq!(with(members).map(|a| a.id), Ok("1".into()), "{members}");
        }
    }

    #[test]
    fn attributes_are_decoded() {
        let read = with(concat!(
            r#","subject":"\u00e9\/\ud83d\ude00","time":"2026-11-21T10:00:00Z","#,
            r#""expirytime":"2026-11-21T12:00:00+01:00""#
        ));
        let expected = EventAttributes {
            id: "1".into(),
            event_type: "t".into(),
            source: Some("/s".into()),
            subject: Some("é/😀".into()),
            time: Some(Timestamp::from_millis(1_795_255_200_000)),
            expirytime: Some(Timestamp::from_millis(1_795_258_800_000)),
            traceparent: None,
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn only_a_well_formed_traceparent_is_offered() {
        let check = |text: &str, offered: bool| {
            let read = with(&format!(",\"traceparent\":\"{text}\"")).unwrap();
            assert_eq!(read.traceparent.as_deref(), offered.then_some(text));
        };
        check(
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            true,
        );
        check(
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            false,
        );
        check(
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            false,
        );
        check(
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            false,
        );
        check(
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            false,
        );
        check(
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            false,
        );
        check("", false);
        assert_eq!(with(",\"traceparent\":7").unwrap().traceparent, None);
    }
}
