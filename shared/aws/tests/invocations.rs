//! Functions in processes of their own under a fake Runtime API, as Lambda sees them.

mod runtime_api;

use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use lambda_runtime::Error;
use posthaste_aws::lambda::{
    ANSWER_MARGIN, BatchHandler, ScheduledFunction, SqsBatch, run_batches,
    run_batches_and_schedule, run_http, run_scheduled,
};
use posthaste_aws::telemetry::{self, MetricsBy, TelemetrySettings};
use posthaste_ports::Clock;
use posthaste_ports::queue::BatchResponse;
use posthaste_system::SystemClock;
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;

use runtime_api::{Answer, Function, TIMEOUT};

fn start_telemetry() {
    telemetry::start(&TelemetrySettings {
        log_level: LevelFilter::TRACE,
        metrics_namespace: "test".to_owned(),
        metrics_by: MetricsBy::Stack,
    });
}

/// A record whose body names the act of its handler.
fn record(id: &str, body: &str) -> Value {
    json!({
        "messageId": id, "receiptHandle": "AQEB", "body": body, "eventSource": "aws:sqs",
        "attributes": {
            "ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183", "SenderId": "AIDA",
        },
        "messageAttributes": {}, "md5OfBody": "00", "awsRegion": "eu-west-1",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:deliveries",
    })
}

fn event(records: &[Value]) -> Value {
    json!({ "Records": records })
}

fn failed(ids: &[&str]) -> Answer {
    let failures: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "itemIdentifier": id }))
        .collect();
    Answer::Response(json!({ "batchItemFailures": failures }))
}

/// Performs the acts that bodies name.
struct Obedient;

impl BatchHandler for Obedient {
    async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
        let left = deadline.saturating_sub(SystemClock.monotonic());
        // The process may take a while to look at its clock.
        assert!(
            left + ANSWER_MARGIN <= TIMEOUT && left > TIMEOUT / 2,
            "{left:?}"
        );
        assert_eq!(batch.queue, "deliveries");
        let mut response = BatchResponse::default();
        for message in batch.messages {
            metrics::counter!("Handled", "topic" => "orders").increment(1);
            assert_ne!(message.body, "panic", "on purpose");
            if message.body == "fail" {
                response.failures.push(message.id);
            }
        }
        tracing::info!("handled");
        response
    }
}

fn obedient(test: &str) -> Function {
    Function::start(test, || {
        start_telemetry();
        run_batches("deliver", Obedient, SystemClock)
    })
}

#[test]
fn a_batch_is_answered_message_by_message() {
    let function = obedient("a_batch_is_answered_message_by_message");
    let odd = json!({ "messageId": "odd" });
    assert_eq!(
        function.invoke(event(&[record("a", "ok"), record("b", "fail"), odd])),
        failed(&["b", "odd"])
    );
    assert_eq!(
        function.invoke(event(&[json!({ "messageId": "alone" })])),
        failed(&["alone"])
    );
    assert_eq!(function.invoke(event(&[])), failed(&[]));
    assert_eq!(function.invoke(event(&[record("a", "ok")])), failed(&[]));
}

#[test]
fn a_panic_fails_its_batch_and_leaves_the_process_usable() {
    let function = obedient("a_panic_fails_its_batch_and_leaves_the_process_usable");
    assert_eq!(
        function.invoke(event(&[record("a", "ok"), record("b", "panic")])),
        failed(&["a", "b"])
    );
    let (answer, lines) = function.invoke_and_end(event(&[record("c", "ok")]));
    assert_eq!(answer, failed(&[]));
    let panics: Vec<_> = lines
        .iter()
        .filter(|line| line["level"] == "ERROR")
        .collect();
    let [panic] = &panics[..] else {
        panic!("{lines:#?}")
    };
    assert!(
        panic["message"]
            .as_str()
            .unwrap()
            .starts_with("panicked: assertion"),
        "{panic}"
    );
    assert!(
        panic["location"]
            .as_str()
            .unwrap()
            .contains("invocations.rs"),
        "{panic}"
    );
}

