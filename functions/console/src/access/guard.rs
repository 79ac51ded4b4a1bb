//! The guard before every page.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, REFRESH,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use posthaste_core::api::PeerAddress;
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::timeout;
use url::form_urlencoded;

use super::form::{self, LostForm};
use super::sessions::{self, SIGN_OUT};
use super::unavailable::{explain_error, unavailable_page};
use super::visitors::{VisitorAccess, VisitorError};
use crate::console::PATH;
use crate::cookie;
use crate::extract::FormFields;
use crate::page::{ConsolePage, PageFrame};
use crate::session::{ConsoleSession, SessionKey};
use crate::visit::{OverTls, PageVisit, SignInMistake};

/// Longest time for a request, which may make several calls of the API. On AWS the function has 30
/// s.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(25);

/// Longest query of the sign-in page, in bytes. A longer page to come back to is left out: `serve`
/// and browsers bound URLs.
const SIGN_IN_QUERY_BYTES_MAX: usize = 1_500;

/// The policy of a page: it shows its own styles and images, runs its own script, and asks its own
/// server. There is no inline script, no frame, and no form that goes elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

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
            return framed_response(answer_unknown(access, &error, request).await, None);
        }
    };
    if visitor.is_signed_in() || is_sign_in(&request) {
        admit_request(access, visitor, request, next).await
    } else {
        framed_response(send_to_sign_in(access, request).await, None)
    }
}

fn is_sign_in(request: &Request) -> bool {
    request.uri().path() == "/sign-in"
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
        let token = session.form_token(key);
        let lost = LostForm::new(request, fields).with_token(&token);
        return Err(form::expired_page(&lost));
    }
    request.extensions_mut().insert(fields);
    Ok(mistake)
}

/// The response to a visitor who is not signed in.
async fn send_to_sign_in<S: ObjectStore, C: Clock, E: Entropy>(
    access: &VisitorAccess<S, C, E>,
    request: Request,
) -> Response {
    let asked = form::requested_page(&request);
    if request.method() != Method::POST {
        if form::is_from_elsewhere(request.headers()) {
            return ([(REFRESH, "0")], reload_page(&asked)).into_response();
        }
        return Redirect::to(&sign_in_url(&asked)).into_response();
    }
    let lost = read_lost_form(access, request).await;
    form::signed_out_page(&lost, &sign_in_url(&asked)).into_response()
}

/// The response to a visitor of whom it is not known whether they are signed in.
async fn answer_unknown<S: ObjectStore, C: Clock, E: Entropy>(
    access: &VisitorAccess<S, C, E>,
    error: &VisitorError,
    request: Request,
) -> Response {
    if request.method() != Method::POST || is_sign_in(&request) {
        return unavailable_page(error).into_response();
    }
    let is_sign_out = request.uri().path() == SIGN_OUT;
    if is_sign_out && !form::is_from_elsewhere(request.headers()) {
        let session = access.refuse_signed_session(request.headers());
        let is_secure = keeps_to_https(&request);
        return sessions::signed_out_here(session.as_ref(), explain_error(error), is_secure);
    }
    let lost = read_lost_form(access, request).await;
    form::unsent_page(explain_error(error), &lost).into_response()
}

/// Whether the cookies of a request are for https alone.
fn keeps_to_https(request: &Request) -> bool {
    let is_over_tls = request.extensions().get::<OverTls>().is_some();
    is_over_tls || !cookie::is_plain_loopback(request.headers())
}

/// Reads the form of a visitor who is not known to be signed in, if not too many are read now.
async fn read_lost_form<S: ObjectStore, C: Clock, E: Entropy>(
    access: &VisitorAccess<S, C, E>,
    mut request: Request,
) -> LostForm {
    let fields = match access.lost_forms.try_acquire() {
        Ok(_place) => form::read_fields(&mut request, form::LOST_BYTES_MAX)
            .await
            .unwrap_or_default(),
        Err(_) => FormFields::default(),
    };
    LostForm::new(&request, fields)
}

/// Puts the page of a response into its frame, and adds the headers that every response has.
fn framed_response(mut response: Response, frame: Option<&PageFrame>) -> Response {
    if let Some(page) = response.extensions_mut().remove::<ConsolePage>() {
        *response.body_mut() = Body::from(page.render(frame));
        response.headers_mut().insert(
            "content-type",
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
    }
    let headers: [(HeaderName, &'static str); 6] = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    response
        .headers_mut()
        .extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// The address of the sign-in page, which leads on to the page that was asked for.
fn sign_in_url(asked: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("next", asked)
        .finish();
    if asked == PATH || query.len() > SIGN_IN_QUERY_BYTES_MAX {
        return format!("{PATH}/sign-in");
    }
    format!("{PATH}/sign-in?{query}")
}

fn too_slow_page() -> ConsolePage {
    let body = html! {
        p { "A store answers slowly. If you sent a form, look whether it was done before you send it again." }
    };
    ConsolePage::new("The page took too long", body).with_status(StatusCode::SERVICE_UNAVAILABLE)
}

/// The page that asks for `path` again, now from this site.
fn reload_page(path: &str) -> ConsolePage {
    ConsolePage::new(
        "One moment",
        html! { p { a href=(path) { "To the page" } } },
    )
}
