//! Lambda's Runtime API for one program: it hands out events one at a time and takes the answers.
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>

use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::http::{Request, Response, Server};

/// The path at which a program asks for its next event.
const NEXT: &str = "GET /2018-06-01/runtime/invocation/next";

/// Longest time for an invocation, which the API tells the program.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A Runtime API that one program talks to.
#[derive(Debug)]
pub(crate) struct RuntimeApi {
    server: Server,
    events: Sender<Vec<u8>>,
}

/// An invocation's moments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Invoked {
    /// The time at which the event was handed out.
    pub(crate) given: Instant,
    /// The time at which the answer came.
    pub(crate) answered: Instant,
}

impl RuntimeApi {
    /// Listens on loopback.
    pub(crate) fn start() -> Self {
        let (events, waiting) = mpsc::channel::<Vec<u8>>();
        let waiting = Mutex::new(waiting);
        let server = Server::start(None, move |request: &Request| {
            if request.line != NEXT {
                assert!(
                    request.line.ends_with("/response"),
                    "{}: {}",
                    request.line,
                    String::from_utf8_lossy(&request.body)
                );
                return Response::new(202, "");
            }
            let event = waiting.lock().ok().and_then(|waiting| waiting.recv().ok());
            next(event.unwrap_or_default())
        });
        Self { server, events }
    }

    /// The value of `AWS_LAMBDA_RUNTIME_API`.
    pub(crate) fn address(&self) -> String {
        self.server.address.to_string()
    }

    /// The time at which the program first asked for an event.
    pub(crate) fn first_next(&self) -> Instant {
        self.nth_next(0)
    }

    /// Hands out so many copies of an event and waits until the program asks for one more.
    pub(crate) fn invoke(&self, event: &[u8], times: usize) -> Invoked {
        // Of each invocation there are two requests, after the first that asks.
        let before = self.server.log.len() / 2;
        self.nth_next(before);
        for _ in 0..times {
            self.events.send(event.to_vec()).expect("the server runs");
        }
        self.nth_next(before + times);
        self.server.log.wait_for("the log of an invocation", |log| {
            let given = log[2 * before].written?;
            Some(Invoked {
                given,
                answered: log[2 * (before + times) - 1].read,
            })
        })
    }

    fn nth_next(&self, n: usize) -> Instant {
        // Questions and answers alternate.
        self.server
            .log
            .wait_for("a program to ask for its next event", |log| {
                log.get(2 * n).map(|exchange| exchange.read)
            })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program compares the deadline with the real time"
)]
fn next(event: Vec<u8>) -> Response {
    let deadline = SystemTime::now() + TIMEOUT;
    let deadline_ms = deadline
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    Response::new(200, event)
        .with("content-type", "application/json")
        .with(
            "lambda-runtime-aws-request-id",
            "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
        )
        .with("lambda-runtime-deadline-ms", &deadline_ms.to_string())
        .with(
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:123456789012:function:bench",
        )
        .with(
            "lambda-runtime-trace-id",
            "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419",
        )
}
