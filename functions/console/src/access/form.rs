//! The form of a request, and whether a page of its session sent it.

use axum::body::Body;
use axum::extract::{OriginalUri, Request};
use axum::http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Limited};
use maud::{Markup, html};
use posthaste_core::model::{MANAGE_REQUEST_BYTES_MAX, Timestamp};

use crate::address;
use crate::console::PATH;
use crate::cookie;
use crate::display::foreign_cut;
use crate::extract::FormFields;
use crate::page::{ConsolePage, FORM_TOKEN, form_token};
use crate::pages::settings::TypedSettings;
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

/// Most characters of the name of something new.
const NAME_CHARS_MAX: usize = 100;

/// The fields of settings that are given back as they came.
const CARRIED: [&str; 3] = ["version", "name", "tab"];

/// Longest of these fields, in bytes. No page of the console sends a longer one.
const CARRIED_BYTES_MAX: usize = 256;

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

/// Whether a page of the console sent the form, though none of this session: the browser says so,
/// or the form has the token of a session that the request still has and that was signed in.
pub(super) fn is_of_console(headers: &HeaderMap, fields: &FormFields, key: &SessionKey) -> bool {
    // At the beginning of time no session has ended.
    let sessions = cookie::signed_in_values(headers)
        .filter_map(|value| ConsoleSession::parse(&value, key, Timestamp::EPOCH));
    let mut signed_in = sessions.filter(|session| session.is_signed_in);
    fetch_site(headers) == Some("same-origin")
        || signed_in.any(|session| session.is_form_token(key, fields.get(FORM_TOKEN)))
}

/// A form that did nothing, and what was typed into it.
#[derive(Debug)]
pub(super) struct LostForm {
    /// The page that it was sent to.
    page: String,
    /// The token of the form that goes on with what was typed; `None` where nothing is known of
    /// who typed it, so that it may only be copied.
    token: Option<String>,
    carried: Vec<CarriedField>,
    /// The settings that were typed, if they may be shown.
    typed: Option<TypedSettings>,
}

/// A field that is given back as it came.
#[derive(Debug)]
struct CarriedField {
    name: &'static str,
    value: String,
}

impl LostForm {
    pub(super) fn new(request: &Request, fields: &FormFields) -> Self {
        let page = requested_page(request);
        // Text of another site is not shown. Going on does something else where the form was sent
        // to no page of settings.
        let is_shown = is_of_settings(&page) && !is_from_elsewhere(request.headers());
        let typed = is_shown.then(|| TypedSettings::from_form(fields)).flatten();
        let carried = CARRIED.map(|name| CarriedField {
            name,
            value: fields.get(name).to_owned(),
        });
        let carried = carried.into_iter();
        Self {
            page,
            token: Some(fields.get(FORM_TOKEN).to_owned()),
            carried: carried
                .filter(|field| field.value.len() <= CARRIED_BYTES_MAX)
                .collect(),
            typed,
        }
    }

    /// The same with another token for the form that goes on, or with none.
    pub(super) fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// The settings that were typed, to go on with or to copy. Going on saves nothing.
    fn typed_text(&self, label: &str) -> Markup {
        let Some(typed) = &self.typed else {
            return Markup::default();
        };
        let Some(token) = &self.token else {
            return html! {
                p { "Copy your text, and type it again on " a href=(self.page) { "the page of these settings" } "." }
                (self.text_area(typed))
            };
        };
        html! {
            form method="post" action=(self.page) {
                (form_token(token))
                input type="hidden" name="step" value="edit";
                @for field in &self.carried { input type="hidden" name=(field.name) value=(field.value); }
                (self.text_area(typed))
                div.actions { button type="submit" { (label) } }
            }
        }
    }

    fn text_area(&self, typed: &TypedSettings) -> Markup {
        let name = self.carried.iter().find(|field| field.name == "name");
        let name = name.map_or("", |field| field.value.as_str());
        html! {
            @if !name.is_empty() { p { "Name: " strong { (foreign_cut(name, NAME_CHARS_MAX)) } } }
            label for="text" { "Your text" }
            textarea #text name="text" rows=(TEXT_ROWS) readonly { "\n" (typed.text) }
            @if typed.is_shortened { p.hint { "Secrets and comments are left out. Type them again." } }
        }
    }
}

/// Whether a page is one of settings.
fn is_of_settings(page: &str) -> bool {
    let path = page.split('?').next().unwrap_or_default();
    let ends = [address::EDIT, address::NEW];
    let is_of_topic = path.starts_with(&format!("{}/", address::page_path(&["topics"])));
    let last = path.rsplit('/').next();
    is_of_topic && last.is_some_and(|end| ends.contains(&end))
}

/// The response to a form of a session that has ended: a page with the text that was typed.
pub(super) fn signed_out_page(lost: &LostForm, sign_in: &str) -> ConsolePage {
    let body = html! {
        p { "Your session has ended, and nothing was changed." }
        @if lost.typed.is_some() {
            p { a.button.primary href=(sign_in) target="_blank" rel="noopener" { "Sign in in a new tab" } }
        } @else {
            p { a.button.primary href=(sign_in) { "Sign in" } }
            p { "If you typed something, it is there again when you go back in your browser." }
        }
        (lost.typed_text("Go on editing, once you are signed in"))
    };
    ConsolePage::new("You are signed out", body).with_status(StatusCode::FORBIDDEN)
}

/// The response to a form that no page of this session sent: a page with the text that was typed.
pub(super) fn expired_page(lost: &LostForm) -> ConsolePage {
    let body = html! {
        p {
            "This form belongs to a session that has ended. Nothing was changed."
            @if lost.typed.is_none() { " Go back, reload the page and send it again." }
        }
        p { a href=(PATH) { "To the overview" } }
        (lost.typed_text("Go on editing"))
    };
    ConsolePage::new("The form has expired", body).with_status(StatusCode::FORBIDDEN)
}

/// The response to a form where it is not known who is signed in: a page with the text that was
/// typed.
pub(super) fn unsent_page(reason: &str, lost: &LostForm) -> ConsolePage {
    let body = html! {
        p { (reason) }
        p { "Nothing was changed. What you sent can be sent again when you go back in your browser." }
        (lost.typed_text("Go on editing"))
    };
    ConsolePage::new("Nothing was changed", body).with_status(StatusCode::SERVICE_UNAVAILABLE)
}

/// The page that was asked for.
pub(super) fn requested_page(request: &Request) -> String {
    let uri = request
        .extensions()
        .get::<OriginalUri>()
        .map_or(request.uri(), |OriginalUri(uri)| uri);
    uri.path_and_query()
        .map_or(PATH, |asked| asked.as_str())
        .to_owned()
}

fn too_large_page() -> ConsolePage {
    let body = html! { p { "Nothing was changed: a form has at most 1 MiB and 1,000 fields." } };
    ConsolePage::new("The form is too large", body).with_status(StatusCode::PAYLOAD_TOO_LARGE)
}
