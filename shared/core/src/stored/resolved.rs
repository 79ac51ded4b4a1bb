//! The letters of a dead-letter object that need nothing more: they were delivered again, failed
//! again and became newer dead letters, or an operator resolved them.
//!
//! Key `resolved/{key of the dead-letter object}` in the dead-letter bucket, beside what it is
//! about. Version 1; written by deadletter and manage by conditional put; read by both and by wake;
//! deleted by manage and wake together with the dead letters. Fixture: `resolved-v1.json`.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::format::{Format, FormatError};

/// The prefix of these objects. The names of dead letters are in upper case, so that no key is
/// both.
pub const RESOLVED: &str = "resolved/";

/// The key of the object about this dead-letter object.
pub fn resolved(dead_letter_key: &str) -> String {
    format!("{RESOLVED}{dead_letter_key}")
}

const FORMAT: Format = Format {
    name: "a list of resolved dead letters",
    newest: 1,
};

/// The places of the letters in their object, from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedLetters(pub BTreeSet<usize>);

#[derive(Serialize, Deserialize)]
struct ResolvedWire {
    /// The first and the last place of each run of letters.
    letters: Vec<[usize; 2]>,
}

/// Most places that an object can name: more than any dead-letter object has letters.
const LETTERS_MAX: usize = 1_000_000;

impl ResolvedLetters {
    /// Whether the letter in this place is resolved.
    pub fn has(&self, index: usize) -> bool {
        self.0.contains(&index)
    }

    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let ResolvedWire { letters } = FORMAT.read(bytes)?;
        if letters.iter().any(|[_, last]| *last >= LETTERS_MAX) {
            return Err(FORMAT.malformed("a place that no letter can have"));
        }
        Ok(Self(
            letters
                .into_iter()
                .flat_map(|[first, last]| first..=last)
                .collect(),
        ))
    }

    /// Writes the object.
    pub fn render(&self) -> Bytes {
        let mut letters: Vec<[usize; 2]> = Vec::new();
        for index in &self.0 {
            match letters.last_mut() {
                Some([_, last]) if *last + 1 == *index => *last = *index,
                _ => letters.push([*index, *index]),
            }
        }
        FORMAT.render(&ResolvedWire { letters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOLVED_V1: &str = include_str!("fixtures/resolved-v1.json");

    #[test]
    fn resolved_letters_are_written_as_their_fixture_and_read_back() {
        let letters = ResolvedLetters(BTreeSet::from([0, 1, 2, 7, 9, 10]));
        assert_eq!(letters.render(), RESOLVED_V1.trim_end());
        assert_eq!(
            ResolvedLetters::parse(RESOLVED_V1.as_bytes()).unwrap(),
            letters
        );
        assert!(letters.has(10) && !letters.has(3));
    }

    #[test]
    fn a_place_that_no_letter_can_have_is_refused() {
        let huge = r#"{"v":1,"letters":[[0,18446744073709551615]]}"#;
        assert!(matches!(
            ResolvedLetters::parse(huge.as_bytes()),
            Err(FormatError::Malformed(..))
        ));
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_back(places: BTreeSet<u16>) {
            let letters = ResolvedLetters(places.into_iter().map(usize::from).collect());
            proptest::prop_assert_eq!(ResolvedLetters::parse(&letters.render()).unwrap(), letters);
        }
    }
}
