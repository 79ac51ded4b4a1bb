//! The pressure state after one poll.
//!
//! Key `pressure.json`. Version 1; written by the monitor by conditional put, read by publish,
//! deliver, wake and manage. Snapshot: `pressure/tests/snapshots`.

use std::time::Duration;

use crate::model::{FormatError, StoredFormat};
use crate::pressure::{PressureState, TARPIT_LIMIT};

/// The key of the state's object.
pub const PRESSURE_KEY: &str = "pressure.json";

const FORMAT: StoredFormat = StoredFormat {
    name: "a pressure state",
    newest: 1,
};

/// The reason why an object is not a state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Not the JSON of one, or written by a newer program.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The tarpit is longer than any setting allows.
    #[error("a tarpit of {0} ms is longer than any setting allows")]
    Tarpit(u64),
}

impl PressureState {
    /// Reads a state. Bytes from outside never hold producers longer than a setting could.
    pub fn parse(bytes: &[u8]) -> Result<Self, StateError> {
        let state: Self = FORMAT.read(bytes)?;
        let of_topics = state.topics.iter().map(|topic| topic.tarpit_ms).max();
        let longest_ms = state
            .tarpit_ms
            .max(state.first_step_ms)
            .max(state.base_ms)
            .max(of_topics.unwrap_or_default());
        if Duration::from_millis(longest_ms) > TARPIT_LIMIT {
            Err(StateError::Tarpit(longest_ms))
        } else {
            Ok(state)
        }
    }

    /// Writes the state.
    pub fn render(&self) -> Vec<u8> {
        FORMAT.render(self).into()
    }
}
