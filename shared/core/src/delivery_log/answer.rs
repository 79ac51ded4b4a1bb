//! An endpoint's answer as the log keeps it: its first bytes as text, without secrets.
//!
//! An endpoint may answer with what it was sent. So the subscription's secrets and the values of
//! its headers are looked for as they are, as JSON and a URL write them, and word by word (`Bearer
//! …`), before the answer is cut. A part of one at the end of the answer is taken out too, since
//! only its rest may be missing.

use std::ops::Range;

use percent::{is_unreserved, percent_encoded};

use crate::model::LOG_ANSWER_BYTES_MAX;

const REDACTED: &str = "[redacted]";

/// Shortest text that is looked for, in bytes: `1` or `on` tells nothing and is everywhere.
const SECRET_BYTES_MIN: usize = 4;

/// Bytes of an answer that are looked at: what is kept, and as much again. A secret that goes
/// beyond them is found by its beginning.
const SCANNED_BYTES_MAX: usize = 2 * LOG_ANSWER_BYTES_MAX;

/// Shortest word of a secret that is looked for by itself, in bytes.
const WORD_BYTES_MIN: usize = 8;

/// The first [`LOG_ANSWER_BYTES_MAX`] bytes of an answer as text. `bytes` should be longer than
/// that where the answer is, so that a secret at the cut is found. Control characters are blanks.
pub fn answer_text(bytes: &[u8], secrets: &[&str]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SCANNED_BYTES_MAX)]);
    let ranges = secret_ranges(&text, &forms(&text, secrets));
    let mut clean = without(&text, &ranges);
    clean.truncate(clean.floor_char_boundary(LOG_ANSWER_BYTES_MAX));
    clean
}

