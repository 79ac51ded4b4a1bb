//! Errors of commands: what failed, what to do about it, and the exit code that tells scripts.

use std::error::Error;
use std::fmt::Write as _;
use std::iter;

use posthaste_core::api::problem::ProblemKind;
use serde_json::{Value, json};

use crate::client::{ClientError, ServerRefusal, is_of_another_name, is_of_unknown_authority};
use crate::output::CommandReply;

/// An error of one area of the program, with what users get beside its text. Where it says nothing
/// itself, the server's refusal among its causes does, or the reason for no answer.
pub trait CommandFailure: Error + Send + Sync + 'static {
    /// The exit code, as `--help` documents it.
    fn exit_code(&self) -> Option<u8> {
        None
    }

    /// Advice on what to do.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// Error of a command.
#[derive(Debug)]
pub struct CommandError {
    failure: Box<dyn CommandFailure>,
    done: Option<CommandReply>,
}

impl<F: CommandFailure> From<F> for CommandError {
    fn from(failure: F) -> Self {
        Self {
            failure: Box::new(failure),
            done: None,
        }
    }
}

impl CommandError {
    /// The same, with what was done before the failure. It is shown too.
    pub fn with_done(self, done: CommandReply) -> Self {
        Self {
            done: Some(done),
            ..self
        }
    }

    /// The exit code, as `--help` documents it.
    pub fn exit_code(&self) -> u8 {
        self.failure
            .exit_code()
            .or_else(|| self.client_error()?.exit_code())
            .unwrap_or(1)
    }

    /// The reply to what was done before the failure.
    pub fn done(&self) -> Option<&CommandReply> {
        self.done.as_ref()
    }

    /// The failure and its reasons, in a line.
    pub fn to_line(&self) -> String {
        let mut text = self.failure.to_string();
        for error in self.error_chain().skip(1) {
            let because = error.to_string();
            // Some errors contain their cause's text.
            if !text.ends_with(&because) {
                let _ = write!(text, ": {because}");
            }
        }
        text.replace('\n', "; ")
    }

    /// Advice on what to do.
    pub fn hint(&self) -> Option<String> {
        self.failure.hint().or_else(|| self.client_error()?.hint())
    }

