//! The end of a run before that of its events.

use std::error::Error;
use std::io;
use std::time::Duration;

use posthaste_core::model::time::format_duration;

use crate::batches::EventBatch;
use crate::events::EventsError;

/// The reason of a run that did not publish everything; `E` is the error of a request.
#[derive(Debug, thiserror::Error)]
pub enum RunEnding<E: Error + 'static> {
    /// The server refused a request, and would again.
    #[error("{place} was refused")]
    Refused {
        /// The event or events, for people.
        place: String,
        /// The number in the file of the event that the server names.
        event: Option<u64>,
        #[source]
        source: E,
    },
    /// Nothing was acknowledged for too long.
    #[error("nothing was acknowledged for {}", format_duration(*length))]
    GaveUp {
        /// The time without an acknowledgement.
        length: Duration,
        /// The last answer, or the reason for none.
        #[source]
        source: E,
    },
    /// The file is not what it should be.
    #[error(transparent)]
    Input(EventsError),
    /// A signal asked for it.
    #[error("it was interrupted")]
    Interrupted {
        /// The code that shells expect of a process that a signal ends.
        exit_code: u8,
    },
    /// A thread or the handler of signals could not be started.
    #[error("failed to start a thread")]
    Thread(#[source] io::Error),
    /// A thread panicked, which is a defect of this program.
    #[error("a thread panicked; what it said stands above")]
    Panicked,
}

impl<E: Error + 'static> RunEnding<E> {
    /// A request that the server refused for good, for the event at this index of it if it names
    /// one.
    pub(crate) fn for_refusal(batch: &EventBatch, index: Option<u64>, source: E) -> Self {
        let first = batch.first;
        let line = index.and_then(|index| batch.lines.get(usize::try_from(index).ok()?));
        let event = index.filter(|_| line.is_some()).map(|index| first + index);
        let place = match (event, line, batch.lines.as_slice()) {
            (Some(event), Some(line), _) => {
                format!("event {event} (the first is 0), which begins in line {line},")
            }
            (_, _, [line]) => format!("event {first} (the first is 0), in line {line},"),
            _ => {
                let last = batch.end_index() - 1;
                format!("the request with the events {first} to {last} (the first is 0)")
            }
        };
        Self::Refused {
            place,
            event,
            source,
        }
    }
}
