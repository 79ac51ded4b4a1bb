//! Bytes as hexadecimal digits.

use std::fmt;

/// Reads the digits of exactly `N` bytes: small letters only, so that the same bytes always have
/// the same text.
pub(crate) fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit_value(*high)? << 4 | digit_value(*low)?;
    }
    Some(bytes)
}

fn digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Writes two digits for each byte, in small letters.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for [high, low] in bytes.iter().map(|byte| digit_pair(*byte)) {
        text.push(char::from(high));
        text.push(char::from(low));
    }
    text
}

/// Writes the digits without a text of their own.
pub(crate) fn write<const N: usize>(f: &mut fmt::Formatter<'_>, bytes: [u8; N]) -> fmt::Result {
    f.write_str(str::from_utf8(bytes.map(digit_pair).as_flattened()).map_err(|_| fmt::Error)?)
}

fn digit_pair(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|nibble| b"0123456789abcdef"[usize::from(nibble)])
}
