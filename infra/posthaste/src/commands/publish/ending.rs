//! The end of a run.

use std::time::Duration;

use posthaste_core::model::time::format_duration;

use super::batches::EventBatch;
use super::events::EventsError;
use crate::client::ClientError;
use crate::error::CommandFailure;

/// The end of a run.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunEnding {
    /// Every event was acknowledged. It is no error, and never shown as one.
    #[error("every event was acknowledged")]
    Done,
    /// The server refused a request, and would again.
    #[error("{place} was refused")]
    Refused {
        /// The event or events, for people.
        place: String,
        /// The server's answer. An event that it names has its number in the file.
        #[source]
        source: ClientError,
    },
    /// Nothing was acknowledged for too long.
    #[error("nothing was acknowledged for {}", format_duration(*length))]
    GaveUp {
        /// The time without an acknowledgement.
        length: Duration,
        /// The last answer, or the reason for none.
        #[source]
        source: ClientError,
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
    Thread(#[source] std::io::Error),
    /// A thread panicked, which is a defect of this program.
    #[error("a thread panicked; what it said stands above")]
    Panicked,
}

/// Error of a run in which not every event was published.
#[derive(Debug, thiserror::Error)]
#[error("not every event was published")]
pub(super) struct UnfinishedRun {
    #[source]
    pub(super) ending: RunEnding,
    /// Advice on how to go on.
    pub(super) resume: String,
}

/// Error of a content type of one event, given for requests of many.
#[derive(Debug, thiserror::Error)]
#[error("--content-type {found} is that of one event, and with --rate a request carries many")]
pub(super) struct SingleEventTypeError {
    pub(super) found: String,
}

impl CommandFailure for UnfinishedRun {
    fn exit_code(&self) -> Option<u8> {
        Some(match &self.ending {
            RunEnding::Interrupted { exit_code } => *exit_code,
            RunEnding::GaveUp {
                source: ClientError::Refused(refusal),
                ..
            } if refusal.is_back_pressure() => 6,
            RunEnding::GaveUp { .. } => 7,
            RunEnding::Refused { source, .. } => return source.exit_code(),
            // A file that cannot be read says nothing about what is in it.
            RunEnding::Input(error) if !matches!(error, EventsError::Read { .. }) => 3,
            _ => 1,
        })
    }

    fn hint(&self) -> Option<String> {
        Some(self.resume.clone())
    }
}

impl CommandFailure for SingleEventTypeError {
    fn exit_code(&self) -> Option<u8> {
        Some(2)
    }
}

impl RunEnding {
    /// A request that the server refused for good.
    pub(super) fn for_refusal(batch: &EventBatch, mut error: ClientError) -> Self {
        let mut place = match batch.lines.as_slice() {
            [line] => format!("event {} (the first is 0), in line {line},", batch.first),
            _ => {
                format!(
                    "the request with the events {} to {} (the first is 0)",
                    batch.first,
                    batch.end_index() - 1
                )
            }
        };
        if let ClientError::Refused(refusal) = &mut error
            && let Some(index) = refusal.index
            && let Some(line) = usize::try_from(index)
                .ok()
                .and_then(|index| batch.lines.get(index))
        {
            let event = batch.first + index;
            place = format!("event {event} (the first is 0), which begins in line {line},");
            refusal.index = Some(event);
        }
        Self::Refused {
            place,
            source: error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ServerRefusal;
    use crate::error::CommandError;
    use serde_json::json;
    use std::io;
    use ureq::http::HeaderMap;

    fn refusal(status: u16, type_uri: &str) -> ClientError {
        let body = json!({ "type": type_uri, "title": "No" }).to_string();
        ClientError::Refused(Box::new(ServerRefusal::from_response(
            status,
            &HeaderMap::new(),
            body.as_bytes(),
        )))
    }

    /// Exit code tells back pressure, an unreachable server, bad input and a signal apart.
    #[test]
    fn exit_code_of_an_unfinished_run_names_the_cause() {
        let check = |ending, expected| {
            let error = CommandError::from(UnfinishedRun {
                ending,
                resume: String::new(),
            });
            assert_eq!(error.exit_code(), expected, "{error:?}");
        };
        let length = Duration::from_mins(15);
        let gave_up = |status, type_uri| RunEnding::GaveUp {
            length,
            source: refusal(status, type_uri),
        };
        let refused = |status| RunEnding::Refused {
            place: String::new(),
            source: refusal(status, ""),
        };
        check(gave_up(503, "urn:posthaste:problem:back-pressure"), 6);
        check(gave_up(429, ""), 6);
        for status in [408, 409, 500, 503, 507] {
            check(gave_up(status, "urn:posthaste:problem:unavailable"), 7);
        }
        for (status, expected) in [(400, 3), (401, 5), (404, 4), (413, 3), (422, 3)] {
            check(refused(status), expected);
        }
        let file = |kind| EventsError::Read {
            index: 0,
            line: 1,
            source: io::Error::from(kind),
        };
        check(RunEnding::Input(file(io::ErrorKind::IsADirectory)), 1);
        check(
            RunEnding::Input(EventsError::TooFew { from: 3, events: 2 }),
            3,
        );
        check(RunEnding::Interrupted { exit_code: 143 }, 143);
        check(
            RunEnding::Thread(io::Error::from(io::ErrorKind::OutOfMemory)),
            1,
        );
    }
}
