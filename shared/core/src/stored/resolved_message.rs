//! The message that says which dead letters were delivered again.
//!
//! In the dead-letter queue. Version 4, which no earlier message of that queue has, so that an
//! older program gives it back for a newer one. Written by deliver; read by deadletter. Fixture:
//! `resolved-message-v4.json`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::format::{Format, FormatError};
use crate::model::LetterPlace;

const FORMAT: Format = Format {
    name: "a message of resolved dead letters",
    newest: 4,
};

#[derive(Serialize, Deserialize)]
struct ResolvedMessageWire {
    resolved: Vec<LetterPlace>,
}

/// Renders the places of dead letters as the body of a message.
pub fn render_resolved(letters: Vec<LetterPlace>) -> Bytes {
    FORMAT.render(&ResolvedMessageWire { resolved: letters })
}

/// Reads a message of resolved dead letters.
pub fn parse_resolved(body: &[u8]) -> Result<Vec<LetterPlace>, FormatError> {
    Ok(FORMAT.read::<ResolvedMessageWire>(body)?.resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::dead_letter_message::parse_dead_letter;

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
        assert_eq!(
            parse_resolved(RESOLVED_MESSAGE_V4.as_bytes()).unwrap(),
            letters()
        );
    }

    #[test]
    fn an_older_program_leaves_them_to_a_newer_one() {
        let read = parse_dead_letter(&render_resolved(letters()));
        assert!(matches!(read, Err(FormatError::Newer(4))), "{read:?}");
    }
}
