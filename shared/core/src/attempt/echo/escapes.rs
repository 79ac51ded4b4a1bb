//! Texts with escapes undone, byte by byte, and the place of each byte in the text as it was.

use std::borrow::Cow;
use std::ops::Range;

/// The characters that HTML has names for, of those that escapers name.
const NAMED: [(&[u8], char); 8] = [
    (b"amp;", '&'),
    (b"lt;", '<'),
    (b"gt;", '>'),
    (b"quot;", '"'),
    (b"apos;", '\''),
    (b"sol;", '/'),
    (b"plus;", '+'),
    (b"equals;", '='),
];

/// A way to escape characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeStyle {
    /// `\/`, `\"`, `\u002B`: JSON, and what JavaScript adds to it.
    Json,
    /// `%2B`: a URL.
    Percent,
    /// The same with `+` for a space: a form.
    Form,
    /// `&amp;`, `&#43;`, `&#x2b;`: HTML.
    Html,
}

/// The unit at the beginning of some bytes.
enum EscapeUnit {
    /// A byte for itself.
    Literal,
    /// An escape of this length for these bytes.
    Escape(usize, DecodedBytes),
    /// The beginning of an escape that goes beyond the end.
    Partial,
}

/// The bytes of an escape.
struct DecodedBytes {
    bytes: [u8; 4],
    length: usize,
}

impl DecodedBytes {
    fn from_byte(byte: u8) -> Self {
        Self {
            bytes: [byte, 0, 0, 0],
            length: 1,
        }
    }

    fn from_char(c: char) -> Self {
        let mut bytes = [0; 4];
        let length = c.encode_utf8(&mut bytes).len();
        Self { bytes, length }
    }
}

impl EscapeStyle {
    pub(super) const ALL: [Self; 4] = [Self::Json, Self::Percent, Self::Form, Self::Html];

    /// Whether there can be something to undo. A form without `+` is a URL.
    fn may_be_in(self, bytes: &[u8]) -> bool {
        let sign = match self {
            Self::Json => b'\\',
            Self::Percent => b'%',
            Self::Form => b'+',
            Self::Html => b'&',
        };
        bytes.contains(&sign)
    }

    fn read_unit(self, bytes: &[u8]) -> EscapeUnit {
        match (self, bytes) {
            (Self::Json, [b'\\', rest @ ..]) => json_unit(rest),
            (Self::Percent | Self::Form, [b'%', rest @ ..]) => percent_unit(rest),
            (Self::Form, [b'+', ..]) => EscapeUnit::Escape(1, DecodedBytes::from_byte(b' ')),
            (Self::Html, [b'&', rest @ ..]) => html_unit(rest),
            _ => EscapeUnit::Literal,
        }
    }
}

/// Reads the unit that follows a backslash.
fn json_unit(rest: &[u8]) -> EscapeUnit {
    let Some(first) = rest.first() else {
        return EscapeUnit::Partial;
    };
    let byte = match first {
        b'"' | b'\\' | b'/' | b'\'' => *first,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unicode_unit(rest),
        _ => return EscapeUnit::Literal,
    };
    EscapeUnit::Escape(2, DecodedBytes::from_byte(byte))
}

/// A code unit of UTF-16, or two that are one character. `rest` begins with the `u`.
fn unicode_unit(rest: &[u8]) -> EscapeUnit {
    let first = match code_unit(rest, b"u") {
        Ok(first) => first,
        Err(unit) => return unit,
    };
    if let Some(c) = char::from_u32(first) {
        return EscapeUnit::Escape(6, DecodedBytes::from_char(c));
    }
    let second = match code_unit(&rest[5..], b"\\u") {
        Ok(second) => second,
        Err(unit) => return unit,
    };
    let both = [first, second].map(|unit| u16::try_from(unit).unwrap_or_default());
    match char::decode_utf16(both).next() {
        Some(Ok(c)) => EscapeUnit::Escape(12, DecodedBytes::from_char(c)),
        Some(Err(_)) | None => EscapeUnit::Literal,
    }
}

/// Four hexadecimal digits after `sign`, or what stands there instead.
fn code_unit(bytes: &[u8], sign: &[u8]) -> Result<u32, EscapeUnit> {
    let length = sign.len() + 4;
    let digits = match bytes.get(..length) {
        Some(whole) if whole.starts_with(sign) => &whole[sign.len()..],
        None if is_beginning(bytes, sign) => return Err(EscapeUnit::Partial),
        Some(_) | None => return Err(EscapeUnit::Literal),
    };
    parse_digits(digits, 16).ok_or(EscapeUnit::Literal)
}

/// Whether these bytes may go on as `sign` and hexadecimal digits.
fn is_beginning(bytes: &[u8], sign: &[u8]) -> bool {
    match bytes.strip_prefix(sign) {
        Some(digits) => digits.iter().all(u8::is_ascii_hexdigit),
        None => sign.starts_with(bytes),
    }
}

