//! The routes of the console, under [`PATH`].

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::OriginalUri;
use axum::middleware::{from_fn_with_state, map_response_with_state};
use axum::response::Redirect;
use axum::routing::{get, post};
use posthaste_ports::{Clock, Entropy, ObjectStore};

use crate::access::{self, VisitorAccess};
use crate::assets;
use crate::console::{ConsoleState, PATH, PageRoutes};
use crate::page;
use crate::pages::{
    audit, dead_letters, event, events, failing, kept, not_found, overview, pressure, replays,
    search, settings, subscription, subscription_actions, told, topic, topic_actions, topics,
    words, work,
};

/// The routes of the console, for visitors that `access` lets in.
pub fn router<S, C, E>(access: Arc<VisitorAccess<S, C, E>>, console: ConsoleState) -> Router
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let sign_in = get(access::show_sign_in).post(access::sign_in::<S, C, E>);
    let doors = Router::new()
        .route("/sign-in", sign_in)
        .with_state(Arc::clone(&access))
        .merge(access::session_routes(Arc::clone(&access)));
    let refresh = console.refresh;
    let pages = Router::new()
        .merge(overview::routes())
        .merge(failing::routes())
        .merge(kept::routes())
        .merge(told::routes())
        .merge(pressure::routes())
        .merge(words::routes())
        .merge(audit::routes())
        .merge(topic_pages())
        .merge(search::routes())
        .merge(events::routes())
        .merge(event::routes())
        .merge(dead_letters::routes())
        .merge(replays::routes())
        .merge(work::routes())
        .fallback(not_found)
        .with_state(Arc::new(console))
        .layer(map_response_with_state(refresh, page::add_refresh));
    let guarded = doors
        .merge(pages)
        .method_not_allowed_fallback(redirect_to_form_page)
        .layer(from_fn_with_state(access, access::guard_pages::<S, C, E>));
    let open = Router::new().route("/assets/{file}", get(assets::serve_file));
    let to_overview = get(|| async { Redirect::to(PATH) });
    Router::new()
        .route("/", to_overview.clone())
        .route(&format!("{PATH}/"), to_overview)
        .nest(PATH, open.merge(guarded))
}

/// Leads from an address that takes a form alone, such as after signing in again, to the page above
/// it, which has the form.
async fn redirect_to_form_page(OriginalUri(uri): OriginalUri) -> Redirect {
    let above = uri.path().rsplit_once('/').map_or(PATH, |(above, _)| above);
    Redirect::to(if above.starts_with(PATH) { above } else { PATH })
}

/// The pages of topics and subscriptions.
fn topic_pages() -> PageRoutes {
    let subscription = Router::new()
        .route("/", get(subscription::show_page))
        .route("/test", post(subscription_actions::send_test_event))
        .route("/force", post(subscription_actions::force))
        .route("/rotate-secret", post(subscription_actions::rotate_secret))
        .route("/delete", post(subscription_actions::delete))
        .route("/{action}", post(subscription_actions::change_state));
    Router::new()
        .merge(settings::routes())
        .route("/topics", get(topics::show_page))
        .route("/topics/{topic}", get(topic::show_page))
        .route("/topics/{topic}/delete", post(topic_actions::delete_topic))
        .route("/topics/{topic}/keys", post(topic_actions::show_keys))
        .route(
            "/topics/{topic}/keys/{key}",
            post(topic_actions::regenerate_key),
        )
        .route(
            "/topics/{topic}/keys/{key}/delete",
            post(topic_actions::delete_key),
        )
        .nest("/topics/{topic}/subscriptions/{name}", subscription)
}
