//! Writes a YAML text.

use serde::Serialize;
use serde_saphyr::ser_options;

/// Error of a value that YAML cannot hold, such as a map in the place of a key.
#[derive(Debug, thiserror::Error)]
#[error("a value cannot be written as YAML")]
pub struct WriteError {
    source: serde_saphyr::SerializeError,
}

/// A value as YAML, which reads back as the same value. Members keep their order.
pub fn to_text(value: &impl Serialize) -> Result<String, WriteError> {
    // A long text stays on one line, as its reader wrote it.
    let options = ser_options! { prefer_block_scalars: false, compact_list_indent: false };
    let mut text = String::new();
    serde_saphyr::to_fmt_writer_with_options(&mut text, value, options)
        .map_err(|source| WriteError { source })?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_checked;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(value: &Value) {
        let text = to_text(value).unwrap();
        let found = read_checked::<Value>(text.as_bytes(), &|_| Ok(()));
        assert_eq!(found.as_ref(), Ok(value), "{text}");
    }

    #[test]
    fn texts_that_look_like_something_else_are_quoted() {
        for text in [
            "yes", "no", "null", "~", "1", "1.5", "0x1f", "1e3", "true", "on", "", " a", "a ",
            "a: b", "a #b",
        ] {
            check(&json!({ "text": text, text: [text] }));
        }
        for text in [
            "- x", "*a", "&a", "!a", "%a", "@a", "`a", "{a}", "[a]", "'a'", "\"a\"", "|", ">", "?",
        ] {
            check(&json!({ "text": text, text: [text] }));
        }
        for text in [
            "---",
            "...",
            "12:30",
            "0o17",
            ".inf",
            "<<",
            "=",
            "a\nb\n",
            "\ta",
            "\r\n",
            "a\0b\u{85}c",
        ] {
            check(&json!({ "text": text, text: [text] }));
        }
        check(&json!({ "text": "long ".repeat(100), "empty": {}, "none": [], "number": 5.0 }));
    }

    #[test]
    fn a_text_is_written_as_a_person_would_write_it() {
        let value = json!({ "endpoint": { "url": "https://a.example/?x=1#y" }, "list": [{ "a": "(masked)" }] });
        let expected = "endpoint:\n  url: https://a.example/?x=1#y\nlist:\n  - a: (masked)\n";
        assert_eq!(to_text(&value).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn any_text_reads_back(text in any::<String>(), name in any::<String>()) {
            check(&json!({ "text": text, "list": [text, { name: text }] }));
        }
    }
}