/// All forms to look for in an answer, but those of which it cannot have any part.
fn forms(answer: &str, secrets: &[&str]) -> Vec<String> {
    let words = secrets.iter().flat_map(|secret| secret.split_whitespace());
    let words = words.filter(|word| word.len() >= WORD_BYTES_MIN);
    let unprefixed = secrets
        .iter()
        .filter_map(|secret| secret.strip_prefix("whsec_"));
    let texts = secrets.iter().copied().chain(words).chain(unprefixed);
    let texts = texts.filter(|text| may_have(answer, text));
    let mut forms: Vec<String> = texts
        .flat_map(|text| [text.to_owned(), in_json(text), percent_encoded(text)])
        .collect();
    forms.retain(|form| form.len() >= SECRET_BYTES_MIN);
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Whether an answer may have a text in one of its forms, or the beginning of one. All forms of
/// most texts begin alike, so that nearly every answer costs one short search for each secret.
fn may_have(answer: &str, text: &str) -> bool {
    let Some(head) = text.as_bytes().get(..SECRET_BYTES_MIN) else {
        return !text.is_empty();
    };
    !head.iter().all(|byte| is_unreserved(*byte))
        || answer.as_bytes().windows(head.len()).any(|it| it == head)
}

fn in_json(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

/// The places of the forms in a text, in order and apart.
fn secret_ranges(text: &str, forms: &[String]) -> Vec<Range<usize>> {
    let whole = |form: &String| -> Vec<Range<usize>> {
        text.match_indices(form.as_str())
            .map(|(at, found)| at..at + found.len())
            .collect()
    };
    let mut ranges: Vec<_> = forms.iter().flat_map(whole).collect();
    ranges.extend(forms.iter().filter_map(|form| cut_off(text, form)));
    ranges.sort_unstable_by_key(|range| range.start);
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

/// The end of a text, where it is the beginning of this form.
fn cut_off(text: &str, form: &str) -> Option<Range<usize>> {
    let ends = form
        .char_indices()
        .map(|(at, _)| at)
        .filter(|end| *end >= SECRET_BYTES_MIN);
    let longest = ends.filter(|end| text.ends_with(&form[..*end])).max()?;
    Some(text.len() - longest..text.len())
}

fn without(text: &str, ranges: &[Range<usize>]) -> String {
    let (mut clean, mut from) = (String::new(), 0);
    for range in ranges {
        clean.extend(text[from..range.start].chars().map(printable));
        clean.push_str(REDACTED);
        from = range.end;
    }
    clean.extend(text[from..].chars().map(printable));
    clean
}

fn printable(c: char) -> char {
    if c.is_control() && !matches!(c, '\n' | '\r' | '\t') {
        ' '
    } else {
        c
    }
}

mod percent {
    use std::fmt::Write as _;

    /// Whether a URL writes a byte as it is (RFC 3986).
    pub(super) fn is_unreserved(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    }

    /// A text as the query of a URL writes it: everything but unreserved characters (RFC 3986)
    /// encoded.
    pub(super) fn percent_encoded(text: &str) -> String {
        let mut encoded = String::with_capacity(text.len());
        for byte in text.bytes() {
            if is_unreserved(byte) {
                encoded.push(char::from(byte));
            } else {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        encoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const HEADER: &str = "Bearer abc\"def/ghi";

    fn check(answer: &str, expected: &str) {
        assert_eq!(
            answer_text(answer.as_bytes(), &[SECRET, HEADER, "on", ""]),
            expected
        );
    }

    #[test]
    fn an_answer_without_secrets_stays_as_it_is() {
        check("", "");
        check(
            "{\"ok\":true, \"on\": \"ü\"}\r\n\t",
            "{\"ok\":true, \"on\": \"ü\"}\r\n\t",
        );
    }

    #[test]
    fn secrets_are_taken_out_in_every_form() {
        check(
            "a whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw b",
            "a [redacted] b",
        );
        check("a MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw b", "a [redacted] b");
        check("auth=Bearer abc\"def/ghi.", "auth=[redacted].");
        check(
            r#"{"auth":"Bearer abc\"def/ghi"}"#,
            r#"{"auth":"[redacted]"}"#,
        );
        check("token abc\"def/ghi!", "token [redacted]!");
        check("?auth=Bearer%20abc%22def%2Fghi&x", "?auth=[redacted]&x");
    }

    #[test]
    fn the_beginning_of_a_secret_at_the_end_is_taken_out() {
        check("your key: whsec_MfKQ9", "your key: [redacted]");
        check("your key: whs", "your key: whs");
    }

    #[test]
    fn a_secret_at_the_cut_is_taken_out_before_it() {
        let answer = "x".repeat(250) + SECRET;
        let text = answer_text(answer.as_bytes(), &[SECRET]);
        assert_eq!(text, "x".repeat(250) + "[redac");
    }

    #[test]
    fn a_secret_that_goes_beyond_what_is_looked_at_is_found_by_its_beginning() {
        let long = "k".repeat(2 * SCANNED_BYTES_MAX);
        let answer = "x".repeat(200) + &long;
        assert_eq!(
            answer_text(answer.as_bytes(), &[&long]),
            "x".repeat(200) + REDACTED
        );
    }

    #[test]
    fn an_answer_is_cut_between_characters() {
        let text = answer_text("ü".repeat(300).as_bytes(), &[]);
        assert_eq!(text, "ü".repeat(128));
        assert_eq!(
            answer_text(("a".to_owned() + &"ü".repeat(300)).as_bytes(), &[]).len(),
            255
        );
    }

    #[test]
    fn what_is_no_text_is_shown_as_far_as_it_is() {
        assert_eq!(answer_text(b"\xffa\x00b\x7f", &[]), "\u{fffd}a b ");
    }

    #[test]
    fn overlapping_secrets_are_taken_out_as_one() {
        assert_eq!(
            answer_text(b"1abcdefgh2", &["abcdef", "defgh"]),
            "1[redacted]2"
        );
    }

    proptest! {
        #[test]
        fn no_secret_is_left_and_nothing_panics(
            answer: Vec<u8>,
            secret in "[a-z\"/ü ]{4,12}",
            places in proptest::collection::vec(0_usize..300, 0..4),
        ) {
            let mut text = String::from_utf8_lossy(&answer).into_owned();
            for place in places {
                text.insert_str(text.floor_char_boundary(place), &secret);
            }
            let clean = answer_text(text.as_bytes(), &[&secret]);
            prop_assert!(clean.len() <= LOG_ANSWER_BYTES_MAX);
            prop_assert!(!clean.replace(REDACTED, "\n").contains(&secret), "{clean:?}");
        }
    }
}
