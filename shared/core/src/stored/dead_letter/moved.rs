//! Dead letters on their way to another installation: a line of JSON for each, and the objects that
//! the lines make again.
//!
//! An object goes as a whole and keeps its key. A dead letter is known by its place: what is
//! resolved, what stands for it, and the `webhook-id` of a letter that says none follow from it.
//! Members are only added, and unknown ones are passed over.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::key::is_dead_letter_key;
use super::shown::is_letter;
use crate::model::{DEAD_LETTER_IMPORT_BYTES_MAX, LetterPlace, is_object_key};
use crate::stored::resolved::{ResolvedLetters, resolved_letters_key as resolved_key};

/// Bytes around the object in the request that puts it in.
const REQUEST_BYTES: usize = r#"{"objects":[]}"#.len();

/// A dead letter in a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LetterLine {
    /// The key of its object.
    pub object: String,
    /// The place of the letter in the object, from 0.
    pub index: usize,
    /// The number of dead letters that the object has.
    pub letters: usize,
    /// Whether it is resolved.
    pub resolved: bool,
    /// The newer dead letter that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer: Option<LetterPlace>,
    /// The dead letter, as it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letter: Option<Box<RawValue>>,
    /// The same as a text, in place of `letter`, where it is stored in several lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letter_text: Option<String>,
}

/// A dead-letter object with what is resolved in it. `Json` keeps both as they are written, or is
/// any other type for JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct MovedObject<Json = Box<RawValue>> {
    /// The key of the object.
    pub object: String,
    /// The dead letters of the object, as they are stored, in order.
    pub letters: Vec<Json>,
    /// The list of those that are resolved, as it is stored. Left out where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Json>,
}

/// Why a line, or an object, is none of dead letters.
#[derive(Debug, thiserror::Error)]
pub enum MovedObjectError {
    /// The key is not that of a dead-letter object.
    #[error("the key {0:?} is not TOPIC/SUBSCRIPTION/year/month/day/hour/name.json")]
    Key(String),
    /// The object is no array.
    #[error("not a JSON array of dead letters")]
    NotAnArray(#[source] serde_json::Error),
    /// A part says no reason.
    #[error("not a dead letter: it has no deadLetterReason and no deadletterreason")]
    NotALetter,
    /// Neither `letter` nor `letterText` is there, or both are.
    #[error("expected a dead letter in letter, or in letterText, and not in both")]
    LetterTwice,
    /// The text of a letter is not JSON.
    #[error("letterText is not the JSON of a dead letter")]
    LetterText(#[source] serde_json::Error),
    /// The object has no letter.
    #[error("an object without dead letters")]
    Empty,
    /// A line does not follow the one before.
    #[error("expected the dead letter {expected} of {count} of {object}, found another line")]
    OutOfOrder {
        /// The object that is not whole.
        object: String,
        /// The place of the letter that is missing, from 1.
        expected: usize,
        /// The number of letters that the object has.
        count: usize,
    },
    /// A letter is resolved that the object does not have, or another stands for it that is none.
    #[error("what is resolved in the object is not told by places of its dead letters")]
    Resolved,
    /// The object is larger than a request may be.
    #[error("{0} bytes, more than the {DEAD_LETTER_IMPORT_BYTES_MAX} that one request can put in")]
    TooLarge(usize),
}

impl LetterLine {
    /// The line of a letter.
    fn from_object(
        object: &MovedObject,
        index: usize,
        letter: &RawValue,
        states: &ResolvedLetters,
    ) -> Self {
        let is_in_one_line = !letter.get().contains(['\n', '\r']);
        Self {
            object: object.object.clone(),
            index,
            letters: object.letters.len(),
            resolved: states.is_resolved(index),
            newer: states.newer.get(&index).cloned(),
            letter: is_in_one_line.then(|| letter.to_owned()),
            letter_text: (!is_in_one_line).then(|| letter.get().to_owned()),
        }
    }

    /// The dead letter, if it is one, and its key that of an object.
    pub fn read_letter(&self) -> Result<Box<RawValue>, MovedObjectError> {
        if !is_dead_letter_key(&self.object) {
            return Err(MovedObjectError::Key(self.object.clone()));
        }
        let letter = match (&self.letter, &self.letter_text) {
            (Some(letter), None) => letter.clone(),
            (None, Some(text)) => {
                serde_json::from_str(text).map_err(MovedObjectError::LetterText)?
            }
            _ => return Err(MovedObjectError::LetterTwice),
        };
        if is_letter(&letter) {
            Ok(letter)
        } else {
            Err(MovedObjectError::NotALetter)
        }
    }
}

impl MovedObject {
    /// An object as it was read from its installation.
    pub fn read(
        object: &str,
        bytes: &[u8],
        states: &ResolvedLetters,
    ) -> Result<Self, MovedObjectError> {
        let letters = serde_json::from_slice(bytes).map_err(MovedObjectError::NotAnArray)?;
        let resolved = (!states.places.is_empty())
            .then(|| parse_raw(&states.render()))
            .flatten();
        let moved = Self {
            object: object.to_owned(),
            letters,
            resolved,
        };
        moved.check()?;
        Ok(moved)
    }

    /// The bytes that it takes in a request.
    fn request_bytes(&self) -> usize {
        // Plain data with text keys: serialising it cannot fail.
        serde_json::to_vec(self).map_or(0, |json| json.len()) + REQUEST_BYTES
    }

    /// The letters that are resolved, if the object and what is resolved in it are well formed.
    pub fn check(&self) -> Result<ResolvedLetters, MovedObjectError> {
        if !is_dead_letter_key(&self.object) {
            return Err(MovedObjectError::Key(self.object.clone()));
        }
        if self.letters.is_empty() {
            return Err(MovedObjectError::Empty);
        }
        if !self.letters.iter().all(|letter| is_letter(letter)) {
            return Err(MovedObjectError::NotALetter);
        }
        let bytes = self.request_bytes();
        if bytes > DEAD_LETTER_IMPORT_BYTES_MAX {
            return Err(MovedObjectError::TooLarge(bytes));
        }
        let Some(resolved) = &self.resolved else {
            return Ok(ResolvedLetters::default());
        };
        let parsed = ResolvedLetters::parse_bounded(resolved.get().as_bytes(), self.letters.len());
        let states = parsed.map_err(|_| MovedObjectError::Resolved)?;
        let are_places = states
            .places
            .iter()
            .all(|index| *index < self.letters.len());
        let are_newer = states
            .newer
            .iter()
            .all(|(index, newer)| states.is_resolved(*index) && is_dead_letter_key(&newer.object));
        let has_list = is_object_key(&resolved_key(&self.object));
        if are_places && has_list && are_newer {
            Ok(states)
        } else {
            Err(MovedObjectError::Resolved)
        }
    }

    /// The lines of an object that was checked, in order.
    pub fn letter_lines<'a>(
        &'a self,
        states: &'a ResolvedLetters,
    ) -> impl Iterator<Item = LetterLine> + 'a {
        let letters = self.letters.iter().enumerate();
        letters.map(move |(index, letter)| LetterLine::from_object(self, index, letter, states))
    }

