//! The page of who is signed in, and the ends of sessions.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use posthaste_core::api::AuditCaller;
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::{CompletingWork, timeout};

use super::session_editor::EndingSessions;
use super::unavailable::{explain_error, unavailable_page};
use super::visitors::{VisitorAccess, VisitorError};
use crate::address::page_path;
use crate::console::PATH;
use crate::cookie;
use crate::extract::{PageQuery, PathParts};
use crate::page::ConsolePage;
use crate::pages::sessions::{self, ENDED, ENDED_BEFORE};
use crate::parts::{DoneNoticeQuery, address_after};
use crate::session::ConsoleSession;
use crate::visit::PageVisit;

/// Longest time for the end of a session. What becomes of it later is not waited for.
const END_TIME_MAX: Duration = Duration::from_secs(10);

/// The path of the sign-out.
pub(super) const SIGN_OUT: &str = "/sign-out";

/// The routes of the page, and of the sign-out.
pub(crate) fn session_routes<S, C, E>(access: Arc<VisitorAccess<S, C, E>>) -> Router
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    Router::new()
        .route(SIGN_OUT, post(sign_out::<S, C, E>))
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
            unavailable_page(&VisitorError::List(error))
        }
    }
}

/// Signs a visitor out: the session ends, and with it every copy of its cookie.
async fn sign_out<S, C, E>(
    State(access): State<Arc<VisitorAccess<S, C, E>>>,
    visit: PageVisit,
    Extension(caller): Extension<AuditCaller>,
) -> Response
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let own = EndingSessions::One(visit.session.digest());
    let ended = end_sessions(&access, caller, own).await;
    answer_own_end(&access, &visit, ended.map(drop))
}

/// Signs the browser out in any case. Where the end was not written, the session counts as ended in
/// this process at least.
fn answer_own_end<S, C, E>(
    access: &VisitorAccess<S, C, E>,
    visit: &PageVisit,
    ended: Result<(), &'static str>,
) -> Response {
    let Err(reason) = ended else {
        return signed_out_response(visit);
    };
    access.sessions.refuse_session(visit.session.digest());
    signed_out_here(Some(&visit.session), reason, visit.is_secure)
}

/// Signs the browser out whose session did not end in the list. The session is not known where not
/// even the key of sessions was read.
pub(super) fn signed_out_here(
    session: Option<&ConsoleSession>,
    reason: &str,
    is_secure: bool,
) -> Response {
    let removal = cookie::removal_header(is_secure);
    let page = sessions::signed_out_here_page(session, reason);
    ([(SET_COOKIE, removal)], page).into_response()
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
    let ended = end_sessions(&access, caller, EndingSessions::Tagged(tag)).await;
    if is_own {
        return Ok(answer_own_end(&access, &visit, ended.map(drop)));
    }
    let ended = ended.map_err(sessions::not_ended_page)?;
    let word = if ended > 0 { ENDED } else { ENDED_BEFORE };
    let back = address_after(&page_path(&["sessions"]), word, visit.now);
    Ok(Redirect::to(&back).into_response())
}

/// Ends every session, that of the caller too. Where that fails, the caller stays signed in, to try
/// it again.
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
    let ended = end_sessions(&access, caller, EndingSessions::All).await;
    ended.map_err(sessions::not_ended_page)?;
    Ok(signed_out_response(&visit))
}

/// Ends sessions, also if the browser is gone meanwhile. Returns the number of those that were
/// open, or the reason for which they may not have ended.
async fn end_sessions<S, C, E>(
    access: &Arc<VisitorAccess<S, C, E>>,
    caller: AuditCaller,
    meant: EndingSessions,
) -> Result<usize, &'static str>
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let for_end = Arc::clone(access);
    let ending = async move { for_end.session_editor().end_sessions(caller, &meant).await };
    let ended = timeout(&access.clock, END_TIME_MAX, CompletingWork::new(ending)).await;
    let error = match ended {
        Some(Ok(ended)) => return Ok(ended),
        Some(Err(error)) => VisitorError::List(error),
        None => VisitorError::TooSlow,
    };
    tracing::error!(
        error = &error as &dyn Error,
        "a session of the console may not have ended"
    );
    Err(explain_error(&error))
}

fn signed_out_response(visit: &PageVisit) -> Response {
    let removal = cookie::removal_header(visit.is_secure);
    let sign_in = Redirect::to(&format!("{PATH}/sign-in"));
    ([(SET_COOKIE, removal)], sign_in).into_response()
}
