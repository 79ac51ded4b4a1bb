//! `listen`: a receiver that prints what arrives, and answers as the command line says. For a first
//! webhook, and for people who write receivers.

mod received;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use posthaste_core::model::{SigningSecret, SigningSecretError};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::{Value, json};

use self::received::render_request;
use crate::cli::{GlobalOptions, ListenArgs};
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;
use crate::receiver::{
    ReceivedRequest, SignatureVerdict, WebhookHost, listen_on, receive_webhooks,
};
use crate::signals::SignalListener;
use crate::terminal::{StandardStream, TerminalText};
use crate::threads::server_runtime;

/// The question of CloudEvents' handshake, and the header of the consent.
const REQUEST_ORIGIN: &str = "webhook-request-origin";
const ALLOWED_ORIGIN: &str = "webhook-allowed-origin";

/// Error of `listen`.
#[derive(Debug, thiserror::Error)]
enum ListenError {
    /// A secret that is none. Its text is not repeated.
    #[error("--secret is no signing secret")]
    Secret(#[source] SigningSecretError),
    #[error("failed to listen on 127.0.0.1:{port}")]
    Port { port: u16, source: io::Error },
    #[error("failed to run the receiver")]
    Process(#[source] io::Error),
}

impl CommandFailure for ListenError {
    fn exit_code(&self) -> Option<u8> {
        matches!(self, Self::Secret(_)).then_some(2)
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Secret(_) => {
                Some("`apply` shows a subscription's secret when it is made".to_owned())
            }
            Self::Port { .. } => Some("another --port, or 0 for a free one".to_owned()),
            Self::Process(_) => None,
        }
    }
}

/// The host of the receiver: how it answers, and how it prints.
struct PrintingHost {
    secrets: Vec<SigningSecret>,
    answer: StatusCode,
    delay: Duration,
    is_json: bool,
}

/// Listens until a signal comes.
pub fn run(global: &GlobalOptions, arguments: &ListenArgs) -> Result<CommandReply, CommandError> {
    let secrets = arguments
        .secrets
        .iter()
        .map(|text| SigningSecret::parse(text))
        .collect::<Result<_, _>>();
    let host = PrintingHost {
        secrets: secrets.map_err(ListenError::Secret)?,
        answer: arguments.answer,
        delay: arguments.delay,
        is_json: global.json,
    };
    let runtime = server_runtime().map_err(ListenError::Process)?;
    runtime.block_on(receive_until_signal(arguments.port, host))?;
    Ok(CommandReply::without_json())
}

async fn receive_until_signal(port: u16, host: PrintingHost) -> Result<(), ListenError> {
    let mut signals = SignalListener::listen_with_hangup().map_err(ListenError::Process)?;
    let bound = listen_on(port)
        .await
        .and_then(|it| Ok((it.local_addr()?, it)));
    let (address, listener) = bound.map_err(|source| ListenError::Port { port, source })?;
    host.print_greeting(address);
    tokio::select! {
        served = receive_webhooks(listener, Arc::new(host)) => served.map_err(ListenError::Process),
        _ = signals.next() => Ok(()),
    }
}

impl WebhookHost for PrintingHost {
    fn secrets(&self) -> &[SigningSecret] {
        &self.secrets
    }

    async fn answer(&self, request: ReceivedRequest) -> Response {
        let status = if let SignatureVerdict::Refused(_) = request.verdict {
            StatusCode::UNAUTHORIZED
        } else {
            self.answer
        };
        let response =
            handshake_response(&request, status).unwrap_or_else(|| status.into_response());
        // Before the wait: a client that gives up in it ends this call.
        print_now(&render_request(&request, status, self.is_json));
        SystemClock.sleep(self.delay).await;
        response
    }
}

/// The consent that a handshake asks for, of CloudEvents or of Event Grid.
fn handshake_response(request: &ReceivedRequest, status: StatusCode) -> Option<Response> {
    if request.method == Method::OPTIONS {
        let origin = request.headers.get(REQUEST_ORIGIN)?.clone();
        return Some((status, [(ALLOWED_ORIGIN, origin)]).into_response());
    }
    let events: Value = serde_json::from_slice(&request.body).ok()?;
    let code = events.get(0)?.get("data")?.get("validationCode")?;
    Some((status, axum::Json(json!({ "validationResponse": code }))).into_response())
}

impl PrintingHost {
    fn print_greeting(&self, address: SocketAddr) {
        let Self {
            secrets, answer, ..
        } = self;
        let signatures = match secrets.len() {
            0 => "not verified: --secret gives the subscription's secret".to_owned(),
            1 => "verified with one secret".to_owned(),
            several => format!("verified with {several} secrets"),
        };
        if self.is_json {
            let hello = json!({ "url": format!("http://{address}"), "secrets": secrets.len() });
            print_now(&TerminalText::from_json(hello));
        } else {
            print_now(&TerminalText::from_text(&format!(
                "listening on http://{address}, answering {answer}; Ctrl-C ends it\nsignatures: {signatures}"
            )));
        }
    }
}

/// Prints at once, also into a pipe. A reader that is gone does not stop the receiver.
fn print_now(shown: &TerminalText) {
    let _ = StandardStream::Output.write_line(shown);
}