    /// The object that a line begins.
    pub fn begin_from_line(line: &LetterLine) -> (Self, ResolvedLetters) {
        let object = Self {
            object: line.object.clone(),
            letters: Vec::new(),
            resolved: None,
        };
        (object, ResolvedLetters::default())
    }

    /// Adds the next line to what the lines before it made. Returns whether the object is whole.
    pub fn add_line(
        &mut self,
        line: &LetterLine,
        states: &mut ResolvedLetters,
        count: usize,
    ) -> Result<bool, MovedObjectError> {
        let letter = line.read_letter()?;
        let next = self.letters.len();
        if (&line.object, line.index, line.letters) != (&self.object, next, count) {
            return Err(MovedObjectError::OutOfOrder {
                object: self.object.clone(),
                expected: next + 1,
                count,
            });
        }
        self.letters.push(letter);
        if line.resolved {
            states.resolve_letter(line.index, line.newer.as_ref());
        } else if line.newer.is_some() {
            return Err(MovedObjectError::Resolved);
        }
        let is_whole = self.letters.len() == count;
        if is_whole {
            let has_some = !states.places.is_empty();
            self.resolved = has_some.then(|| parse_raw(&states.render())).flatten();
            self.check()?;
        }
        Ok(is_whole)
    }

    /// The object, as it is stored.
    pub fn to_stored(&self) -> Bytes {
        let letters: Vec<&str> = self.letters.iter().map(|letter| letter.get()).collect();
        Bytes::from(format!("[{}]", letters.join(",")))
    }
}

