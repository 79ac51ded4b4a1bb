//! Subscriptions of a topic.

use axum::extract::State;
use axum::http::StatusCode;
use posthaste_core::api::{StatusState, SubscriptionPage, SubscriptionSettings};
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, Ports};
use serde::Deserialize;

use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::RequestCaller;
use crate::conditions::{WriteConditions, subscription_etag};
use crate::document::{
    BadRequests, BadWrites, FailedPrecondition, Problems, Unchanged, UnknownSubscription,
    UnknownTopic,
};
use crate::extract::{JsonBody, Path, Query, SubscriptionPath, TopicPath};
use crate::last_outcomes::LastOutcomes;
use crate::paging::{PageRequest, encode_cursor, folded_prefix};
use crate::request_clock::RequestClock;
use crate::subscription_editor::SubscriptionEditor;
use crate::topic_records::TopicRecords;
use crate::waiting::SubscriptionOutlook;

/// The query of subscriptions.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscriptionQuery {
    /// Only subscriptions whose names begin like this, in any case.
    #[serde(default)]
    prefix: String,
    /// Only subscriptions in this state.
    #[param(inline)]
    state: Option<StatusState>,
    /// Most items on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
}

impl SubscriptionQuery {
    /// Whether it is in the state that is asked for now, which is the one that is shown.
    fn is_in_state(&self, settings: &SubscriptionSettings, now: Timestamp) -> bool {
        let state = settings
            .status
            .as_ref()
            .map_or(StatusState::Active, |status| status.effective_at(now).state);
        self.state.is_none_or(|wanted| wanted == state)
    }
}

/// List a topic's subscriptions
///
/// In the order of their names without regard to case. Secrets are masked. Each has the count of
/// what waits for it, and its health.
#[utoipa::path(get, path = "/topics/{topic}/subscriptions", tag = "subscriptions",
    params(TopicPath, SubscriptionQuery),
    responses((status = 200, description = "One page of subscriptions", body = SubscriptionPage),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn list_subscriptions<P: Ports>(
    State(records): State<TopicRecords<P>>,
    State(outlook): State<SubscriptionOutlook<P>>,
    State(clock): State<RequestClock<P>>,
    Path(path): Path<TopicPath>,
    Query(query): Query<SubscriptionQuery>,
) -> ApiResult<SubscriptionPage> {
    let PageRequest { items, after } = PageRequest::parse(query.limit, query.cursor.as_deref())?;
    let prefix = folded_prefix(&query.prefix)?;
    let record = records.existing_record(&path.topic).await?;
    let after = after.unwrap_or_default();
    let now = clock.now();
    let mut rest: Vec<_> = record
        .settings
        .subscriptions
        .iter()
        .map(|(name, it)| (name.folded(), name, it))
        .collect();
    rest.retain(|(folded, _, settings)| {
        *folded > after && folded.starts_with(&prefix) && query.is_in_state(settings, now)
    });
    rest.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let has_more = rest.len() > items;
    rest.truncate(items);
    let cursor = rest
        .last()
        .filter(|_| has_more)
        .map(|(folded, ..)| encode_cursor(folded));
    let mut subscriptions: Vec<_> = rest
        .iter()
        .map(|(_, name, settings)| settings.to_view(name, now))
        .collect();
    outlook.add_waiting(&record, &mut subscriptions).await;
    Ok(JsonResponse::new(SubscriptionPage {
        subscriptions,
        cursor,
    }))
}

/// Show a subscription
///
/// Secrets are masked. What waits, the last outcome, the health and the circuit are as of now, and
/// as far as they could be read. The answer can be put back as it is.
#[utoipa::path(get, path = "/topics/{topic}/subscriptions/{name}", tag = "subscriptions",
    params(SubscriptionPath),
    responses((status = 200, description = "The subscription", body = SubscriptionSettings,
        headers(("ETag" = String, description = "The version, for If-Match"))),
        BadRequests, UnknownSubscription, Problems))]
pub(crate) async fn get_subscription<P: Ports>(
    State(records): State<TopicRecords<P>>,
    State(outlook): State<SubscriptionOutlook<P>>,
    State(outcomes): State<LastOutcomes<P>>,
    State(clock): State<RequestClock<P>>,
    Path(path): Path<SubscriptionPath>,
) -> ApiResult<SubscriptionSettings> {
    let record = records.existing_record(&path.topic).await?;
    let (name, settings) = path.find_in(&record)?;
    let mut shown = settings.to_view(name, clock.now());
    outlook
        .add_waiting(&record, std::slice::from_mut(&mut shown))
        .await;
    shown.last_outcome = outcomes.last_outcome(&record, name).await.map(Box::new);
    Ok(JsonResponse::with_etag(
        shown,
        subscription_etag(&record, settings),
    ))
}

/// Create or replace a subscription
///
/// The subscription becomes active; with `endpoint.validation`, once its endpoint has consented.
/// The answer shows its state, which may be Pending or Failed. A paused subscription stays paused,
/// and a disabled one disabled unless `endpoint.url` or `endpoint.validation` changes. Secrets that
/// are left out stay as they are. A new subscription gets one, which is shown in this answer and
/// never again. A masked secret keeps the present one. Where `endpoint.url` becomes another one of
/// the same scheme, host and port, a hold ends, as with `force`.
#[utoipa::path(put, path = "/topics/{topic}/subscriptions/{name}", tag = "subscriptions",
    params(SubscriptionPath,
        ("If-Match" = Option<String>, Header, description = "Write only if this is its version"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: write only if it is not there")),
    request_body = SubscriptionSettings,
    responses((status = 200, description = "Replaced", body = SubscriptionSettings),
        (status = 201, description = "Created", body = SubscriptionSettings),
        BadRequests, UnknownTopic, BadWrites, Unchanged, Problems))]
pub(crate) async fn put_subscription<P: Ports>(
    State(editor): State<SubscriptionEditor<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    conditions: WriteConditions,
    JsonBody(written): JsonBody<SubscriptionSettings>,
) -> ApiResult<SubscriptionSettings> {
    editor
        .put_subscription(caller, &path, &conditions, &written)
        .await
}

/// Delete a subscription
///
/// Events that still wait for it are dead-lettered; dead letters stay.
#[utoipa::path(delete, path = "/topics/{topic}/subscriptions/{name}", tag = "subscriptions",
    params(SubscriptionPath,
        ("If-Match" = Option<String>, Header, description = "Delete only if this is its version")),
    responses((status = 204, description = "Deleted"), BadRequests, UnknownSubscription,
        FailedPrecondition, Unchanged, Problems))]
pub(crate) async fn delete_subscription<P: Ports>(
    State(editor): State<SubscriptionEditor<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    conditions: WriteConditions,
) -> Result<StatusCode, ApiError> {
    editor
        .delete_subscription(caller, &path, &conditions)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
