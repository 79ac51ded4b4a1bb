//! The form of a request, and whether a page of its session sent it.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Limited};
use maud::{Markup, html};
use posthaste_core::model::MANAGE_REQUEST_BYTES_MAX;

use crate::console::PATH;
use crate::extract::FormFields;
use crate::page::{ConsolePage, FORM_TOKEN};
use crate::session::{ConsoleSession, SessionKey};

/// The header by which a browser says whose page sent a request.
/// <https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header>
const FETCH_SITE: &str = "sec-fetch-site";

/// Longest form of the sign-in page, in bytes. Anybody can send it.
pub(super) const SIGN_IN_BYTES_MAX: usize = 8 * 1024;

/// Longest form of a session that has ended, in bytes: enough for the longest settings as a form
/// sends them.
pub(super) const LOST_BYTES_MAX: usize = 256 * 1024;

/// Longest form of any other page, in bytes.
pub(super) const FORM_BYTES_MAX: usize = MANAGE_REQUEST_BYTES_MAX;

/// Rows of the field that gives a text back.
const TEXT_ROWS: usize = 20;

/// Reads the fields of a form.
pub(super) async fn read_fields(
    request: &mut Request,
    bytes_max: usize,
) -> Result<FormFields, ConsolePage> {
    let body: Body = std::mem::take(request.body_mut());
    let body = Limited::new(body, bytes_max)
        .collect()
        .await
        .map_err(|_| too_large_page())?;
    FormFields::parse(&body.to_bytes()).ok_or_else(too_large_page)
}

/// Whether a page of this session sent the form.
pub(super) fn is_own_form(
    headers: &HeaderMap,
    fields: &FormFields,
    key: &SessionKey,
    session: &ConsoleSession,
) -> bool {
    fetch_site(headers).is_none_or(|site| site == "same-origin")
        && session.is_form_token(key, fields.get(FORM_TOKEN))
}

/// Whether a page of another site led here. A browser sends no strict cookie then, so the visitor
/// may be signed in.
pub(super) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    fetch_site(headers).is_some_and(|site| site == "cross-site" || site == "same-site")
}

fn fetch_site(headers: &HeaderMap) -> Option<&str> {
    headers.get(FETCH_SITE)?.to_str().ok()
}

/// The response to a form of a session that has ended: a page with the text that was typed.
pub(super) fn signed_out_page(
    headers: &HeaderMap,
    fields: &FormFields,
    sign_in: &str,
) -> ConsolePage {
    let body = html! {
        p { "Your session has ended, and nothing was changed." }
        p { a.button.primary href=(sign_in) { "Sign in" } }
        (typed_text(headers, fields))
    };
    ConsolePage::new("You are signed out", body).with_status(StatusCode::FORBIDDEN)
}

/// The response to a form that no page of this session sent: a page with the text that was typed.
pub(super) fn expired_page(headers: &HeaderMap, fields: &FormFields) -> ConsolePage {
    let body = html! {
        p {
            "This form belongs to a session that has ended. Nothing was changed. Go back, reload the page \
             and send it again."
        }
        p { a href=(PATH) { "To the overview" } }
        (typed_text(headers, fields))
    };
    ConsolePage::new("The form has expired", body).with_status(StatusCode::FORBIDDEN)
}

/// The text that was typed, to copy. Another site's text is not shown.
fn typed_text(headers: &HeaderMap, fields: &FormFields) -> Markup {
    let text = fields.get("text");
    html! {
        @if !text.is_empty() && !is_from_elsewhere(headers) {
            label for="text" { "Your text, to copy" }
            textarea #text rows=(TEXT_ROWS) readonly { "\n" (text) }
        }
    }
}

fn too_large_page() -> ConsolePage {
    let body = html! { p { "Nothing was changed: a form has at most 1 MiB and 1,000 fields." } };
    ConsolePage::new("The form is too large", body).with_status(StatusCode::PAYLOAD_TOO_LARGE)
}
