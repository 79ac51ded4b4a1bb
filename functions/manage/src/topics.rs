//! Topics. Their publish keys are in [`crate::keys`].

use axum::extract::State;
use axum::http::StatusCode;
use posthaste_core::api::{AuditAction, AuditEntry, TopicPage, TopicSettings};
use posthaste_ports::Ports;
use serde::Deserialize;

use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::{AuditTrail, RequestCaller};
use crate::conditions::WriteConditions;
use crate::document::{
    BadRequests, BadWrites, FailedPrecondition, Problems, Unchanged, UnknownTopic,
};
use crate::extract::{JsonBody, Path, Query, TopicPath};
use crate::topic_editor::TopicEditor;
use crate::topic_views::{TopicDetail, TopicQuery, TopicViews};

/// The query of one topic.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretsQuery {
    /// Whether secrets are shown in clear, and the publish keys too. Without, secrets are masked.
    #[serde(default)]
    secrets: bool,
}

/// List topics
///
/// In a stable order, without their subscriptions unless `settings` asks for them. A topic whose record cannot be read is in
/// `unreadable`. A page with `secrets` has an entry in the audit trail.
#[utoipa::path(get, path = "/topics", tag = "topics", params(TopicQuery),
    responses((status = 200, description = "One page of topics", body = TopicPage), BadRequests, Problems))]
pub(crate) async fn list_topics<P: Ports>(
    State(views): State<TopicViews<P>>,
    State(audit): State<AuditTrail<P>>,
    RequestCaller(caller): RequestCaller,
    Query(query): Query<TopicQuery>,
) -> ApiResult<TopicPage> {
    let shown = query.requested_detail()?;
    if shown != TopicDetail::Secrets {
        return views.topic_page(&query, shown).await;
    }
    let names = format!("names that begin with {:?}", query.prefix);
    let entry = audit.new_entry(caller, AuditAction::ReadSecrets);
    let entry = entry.of_target(if query.prefix.is_empty() {
        "all topics"
    } else {
        &names
    });
    audit
        .run_audited(entry, views.topic_page(&query, shown), with_name_range)
        .await
}

/// Show a topic
///
/// With its subscriptions. Secrets are masked, unless `secrets` asks for them; then the audit trail
/// has an entry. The answer can be put back as it is.
#[utoipa::path(get, path = "/topics/{topic}", tag = "topics", params(TopicPath, SecretsQuery),
    responses((status = 200, description = "The topic", body = TopicSettings,
        headers(("ETag" = String, description = "The version, for If-Match"))),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn get_topic<P: Ports>(
    State(views): State<TopicViews<P>>,
    State(audit): State<AuditTrail<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<TopicPath>,
    Query(query): Query<SecretsQuery>,
) -> ApiResult<TopicSettings> {
    if !query.secrets {
        return views.topic_response(&path, TopicDetail::Settings).await;
    }
    let entry = audit.new_entry(caller, AuditAction::ReadSecrets);
    let entry = entry.of_topic(&path.topic);
    let shown = views.topic_response(&path, TopicDetail::Secrets);
    audit.run_audited(entry, shown, |entry, _| entry).await
}

/// Create or replace a topic
///
/// Two publish keys are made with a new topic and stay when it is replaced, unless the body has
/// `keys`. Subscriptions in the body are created or replaced; the others stay. A signing secret that
/// is made is shown in this answer, and later only where secrets are asked for.
#[utoipa::path(put, path = "/topics/{topic}", tag = "topics", params(TopicPath,
        ("If-Match" = Option<String>, Header, description = "Write only if this is its version"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: write only if it is not there")),
    request_body = TopicSettings,
    responses((status = 200, description = "Replaced", body = TopicSettings),
        (status = 201, description = "Created", body = TopicSettings),
        BadRequests, BadWrites, Unchanged, Problems))]
pub(crate) async fn put_topic<P: Ports>(
    State(editor): State<TopicEditor<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<TopicPath>,
    conditions: WriteConditions,
    JsonBody(written): JsonBody<TopicSettings>,
) -> ApiResult<TopicSettings> {
    editor
        .put_topic(caller, &path.topic, &conditions, &written)
        .await
}

/// Delete a topic
///
/// With its subscriptions. Events that still wait for them are dead-lettered; dead letters stay.
#[utoipa::path(delete, path = "/topics/{topic}", tag = "topics", params(TopicPath,
        ("If-Match" = Option<String>, Header, description = "Delete only if this is its version")),
    responses((status = 204, description = "Deleted"), BadRequests, UnknownTopic,
        FailedPrecondition, Problems))]
pub(crate) async fn delete_topic<P: Ports>(
    State(editor): State<TopicEditor<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<TopicPath>,
    conditions: WriteConditions,
) -> Result<StatusCode, ApiError> {
    editor
        .delete_topic(caller, &path.topic, &conditions)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The entry with the names of the topics that were shown.
fn with_name_range(entry: AuditEntry, answer: &JsonResponse<TopicPage>) -> AuditEntry {
    match answer.body().name_range() {
        Some((first, last)) => entry.with_detail(&format!("from {first} to {last}")),
        None => entry.with_detail("no topics"),
    }
}
