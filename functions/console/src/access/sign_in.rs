//! Signing in.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use posthaste_core::api::PeerAddress;
use posthaste_core::model::pasted::read_key;
use posthaste_core::stored::OpenSession;
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::{CompletingWork, WrongKeyAnswer};

use super::unavailable::unavailable_page;
use super::visitors::{VisitorAccess, VisitorError};
use crate::cookie;
use crate::extract::{FormFields, PageQuery};
use crate::pages::sign_in::{self, SignInQuery};
use crate::session::ConsoleSession;
use crate::session_book::SessionListError;
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
    let session = ConsoleSession::begin(true, visit.now, &access.entropy);
    if let Err(error) = open_session(access, &visit, peer, session).await {
        tracing::error!(
            error = &error as &dyn Error,
            "a sign-in to the console was not written down"
        );
        return unavailable_page(&VisitorError::List(error)).into_response();
    }
    tracing::info!("signed in to the console");
    let cookie = cookie::set_header(&session, &visit.key, visit.now, visit.is_secure);
    ([(SET_COOKIE, cookie)], Redirect::to(query.next_page())).into_response()
}

/// Writes down that a session begins, also if the browser is gone meanwhile.
async fn open_session<S, C, E>(
    access: Arc<VisitorAccess<S, C, E>>,
    visit: &PageVisit,
    peer: Option<PeerAddress>,
    session: ConsoleSession,
) -> Result<(), SessionListError>
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let caller = access.audit_caller(peer, &session);
    let open = OpenSession {
        id: session.digest(),
        key: visit.key.tag(),
        began_at: visit.now,
        ends_at: session.ends_at,
        address: caller.address,
    };
    let opening = async move { access.session_editor().begin_session(caller, open).await };
    CompletingWork::new(opening).await
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
