//! The publish keys of topics: handlers that show, make, replace and remove them.

use axum::extract::State;
use axum::http::StatusCode;
use posthaste_core::api::{KeyName, TopicKeysView};
use posthaste_ports::Ports;
use serde::Deserialize;

use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::RequestCaller;
use crate::document::{BadRequests, Problems, Unchanged, UnknownKey, UnknownTopic};
use crate::extract::{Path, TopicPath};
use crate::key_editor::KeyEditor;
use crate::topic_records::TopicRecords;

/// The last part of a key's path.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct KeyPath {
    /// The name of the key.
    #[param(inline)]
    key: KeyName,
}

/// Show a topic's publish keys
///
/// `key1` and `key2`, which every topic has, and those of the tiers `internal` and `bulk` that were
/// made.
#[utoipa::path(get, path = "/topics/{topic}/keys", tag = "topics", params(TopicPath),
    responses((status = 200, description = "The keys, in clear", body = TopicKeysView),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn get_keys<P: Ports>(
    State(records): State<TopicRecords<P>>,
    Path(path): Path<TopicPath>,
) -> ApiResult<TopicKeysView> {
    Ok(JsonResponse::new(
        records.existing_record(&path.topic).await?.shown_keys(),
    ))
}

/// Make or replace one of a topic's publish keys
///
/// The other keys stay valid, so that producers can be moved over. The old key stops working as
/// soon as every worker has read the change: at once embedded, within seconds on AWS. Producers
/// with `internalKey1` or `internalKey2` may publish where back pressure refuses others; those with
/// `bulkKey1` or `bulkKey2` are refused first.
#[utoipa::path(post, path = "/topics/{topic}/keys/{key}/regenerate", tag = "topics",
    params(TopicPath, KeyPath),
    responses((status = 200, description = "The keys, in clear", body = TopicKeysView),
        BadRequests, UnknownTopic, Unchanged, Problems))]
pub(crate) async fn regenerate_key<P: Ports>(
    State(editor): State<KeyEditor<P>>,
    RequestCaller(caller): RequestCaller,
    Path(KeyPath { key }): Path<KeyPath>,
    Path(TopicPath { topic }): Path<TopicPath>,
) -> ApiResult<TopicKeysView> {
    let keys = editor.regenerate_key(caller, &topic, key).await?;
    Ok(JsonResponse::new(keys))
}

/// Delete a key of another tier
///
/// The key stops working as soon as every worker has read the change. `key1` and `key2` can only be
/// replaced (400).
#[utoipa::path(delete, path = "/topics/{topic}/keys/{key}", tag = "topics", params(TopicPath, KeyPath),
    responses((status = 204, description = "Taken away"), BadRequests, UnknownKey, Unchanged, Problems))]
pub(crate) async fn delete_key<P: Ports>(
    State(editor): State<KeyEditor<P>>,
    RequestCaller(caller): RequestCaller,
    Path(KeyPath { key }): Path<KeyPath>,
    Path(TopicPath { topic }): Path<TopicPath>,
) -> Result<StatusCode, ApiError> {
    editor.delete_key(caller, &topic, key).await?;
    Ok(StatusCode::NO_CONTENT)
}
