//! The publish keys of topics: shown, made, replaced, taken away.

use axum::extract::State;
use axum::http::StatusCode;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{KeyName, TopicKeysView};
use posthaste_core::model::TopicName;
use posthaste_core::stored::TopicRecord;
use posthaste_ports::Ports;
use serde::Deserialize;

use crate::document::{BadRequests, Problems, Unchanged, UnknownKey, UnknownTopic};
use crate::error::{ApiError, unknown_topic};
use crate::extract::Path;
use crate::manage::Managed;
use crate::paths::TopicPath;
use crate::response::JsonResponse;

/// The path of a key.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct KeyPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    topic: TopicName,
    /// Which key.
    #[param(inline)]
    key: KeyName,
}

/// Show a topic's publish keys
///
/// `key1` and `key2`, which every topic has, and those of the tiers `internal` and `bulk` that were made.
#[utoipa::path(get, path = "/topics/{topic}/keys", tag = "topics", params(TopicPath),
    responses((status = 200, description = "The keys, in clear", body = TopicKeysView),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn get_keys<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<TopicPath>,
) -> Result<JsonResponse<TopicKeysView>, ApiError> {
    Ok(JsonResponse::new(manage.existing(&path.topic).await?.shown_keys()))
}

/// Make one of a topic's publish keys, or make it anew
///
/// The others stay valid, so that producers can be moved over. The old one stops working as soon as every worker
/// has read the change: at once embedded, within seconds on AWS. Who publishes with `internalKey1` or `internalKey2` may
/// publish where back pressure refuses other producers; who does with `bulkKey1` or `bulkKey2` is refused first.
#[utoipa::path(post, path = "/topics/{topic}/keys/{key}/regenerate", tag = "topics", params(KeyPath),
    responses((status = 200, description = "The keys, in clear", body = TopicKeysView),
        BadRequests, UnknownTopic, Unchanged, Problems))]
pub(crate) async fn regenerate_key<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<KeyPath>,
) -> Result<JsonResponse<TopicKeysView>, ApiError> {
    let editor = manage.editor();
    let edit = |present: Option<TopicRecord>| {
        let mut record = present.ok_or_else(|| unknown_topic(&path.topic))?;
        record.set_key(path.key, editor.key());
        Ok((record, ()))
    };
    let (record, ()) = manage.change(&path.topic, &[], edit).await?;
    tracing::info!(topic = %record.name, key = %path.key, "publish key made anew");
    Ok(JsonResponse::new(record.shown_keys()))
}

/// Take a key of another tier away
///
/// It stops working as soon as every worker has read the change. `key1` and `key2` can be made anew only (400).
#[utoipa::path(delete, path = "/topics/{topic}/keys/{key}", tag = "topics", params(KeyPath),
    responses((status = 204, description = "Taken away"), BadRequests, UnknownKey, Unchanged, Problems))]
pub(crate) async fn delete_key<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<KeyPath>,
) -> Result<StatusCode, ApiError> {
    let edit = |present: Option<TopicRecord>| {
        let mut record = present.ok_or_else(|| unknown_topic(&path.topic))?;
        match record.remove_key(path.key) {
            Some(true) => Ok((record, ())),
            Some(false) => Err(unknown_key(&path)),
            None => Err(permanent(path.key)),
        }
    };
    let (record, ()) = manage.change(&path.topic, &[], edit).await?;
    tracing::info!(topic = %record.name, key = %path.key, "publish key taken away");
    Ok(StatusCode::NO_CONTENT)
}

fn unknown_key(path: &KeyPath) -> Problem {
    Problem::new(ProblemKind::NotFound).detail(format!("the topic {} has no {}", path.topic, path.key))
}

fn permanent(key: KeyName) -> Problem {
    let detail = format!("every topic has a {key}: it can be made anew, not taken away");
    Problem::new(ProblemKind::BadRequest).member("key").detail(detail)
}
