//! An endpoint's answer as a person reads it: in its character set, or with the name of what it is
//! written in.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, LOCATION};

use crate::model::content_coding;

/// Longest name of a coding or a character set that is shown, in bytes: they are the endpoint's.
const NAME_BYTES_MAX: usize = 32;

/// The characters of the bytes 0x80 to 0x9f in `windows-1252`, which browsers read for Latin-1 too
/// (<https://encoding.spec.whatwg.org/#names-and-labels>). Those that stand for none are the
/// replacement character.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž',
    '\u{fffd}', '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}',
    'ž', 'Ÿ',
];

/// The character sets that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Windows1252,
    Utf16 { is_big_endian: bool },
}

/// The text of a body with these headers, of its first `bytes_max` bytes. Where it has a content
/// coding, or a character set that is not read, their name.
pub fn readable_text<'a>(headers: &HeaderMap, body: &'a [u8], bytes_max: usize) -> Cow<'a, str> {
    if body.is_empty() {
        return Cow::Borrowed("");
    }
    if let Some(coding) = content_coding(headers) {
        let coding = shown_name(&String::from_utf8_lossy(coding));
        return Cow::Owned(format!("[{} bytes, coded as {coding}]", body.len()));
    }
    let start = &body[..body.len().min(bytes_max)];
    if let Some(charset) = charset_by_mark(start) {
        return decode_text(charset, start);
    }
    let Some(label) = charset_label(headers) else {
        return String::from_utf8_lossy(start);
    };
    match charset_by_label(&label) {
        Some(charset) => decode_text(charset, start),
        // Most texts of any character set are ASCII all the same.
        None if start.is_ascii() => String::from_utf8_lossy(start),
        None => {
            let name = shown_name(&label);
            Cow::Owned(format!(
                "[{} bytes in the character set {name}]",
                body.len()
            ))
        }
    }
}

/// The location that a response with a status of redirection names.
pub fn redirect_location(status: u16, headers: &HeaderMap) -> Option<String> {
    if !(300..400).contains(&status) {
        return None;
    }
    let location = headers.get(LOCATION)?.as_bytes();
    let characters = location.iter().map(|byte| match byte {
        byte if byte.is_ascii_graphic() => char::from(*byte),
        // A URI has no other characters, and what is none may be anything.
        _ => '?',
    });
    Some(characters.collect())
}

/// The label in `text/plain; charset=…`.
fn charset_label(headers: &HeaderMap) -> Option<String> {
    let media_type = String::from_utf8_lossy(headers.get(CONTENT_TYPE)?.as_bytes());
    let label = media_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']).to_ascii_lowercase())
    })?;
    (!label.is_empty()).then_some(label)
}

fn charset_by_label(label: &str) -> Option<Charset> {
    Some(match label {
        "utf-8" | "utf8" => Charset::Utf8,
        "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "l1" | "windows-1252" | "cp1252"
        | "us-ascii" | "ascii" => Charset::Windows1252,
        "utf-16" | "utf-16le" => Charset::Utf16 {
            is_big_endian: false,
        },
        "utf-16be" => Charset::Utf16 {
            is_big_endian: true,
        },
        _ => return None,
    })
}

/// The character set that a byte order mark names.
fn charset_by_mark(body: &[u8]) -> Option<Charset> {
    let is_big_endian = match body {
        [0xff, 0xfe, ..] => false,
        [0xfe, 0xff, ..] => true,
        _ => return None,
    };
    Some(Charset::Utf16 { is_big_endian })
}

fn decode_text(charset: Charset, bytes: &[u8]) -> Cow<'_, str> {
    match charset {
        Charset::Utf8 => String::from_utf8_lossy(bytes),
        // What says another character set than it is written in is UTF-8.
        Charset::Windows1252 => str::from_utf8(bytes).map_or_else(
            |_| Cow::Owned(bytes.iter().map(|byte| windows_1252(*byte)).collect()),
            Cow::Borrowed,
        ),
        Charset::Utf16 { is_big_endian } => {
            let (pairs, _) = bytes.as_chunks::<2>();
            let units = pairs.iter().map(|pair| {
                if is_big_endian {
                    u16::from_be_bytes(*pair)
                } else {
                    u16::from_le_bytes(*pair)
                }
            });
            let text = char::decode_utf16(units).map(|read| read.unwrap_or('\u{fffd}'));
            Cow::Owned(text.skip_while(|c| *c == '\u{feff}').collect())
        }
    }
}