/// Reads the unit that follows a percent sign.
fn percent_unit(rest: &[u8]) -> EscapeUnit {
    match rest.get(..2) {
        Some(digits) => match parse_digits(digits, 16).and_then(|number| u8::try_from(number).ok())
        {
            Some(byte) => EscapeUnit::Escape(3, DecodedBytes::from_byte(byte)),
            None => EscapeUnit::Literal,
        },
        None if is_beginning(rest, b"") => EscapeUnit::Partial,
        None => EscapeUnit::Literal,
    }
}

/// Reads the unit that follows an ampersand.
fn html_unit(rest: &[u8]) -> EscapeUnit {
    if let Some(numbered) = rest.strip_prefix(b"#") {
        return match numbered {
            [b'x' | b'X', digits @ ..] => numbered_unit(digits, 16, 3),
            digits => numbered_unit(digits, 10, 2),
        };
    }
    for (name, character) in NAMED {
        if rest.starts_with(name) {
            return EscapeUnit::Escape(1 + name.len(), DecodedBytes::from_char(character));
        }
        if name.starts_with(rest) {
            return EscapeUnit::Partial;
        }
    }
    EscapeUnit::Literal
}

/// A character by its number, which may begin with any number of zeros. `before` bytes stand before
/// its digits.
fn numbered_unit(digits: &[u8], radix: u32, before: usize) -> EscapeUnit {
    let Some(length) = digits
        .iter()
        .position(|byte| !char::from(*byte).is_digit(radix))
    else {
        return EscapeUnit::Partial;
    };
    let character = parse_digits(&digits[..length], radix).and_then(char::from_u32);
    match character {
        Some(c) if digits[length] == b';' => {
            EscapeUnit::Escape(before + length + 1, DecodedBytes::from_char(c))
        }
        Some(_) | None => EscapeUnit::Literal,
    }
}

fn parse_digits(digits: &[u8], radix: u32) -> Option<u32> {
    // A sign is no digit.
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u32::from_str_radix(digits, radix).ok()
}

/// A text with some escapes undone.
#[derive(Debug)]
pub(super) struct DecodedLayer<'t> {
    bytes: Cow<'t, [u8]>,
    /// The place in the text of each byte, and then the place after the last one. Empty where none
    /// is undone.
    starts: Vec<usize>,
    /// The length of the text. More than the place after the last byte where an escape is cut off.
    text_length: usize,
}

impl<'t> DecodedLayer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            bytes: text.as_bytes().into(),
            starts: Vec::new(),
            text_length: text.len(),
        }
    }

    /// The place in the text of a byte.
    fn original_position(&self, at: usize) -> usize {
        self.starts.get(at).copied().unwrap_or(at)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The layer with these escapes undone; `None` if there are none.
    pub(super) fn undo_escapes(&self, escapes: EscapeStyle) -> Option<Self> {
        if !escapes.may_be_in(&self.bytes) {
            return None;
        }
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        let mut at = 0;
        let mut is_changed = false;
        while at < self.bytes.len() {
            let (length, decoded) = match escapes.read_unit(&self.bytes[at..]) {
                EscapeUnit::Literal => (1, DecodedBytes::from_byte(self.bytes[at])),
                EscapeUnit::Escape(length, decoded) => {
                    is_changed = true;
                    (length, decoded)
                }
                EscapeUnit::Partial => {
                    is_changed = true;
                    break;
                }
            };
            bytes.extend_from_slice(&decoded.bytes[..decoded.length]);
            starts.resize(bytes.len(), self.original_position(at));
            at += length;
        }
        starts.push(self.original_position(at));
        is_changed.then_some(Self {
            bytes: bytes.into(),
            starts,
            text_length: self.text_length,
        })
    }

    /// Finds the places of a needle in the text.
    pub(super) fn find_all(&self, needle: &[u8], mut found: impl FnMut(Range<usize>)) {
        let mut at = 0;
        while let Some(next) = find_first(&self.bytes[at..], needle) {
            let place = at + next;
            found(self.original_position(place)..self.original_position(place + needle.len()));
            at = place + 1;
        }
    }

    /// The end of the text where it is the beginning of a needle and not all of it, of at least
    /// `least` bytes.
    pub(super) fn find_cut(&self, needle: &[u8], least: usize) -> Option<Range<usize>> {
        let most = needle.len().saturating_sub(1).min(self.bytes.len());
        let length = (least..=most)
            .rev()
            .find(|length| self.bytes.ends_with(&needle[..*length]))?;
        Some(self.original_position(self.bytes.len() - length)..self.text_length)
    }
}

/// The first place of a needle that is not empty.
fn find_first(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let (first, rest) = needle.split_first()?;
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| byte == first)?;
        if bytes[at + 1..].starts_with(rest) {
            return Some(at);
        }
        at += 1;
    }
}
