//! The chain of invocations in requests to SQS. The programs run as processes under a fake of the
//! Runtime API, which names the chain, and a fake of SQS, both at one address.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, helpers included, an error is a failed test"
)]

use std::future::pending;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

const TRACE: &str = "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0;Lineage=1:5c3a1f:15";

/// No step here takes a second; a program that hangs must not hang the tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program, ended with this.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts a function of the program that delivers.
fn start(function: &str, address: &str) -> Program {
    let endpoint = format!("http://{address}");
    let queue = |name: &str| format!("{endpoint}/000000000000/{name}");
    let environment = [
        ("AWS_LAMBDA_RUNTIME_API", address.to_owned()),
        ("_HANDLER", function.to_owned()),
        ("AWS_LAMBDA_FUNCTION_NAME", "posthaste-test".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128".to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_REGION", "eu-west-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_ENDPOINT_URL", endpoint.clone()),
        ("STATE_BUCKET", "state".to_owned()),
        ("DEAD_LETTER_BUCKET", "dead".to_owned()),
        ("LOG_BUCKET", "log".to_owned()),
        ("DELIVERIES_QUEUE_URL", queue("deliveries")),
        ("DEADLETTERS_QUEUE_URL", queue("deadletters")),
        ("REDRIVE_QUEUE_URL", queue("redrive")),
        ("RECORDS_QUEUE_URL", queue("records")),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste-delivery"));
    command
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    Program(command.spawn().unwrap())
}

/// An invocation in a chain, with a message of a newer version, which always goes back to its
/// queue.
fn invocation(queue: &str) -> impl IntoResponse {
    let event = json!({ "Records": [{
        "messageId": "a", "receiptHandle": "AQEB", "body": "{\"v\":4294967295}", "eventSource": "aws:sqs",
        "attributes": { "ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183" },
        "eventSourceARN": format!("arn:aws:sqs:eu-west-1:000000000000:{queue}"),
    }] });
    let headers = [
        ("content-type", "application/json"),
        (
            "lambda-runtime-aws-request-id",
            "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
        ),
        ("lambda-runtime-deadline-ms", "4102444800000"),
        ("lambda-runtime-trace-id", TRACE),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:eu-west-1:000000000000:function:test",
        ),
    ];
    (headers, event.to_string())
}

/// Invokes a function with a message of `queue` and returns the headers of its first request to
/// SQS. That request gets no response, so that there is neither a second one nor another
/// invocation.
async fn first_request(function: &str, queue: &'static str) -> HeaderMap {
    let (heard, mut requests) = mpsc::channel(1);
    let hear = async move |headers: HeaderMap| {
        heard.send(headers).await.unwrap();
        pending::<()>().await;
    };
    let router = Router::new()
        .route(
            "/2018-06-01/runtime/invocation/next",
            get(async || invocation(queue)),
        )
        .route("/", post(hear));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _program = start(function, &listener.local_addr().unwrap().to_string());
    let server = tokio::spawn(async { axum::serve(listener, router).await });
    let request = timeout(PATIENCE, requests.recv()).await.unwrap().unwrap();
    server.abort();
    request
}

async fn check(function: &str, queue: &'static str, expected: Option<&str>) {
    let request = first_request(function, queue).await;
    assert_eq!(
        request["x-amz-target"], "AmazonSQS.SendMessageBatch",
        "{function}"
    );
    let trace = request
        .get("x-amzn-trace-id")
        .map(|trace| trace.to_str().unwrap());
    assert_eq!(trace, expected, "{function}");
}

#[tokio::test]
async fn deadletter_alone_says_nothing_of_the_chain() {
    check("deadletter", "deadletters", None).await;
    check("deadletter", "redrive", None).await;
    check("deliver", "deliveries", Some(TRACE)).await;
}
