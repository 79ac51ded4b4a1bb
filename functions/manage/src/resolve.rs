//! Dead letters that an operator is done with: resolved, so that lists and replays leave them out,
//! or deleted.

mod claim;
mod left;
mod worked;

use std::time::Duration;

use axum::extract::State;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditCaller, AuditEntry, ResolveRequest, ResolveResponse};
use posthaste_core::model::FormatError;
use posthaste_core::release::ReplaySelection;
use posthaste_core::stored::{LetterEnd, LetterEnding, LetterReceiver, layout};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports};
use posthaste_services::UpdateError;
use posthaste_services::replay::letter_objects;
use posthaste_services::resolved::{can_be_resolved, resolve_letters};
use serde_json::json;

use crate::answer::{ApiError, ApiResult, JsonResponse, conflict_problem};
use crate::audit::RequestCaller;
use crate::document::{BadRequests, Problems, Unchanged, UnknownSubscription};
use crate::extract::{OptionalJsonBody, Path, SubscriptionPath};
use crate::letters::{SchemaAndCreation, SelectedLetters, add_failures};
use crate::manage::{Manage, ManageState};
use crate::paging::{PageRequest, after_in};
use crate::replays::bad_settings;
use claim::SelectionClaim;
use worked::{ResolveProgress, StopReason, log_progress};

/// Longest time for one request. Work that begins just before its end still ends before the
/// request's time limit.
const WORKING_TIME: Duration = Duration::from_secs(8);

/// Objects in a row that a store fails with before it counts as failing. One alone is passed over: it
/// keeps no other from its end.
const UNAVAILABLE_IN_A_ROW_MAX: usize = 3;

/// Why letters of an object cannot be resolved.
const KEY_TOO_LONG: &str = "the object's key is too long for a list of its resolved letters; only the whole object can be deleted";

/// Most objects of one request, so that it ends even if the clock stands still.
const OBJECTS_MAX: usize = 1000;

/// Resolve a subscription's dead letters
///
/// A resolved dead letter needs nothing more: lists and replays leave it out unless asked. The
/// objects stay as they are. Letters that a replay delivers again are resolved without this
/// request. One request works for a few seconds; its `cursor` says where to go on. What nobody goes
/// on with is gone on with within two minutes: by the server itself, on AWS beside the answers to
/// later requests. The same is not done twice at once: a request that comes while another one works
/// on the same selection is answered 202 with its `id`. Objects that cannot be read or written are
/// `failed`, and stay. With `dryRun` it only counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/resolve",
    tag = "dead letters", params(SubscriptionPath), request_body(content = Option<ResolveRequest>),
    responses((status = 200, description = "The letters that are resolved", body = ResolveResponse),
        (status = 202, description = "Another request resolves the same letters now", body = ResolveResponse),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn resolve_dead_letters<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ResolveRequest>,
) -> ApiResult<ResolveResponse> {
    let end = LetterEnd::Resolve;
    manage.end_letters(caller, &path, request, end).await
}

/// Delete a subscription's dead letters
///
/// Resolved letters are selected too. An object is deleted when all its letters are selected or
/// resolved. Otherwise it stays, and the selected letters in it are resolved. One request works for
/// a few seconds; its `cursor` says where to go on. What nobody goes on with, what fails, and what is
/// asked for twice is as with `resolve`. With `dryRun` it only counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/delete",
    tag = "dead letters", params(SubscriptionPath), request_body(content = Option<ResolveRequest>),
    responses((status = 200, description = "The letters that are deleted or resolved", body = ResolveResponse),
        (status = 202, description = "Another request deletes the same letters now", body = ResolveResponse),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn delete_dead_letters<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ResolveRequest>,
) -> ApiResult<ResolveResponse> {
    let end = LetterEnd::Delete;
    manage.end_letters(caller, &path, request, end).await
}

/// What is done with the letters of a selection.
struct ResolveTask {
    end: LetterEnd,
    is_dry_run: bool,
    selection: ReplaySelection,
    receiver: SchemaAndCreation,
}

