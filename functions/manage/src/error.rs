//! Failures as answers. The cause of a failure is logged here and shown nowhere.

use std::error::Error;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::TopicName;
use posthaste_ports::{ErrorKind, Object, PortError};
use posthaste_services::{LinksError, UpdateError};

use crate::paths::SubscriptionPath;

/// How long a client should wait when a store does not answer and gives no time itself.
const UNAVAILABLE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// When to try again after other writers were faster too often.
const CONFLICT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// What an operator can do about any damaged object.
const RESTORE: &str = "restore the data folder from a backup";

/// A problem as an answer.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) Problem);

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<PortError> for ApiError {
    fn from(error: PortError) -> Self {
        Self(store_problem(&error, RESTORE))
    }
}

impl From<LinksError> for ApiError {
    fn from(error: LinksError) -> Self {
        match error {
            LinksError::Store(error) => error.into(),
            LinksError::Object(_) => {
                tracing::error!(error = &error as &dyn Error, "what is known of links cannot be used");
                let detail = "what is known of links was written by a newer version";
                Self(Problem::new(ProblemKind::Internal).detail(detail))
            }
            LinksError::Contended(_) => Self(unavailable()),
        }
    }
}

impl<E: Into<Self>> From<UpdateError<E>> for ApiError {
    fn from(error: UpdateError<E>) -> Self {
        match error {
            UpdateError::Read(error) | UpdateError::Write(error) => error.into(),
            UpdateError::Edit(error) => error.into(),
            UpdateError::Contended => conflict().into(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.0.into_response().map(Body::from)
    }
}

/// An object of a list. A damaged one is logged and left out: it must not hide the others.
pub(crate) fn listed(read: Result<Option<Object>, PortError>) -> Result<Option<Object>, PortError> {
    match read {
        Err(error) if error.kind == ErrorKind::Damaged => {
            tracing::error!(error = &error as &dyn Error, "a damaged object is left out");
            Ok(None)
        }
        read => read,
    }
}

/// The problem of a store that fails. `remedy` is what helps where its object is damaged.
pub(crate) fn store_problem(error: &PortError, remedy: &str) -> Problem {
    tracing::error!(error = error as &dyn Error, "a store failed");
    match error.kind {
        ErrorKind::Full => Problem::new(ProblemKind::StorageFull),
        // The cause names the object and shows no secret.
        ErrorKind::Damaged => {
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Problem::new(ProblemKind::Internal).detail(format!("{cause}; {remedy}"))
        }
        ErrorKind::Throttled { retry_after: Some(wait) } => unavailable().retry_after(wait),
        ErrorKind::NotFound
        | ErrorKind::PreconditionFailed
        | ErrorKind::Throttled { retry_after: None }
        | ErrorKind::TimedOut
        | ErrorKind::Denied
        | ErrorKind::Invalid
        | ErrorKind::Other => unavailable(),
    }
}

/// The problem of a topic's record that the store does not return. One that is damaged can be deleted.
pub(crate) fn record_problem(error: &PortError) -> Problem {
    let delete = "or delete the topic and write it again, which makes new keys and secrets";
    store_problem(error, &format!("{RESTORE}, {delete}"))
}

/// The problem of something that does not answer now.
pub(crate) fn unavailable() -> Problem {
    Problem::new(ProblemKind::Unavailable).retry_after(UNAVAILABLE_RETRY_AFTER)
}

/// The problem of other writers that were faster too often.
pub(crate) fn conflict() -> Problem {
    Problem::new(ProblemKind::Conflict).retry_after(CONFLICT_RETRY_AFTER)
}

/// The problem of a topic that does not exist.
pub(crate) fn unknown_topic(topic: &TopicName) -> Problem {
    Problem::new(ProblemKind::UnknownTopic).detail(format!("there is no topic {topic}"))
}

/// The problem of a subscription that does not exist.
pub(crate) fn unknown_subscription(path: &SubscriptionPath) -> Problem {
    let detail = format!("the topic {} has no subscription {}", path.topic, path.name);
    Problem::new(ProblemKind::UnknownSubscription).detail(detail)
}

/// The problem of a record that was checked before it was written, and does not compile now.
pub(crate) fn unusable_record() -> Problem {
    Problem::new(ProblemKind::Internal)
}
