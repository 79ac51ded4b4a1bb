//! The responses to visitors who are not known to be signed in. Anybody can ask for them.

use std::time::Duration;

use axum::extract::Request;
use axum::http::Method;
use axum::http::header::REFRESH;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use posthaste_ports::{Clock, Entropy, ObjectStore};
use posthaste_services::timeout;
use tokio::sync::SemaphorePermit;
use url::form_urlencoded;

use super::form::{self, LostForm};
use super::framing::framed_response;
use super::sessions::{self, SIGN_OUT};
use super::unavailable::{explain_error, unavailable_page};
use super::visitors::{VisitorAccess, VisitorError};
use crate::console::PATH;
use crate::cookie;
use crate::extract::FormFields;
use crate::page::ConsolePage;
use crate::visit::OverTls;

/// The path of the sign-in page.
pub(super) const SIGN_IN: &str = "/sign-in";

/// Longest query of the sign-in page, in bytes. A longer page to come back to is left out: `serve`
/// and browsers bound URLs.
const SIGN_IN_QUERY_BYTES_MAX: usize = 1_500;

/// Longest time in which a form of settings comes in. Who sends more slowly keeps no place from the
/// others.
const FORM_TIME_MAX: Duration = Duration::from_secs(5);

/// The fields of a visitor who is not known to be signed in.
struct OutsideFields<'a> {
    fields: FormFields,
    /// The place among those that are read and answered at once; `None` if there was none.
    _place: Option<SemaphorePermit<'a>>,
}

/// The response to a visitor who is not signed in.
pub(super) async fn send_to_sign_in<S: ObjectStore, C: Clock, E: Entropy>(
    access: &VisitorAccess<S, C, E>,
    mut request: Request,
) -> Response {
    let asked = form::requested_page(&request);
    if request.method() != Method::POST {
        if form::is_from_elsewhere(request.headers()) {
            let reload = ([(REFRESH, "0")], reload_page(&asked));
            return framed_response(reload.into_response(), None);
        }
        let redirect = Redirect::to(&sign_in_url(&asked));
        return framed_response(redirect.into_response(), None);
    }
    let outside = read_fields(access, &mut request).await;
    let lost = LostForm::new(&request, &outside.fields);
    let page = form::signed_out_page(&lost, &sign_in_url(&asked));
    framed_response(page.into_response(), None)
}

/// The response to a visitor of whom it is not known whether they are signed in.
pub(super) async fn answer_unknown<S: ObjectStore, C: Clock, E: Entropy>(
    access: &VisitorAccess<S, C, E>,
    error: &VisitorError,
    mut request: Request,
) -> Response {
    if request.method() != Method::POST || request.uri().path() == SIGN_IN {
        return framed_response(unavailable_page(error).into_response(), None);
    }
    if request.uri().path() == SIGN_OUT {
        return framed_response(sign_out_unread(access, error, &mut request).await, None);
    }
    let outside = read_fields(access, &mut request).await;
    let lost = LostForm::new(&request, &outside.fields);
    let page = form::unsent_page(explain_error(error), &lost);
    framed_response(page.into_response(), None)
}

/// Signs a browser out without the store, if a page of one of its sessions sent the form. Without
/// the key of sessions nobody can tell: the cookie is removed, and no session is refused. The form
/// is short, and takes no place among those of settings.
async fn sign_out_unread<S: ObjectStore, C: Clock, E: Entropy>(
    access: &VisitorAccess<S, C, E>,
    error: &VisitorError,
    request: &mut Request,
) -> Response {
    let fields = form::read_fields(request, form::SIGN_IN_BYTES_MAX);
    let fields = fields.await.unwrap_or_default();
    let headers = request.headers();
    let is_secure = keeps_to_https(request);
    let reason = explain_error(error);
    let lost = || form::unsent_page(reason, &LostForm::new(request, &fields)).into_response();
    let Some(signed) = access.signed_sessions(headers) else {
        if form::is_from_elsewhere(headers) {
            return lost();
        }
        return sessions::signed_out_here(None, reason, is_secure);
    };
    let mut own = signed.sessions.iter();
    let own = own.find(|session| form::is_own_form(headers, &fields, &signed.key, session));
    let Some(own) = own else { return lost() };
    access.refuse_sessions(&signed.sessions);
    sessions::signed_out_here(Some(own), reason, is_secure)
}

/// Reads the form of a visitor who is not known to be signed in, if not too many are answered now
/// and it comes in time.
async fn read_fields<'a, S: ObjectStore, C: Clock, E: Entropy>(
    access: &'a VisitorAccess<S, C, E>,
    request: &mut Request,
) -> OutsideFields<'a> {
    let place = access.lost_forms.try_acquire().ok();
    let fields = match &place {
        Some(_) => {
            let read = form::read_fields(request, form::LOST_BYTES_MAX);
            timeout(&access.clock, FORM_TIME_MAX, read).await
        }
        None => None,
    };
    let fields = fields.and_then(Result::ok).unwrap_or_default();
    OutsideFields {
        fields,
        _place: place,
    }
}

/// Whether the cookies of a request are for https alone.
pub(super) fn keeps_to_https(request: &Request) -> bool {
    let is_over_tls = request.extensions().get::<OverTls>().is_some();
    is_over_tls || !cookie::is_plain_loopback(request.headers())
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

/// The page that asks for `path` again, now from this site.
fn reload_page(path: &str) -> ConsolePage {
    ConsolePage::new(
        "One moment",
        html! { p { a href=(path) { "To the page" } } },
    )
}