fn windows_1252(byte: u8) -> char {
    byte.checked_sub(0x80)
        .and_then(|at| WINDOWS_1252.get(usize::from(at)))
        .copied()
        .unwrap_or(char::from(byte))
}

/// A name that an endpoint gave, if it looks like one.
fn shown_name(name: &str) -> String {
    if name.len() <= NAME_BYTES_MAX && name.chars().all(is_name_character) {
        name.to_owned()
    } else {
        "an unknown name".to_owned()
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.:+".contains(c)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_ENCODING;

    use super::*;

    fn headers(coding: &'static str, media_type: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in [(CONTENT_ENCODING, coding), (CONTENT_TYPE, media_type)] {
            if !value.is_empty() {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        headers
    }

    fn check(media_type: &'static str, body: &[u8], expected: &str) {
        assert_eq!(
            readable_text(&headers("", media_type), body, 100),
            expected,
            "{media_type}"
        );
    }

    #[test]
    fn text_is_read_in_its_character_set() {
        check("", "für".as_bytes(), "für");
        check("text/plain", b"f\xfcr", "f\u{fffd}r");
        check("text/plain; charset=utf-8", "für".as_bytes(), "für");
        check(
            "text/plain;Charset=\"ISO-8859-1\"",
            b"f\xfcr 5 \x80",
            "für 5 €",
        );
        check(
            "text/plain; format=flowed; charset=windows-1252",
            b"\x93a\x94",
            "“a”",
        );
        check("text/plain; charset=latin1", "für".as_bytes(), "für");
        check("text/plain; charset=utf-16le", b"a\0\xfc\0", "aü");
        check("text/plain; charset=utf-16be", b"\0a\0\xfc", "aü");
        check("text/plain; charset=utf-16", b"\xfe\xff\0a", "a");
        check("text/plain", b"\xff\xfea\0", "a");
        check("text/plain; charset=utf-16le", b"\0\xd8x", "\u{fffd}");
    }

    #[test]
    fn character_set_that_is_not_read_is_named() {
        let named = "[2 bytes in the character set shift_jis]";
        check("text/plain; charset=Shift_JIS", b"\x82\xa0", named);
        check("text/plain; charset=Shift_JIS", b"no", "no");
        let odd = "[1 bytes in the character set an unknown name]";
        check("text/plain; charset=<b>", b"\x82", odd);
        check("text/plain; charset=", b"no", "no");
    }

    #[test]
    fn content_coding_is_named() {
        let check = |coding: &'static str, body: &[u8], expected: &str| {
            let headers = headers(coding, "text/plain");
            assert_eq!(readable_text(&headers, body, 100), expected, "{coding}");
        };
        check("br", b"\x0b\x01", "[2 bytes, coded as br]");
        check("identity, zstd", &[0; 200], "[200 bytes, coded as zstd]");
        check("identity", b"ok", "ok");
        check("br", b"", "");
        check("a coding", b"x", "[1 bytes, coded as an unknown name]");
    }

    #[test]
    fn only_the_beginning_is_read() {
        let latin = headers("", "text/plain; charset=latin1");
        assert_eq!(readable_text(&latin, &[0xfc; 100], 3), "üüü");
        assert_eq!(readable_text(&HeaderMap::new(), &[b'x'; 100], 3), "xxx");
    }

    #[test]
    fn redirect_says_where_it_leads() {
        let check = |status, location: &[u8], expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_bytes(location).unwrap());
            assert_eq!(redirect_location(status, &headers).as_deref(), expected);
        };
        check(
            301,
            b"https://new.example/hook?a=b",
            Some("https://new.example/hook?a=b"),
        );
        check(308, b"/login", Some("/login"));
        check(302, b"/\xfc b", Some("/??b"));
        check(201, b"/made", None);
        assert_eq!(redirect_location(301, &HeaderMap::new()), None);
    }
}
