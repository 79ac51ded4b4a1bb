//! An endpoint's answer as the log keeps it: its first bytes as text, without secrets.
//!
//! An endpoint may answer with what it was sent. So the subscription's secrets and the values of
//! its headers are taken out before the answer is cut, also a part of one at the end of the answer:
//! only its rest may be missing.

use std::ops::Range;

use http::HeaderMap;

use crate::attempt::echo::{TextExtent, secret_ranges};
use crate::attempt::readable::readable_text;
use crate::model::LOG_ANSWER_BYTES_MAX;

const REDACTED: &str = "[redacted]";

/// Bytes of an answer that are looked at: what is kept, and as much again. A secret that goes
/// beyond them is found by its beginning.
const SCANNED_BYTES_MAX: usize = 2 * LOG_ANSWER_BYTES_MAX;

/// The first [`LOG_ANSWER_BYTES_MAX`] bytes of an answer as text. `bytes` should be longer than
/// that where the answer is, so that a secret at the cut is found. Control characters are blanks.
pub fn answer_text(bytes: &[u8], secrets: &[&str]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SCANNED_BYTES_MAX)]);
    redact_and_cut(&text, secrets)
}

/// The same of a body, in the character set that its headers name ([`readable_text`]).
pub fn answer_body_text(headers: &HeaderMap, body: &[u8], secrets: &[&str]) -> String {
    redact_and_cut(&readable_text(headers, body, SCANNED_BYTES_MAX), secrets)
}

fn redact_and_cut(text: &str, secrets: &[&str]) -> String {
    let mut clean = redact_ranges(text, &secret_ranges(text, secrets, TextExtent::Cut));
    clean.truncate(clean.floor_char_boundary(LOG_ANSWER_BYTES_MAX));
    clean
}

fn redact_ranges(text: &str, ranges: &[Range<usize>]) -> String {
    let mut clean = String::new();
    let mut from = 0;
    for range in ranges {
        clean.extend(text[from..range.start].chars().map(printable_char));
        clean.push_str(REDACTED);
        from = range.end;
    }
    clean.extend(text[from..].chars().map(printable_char));
    clean
}

fn printable_char(c: char) -> char {
    if c.is_control() && !matches!(c, '\n' | '\r' | '\t') {
        ' '
    } else {
        c
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
        check("?auth=Bearer+abc%22def%2fghi&x", "?auth=[redacted]&x");
        check(
            r#"{"auth":"Bearer abc\u0022def\/ghi"}"#,
            r#"{"auth":"[redacted]"}"#,
        );
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

    /// Secret that goes beyond the scanned bytes is found by its beginning.
    #[test]
    fn secret_longer_than_the_scan_is_found_by_its_beginning() {
        let long = "k".repeat(2 * SCANNED_BYTES_MAX);
        let answer = "x".repeat(200) + &long;
        assert_eq!(
            answer_text(answer.as_bytes(), &[&long]),
            "x".repeat(200) + REDACTED
        );
    }

    #[test]
    fn secrets_are_taken_out_in_every_character_set() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "content-type",
            "text/plain; charset=utf-16le".parse().unwrap(),
        );
        let body: Vec<u8> = format!("your key: {SECRET}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let text = answer_body_text(&headers, &body, &[SECRET]);
        assert_eq!(text, "your key: [redacted]");
        headers.insert("content-encoding", SECRET.parse().unwrap());
        let text = answer_body_text(&headers, &body, &[SECRET]);
        assert_eq!(text, "[96 bytes, coded as an unknown name]");
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
    fn binary_response_is_shown_as_far_as_it_is_text() {
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
