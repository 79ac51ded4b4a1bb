//! The admin key: who has it may do everything here.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::secret::{ADMIN_KEY_CHARS_MIN, KeyDigest};

use crate::answer::Failure;
use crate::{Managed, Store, Webhooks};
use posthaste_ports::{Clock, Entropy};

const SCHEME: &str = "bearer";

/// Lets a request pass that carries the admin key.
pub(crate) async fn require_admin_key<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    match bearer(request.headers()) {
        Some(offered) if opens(&manage.admin_key, offered) => Ok(next.run(request).await),
        Some(_) | None => {
            let detail = format!(
                "expected the header Authorization: Bearer and the admin key, {ADMIN_KEY_CHARS_MIN} characters or more"
            );
            Err(Failure(Problem::new(ProblemKind::Unauthorized).detail(detail)))
        }
    }
}

/// Whether `offered` is the admin key. On AWS nothing but its digest is known when a stack is made, so that a key that
/// is too short is refused here.
fn opens(admin_key: &KeyDigest, offered: &str) -> bool {
    offered.len() >= ADMIN_KEY_CHARS_MIN && admin_key.is_of(offered)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| key.trim())
}
