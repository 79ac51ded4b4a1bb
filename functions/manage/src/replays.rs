//! Replays of dead letters. A request is recorded here; wake carries it out.

pub(crate) mod final_outcomes;
mod letter_preview;
pub(crate) mod list;
mod log_preview;
mod outcomes;
mod starter;
mod store;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use posthaste_core::api::{AuditAction, MemberChange, ReplayPreview, ReplayRequest, ReplayView};
use posthaste_core::stored::ReplayRecord;
use posthaste_ports::Ports;
use posthaste_services::UpdatedObject;
use serde::Deserialize;
use serde_json::json;

use self::outcomes::OutcomeCounter;
use self::starter::{ReplayStarter, StartedReplay};
use self::store::ReplayStore;
use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::{AuditTrail, RequestCaller};
use crate::document::{BadRequests, NoReplay, Problems, Unchanged, UnknownSubscription};
use crate::extract::{OptionalJsonBody, Path, SubscriptionPath};

/// The path of a replay.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ReplayPath {
    /// The replay's id, as the answer that began it said.
    id: String,
}

/// Replay a subscription's dead letters
///
/// The events go to this subscription alone, whatever its filter says, as new deliveries with the
/// header `posthaste-replayed: true`. The dead letters stay where they are, and are resolved once
/// their events are delivered or have failed again: the next replay leaves those out. The replay
/// begins within a minute, goes on at its rate, and waits while there is back pressure. An event
/// that fails again is a new dead letter, which is no part of this replay. With `dryRun` nothing is
/// written, and the answer counts the events.
///
/// One replay of a selection is open at a time, whatever its rate: as long as it has not ended, the
/// same request gets the same id, and begins nothing. Two selections that differ may overlap: an
/// event that is in both is sent twice.
///
/// With the source `log` the events are those of the delivery log whose deliveries ended in the
/// time that is asked for, also those that were delivered. They keep their `webhook-id`. What is
/// still tried, and what a replay or a resend sent, is left out.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/replay", tag = "dead letters",
    params(SubscriptionPath), request_body(content = Option<ReplayRequest>),
    responses((status = 200, description = "The work of the replay", body = ReplayPreview),
        (status = 202, description = "The replay is stored, and will begin; or the one of the same \
            selection that has not ended", body = ReplayView,
            headers(("Location" = String, description = "The path that shows the replay"))),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn replay<P: Ports>(
    State(starter): State<ReplayStarter<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ReplayRequest>,
) -> Result<Response, ApiError> {
    match starter.start_replay(caller, &path, request).await? {
        StartedReplay::DryRun(preview) => Ok(JsonResponse::new(preview).into_response()),
        StartedReplay::Stored(replay) => {
            let location = format!("/replays/{}", replay.id);
            Ok(JsonResponse::accepted(replay.to_view(), location).into_response())
        }
    }
}

/// Show a replay
///
/// `outcomes` counts from the delivery log what became of the events that were queued. At most
/// 10,000 records are read, the newest, and for at most five seconds.
#[utoipa::path(get, path = "/replays/{id}", tag = "dead letters", params(ReplayPath),
    responses((status = 200, description = "The replay", body = ReplayView),
        NoReplay, BadRequests, Problems))]
pub(crate) async fn show_replay<P: Ports>(
    State(replays): State<ReplayStore<P>>,
    State(outcomes): State<OutcomeCounter<P>>,
    Path(path): Path<ReplayPath>,
) -> ApiResult<ReplayView> {
    let replay = replays.load_replay(&path.id).await?;
    Ok(JsonResponse::new(
        outcomes.add_outcomes(replay.to_view()).await,
    ))
}

/// Cancel a replay
///
/// Events that are in the queue already, up to a minute's worth, are still delivered. A replay that
/// has ended stays as it is.
#[utoipa::path(delete, path = "/replays/{id}", tag = "dead letters", params(ReplayPath),
    responses((status = 200, description = "The replay as it is now", body = ReplayView),
        NoReplay, BadRequests, Unchanged, Problems))]
pub(crate) async fn cancel_replay<P: Ports>(
    State(replays): State<ReplayStore<P>>,
    State(audit): State<AuditTrail<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<ReplayPath>,
) -> ApiResult<ReplayView> {
    let id = &path.id;
    let replay = replays.load_replay(id).await?;
    if replay.has_ended() {
        return Ok(JsonResponse::new(replay.to_view()));
    }
    let entry = audit.new_entry(caller, AuditAction::CancelReplay);
    let entry = entry
        .of_subscription(&replay.topic, &replay.subscription)
        .of_target(id);
    let cancel = async { Ok(replays.cancel_replay(id).await?) };
    let UpdatedObject { answer, etag } = audit
        .run_audited(entry, cancel, |entry, cancelled| {
            entry.with_changes(state_change(&replay, &cancelled.answer))
        })
        .await?;
    if etag.is_some() {
        tracing::info!(replay_id = id, "a replay was cancelled");
    }
    Ok(JsonResponse::new(answer.to_view()))
}

/// The change of a replay's state, if there is one.
fn state_change(before: &ReplayRecord, after: &ReplayRecord) -> Vec<MemberChange> {
    let [before, after] = [before, after].map(|replay| Some(json!(replay.to_view().state)));
    let change = MemberChange {
        member: "state".to_owned(),
        before,
        after,
    };
    Vec::from_iter((change.before != change.after).then_some(change))
}