/// JSON that was just written, in a request.
fn parse_raw(json: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ORDERS/BILLING/2026/3/7/4/x.json";

    /// Two letters, one of them as it was published in several lines.
    const OBJECT: &str = "[{\"id\":\"1\",\"deadletterreason\":\"EndpointGone\",\"n\":1.00}, \
        {\"id\":\"2\",\n \"deadletterreason\":\"EndpointGone\"}]";

    fn states() -> ResolvedLetters {
        let mut states = ResolvedLetters::default();
        let newer = LetterPlace {
            object: "ORDERS/BILLING/2026/3/8/4/y.json".to_owned(),
            index: 3,
        };
        states.resolve_letter(1, Some(&newer));
        states
    }

    fn lines() -> Vec<LetterLine> {
        let moved = MovedObject::read(KEY, OBJECT.as_bytes(), &states()).unwrap();
        moved.letter_lines(&states()).collect()
    }

    /// The object of lines, and what is resolved in it.
    fn made(lines: &[LetterLine]) -> Result<Option<MovedObject>, MovedObjectError> {
        let count = lines[0].letters;
        let (mut object, mut states) = MovedObject::begin_from_line(&lines[0]);
        for line in lines {
            if object.add_line(line, &mut states, count)? {
                return Ok(Some(object));
            }
        }
        Ok(None)
    }

    #[test]
    fn lines_make_the_same_object_again_byte_for_byte() {
        let written: Vec<String> = lines()
            .iter()
            .map(|line| serde_json::to_string(line).unwrap())
            .collect();
        assert_eq!(
            written[0],
            r#"{"object":"ORDERS/BILLING/2026/3/7/4/x.json","index":0,"letters":2,"resolved":false,"letter":{"id":"1","deadletterreason":"EndpointGone","n":1.00}}"#
        );
        assert!(written.iter().all(|line| !line.contains('\n')));
        let read = written
            .iter()
            .map(|line| serde_json::from_str(line).unwrap());
        let object = made(&read.collect::<Vec<_>>()).unwrap().unwrap();
        let expected = OBJECT.replace("}, ", "},");
        assert_eq!(object.to_stored(), expected.as_bytes());
        assert_eq!(object.check().unwrap(), states());
    }

    #[test]
    fn object_of_lines_is_whole_or_refused() {
        let check = |lines: &[LetterLine], expected: &str| {
            let error = made(lines).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        };
        let all = lines();
        assert!(made(&all[..1]).unwrap().is_none());
        check(&all[1..], "dead letter 1 of 2");
        check(&[all[0].clone(), all[0].clone()], "dead letter 2 of 2");
        let mut other = all[1].clone();
        other.object = KEY.replace("x.json", "y.json");
        check(&[all[0].clone(), other], "dead letter 2 of 2");
        let changed = |change: &dyn Fn(&mut LetterLine)| {
            let mut line = all[0].clone();
            change(&mut line);
            [line]
        };
        check(&changed(&|line| line.letter = None), "in letterText");
        let both = |line: &mut LetterLine| line.letter_text = Some("{}".to_owned());
        check(&changed(&both), "not in both");
        let no_letter = |line: &mut LetterLine| line.letter = parse_raw(br#"{"id":"1"}"#);
        check(&changed(&no_letter), "not a dead letter");
        let foreign = |line: &mut LetterLine| line.object = "resolved/x".to_owned();
        check(&changed(&foreign), "the key");
        let newer = |line: &mut LetterLine| line.newer = states().newer.get(&1).cloned();
        check(&changed(&newer), "what is resolved");
    }

    #[test]
    fn request_with_wrong_places_or_too_much_is_refused() {
        let object = |letters: usize, resolved: &str| MovedObject {
            object: KEY.to_owned(),
            letters: vec![parse_raw(br#"{"deadletterreason":"x"}"#).unwrap(); letters],
            resolved: parse_raw(resolved.as_bytes()),
        };
        assert!(object(2, r#"{"v":1,"letters":[[0,1]]}"#).check().is_ok());
        let check = |object: MovedObject, expected: &str| {
            let error = object.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        };
        check(
            object(2, r#"{"v":1,"letters":[[0,2]]}"#),
            "what is resolved",
        );
        check(object(2, r#"{"v":9}"#), "what is resolved");
        check(object(0, "null"), "without dead letters");
        let newer = r#"{"v":1,"letters":[[0,0]],"newer":[{"object":"x","letters":[[0,0]]}]}"#;
        check(object(1, newer), "what is resolved");
        let letter = br#"{"deadletterreason":"x"}"#;
        let more = DEAD_LETTER_IMPORT_BYTES_MAX / letter.len();
        check(object(more, r#"{"v":1,"letters":[]}"#), "can put in");
    }
}
