//! The letters of a dead-letter object that need nothing more: they were delivered again, failed
//! again and became newer dead letters, or an operator resolved them.
//!
//! Key `resolved/{key of the dead-letter object}` in the dead-letter bucket, beside what it is
//! about. Version 1; written by deadletter and manage by conditional put; read by both and by wake;
//! deleted by manage and wake together with the dead letters. Fixtures: `resolved-v1.json`,
//! `resolved-v1-newer.json`.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::{FormatError, LetterPlace, StoredFormat};

/// The prefix of these objects. The names of dead letters are in upper case, so that no key is
/// both.
pub const RESOLVED: &str = "resolved/";

/// The key of the object about this dead-letter object.
pub fn resolved_letters_key(dead_letter_key: &str) -> String {
    format!("{RESOLVED}{dead_letter_key}")
}

const FORMAT: StoredFormat = StoredFormat {
    name: "a list of resolved dead letters",
    newest: 1,
};

/// The letters of an object that are resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedLetters {
    /// Their places in their object, from 0.
    pub places: BTreeSet<usize>,
    /// The newer letters that stand for some of them, by place: the same event towards the same
    /// subscription, given up once more.
    pub newer: BTreeMap<usize, LetterPlace>,
}

#[derive(Serialize, Deserialize)]
struct ResolvedWire {
    /// The first and the last place of each run of letters.
    letters: Vec<[usize; 2]>,
    /// Later than version 1 itself: release 0.1 passes it over, and drops it when it resolves more
    /// letters of the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    newer: Vec<NewerWire>,
}

/// Letters that stand for some of the object.
#[derive(Serialize, Deserialize)]
struct NewerWire {
    /// The key of their object.
    object: String,
    /// The place of each letter that is resolved, and the place of the one that stands for it.
    letters: Vec<[usize; 2]>,
}

/// Longest key of an object, in bytes.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
const OBJECT_KEY_BYTES_MAX: usize = 1024;

/// Most places that an object can name: more than any dead-letter object has letters.
const LETTERS_MAX: usize = 1_000_000;

impl ResolvedLetters {
    /// The letters in these places, for which no newer ones stand.
    pub fn from_places(places: impl IntoIterator<Item = usize>) -> Self {
        Self {
            places: places.into_iter().collect(),
            newer: BTreeMap::new(),
        }
    }

    /// Whether the letter in this place is resolved.
    pub fn is_resolved(&self, index: usize) -> bool {
        self.places.contains(&index)
    }

