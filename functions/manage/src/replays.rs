//! Replays of dead letters. A request is recorded here; wake carries it out.

pub(crate) mod list;
mod log_preview;
mod open;
mod outcomes;
mod preview;

use std::error::Error;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    AuditAction, MemberChange, ReplayPreview, ReplayReason, ReplayRequest, ReplayState, ReplayView,
    StatusState,
};
use posthaste_core::model::{FormatError, REPLAY_ID_BYTES_MAX};
use posthaste_core::release::{ReplayRequestError, ReplaySelection};
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports, StoredObject};
use posthaste_services::{ObjectEdit, UpdatedObject, update_object};
use serde::Deserialize;
use serde_json::json;

use crate::answer::{ApiError, ApiResult, JsonResponse, unusable_record};
use crate::audit::RequestCaller;
use crate::document::{BadRequests, NoReplay, Problems, Unchanged, UnknownSubscription};
use crate::extract::{OptionalJsonBody, Path, SubscriptionPath};
use crate::manage::ManageState;

/// The problem of a replay from a log that is not written.
const LOG_IS_OFF: &str = "deliveryLog of the topic is off: there is nothing to replay from";

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
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ReplayRequest>,
) -> Result<Response, ApiError> {
    let record = manage.existing_record(&path.topic).await?;
    let (name, settings) = path.find_in(&record)?;
    let topic = &record.name;
    let now = manage.clock.now();
    let request = request.with_fixed_times(now);
    let selection =
        ReplaySelection::new(topic, name, &request, now).map_err(|error| bad_settings(&error))?;
    let created = record.identities_of(name);
    if selection.is_of_log() && manage.is_log_off(Some(&record)) {
        let problem = ApiProblem::new(ProblemKind::BadSettings).member("source");
        return Err(problem.detail(LOG_IS_OFF).into());
    }
    if request.dry_run {
        let output = settings
            .delivery_schema
            .unwrap_or(record.settings.input_schema);
        let preview: ReplayPreview = if selection.is_of_log() {
            let topic = record.compile().map_err(|_| unusable_record())?;
            let to = topic
                .find_subscription(name)
                .ok_or_else(|| path.unknown_problem())?;
            manage.log_preview(&selection, to).await?
        } else {
            manage
                .preview_replay(&selection, &(output, created))
                .await?
        };
        return Ok(JsonResponse::new(preview).into_response());
    }
    let id = layout::replay_id(now, &manage.entropy.uuid().to_string());
    let entry = manage.new_audit_entry(caller, AuditAction::BeginReplay);
    let entry = entry
        .of_subscription(topic, name)
        .of_target(&id)
        .with_detail(&json!(request).to_string());
    let mut replay = ReplayRecord::new(id, topic.clone(), (name.clone(), &created), request, now);
    if settings
        .status
        .as_ref()
        .is_some_and(|status| status.effective_at(now).state != StatusState::Active)
    {
        replay = replay.with_state(
            ReplayState::Waiting,
            Some(ReplayReason::SubscriptionNotActive),
            now,
        );
    }
    let (replay, is_new) = manage
        .run_audited(entry, manage.open_replay(replay), |entry, (replay, _)| {
            entry.of_target(&replay.id)
        })
        .await?;
    tracing::info!(
        replay_id = replay.id, %topic, subscription = %name, is_new, "a replay was asked for"
    );
    let location = format!("/replays/{}", replay.id);
    Ok(JsonResponse::accepted(replay.to_view(), location).into_response())
}

/// Show a replay
///
/// `replay_outcomes` counts from the delivery log what became of the events that were queued. At most
/// 10,000 records are read, the newest, and for at most five seconds.
#[utoipa::path(get, path = "/replays/{id}", tag = "dead letters", params(ReplayPath),
    responses((status = 200, description = "The replay", body = ReplayView),
        NoReplay, BadRequests, Problems))]
pub(crate) async fn show_replay<P: Ports>(
    State(manage): ManageState<P>,
    Path(path): Path<ReplayPath>,
) -> ApiResult<ReplayView> {
    let object = manage.state.get(&replay_key(&path.id)?).await?;
    let replay = parse(&path.id, object)?;
    let outcomes = manage.replay_outcomes(&replay).await;
    Ok(JsonResponse::new(replay.to_view().with_outcomes(outcomes)))
}

/// Cancel a replay
///
/// Events that are in the queue already, up to a minute's worth, are still delivered. A replay that
/// has ended stays as it is.
#[utoipa::path(delete, path = "/replays/{id}", tag = "dead letters", params(ReplayPath),
    responses((status = 200, description = "The replay as it is now", body = ReplayView),
        NoReplay, BadRequests, Unchanged, Problems))]
pub(crate) async fn cancel_replay<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<ReplayPath>,
) -> ApiResult<ReplayView> {
    let id = &path.id;
    let key = replay_key(&path.id)?;
    let replay = parse(id, manage.state.get(&key).await?)?;
    if replay.has_ended() {
        return Ok(JsonResponse::new(replay.to_view()));
    }
    let entry = manage.new_audit_entry(caller, AuditAction::CancelReplay);
    let entry = entry
        .of_subscription(&replay.topic, &replay.subscription)
        .of_target(id);
    let cancel = async {
        let cancelled = update_object(&manage.state, &key, |found| {
            let replay = parse(id, found)?;
            if replay.has_ended() {
                return Ok::<_, ApiProblem>(ObjectEdit::Keep(replay));
            }
            let now = manage.clock.now();
            let replay =
                replay.with_state(ReplayState::Cancelled, Some(ReplayReason::Requested), now);
            Ok(ObjectEdit::Write(replay.render(), replay))
        });
        Ok(cancelled.await?)
    };
    let UpdatedObject { answer, etag } = manage
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

pub(crate) fn bad_settings(error: &ReplayRequestError) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadSettings)
        .member(error.member())
        .detail(error.to_string())
}

fn replay_key(id: &str) -> Result<String, ApiProblem> {
    let is_id = (1..=REPLAY_ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if is_id {
        Ok(layout::replay_record_key(id))
    } else {
        Err(unknown_replay())
    }
}

fn unknown_replay() -> ApiProblem {
    ApiProblem::new(ProblemKind::NotFound).detail("there is no replay of this id")
}

fn parse(id: &str, object: Option<StoredObject>) -> Result<ReplayRecord, ApiProblem> {
    ReplayRecord::parse(&object.ok_or_else(unknown_replay)?.bytes)
        .map_err(|error| unusable_replay_problem(id, &error))
}

/// The problem of a record that cannot be read.
fn unusable_replay_problem(id: &str, error: &FormatError) -> ApiProblem {
    tracing::error!(
        replay_id = id,
        error = error as &dyn Error,
        "the record of a replay cannot be used"
    );
    ApiProblem::new(ProblemKind::Internal).detail("the record of the replay cannot be read")
}
