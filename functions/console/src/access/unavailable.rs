//! The page where it is not known who is signed in.

use axum::http::StatusCode;
use maud::html;
use posthaste_services::UpdateError;

use super::visitors::VisitorError;
use crate::page::ConsolePage;

/// The page.
pub(super) fn unavailable_page(error: &VisitorError) -> ConsolePage {
    let body = html! { p { (explain_error(error)) } };
    ConsolePage::new("The console cannot be shown", body)
        .with_status(StatusCode::SERVICE_UNAVAILABLE)
}

/// The reason, and what can be done about it.
pub(super) const fn explain_error(error: &VisitorError) -> &'static str {
    match error {
        VisitorError::List(UpdateError::Edit(_)) => {
            "A newer version of posthaste wrote the list of who is signed in, which this version cannot read and \
             leaves as it is. Start the newer version again."
        }
        VisitorError::List(_) | VisitorError::Key(_) | VisitorError::TooSlow => {
            "The state store does not answer. Try again in a few seconds."
        }
    }
}
