//! The routes of the API, and the document that describes them.

use std::sync::{Arc, OnceLock};

use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use posthaste_core::api::apply_file_schema;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_ports::Ports;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::ApiError;
use crate::document::{Crowded, describe_api};
use crate::guard::{complete_request, limit_time, require_admin_key};
use crate::manage::{Manage, ManageState};
use crate::{
    actions, attempts, audit, callbacks, cancel_event, dead_letters, doctor, event_request, events,
    failing, find, find_subscriptions, keys, links, replays, resend, resolve, status,
    subscriptions, test_event, topics, webhook_keys,
};

/// Routes of this function.
type ManageRoutes<P> = OpenApiRouter<Arc<Manage<P>>>;

/// The API.
pub fn router<P: Ports>(manage: Arc<Manage<P>>) -> axum::Router {
    router_beside(manage, axum::Router::new())
}

/// The API, beside other routes, some with other methods on its paths. It answers unknown paths and
/// methods itself, so `others` must not have a fallback.
pub fn router_beside<P: Ports>(manage: Arc<Manage<P>>, others: axum::Router) -> axum::Router {
    let guard = from_fn_with_state(Arc::clone(&manage), require_admin_key::<P>);
    let complete = from_fn_with_state(Arc::clone(&manage), complete_request::<P>);
    let guarded = guarded_routes().split_for_parts().0;
    let guarded = guarded.route_layer(complete).route_layer(guard);
    let open = open_routes().split_for_parts().0;
    let limit = from_fn_with_state(Arc::clone(&manage), limit_time::<P>);
    guarded
        .merge(open)
        .route_layer(limit)
        .with_state(manage)
        .merge(others)
        .method_not_allowed_fallback(|| async {
            ApiError(ApiProblem::new(ProblemKind::MethodNotAllowed))
        })
        .fallback(|| async { ApiError(ApiProblem::new(ProblemKind::NotFound)) })
}

/// Routes of another crate, which need the admin key like the API's own. They may take as long as
/// they take, and are not described in its document.
pub fn with_admin_key_check<P: Ports>(
    manage: Arc<Manage<P>>,
    routes: axum::Router,
) -> axum::Router {
    routes.route_layer(from_fn_with_state(manage, require_admin_key::<P>))
}

/// The API without its guard, for a caller in this process that knows its visitors: the console.
pub fn unguarded_router<P: Ports>(manage: Arc<Manage<P>>) -> axum::Router {
    let complete = from_fn_with_state(Arc::clone(&manage), complete_request::<P>);
    let limit = from_fn_with_state(Arc::clone(&manage), limit_time::<P>);
    guarded_routes()
        .split_for_parts()
        .0
        .route_layer(complete)
        .route_layer(limit)
        .with_state(manage)
}

/// The routes that need the admin key.
fn guarded_routes<P: Ports>() -> ManageRoutes<P> {
    OpenApiRouter::new()
        .routes(routes!(topics::list_topics))
        .routes(routes!(
            topics::get_topic,
            topics::put_topic,
            topics::delete_topic
        ))
        .routes(routes!(keys::get_keys))
        .routes(routes!(keys::delete_key))
        .routes(routes!(keys::regenerate_key))
        .routes(routes!(subscriptions::list_subscriptions))
        .routes(routes!(
            subscriptions::get_subscription,
            subscriptions::put_subscription,
            subscriptions::delete_subscription
        ))
        .routes(routes!(actions::rotate_secret))
        .routes(routes!(actions::act_on_subscription))
        .routes(routes!(actions::force))
        .routes(routes!(dead_letters::list_all_dead_letters))
        .routes(routes!(dead_letters::groups::list_letter_groups))
        .routes(routes!(dead_letters::list_dead_letters_of_topic))
        .routes(routes!(dead_letters::list_dead_letters))
        .routes(routes!(dead_letters::show_dead_letter))
        .routes(routes!(dead_letters::import::import_dead_letters))
        .routes(routes!(events::list_events))
        .routes(routes!(events::show_event, cancel_event::cancel_event))
        .routes(routes!(event_request::show_event_request))
        .routes(routes!(find::find_events))
        .routes(routes!(find_subscriptions::find_subscriptions))
        .routes(routes!(attempts::list_attempts))
        .routes(routes!(test_event::test_event))
        .routes(routes!(replays::replay))
        .routes(routes!(resolve::resolve_dead_letters))
        .routes(routes!(resolve::delete_dead_letters))
        .routes(routes!(resolve::list::list_letter_work))
        .routes(routes!(
            resolve::list::show_letter_work,
            resolve::cancel::cancel_letter_work
        ))
        .routes(routes!(resend::resend))
        .routes(routes!(replays::list::list_replays))
        .routes(routes!(replays::show_replay, replays::cancel_replay))
        .routes(routes!(status::pressure))
        .routes(routes!(links::links))
        .routes(routes!(failing::failing))
        .routes(routes!(doctor::doctor))
        .routes(routes!(audit::list::list_audit))
}

/// The routes without a key.
fn open_routes<P: Ports>() -> ManageRoutes<P> {
    OpenApiRouter::new()
        .routes(routes!(status::health))
        .routes(routes!(openapi_json))
        .routes(routes!(schema_json))
        .routes(routes!(webhook_keys::webhook_keys))
        .routes(routes!(callbacks::consent, callbacks::post_consent))
}

/// Show this document
///
/// Needs no key.
#[utoipa::path(get, path = "/openapi.json", tag = "status", security(()),
    responses((status = 200, description = "The OpenAPI document", body = serde_json::Value), Crowded))]
async fn openapi_json<P: Ports>(_function: ManageState<P>) -> Response {
    static JSON: OnceLock<Bytes> = OnceLock::new();
    // The document is plain data with text keys: serialising it cannot fail.
    let json =
        JSON.get_or_init(|| Bytes::from(openapi_document::<P>().to_json().unwrap_or_default()));
    (
        [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        json.clone(),
    )
        .into_response()
}

/// Show the JSON Schema of the YAML file
///
/// Editors complete and check the file of `posthaste apply` with it. Needs no key.
#[utoipa::path(get, path = "/schema.json", tag = "status", security(()),
    responses((status = 200, description = "The JSON Schema", body = serde_json::Value), Crowded))]
async fn schema_json<P: Ports>(_function: ManageState<P>) -> Response {
    static JSON: OnceLock<Bytes> = OnceLock::new();
    let json = JSON.get_or_init(|| Bytes::from(apply_file_schema().to_string()));
    (
        [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        json.clone(),
    )
        .into_response()
}

/// The OpenAPI 3.1 document of the whole HTTP API.
pub(crate) fn openapi_document<P: Ports>() -> OpenApi {
    describe_api([
        guarded_routes::<P>().into_openapi(),
        open_routes::<P>().into_openapi(),
    ])
}
