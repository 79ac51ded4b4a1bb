//! A fault as data: its text and the repair are made from it.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use serde::de::{self, Expected, Unexpected};

/// The least likeness of two names, from 0 to 1, by which one counts as a typo of the other. The
/// program's options have the same bound: it is clap's.
const LIKENESS_MIN: f64 = 0.7;

/// Longest name that is shown whole, and longest typo, in characters. No member's name is half as
/// long.
const NAME_CHARS_MAX: usize = 64;

/// A name as messages show it.
pub(super) fn shorten_name(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]).into(),
        None => name.into(),
    }
}

/// A fault of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueFault {
    /// A member that its object does not have.
    UnknownMember {
        name: String,
        known: &'static [&'static str],
    },
    /// A word that is none of those expected.
    UnknownWord {
        word: String,
        known: &'static [&'static str],
    },
    /// No word where one is expected.
    NoWord {
        found: &'static str,
        known: &'static [&'static str],
    },
    /// A member that its object must have.
    Missing(&'static str),
    /// A value of the wrong kind or form.
    Value(String),
    /// A value that breaks a rule.
    Rule(String),
}

impl ValueFault {
    /// The name or word that was likely meant.
    pub(super) fn likely_name(&self) -> Option<&'static str> {
        match self {
            Self::UnknownMember { name, known } => most_alike(name, known),
            Self::UnknownWord { word, known } => most_alike(word, known),
            Self::NoWord { .. } | Self::Missing(_) | Self::Value(_) | Self::Rule(_) => None,
        }
    }
}

fn most_alike(written: &str, known: &[&'static str]) -> Option<&'static str> {
    if written.chars().nth(NAME_CHARS_MAX).is_some() {
        return None;
    }
    let written = written.to_lowercase();
    let rated = known
        .iter()
        .filter_map(|name| Some((typo_likeness(&written, &name.to_lowercase())?, *name)));
    rated
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// The likeness of a typo to its name: one slip of the fingers, or [`LIKENESS_MIN`] and more.
fn typo_likeness(written: &str, name: &str) -> Option<f64> {
    let likeness = strsim::jaro(written, name);
    (likeness >= LIKENESS_MIN || strsim::osa_distance(written, name) <= 1).then_some(likeness)
}

impl fmt::Display for ValueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match self {
            Self::UnknownMember { name, known } => {
                write!(f, "unknown member `{}`", shorten_name(name))?;
                known
            }
            // The word is not repeated: it may be a secret in the wrong place.
            Self::UnknownWord { known, .. } => {
                f.write_str("unknown word")?;
                known
            }
            Self::NoWord { found, known } => {
                return match known {
                    [only] => write!(f, "expected `{only}`, found {found}"),
                    known => {
                        write!(f, "expected one of `{}`, found {found}", known.join("`, `"))
                    }
                };
            }
            Self::Missing(name) => return write!(f, "missing member `{name}`"),
            Self::Value(text) | Self::Rule(text) => return f.write_str(text),
        };
        match (self.likely_name(), known) {
            (Some(likely), _) => write!(f, ", did you mean `{likely}`?"),
            (None, []) => Ok(()),
            (None, [only]) => write!(f, ", expected `{only}`"),
            (None, known) => write!(f, ", expected one of `{}`", known.join("`, `")),
        }
    }
}

impl Error for ValueFault {}

impl de::Error for ValueFault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::Value(text.to_string())
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownMember {
            name: name.to_owned(),
            known,
        }
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownWord {
            word: word.to_owned(),
            known,
        }
    }

    fn missing_field(name: &'static str) -> Self {
        Self::Missing(name)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Value(format!(
            "expected {}, found {}",
            kind_expected(expected),
            kind_found(found)
        ))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Value(format!("expected {}", range_expected(expected)))
    }
}

