//! Answers: JSON with its version, or a problem. The cause of a failure is logged here and never
//! shown.

use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, LOCATION};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::TopicName;
use posthaste_delivery_log::LogError;
use posthaste_ports::validate::LimitRefusal;
use posthaste_ports::{ErrorKind, PortError, StoredObject};
use posthaste_services::{LinksError, UpdateError};
use serde::Serialize;

/// Time for a client to wait when a store does not answer and does not say how long.
const UNAVAILABLE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Time for a client to wait after other writers were faster too often.
const CONFLICT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The remedy for any damaged object.
const RESTORE: &str = "restore the data folder from a backup";

/// The answer of a handler.
pub(crate) type ApiResult<T> = Result<JsonResponse<T>, ApiError>;

/// A JSON answer. No cache may keep it, because some of them show secrets.
pub(crate) struct JsonResponse<T> {
    status: StatusCode,
    /// The version or the place of the resource.
    header: Option<(HeaderName, String)>,
    body: T,
}

impl<T> JsonResponse<T> {
    /// A 200 without a version.
    pub(crate) fn new(body: T) -> Self {
        Self {
            status: StatusCode::OK,
            header: None,
            body,
        }
    }

    /// The body.
    pub(crate) const fn body(&self) -> &T {
        &self.body
    }

    /// A 200 with the version, quoted.
    pub(crate) fn with_etag(body: T, etag: String) -> Self {
        Self {
            header: Some((ETAG, etag)),
            ..Self::new(body)
        }
    }

    /// The answer to a put: 201 if it created the resource.
    pub(crate) fn for_put(body: T, etag: String, is_new: bool) -> Self {
        let status = if is_new {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        Self {
            status,
            ..Self::with_etag(body, etag)
        }
    }

    /// A 202 of work that another request does.
    pub(crate) fn in_progress(body: T) -> Self {
        Self {
            status: StatusCode::ACCEPTED,
            header: None,
            body,
        }
    }

    /// A 202 with the place where the progress is shown.
    pub(crate) fn accepted(body: T, location: String) -> Self {
        Self {
            status: StatusCode::ACCEPTED,
            header: Some((LOCATION, location)),
            body,
        }
    }
}

impl<T: Serialize> IntoResponse for JsonResponse<T> {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some((name, value)) = self.header
            && let Ok(value) = HeaderValue::try_from(value)
        {
            headers.insert(name, value);
        }
        response
    }
}

/// A problem as an answer.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) ApiProblem);

impl From<ApiProblem> for ApiError {
    fn from(problem: ApiProblem) -> Self {
        Self(problem)
    }
}

impl From<PortError> for ApiError {
    fn from(error: PortError) -> Self {
        Self(store_problem(&error, RESTORE))
    }
}

impl From<LogError> for ApiError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Read { source, .. } | LogError::List(source) => source.into(),
            LogError::TooManyFiles(_) => ApiProblem::new(ProblemKind::BadRequest)
                .member("from")
                .detail(error.to_string())
                .into(),
            LogError::Changing => unavailable_problem().into(),
            LogError::Damaged { .. } | LogError::Write(_) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "the delivery log cannot be read"
                );
                Self(ApiProblem::new(ProblemKind::Internal))
            }
        }
    }
}

impl From<LinksError> for ApiError {
    fn from(error: LinksError) -> Self {
        match error {
            LinksError::Store(error) => error.into(),
            LinksError::Object(_) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "what is known of links cannot be used"
                );
                let detail = "what is known of links was written by a newer version";
                Self(ApiProblem::new(ProblemKind::Internal).detail(detail))
            }
            LinksError::Contended(_) => Self(unavailable_problem()),
        }
    }
}

impl<E: Into<Self>> From<UpdateError<E>> for ApiError {
    fn from(error: UpdateError<E>) -> Self {
        match error {
            UpdateError::Read(error) | UpdateError::Write(error) => error.into(),
            UpdateError::Edit(error) => error.into(),
            UpdateError::Contended => conflict_problem().into(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.0.into_response().map(Body::from)
    }
}

/// Reads an object of a list. A damaged one is logged and left out, because it must not hide the
/// others.
pub(crate) fn skip_damaged(
    read: Result<Option<StoredObject>, PortError>,
) -> Result<Option<StoredObject>, PortError> {
    match read {
        Err(error) if error.kind == ErrorKind::Damaged => {
            tracing::error!(error = &error as &dyn Error, "a damaged object is left out");
            Ok(None)
        }
        read => read,
    }
}

/// The problem of a store that fails. `remedy` tells the operator what to do if the object is
/// damaged.
pub(crate) fn store_problem(error: &PortError, remedy: &str) -> ApiProblem {
    if let Some(problem) = refusal_problem(error) {
        tracing::info!(error = error as &dyn Error, "a store was not asked");
        return problem;
    }
    tracing::error!(error = error as &dyn Error, "a store failed");
    match error.kind {
        ErrorKind::Full => ApiProblem::new(ProblemKind::StorageFull),
        // The cause names the object and shows no secret.
        ErrorKind::Damaged => {
            let cause = error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string);
            ApiProblem::new(ProblemKind::Internal).detail(format!("{cause}; {remedy}"))
        }
        ErrorKind::Throttled {
            retry_after: Some(wait),
        } => unavailable_problem().retry_after(wait),
        _ => unavailable_problem(),
    }
}

/// The problem of a request that broke a limit of the port, which refused it unasked: it is the
/// caller's, and trying again does not help. `None` for what a service refused, which may be wrongly
/// set up.
fn refusal_problem(error: &PortError) -> Option<ApiProblem> {
    let refusal = error.source()?.downcast_ref::<LimitRefusal>()?;
    Some(ApiProblem::new(ProblemKind::BadRequest).detail(refusal.to_string()))
}

/// The problem of a topic's record that the store does not return. The remedy of a damaged one may
/// be to delete it.
pub(crate) fn record_problem(error: &PortError) -> ApiProblem {
    let delete = "or delete the topic and write it again, which makes new keys and secrets";
    store_problem(error, &format!("{RESTORE}, {delete}"))
}

/// The problem of a store or endpoint that does not answer now.
pub(crate) fn unavailable_problem() -> ApiProblem {
    ApiProblem::new(ProblemKind::Unavailable).retry_after(UNAVAILABLE_RETRY_AFTER)
}

/// The problem of other writers that were faster too often.
pub(crate) fn conflict_problem() -> ApiProblem {
    ApiProblem::new(ProblemKind::Conflict).retry_after(CONFLICT_RETRY_AFTER)
}

/// The problem of a topic that does not exist.
pub(crate) fn unknown_topic(topic: &TopicName) -> ApiProblem {
    ApiProblem::new(ProblemKind::UnknownTopic).detail(format!("there is no topic {topic}"))
}

/// The problem of a record that was checked before it was written and still does not compile.
pub(crate) fn unusable_record() -> ApiProblem {
    ApiProblem::new(ProblemKind::Internal)
}
