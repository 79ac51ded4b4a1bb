//! `subscriptions test`: one event to the endpoint, and what came of it.

use std::collections::BTreeMap;
use std::path::Path;

use posthaste_core::api::TestAttempt;
use serde_json::json;
use ureq::http::Method;

use super::session::Session;
use super::source;
use crate::client::Call;
use crate::error::{CommandError, Failure};
use crate::output::Reply;

/// The endpoint did not take a test event.
#[derive(Debug, thiserror::Error)]
#[error("the endpoint did not take the event: {outcome}")]
struct NotTaken {
    /// Outcome, as a dead letter would name it.
    outcome: String,
    /// The attempt, to be shown too.
    done: Reply,
}

impl Failure for NotTaken {
    fn done(&self) -> Option<&Reply> {
        Some(&self.done)
    }
}

pub(super) fn run(
    session: &Session,
    topic: &str,
    name: &str,
    file: Option<&Path>,
) -> Result<Reply, CommandError> {
    let path = ["topics", topic, "subscriptions", name, "test"];
    let event = file.map(source::read).transpose()?.unwrap_or_default();
    let call = Call::new(Method::POST, &path).key(&session.key).body("application/json", event);
    let attempt: TestAttempt = session.client.json(call)?;
    let reply = shown(&attempt);
    if attempt.delivered {
        return Ok(reply);
    }
    Err(NotTaken { outcome: attempt.outcome, done: reply }.into())
}

fn shown(attempt: &TestAttempt) -> Reply {
    let request = &attempt.request;
    let mut reply = headers(
        Reply::new(json!(attempt)).line(format!("{} {}", request.method, clean(&request.url))),
        &request.headers,
    );
    reply = reply.line(format!("\n{}\n", clean(&request.body)));
    let (took_ms, failure) = (attempt.took_ms, attempt.failure.as_deref());
    reply = match (&attempt.response, failure) {
        (Some(response), _) => {
            let line = format!("answered {} in {took_ms} ms", response.status);
            headers(reply.line(line), &response.headers).line(format!("\n{}", clean(&response.body)))
        }
        (None, Some(failure)) => {
            return reply
                .line(format!("not answered after {took_ms} ms: {failure}"))
                .line(attempt.outcome.clone());
        }
        (None, None) => reply,
    };
    match failure {
        Some(failure) => reply.line(format!("{}: {failure}", attempt.outcome)),
        None => reply.line(attempt.outcome.clone()),
    }
}

fn headers(reply: Reply, headers: &BTreeMap<String, String>) -> Reply {
    headers.iter().fold(reply, |reply, (name, value)| reply.line(format!("{name}: {}", clean(value))))
}

/// Text from outside must not steer the terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}