    /// Resolves the letter in this place: its event was delivered or, with a newer letter, given up
    /// once more. Returns another letter that has stood for it until now, which is to be resolved
    /// for the same reason.
    ///
    /// Letters that stand for one another are a chain that grows at its end, so that the same newer
    /// letter may be named again at any time.
    pub fn resolve_letter(
        &mut self,
        index: usize,
        newer: Option<&LetterPlace>,
    ) -> Option<LetterPlace> {
        self.places.insert(index);
        let stands = self.newer.get(&index);
        if let (None, Some(newer)) = (stands, newer) {
            self.newer.insert(index, newer.clone());
            return None;
        }
        stands.filter(|stands| newer != Some(stands)).cloned()
    }

    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::parse_bounded(bytes, LETTERS_MAX)
    }

    /// Reads what is resolved of an object with so many letters. A text of some bytes can name very
    /// many places, and is refused before they take memory.
    pub fn parse_bounded(bytes: &[u8], letters_max: usize) -> Result<Self, FormatError> {
        let ResolvedWire { letters, newer } = FORMAT.read(bytes)?;
        let lengths = letters
            .iter()
            .map(|[first, last]| (last + 1).saturating_sub(*first));
        let newer_count: usize = newer.iter().map(|it| it.letters.len()).sum();
        if letters.iter().any(|[_, last]| *last >= letters_max)
            || lengths.sum::<usize>() > letters_max
            || newer_count > letters_max
            || newer
                .iter()
                .any(|it| it.object.len() > OBJECT_KEY_BYTES_MAX)
        {
            return Err(FORMAT.malformed_error("a place that no letter can have"));
        }
        let newer = newer.into_iter().flat_map(|NewerWire { object, letters }| {
            letters.into_iter().map(move |[of, index]| {
                let object = object.clone();
                (of, LetterPlace { object, index })
            })
        });
        Ok(Self {
            newer: newer.collect(),
            places: letters
                .into_iter()
                .flat_map(|[first, last]| first..=last)
                .collect(),
        })
    }

    /// Writes the object.
    pub fn render(&self) -> Bytes {
        let mut letters: Vec<[usize; 2]> = Vec::new();
        for index in &self.places {
            match letters.last_mut() {
                Some([_, last]) if *last + 1 == *index => *last = *index,
                _ => letters.push([*index, *index]),
            }
        }
        let mut by_object: BTreeMap<&str, Vec<[usize; 2]>> = BTreeMap::new();
        for (of, newer) in &self.newer {
            let of_object = by_object.entry(&newer.object).or_default();
            of_object.push([*of, newer.index]);
        }
        let newer = by_object.into_iter().map(|(object, letters)| NewerWire {
            object: object.to_owned(),
            letters,
        });
        FORMAT.render(&ResolvedWire {
            letters,
            newer: newer.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOLVED_V1: &str = include_str!("fixtures/resolved-v1.json");
    const RESOLVED_V1_NEWER: &str = include_str!("fixtures/resolved-v1-newer.json");

    #[test]
    fn resolved_letters_are_written_as_their_fixture_and_read_back() {
        let letters = ResolvedLetters::from_places([0, 1, 2, 7, 9, 10]);
        assert_eq!(letters.render(), RESOLVED_V1.trim_end());
        assert_eq!(
            ResolvedLetters::parse(RESOLVED_V1.as_bytes()).unwrap(),
            letters
        );
        assert!(letters.is_resolved(10) && !letters.is_resolved(3));
    }

    fn place(object: &str, index: usize) -> LetterPlace {
        LetterPlace {
            object: object.to_owned(),
            index,
        }
    }

    #[test]
    fn newer_letters_are_written_as_their_fixture_and_read_back() {
        let mut letters = ResolvedLetters::from_places([0]);
        let newer = [("b", 0), ("a", 7), ("b", 1)].map(|(object, index)| place(object, index));
        for (of, newer) in (1..).zip(&newer) {
            assert_eq!(letters.resolve_letter(of, Some(newer)), None);
        }
        assert_eq!(letters.render(), RESOLVED_V1_NEWER.trim_end());
        assert_eq!(
            ResolvedLetters::parse(RESOLVED_V1_NEWER.as_bytes()).unwrap(),
            letters
        );
    }

    #[test]
    fn few_bytes_do_not_name_many_letters() {
        let check = |letters: &str, newer: &str, letters_max, is_read: bool| {
            let newer = if newer.is_empty() {
                String::new()
            } else {
                format!(",\"newer\":[{newer}]")
            };
            let json = format!("{{\"v\":1,\"letters\":[{letters}]{newer}}}");
            let read = ResolvedLetters::parse_bounded(json.as_bytes(), letters_max);
            assert_eq!(read.is_ok(), is_read, "{json:.80}: {read:?}");
        };
        let runs = vec!["[0,999999]"; 1000].join(",");
        check(&runs, "", LETTERS_MAX, false);
        check("[0,2]", "", 3, true);
        check("[0,3]", "", 3, false);
        check("[0,2],[0,0]", "", 3, false);
        check("[2,0]", "", 3, true);
        let pairs = ["[0,0]"; 4].join(",");
        check(
            "[0,2]",
            &format!("{{\"object\":\"a\",\"letters\":[{pairs}]}}"),
            3,
            false,
        );
        let key = "a".repeat(OBJECT_KEY_BYTES_MAX + 1);
        check(
            "[0,2]",
            &format!("{{\"object\":\"{key}\",\"letters\":[[0,0]]}}"),
            3,
            false,
        );
    }

    /// Two deliveries of one letter may both be given up.
    #[test]
    fn second_newer_letter_stands_for_the_first() {
        let [first, second] = [place("a", 0), place("b", 0)];
        let mut former = ResolvedLetters::default();
        for _ in 0..2 {
            assert_eq!(former.resolve_letter(3, Some(&first)), None);
            assert_eq!(former.resolve_letter(3, Some(&second)), Some(first.clone()));
            assert_eq!(former.resolve_letter(3, None), Some(first.clone()));
        }
        assert_eq!(former.resolve_letter(4, None), None);
        assert_eq!(former.resolve_letter(4, Some(&second)), None);
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
        fn what_is_written_is_read_back(places: BTreeSet<u16>, newer: BTreeMap<u16, (u8, u16)>) {
            let newer = newer.into_iter().map(|(of, (object, index))| {
                (usize::from(of), place(&object.to_string(), index.into()))
            });
            let newer = newer.collect();
            let letters = ResolvedLetters { newer, ..ResolvedLetters::from_places(places.into_iter().map(usize::from)) };
            proptest::prop_assert_eq!(ResolvedLetters::parse(&letters.render()).unwrap(), letters);
        }
    }
}
