//! The time limit of a request. A store that hangs is answered with 503, before the platform ends the
//! function and nothing is answered.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use posthaste_ports::{Clock, Ports};
use posthaste_services::timeout;

use crate::error::{ApiError, unavailable};
use crate::manage::{Manage, Managed};

/// Longest time for a request. On AWS the function has 30 s; the rest is for a cold start and for the way of
/// the answer. A request makes several calls to the stores, and each of them may take 20 s
/// (`OPERATION_TIMEOUT` of posthaste-aws).
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(25);

/// Longest time for the work of a request's handler, so that the work is still answered.
const WORK_TIME_MAX: Duration = Duration::from_secs(23);

/// Answers 503 for a request that takes too long. A write that was under way may have happened, as after any
/// answer that is lost: a client that repeats it with `If-Match` learns that.
pub(crate) async fn limit_time<P: Ports>(
    State(manage): Managed<P>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    // The path as it is described, because one of them holds a key.
    let path =
        request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let method = request.method().clone();
    timeout(&manage.clock, REQUEST_TIME_MAX, next.run(request)).await.ok_or_else(|| {
        tracing::error!(%method, path, "request not answered in time");
        unavailable().into()
    })
}

impl<P: Ports> Manage<P> {
    /// The end of the work for a request that begins now, as a time of the clock's `monotonic`.
    pub(crate) fn work_ends(&self) -> Duration {
        self.clock.monotonic() + WORK_TIME_MAX
    }

    /// The time left until then.
    pub(crate) fn rest(&self, until: Duration) -> Duration {
        until.saturating_sub(self.clock.monotonic())
    }
}
