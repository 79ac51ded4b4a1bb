//! How commands fail: what it was, what to do about it, and the exit code that says so to scripts.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use posthaste_core::api::ReplayState;
use posthaste_local::OpenError;
use serde_json::{Value, json};

use super::apply::ApplyError;
use super::publish::{Ending, EventsError};
use crate::client::{ClientError, Refusal};
use crate::demo::DemoError;
use crate::output::Reply;
use crate::serve::{LinkFileError, PressureFileError, ServeError};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The server could not be asked, or said no.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A file that is to be applied cannot be accepted.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A file of settings of back pressure cannot be accepted.
    #[error(transparent)]
    Pressure(#[from] PressureFileError),
    /// A file of settings of failing endpoints cannot be accepted.
    #[error(transparent)]
    Links(#[from] LinkFileError),
    /// The server did not start, or did not end well.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The demo did not run, or did not end as it should.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// Topics were applied up to one that the server refused, or that did not reach it.
    #[error("not everything was applied")]
    Partly {
        /// What was applied before, to be shown all the same.
        done: Box<Reply>,
        /// Why it ended there.
        #[source]
        source: ClientError,
    },
    /// A replay that was waited for did not bring everything on its way.
    #[error("the replay {id} is {state:?}, and {failed} could not be queued")]
    Replay {
        /// Its id.
        id: String,
        /// How many events or objects could not be queued.
        failed: u64,
        /// How it ended.
        state: ReplayState,
        /// How it stands, to be shown all the same.
        done: Box<Reply>,
    },
    /// The endpoint did not take a test event.
    #[error("the endpoint did not take the event: {outcome}")]
    Test {
        /// What a dead letter would call it.
        outcome: String,
        /// The attempt, to be shown all the same.
        done: Box<Reply>,
    },
    /// Events were published up to one that was not.
    #[error("not every event was published")]
    Unfinished {
        /// Why it ended there.
        #[source]
        ending: Box<Ending>,
        /// How to go on.
        resume: String,
        /// How it stands, to be shown all the same.
        done: Box<Reply>,
    },
    /// The content type of one event, for requests of many.
    #[error("--content-type {found} is that of one event, and with --rate a request carries many")]
    ContentType {
        /// What was written.
        found: String,
    },
    /// The endpoint was asked, and the subscription is not active.
    #[error("the endpoint did not consent to events: {reason}")]
    NotConsented {
        /// Why not, as the subscription's status says it.
        reason: String,
        /// The state, to be shown all the same.
        done: Box<Reply>,
    },
    /// A data folder cannot be checked.
    #[error("failed to check the data folder")]
    Check {
        /// Why not.
        #[source]
        source: OpenError,
    },
    /// A data folder is damaged.
    #[error("{damages} damages in the data folder {}", folder.display())]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// How many.
        damages: u64,
        /// What was read, to be shown all the same.
        done: Box<Reply>,
    },
    /// An input file cannot be read.
    #[error("failed to read {}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// No admin key was given, and the one of the folder here is not sent to another machine.
    #[error("no key was given, and the one in {} is for a server on this machine", folder.display())]
    KeyOfAnother {
        /// The folder whose key it is.
        folder: PathBuf,
    },
    /// No admin key was given and none was found.
    #[error("no key was given, and there is none in {}", path.display())]
    NoKey {
        /// Where it was looked for.
        path: PathBuf,
        /// Why it could not be read.
        #[source]
        source: io::Error,
    },
}

impl CommandError {
    /// The exit code, as `--help` documents it.
    pub fn exit_code(&self) -> u8 {
        match (self, self.client()) {
            (Self::Unfinished { ending, .. }, _) => unfinished_exit_code(ending),
            (Self::ContentType { .. }, _) | (_, Some(ClientError::Address { .. })) => 2,
            (_, Some(ClientError::Unreachable { .. })) => 7,
            (_, Some(ClientError::Refused(refusal))) => refused_exit_code(refusal),
            (Self::Apply(_) | Self::Pressure(_) | Self::Links(_) | Self::NotConsented { .. }, _) => 3,
            (Self::NoKey { .. } | Self::KeyOfAnother { .. }, _) => 5,
            _ => 1,
        }
    }

    /// What was done before it failed.
    pub fn done(&self) -> Option<&Reply> {
        match self {
            Self::Partly { done, .. }
            | Self::Replay { done, .. }
            | Self::Test { done, .. }
            | Self::Damaged { done, .. }
            | Self::Unfinished { done, .. }
            | Self::NotConsented { done, .. } => Some(done),
            _ => None,
        }
    }

