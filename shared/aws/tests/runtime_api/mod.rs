//! A fake of Lambda's Runtime API, and a function under it: the test's own binary, started once
//! more. <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::env;
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio, exit};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, mpsc as channel, oneshot};

const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";

/// The time that an invocation has.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

/// No step here takes a second; a function that hangs must not hang the tests.
const PATIENCE: Duration = Duration::from_secs(30);

/// The response of a function to Lambda.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// `POST …/response`.
    Response(Value),
    /// `POST …/error`: the error's type and message.
    Error(String, String),
}

/// A function in a process of its own. It is ended with this.
pub(crate) struct Function {
    events: channel::UnboundedSender<Value>,
    answers: Receiver<FunctionAnswer>,
    child: Child,
    output: Option<JoinHandle<Vec<Value>>>,
    _server: Runtime,
}

/// A response, and the way to let the function continue.
struct FunctionAnswer {
    answer: Answer,
    go_on: oneshot::Sender<()>,
}

struct Api {
    events: Mutex<channel::UnboundedReceiver<Value>>,
    answers: Sender<FunctionAnswer>,
}

impl Function {
    /// Starts `program` as the function of the test named `test`. The test runs in the new process
    /// as well, calls this again, and becomes the program.
    pub(crate) fn start<F>(test: &str, program: impl FnOnce() -> F) -> Self
    where
        F: Future<Output = Result<(), lambda_runtime::Error>>,
    {
        if env::var_os(RUNTIME_API).is_some() {
            let ended = Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(program());
            exit(i32::from(ended.is_err()));
        }
        let server = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (events, events_there) = channel::unbounded_channel();
        let (answers_there, answers) = mpsc::channel();
        let api = Api {
            events: Mutex::new(events_there),
            answers: answers_there,
        };
        let address = server.block_on(serve(api));
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(RUNTIME_API, address)
            .env("AWS_LAMBDA_FUNCTION_NAME", "posthaste-test")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let output = Some(thread::spawn(|| {
            stdout
                .lines()
                .filter_map(|line| json(&line.unwrap()))
                .collect()
        }));
        Self {
            events,
            answers,
            child,
            output,
            _server: server,
        }
    }

    /// Invokes the function and waits for its response.
    pub(crate) fn invoke(&self, event: Value) -> Answer {
        let FunctionAnswer { answer, go_on } = self.wait_for_answer(event);
        go_on.send(()).unwrap();
        answer
    }

    /// Invokes the function, and ends its process before it knows that its response has arrived.
    /// Returns all JSON lines that it had written by then, in this and in earlier invocations.
    pub(crate) fn invoke_and_end(mut self, event: Value) -> (Answer, Vec<Value>) {
        let told = self.wait_for_answer(event);
        self.child.kill().unwrap();
        let lines = self.output.take().map(|output| output.join().unwrap());
        (told.answer, lines.unwrap_or_default())
    }

    fn wait_for_answer(&self, event: Value) -> FunctionAnswer {
        self.events.send(event).unwrap();
        self.answers.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The test harness of the child writes to the same output, also in front of a line.
fn json(line: &str) -> Option<Value> {
    serde_json::from_str(&line[line.find('{')?..]).ok()
}

async fn serve(api: Api) -> String {
    let invocation = "/2018-06-01/runtime/invocation";
    let router = Router::new()
        .route(&format!("{invocation}/next"), get(next))
        .route(&format!("{invocation}/{{id}}/response"), post(response))
        .route(&format!("{invocation}/{{id}}/error"), post(error))
        .with_state(Arc::new(api));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

const ID: &str = "8476a536-e9f4-11e8-9739-2dfe598c3fcd";

async fn next(State(api): State<Arc<Api>>) -> impl IntoResponse {
    let event = api.events.lock().await.recv().await.unwrap();
    let deadline = SystemClock.now() + TIMEOUT;
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("lambda-runtime-aws-request-id", ID.to_owned()),
        (
            "lambda-runtime-deadline-ms",
            deadline.as_millis().to_string(),
        ),
        (
            "lambda-runtime-trace-id",
            "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700".to_owned(),
        ),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:eu-west-1:123456789012:function:test".to_owned(),
        ),
    ];
    (headers, event.to_string())
}

async fn response(State(api): State<Arc<Api>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    assert_eq!(id, ID);
    tell(
        &api,
        Answer::Response(serde_json::from_slice(&body).unwrap()),
    )
    .await
}

async fn error(State(api): State<Arc<Api>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    assert_eq!(id, ID);
    let error: Value = serde_json::from_slice(&body).unwrap();
    let text = |member: &str| error[member].as_str().unwrap().to_owned();
    tell(&api, Answer::Error(text("errorType"), text("errorMessage"))).await
}

async fn tell(api: &Api, answer: Answer) -> StatusCode {
    let (go_on, going_on) = oneshot::channel();
    // The receiver is gone when the test has ended.
    let _ = api.answers.send(FunctionAnswer { answer, go_on });
    let _ = going_on.await;
    StatusCode::ACCEPTED
}
