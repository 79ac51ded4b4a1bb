//! The chain of invocations that SQS sees, from a process that looks to the SDK like a Lambda
//! function.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::env;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use bytes::Bytes;
use posthaste_aws::{AwsClients, AwsSettings, QueueUrls};
use posthaste_ports::{OutgoingMessage, QueueName, QueueSender};
use posthaste_system::SystemClock;
use tokio::net::TcpListener;

const ENDPOINT: &str = "AWS_ENDPOINT_URL";
const TRACE_VARIABLE: &str = "_X_AMZN_TRACE_ID";
const TRACE: &str = "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0;Lineage=1:5c3a1f:15";
const SENT: &str =
    r#"{"Successful":[{"Id":"0","MessageId":"a","MD5OfMessageBody":""}],"Failed":[]}"#;

/// Starts this binary again as a function under `endpoint`, only for the test named `test`.
fn start(test: &str, endpoint: &str) -> bool {
    let environment = [
        (ENDPOINT, endpoint),
        ("AWS_LAMBDA_FUNCTION_NAME", "posthaste-test"),
        (TRACE_VARIABLE, TRACE),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .env_clear()
        .envs(environment)
        .args(["--exact", test])
        .status()
        .unwrap()
        .success()
}

/// Sends a message as the function.
async fn send(clients: &AwsClients, endpoint: &str) {
    let url = format!("{endpoint}/000000000000/deadletters");
    let urls = QueueUrls::from([(QueueName::DeadLetters, url)]);
    let queue = clients.queue(QueueName::DeadLetters, urls, SystemClock);
    let message = OutgoingMessage {
        body: Bytes::from_static(b"x"),
        group: None,
        delay: Duration::ZERO,
    };
    queue
        .send_batch(vec![message])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn untraced_clients_alone_say_nothing_of_the_chain() {
    if env::var_os(TRACE_VARIABLE).is_some() {
        let endpoint = env::var(ENDPOINT).unwrap();
        let clients = AwsClients::new(&AwsSettings::from_env(|name| env::var(name).ok()).unwrap());
        send(&clients, &endpoint).await;
        send(&clients.without_tracing(), &endpoint).await;
        return send(&clients, &endpoint).await;
    }
    let (heard, requests) = mpsc::channel();
    let hear = async move |headers: HeaderMap| {
        heard.send(headers).unwrap();
        ([("content-type", "application/x-amz-json-1.0")], SENT)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, Router::new().route("/", post(hear))).await });
    assert!(start(
        "untraced_clients_alone_say_nothing_of_the_chain",
        &endpoint
    ));
    let traces: Vec<_> = requests
        .try_iter()
        .map(|headers| headers.get("x-amzn-trace-id").cloned())
        .collect();
    assert_eq!(
        traces,
        [
            Some(TRACE.parse().unwrap()),
            None,
            Some(TRACE.parse().unwrap())
        ]
    );
}
