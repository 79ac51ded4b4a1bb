//! Dead letters that an operator is done with: resolved, so that lists and replays leave them out,
//! or deleted.

mod claim;

use std::time::Duration;

use axum::extract::State;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{ResolveAnswer, ResolveRequest};
use posthaste_core::model::{Created, Schema};
use posthaste_core::release::Selection;
use posthaste_core::stored::{FormatError, LetterEnd, LetterEnding, layout};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports, PutCondition};
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
use claim::Claimed;

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
/// request. One request works for a few seconds; its `cursor` says where to go on, and what nobody
/// goes on with is finished within two minutes. The same is not done twice at once: a request that
/// comes while another one works on the same selection is answered 202 with its `id`. With `dryRun`
/// it only counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/resolve",
    tag = "dead letters", params(SubscriptionPath), request_body(content = Option<ResolveRequest>),
    responses((status = 200, description = "The letters that are resolved", body = ResolveAnswer),
        (status = 202, description = "Another request resolves the same letters now", body = ResolveAnswer),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn resolve_dead_letters<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ResolveRequest>,
) -> Answer<ResolveAnswer> {
    manage.end_letters(&path, request, LetterEnd::Resolve).await
}

/// Delete a subscription's dead letters
///
/// Resolved letters are selected too. An object is deleted when all its letters are selected or
/// resolved. Otherwise it stays, and the selected letters in it are resolved. One request works for
/// a few seconds; its `cursor` says where to go on, and what nobody goes on with is finished within
/// two minutes. The same is not done twice at once, as with `resolve`. With `dryRun` it only counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/delete",
    tag = "dead letters", params(SubscriptionPath), request_body(content = Option<ResolveRequest>),
    responses((status = 200, description = "The letters that are deleted or resolved", body = ResolveAnswer),
        (status = 202, description = "Another request deletes the same letters now", body = ResolveAnswer),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn delete_dead_letters<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ResolveRequest>,
) -> Answer<ResolveAnswer> {
    manage.end_letters(&path, request, LetterEnd::Delete).await
}

/// The work of one request.
struct Task {
    end: LetterEnd,
    is_dry_run: bool,
    selection: Selection,
    receiver: Receiver,
}

impl<P: Ports> Manage<P> {
    async fn end_letters(
        &self,
        path: &SubscriptionPath,
        mut request: ResolveRequest,
        end: LetterEnd,
    ) -> Answer<ResolveAnswer> {
        let after = Page::parse(None, request.cursor.take().as_deref())?.after;
        let is_dry_run = std::mem::take(&mut request.dry_run);
        let now = self.clock.now();
        let mut ending = LetterEnding {
            id: self.entropy.uuid().to_string(),
            topic: path.topic.clone(),
            subscription: path.name.clone(),
            end,
            request,
            began_at: now,
            worked_at: now,
            after,
        };
        let task = self.task(path, &mut ending).await?;
        ending.after = after_in(task.selection.prefix(), ending.after)?;
        if is_dry_run {
            let task = Task { is_dry_run, ..task };
            let answer = self.work(&task, ending.after).await?;
            return Ok(JsonResponse::new(answer));
        }
        match self.claim_ending(ending).await? {
            Claimed::Own(ending) => self.go_on(*ending, &task).await.map(JsonResponse::new),
            Claimed::Others(id) => Ok(JsonResponse::in_progress(ResolveAnswer {
                id: Some(id),
                in_progress: true,
                ..ResolveAnswer::default()
            })),
        }
    }

    /// The selection of a request, and who receives its letters. All letters of a subscription that
    /// is gone are former ones.
    async fn task(
        &self,
        path: &SubscriptionPath,
        ending: &mut LetterEnding,
    ) -> Result<Task, ApiError> {
        let receiver = self.receiver(path).await?;
        ending.request.include_former |= receiver.is_none();
        let request = ending
            .request
            .clone()
            .selection(ending.end == LetterEnd::Delete);
        let selection = Selection::new(&path.topic, &path.name, &request, ending.began_at);
        Ok(Task {
            end: ending.end,
            is_dry_run: false,
            selection: selection.map_err(|error| bad_settings(&error))?,
            receiver: receiver.unwrap_or((Schema::default(), Created::UNKNOWN)),
        })
    }

    /// Works for a few seconds, and writes down how far that came.
    async fn go_on(&self, ending: LetterEnding, task: &Task) -> Result<ResolveAnswer, ApiError> {
        let answer = self.work(task, ending.after.clone()).await?;
        let key = ending.key();
        match Page::parse(None, answer.cursor.as_deref())?.after {
            None => self.state.delete(&key).await?,
            after => {
                let worked_at = self.clock.now();
                let left = LetterEnding {
                    after,
                    worked_at,
                    ..ending.clone()
                };
                self.state
                    .put(&key, left.render(), PutCondition::Always)
                    .await?;
            }
        }
        tracing::info!(
            topic = %ending.topic, subscription = %ending.subscription,
            is_deletion = task.end == LetterEnd::Delete, events = answer.events,
            objects = answer.objects, deleted_objects = answer.deleted_objects,
            "dead letters were resolved or deleted by request"
        );
        Ok(ResolveAnswer {
            id: Some(ending.id),
            ..answer
        })
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
        let is_deleted = task.end == LetterEnd::Delete && broken.is_empty() && others.is_empty();
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
