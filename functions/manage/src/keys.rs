//! The publish keys of topics: handlers that show, make, replace and remove them.

use axum::extract::State;
use axum::http::StatusCode;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, KeyName, TopicKeysView};
use posthaste_core::model::TopicName;
use posthaste_core::stored::TopicRecord;
use posthaste_ports::Ports;
use serde::Deserialize;

use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::RequestCaller;
use crate::document::{BadRequests, Problems, Unchanged, UnknownKey, UnknownTopic};
use crate::extract::{Path, TopicPath};
use crate::manage::ManageState;

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
    State(manage): ManageState<P>,
    Path(path): Path<TopicPath>,
) -> ApiResult<TopicKeysView> {
    Ok(JsonResponse::new(
        manage.existing_record(&path.topic).await?.shown_keys(),
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
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(KeyPath { key }): Path<KeyPath>,
    Path(TopicPath { topic }): Path<TopicPath>,
) -> ApiResult<TopicKeysView> {
    let editor = manage.editor();
    let edit = |record: &mut TopicRecord| {
        record.set_key(key, editor.new_publish_key());
        Ok(())
    };
    let entry = manage.new_audit_entry(caller, AuditAction::RegenerateKey);
    let entry = entry.of_target(&key.to_string());
    let (record, ()) = manage.change_existing(entry, &topic, &[], edit).await?;
    tracing::info!(topic = %record.name, publish_key = %key, "publish key replaced");
    Ok(JsonResponse::new(record.shown_keys()))
}

/// Delete a key of another tier
///
/// The key stops working as soon as every worker has read the change. `key1` and `key2` can only be
/// replaced (400).
#[utoipa::path(delete, path = "/topics/{topic}/keys/{key}", tag = "topics", params(TopicPath, KeyPath),
    responses((status = 204, description = "Taken away"), BadRequests, UnknownKey, Unchanged, Problems))]
pub(crate) async fn delete_key<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(KeyPath { key }): Path<KeyPath>,
    Path(TopicPath { topic }): Path<TopicPath>,
) -> Result<StatusCode, ApiError> {
    let edit = |record: &mut TopicRecord| match record.remove_key(key) {
        Some(true) => Ok(()),
        Some(false) => Err(unknown_key(&topic, key)),
        None => Err(permanent_key_problem(key)),
    };
    let entry = manage.new_audit_entry(caller, AuditAction::DeleteKey);
    let entry = entry.of_target(&key.to_string());
    let (record, ()) = manage.change_existing(entry, &topic, &[], edit).await?;
    tracing::info!(topic = %record.name, publish_key = %key, "publish key removed");
    Ok(StatusCode::NO_CONTENT)
}

fn unknown_key(topic: &TopicName, key: KeyName) -> ApiProblem {
    ApiProblem::new(ProblemKind::NotFound).detail(format!("the topic {topic} has no {key}"))
}

fn permanent_key_problem(key: KeyName) -> ApiProblem {
    let detail = format!("every topic has a {key}: it can be replaced, not taken away");
    ApiProblem::new(ProblemKind::BadRequest)
        .member("key")
        .detail(detail)
}