/// An event that is not a queue's fails its invocation, and the process stays usable.
#[test]
fn event_of_another_source_fails_and_keeps_the_process_usable() {
    let function = obedient("event_of_another_source_fails_and_keeps_the_process_usable");
    for odd in [json!({}), json!([]), json!("x")] {
        assert!(matches!(function.invoke(odd), Answer::Error(..)));
    }
    let nameless = event(&[record("a", "ok"), json!({ "body": "x" })]);
    let message = "record 1 of the event has no messageId".to_owned();
    assert_eq!(
        function.invoke(nameless),
        Answer::Error("BadEvent".to_owned(), message)
    );
    assert_eq!(function.invoke(event(&[record("a", "ok")])), failed(&[]));
}

/// Metrics are written before the response, and every log line names its request.
#[test]
fn metrics_precede_the_response_and_lines_name_their_request() {
    let function = obedient("metrics_precede_the_response_and_lines_name_their_request");
    function.invoke(event(&[record("a", "panic")]));
    let (_, lines) = function.invoke_and_end(event(&[record("a", "ok"), record("b", "ok")]));
    let handled: Vec<_> = lines
        .iter()
        .filter(|line| line.get("Handled").is_some())
        .collect();
    assert_eq!(
        handled
            .iter()
            .map(|line| &line["Handled"])
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(handled[0]["topic"], "orders");
    assert_eq!(
        handled[0]["_aws"]["CloudWatchMetrics"][0]["Namespace"],
        "test"
    );
    for line in lines.iter().filter(|line| line.get("_aws").is_none()) {
        assert_eq!(
            line["span"]["requestId"], "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
            "{line}"
        );
    }
    assert!(
        lines.iter().any(|line| line["message"] == "handled"),
        "{lines:#?}"
    );
}

/// Messages that are handed back are shown at once, by their age and their function.
#[test]
fn returned_messages_are_shown_at_once_by_age_and_function() {
    let function = obedient("returned_messages_are_shown_at_once_by_age_and_function");
    for body in ["ok", "fail", "panic", "ok", "ok"] {
        function.invoke(event(&[record("a", body)]));
    }
    let (_, lines) = function.invoke_and_end(event(&[json!({ "messageId": "odd" })]));
    let shown: Vec<_> = lines
        .iter()
        .filter(|line| line.get("OldestReturnedMessageInSeconds").is_some())
        .collect();
    let ages: Vec<_> = shown
        .iter()
        .map(|line| line["OldestReturnedMessageInSeconds"].as_f64())
        .collect();
    // The records are of 2018. The third value is that of the rest.
    assert!(
        matches!(ages[..], [Some(failed), Some(panicked), Some(0.0)] if failed.min(panicked) > 2e8),
        "{ages:?}"
    );
    for line in shown {
        assert_eq!(line["function"], "deliver");
        assert_eq!(
            line["_aws"]["CloudWatchMetrics"][0]["Dimensions"],
            json!([["function"]])
        );
    }
}

#[test]
fn an_event_is_not_logged_whatever_the_level() {
    let function = obedient("an_event_is_not_logged_whatever_the_level");
    let (_, lines) = function.invoke_and_end(event(&[
        record("a", "s3cr3t"),
        json!({ "messageId": "b", "body": ["s3cr3t"] }),
    ]));
    assert!(!lines.is_empty());
    for line in lines {
        assert!(!line.to_string().contains("s3cr3t"), "{line}");
    }
}

/// Runs well, badly, and not at all, in turn.
struct InTurn(std::sync::atomic::AtomicUsize);

impl ScheduledFunction for InTurn {
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        assert!(deadline > SystemClock.monotonic());
        // A gauge is written with its invocation, whatever the response is; a counter may wait for
        // a later one.
        metrics::gauge!("Run").set(1.0);
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 3 {
            0 => Ok(()),
            1 => Err("the store does not answer".into()),
            _ => panic!("on purpose"),
        }
    }
}

