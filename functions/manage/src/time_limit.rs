//! The time limit of a request: a store that hangs is an answer of 503, before the function is ended from outside and
//! answers nothing.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_ports::{Clock, Entropy};

use crate::answer::{Failure, UNAVAILABLE_RETRY_AFTER};
use crate::{Managed, Store, Webhooks};

/// How long a request may take. On AWS the function has 30 s; the rest is for a cold start and for the answer's way. A
/// request makes several calls to the stores, and each of them may take 20 s (`OPERATION_TIMEOUT` of posthaste-aws).
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(25);

/// How long a request's handlers may work, so that what they did is still answered.
pub(crate) const WORK_TIME_MAX: Duration = Duration::from_secs(23);

/// Answers 503 for a request that takes too long. A write that was under way may have happened, as after any answer that
/// is lost: who asks again with `If-Match` is told.
pub(crate) async fn limit_time<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    // The path as it is described, because one of them holds a key.
    let path =
        request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let method = request.method().clone();
    tokio::select! {
        biased;
        response = next.run(request) => Ok(response),
        () = manage.clock.sleep(REQUEST_TIME_MAX) => {
            tracing::error!(%method, path, "request not answered in time");
            Err(Failure(Problem::new(ProblemKind::Unavailable).retry_after(UNAVAILABLE_RETRY_AFTER)))
        }
    }
}