/// The kind of value that serde expected, in the words of the documents.
fn kind_expected(expected: &dyn Expected) -> String {
    match expected.to_string() {
        text if is_whole(text.strip_prefix("a nonzero ").unwrap_or(&text)) => {
            "a whole number".to_owned()
        }
        text if matches!(text.as_str(), "f32" | "f64") => "a number".to_owned(),
        text if text == "a string" => "a text".to_owned(),
        text if text == "a sequence" => "a list".to_owned(),
        text if text == "a map" || text.starts_with("struct ") => "an object".to_owned(),
        text => text,
    }
}

/// Whether it is serde's name of a whole number.
fn is_whole(text: &str) -> bool {
    matches!(
        text,
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize"
    )
}

/// The range that serde expected where the kind was right.
fn range_expected(expected: &dyn Expected) -> String {
    match expected.to_string().as_str() {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number that is not negative".to_owned(),
        text => text.to_owned(),
    }
}

/// The kind of value that serde found, without the value.
fn kind_found(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Str(_) | Unexpected::Char(_) => "a text",
        Unexpected::Seq => "a list",
        Unexpected::Map => "an object",
        Unexpected::Unit | Unexpected::Option => "nothing",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::Error as _;

    #[test]
    fn a_typo_is_answered_with_the_likely_name() {
        const KNOWN: &[&str] = &["endpoint", "filter", "retryPolicy", "deadLetter", "url"];
        let check = |written: &str, expected: &str| {
            let fault = ValueFault::unknown_field(written, KNOWN);
            assert_eq!(
                fault.to_string(),
                format!("unknown member `{written}`, {expected}")
            );
        };
        check("filters", "did you mean `filter`?");
        check("enpoint", "did you mean `endpoint`?");
        check("retry", "did you mean `retryPolicy`?");
        check("dead_letters", "did you mean `deadLetter`?");
        check("URI", "did you mean `url`?");
        check("ulr", "did you mean `url`?");
        check(
            "colour",
            "expected one of `endpoint`, `filter`, `retryPolicy`, `deadLetter`, `url`",
        );
    }

    #[test]
    fn a_word_is_not_repeated() {
        let check = |word: &str, known: &'static [&'static str], expected: &str| {
            assert_eq!(
                ValueFault::unknown_variant(word, known).to_string(),
                expected
            );
        };
        check(
            "cloudevent",
            &["CloudEvents", "EventGrid"],
            "unknown word, did you mean `CloudEvents`?",
        );
        check(
            "whsec_a",
            &["v1", "v1a"],
            "unknown word, expected one of `v1`, `v1a`",
        );
        check("whsec_a", &["v1"], "unknown word, expected `v1`");
        check("whsec_a", &[], "unknown word");
    }

    #[test]
    fn a_value_of_another_kind_is_not_repeated() {
        let check = |found: Unexpected<'_>, expected: &str, text: &str| {
            assert_eq!(ValueFault::invalid_type(found, &expected).to_string(), text);
        };
        check(
            Unexpected::Str("whsec_a"),
            "a sequence",
            "expected a list, found a text",
        );
        check(
            Unexpected::Unsigned(5),
            "a string",
            "expected a text, found a number",
        );
        check(
            Unexpected::Map,
            "u16",
            "expected a whole number, found an object",
        );
        check(
            Unexpected::Seq,
            "struct FilterSettings",
            "expected an object, found a list",
        );
        check(Unexpected::Unit, "f64", "expected a number, found nothing");
        let fault = ValueFault::invalid_value(Unexpected::Signed(-1), &"u16");
        assert_eq!(fault.to_string(), "expected a whole number from 0 to 65535");
    }

    #[test]
    fn a_long_name_is_shortened() {
        let name = "ü".repeat(NAME_CHARS_MAX);
        assert_eq!(shorten_name(&name), name);
        let text = ValueFault::unknown_field(&name.repeat(10_000), &["url"]).to_string();
        assert_eq!(text, format!("unknown member `{name}…`, expected `url`"));
    }
}