impl<P: Ports> Manage<P> {
    async fn end_letters(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        mut request: ResolveRequest,
        end: LetterEnd,
    ) -> ApiResult<ResolveResponse> {
        let after = PageRequest::parse(None, request.cursor.take().as_deref())?.after;
        let is_dry_run = std::mem::take(&mut request.dry_run);
        let now = self.clock.now();
        let receiver = self.letter_receiver(path).await?;
        // All letters of a subscription that is gone are former ones.
        request.include_former |= receiver.is_none();
        let ending = LetterEnding {
            id: self.entropy.uuid().to_string(),
            topic: path.topic.clone(),
            subscription: path.name.clone(),
            receiver,
            end,
            request: request.with_fixed_times(now),
            began_at: now,
            worked_at: now,
            after,
            has_ended: false,
        };
        let task = ResolveTask::for_ending(&ending)?;
        let ending = LetterEnding {
            after: after_in(task.selection.prefix(), ending.after)?,
            ..ending
        };
        if is_dry_run {
            let task = ResolveTask { is_dry_run, ..task };
            let until = self.clock.monotonic() + WORKING_TIME;
            let worked = self.work_on_task(&task, ending.after, until).await;
            return worked.into_result().map(JsonResponse::new);
        }
        let action = match end {
            LetterEnd::Resolve => AuditAction::ResolveDeadLetters,
            LetterEnd::Delete => AuditAction::DeleteDeadLetters,
        };
        let entry = self.new_audit_entry(caller, action);
        let entry = entry
            .of_subscription(&path.topic, &path.name)
            .with_detail(&json!(ending.request).to_string());
        self.run_audited(entry, self.end_unless_claimed(&task, ending), with_counts)
            .await
    }

    /// Ends the letters of a task, unless another request does.
    async fn end_unless_claimed(
        &self,
        task: &ResolveTask,
        ending: LetterEnding,
    ) -> ApiResult<ResolveResponse> {
        let until = self.clock.monotonic() + WORKING_TIME;
        let (id, worked) = match self.claim_ending(ending).await? {
            SelectionClaim::Own(own) => {
                let worked = self
                    .work_on_task(task, own.ending.after.clone(), until)
                    .await;
                log_progress(&own.ending, &worked);
                let id = own.ending.id.clone();
                self.write_progress(*own, &worked, self.clock.now()).await?;
                (id, worked)
            }
            SelectionClaim::Beside(other) => {
                let worked = self.work_on_task(task, other.after.clone(), until).await;
                log_progress(&other, &worked);
                (other.id, worked)
            }
            SelectionClaim::Others(id) => {
                return Ok(JsonResponse::in_progress(ResolveResponse {
                    id: Some(id),
                    in_progress: true,
                    ..ResolveResponse::default()
                }));
            }
        };
        Ok(JsonResponse::new(ResolveResponse {
            id: Some(id),
            ..worked.into_result()?
        }))
    }

    /// The subscription of a path; `None` if it is gone and has dead letters.
    async fn letter_receiver(
        &self,
        path: &SubscriptionPath,
    ) -> Result<Option<LetterReceiver>, ApiError> {
        let record = self.load_record(&path.topic).await?;
        let found = record
            .as_ref()
            .and_then(|record| path.find_in(record).ok().map(|found| (record, found)));
        if let Some((record, (name, settings))) = found {
            let schema = settings
                .delivery_schema
                .unwrap_or(record.settings.input_schema);
            let created = record.identities_of(name);
            return Ok(Some(LetterReceiver { schema, created }));
        }
        let prefix = layout::dead_letters_of(&path.topic, &path.name);
        if self
            .dead_letters
            .list(&prefix, None, 1)
            .await?
            .objects
            .is_empty()
        {
            return Err(path.unknown_problem().into());
        }
        Ok(None)
    }

