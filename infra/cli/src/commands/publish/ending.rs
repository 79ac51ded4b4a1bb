//! The end of a run that did not publish everything, as its exit code and advice.

use posthaste_publisher::{EventsError, RunEnding};

use crate::client::ClientError;
use crate::error::CommandFailure;

/// Error of a run in which not every event was published.
#[derive(Debug, thiserror::Error)]
#[error("not every event was published")]
pub(super) struct UnfinishedRun {
    #[source]
    ending: RunEnding<ClientError>,
    /// Advice on how to go on.
    resume: String,
}

/// Error of a content type of one event, given for requests of many.
#[derive(Debug, thiserror::Error)]
#[error("--content-type {found} is that of one event, and with --rate a request carries many")]
pub(super) struct SingleEventTypeError {
    pub(super) found: String,
}

impl UnfinishedRun {
    /// The error of this ending. An event that the server names has its number in the file.
    pub(super) fn new(mut ending: RunEnding<ClientError>, resume: String) -> Self {
        if let RunEnding::Refused {
            event: Some(event),
            source: ClientError::Refused(refusal),
            ..
        } = &mut ending
        {
            refusal.index = Some(*event);
        }
        Self { ending, resume }
    }
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
            RunEnding::Input(error) if !matches!(error, EventsError::Read(..)) => 3,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ServerRefusal;
    use crate::error::CommandError;
    use posthaste_publisher::EventPlace;
    use serde_json::json;
    use std::io;
    use std::time::Duration;
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
            let error = CommandError::from(UnfinishedRun::new(ending, String::new()));
            assert_eq!(error.exit_code(), expected, "{error:?}");
        };
        let length = Duration::from_mins(15);
        let gave_up = |status, type_uri| RunEnding::GaveUp {
            length,
            source: refusal(status, type_uri),
        };
        let refused = |status| RunEnding::Refused {
            place: String::new(),
            event: None,
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
        let file = |kind| {
            let place = EventPlace { index: 0, line: 1 };
            EventsError::Read(place, io::Error::from(kind))
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
