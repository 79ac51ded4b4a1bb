//! Why a run ended.

use std::time::Duration;

use posthaste_core::model::time::format_duration;

use super::batches::Batch;
use super::events::EventsError;
use crate::client::ClientError;

/// Why a run ended.
#[derive(Debug, thiserror::Error)]
pub enum Ending {
    /// Every event was acknowledged. No error, and never shown as one.
    #[error("every event was acknowledged")]
    Done,
    /// The server refused a request, and would again.
    #[error("{place} was refused")]
    Refused {
        /// Which event or events, for people.
        place: String,
        /// What the server said. An event that it names has its number in the file.
        #[source]
        source: ClientError,
    },
    /// Nothing was acknowledged for too long.
    #[error("nothing was acknowledged for {}", format_duration(*length))]
    GaveUp {
        /// For so long.
        length: Duration,
        /// What was answered last, or why there was no answer.
        #[source]
        source: ClientError,
    },
    /// The file is not what it should be.
    #[error(transparent)]
    Input(EventsError),
    /// A signal asked for it.
    #[error("it was interrupted")]
    Interrupted {
        /// What shells expect of a process that a signal ends.
        exit_code: u8,
    },
    /// A thread or the handler of signals could not be started.
    #[error("failed to start a thread")]
    Thread(#[source] std::io::Error),
    /// A thread panicked, which is a defect of this program.
    #[error("a thread panicked; what it said stands above")]
    Panicked,
}

impl Ending {
    /// A request that the server refused for good.
    pub(super) fn refused(batch: &Batch, mut error: ClientError) -> Self {
        let mut place = match batch.lines.as_slice() {
            [line] => format!("event {} (the first is 0), in line {line},", batch.first),
            _ => {
                format!("the request with the events {} to {} (the first is 0)", batch.first, batch.end() - 1)
            }
        };
        if let ClientError::Refused(refusal) = &mut error
            && let Some(index) = refusal.index
            && let Some(line) = usize::try_from(index).ok().and_then(|index| batch.lines.get(index))
        {
            let event = batch.first + index;
            place = format!("event {event} (the first is 0), which begins in line {line},");
            refusal.index = Some(event);
        }
        Self::Refused { place, source: error }
    }

    /// A run without progress.
    pub(super) fn gave_up(length: Duration, source: ClientError) -> Self {
        Self::GaveUp { length, source }
    }

    /// What the server said, or why it did not.
    pub(crate) fn client(&self) -> Option<&ClientError> {
        match self {
            Self::Refused { source, .. } | Self::GaveUp { source, .. } => Some(source),
            _ => None,
        }
    }
}
