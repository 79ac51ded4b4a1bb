//! JSON texts as a whole: how deep they nest, which characters SQS refuses, and a string that may
//! be no text.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{Deserializer, Visitor};

use crate::model::EVENT_DEPTH_MAX;

/// The only characters that valid JSON may hold raw and SQS refuses, with their escapes.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
const REFUSED: [(char, &str); 2] = [('\u{fffe}', "\\ufffe"), ('\u{ffff}', "\\uffff")];

/// The first byte of either of them in UTF-8.
const REFUSED_LEAD: u8 = 0xef;

/// Whether a message can hold this JSON text as it is. Text without any refused character, nearly
/// all there is, costs one scan for a byte.
pub fn fits_into_a_message(json: &[u8]) -> bool {
    if memchr(REFUSED_LEAD, json).is_none() {
        return true;
    }
    !json
        .windows(3)
        .any(|bytes| matches!(bytes, [REFUSED_LEAD, 0xbf, 0xbe | 0xbf]))
}

/// The text with every character that SQS refuses escaped, for a text of our own making. In valid
/// JSON such a character lies in a string, so the escape means the same.
pub(crate) fn escape_refused(json: &str) -> Cow<'_, str> {
    if fits_into_a_message(json.as_bytes()) {
        return Cow::Borrowed(json);
    }
    let mut escaped = json.to_owned();
    for (refused, escape) in REFUSED {
        escaped = escaped.replace(refused, escape);
    }
    Cow::Owned(escaped)
}

/// Whether arrays and objects of a valid JSON text nest no deeper than [`EVENT_DEPTH_MAX`].
pub(crate) fn is_shallow(json: &str) -> bool {
    let opening = json.bytes().filter(|b| b | 0x20 == b'{').count();
    opening <= EVENT_DEPTH_MAX || nesting_depth(json) <= EVENT_DEPTH_MAX
}

/// A JSON string, decoded. Half of a surrogate pair, which no text can hold, reads as U+FFFD.
pub(crate) fn lossy_text(json: &str) -> Cow<'_, str> {
    let inner = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or_default();
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    serde_json::Deserializer::from_str(json)
        .deserialize_bytes(LossyText)
        .unwrap_or_default()
        .into()
}

/// Takes a JSON string as bytes, which is how `serde_json` hands out lone surrogates.
struct LossyText;

impl Visitor<'_> for LossyText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}

fn nesting_depth(json: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    let mut in_string = false;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => drop(bytes.next()),
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_sqs_refuses_is_escaped() {
        let check = |json: &str, expected: &str| assert_eq!(escape_refused(json), expected);
        check("\"a\u{fffe}b\u{ffff}\"", r#""a\ufffeb\uffff""#);
        check("\"\\\\\u{ffff}\"", r#""\\\uffff""#);
        check(
            "\"\u{fffd}\u{ff01}\u{1fffe}\u{10ffff}\"",
            "\"\u{fffd}\u{ff01}\u{1fffe}\u{10ffff}\"",
        );
    }

    #[test]
    fn text_without_any_is_not_copied() {
        assert!(matches!(escape_refused("\"\u{ff01}\""), Cow::Borrowed(_)));
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        assert_eq!(nesting_depth("1"), 0);
        assert_eq!(nesting_depth(r#"{"a":[1,{"b":[]}],"c":[]}"#), 4);
        assert_eq!(nesting_depth(r#"["[[[[","\"[[[","\\",[1]]"#), 2);
    }

    #[test]
    fn the_limit_is_exact() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(is_shallow(&nested(EVENT_DEPTH_MAX)));
        assert!(!is_shallow(&nested(EVENT_DEPTH_MAX + 1)));
        assert!(is_shallow(&format!("[{}]", vec!["{}"; 1000].join(","))));
    }

    proptest! {
        #[test]
        fn escaping_keeps_the_meaning(text in "[a\\\\\"\u{fffd}-\u{ffff}]{0,20}") {
            let json = serde_json::to_string(&text).unwrap();
            let escaped = escape_refused(&json);
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
            prop_assert!(fits_into_a_message(escaped.as_bytes()));
            let refused = json.contains(REFUSED.map(|(refused, _)| refused));
            prop_assert_eq!(fits_into_a_message(json.as_bytes()), !refused);
        }
    }
}
