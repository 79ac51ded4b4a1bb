//! Inputs that are long in one way each: what they cost must grow as they do.

use crate::draw::Draw;
use crate::mutate::token_at;
use crate::target::Target;

/// Parts that grow beside those of known inputs.
const UNITS: &[&str] = &[
    "a",
    "0",
    " ",
    "\n",
    "[",
    "{\"a\":",
    "\"",
    "\\",
    "\\u0041",
    "%41",
    ",",
    "/",
    "a/",
    "a.",
    "a=b&",
    "a: b\n",
    "- ",
    "é",
    "\u{202e}",
    "\"a\":1,",
    "\"b\":[],",
    "1,",
    "\"a\",",
    "{},",
    "[[],",
    "x-a: b\n",
];

/// An input in which one part is repeated.
#[derive(Debug, Clone)]
pub struct Shape {
    before: Vec<u8>,
    unit: Vec<u8>,
    after: Vec<u8>,
}

impl Shape {
    /// Draws a part of a known input to repeat, or a unit and a place for it.
    pub fn draw(draw: &mut Draw, known: &[Vec<u8>]) -> Self {
        let empty = Vec::new();
        let input = if known.is_empty() {
            &empty
        } else {
            draw.pick(known)
        };
        let at = draw.below(input.len() + 1);
        let first = token_at(input, at);
        if draw.below(2) == 0 {
            let unit = draw.pick(UNITS).as_bytes().to_vec();
            let is_inside = draw.below(2) == 0;
            let place = if is_inside { at } else { first.start };
            return Self {
                before: input[..place].to_vec(),
                unit,
                after: input[place..].to_vec(),
            };
        }
        let other = draw.below(input.len() + 1);
        let second = token_at(input, other);
        let start = first.start.min(second.start);
        let end = first.end.max(second.end);
        Self {
            before: input[..start].to_vec(),
            unit: input[start..end].to_vec(),
            after: input[end..].to_vec(),
        }
    }

    /// The input with the part so often that it has about this number of bytes.
    pub fn of(&self, bytes: usize) -> Vec<u8> {
        let times = bytes.div_ceil(self.unit.len().max(1));
        [&*self.before, &self.unit.repeat(times), &self.after].concat()
    }

    /// The part, where it is, and what is behind it.
    pub fn shown(&self) -> String {
        let [before, unit, after] = [&self.before, &self.unit, &self.after].map(|part| {
            let text = String::from_utf8_lossy(part);
            let shown: String = text.chars().take(80).collect();
            format!("{shown:?}")
        });
        format!("{before} + {unit} × n + {after}")
    }
}

/// Whether a target takes an input without a fault.
pub fn takes(target: &Target, input: &[u8]) -> bool {
    crate::run::checked(target, input).is_ok()
}
