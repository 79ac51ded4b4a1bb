//! A request that ends dead letters: one process at a time works on a selection.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditCaller, AuditEntry, ResolveRequest, ResolveResponse};
use posthaste_core::stored::{LetterEnd, LetterEnding, LetterReceiver, layout};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports};
use posthaste_services::lease::CLOCKS_APART_MAX;
use serde_json::json;

use super::claim::{AskedEnding, EndingClaims, SelectionClaim};
use super::ender::{LetterEnder, ResolveTask, WORKING_TIME};
use super::ending_marks::EndingMarks;
use super::work_cursor::WorkCursor;
use super::worked::log_progress;
use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::AuditTrail;
use crate::extract::SubscriptionPath;
use crate::manage::Manage;
use crate::paging::after_in;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// The requests that end dead letters.
pub(crate) struct LetterResolver<P: Ports> {
    dead_letters: SharedPort<P, P::DeadLetters>,
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
    records: TopicRecords<P>,
    claims: EndingClaims<P>,
    marks: EndingMarks<P>,
    ender: LetterEnder<P>,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LetterResolver<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
            records: TopicRecords::from_ref(manage),
            claims: EndingClaims::from_ref(manage),
            marks: EndingMarks::from_ref(manage),
            ender: LetterEnder::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> LetterResolver<P> {
    /// Ends the letters that a request selects, or counts them.
    pub(super) async fn end_letters(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        mut request: ResolveRequest,
        end: LetterEnd,
    ) -> ApiResult<ResolveResponse> {
        let cursor = request.cursor.take();
        let cursor = cursor.as_deref().map(WorkCursor::parse).transpose()?;
        let is_dry_run = std::mem::take(&mut request.dry_run);
        let now = self.clock.now();
        let begun = cursor.as_ref().and_then(|cursor| cursor.began_at);
        // All requests for some work mean the times of the first one, whose process may be ahead.
        let began_at = begun.map_or(now, |begun| begun.min(now + CLOCKS_APART_MAX));
        let (after, named, digest) = cursor.map_or((None, None, None), |it| {
            (Some(it.after), it.id, it.selection)
        });
        let names_work = named.is_some();
        let receiver = self.letter_receiver(path).await?;
        // All letters of a subscription that is gone are former ones.
        request.include_former |= receiver.is_none();
        let ending = LetterEnding {
            id: named.unwrap_or_else(|| self.entropy.uuid().to_string()),
            topic: path.topic.clone(),
            subscription: path.name.clone(),
            receiver,
            end,
            request: request.with_fixed_times(began_at),
            began_at,
            worked_at: now,
            // Who asks wants it done, however long ago it began.
            progressed_at: (began_at < now).then_some(now),
            after,
            has_ended: false,
            done: None,
            ended_at: None,
            cancelled_at: None,
        };
        if digest.is_some_and(|digest| digest != ending.selection_digest()) {
            return Err(other_selection_problem().into());
        }
        let task = ResolveTask::for_ending(&ending)?;
        let ending = LetterEnding {
            after: after_in(task.selection.prefix(), ending.after)?,
            ..ending
        };
        if is_dry_run {
            let task = ResolveTask { is_dry_run, ..task };
            let until = self.clock.monotonic() + WORKING_TIME;
            let worked = self.ender.work_on_task(&task, ending.after, until).await;
            let counted = worked.into_result(WorkCursor::of_dry_run(began_at));
            return counted.map(JsonResponse::new);
        }
        let action = match end {
            LetterEnd::Resolve => AuditAction::ResolveDeadLetters,
            LetterEnd::Delete => AuditAction::DeleteDeadLetters,
        };
        let entry = self.audit.new_entry(caller, action);
        let entry = entry
            .of_subscription(&path.topic, &path.name)
            .with_detail(&json!(ending.request).to_string());
        let asked = AskedEnding { ending, names_work };
        self.audit
            .run_audited(entry, self.end_unless_claimed(asked), with_counts)
            .await
    }

    /// Ends the letters that are asked for, unless another request does.
    async fn end_unless_claimed(&self, asked: AskedEnding) -> ApiResult<ResolveResponse> {
        let until = self.clock.monotonic() + WORKING_TIME;
        let claim = self.claims.claim_ending(asked).await?;
        let ending = match &claim {
            SelectionClaim::Own(own) => &own.ending,
            SelectionClaim::Beside(ending) => ending,
            SelectionClaim::Others(id) => {
                return Ok(JsonResponse::in_progress(ResolveResponse {
                    id: Some(id.clone()),
                    in_progress: true,
                    ..ResolveResponse::default()
                }));
            }
        };
        let task = ResolveTask::for_ending(ending)?;
        let after = ending.after.clone();
        let worked = self.ender.work_on_task(&task, after, until).await;
        log_progress(ending, &worked);
        let cursor = WorkCursor::of_work(ending);
        if let SelectionClaim::Own(own) = claim {
            self.marks
                .write_progress(*own, &worked, self.clock.now())
                .await?;
        }
        Ok(JsonResponse::new(worked.into_result(cursor)?))
    }

    /// The subscription of a path; `None` if it is gone and has dead letters.
    async fn letter_receiver(
        &self,
        path: &SubscriptionPath,
    ) -> Result<Option<LetterReceiver>, ApiError> {
        if let Some(record) = &self.records.load_record(&path.topic).await?
            && let Ok((name, settings)) = path.find_in(record)
        {
            return Ok(Some(LetterReceiver::of_subscription(
                record, name, settings,
            )));
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

/// The problem of a cursor of other work. Going on with it would do other things than were asked for:
/// of a subscription that is gone, letters that the first request left out. What that request asked
/// for is finished without it.
fn other_selection_problem() -> ApiProblem {
    let detail = "this cursor belongs to other work: it selects other letters, or ends them otherwise, \
        or the subscription was deleted or created again since. That work continues by itself where it \
        still exists; ask again without `cursor` to start again";
    ApiProblem::new(ProblemKind::Incompatible).detail(detail)
}
