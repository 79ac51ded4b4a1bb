//! The doors of the console: who may see its pages, and what every answer carries for its safety.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, REFRESH, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use http_body_util::{BodyExt, Limited};
use maud::html;
use posthaste_core::model::{ADMIN_KEY_CHARS_MIN, KeyDigest, MANAGE_REQUEST_BYTES_MAX, Timestamp};
use posthaste_ports::{Clock, Entropy, ObjectStore};
use tokio::sync::Semaphore;
use url::form_urlencoded;

use crate::asked::{Fields, Query};
use crate::console::PATH;
use crate::cookie;
use crate::page::{FORM_TOKEN, Frame, Page};
use crate::pages::sign_in::{self, Mistake, SignInQuery};
use crate::session::{Session, SessionKey};
use crate::session_key::{KeyPorts, KnownKey, SessionKeyError};
use crate::visit::Visit;

/// Metric: sign-ins with a wrong key.
const SIGN_IN_FAILED_COUNT: &str = "ConsoleSignInFailedCount";

/// The time that the answer to a wrong key waits in `serve`.
const WRONG_KEY_PAUSE: Duration = Duration::from_secs(1);

/// Most wrong keys whose answers wait at once. More of them are refused at once; the right key never waits.
const WRONG_KEYS_MAX: usize = 8;

/// The header by which a browser says whose page sent a request.
/// <https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header>
const FETCH_SITE: &str = "sec-fetch-site";

/// What a page may do: show its own styles and images, run its own script, and ask its own server. No inline
/// script, no frame, and no form that goes elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Who may see the pages: visitors with the admin key.
#[derive(Debug)]
pub struct Access<S, C, E> {
    /// The state bucket, which has the key of sessions.
    state: S,
    clock: C,
    entropy: E,
    admin_key: KeyDigest,
    session_key: KnownKey,
    /// The answers to wrong keys that may wait at once. `None` where none waits.
    wrong_keys: Option<Semaphore>,
}

impl<S: ObjectStore, C: Clock, E: Entropy> Access<S, C, E> {
    /// Access with the admin key of this digest.
    pub fn new(state: S, clock: C, entropy: E, admin_key: KeyDigest) -> Self {
        Self { state, clock, entropy, admin_key, session_key: KnownKey::default(), wrong_keys: None }
    }

    /// The same where the answer to a wrong key waits for a second. On Lambda that would be paid for.
    #[must_use]
    pub fn slowing_wrong_keys(self) -> Self {
        Self { wrong_keys: Some(Semaphore::new(WRONG_KEYS_MAX)), ..self }
    }

    /// Whether a request comes from a visitor who is signed in. It goes by the key that this process has
    /// read: the first page that anybody asks for reads it.
    pub fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        let now = self.clock.now();
        self.session_key.known().is_some_and(|key| {
            cookie::signed_in(headers)
                .filter_map(|it| Session::parse(it, &key, now))
                .any(|it| it.is_signed_in)
        })
    }

    fn key_ports(&self) -> KeyPorts<'_, S, C, E> {
        let Self { state, clock, entropy, admin_key, .. } = self;
        KeyPorts { state, clock, entropy, admin_key }
    }

    /// The key of sessions, and the session of a request if it has one.
    async fn session(
        &self,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<(SessionKey, Option<Session>), SessionKeyError> {
        let key = self.session_key.key(&self.key_ports()).await?;
        let found = |key: &SessionKey| cookie::values(headers).find_map(|it| Session::parse(it, key, now));
        let session = found(&key);
        if session.is_some() || cookie::values(headers).next().is_none() {
            return Ok((key, session));
        }
        let newer = self.session_key.newer_key(&self.key_ports()).await?;
        Ok(newer.map_or((key, None), |key| {
            let session = found(&key);
            (key, session)
        }))
    }

    /// Whether `offered` is the admin key. On AWS only its digest is known when a stack is made, so a key
    /// that is too short is refused here.
    fn opens(&self, offered: &str) -> bool {
        offered.len() >= ADMIN_KEY_CHARS_MIN && self.admin_key.is_of(offered)
    }
}

/// Lets signed-in visitors pass, sends others to the sign-in page, and refuses forms that did not come from a
/// page of the same session. Every page gets its frame here.
pub(crate) async fn guard<S, C, E>(
    State(access): State<Arc<Access<S, C, E>>>,
    mut request: Request,
    next: Next,
) -> Response
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let now = access.clock.now();
    let (key, session) = match access.session(request.headers(), now).await {
        Ok(found) => found,
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "no key for console sessions");
            return framed(Page::unavailable().into_response(), None);
        }
    };
    let is_secure = !cookie::is_loopback(request.headers());
    let is_at_the_door = request.uri().path() == "/sign-in";
    let is_signed_in = session.is_some_and(|session| session.is_signed_in);
    if !is_signed_in && !is_at_the_door {
        if is_from_elsewhere(&request) {
            return framed(([(REFRESH, "0")], Page::once_more(&asked(&request))).into_response(), None);
        }
        return framed(to_the_door(&request).into_response(), None);
    }
    let (session, is_new) = session
        .map_or_else(|| (Session::begin(false, now, &access.entropy), true), |session| (session, false));
    if request.method() == Method::POST {
        match fields(&mut request, &key, &session).await {
            Ok(fields) => drop(request.extensions_mut().insert(fields)),
            Err(page) => return framed(page.into_response(), None),
        }
    }
    let (set, form_token) = (cookie::set(&session, &key, now, is_secure), session.form_token(&key));
    let visit = Visit { now, form_token: form_token.clone(), is_secure, key: Arc::new(key) };
    request.extensions_mut().insert(visit);
    let mut response = next.run(request).await;
    if is_new {
        response.headers_mut().append(SET_COOKIE, set);
    }
    framed(response, is_signed_in.then_some(&Frame { form_token }))
}

