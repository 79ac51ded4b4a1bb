//! The HTTP server: connections, their limits, and their end. What is answered is the functions' own.

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderValue, Request, Response, header};
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use posthaste_core::problem::{Problem, ProblemKind};
use posthaste_ports::{Clock, ObjectStore};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tower::ServiceExt;

use super::metrics::{self, Series};
use super::stage::Stage;

/// How long a client has to send the head of a request, from the connection or its last answer on.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_mins(1);

/// Largest head of a request, and largest piece in which a body is read, in bytes.
const REQUEST_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most headers in a request.
const REQUEST_HEADERS_MAX: usize = 100;

/// Most connections at once; the next ones wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 4096;

/// The form of Prometheus's text.
const METRICS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long accepting rests after it failed, for want of file descriptors for example.
const REST_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// `GET /metrics`, to be merged with the functions' routes. `state` knows which topics there are.
pub fn metrics_route(series: Series, state: impl ObjectStore + Clone + 'static) -> Router {
    let text = move || async move {
        ([(header::CONTENT_TYPE, METRICS_CONTENT_TYPE)], metrics::text(&series, &state).await)
    };
    Router::new().route("/metrics", get(text).fallback(method_not_allowed))
}

async fn method_not_allowed() -> Response<Body> {
    let mut problem = Problem::new(ProblemKind::MethodNotAllowed);
    problem.allow = Some(HeaderValue::from_static("GET, HEAD"));
    problem.into_response().map(Body::from)
}

/// Accepts connections until the stage is over, then ends each after the request it is at.
pub async fn serve<C: Clock>(listener: TcpListener, router: Router, clock: C, mut stage: Stage) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    while stage.is_run() {
        // The semaphore is never closed, so a slot always comes.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { break };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stage.drained() => break,
        };
        match stream {
            Ok((stream, _)) => {
                let (router, stage) = (router.clone(), stage.clone());
                connections.spawn(async move {
                    connection(stream, router, stage).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                clock.sleep(REST_AFTER_FAILURE).await;
            }
        }
        while let Some(ended) = connections.try_join_next() {
            note_panic(ended);
        }
    }
    // Whoever connects from now on is refused, instead of waiting for an answer that never comes.
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        note_panic(ended);
    }
}

async fn connection(stream: TcpStream, router: Router, mut stage: Stage) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "connection not set up");
        return;
    }
    let service = router.map_request(|request: Request<Incoming>| request.map(Body::new));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_HEAD_TIMEOUT)
        .max_buf_size(REQUEST_HEAD_BYTES_MAX)
        .max_headers(REQUEST_HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stage.drained() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// A fault of ours takes its own connection with it, and no other.
fn note_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a request failed inside");
    }
}

#[cfg(test)]
mod tests;
