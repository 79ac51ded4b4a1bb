//! The routes of the console, under [`PATH`].

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::OriginalUri;
use axum::middleware::{from_fn_with_state, map_response_with_state};
use axum::response::Redirect;
use axum::routing::{get, post};
use posthaste_ports::{Clock, Entropy, ObjectStore};

use crate::access::{self, Access};
use crate::assets;
use crate::console::{Console, PATH};
use crate::page;
use crate::pages::{
    audit, dead_letters, edit_subscription, edit_topic, event, events, find, links,
    new_subscription, new_topic, not_found, overview, pressure, replays, subscription,
    subscription_actions, topic, topic_actions, topics,
};

/// The routes of the console, for visitors that `access` lets in.
pub fn router<S, C, E>(access: Arc<Access<S, C, E>>, console: Console) -> Router
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let sign_in = get(access::show_sign_in).post(access::sign_in::<S, C, E>);
    let doors = Router::new()
        .route("/sign-in", sign_in)
        .route("/sign-out", post(access::sign_out))
        .with_state(Arc::clone(&access));
    let refresh = console.refresh;
    let pages = Router::new()
        .route("/", get(overview::overview))
        .route("/links", get(links::links))
        .route("/pressure", get(pressure::pressure))
        .route("/audit", get(audit::audit))
        .merge(topic_pages())
        .merge(event_routes())
        .merge(dead_letter_routes())
        .fallback(not_found)
        .with_state(Arc::new(console))
        .layer(map_response_with_state(refresh, page::refreshing));
    let guarded = doors
        .merge(pages)
        .method_not_allowed_fallback(page_of_form)
        .layer(from_fn_with_state(access, access::guard::<S, C, E>));
    let open = Router::new().route("/assets/{file}", get(assets::asset));
    let to_overview = get(|| async { Redirect::to(PATH) });
    Router::new()
        .route("/", to_overview.clone())
        .route(&format!("{PATH}/"), to_overview)
        .nest(PATH, open.merge(guarded))
}

/// Leads from an address that takes a form alone, such as after signing in again, to the page above
/// it, which has the form.
async fn page_of_form(OriginalUri(uri): OriginalUri) -> Redirect {
    let above = uri.path().rsplit_once('/').map_or(PATH, |(above, _)| above);
    Redirect::to(if above.starts_with(PATH) { above } else { PATH })
}

/// The pages of topics and subscriptions.
fn topic_pages() -> Router<Arc<Console>> {
    let subscription = Router::new()
        .route("/", get(subscription::subscription))
        .route(
            "/edit",
            get(edit_subscription::form).post(edit_subscription::send),
        )
        .route("/test", post(subscription_actions::test))
        .route("/force", post(subscription_actions::force))
        .route("/rotate-secret", post(subscription_actions::rotate))
        .route("/delete", post(subscription_actions::delete))
        .route("/{action}", post(subscription_actions::act));
    Router::new()
        .route("/topics", get(topics::topics))
        .route("/topics/new", get(new_topic::form).post(new_topic::send))
        .route("/topics/{topic}", get(topic::topic))
        .route(
            "/topics/{topic}/edit",
            get(edit_topic::form).post(edit_topic::send),
        )
        .route("/topics/{topic}/delete", post(topic_actions::delete))
        .route("/topics/{topic}/keys", post(topic_actions::keys))
        .route(
            "/topics/{topic}/keys/{key}",
            post(topic_actions::regenerate),
        )
        .route(
            "/topics/{topic}/keys/{key}/delete",
            post(topic_actions::delete_key),
        )
        .route(
            "/topics/{topic}/subscriptions/new",
            get(new_subscription::form).post(new_subscription::send),
        )
        .nest("/topics/{topic}/subscriptions/{name}", subscription)
}

fn event_routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/events", get(events::events))
        .route("/find", get(find::find))
        .route("/topics/{topic}/events/{id}", get(event::event))
        .route("/topics/{topic}/event", get(event::event_by_query))
        .route("/topics/{topic}/resend", post(event::resend))
}

fn dead_letter_routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/dead-letters", get(dead_letters::dead_letters))
        .route("/dead-letters/record", get(dead_letters::record))
        .route("/dead-letters/replay", post(dead_letters::replay))
        .route("/dead-letters/resolve", post(dead_letters::resolve))
        .route("/dead-letters/delete", post(dead_letters::delete))
        .route("/replays", get(replays::replays))
        .route("/replays/{id}", get(replays::replay))
        .route("/replays/{id}/cancel", post(replays::cancel))
}
