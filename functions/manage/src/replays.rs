//! Replays of dead letters. A request is recorded here; wake carries it out.

mod preview;
mod records;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{
    ReplayPage, ReplayPreview, ReplayReason, ReplayRequest, ReplayState, ReplayView, StatusState,
};
use posthaste_core::release::{ReplayRequestError, Selection};
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{Clock, Entropy, Ports};
use serde::Deserialize;

use crate::document::{BadRequests, NoReplay, Problems, Unchanged, UnknownSubscription};
use crate::error::{ApiError, unknown_subscription};
use crate::extract::{OptionalJsonBody, Path, Query};
use crate::manage::Managed;
use crate::paging::{Page, PageQuery};
use crate::paths::SubscriptionPath;
use crate::response::JsonResponse;

/// The path of a replay.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ReplayPath {
    /// The replay's id, as the answer that began it said.
    id: String,
}

/// Replay a subscription's dead letters
///
/// They go to this subscription alone, whatever its filter says, as new deliveries of the same events, with the header
/// `posthaste-replayed: true`; the dead letters stay where they are. It begins within a minute, goes on at its rate, and
/// waits while there is back pressure. An event that fails again is a new dead letter, which is no part of this replay.
/// With `dryRun` nothing is written, and the answer counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/replay", tag = "dead letters",
    params(SubscriptionPath), request_body(content = Option<ReplayRequest>),
    responses((status = 200, description = "What it would do", body = ReplayPreview),
        (status = 202, description = "It is written down", body = ReplayView,
            headers(("Location" = String, description = "Where it is shown"))),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn replay<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ReplayRequest>,
) -> Result<Response, ApiError> {
    let record = manage.existing(&path.topic).await?;
    let (name, settings) =
        record.settings.subscription(&path.name).ok_or_else(|| unknown_subscription(&path))?;
    let (topic, now) = (&record.name, manage.clock.now());
    let selection = Selection::new(topic, name, &request, now).map_err(|error| bad_settings(&error))?;
    let created = record.created(name);
    if request.dry_run {
        let output = settings.delivery_schema.unwrap_or(record.settings.input_schema);
        let preview: ReplayPreview = manage.preview(&selection, (output, &created)).await?;
        return Ok(JsonResponse::new(preview).into_response());
    }
    let id = layout::replay_id(now, &manage.entropy.uuid().to_string());
    let mut replay = ReplayRecord::new(id, topic.clone(), (name.clone(), &created), request, now);
    if settings.status.as_ref().is_some_and(|status| status.state != StatusState::Active) {
        replay = replay.turned(ReplayState::Waiting, Some(ReplayReason::SubscriptionNotActive), now);
    }
    manage.begin_replay(&replay).await?;
    tracing::info!(replay = replay.id, %topic, subscription = %name, "a replay was asked for");
    let location = format!("/replays/{}", replay.id);
    Ok(JsonResponse::accepted(replay.shown(), location).into_response())
}

/// List replays
///
/// The oldest first. One is kept for 30 days.
#[utoipa::path(get, path = "/replays", tag = "dead letters", params(PageQuery),
    responses((status = 200, description = "One page of replays", body = ReplayPage), BadRequests, Problems))]
pub(crate) async fn list_replays<P: Ports>(
    State(manage): Managed<P>,
    Query(query): Query<PageQuery>,
) -> Result<JsonResponse<ReplayPage>, ApiError> {
    let page = Page::parse(query.limit, query.cursor.as_deref())?;
    Ok(JsonResponse::new(manage.replays(&page).await?))
}

/// Show a replay
#[utoipa::path(get, path = "/replays/{id}", tag = "dead letters", params(ReplayPath),
    responses((status = 200, description = "The replay", body = ReplayView), NoReplay, BadRequests, Problems))]
pub(crate) async fn show_replay<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<ReplayPath>,
) -> Result<JsonResponse<ReplayView>, ApiError> {
    let replay = manage.existing_replay(&path.id).await?;
    Ok(JsonResponse::new(replay.shown()))
}

/// Cancel a replay
///
/// What is in the queue already, up to a minute's worth, is delivered all the same. One that has ended stays as it is.
#[utoipa::path(delete, path = "/replays/{id}", tag = "dead letters", params(ReplayPath),
    responses((status = 200, description = "The replay as it is now", body = ReplayView),
        NoReplay, BadRequests, Unchanged, Problems))]
pub(crate) async fn cancel_replay<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<ReplayPath>,
) -> Result<JsonResponse<ReplayView>, ApiError> {
    Ok(JsonResponse::new(manage.end_replay(&path.id).await?.shown()))
}

fn bad_settings(error: &ReplayRequestError) -> Problem {
    Problem::new(ProblemKind::BadSettings).member(error.member()).detail(error.to_string())
}
