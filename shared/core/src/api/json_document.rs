//! Documents that are JSON: bodies of the API, and settings in a variable.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_path_to_error::Path;

use super::SettingsError;
use super::mistakes::{InputMistake, InputNotation, WrittenValue, path_text, read_written};

/// The reason why a JSON document is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonFault {
    /// The text is not JSON.
    Syntax {
        /// The member in which it ends to be JSON; empty for the whole.
        member: String,
        /// The fault, with its line and column.
        text: String,
    },
    /// The text is JSON with these mistakes.
    Mistakes(Vec<InputMistake>),
}

/// Reads a JSON document as a `T` that passes `check`. This is the only way in for JSON that users
/// write, but for events, of which nothing but the envelope is read.
///
/// # Errors
/// It is no JSON, or it has mistakes.
pub fn read_json<T: DeserializeOwned>(
    text: &[u8],
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Result<T, JsonFault> {
    read_written(parse(text)?, InputNotation::Json, check).map_err(JsonFault::Mistakes)
}

fn parse(text: &[u8]) -> Result<WrittenValue, JsonFault> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let written = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| syntax_fault(error.path(), error.inner()))?;
    match json.end() {
        Ok(()) => Ok(written),
        Err(error) => Err(JsonFault::Syntax {
            member: String::new(),
            text: error.to_string(),
        }),
    }
}

fn syntax_fault(path: &Path, error: &serde_json::Error) -> JsonFault {
    JsonFault::Syntax {
        member: path_text(path),
        text: error.to_string(),
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { member, text } => write_fault(f, member, text),
            Self::Mistakes(found) => found.iter().enumerate().try_for_each(|(index, mistake)| {
                f.write_str(if index == 0 { "" } else { "; " })?;
                write_fault(f, &mistake.member, &mistake.text)
            }),
        }
    }
}

fn write_fault(f: &mut fmt::Formatter<'_>, member: &str, text: &str) -> fmt::Result {
    if !member.is_empty() {
        write!(f, "{member}: ")?;
    }
    f.write_str(text)
}

impl std::error::Error for JsonFault {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn fault(text: &str) -> String {
        read_json::<BTreeMap<String, Vec<u8>>>(text.as_bytes(), |_| Ok(()))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn text_that_is_no_json_is_refused_with_its_member_and_place() {
        let check = |text: &str, expected: &str| assert_eq!(fault(text), expected, "{text}");
        check(
            r#"{"a": [1, x]}"#,
            "a[1]: expected value at line 1 column 11",
        );
        check(r#"{"a": nul}"#, "a: expected ident at line 1 column 10");
        check("", "EOF while parsing a value at line 1 column 0");
        check("{} {}", "trailing characters at line 1 column 4");
        check(
            r#"{"a": [1"#,
            "a: EOF while parsing a list at line 1 column 8",
        );
    }

    #[test]
    fn every_mistake_of_the_document_is_said() {
        assert_eq!(
            fault(r#"{"a": [1, "x"], "b": {}, "\u0061": []}"#),
            "a: is there twice, remove or rename one; \
             a[1]: expected a whole number, found a text; b: expected a list, found an object"
        );
    }
}
