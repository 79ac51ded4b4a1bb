//! The end of dead letters: the letters of one object after the other are resolved or deleted.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{ReplayFailure, ResolveResponse};
use posthaste_core::model::FormatError;
use posthaste_core::release::ReplaySelection;
use posthaste_core::stored::{LetterEnd, LetterEnding, LetterReceiver, layout};
use posthaste_ports::{Clock, ObjectStore, Ports};
use posthaste_services::UpdateError;
use posthaste_services::replay::letter_objects;
use posthaste_services::resolved::{can_be_resolved, resolve_letters};

use super::worked::{ResolveProgress, StopReason};
use crate::answer::{ApiError, conflict_problem};
use crate::letters::{LetterReader, SelectedLetters, bad_settings};
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Longest time for one request. Work that begins just before its end still ends before the
/// request's time limit.
pub(super) const WORKING_TIME: Duration = Duration::from_secs(8);

/// Objects in a row that a store fails with before it counts as failing. One alone is passed over: it
/// keeps no other from its end.
const UNAVAILABLE_IN_A_ROW_MAX: usize = 3;

/// The reason why letters of an object cannot be resolved.
const KEY_TOO_LONG: &str = "the object's key is too long for a list of its resolved letters; only the whole object can be deleted";

/// Most objects of one request, so that it ends even if the clock stands still.
const OBJECTS_MAX: usize = 1000;

/// The work on the letters of a selection.
pub(super) struct ResolveTask {
    pub(super) end: LetterEnd,
    pub(super) is_dry_run: bool,
    pub(super) selection: ReplaySelection,
    pub(super) receiver: LetterReceiver,
}

impl ResolveTask {
    /// The work that is written down.
    pub(super) fn for_ending(ending: &LetterEnding) -> Result<Self, ApiError> {
        let is_deletion = ending.end == LetterEnd::Delete;
        let request = ending.request.clone().into_replay_request(is_deletion);
        let topic = &ending.topic;
        let name = &ending.subscription;
        let selection = ReplaySelection::new(topic, name, &request, ending.began_at);
        Ok(Self {
            end: ending.end,
            is_dry_run: false,
            selection: selection.map_err(|error| bad_settings(&error))?,
            receiver: ending.receiver.unwrap_or(LetterReceiver::GONE),
        })
    }
}

/// A turn up to an object: where it goes back to if the store fails from there on. Those objects are
/// looked at again by a later turn, which counts them.
#[derive(Default)]
struct GoodPlace {
    /// The key before the object.
    after: Option<String>,
    answer: ResolveResponse,
    /// The number of objects that were looked at.
    seen: usize,
}

/// The work that resolves or deletes letters.
pub(super) struct LetterEnder<P: Ports> {
    dead_letters: SharedPort<P, P::DeadLetters>,
    clock: P::Clock,
    letters: LetterReader<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LetterEnder<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            clock: manage.clock.clone(),
            letters: LetterReader::from_ref(manage),
        }
    }
}

impl<P: Ports> LetterEnder<P> {
    /// Resolves or deletes letters up to a time of the clock's `monotonic`, and looks at one object
    /// or one page of the list at least, so that each turn comes further.
    pub(super) async fn work_on_task(
        &self,
        task: &ResolveTask,
        after: Option<String>,
        until: Duration,
    ) -> ResolveProgress {
        let mut answer = ResolveResponse::default();
        let mut seen = 0;
        let mut unavailable = 0;
        let mut last = after;
        // The turn as it was before the objects that the store fails with in a row.
        let mut good = GoodPlace::default();
        let stop = 'objects: loop {
            let listed =
                letter_objects(&*self.dead_letters, &task.selection, last.as_deref()).await;
            let page = match listed {
                Ok(page) => page,
                Err(error) => break StopReason::Failed(error.into()),
            };
            let begin = last.clone();
            for object in &page.objects {
                if self.is_late(seen, until) && seen > 0 {
                    // The next request lists the rest of the page again.
                    let left_out = page.left_out(begin.as_deref(), last.as_deref());
                    answer.left_out.add_all(&left_out);
                    break 'objects StopReason::Late;
                }
                if unavailable == 0 {
                    good = GoodPlace {
                        after: last.clone(),
                        answer: answer.clone(),
                        seen,
                    };
                }
                seen += 1;
                match self.end_object(task, &object.key, &mut answer).await {
                    Ok(()) => unavailable = 0,
                    Err(error) if is_store_problem(error.0.kind) => {
                        unavailable += 1;
                        if unavailable == UNAVAILABLE_IN_A_ROW_MAX {
                            GoodPlace {
                                after: last,
                                answer,
                                seen,
                            } = good;
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
            }
            answer.left_out.add_all(&page.left_out(None, None));
            let Some(next) = page.next_after else {
                break StopReason::Done;
            };
            last = Some(next);
            // Pages may have nothing that is selected, and there may be many.
            if self.is_late(seen, until) {
                break StopReason::Late;
            }
        };
        ResolveProgress {
            answer,
            read: u64::try_from(seen).unwrap_or(u64::MAX),
            after: last,
            stop,
        }
    }

    /// Whether a turn in which so many objects were looked at is over.
    fn is_late(&self, seen: usize, until: Duration) -> bool {
        seen == OBJECTS_MAX || self.clock.monotonic() >= until
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
            .letters
            .select_letters(key, &task.selection, &task.receiver)
            .await?;
        let is_deleted = task.end == LetterEnd::Delete && broken.is_empty() && others.is_empty();
        for failure in broken {
            answer.add_failure(failure);
        }
        answer.resolved += resolved;
        answer.left_out.add_all(&left_out);
        if selected.is_empty() {
            return Ok(());
        }
        if !is_deleted && !can_be_resolved(key) {
            answer.add_failure(ReplayFailure::of_object(key, KEY_TOO_LONG.to_owned()));
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
            let places = selected.iter().map(|letter| letter.index).collect();
            resolve_letters(&*self.dead_letters, key, &places)
                .await
                .map_err(resolve_error)?;
        }
        answer.events += events;
        answer.objects += 1;
        answer.deleted_objects += u64::from(is_deleted);
        Ok(())
    }
}

/// Whether a problem is likely to be that of all objects.
fn is_store_problem(kind: ProblemKind) -> bool {
    matches!(kind, ProblemKind::Unavailable | ProblemKind::StorageFull)
}

/// Counts an object that cannot be read or written now. Its problem shows no cause.
fn note_failure(error: ApiError, key: &str, answer: &mut ResolveResponse) {
    let ApiProblem { kind, detail, .. } = error.0;
    let detail = detail.unwrap_or_else(|| kind.title().to_owned());
    answer.add_failure(ReplayFailure::of_object(key, detail));
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
