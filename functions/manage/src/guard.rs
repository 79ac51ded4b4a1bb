//! The admin key, which opens every route that needs a key.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::{ADMIN_KEY_CHARS_MIN, KeyDigest};
use posthaste_ports::Ports;

use crate::error::ApiError;
use crate::manage::Managed;

const SCHEME: &str = "bearer";

/// Lets a request pass that carries the admin key.
pub(crate) async fn require_admin_key<P: Ports>(
    State(manage): Managed<P>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    match bearer(request.headers()) {
        Some(offered) if opens(&manage.admin_key, offered) => Ok(next.run(request).await),
        Some(_) | None => {
            let detail = format!(
                "expected the header Authorization: Bearer and the admin key, {ADMIN_KEY_CHARS_MIN} characters or \
                 more"
            );
            Err(ApiError(Problem::new(ProblemKind::Unauthorized).detail(detail)))
        }
    }
}

/// Whether `offered` is the admin key. On AWS only the digest is known when a stack is made, so that a key
/// that is too short is refused here.
fn opens(admin_key: &KeyDigest, offered: &str) -> bool {
    offered.len() >= ADMIN_KEY_CHARS_MIN && admin_key.is_of(offered)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| key.trim())
}