/// Puts the page of an answer into its frame, and adds what every answer carries.
fn framed(mut response: Response, frame: Option<&Frame>) -> Response {
    if let Some(page) = response.extensions_mut().remove::<Page>() {
        *response.body_mut() = Body::from(page.render(frame));
        response.headers_mut().insert("content-type", HeaderValue::from_static("text/html; charset=utf-8"));
    }
    let headers: [(HeaderName, &'static str); 6] = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// The way to the sign-in page, and from there back to the page that was asked for.
fn to_the_door(request: &Request) -> Redirect {
    let asked = asked(request);
    let mut query = form_urlencoded::Serializer::new(String::new());
    if request.method() == Method::GET && asked != PATH {
        query.append_pair("next", &asked);
    }
    match query.finish().as_str() {
        "" => Redirect::to(&format!("{PATH}/sign-in")),
        query => Redirect::to(&format!("{PATH}/sign-in?{query}")),
    }
}

/// The page that was asked for.
fn asked(request: &Request) -> String {
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
    if asked == "/" { PATH.to_owned() } else { format!("{PATH}{asked}") }
}

/// Whether a link from another site led here. A browser sends no strict cookie with it, so the visitor may
/// be signed in.
fn is_from_elsewhere(request: &Request) -> bool {
    let site = request.headers().get(FETCH_SITE).and_then(|site| site.to_str().ok());
    request.method() == Method::GET && site.is_some_and(|site| site == "cross-site" || site == "same-site")
}

/// The fields of a form that a page of this session sent.
async fn fields(request: &mut Request, key: &SessionKey, session: &Session) -> Result<Fields, Page> {
    let site = request.headers().get(FETCH_SITE).and_then(|site| site.to_str().ok());
    if site.is_some_and(|site| site != "same-origin") {
        return Err(Page::foreign_form());
    }
    let body = std::mem::take(request.body_mut());
    let body = Limited::new(body, MANAGE_REQUEST_BYTES_MAX).collect().await.map_err(|_| Page::too_large())?;
    let fields = Fields::parse(&body.to_bytes());
    if !session.is_form_token(key, fields.get(FORM_TOKEN)) {
        return Err(Page::foreign_form());
    }
    Ok(fields)
}

/// The sign-in page.
pub(crate) async fn show_sign_in(visit: Visit, Query(query): Query<SignInQuery>) -> Page {
    sign_in::page(&visit, &query, None)
}

/// Signs a visitor in who shows the admin key.
pub(crate) async fn sign_in<S, C, E>(
    State(access): State<Arc<Access<S, C, E>>>,
    visit: Visit,
    fields: Fields,
) -> Response
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let query = SignInQuery { next: Some(fields.get("next").to_owned()) };
    if !access.opens(fields.get("key").trim()) {
        metrics::counter!(SIGN_IN_FAILED_COUNT).increment(1);
        tracing::warn!("sign-in to the console with a wrong key");
        if let Some(places) = &access.wrong_keys {
            let Ok(_place) = places.try_acquire() else {
                return sign_in::page(&visit, &query, Some(Mistake::TooMany)).into_response();
            };
            access.clock.sleep(WRONG_KEY_PAUSE).await;
        }
        return sign_in::page(&visit, &query, Some(Mistake::WrongKey)).into_response();
    }
    tracing::info!("signed in to the console");
    let session = Session::begin(true, visit.now, &access.entropy);
    let cookie = cookie::set(&session, &visit.key, visit.now, visit.is_secure);
    ([(SET_COOKIE, cookie)], Redirect::to(query.next_page())).into_response()
}

/// Signs a visitor out.
pub(crate) async fn sign_out(visit: Visit) -> Response {
    ([(SET_COOKIE, cookie::removed(visit.is_secure))], Redirect::to(&format!("{PATH}/sign-in")))
        .into_response()
}

impl Page {
    fn unavailable() -> Self {
        let body = html! { p { "The state store does not answer. Try again in a few seconds." } };
        Self::new("The console cannot be shown", body).with_status(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// The page that asks for `path` again, now from this site.
    fn once_more(path: &str) -> Self {
        Self::new("One moment", html! { p { a href=(path) { "To the page" } } })
    }

    fn foreign_form() -> Self {
        let body = html! {
            p { "Nothing was changed: the form is not of your present session. Go back, reload the page, and \
                 send it again." }
            p { a href=(PATH) { "To the overview" } }
        };
        Self::new("The form has expired", body).with_status(StatusCode::FORBIDDEN)
    }

    fn too_large() -> Self {
        let body = html! { p { "Nothing was changed: a form has at most 1 MiB." } };
        Self::new("The form is too large", body).with_status(StatusCode::PAYLOAD_TOO_LARGE)
    }
}
