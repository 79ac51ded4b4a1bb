//! Dead letters that an operator is done with: resolved, so that lists and replays leave them out,
//! or deleted.

use std::time::Duration;

use axum::extract::State;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{ResolveAnswer, ResolveRequest};
use posthaste_core::model::{Created, Schema};
use posthaste_core::release::Selection;
use posthaste_core::stored::{FormatError, layout};
use posthaste_ports::{Clock, ObjectStore, Ports};
use posthaste_services::UpdateError;
use posthaste_services::replay::letter_objects;
use posthaste_services::resolved::{can_be_resolved, resolve_letters};

use crate::answer::{Answer, ApiError, JsonResponse, conflict};
use crate::document::{BadRequests, Problems, Unchanged, UnknownSubscription};
use crate::extract::{OptionalJsonBody, Path, SubscriptionPath};
use crate::letters::{Letters, Receiver, fail};
use crate::manage::{Manage, Managed};
use crate::paging::{Page, after_in, cursor};
use crate::replays::bad_settings;

/// Longest time for one request. Work that begins just before its end still ends before the
/// request's time limit.
const WORKING_TIME: Duration = Duration::from_secs(8);

/// Why letters of an object cannot be resolved.
const KEY_TOO_LONG: &str = "the object's key is too long for a list of its resolved letters; only the whole object can be deleted";

/// Most objects of one request, so that it ends even if the clock stands still.
const OBJECTS_MAX: usize = 1000;

/// Resolve a subscription's dead letters
///
/// A resolved dead letter needs nothing more: lists and replays leave it out unless asked. The
/// objects stay as they are. Letters that a replay delivers again are resolved without this
/// request. One request works for a few seconds; its `cursor` says where to go on. With `dryRun` it
/// only counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/resolve",
    tag = "dead letters", params(SubscriptionPath), request_body(content = Option<ResolveRequest>),
    responses((status = 200, description = "The letters that are resolved", body = ResolveAnswer),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn resolve_dead_letters<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ResolveRequest>,
) -> Answer<ResolveAnswer> {
    manage
        .end_letters(&path, request, End::Resolve)
        .await
        .map(JsonResponse::new)
}

/// Delete a subscription's dead letters
///
/// Resolved letters are selected too. An object is deleted when all its letters are selected or
/// resolved. Otherwise it stays, and the selected letters in it are resolved. One request works for
/// a few seconds; its `cursor` says where to go on. With `dryRun` it only counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/delete",
    tag = "dead letters", params(SubscriptionPath), request_body(content = Option<ResolveRequest>),
    responses((status = 200, description = "The letters that are deleted or resolved", body = ResolveAnswer),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn delete_dead_letters<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ResolveRequest>,
) -> Answer<ResolveAnswer> {
    manage
        .end_letters(&path, request, End::Delete)
        .await
        .map(JsonResponse::new)
}

/// What becomes of the selected letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Resolve,
    Delete,
}

/// The work of one request.
struct Task {
    end: End,
    is_dry_run: bool,
    selection: Selection,
    receiver: Receiver,
}

impl<P: Ports> Manage<P> {
    async fn end_letters(
        &self,
        path: &SubscriptionPath,
        mut request: ResolveRequest,
        end: End,
    ) -> Result<ResolveAnswer, ApiError> {
        let after = Page::parse(None, request.cursor.take().as_deref())?.after;
        let is_dry_run = request.dry_run;
        let mut request = request.selection(end == End::Delete);
        let receiver = self.receiver(path).await?;
        // All letters of a subscription that is gone are former ones.
        request.include_former |= receiver.is_none();
        let now = self.clock.now();
        let selection = Selection::new(&path.topic, &path.name, &request, now);
        let selection = selection.map_err(|error| bad_settings(&error))?;
        let after = after_in(selection.prefix(), after)?;
        let receiver = receiver.unwrap_or((Schema::default(), Created::UNKNOWN));
        let answer = self
            .work(
                &Task {
                    end,
                    is_dry_run,
                    selection,
                    receiver,
                },
                after,
            )
            .await?;
        if !is_dry_run {
            tracing::info!(
                topic = %path.topic, subscription = %path.name, is_deletion = end == End::Delete,
                events = answer.events, objects = answer.objects, deleted_objects = answer.deleted_objects,
                "dead letters were resolved or deleted by request"
            );
        }
        Ok(answer)
    }

