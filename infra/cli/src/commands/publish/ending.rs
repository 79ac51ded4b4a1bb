//! The end of a run that did not publish everything, as its exit code and advice.

use std::io;

use posthaste_publisher::{EventsError, RunEnding};

use crate::client::ClientError;
use crate::error::CommandFailure;

/// Error of a run in which not every event was published.
#[derive(Debug, thiserror::Error)]
#[error("not every event was published")]
pub(super) struct UnfinishedRun {
    #[source]
    pub(super) ending: RunEnding<ClientError>,
    /// Advice on how to go on.
    pub(super) resume: String,
}

/// Error before anything is sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum PacedPublishError {
    /// The content type is that of one event, for requests of many.
    #[error("--content-type {0} is that of one event, and with --rate a request carries many")]
    SingleEventType(String),
    /// The system refuses what a run needs of it.
    #[error("failed to start a thread")]
    Process(#[source] io::Error),
}

impl CommandFailure for UnfinishedRun {
    fn exit_code(&self) -> Option<u8> {
        match &self.ending {
            RunEnding::Interrupted { exit_code } => Some(*exit_code),
            RunEnding::GaveUp { source, .. } => {
                source.exit_code().filter(|code| *code == 6).or(Some(7))
            }
            RunEnding::Refused { source, .. } => source.exit_code(),
            // A file that cannot be read says nothing about what is in it.
            RunEnding::Input(error) if !matches!(error, EventsError::Read(..)) => Some(3),
            _ => Some(1),
        }
    }

    fn hint(&self) -> Option<String> {
        Some(self.resume.clone())
    }
}

impl CommandFailure for PacedPublishError {
    fn exit_code(&self) -> Option<u8> {
        matches!(self, Self::SingleEventType(_)).then_some(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ServerRefusal;
    use crate::error::CommandError;
    use posthaste_publisher::EventPlace;
    use serde_json::json;
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
        check(RunEnding::Panicked, 1);
    }
}
