//! The message that says which dead letters need nothing more: they were delivered again, or failed
//! again and could not be resolved when their newer letters were written.
//!
//! In the dead-letter queue. Version 4, which no earlier message of that queue has, so that an
//! older program gives it back for a newer one. Written by deliver and deadletter; read by
//! deadletter. Fixtures: `resolved-message-v4.json`, `resolved-message-v4-newer.json`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::{FormatError, LetterPlace, StoredFormat};

const FORMAT: StoredFormat = StoredFormat {
    name: "a message of resolved dead letters",
    newest: 4,
};

/// A dead letter that needs nothing more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedLetter {
    /// The place of the letter.
    pub letter: LetterPlace,
    /// The newer letter that its event has become; `None` if the event was delivered.
    pub newer: Option<LetterPlace>,
}

#[derive(Serialize, Deserialize)]
struct ResolvedMessageWire {
    resolved: Vec<LetterPlace>,
    /// Later than version 4 itself: an older program passes it over, and resolves the letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newer: Option<NewerWire>,
}

/// The newer letters of the resolved ones, in the same order.
#[derive(Serialize, Deserialize)]
struct NewerWire {
    /// The key of the object that they lie in.
    object: String,
    /// Their places in it.
    places: Vec<usize>,
}

impl NewerWire {
    /// The newer letter of the resolved one in this place.
    fn letter_place(&self, at: usize) -> Option<LetterPlace> {
        let index = *self.places.get(at)?;
        let object = self.object.clone();
        Some(LetterPlace { object, index })
    }
}

/// Renders the places of dead letters that were delivered again as the body of a message.
pub fn render_resolved(letters: Vec<LetterPlace>) -> Bytes {
    FORMAT.render(&ResolvedMessageWire {
        resolved: letters,
        newer: None,
    })
}

/// Renders the same of letters that failed again, each with the place of its newer letter in this
/// object.
pub fn render_failed_again(letters: Vec<(LetterPlace, usize)>, object: &str) -> Bytes {
    let (resolved, places) = letters.into_iter().unzip();
    let object = object.to_owned();
    FORMAT.render(&ResolvedMessageWire {
        resolved,
        newer: Some(NewerWire { object, places }),
    })
}

/// Reads a message of resolved dead letters.
pub fn parse_resolved(body: &[u8]) -> Result<Vec<ResolvedLetter>, FormatError> {
    let ResolvedMessageWire { resolved, newer } = FORMAT.read(body)?;
    let letters = resolved.into_iter().enumerate();
    let letters = letters.map(|(at, letter)| ResolvedLetter {
        letter,
        newer: newer.as_ref().and_then(|newer| newer.letter_place(at)),
    });
    Ok(letters.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::dead_letter_message::parse_dead_letter;

    const RESOLVED_MESSAGE_V4_NEWER: &str = include_str!("fixtures/resolved-message-v4-newer.json");
    const RESOLVED_MESSAGE_V4: &str = include_str!("fixtures/resolved-message-v4.json");

    fn letters() -> Vec<LetterPlace> {
        let object = "ORDERS/BILLING/2023/11/14/22/x.json".to_owned();
        vec![
            LetterPlace {
                object: object.clone(),
                index: 0,
            },
            LetterPlace { object, index: 7 },
        ]
    }

    #[test]
    fn resolved_letters_are_written_as_their_fixture_and_read_back() {
        assert_eq!(render_resolved(letters()), RESOLVED_MESSAGE_V4.trim_end());
        let delivered = letters().into_iter().map(|letter| ResolvedLetter {
            letter,
            newer: None,
        });
        assert_eq!(
            parse_resolved(RESOLVED_MESSAGE_V4.as_bytes()).unwrap(),
            delivered.collect::<Vec<_>>()
        );
    }

    #[test]
    fn letters_that_failed_again_round_trip_as_their_fixture() {
        let object = "ORDERS/BILLING/2023/11/15/22/y.json";
        let failed = letters().into_iter().zip([3, 1]);
        assert_eq!(
            render_failed_again(failed.clone().collect(), object),
            RESOLVED_MESSAGE_V4_NEWER.trim_end()
        );
        let expected = failed.map(|(letter, index)| ResolvedLetter {
            letter,
            newer: Some(LetterPlace {
                object: object.to_owned(),
                index,
            }),
        });
        assert_eq!(
            parse_resolved(RESOLVED_MESSAGE_V4_NEWER.as_bytes()).unwrap(),
            expected.collect::<Vec<_>>()
        );
    }

    #[test]
    fn an_older_program_leaves_them_to_a_newer_one() {
        let read = parse_dead_letter(&render_resolved(letters()));
        assert!(matches!(read, Err(FormatError::Newer(4))), "{read:?}");
    }
}