    /// What the server said, or why it did not.
    fn client(&self) -> Option<&ClientError> {
        match self {
            Self::Client(error)
            | Self::Partly { source: error, .. }
            | Self::Serve(ServeError::Config(error)) => Some(error),
            Self::Unfinished { ending, .. } => ending.client(),
            _ => None,
        }
    }

    /// The whole story for people: what failed, why, and what to do.
    pub fn report(&self) -> String {
        let mut text = format!("error: {self}");
        let mut cause = self.source();
        while let Some(error) = cause {
            let because = error.to_string();
            // Some errors say their cause's text in their own.
            if !text.ends_with(&because) {
                let _ = write!(text, "\n  because: {because}");
            }
            cause = error.source();
        }
        if let Some(hint) = self.hint() {
            let _ = write!(text, "\n  try: {hint}");
        }
        text
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let mut error = json!({ "message": self.report(), "exitCode": self.exit_code() });
        if let Some(ClientError::Refused(refusal)) = self.client() {
            error["status"] = refusal.status.into();
            error["type"] = refusal.type_uri.clone().into();
            error["member"] = refusal.member.clone().into();
            error["index"] = refusal.index.into();
            error["resource"] = refusal.resource.clone().into();
            error["level"] = refusal.level.clone().into();
            error["retryAfter"] = refusal.retry_after.clone().into();
        }
        json!({ "error": error })
    }

    fn hint(&self) -> Option<String> {
        match (self, self.client()) {
            (Self::Unfinished { resume, .. }, _) => Some(resume.clone()),
            (_, Some(ClientError::Unreachable { .. })) => Some(
                "is `posthaste serve` running there? --url or POSTHASTE_URL says where to look".to_owned(),
            ),
            (_, Some(ClientError::Refused(refusal))) => refused_hint(refusal),
            (Self::Damaged { .. }, _) => Some(
                "restore the folder from a backup; a server that starts on it sends nothing that is damaged"
                    .to_owned(),
            ),
            (Self::NoKey { .. } | Self::KeyOfAnother { .. }, _) => {
                Some("--key or POSTHASTE_KEY, or --data-dir with the folder that the server uses".to_owned())
            }
            _ => None,
        }
    }
}

fn unfinished_exit_code(ending: &Ending) -> u8 {
    match ending {
        Ending::Interrupted { exit_code } => *exit_code,
        Ending::GaveUp { source: ClientError::Refused(refusal), .. } if refusal.is_back_pressure() => 6,
        Ending::GaveUp { .. } => 7,
        Ending::Refused { source: ClientError::Refused(refusal), .. } => refused_exit_code(refusal),
        // A file that cannot be read says nothing about what is in it.
        Ending::Input(error) if !matches!(error, EventsError::Read { .. }) => 3,
        _ => 1,
    }
}

fn refused_exit_code(refusal: &Refusal) -> u8 {
    match refusal.status {
        _ if refusal.is_back_pressure() => 6,
        401 | 403 => 5,
        404 => 4,
        400..=499 => 3,
        502..=504 => 7,
        _ => 1,
    }
}