    /// The subscription of a path; `None` if it is gone and has dead letters.
    async fn receiver(&self, path: &SubscriptionPath) -> Result<Option<Receiver>, ApiError> {
        let record = self.load(&path.topic).await?;
        let found = record
            .as_ref()
            .and_then(|record| path.find(record).ok().map(|found| (record, found)));
        if let Some((record, (name, settings))) = found {
            let schema = settings
                .delivery_schema
                .unwrap_or(record.settings.input_schema);
            return Ok(Some((schema, record.created(name))));
        }
        let prefix = layout::dead_letters_of(&path.topic, &path.name);
        if self
            .dead_letters
            .list(&prefix, None, 1)
            .await?
            .objects
            .is_empty()
        {
            return Err(path.unknown().into());
        }
        Ok(None)
    }

    async fn work(
        &self,
        task: &Task,
        mut after: Option<String>,
    ) -> Result<ResolveAnswer, ApiError> {
        let end = self.clock.monotonic() + WORKING_TIME;
        let (mut answer, mut worked) = (ResolveAnswer::default(), 0);
        loop {
            let page =
                letter_objects(&self.dead_letters, &task.selection, after.as_deref()).await?;
            for object in page.objects {
                if worked == OBJECTS_MAX || self.clock.monotonic() >= end {
                    return Ok(ResolveAnswer {
                        cursor: after.as_deref().map(cursor),
                        ..answer
                    });
                }
                worked += 1;
                let letters = self
                    .letters(&object.key, &task.selection, &task.receiver)
                    .await?;
                self.end_object(task, &object.key, letters, &mut answer)
                    .await?;
                after = Some(object.key);
            }
            after = page.next_after;
            if after.is_none() {
                return Ok(answer);
            }
        }
    }

    /// Resolves or deletes the selected letters of one object.
    async fn end_object(
        &self,
        task: &Task,
        key: &str,
        letters: Letters,
        answer: &mut ResolveAnswer,
    ) -> Result<(), ApiError> {
        let Letters {
            selected,
            broken,
            others,
            ..
        } = letters;
        let is_deleted = task.end == End::Delete && broken.is_empty() && others.is_empty();
        fail(broken, key, (&mut answer.failed, &mut answer.failures));
        if selected.is_empty() {
            return Ok(());
        }
        if !is_deleted && !can_be_resolved(key) {
            let broken = vec![(None, KEY_TOO_LONG.to_owned())];
            fail(broken, key, (&mut answer.failed, &mut answer.failures));
            return Ok(());
        }
        answer.events += u64::try_from(selected.len()).unwrap_or(u64::MAX);
        answer.objects += 1;
        answer.deleted_objects += u64::from(is_deleted);
        if task.is_dry_run {
            return Ok(());
        }
        if is_deleted {
            // The letters first: a list of resolved letters without them says nothing.
            self.dead_letters.delete(key).await?;
            if can_be_resolved(key) {
                self.dead_letters.delete(&layout::resolved(key)).await?;
            }
            return Ok(());
        }
        let places = selected.into_iter().map(|(index, _)| index).collect();
        resolve_letters(&self.dead_letters, key, &places)
            .await
            .map_err(unresolved)?;
        Ok(())
    }
}

fn unresolved(error: UpdateError<FormatError>) -> ApiError {
    match error {
        UpdateError::Read(error) | UpdateError::Write(error) => error.into(),
        UpdateError::Edit(_) => {
            let detail =
                "the list of the object's resolved dead letters was written by a newer version";
            Problem::new(ProblemKind::Internal).detail(detail).into()
        }
        UpdateError::Contended => conflict().into(),
    }
}
