//! `receive_until_signal`: a receiver on this machine. It verifies signatures, prints what arrives, and answers
//! as the command line says. For a first webhook, and for people who write receivers.

mod received;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use posthaste_core::model::{SigningSecret, SigningSecretError};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use self::received::{ReceivedRequest, SignatureVerdict};
use crate::cli::{GlobalOptions, ListenArgs};
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;
use crate::signals::SignalListener;
use crate::signature::verify_signature;
use crate::terminal::{StandardStream, TerminalText};
use crate::threads::server_runtime;

/// Largest body that is read: a batch has 1 MB, or one event of 1,000,000 bytes and its envelope.
const BODY_BYTES_MAX: usize = 16 << 20;

/// The question of CloudEvents' handshake, and the header of the consent.
const REQUEST_ORIGIN: &str = "webhook-request-origin";
const ALLOWED_ORIGIN: &str = "webhook-allowed-origin";

/// Error of `receive_until_signal`.
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

/// The receiver: how it answers, and how it prints.
struct WebhookReceiver {
    secrets: Vec<SigningSecret>,
    answer: StatusCode,
    delay: Duration,
    is_json: bool,
}

/// Listens until a signal comes.
pub(crate) fn run(
    global: &GlobalOptions,
    arguments: &ListenArgs,
) -> Result<CommandReply, CommandError> {
    let secrets = arguments
        .secrets
        .iter()
        .map(|text| SigningSecret::parse(text))
        .collect::<Result<_, _>>();
    let receiver = WebhookReceiver {
        secrets: secrets.map_err(ListenError::Secret)?,
        answer: arguments.answer,
        delay: arguments.delay,
        is_json: global.json,
    };
    let runtime = server_runtime().map_err(ListenError::Process)?;
    runtime.block_on(receive_until_signal(arguments.port, receiver))?;
    Ok(CommandReply::without_json())
}

async fn receive_until_signal(port: u16, receiver: WebhookReceiver) -> Result<(), ListenError> {
    let mut signals = SignalListener::listen_with_hangup().map_err(ListenError::Process)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = TcpListener::bind(address)
        .await
        .and_then(|it| Ok((it.local_addr()?, it)));
    let (address, listener) = bound.map_err(|source| ListenError::Port { port, source })?;
    receiver.print_greeting(address);
    let router = Router::new()
        .fallback(receive_request)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
    let router = router.with_state(Arc::new(receiver));
    tokio::select! {
        served = axum::serve(listener, router) => served.map_err(ListenError::Process),
        _ = signals.next() => Ok(()),
    }
}

async fn receive_request(
    State(receiver): State<Arc<WebhookReceiver>>,
    method: Method,
    uri: http::Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let at = SystemClock.now();
    let verdict = match receiver.secrets.as_slice() {
        [] => SignatureVerdict::NotChecked,
        secrets => verify_signature(secrets, &headers, &body, at).into(),
    };
    let status = if let SignatureVerdict::Refused(_) = verdict {
        StatusCode::UNAUTHORIZED
    } else {
        receiver.answer
    };
    let response = handshake_response(&method, &headers, &body, status)
        .unwrap_or_else(|| status.into_response());
    // Before the wait: a client that gives up in it ends this call.
    print_now(
        &ReceivedRequest {
            at,
            method,
            uri,
            headers,
            body,
            verdict,
            status,
        }
        .render(receiver.is_json),
    );
    SystemClock.sleep(receiver.delay).await;
    response
}

/// The consent that a handshake asks for, of CloudEvents or of Event Grid.
fn handshake_response(
    method: &Method,
    headers: &HeaderMap,
    body: &Bytes,
    status: StatusCode,
) -> Option<Response> {
    if method == Method::OPTIONS {
        let origin = headers.get(REQUEST_ORIGIN)?.clone();
        return Some((status, [(ALLOWED_ORIGIN, origin)]).into_response());
    }
    let events: Value = serde_json::from_slice(body).ok()?;
    let code = events.get(0)?.get("data")?.get("validationCode")?;
    Some((status, axum::Json(json!({ "validationResponse": code }))).into_response())
}

impl WebhookReceiver {
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