    /// The whole story for people: what failed, why, and what to do.
    pub fn report(&self) -> String {
        let mut text = format!("error: {}", self.failure);
        for error in self.error_chain().skip(1) {
            let because = error.to_string();
            // Some errors contain their cause's text.
            if !text.ends_with(&because) {
                let _ = write!(text, "\n  because: {because}");
            }
        }
        if let Some(hint) = self.hint() {
            let _ = write!(text, "\n  try: {hint}");
        }
        text
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        let mut error = json!({ "message": self.report(), "exitCode": self.exit_code() });
        if let Some(ClientError::Refused(refusal)) = self.client_error() {
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

    /// The server's refusal, or the reason for no answer, if that is the cause.
    fn client_error(&self) -> Option<&ClientError> {
        self.error_chain().find_map(|error| error.downcast_ref())
    }

    /// The failure and its causes.
    fn error_chain(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let failure: &(dyn Error + 'static) = &*self.failure;
        iter::successors(Some(failure), |error| (**error).source())
    }
}

impl CommandFailure for ClientError {
    fn exit_code(&self) -> Option<u8> {
        Some(match self {
            Self::Address { .. } | Self::Authorities { .. } => 2,
            Self::Unreachable { .. } | Self::OtherScheme { .. } => 7,
            Self::Refused(refusal) => refused_exit_code(refusal),
            Self::Answer { .. } | Self::Endless { .. } => 1,
        })
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreachable { source, .. } if is_of_unknown_authority(source) => Some(
                "--ca-cert FILE or POSTHASTE_CA_CERT, with the certificate of the authority that issued the \
                 server's"
                    .to_owned(),
            ),
            Self::Unreachable { source, .. } if is_of_another_name(source) => {
                Some("--url with a name that the server's certificate has".to_owned())
            }
            Self::Unreachable { .. } => Some(
                "is `posthaste serve` running there? --url or POSTHASTE_URL says where to look"
                    .to_owned(),
            ),
            Self::OtherScheme { url } => Some(format!(
                "{}:// instead: --url {url} or POSTHASTE_URL={url}",
                url.scheme()
            )),
            Self::Refused(refusal) => refused_hint(refusal),
            Self::Address { .. }
            | Self::Authorities { .. }
            | Self::Answer { .. }
            | Self::Endless { .. } => None,
        }
    }
}

fn refused_exit_code(refusal: &ServerRefusal) -> u8 {
    match refusal.status {
        _ if refusal.is_back_pressure() => 6,
        401 | 403 => 5,
        404 => 4,
        400..=499 => 3,
        502..=504 => 7,
        _ => 1,
    }
}

fn refused_hint(refusal: &ServerRefusal) -> Option<String> {
    if let Some(wait) = &refusal.retry_after {
        let more = if refusal.is_back_pressure() {
            "; `posthaste pressure` shows what is scarce"
        } else {
            ""
        };
        return Some(format!("again after {wait} s{more}"));
    }
    match refusal.status {
        404 if refusal.type_uri == ProblemKind::UnknownTopic.type_uri() => Some(
            "`posthaste topics`, which lists the topics; `posthaste apply` creates one".to_owned(),
        ),
        404 if refusal.type_uri == ProblemKind::UnknownSubscription.type_uri() => {
            Some("`posthaste subscriptions list TOPIC`, which lists those of a topic".to_owned())
        }
        401 => Some(
            "another key: management takes the admin key, publishing one of the topic's own keys"
                .to_owned(),
        ),
        412 => Some("apply again: something else writes this topic at the same time".to_owned()),
        507 => Some("free space on the disk that holds the data folder".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::apply::check_file;
    use ureq::http::{HeaderMap, HeaderValue};

    fn refused(status: u16, type_uri: &str) -> CommandError {
        let mut headers = HeaderMap::new();
        if status == 503 || status == 429 {
            headers.insert("retry-after", HeaderValue::from_static("7"));
        }
        let body = json!({ "type": type_uri, "title": "No" }).to_string();
        ClientError::Refused(Box::new(ServerRefusal::from_response(
            status,
            &headers,
            body.as_bytes(),
        )))
        .into()
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

    #[derive(Debug, thiserror::Error)]
    #[error("not everything was done")]
    struct Partly {
        source: ClientError,
    }

    impl CommandFailure for Partly {}

    #[test]
    fn refusal_among_the_causes_decides_exit_code_and_advice() {
        let refusal = ServerRefusal::from_response(401, &HeaderMap::new(), b"");
        let error = CommandError::from(Partly {
            source: ClientError::Refused(Box::new(refusal)),
        });
        let expected = "error: not everything was done\n  because: HTTP status 401 (401)\n  try: another \
            key: management takes the admin key, publishing one of the topic's own keys";
        assert_eq!((error.report().as_str(), error.exit_code()), (expected, 5));
        assert_eq!(error.to_json()["error"]["status"], 401);
        assert!(
            error.done().is_none()
                && error
                    .with_done(CommandReply::without_json())
                    .done()
                    .is_some()
        );
    }

    #[test]
    fn a_report_says_nothing_twice() {
        let file = "topics: { a: { subscriptions: { b: { endpoint: { url: 'https://a.example/', timeout: \
            PT2M } } } } }";
        let report = |file: &str| {
            CommandError::from(check_file("a.yaml".as_ref(), file.as_bytes()).unwrap_err()).report()
        };
        let expected = "error: a.yaml:1:86: topics.a.subscriptions.b.endpoint.timeout: expected PT1S to PT1M, found PT2M";
        assert_eq!(report(file), expected);
        let unknown = "topics:\n  a:\n    filters: 1\n";
        let report = report(unknown);
        let expected =
            "error: a.yaml:3:5: topics.a.filters: unknown member `filters`, expected one of `name`";
        assert!(report.starts_with(expected), "{report}");
        assert!(
            !report.contains("line") && !report.contains("column"),
            "{report}"
        );
    }

    #[test]
    fn a_report_says_what_to_do() {
        let expected =
            "error: No (503)\n  try: again after 7 s; `posthaste pressure` shows what is scarce";
        assert_eq!(
            refused(503, "urn:posthaste:problem:back-pressure").report(),
            expected
        );
        let expected = "error: No (412)\n  try: apply again: something else writes this topic at the same time";
        assert_eq!(refused(412, "about:blank").report(), expected);
        let expected = "error: No (404)\n  try: `posthaste topics`, which lists the topics; `posthaste \
            apply` creates one";
        assert_eq!(
            refused(404, "urn:posthaste:problem:unknown-topic").report(),
            expected
        );
        let expected = "error: No (503)\n  try: again after 7 s";
        assert_eq!(
            refused(503, "urn:posthaste:problem:unavailable").report(),
            expected
        );
    }

    #[test]
    fn back_pressure_refusal_names_the_resource_and_the_remedy() {
        let headers = [(
            "retry-after".parse().unwrap(),
            HeaderValue::from_static("30"),
        )]
        .into_iter()
        .collect();
        let body = json!({
            "type": "urn:posthaste:problem:back-pressure",
            "title": "Back pressure: events are not taken at the moment",
            "status": 503,
            "detail": "database-disk is at medium: 96 % of the disk with the data folder is used; space \
                must be freed on it",
            "resource": "database-disk",
            "level": "medium",
        });
        let refusal = ServerRefusal::from_response(503, &headers, body.to_string().as_bytes());
        let error = CommandError::from(ClientError::Refused(Box::new(refusal)));
        let expected = "error: Back pressure: events are not taken at the moment (503)\n  reason: \
            database-disk is at medium: 96 % of the disk with the data folder is used; space must be freed \
            on it\n  try: again after 30 s; `posthaste pressure` shows what is scarce";
        assert_eq!((error.report().as_str(), error.exit_code()), (expected, 6));
        let json = &error.to_json()["error"];
        assert_eq!(
            [&json["resource"], &json["level"], &json["retryAfter"]],
            ["database-disk", "medium", "30"]
        );
    }
}
