//! Faults in a request to replay.

use crate::model::{REPLAY_KEYS_MAX, REPLAY_LETTERS_MAX, REPLAY_RATE_MAX, REPLAY_TYPES_MAX};
use crate::stored::layout;

/// A fault in a request to replay.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReplayRequestError {
    /// Nothing can lie between the two.
    #[error("from is not before to")]
    Times,
    /// Outside of what is taken.
    #[error("expected 1 to {REPLAY_RATE_MAX}, found {0}")]
    Rate(u32),
    /// Too many.
    #[error("{0} types, expected at most {REPLAY_TYPES_MAX}")]
    Types(usize),
    /// Too many.
    #[error("{0} keys, expected at most {REPLAY_KEYS_MAX}")]
    Keys(usize),
    /// Too many.
    #[error("{0} letters, expected at most {REPLAY_LETTERS_MAX}")]
    Letters(usize),
    /// Both objects and letters are named.
    #[error("a request has keys or letters, not both")]
    KeysAndLetters,
    /// A member that only replays from the delivery log have.
    #[error("only a replay with the source log has this member")]
    OnlyOfLog(&'static str),
    /// A member that only replays of dead letters have.
    #[error("only a replay with the source deadLetters has this member")]
    OnlyOfDeadLetters(&'static str),
    /// Neither a status nor a class.
    #[error("not a status such as 503, nor a class such as 5xx")]
    Status,
    /// A message kept because it cannot be read.
    #[error(
        "what lies under {} could not be read as a message and cannot be replayed",
        layout::MALFORMED
    )]
    Malformed(NamedKey),
    /// A key that no store takes.
    #[error("no object can have this key")]
    NoObject(NamedKey),
    /// An object of another subscription, or none.
    #[error("not a dead letter of this subscription: its keys begin with {prefix}")]
    Foreign {
        /// The key's place in the request.
        key: NamedKey,
        /// The prefix of the subscription's own keys.
        prefix: String,
    },
}

/// The place of a key in a request, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedKey {
    /// One of `keys`.
    Object(usize),
    /// That of one of `letters`.
    Letter(usize),
}

impl NamedKey {
    fn member(self) -> String {
        match self {
            Self::Object(index) => format!("keys[{index}]"),
            Self::Letter(index) => format!("letters[{index}].object"),
        }
    }
}

impl ReplayRequestError {
    /// The member at fault.
    pub fn member(&self) -> String {
        match self {
            Self::Times => "from".to_owned(),
            Self::Rate(_) => "ratePerSecond".to_owned(),
            Self::Types(_) => "types".to_owned(),
            Self::Keys(_) => "keys".to_owned(),
            Self::Letters(_) | Self::KeysAndLetters => "letters".to_owned(),
            Self::Status => "status".to_owned(),
            Self::OnlyOfLog(member) | Self::OnlyOfDeadLetters(member) => (*member).to_owned(),
            Self::Malformed(key) | Self::NoObject(key) | Self::Foreign { key, .. } => key.member(),
        }
    }
}
