//! The pages.

pub(crate) mod audit;
pub(crate) mod dead_letters;
pub(crate) mod deletion;
pub(crate) mod event;
pub(crate) mod events;
pub(crate) mod failing;
mod hours;
pub(crate) mod kept;
mod known_topic;
pub(crate) mod overview;
pub(crate) mod pressure;
pub(crate) mod replays;
pub(crate) mod search;
mod sent_request;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod sign_in;
pub(crate) mod subscription;
pub(crate) mod subscription_actions;
pub(crate) mod told;
pub(crate) mod topic;
pub(crate) mod topic_actions;
mod topic_names;
pub(crate) mod topics;
pub(crate) mod words;
pub(crate) mod work;

use axum::http::StatusCode;
use maud::html;

use crate::console::PATH;
use crate::page::ConsolePage;

/// The page of an unknown path.
pub(crate) async fn not_found() -> ConsolePage {
    let body = html! { p { "The console has no page of this address. " a href=(PATH) { "To the overview" } } };
    ConsolePage::new("There is no such page", body).with_status(StatusCode::NOT_FOUND)
}
