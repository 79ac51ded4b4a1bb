//! Dead letters: lists of them, the newest first, and each object as it is stored.

mod group_counter;
mod group_rows;
pub(crate) mod groups;
pub(crate) mod import;
mod lists;
pub(crate) mod owners;
pub(crate) mod search;
pub(crate) mod tally;
pub(crate) mod walk;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::DeadLetterPage;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::stored::layout;
use posthaste_ports::Ports;
use serde::Deserialize;

use self::lists::{DeadLetterLists, DeadLetterQuery};
use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::document::{
    BadRequests, LargeObject, NoObject, Problems, UnknownSubscription, UnknownTopic,
};
use crate::extract::{Path, Query, SubscriptionPath, TopicPath};
use crate::letters::LetterReader;
use crate::temporary::UseNotes;

/// The path of a dead-letter object.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct DeadLetterPath {
    /// The object's key, as a list shows it; its slashes may stand as they are. Any text where the
    /// query has the key.
    key: String,
}

/// The query of a dead-letter object.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadLetterKeyQuery {
    /// The object's key, in place of that of the path: for one that posthaste did not make, with
    /// characters that proxies may change in a path, such as `%`.
    key: Option<String>,
}

/// List all dead letters
///
/// One row for each event that was given up, the newest first, of every topic and subscription,
/// also of those that are gone. Rows are read for a few seconds; `cursor` says where to go on.
#[utoipa::path(get, path = "/dead-letters", tag = "dead letters", params(DeadLetterQuery),
    responses((status = 200, description = "One page of dead letters", body = DeadLetterPage),
        BadRequests, Problems))]
pub(crate) async fn list_all_dead_letters<P: Ports>(
    State(lists): State<DeadLetterLists<P>>,
    Query(query): Query<DeadLetterQuery>,
) -> ApiResult<DeadLetterPage> {
    let page = lists.list_all(query).await?;
    Ok(JsonResponse::new(page))
}

/// List a topic's dead letters
///
/// As all dead letters, of one topic. It may have been deleted. Where there is neither a topic nor
/// any dead letter of it, the answer is 404.
#[utoipa::path(get, path = "/topics/{topic}/dead-letters", tag = "dead letters",
    params(TopicPath, DeadLetterQuery),
    responses((status = 200, description = "One page of dead letters", body = DeadLetterPage),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn list_dead_letters_of_topic<P: Ports>(
    State(lists): State<DeadLetterLists<P>>,
    Path(path): Path<TopicPath>,
    Query(query): Query<DeadLetterQuery>,
) -> ApiResult<DeadLetterPage> {
    let page = lists.list_of_topic(&path, query).await?;
    Ok(JsonResponse::new(page))
}

/// List a subscription's dead letters
///
/// As all dead letters, of one subscription. It, or its topic, may have been deleted: its dead
/// letters stay. Where there is neither a subscription nor any dead letter of it, the answer
/// is 404.
#[utoipa::path(get, path = "/topics/{topic}/subscriptions/{name}/dead-letters", tag = "dead letters",
    params(SubscriptionPath, DeadLetterQuery),
    responses((status = 200, description = "One page of dead letters", body = DeadLetterPage),
        BadRequests, UnknownSubscription, Problems))]
pub(crate) async fn list_dead_letters<P: Ports>(
    State(lists): State<DeadLetterLists<P>>,
    Path(path): Path<SubscriptionPath>,
    Query(query): Query<DeadLetterQuery>,
) -> ApiResult<DeadLetterPage> {
    let page = lists.list_of_subscription(&path, query).await?;
    Ok(JsonResponse::new(page))
}

/// Show a dead-letter object
///
/// A JSON array of events, each with the members that say what became of it. A message that could
/// not be read is answered byte for byte.
#[utoipa::path(get, path = "/dead-letters/{*key}", tag = "dead letters",
    params(DeadLetterPath, DeadLetterKeyQuery),
    responses((status = 200, description = "The object", content(
            (Vec<serde_json::Value> = "application/json"), (serde_json::Value = "application/octet-stream"))),
        NoObject, LargeObject, BadRequests, Problems))]
pub(crate) async fn show_dead_letter<P: Ports>(
    State(letters): State<LetterReader<P>>,
    State(uses): State<UseNotes<P>>,
    Path(DeadLetterPath { key }): Path<DeadLetterPath>,
    Query(query): Query<DeadLetterKeyQuery>,
) -> Result<Response, ApiError> {
    let key = query.key.unwrap_or(key);
    let object = letters
        .letter_object(&key)
        .await?
        .ok_or_else(|| ApiProblem::new(ProblemKind::NotFound).detail("there is no such object"))?;
    if let Some((topic, subscription)) = layout::dead_letter_owner(&key) {
        uses.note_dead_letter_read(&topic, &subscription).await;
    }
    let is_json = !key.starts_with(layout::MALFORMED);
    let content_type = if is_json {
        "application/json"
    } else {
        "application/octet-stream"
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Producers wrote the content, so a browser must not show it as a page.
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, object.bytes).into_response())
}
