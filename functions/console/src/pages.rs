//! The pages.

pub(crate) mod links;
pub(crate) mod overview;
pub(crate) mod pressure;
pub(crate) mod sign_in;

use axum::http::StatusCode;
use maud::html;

use crate::page::Page;
use crate::router::PATH;

/// The page of an unknown path.
pub(crate) async fn not_found() -> Page {
    let body =
        html! { p { "The console has no page of this address. " a href=(PATH) { "To the overview" } } };
    Page::new("There is no such page", body).with_status(StatusCode::NOT_FOUND)
}
