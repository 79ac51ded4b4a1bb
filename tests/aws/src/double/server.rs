//! The HTTP side: connections, whole requests, and what a fault does to a request or its answer.

use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::answer::{Answer, AnswerBody};
use super::call::Call;
use super::journal::NO_ANSWER;
use super::script::Fault;
use super::shared::Shared;

/// Largest request: the largest object a test puts, with room for JSON's escapes of the largest
/// message.
const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The reason for which a connection closes without an answer.
#[derive(Debug, thiserror::Error)]
enum Closed {
    #[error("the script says so")]
    Scripted,
    #[error("the request could not be read")]
    Unreadable,
    #[error("the answer cannot be written as HTTP")]
    Answer(#[source] http::Error),
}

/// Accepts connections until it is dropped, which ends them too.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(connection(stream, shared.clone()));
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| handle(request, shared.clone()));
    // An error is a connection that closed, as scripted or by the client.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn handle(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<AnswerBody>, Closed> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, REQUEST_BYTES_MAX)
        .collect()
        .await
        .map_err(|_| Closed::Unreadable)?;
    let answer = answer(&parts, body.to_bytes(), &shared).await?;
    answer
        .numbered(shared.lock().number())
        .into_response()
        .map_err(Closed::Answer)
}

async fn answer(parts: &Parts, body: Bytes, shared: &Shared) -> Result<Answer, Closed> {
    let call = match Call::parse(parts, body) {
        Ok(call) => call,
        Err(answer) => return Ok(answer),
    };
    let fault = shared.lock().script.take(call.action());
    match &fault {
        Some(Fault::Refused(refusal)) => {
            let answer = call.refuse(*refusal);
            note(&call, answer.status.as_u16(), shared);
            Ok(answer)
        }
        Some(Fault::RequestLost) => {
            note(&call, NO_ANSWER, shared);
            Err(Closed::Scripted)
        }
        Some(Fault::SilentBefore) => {
            note(&call, NO_ANSWER, shared);
            pending().await
        }
        Some(Fault::AnswerLost) => {
            call.perform(&[], shared).await;
            Err(Closed::Scripted)
        }
        Some(Fault::AnswerCut) => Ok(call.perform(&[], shared).await.cut()),
        Some(Fault::SilentAfter) => {
            call.perform(&[], shared).await;
            pending().await
        }
        Some(Fault::Entries(entries)) => Ok(call.perform(entries, shared).await),
        None => Ok(call.perform(&[], shared).await),
    }
}

/// Writes a request without an effect into the journal.
fn note(call: &Call, status: u16, shared: &Shared) {
    shared.lock().journal.push(call.seen(status));
}