/// The event of a schedule.
fn schedule() -> Value {
    json!({
        "version": "0", "id": "53dc4d37", "detail-type": "Scheduled Event", "source": "aws.events",
        "account": "123456789012", "time": "2026-11-21T10:00:00Z", "region": "eu-west-1",
        "resources": [], "detail": {},
    })
}

fn error(kind: &str, message: &str) -> Answer {
    Answer::Error(kind.to_owned(), message.to_owned())
}

#[test]
fn a_run_that_fails_fails_its_invocation() {
    let function = Function::start("a_run_that_fails_fails_its_invocation", || {
        start_telemetry();
        run_scheduled(InTurn(0.into()), SystemClock)
    });
    let schedule = schedule();
    assert_eq!(
        function.invoke(schedule.clone()),
        Answer::Response(Value::Null)
    );
    assert_eq!(
        function.invoke(json!({})),
        error("RunFailed", "the run failed: the store does not answer")
    );
    assert_eq!(
        function.invoke(schedule.clone()),
        error("Panicked", "the run failed: the handler panicked")
    );
    let (answer, lines) = function.invoke_and_end(schedule);
    assert_eq!(answer, Answer::Response(Value::Null));
    assert_eq!(
        lines.iter().filter(|line| line["Run"] == 1.0).count(),
        4,
        "{lines:#?}"
    );
}

#[test]
fn function_of_queue_and_schedule_answers_each_in_its_form() {
    let function = Function::start(
        "function_of_queue_and_schedule_answers_each_in_its_form",
        || {
            start_telemetry();
            run_batches_and_schedule("record", Obedient, InTurn(0.into()), SystemClock)
        },
    );
    assert_eq!(
        function.invoke(event(&[record("a", "ok"), record("b", "fail")])),
        failed(&["b"])
    );
    assert_eq!(function.invoke(schedule()), Answer::Response(Value::Null));
    assert_eq!(function.invoke(event(&[])), failed(&[]));
    assert_eq!(
        function.invoke(schedule()),
        error("RunFailed", "the run failed: the store does not answer")
    );
    assert_eq!(
        function.invoke(event(&[record("a", "panic")])),
        failed(&["a"])
    );
    assert!(matches!(
        function.invoke(json!({ "Records": {} })),
        Answer::Error(..)
    ));
    assert_eq!(function.invoke(event(&[record("a", "ok")])), failed(&[]));
}

async fn panics() {
    metrics::counter!("Asked").increment(1);
    let yes = true;
    assert!(!yes, "on purpose");
}

#[test]
fn a_function_url_is_answered_by_the_router() {
    let function = Function::start("a_function_url_is_answered_by_the_router", || {
        start_telemetry();
        let echo = post(|body: axum::body::Bytes| async { body });
        run_http(
            Router::new()
                .route("/echo", echo)
                .route("/panic", get(panics)),
            SystemClock,
        )
    });
    let request = |method: &str, path: &str, body: Option<&str>| {
        json!({
            "version": "2.0", "rawPath": path, "rawQueryString": "", "headers": { "host": "x" },
            "body": body, "isBase64Encoded": body.is_some(),
            "requestContext": { "http": { "method": method, "path": path } },
        })
    };
    let status = |answer: &Answer| match answer {
        Answer::Response(response) => response["statusCode"].as_u64(),
        Answer::Error(..) => None,
    };
    let echoed = function.invoke(request("POST", "/echo", Some("AP/+gA==")));
    let Answer::Response(response) = &echoed else {
        panic!("{echoed:?}")
    };
    assert_eq!(
        (&response["body"], &response["isBase64Encoded"]),
        (&json!("AP/+gA=="), &json!(true))
    );
    assert_eq!(
        status(&function.invoke(request("GET", "/panic", None))),
        Some(500)
    );
    assert_eq!(status(&function.invoke(json!({ "Records": [] }))), None);
    let (answer, lines) = function.invoke_and_end(request("GET", "/nothing", None));
    assert_eq!(status(&answer), Some(404));
    assert_eq!(
        lines.iter().filter(|line| line["Asked"] == 1).count(),
        1,
        "{lines:#?}"
    );
}
