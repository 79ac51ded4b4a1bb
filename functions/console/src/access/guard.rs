//! The guard before every page.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;
use posthaste_core::api::PeerAddress;
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::timeout;

use super::form::{self, LostForm};
use super::framing::framed_response;
use super::outside::{SIGN_IN, answer_unknown, keeps_to_https, send_to_sign_in};
use super::visitors::VisitorAccess;
use crate::cookie;
use crate::page::{ConsolePage, PageFrame};
use crate::session::{ConsoleSession, SessionKey};
use crate::visit::{PageVisit, SignInMistake};

/// Longest time for a request, which may make several calls of the API. On AWS the function has 30
/// s.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(25);

/// A request's visitor.
struct ConsoleVisitor {
    key: SessionKey,
    session: Option<ConsoleSession>,
    now: Timestamp,
}

impl ConsoleVisitor {
    fn is_signed_in(&self) -> bool {
        self.session.is_some_and(|session| session.is_signed_in)
    }
}

/// Lets signed-in visitors pass, sends others to the sign-in page, and refuses forms that did not
/// come from a page of the same session. Every page gets its frame here.
pub(crate) async fn guard_pages<S, C, E>(
    State(access): State<Arc<VisitorAccess<S, C, E>>>,
    request: Request,
    next: Next,
) -> Response
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let path = request.uri().path().to_owned();
    timeout(
        &access.clock,
        REQUEST_TIME_MAX,
        respond(&access, request, next),
    )
    .await
    .unwrap_or_else(|| {
        tracing::error!(path, "page of the console not answered in time");
        framed_response(too_slow_page().into_response(), None)
    })
}

async fn respond<S: ObjectStore, C: Clock, E: Entropy>(
    access: &VisitorAccess<S, C, E>,
    request: Request,
    next: Next,
) -> Response {
    let now = access.clock.now();
    let visitor = match access.find_session(request.headers(), now).await {
        Ok((key, session)) => ConsoleVisitor { key, session, now },
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "who is signed in to the console is not known"
            );
            return answer_unknown(access, &error, request).await;
        }
    };
    if visitor.is_signed_in() || is_sign_in(&request) {
        admit_request(access, visitor, request, next).await
    } else {
        send_to_sign_in(access, request).await
    }
}

fn is_sign_in(request: &Request) -> bool {
    request.uri().path() == SIGN_IN
}

/// Lets a request pass, unless it has a form that no page of the session sent.
async fn admit_request<S: ObjectStore, C: Clock, E: Entropy>(
    access: &VisitorAccess<S, C, E>,
    visitor: ConsoleVisitor,
    mut request: Request,
    next: Next,
) -> Response {
    let is_signed_in = visitor.is_signed_in();
    let ConsoleVisitor { key, session, now } = visitor;
    let is_new = session.is_none();
    let session = session.unwrap_or_else(|| ConsoleSession::begin(false, now, &access.entropy));
    let frame = is_signed_in.then(|| PageFrame {
        form_token: session.form_token(&key),
    });
    let form_mistake = match check_form(&mut request, &key, &session).await {
        Ok(mistake) => mistake,
        Err(page) => return framed_response(page.into_response(), frame.as_ref()),
    };
    let is_secure = keeps_to_https(&request);
    if is_signed_in {
        let peer = request.extensions().get::<PeerAddress>().copied();
        let caller = access.audit_caller(peer, &session);
        request.extensions_mut().insert(caller);
    }
    let set = cookie::set_header(&session, &key, now, is_secure);
    let form_token = session.form_token(&key);
    request.extensions_mut().insert(PageVisit {
        now,
        form_token,
        form_mistake,
        is_signed_in,
        is_secure,
        session,
        key: Arc::new(key),
    });
    let mut response = next.run(request).await;
    if is_new {
        response.headers_mut().append(SET_COOKIE, set);
    }
    framed_response(response, frame.as_ref())
}

/// Reads the form of a POST, for the handler. The sign-in page says itself what is wrong with its
/// form.
async fn check_form(
    request: &mut Request,
    key: &SessionKey,
    session: &ConsoleSession,
) -> Result<Option<SignInMistake>, ConsolePage> {
    if request.method() != Method::POST {
        return Ok(None);
    }
    let is_sign_in = is_sign_in(request);
    let bytes_max = if is_sign_in {
        form::SIGN_IN_BYTES_MAX
    } else {
        form::FORM_BYTES_MAX
    };
    let fields = form::read_fields(request, bytes_max).await?;
    let mistake = (!form::is_own_form(request.headers(), &fields, key, session)).then(|| {
        let has_cookie = cookie::session_values(request.headers()).next().is_some();
        if has_cookie {
            SignInMistake::TooLate
        } else {
            SignInMistake::NoCookie
        }
    });
    if mistake.is_some() && !is_sign_in {
        let is_of_console = form::is_of_console(request.headers(), &fields, key);
        let token = is_of_console.then(|| session.form_token(key));
        let lost = LostForm::new(request, &fields).with_token(token);
        return Err(form::expired_page(&lost));
    }
    request.extensions_mut().insert(fields);
    Ok(mistake)
}

fn too_slow_page() -> ConsolePage {
    let body = html! {
        p { "A store answers slowly. If you sent a form, look whether it was done before you send it again." }
    };
    ConsolePage::new("The page took too long", body).with_status(StatusCode::SERVICE_UNAVAILABLE)
}
