//! Guards around every request: the admin key and the time limit.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditCaller, PeerAddress};
use posthaste_core::model::{ADMIN_KEY_CHARS_MIN, KeyDigest};
use posthaste_ports::Ports;
use posthaste_services::{CompletingWork, timeout};

use crate::answer::{ApiError, unavailable_problem};
use crate::audit::door_from_headers;
use crate::key_refuser::KeyRefuser;
use crate::manage::ManageState;
use crate::request_clock::RequestClock;
use crate::unfinished::LeftFinisher;

/// Longest time for a request. A store that hangs is answered with 503 before the platform ends the
/// function without an answer. On AWS the function has 30 s; the rest is for a cold start and for
/// the way of the answer. A request makes several calls to the stores, and each of them may take 20
/// s (`OPERATION_TIMEOUT` of posthaste-aws).
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(25);

/// Runs a request that changes something to its end, also if nobody waits for its answer any more:
/// its steps belong together. What other processes left may be finished beside it.
pub(crate) async fn complete_request<P: Ports>(
    State(manage): ManageState<P>,
    State(left): State<LeftFinisher<P>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if request.method().is_safe() {
        return Ok(left.look_beside(next.run(request)).await);
    }
    let place = manage.work.try_begin().ok_or_else(unavailable_problem)?;
    let work = async move {
        let response = next.run(request).await;
        drop(place);
        response
    };
    Ok(left.look_beside(CompletingWork::new(work)).await)
}

/// Refuses a request without the admin key, and notes who sent one with it.
pub(crate) async fn require_admin_key<P: Ports>(
    State(manage): ManageState<P>,
    State(refuser): State<KeyRefuser<P>>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let offered = bearer_token(request.headers());
    let peer = request.extensions().get::<PeerAddress>().copied();
    let door = door_from_headers(request.headers());
    if offered.is_some_and(|offered| is_admin_key(&manage.admin_key, offered)) {
        let caller = AuditCaller::with_admin_key(&manage.admin_key, door, peer);
        request.extensions_mut().insert(caller);
        return Ok(next.run(request).await);
    }
    let is_guess = offered.is_some();
    // The body is dropped first: nobody reads it while the answer waits.
    drop(request);
    let detail = format!(
        "expected the header Authorization: Bearer and the admin key, {ADMIN_KEY_CHARS_MIN} characters or \
         more"
    );
    let problem = ApiProblem::new(ProblemKind::Unauthorized).detail(detail);
    Err(if is_guess {
        refuser.refuse_key(problem, door, peer).await
    } else {
        problem.into()
    })
}

/// Whether `offered` is the admin key. On AWS only the digest is known when a stack is made, so a
/// key that is too short is refused here.
fn is_admin_key(admin_key: &KeyDigest, offered: &str) -> bool {
    offered.len() >= ADMIN_KEY_CHARS_MIN && admin_key.matches_key(offered)
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Answers 503 for a request that takes too long. What it changes goes on, so that it may have
/// happened, as after any answer that is lost: a client that repeats it with `If-Match` learns
/// whether it did.
pub(crate) async fn limit_time<P: Ports>(
    State(clock): State<RequestClock<P>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    // The log shows the path as the route describes it, because one of the paths holds a key.
    let path = request
        .extensions()
        .get::<MatchedPath>()
        .map(|path| path.as_str().to_owned())
        .unwrap_or_default();
    let method = request.method().clone();
    timeout(&*clock, REQUEST_TIME_MAX, next.run(request))
        .await
        .ok_or_else(|| {
            tracing::error!(%method, path, "request not answered in time");
            unavailable_problem().into()
        })
}