fn refused_hint(refusal: &Refusal) -> Option<String> {
    if let Some(wait) = &refusal.retry_after {
        let more =
            if refusal.is_back_pressure() { "; `posthaste pressure` shows what is scarce" } else { "" };
        return Some(format!("again after {wait} s{more}"));
    }
    match refusal.status {
        401 => Some(
            "another key: management takes the admin key, publishing one of the topic's own keys".to_owned(),
        ),
        507 => Some("free space on the disk that holds the data folder".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::{HeaderMap, HeaderValue};

    fn refused(status: u16, type_uri: &str) -> CommandError {
        let mut headers = HeaderMap::new();
        if status == 503 || status == 429 {
            headers.insert("retry-after", HeaderValue::from_static("7"));
        }
        let body = json!({ "type": type_uri, "title": "No" }).to_string();
        ClientError::Refused(Box::new(Refusal::read(status, &headers, body.as_bytes()))).into()
    }

    #[test]
    fn every_answer_has_the_exit_code_that_help_promises() {
        let check = |status, type_uri, expected| {
            assert_eq!(refused(status, type_uri).exit_code(), expected, "{status}");
        };
        check(400, "urn:posthaste:problem:bad-event", 3);
        check(413, "urn:posthaste:problem:too-large", 3);
        check(401, "urn:posthaste:problem:unauthorized", 5);
        check(404, "urn:posthaste:problem:unknown-topic", 4);
        check(429, "urn:posthaste:problem:back-pressure", 6);
        check(503, "urn:posthaste:problem:back-pressure", 6);
        check(503, "urn:posthaste:problem:unavailable", 7);
        check(500, "about:blank", 1);
        check(507, "urn:posthaste:problem:storage-full", 1);
    }

    #[test]
    fn a_report_says_nothing_twice() {
        let file = "topics: { a: { subscriptions: { b: { endpoint: { url: 'https://a.example/', timeout: PT2M } } } } }";
        let error =
            CommandError::Apply(super::super::apply::check("a.yaml".as_ref(), file.as_bytes()).unwrap_err());
        let expected =
            "error: a.yaml:1:86\n  because: subscriptions.b.endpoint.timeout: PT2M is outside PT1S..=PT1M";
        assert_eq!(error.report(), expected);
        let unknown = "topics:\n  a:\n    filters: 1\n";
        let error = CommandError::Apply(
            super::super::apply::check("a.yaml".as_ref(), unknown.as_bytes()).unwrap_err(),
        );
        let report = error.report();
        assert!(report.starts_with("error: a.yaml:3:5\n  because: unknown field `filters`"), "{report}");
        assert!(!report.contains("line") && !report.contains("column"), "{report}");
    }

    #[test]
    fn a_run_that_ended_early_says_by_its_exit_code_whose_turn_it_is() {
        let check = |ending, expected| {
            let done = Box::new(Reply::silent());
            let error = CommandError::Unfinished { ending: Box::new(ending), resume: String::new(), done };
            assert_eq!(error.exit_code(), expected, "{error:?}");
        };
        let because = |status, type_uri| match refused(status, type_uri) {
            CommandError::Client(error) => error,
            other => panic!("{other}"),
        };
        let length = std::time::Duration::from_mins(15);
        let gave_up = |status, type_uri| Ending::GaveUp { length, source: because(status, type_uri) };
        let refused = |status| Ending::Refused { place: String::new(), source: because(status, "") };
        check(gave_up(503, "urn:posthaste:problem:back-pressure"), 6);
        check(gave_up(429, ""), 6);
        for status in [408, 409, 500, 503, 507] {
            check(gave_up(status, "urn:posthaste:problem:unavailable"), 7);
        }
        for (status, expected) in [(400, 3), (401, 5), (404, 4), (413, 3), (422, 3)] {
            check(refused(status), expected);
        }
        let file = |kind| EventsError::Read { index: 0, line: 1, source: io::Error::from(kind) };
        check(Ending::Input(file(io::ErrorKind::IsADirectory)), 1);
        check(Ending::Input(EventsError::TooFew { from: 3, events: 2 }), 3);
        check(Ending::Interrupted { exit_code: 143 }, 143);
        check(Ending::Thread(io::Error::from(io::ErrorKind::OutOfMemory)), 1);
    }

    #[test]
    fn a_report_says_what_to_do() {
        let expected = "error: No (503)\n  try: again after 7 s; `posthaste pressure` shows what is scarce";
        assert_eq!(refused(503, "urn:posthaste:problem:back-pressure").report(), expected);
        let expected = "error: No (503)\n  try: again after 7 s";
        assert_eq!(refused(503, "urn:posthaste:problem:unavailable").report(), expected);
    }

    #[test]
    fn a_refusal_by_back_pressure_says_what_is_short_and_what_ends_it() {
        let headers =
            [("retry-after".parse().unwrap(), HeaderValue::from_static("30"))].into_iter().collect();
        let body = br#"{"type":"urn:posthaste:problem:back-pressure","title":"Back pressure: events are not taken at the moment","status":503,"detail":"database-disk is at medium: 96 % of the disk with the data folder is used; space must be freed on it","resource":"database-disk","level":"medium"}"#;
        let error: CommandError = ClientError::Refused(Box::new(Refusal::read(503, &headers, body))).into();
        let expected = "error: Back pressure: events are not taken at the moment (503)\n  reason: database-disk is at medium: 96 % of the disk with the data folder is used; space must be freed on it\n  try: again after 30 s; `posthaste pressure` shows what is scarce";
        assert_eq!((error.report().as_str(), error.exit_code()), (expected, 6));
        let json = &error.json()["error"];
        assert_eq!(
            [&json["resource"], &json["level"], &json["retryAfter"]],
            ["database-disk", "medium", "30"]
        );
    }
}
