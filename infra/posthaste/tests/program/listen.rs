//! `listen` as a process: requests of a server, and what the receiver makes of them.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use crate::common::{Server, failure, posthaste, run};
use serde_json::Value;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A receiver as a process of its own. Dropping it kills it.
struct Receiver {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl Receiver {
    fn start(more: &[&str]) -> Self {
        let arguments = [&["listen", "--port", "0", "--json"], more].concat();
        let mut child = posthaste(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut receiver = Self {
            child,
            lines,
            url: String::new(),
        };
        let hello = receiver.next();
        receiver.url += hello["url"].as_str().unwrap();
        receiver
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Subscribes the receiver to a topic of a new server, and publishes an event there.
fn deliver_to(receiver: &Receiver, validation: &str) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(
        &folder.path().join("data"),
        &["--allow-endpoints", "127.0.0.1/32"],
    );
    let file = folder.path().join("orders.yaml");
    let endpoint = format!(
        "{{ url: \"{}/hooks\", validation: {validation} }}",
        receiver.url
    );
    let text = format!(
        "topics: {{ orders: {{ subscriptions: {{ billing: {{ endpoint: {endpoint}, signing: {{ secrets: \
            [{SECRET}] }} }} }} }} }}"
    );
    std::fs::write(&file, text).unwrap();
    let event = folder.path().join("event.json");
    std::fs::write(
        &event,
        r#"{"specversion":"1.0","id":"1","source":"/s","type":"order.paid"}"#,
    )
    .unwrap();
    for arguments in [
        ["apply", "-f", file.to_str().unwrap()].as_slice(),
        &["publish", "orders", "--file", event.to_str().unwrap()],
    ] {
        let output = server.run(arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    (folder, server)
}

#[test]
fn a_signed_event_is_verified_printed_and_answered() {
    let mut receiver = Receiver::start(&[
        "--secret",
        OTHER_SECRET,
        "--secret",
        SECRET,
        "--answer",
        "202",
    ]);
    let _server = deliver_to(&receiver, "none");
    let request = receiver.next();
    assert_eq!([&request["method"], &request["path"]], ["POST", "/hooks"]);
    assert_eq!(
        (&request["signature"], &request["status"]),
        (&"signature verified".into(), &202.into())
    );
    let event: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
    assert_eq!(event["type"], "order.paid");
    assert_eq!(request["headers"]["aeg-subscription-name"], "billing");
}

#[test]
fn an_event_that_another_secret_signed_is_answered_401() {
    let mut receiver = Receiver::start(&["--secret", OTHER_SECRET]);
    let _server = deliver_to(&receiver, "none");
    let request = receiver.next();
    assert_eq!(request["status"], 401);
    assert_eq!(
        request["signature"],
        "SIGNATURE REFUSED: no signature fits the secret and the body"
    );
}

#[test]
fn both_handshakes_get_consent() {
    for validation in ["CloudEvents", "EventGrid"] {
        let mut receiver = Receiver::start(&[]);
        let _server = deliver_to(&receiver, validation);
        let handshake = receiver.next();
        let event = receiver.next();
        let method = if validation == "CloudEvents" {
            "OPTIONS"
        } else {
            "POST"
        };
        assert_eq!([&handshake["method"], &event["method"]], [method, "POST"]);
        assert!(
            event["body"].as_str().unwrap().contains("order.paid"),
            "{event}"
        );
    }
}

#[test]
fn a_secret_that_is_none_and_a_port_that_is_taken_are_named() {
    let (code, text) = failure(&run(&["listen", "--secret", "abc123"]));
    assert!(
        code == 2 && text.contains("--secret") && !text.contains("abc123"),
        "{code} {text}"
    );
    let receiver = Receiver::start(&[]);
    let port = receiver.url.rsplit(':').next().unwrap();
    let (code, text) = failure(&run(&["listen", "--port", port]));
    assert!(
        code == 1 && text.contains(port) && text.contains("--port"),
        "{code} {text}"
    );
}
