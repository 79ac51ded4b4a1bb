//! Inputs that are nearly right: a known one, in which something was changed.

use std::ops::Range;

use crate::draw::Draw;

/// Most changes of one input.
const CHANGES_MAX: usize = 6;

/// Most bytes of a mutant. Longer ones only take longer: what grows is measured apart.
const BYTES_MAX: usize = 16 * 1024;

/// Most copies of a part that is repeated.
const COPIES_MAX: usize = 40;

/// Most bytes of an input of nothing but chance.
const CHANCE_BYTES_MAX: usize = 64;

/// Texts on which readers trip: the ends of ranges, forms that only some accept, and delimiters.
pub(crate) const WORDS: &[&str] = &[
    "",
    "0",
    "-0",
    "-1",
    "1",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "-9223372036854775808",
    "-9223372036854775809",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1",
    "1.0",
    "1E5",
    "00",
    "+1",
    "NaN",
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "\"\"",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\\udc00\\ud800",
    "\\u00e9",
    "'",
    "%",
    "%00",
    "%2F",
    "%ff",
    "&",
    "=",
    ";",
    "/",
    "//",
    "..",
    "/../",
    "?",
    "#",
    "@",
    "+",
    "-",
    "_",
    "~",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\r\n\r\n",
    "\0",
    "\u{7f}",
    "\u{80}",
    "\u{85}",
    "\u{a0}",
    "\u{df}",
    "\u{130}",
    "\u{131}",
    "\u{1e9e}",
    "\u{200b}",
    "\u{202e}",
    "\u{2028}",
    "\u{feff}",
    "\u{fffd}",
    "\u{ffff}",
    "\u{1f600}",
    "e\u{301}",
    "1970-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "+99999-01-01T00:00:00Z",
    "2026-11-28T20:00:00.123456789+23:59",
    "2026-02-30T00:00:00Z",
    "P1Y",
    "PT1S",
    "PT0.0000001S",
    "P106751991167300DT15H30M7.999999999S",
    "1d",
    "1h1m",
    "9999999999999d",
    "inf",
    "infinity",
    "127.0.0.1",
    "::1",
    "::ffff:127.0.0.1",
    "[::1]",
    "0x7f.1",
    "fe80::1%25lo",
    "localhost",
    "xn--",
    "https://",
    "http://a",
    "a.example",
    "a.example:0",
    "a.example:65536",
    "Bearer ",
    "sha256=",
    "whsec_",
    "whsk_",
    "data_base64",
    "specversion",
    "\"v\":2",
    "\"v\":4294967295",
    "!!binary ",
    "&a ",
    "*a",
    "<<: ",
    "- ",
    "? ",
    "|\n",
    ">-\n",
    "---\n",
    "!!str ",
    "--",
    "-f",
    "$ref",
    "__proto__",
];

/// Draws inputs from known ones.
#[derive(Debug)]
pub(crate) struct Mutator<'a> {
    draw: &'a mut Draw,
    known: &'a [Vec<u8>],
}

impl<'a> Mutator<'a> {
    /// Draws from these inputs.
    pub(crate) fn new(draw: &'a mut Draw, known: &'a [Vec<u8>]) -> Self {
        Self { draw, known }
    }

    /// The next input: mostly a known one with some changes, seldom bytes of chance.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        if self.known.is_empty() || self.draw.below(50) == 0 {
            let length = self.draw.below(CHANCE_BYTES_MAX);
            return (0..length).map(|_| self.draw.byte()).collect();
        }
        let mut input = self.draw.pick(self.known).clone();
        for _ in 0..=self.draw.below(CHANGES_MAX) {
            self.change(&mut input);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        match self.draw.below(12) {
            0 => self.flip(input),
            1 => {
                let at = self.place(input);
                let byte = self.draw.byte();
                input.insert(at, byte);
            }
            2 => {
                let at = self.place(input);
                let word = self.draw.pick(WORDS).as_bytes();
                input.splice(at..at, word.iter().copied());
            }
            3 => {
                let part = self.part(input);
                input.drain(part);
            }
            4 => self.repeat(input),
            5 => {
                let at = self.place(input);
                input.truncate(at);
            }
            6 => {
                let token = self.token(input);
                let word = self.draw.pick(WORDS).as_bytes();
                input.splice(token, word.iter().copied());
            }
            7 => {
                let token = self.token(input);
                input.drain(token);
            }
            8 => {
                let token = self.token(input);
                let copy = input[token.clone()].to_vec();
                input.splice(token.end..token.end, copy);
            }
            9 => self.swap(input),
            10 => self.cross(input, Self::token),
            _ => self.cross(input, Self::part),
        }
    }

    /// Changes one bit, or the case of a letter.
    fn flip(&mut self, input: &mut [u8]) {
        let bit = 1 << self.draw.below(8);
        let at = self.draw.below(input.len());
        if let Some(byte) = input.get_mut(at) {
            *byte ^= bit;
        }
    }

    fn repeat(&mut self, input: &mut Vec<u8>) {
        let part = self.part(input);
        let copies = self.draw.below(COPIES_MAX);
        let copy = input[part.clone()].repeat(copies);
        input.splice(part.end..part.end, copy);
    }

    /// Exchanges two tokens.
    fn swap(&mut self, input: &mut Vec<u8>) {
        let one = self.token(input);
        let other = self.token(input);
        let (first, second) = if one.start <= other.start {
            (one, other)
        } else {
            (other, one)
        };
        if first.end <= second.start {
            let [first_text, second_text] = [&first, &second].map(|it| input[it.clone()].to_vec());
            input.splice(second, first_text);
            input.splice(first, second_text);
        }
    }

    /// Puts a part of a known input into the place of a part of this one.
    fn cross(&mut self, input: &mut Vec<u8>, part: fn(&mut Self, &[u8]) -> Range<usize>) {
        let other = self.draw.pick(self.known);
        let taken = part(self, other);
        let replaced = part(self, input);
        input.splice(replaced, other[taken].iter().copied());
    }

    fn place(&mut self, input: &[u8]) -> usize {
        self.draw.below(input.len() + 1)
    }

    /// A short part, mostly.
    fn part(&mut self, input: &[u8]) -> Range<usize> {
        let start = self.place(input);
        let longest = if self.draw.below(4) == 0 {
            input.len()
        } else {
            8
        };
        let length = self.draw.below(longest + 1);
        start..input.len().min(start + length)
    }

    /// A quoted text, a word, a number or a delimiter.
    fn token(&mut self, input: &[u8]) -> Range<usize> {
        let at = self.draw.below(input.len());
        token_at(input, at)
    }
}

/// The token that has this byte. Empty where there is none.
pub(crate) fn token_at(input: &[u8], at: usize) -> Range<usize> {
    let Some(byte) = input.get(at) else {
        return at..at;
    };
    if *byte == b'"' {
        let rest = &input[at + 1..];
        let end = rest.iter().position(|byte| *byte == b'"');
        return at..end.map_or(input.len(), |end| at + end + 2);
    }
    let is_in_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    if !is_in_word(byte) {
        return at..at + 1;
    }
    let before = input[..at].iter().rev().take_while(|it| is_in_word(it));
    let after = input[at..].iter().take_while(|it| is_in_word(it));
    at - before.count()..at + after.count()
}
