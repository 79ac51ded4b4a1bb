//! The cancelling of work that resolves or deletes dead letters. Whoever works on it finds out at the
//! end of its turn, a few seconds later; nobody takes it up again.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditCaller, AuditEntry, LetterWorkView};
use posthaste_core::model::FormatError;
use posthaste_core::stored::LetterEnding;
use posthaste_ports::{Clock, Ports, StoredObject};
use posthaste_services::{ObjectEdit, UpdatedObject, update_object};

use super::list::{
    FoundEnding, LetterWorkList, LetterWorkPath, unknown_work_problem, view_of_ending,
};
use crate::answer::{ApiError, ApiResult, JsonResponse};
use crate::audit::{AuditTrail, RequestCaller};
use crate::document::{BadRequests, NoLetterWork, Problems, Unchanged};
use crate::extract::Path;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Cancel work that resolves or deletes dead letters
///
/// What was done so far stays done, and what a process does at this moment, for a few seconds, is
/// counted with it. Work that has ended stays as it is. A request that would go on with cancelled
/// work by its `cursor` is refused (409); one without begins anew.
#[utoipa::path(delete, path = "/dead-letters/work/{id}", tag = "dead letters", params(LetterWorkPath),
    responses((status = 200, description = "The work as it is now", body = LetterWorkView),
        NoLetterWork, BadRequests, Unchanged, Problems))]
pub(crate) async fn cancel_letter_work<P: Ports>(
    State(canceller): State<LetterWorkCanceller<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<LetterWorkPath>,
) -> ApiResult<LetterWorkView> {
    canceller.cancel_work(caller, &path.id).await
}

/// The canceller of work.
pub(crate) struct LetterWorkCanceller<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    list: LetterWorkList<P>,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LetterWorkCanceller<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            list: LetterWorkList::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> LetterWorkCanceller<P> {
    /// Cancels the work of this id, unless it has ended.
    async fn cancel_work(&self, caller: AuditCaller, id: &str) -> ApiResult<LetterWorkView> {
        let found = self.list.find_work(id).await?;
        if !found.ending.is_open() {
            return Ok(self.answer(&found.ending));
        }
        let entry = self
            .audit
            .new_entry(caller, AuditAction::CancelDeadLetters)
            .of_subscription(&found.ending.topic, &found.ending.subscription)
            .of_target(id);
        let UpdatedObject { answer, etag } = self
            .audit
            .run_audited(entry, self.write_cancelled(&found), |entry, cancelled| {
                with_counts(entry, &cancelled.answer)
            })
            .await?;
        if etag.is_some() {
            tracing::info!(id, "the work of ending dead letters was cancelled");
        }
        Ok(self.answer(&answer))
    }

    /// Writes down that the work is cancelled, if it is still there and open.
    async fn write_cancelled(
        &self,
        found: &FoundEnding,
    ) -> Result<UpdatedObject<LetterEnding>, ApiError> {
        let cancelled = update_object(&*self.state, &found.key, |object| {
            let ending = parse_ending(object)?;
            if ending.id != found.ending.id || ending.has_ended {
                return Err(unknown_work_problem());
            }
            if !ending.is_open() {
                return Ok(ObjectEdit::Keep(ending));
            }
            let ending = LetterEnding {
                cancelled_at: Some(self.clock.now()),
                ..ending
            };
            Ok(ObjectEdit::Write(ending.render(), ending))
        });
        Ok(cancelled.await?)
    }

    fn answer(&self, ending: &LetterEnding) -> JsonResponse<LetterWorkView> {
        JsonResponse::new(view_of_ending(ending, self.clock.now()))
    }
}

fn parse_ending(object: Option<StoredObject>) -> Result<LetterEnding, ApiProblem> {
    let object = object.ok_or_else(unknown_work_problem)?;
    LetterEnding::parse(&object.bytes).map_err(|error| {
        let detail = match error {
            FormatError::Newer(_) => "the work is that of a newer version",
            FormatError::Malformed(..) => "the mark of the work cannot be read",
        };
        ApiProblem::new(ProblemKind::Internal).detail(detail)
    })
}

/// The entry with what was done before the work was cancelled.
fn with_counts(entry: AuditEntry, cancelled: &LetterEnding) -> AuditEntry {
    let counts = cancelled.done.unwrap_or_default();
    let events = counts.events;
    let deleted = counts.deleted_objects;
    entry.with_detail(&format!(
        "{events} events done before, {deleted} objects deleted"
    ))
}
