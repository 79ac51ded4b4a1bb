//! The progress of work on a selection, and the reason why it stopped there.

use posthaste_core::api::ResolveResponse;
use posthaste_core::stored::{EndedCounts, LetterEnd, LetterEnding};

use super::work_cursor::WorkCursor;
use crate::answer::ApiError;

/// Work that was done for a while.
pub(super) struct ResolveProgress {
    pub(super) answer: ResolveResponse,
    /// The number of objects that were looked at.
    pub(super) read: u64,
    /// The key up to which all is done.
    pub(super) after: Option<String>,
    pub(super) stop: StopReason,
}

/// The reason why work stopped.
pub(super) enum StopReason {
    /// All is done.
    Done,
    /// The time for it was over.
    Late,
    /// The store fails.
    Failed(ApiError),
}

impl ResolveProgress {
    /// The answer to the request for this work, whose cursor says where it goes on.
    pub(super) fn into_result(self, work: WorkCursor) -> Result<ResolveResponse, ApiError> {
        let after = match self.stop {
            StopReason::Done => None,
            StopReason::Late => self.after,
            StopReason::Failed(error) => return Err(error),
        };
        Ok(ResolveResponse {
            id: work.id.clone(),
            cursor: after.map(|after| WorkCursor { after, ..work }.encode()),
            ..self.answer
        })
    }

    /// The numbers of all that was done, with those of before.
    pub(super) fn add_counts(&self, before: Option<EndedCounts>) -> EndedCounts {
        let before = before.unwrap_or_default();
        EndedCounts {
            events: before.events + self.answer.events,
            objects: before.objects + self.answer.objects,
            deleted_objects: before.deleted_objects + self.answer.deleted_objects,
            failed: before.failed + self.answer.failed,
            read: before.read + self.read,
        }
    }
}

/// Says in the log what was done.
pub(super) fn log_progress(ending: &LetterEnding, worked: &ResolveProgress) {
    let answer = &worked.answer;
    tracing::info!(
        topic = %ending.topic, subscription = %ending.subscription,
        is_deletion = ending.end == LetterEnd::Delete, events = answer.events,
        objects = answer.objects, deleted_objects = answer.deleted_objects, failed = answer.failed,
        "dead letters were resolved or deleted by request"
    );
}
