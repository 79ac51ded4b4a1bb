//! The form of a request, and whether a page of its session sent it.

use axum::body::Body;
use axum::extract::{OriginalUri, Request};
use axum::http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Limited};
use maud::{Markup, html};
use posthaste_core::model::MANAGE_REQUEST_BYTES_MAX;

use crate::address;
use crate::console::PATH;
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

/// A form that did nothing, and what was typed into it.
#[derive(Debug)]
pub(super) struct LostForm {
    fields: FormFields,
    /// The page that it was sent to.
    page: String,
    /// The token of the form that goes on with what was typed.
    token: String,
    /// Whether it came from another site, whose text is not shown.
    is_from_elsewhere: bool,
}

impl LostForm {
    pub(super) fn new(request: &Request, fields: FormFields) -> Self {
        Self {
            page: requested_page(request),
            token: fields.get(FORM_TOKEN).to_owned(),
            is_from_elsewhere: is_from_elsewhere(request.headers()),
            fields,
        }
    }

    /// The same with another token for the form that goes on.
    pub(super) fn with_token(self, token: &str) -> Self {
        Self {
            token: token.to_owned(),
            ..self
        }
    }

    /// Whether it was sent to a page of settings. Going on does something else on any other page.
    fn is_of_settings(&self) -> bool {
        let path = self.page.split('?').next().unwrap_or_default();
        let ends = [address::EDIT, address::NEW];
        let is_of_topic = path.starts_with(&format!("{}/", address::page_path(&["topics"])));
        is_of_topic
            && path
                .rsplit('/')
                .next()
                .is_some_and(|end| ends.contains(&end))
    }

    /// The settings that were typed, if they may be shown.
    fn typed_settings(&self) -> Option<TypedSettings> {
        let is_shown = self.is_of_settings() && !self.is_from_elsewhere;
        TypedSettings::from_form(&self.fields).filter(|_| is_shown)
    }

    /// The settings that were typed, to copy or to go on with. Going on saves nothing.
    fn typed_text(&self, label: &str) -> Markup {
        let Some(typed) = self.typed_settings() else {
            return Markup::default();
        };
        let name = self.fields.get("name");
        html! {
            form method="post" action=(self.page) {
                (form_token(&self.token))
                input type="hidden" name="step" value="edit";
                @for name in CARRIED { input type="hidden" name=(name) value=(self.fields.get(name)); }
                @if !name.is_empty() { p { "Name: " strong { (foreign_cut(name, NAME_CHARS_MAX)) } } }
                label for="text" { "Your text" }
                textarea #text name="text" rows=(TEXT_ROWS) readonly { "\n" (typed.text) }
                @if typed.hides_secrets { p.hint { "Secrets that you typed are left out. Type them again." } }
                div.actions { button type="submit" { (label) } }
            }
        }
    }
}

/// The response to a form of a session that has ended: a page with the text that was typed.
pub(super) fn signed_out_page(lost: &LostForm, sign_in: &str) -> ConsolePage {
    let body = html! {
        p { "Your session has ended, and nothing was changed." }
        @if lost.typed_settings().is_some() {
            p { a.button.primary href=(sign_in) target="_blank" rel="noopener" { "Sign in in a new tab" } }
        } @else {
            p { a.button.primary href=(sign_in) { "Sign in" } }
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
            @if lost.typed_settings().is_none() { " Go back, reload the page and send it again." }
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
