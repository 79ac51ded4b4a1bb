//! Signing in and out.

use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use posthaste_core::api::PeerAddress;
use posthaste_core::model::pasted::read_key;
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::WrongKeyAnswer;

use super::guard::unavailable_page;
use super::visitors::VisitorAccess;
use crate::console::PATH;
use crate::cookie;
use crate::extract::{FormFields, PageQuery};
use crate::pages::sign_in::{self, SignInQuery};
use crate::session::ConsoleSession;
use crate::visit::{PageVisit, SignInMistake};

/// Metric: sign-ins with a wrong key.
const SIGN_IN_FAILED_COUNT: &str = "ConsoleSignInFailedCount";

/// The sign-in page.
pub(crate) async fn show_sign_in(
    visit: PageVisit,
    PageQuery(query): PageQuery<SignInQuery>,
) -> Response {
    if visit.is_signed_in {
        return Redirect::to(query.next_page()).into_response();
    }
    sign_in::render_page(&visit, &query, None).into_response()
}

/// Signs a visitor in who shows the admin key.
pub(crate) async fn sign_in<S, C, E>(
    State(access): State<Arc<VisitorAccess<S, C, E>>>,
    visit: PageVisit,
    peer: Option<Extension<PeerAddress>>,
    fields: FormFields,
) -> Response
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let peer = peer.map(|Extension(peer)| peer);
    let query = SignInQuery {
        next: Some(fields.get("next").to_owned()),
    };
    if visit.is_signed_in {
        return Redirect::to(query.next_page()).into_response();
    }
    if let Some(mistake) = visit.form_mistake {
        return sign_in::render_page(&visit, &query, Some(mistake)).into_response();
    }
    let key = match read_key(fields.get("key")) {
        Ok(key) => key,
        Err(error) => {
            return sign_in::render_page(&visit, &query, Some(SignInMistake::NoKey(error)))
                .into_response();
        }
    };
    if !access.is_admin_key(key) {
        metrics::counter!(SIGN_IN_FAILED_COUNT).increment(1);
        if let Some(keys) = access.wrong_keys.count_wrong_key(&access.clock) {
            tracing::warn!(keys, "sign-in to the console with a wrong key");
            access.audit_refused_keys(peer, keys).await;
        }
        let mistake = access.slow_down().await;
        return sign_in::render_page(&visit, &query, Some(mistake)).into_response();
    }
    if access.audit_sign_in(peer).await.is_err() {
        return unavailable_page().into_response();
    }
    tracing::info!("signed in to the console");
    let session = ConsoleSession::begin(true, visit.now, &access.entropy);
    let cookie = cookie::set_header(&session, &visit.key, visit.now, visit.is_secure);
    ([(SET_COOKIE, cookie)], Redirect::to(query.next_page())).into_response()
}

impl<S: ObjectStore, C: Clock, E: Entropy> VisitorAccess<S, C, E> {
    /// Waits before the response to a wrong key, if there is a place to wait.
    async fn slow_down(&self) -> SignInMistake {
        match self.wrong_keys.slow_down(&self.clock).await {
            WrongKeyAnswer::Wrong => SignInMistake::WrongKey,
            WrongKeyAnswer::TooMany => SignInMistake::TooMany,
        }
    }
}

/// Signs a visitor out.
pub(crate) async fn sign_out(visit: PageVisit) -> Response {
    (
        [(SET_COOKIE, cookie::removal_header(visit.is_secure))],
        Redirect::to(&format!("{PATH}/sign-in")),
    )
        .into_response()
}