    /// Resolves or deletes letters up to a time of the clock's `monotonic`, and of one object at
    /// least.
    async fn work_on_task(
        &self,
        task: &ResolveTask,
        after: Option<String>,
        until: Duration,
    ) -> ResolveProgress {
        let mut answer = ResolveResponse::default();
        let mut seen = 0;
        let mut unavailable = 0;
        // The key before the objects that the store failed with in a row, and the last key.
        let mut good = after.clone();
        let mut last = after;
        let stop = 'objects: loop {
            let listed = letter_objects(&self.dead_letters, &task.selection, last.as_deref()).await;
            let page = match listed {
                Ok(page) => page,
                Err(error) => break StopReason::Failed(error.into()),
            };
            let begin = last.clone();
            for object in &page.objects {
                let is_late = seen == OBJECTS_MAX || self.clock.monotonic() >= until;
                if is_late && seen > 0 {
                    // The next request lists the rest of the page again.
                    let left_out = page.left_out(begin.as_deref(), last.as_deref());
                    answer.left_out.add_all(&left_out);
                    break 'objects StopReason::Late;
                }
                seen += 1;
                match self.end_object(task, &object.key, &mut answer).await {
                    Ok(()) => unavailable = 0,
                    Err(error) if is_store_problem(error.0.kind) => {
                        unavailable += 1;
                        if unavailable == UNAVAILABLE_IN_A_ROW_MAX {
                            last = good;
                            break 'objects StopReason::Failed(error);
                        }
                        note_failure(error, &object.key, &mut answer);
                    }
                    Err(error) => {
                        unavailable = 0;
                        note_failure(error, &object.key, &mut answer);
                    }
                }
                last = Some(object.key.clone());
                if unavailable == 0 {
                    good.clone_from(&last);
                }
            }
            answer.left_out.add_all(&page.left_out(None, None));
            let Some(next) = page.next_after else {
                break StopReason::Done;
            };
            last = Some(next);
            if unavailable == 0 {
                good.clone_from(&last);
            }
        };
        ResolveProgress {
            answer,
            after: last,
            stop,
        }
    }

    /// Resolves or deletes the selected letters of one object.
    async fn end_object(
        &self,
        task: &ResolveTask,
        key: &str,
        answer: &mut ResolveResponse,
    ) -> Result<(), ApiError> {
        let SelectedLetters {
            selected,
            resolved,
            left_out,
            broken,
            others,
        } = self
            .select_letters(key, &task.selection, &task.receiver)
            .await?;
        let is_deleted = task.end == LetterEnd::Delete && broken.is_empty() && others.is_empty();
        add_failures(broken, key, (&mut answer.failed, &mut answer.failures));
        answer.resolved += resolved;
        answer.left_out.add_all(&left_out);
        if selected.is_empty() {
            return Ok(());
        }
        if !is_deleted && !can_be_resolved(key) {
            let broken = vec![(None, KEY_TOO_LONG.to_owned())];
            add_failures(broken, key, (&mut answer.failed, &mut answer.failures));
            return Ok(());
        }
        let events = u64::try_from(selected.len()).unwrap_or(u64::MAX);
        if !task.is_dry_run && is_deleted {
            // The letters first: a list of resolved letters without them says nothing.
            self.dead_letters.delete(key).await?;
            if can_be_resolved(key) {
                self.dead_letters
                    .delete(&layout::resolved_letters_key(key))
                    .await?;
            }
        } else if !task.is_dry_run {
            let places = selected.into_iter().map(|(index, _)| index).collect();
            resolve_letters(&self.dead_letters, key, &places)
                .await
                .map_err(resolve_error)?;
        }
        answer.events += events;
        answer.objects += 1;
        answer.deleted_objects += u64::from(is_deleted);
        Ok(())
    }
}

impl ResolveTask {
    fn for_ending(ending: &LetterEnding) -> Result<Self, ApiError> {
        let LetterReceiver { schema, created } = ending.receiver.unwrap_or(LetterReceiver::GONE);
        let is_deletion = ending.end == LetterEnd::Delete;
        let request = ending.request.clone().into_replay_request(is_deletion);
        let topic = &ending.topic;
        let name = &ending.subscription;
        let selection = ReplaySelection::new(topic, name, &request, ending.began_at);
        Ok(Self {
            end: ending.end,
            is_dry_run: false,
            selection: selection.map_err(|error| bad_settings(&error))?,
            receiver: (schema, created),
        })
    }
}

/// The entry with what became of the letters.
fn with_counts(entry: AuditEntry, answered: &JsonResponse<ResolveResponse>) -> AuditEntry {
    let ResolveResponse {
        id,
        in_progress,
        events,
        deleted_objects,
        failed,
        ..
    } = answered.body();
    let done = if *in_progress {
        "another request works on the same dead letters".to_owned()
    } else {
        format!("{events} events, {deleted_objects} objects deleted, {failed} failed")
    };
    let asked = entry.detail.clone().unwrap_or_default();
    entry
        .of_target(id.as_deref().unwrap_or_default())
        .with_detail(&format!("{done}; asked for {asked}"))
}

/// Whether a problem is likely to be that of all objects.
fn is_store_problem(kind: ProblemKind) -> bool {
    matches!(kind, ProblemKind::Unavailable | ProblemKind::StorageFull)
}

/// Counts an object that cannot be read or written now. Its problem shows no cause.
fn note_failure(error: ApiError, key: &str, answer: &mut ResolveResponse) {
    let ApiProblem { kind, detail, .. } = error.0;
    let detail = detail.unwrap_or_else(|| kind.title().to_owned());
    let broken = vec![(None, detail)];
    add_failures(broken, key, (&mut answer.failed, &mut answer.failures));
}

fn resolve_error(error: UpdateError<FormatError>) -> ApiError {
    match error {
        UpdateError::Read(error) | UpdateError::Write(error) => error.into(),
        UpdateError::Edit(_) => {
            let detail =
                "the list of the object's resolved dead letters was written by a newer version";
            ApiProblem::new(ProblemKind::Internal).detail(detail).into()
        }
        UpdateError::Contended => conflict_problem().into(),
    }
}
