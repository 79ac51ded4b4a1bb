//! Answers: what is shown, with its version, and problems. What fails inside is logged here and nowhere shown.

use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, ETAG, HeaderValue};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_ports::{ErrorKind, Object, PortError};
use serde::Serialize;

/// How long a client should wait when a store does not answer and says nothing itself.
pub(crate) const UNAVAILABLE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// A problem as an answer.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Problem);

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.0.into_response().map(Body::from)
    }
}

/// What is shown, as JSON that nobody may keep: some of it is secret.
#[derive(Debug)]
pub(crate) struct Shown<T> {
    /// The status.
    pub(crate) status: StatusCode,
    /// The version, quoted, where it has one.
    pub(crate) etag: Option<String>,
    /// What is shown.
    pub(crate) body: T,
}

impl<T> Shown<T> {
    /// A 200 without a version.
    pub(crate) fn new(body: T) -> Self {
        Self { status: StatusCode::OK, etag: None, body }
    }

    /// A 200 with its version.
    pub(crate) fn versioned(body: T, etag: String) -> Self {
        Self { status: StatusCode::OK, etag: Some(etag), body }
    }

    /// The answer to a put: 201 where it made what was not there.
    pub(crate) fn put(body: T, etag: String, is_new: bool) -> Self {
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        Self { status, etag: Some(etag), body }
    }
}

impl<T: Serialize> IntoResponse for Shown<T> {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(etag) = self.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
            headers.insert(ETAG, etag);
        }
        response
    }
}

/// What a client is told when a store fails; the cause is logged.
pub(crate) fn store_problem(error: &PortError) -> Problem {
    tracing::error!(error = error as &dyn Error, "a store failed");
    match error.kind {
        ErrorKind::Full => Problem::new(ProblemKind::StorageFull),
        ErrorKind::Damaged => damaged(error),
        ErrorKind::Throttled { retry_after: Some(wait) } => {
            Problem::new(ProblemKind::Unavailable).retry_after(wait)
        }
        ErrorKind::NotFound
        | ErrorKind::PreconditionFailed
        | ErrorKind::Throttled { retry_after: None }
        | ErrorKind::TimedOut
        | ErrorKind::Denied
        | ErrorKind::Invalid
        | ErrorKind::Other => Problem::new(ProblemKind::Unavailable).retry_after(UNAVAILABLE_RETRY_AFTER),
    }
}

/// An object of a list. A damaged one is logged and left out: it must not hide the others.
pub(crate) fn listed(read: Result<Option<Object>, PortError>) -> Result<Option<Object>, Problem> {
    match read {
        Err(error) if error.kind == ErrorKind::Damaged => {
            tracing::error!(error = &error as &dyn Error, "a damaged object is left out");
            Ok(None)
        }
        read => read.map_err(|error| store_problem(&error)),
    }
}

/// The problem of a damaged object: a retry does not help. The cause names the object and shows no secret.
fn damaged(error: &PortError) -> Problem {
    let what = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    Problem::new(ProblemKind::Internal).detail(format!("{what}; restore the data folder from a backup"))
}
