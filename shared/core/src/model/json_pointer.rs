//! JSON pointers (RFC 6901) into a JSON text. The value is a slice of the text: the text around it
//! is neither decoded nor kept.

mod step;

use std::borrow::Cow;

use crate::model::limits::JSON_POINTER_BYTES_MAX;

/// A path to a value inside of an event: at least one step, every escape decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPointer(Vec<String>);

/// Why a text is not a pointer to a value inside of an event.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum JsonPointerError {
    /// Empty, or without the slash that begins each step.
    #[error("a JSON pointer starts with a slash, such as /data/id")]
    Slash,
    /// A tilde that is neither `~0` nor `~1`.
    #[error("in a JSON pointer a tilde is written ~0 and a slash inside of a name ~1")]
    Tilde,
    /// Too long.
    #[error("a JSON pointer has at most {JSON_POINTER_BYTES_MAX} bytes, this one has {0}")]
    Length(usize),
}

impl JsonPointer {
    /// Parses a pointer. The empty one, which RFC 6901 lets stand for the whole text, is refused.
    pub fn parse(text: &str) -> Result<Self, JsonPointerError> {
        if text.len() > JSON_POINTER_BYTES_MAX {
            return Err(JsonPointerError::Length(text.len()));
        }
        let steps = text.strip_prefix('/').ok_or(JsonPointerError::Slash)?;
        steps
            .split('/')
            .map(unescape_step)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The pointer to a member of the event itself.
    pub fn for_member(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// The JSON of the value this leads to; `None` where there is none. Of members of the same name
    /// the last one counts, as for most parsers.
    pub fn find<'a>(&self, json: &'a [u8]) -> Option<&'a str> {
        let mut value = std::str::from_utf8(json).ok()?;
        for name in &self.0 {
            value = step::descend_into(value, name)?;
        }
        Some(value)
    }
}

/// The text of a JSON string; `None` for another value, or one that is not Unicode (a lone
/// surrogate).
pub fn decode_string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.as_bytes().contains(&b'\\') {
        return serde_json::from_str(json).map(Cow::Owned).ok();
    }
    Some(Cow::Borrowed(inner))
}

fn unescape_step(step: &str) -> Result<String, JsonPointerError> {
    if step
        .split('~')
        .skip(1)
        .all(|tail| tail.starts_with(['0', '1']))
    {
        Ok(step.replace("~1", "/").replace("~0", "~"))
    } else {
        Err(JsonPointerError::Tilde)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The document of RFC 6901 §5, and other values that an event may hold.
    const JSON: &str = r#"{ "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5,
        "k\"l": 6, " ": 7, "m~n": 8, "twice": 1, "twice": 2, "deep": {"\ud800": 9, "n": 1.00 } , "\u006fne": true }"#;

    fn check(pointer: &str, expected: Option<&str>) {
        assert_eq!(
            JsonPointer::parse(pointer).unwrap().find(JSON.as_bytes()),
            expected,
            "{pointer}"
        );
    }

    #[test]
    fn the_examples_of_the_rfc_lead_where_it_says() {
        check("/foo", Some(r#"["bar", "baz"]"#));
        check("/foo/0", Some("\"bar\""));
        check("/", Some("0"));
        check("/a~1b", Some("1"));
        check("/c%d", Some("2"));
        check("/e^f", Some("3"));
        check("/g|h", Some("4"));
        check("/i\\j", Some("5"));
        check("/k\"l", Some("6"));
        check("/ ", Some("7"));
        check("/m~0n", Some("8"));
    }

    #[test]
    fn pointer_to_an_absent_value_finds_none() {
        for pointer in [
            "/nothing", "/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/bar", "/foo/0/0", "//x",
        ] {
            check(pointer, None);
        }
        check("/foo/18446744073709551616", None);
    }

    #[test]
    fn names_are_compared_decoded_and_the_last_of_a_name_counts() {
        check("/one", Some("true"));
        check("/twice", Some("2"));
        check("/deep/n", Some("1.00"));
    }

    #[test]
    fn malformed_pointer_is_refused() {
        let check =
            |text: &str, error| assert_eq!(JsonPointer::parse(text).err(), Some(error), "{text}");
        check("", JsonPointerError::Slash);
        check("data/id", JsonPointerError::Slash);
        check("$.data", JsonPointerError::Slash);
        check("/a~", JsonPointerError::Tilde);
        check("/a~2b", JsonPointerError::Tilde);
        check("/~ä", JsonPointerError::Tilde);
        check(
            &format!("/{}", "a".repeat(JSON_POINTER_BYTES_MAX)),
            JsonPointerError::Length(513),
        );
    }

    #[test]
    fn a_string_is_decoded_and_nothing_else_is_one() {
        assert_eq!(decode_string(r#""a\u0062""#).as_deref(), Some("ab"));
        assert!(matches!(decode_string("\"ab\""), Some(Cow::Borrowed("ab"))));
        assert_eq!(decode_string(r#""\ud800""#), None);
        assert_eq!(decode_string("1"), None);
    }

    proptest! {
        #[test]
        fn every_member_is_found_by_its_escaped_name(name in ".{0,8}", json in ".{0,20}") {
            let text = serde_json::json!({ "data": { &name: json } }).to_string();
            let pointer = format!("/data/{}", name.replace('~', "~0").replace('/', "~1"));
            let found = JsonPointer::parse(&pointer).unwrap().find(text.as_bytes()).and_then(decode_string);
            prop_assert_eq!(found.as_deref(), Some(json.as_str()));
        }

        #[test]
        fn no_text_makes_it_panic(json: Vec<u8>, pointer in "/.{0,9}") {
            let _ = JsonPointer::parse(&pointer).map(|pointer| pointer.find(&json).is_some());
        }
    }
}
