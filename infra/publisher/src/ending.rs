//! The end of a run before that of its events.

use std::error::Error;
use std::time::Duration;

use posthaste_core::model::time::format_duration;

use crate::batches::EventBatch;
use crate::events::EventsError;

/// The reason of a run that did not publish everything; `E` is the error of a request.
#[derive(Debug, thiserror::Error)]
pub enum RunEnding<E: Error + 'static> {
    /// The server refused a request, and would again. The place is the event or events, for people.
    #[error("{place} was refused")]
    Refused { place: String, source: E },
    /// Nothing was acknowledged for this time, which is too long. The source is the last answer, or
    /// the reason for none.
    #[error("nothing was acknowledged for {}", format_duration(*length))]
    GaveUp { length: Duration, source: E },
    /// The file is not what it should be.
    #[error(transparent)]
    Input(EventsError),
    /// A signal asked for it. The exit code is the one that shells expect then.
    #[error("it was interrupted")]
    Interrupted { exit_code: u8 },
    /// A thread panicked, which is a defect of this program.
    #[error("a thread panicked; what it said stands above")]
    Panicked,
}

impl<E: Error + 'static> RunEnding<E> {
    /// A request that the server refused for good, for the event at this index of it if it names
    /// one.
    pub(crate) fn for_refusal(batch: &EventBatch, index: Option<u64>, source: E) -> Self {
        let first = batch.first;
        let place = match (index.and_then(|index| batch.place_of(index)), &*batch.lines) {
            (Some(place), _) => format!("{place},"),
            (None, [line]) => format!("event {first} (the first is 0), in line {line},"),
            (None, _) => {
                let last = batch.end_index() - 1;
                format!("the request with the events {first} to {last} (the first is 0)")
            }
        };
        Self::Refused { place, source }
    }
}
