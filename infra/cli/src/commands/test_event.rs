//! `subscriptions test`: one event to the endpoint, and what came of it.

use std::collections::BTreeMap;
use std::path::Path;

use posthaste_core::api::TestAttempt;
use posthaste_core::model::visible::visible_line;
use serde_json::json;
use ureq::http::Method;

use super::session::AdminSession;
use super::source;
use crate::cli::SubscriptionArgs;
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

/// Error of a test event that the endpoint did not take.
#[derive(Debug, thiserror::Error)]
#[error("the endpoint did not take the event: {reason}")]
struct NotTaken {
    reason: String,
}

impl CommandFailure for NotTaken {}

pub(super) fn run(
    session: &AdminSession,
    SubscriptionArgs { topic, name }: &SubscriptionArgs,
    file: Option<&Path>,
) -> Result<CommandReply, CommandError> {
    let path = ["topics", topic, "subscriptions", name, "test"];
    let event = file
        .map(source::read_input)
        .transpose()?
        .unwrap_or_default();
    let call = session
        .call(Method::POST, &path)
        .body("application/json", event);
    let attempt: TestAttempt = session.client.send_for_json(call)?;
    let reply = attempt_reply(&attempt);
    if attempt.delivered {
        return Ok(reply);
    }
    Err(CommandError::from(NotTaken {
        reason: failure_reason(&attempt),
    })
    .with_done(reply))
}

fn attempt_reply(attempt: &TestAttempt) -> CommandReply {
    let request = &attempt.request;
    let mut reply = add_headers(
        CommandReply::new(json!(attempt)).line(format!("{} {}", request.method, request.url)),
        &request.headers,
    );
    reply = reply.line(format!("\n{}\n", request.body));
    let TestAttempt {
        took_ms, outcome, ..
    } = attempt;
    if let Some(response) = &attempt.response {
        let line = format!("answered {} in {took_ms} ms", response.status);
        reply =
            add_headers(reply.line(line), &response.headers).line(format!("\n{}", response.body));
    }
    // A report of the endpoint may be the failure.
    let failure = attempt.failure.as_deref().map(visible_line);
    match (&attempt.response, failure) {
        (Some(_), Some(failure)) => reply.line(format!("{outcome}: {failure}")),
        (None, Some(failure)) => reply
            .line(format!("not answered after {took_ms} ms: {failure}"))
            .line(format!("a dead letter would name it {outcome}")),
        (_, None) => reply.line(outcome),
    }
}

/// The reason why an event was not taken: that of no answer or of a report, or else the status.
fn failure_reason(attempt: &TestAttempt) -> String {
    match (&attempt.failure, &attempt.response) {
        (Some(failure), _) => visible_line(failure).into_owned(),
        (None, Some(response)) => format!("it answered {} ({})", response.status, attempt.outcome),
        (None, None) => attempt.outcome.clone(),
    }
}

fn add_headers(reply: CommandReply, headers: &BTreeMap<String, String>) -> CommandReply {
    headers.iter().fold(reply, |reply, (name, value)| {
        reply.line(format!("{name}: {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputStyle;
    use serde_json::Value;

    fn attempt(outcome: &str, more: &Value) -> TestAttempt {
        let request = json!({ "method": "POST", "url": "http://a/", "headers": {}, "body": "{}" });
        let mut attempt =
            json!({ "delivered": false, "outcome": outcome, "tookMs": 2, "request": request });
        for (member, value) in more.as_object().into_iter().flatten() {
            attempt[member] = value.clone();
        }
        serde_json::from_value(attempt).unwrap()
    }

    #[test]
    fn a_test_event_without_an_answer_says_why_in_words() {
        let attempt = attempt("SocketError", &json!({ "failure": "connection refused" }));
        let text = attempt_reply(&attempt)
            .render(OutputStyle::Plain)
            .into_string();
        let end = "not answered after 2 ms: connection refused\na dead letter would name it SocketError\n";
        assert!(text.ends_with(end), "{text}");
        assert_eq!(failure_reason(&attempt), "connection refused");
    }

    #[test]
    fn failure_that_the_endpoint_reports_stays_on_its_line() {
        let response = json!({ "status": 200, "headers": {}, "body": "", "bodyIsWhole": true });
        let more = json!({ "response": response, "failure": "no\nDelivered" });
        let attempt = attempt("BadRequest", &more);
        let text = attempt_reply(&attempt)
            .render(OutputStyle::Plain)
            .into_string();
        assert!(
            text.ends_with("\nBadRequest: no⟦U+000A⟧Delivered\n"),
            "{text}"
        );
        assert_eq!(failure_reason(&attempt), "no⟦U+000A⟧Delivered");
    }

    #[test]
    fn a_test_event_that_was_refused_says_the_status() {
        let response = json!({ "status": 404, "headers": {}, "body": "", "bodyIsWhole": true });
        assert_eq!(
            failure_reason(&attempt("NotFound", &json!({ "response": response }))),
            "it answered 404 (NotFound)"
        );
    }
}
