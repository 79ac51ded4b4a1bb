//! `subscriptions test`: one event to the endpoint, and what came of it.

use std::collections::BTreeMap;
use std::path::Path;

use posthaste_core::api::TestAttempt;
use serde_json::json;
use ureq::http::Method;

use super::session::Session;
use super::source;
use crate::cli::SubscriptionArgs;
use crate::error::{CommandError, Failure};
use crate::output::{Reply, clean};

/// Error of a test event that the endpoint did not take.
#[derive(Debug, thiserror::Error)]
#[error("the endpoint did not take the event: {outcome}")]
struct NotTaken {
    /// Outcome, as a dead letter would name it.
    outcome: String,
}

impl Failure for NotTaken {}

pub(super) fn run(
    session: &Session,
    SubscriptionArgs { topic, name }: &SubscriptionArgs,
    file: Option<&Path>,
) -> Result<Reply, CommandError> {
    let path = ["topics", topic, "subscriptions", name, "test"];
    let event = file.map(source::read).transpose()?.unwrap_or_default();
    let call = session.call(Method::POST, &path).body("application/json", event);
    let attempt: TestAttempt = session.client.json(call)?;
    let reply = shown(&attempt);
    if attempt.delivered {
        return Ok(reply);
    }
    Err(CommandError::from(NotTaken { outcome: attempt.outcome }).after(reply))
}

fn shown(attempt: &TestAttempt) -> Reply {
    let request = &attempt.request;
    let mut reply = headers(
        Reply::new(json!(attempt)).line(format!("{} {}", request.method, clean(&request.url))),
        &request.headers,
    );
    reply = reply.line(format!("\n{}\n", clean(&request.body)));
    let TestAttempt { took_ms, outcome, .. } = attempt;
    if let Some(response) = &attempt.response {
        let line = format!("answered {} in {took_ms} ms", response.status);
        reply = headers(reply.line(line), &response.headers).line(format!("\n{}", clean(&response.body)));
    }
    match (&attempt.response, &attempt.failure) {
        (Some(_), Some(failure)) => reply.line(format!("{outcome}: {failure}")),
        (None, Some(failure)) => {
            reply.line(format!("not answered after {took_ms} ms: {failure}")).line(outcome)
        }
        (_, None) => reply.line(outcome),
    }
}

fn headers(reply: Reply, headers: &BTreeMap<String, String>) -> Reply {
    headers.iter().fold(reply, |reply, (name, value)| reply.line(format!("{name}: {}", clean(value))))
}
