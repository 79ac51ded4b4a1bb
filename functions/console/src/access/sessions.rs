//! The page of who is signed in, and the ends of sessions.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use posthaste_core::api::AuditCaller;
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::CompletingWork;

use super::guard::unavailable_page;
use super::session_editor::EndingSessions;
use super::visitors::VisitorAccess;
use crate::address::page_path;
use crate::console::PATH;
use crate::cookie;
use crate::extract::{PageQuery, PathParts};
use crate::page::ConsolePage;
use crate::pages::sessions::{self, ENDED, ENDED_BEFORE};
use crate::parts::{DoneNoticeQuery, address_after};
use crate::session_book::SessionListError;
use crate::visit::PageVisit;

/// The routes of the page, and of the sign-out.
pub(crate) fn session_routes<S, C, E>(access: Arc<VisitorAccess<S, C, E>>) -> Router
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    Router::new()
        .route("/sign-out", post(sign_out::<S, C, E>))
        .route("/sessions", get(show_page::<S, C, E>))
        .route("/sessions/end", post(end_all::<S, C, E>))
        .route("/sessions/end/{tag}", post(end_one::<S, C, E>))
        .with_state(access)
}

/// The sessions that are open, as the store has them now.
async fn show_page<S: ObjectStore, C: Clock, E: Entropy>(
    State(access): State<Arc<VisitorAccess<S, C, E>>>,
    visit: PageVisit,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> ConsolePage {
    match access
        .sessions
        .read_again(&access.state, &access.clock)
        .await
    {
        Ok(list) => sessions::render_page(&visit, &list, &done),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn Error,
                "the list of console sessions cannot be shown"
            );
            unavailable_page()
        }
    }
}

/// Signs a visitor out: the session ends, and with it every copy of its cookie.
async fn sign_out<S, C, E>(
    State(access): State<Arc<VisitorAccess<S, C, E>>>,
    visit: PageVisit,
    Extension(caller): Extension<AuditCaller>,
) -> Result<Response, ConsolePage>
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let own = EndingSessions::One(visit.session.digest());
    end_sessions(access, caller, own).await?;
    Ok(signed_out_response(&visit))
}

/// Ends the session of a tag, of which an operator says that it is to end.
async fn end_one<S, C, E>(
    State(access): State<Arc<VisitorAccess<S, C, E>>>,
    visit: PageVisit,
    Extension(caller): Extension<AuditCaller>,
    PathParts([tag]): PathParts<1>,
) -> Result<Response, ConsolePage>
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let is_own = tag == visit.session.digest().tag();
    let ended = end_sessions(access, caller, EndingSessions::Tagged(tag)).await?;
    if is_own {
        return Ok(signed_out_response(&visit));
    }
    let word = if ended > 0 { ENDED } else { ENDED_BEFORE };
    let back = address_after(&page_path(&["sessions"]), word, visit.now);
    Ok(Redirect::to(&back).into_response())
}

/// Ends every session, that of the caller too.
async fn end_all<S, C, E>(
    State(access): State<Arc<VisitorAccess<S, C, E>>>,
    visit: PageVisit,
    Extension(caller): Extension<AuditCaller>,
) -> Result<Response, ConsolePage>
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    end_sessions(access, caller, EndingSessions::All).await?;
    Ok(signed_out_response(&visit))
}

/// Ends sessions, also if the browser is gone meanwhile. Returns the number of those that were open.
async fn end_sessions<S, C, E>(
    access: Arc<VisitorAccess<S, C, E>>,
    caller: AuditCaller,
    meant: EndingSessions,
) -> Result<usize, ConsolePage>
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let ending = async move { access.session_editor().end_sessions(caller, &meant).await };
    let ended: Result<usize, SessionListError> = CompletingWork::new(ending).await;
    ended.map_err(|error| {
        tracing::error!(
            error = &error as &dyn Error,
            "a session of the console may not have ended"
        );
        sessions::not_ended_page()
    })
}

fn signed_out_response(visit: &PageVisit) -> Response {
    let removal = cookie::removal_header(visit.is_secure);
    let sign_in = Redirect::to(&format!("{PATH}/sign-in"));
    ([(SET_COOKIE, removal)], sign_in).into_response()
}
