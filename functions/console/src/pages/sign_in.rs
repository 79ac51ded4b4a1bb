//! The sign-in page.

use std::borrow::Cow;

use axum::http::StatusCode;
use maud::html;
use serde::Deserialize;

use crate::address::local_page;
use crate::console::PATH;
use crate::page::{ConsolePage, form_token};
use crate::visit::{PageVisit, SignInMistake};

/// The query of the page.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct SignInQuery {
    /// The page to go to after signing in.
    pub(crate) next: Option<String>,
}

impl SignInQuery {
    /// The page to go to: one of the console, and never one of another site.
    pub(crate) fn next_page(&self) -> &str {
        self.next.as_deref().and_then(local_page).unwrap_or(PATH)
    }
}

/// The page.
pub(crate) fn render_page(
    visit: &PageVisit,
    query: &SignInQuery,
    mistake: Option<SignInMistake>,
) -> ConsolePage {
    let body = html! {
        form.sign-in method="post" action={ (PATH) "/sign-in" } {
            (form_token(&visit.form_token))
            input type="hidden" name="next" value=(query.next_page());
            @if let Some(mistake) = mistake { p.problem role="alert" { (mistake_text(mistake)) } }
            label for="key" { "Admin key" }
            input #key type="password" name="key" autocomplete="current-password" required autofocus;
            button.primary type="submit" { "Sign in" }
        }
        p.hint {
            "The key that opens the management API. " code { "posthaste serve" } " keeps it in the file "
            code { "admin.key" } " of its data folder. On AWS it is the key whose digest is the parameter "
            code { "AdminKeySha256" } "."
        }
    };
    ConsolePage::new("Sign in", body).with_status(mistake.map_or(StatusCode::OK, mistake_status))
}

const fn mistake_status(mistake: SignInMistake) -> StatusCode {
    match mistake {
        SignInMistake::TooMany => StatusCode::TOO_MANY_REQUESTS,
        SignInMistake::WrongKey
        | SignInMistake::NoKey(_)
        | SignInMistake::TooLate
        | SignInMistake::NoCookie => StatusCode::FORBIDDEN,
    }
}

fn mistake_text(mistake: SignInMistake) -> Cow<'static, str> {
    let text = match mistake {
        SignInMistake::NoKey(error) => return format!("This is not an admin key: {error}.").into(),
        SignInMistake::WrongKey => "This is not the admin key.",
        SignInMistake::TooMany => "Too many sign-ins with a wrong key. Try again in a second.",
        SignInMistake::TooLate => "This page was open for too long. Sign in again.",
        SignInMistake::NoCookie => {
            "Your browser did not keep the cookie of this page. It keeps it over https, and over http on \
             your own machine: use https, or forward a port to localhost."
        }
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_one_of_the_console() {
        let check = |next: &str, expected| {
            let query = SignInQuery {
                next: Some(next.to_owned()),
            };
            assert_eq!(query.next_page(), expected, "{next}");
        };
        for next in [
            "/console",
            "/console/links",
            "/console?x=1",
            "/console/events?id=a%20b",
        ] {
            check(next, next);
        }
        for next in [
            "",
            "/",
            "//evil.example",
            "https://evil.example",
            "/consoles",
            "/console\\x",
            "/console/\r\nx",
        ] {
            check(next, PATH);
        }
        assert_eq!(SignInQuery::default().next_page(), PATH);
    }
}
