//! The marks of work on selections: how far it came, that it has ended, and what is kept of it. Every
//! write is on condition that nobody else wrote the mark since.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::model::{FormatError, Timestamp};
use posthaste_core::stored::LetterEnding;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{Clock, ETag, ErrorKind, ObjectStore, Ports, PutCondition, StoredObject};
use posthaste_services::LEFT_AFTER;

use super::worked::{ResolveProgress, StopReason};
use crate::answer::ApiError;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Most marks that are kept of work on one selection that has ended: who asks for the same in a loop
/// leaves no more. Of work whose mark is gone a late cursor is not known to be cancelled.
const KEPT_MAX: usize = 20;

/// Work that is claimed by this process.
pub(super) struct OwnEnding {
    pub(super) key: String,
    pub(super) etag: ETag,
    pub(super) ending: LetterEnding,
}

/// The marks of work.
pub(super) struct EndingMarks<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EndingMarks<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> EndingMarks<P> {
    /// The object under a key.
    pub(super) async fn load_object(&self, key: &str) -> Result<Option<StoredObject>, ApiError> {
        Ok(self.state.get(key).await?)
    }

    /// The work under the key of this work when it is kept.
    pub(super) async fn load_kept(
        &self,
        work: &LetterEnding,
    ) -> Result<Option<LetterEnding>, ApiError> {
        let kept = self.state.get(&work.kept_key()).await?;
        Ok(kept.and_then(|object| LetterEnding::parse(&object.bytes).ok()))
    }

    /// Writes work that has ended under a key of its own, so that the same may be done again.
    pub(super) async fn keep_closed(&self, closed: &LetterEnding) -> Result<(), ApiError> {
        if !LetterEnding::is_work_id(&closed.id) {
            return Ok(());
        }
        let key = closed.kept_key();
        let is_new = self.put_ending(&key, closed, PutCondition::IfAbsent);
        if is_new.await?.is_some() {
            return self.drop_oldest_kept(closed).await;
        }
        // It was written before, maybe without the last turn.
        let Some(StoredObject { bytes, etag }) = self.state.get(&key).await? else {
            return Ok(());
        };
        let is_behind = match LetterEnding::parse(&bytes) {
            Ok(kept) => objects_read(&kept) < objects_read(closed),
            Err(FormatError::Malformed(..)) => true,
            Err(FormatError::Newer(_)) => false,
        };
        if is_behind {
            self.put_ending(&key, closed, PutCondition::IfMatch(etag))
                .await?;
        }
        Ok(())
    }

    /// Deletes what is kept of a selection beyond the most, the oldest first.
    async fn drop_oldest_kept(&self, newest: &LetterEnding) -> Result<(), ApiError> {
        let prefix = newest.kept_prefix();
        let mut others = self.state.list(&prefix, None, LIST_PAGE_MAX).await?.objects;
        let newest = newest.kept_key();
        others.retain(|kept| kept.key != newest);
        others.sort_by_key(|kept| kept.modified_at);
        let surplus = (others.len() + 1).saturating_sub(KEPT_MAX);
        for kept in others.iter().take(surplus) {
            self.state.delete(&kept.key).await?;
        }
        Ok(())
    }

    /// Writes down how far work came, or that it has ended, unless somebody else has taken it over.
    /// Answers the work that is left. What is done within one request was told in its answer, and is
    /// not kept.
    pub(super) async fn write_progress(
        &self,
        own: OwnEnding,
        worked: &ResolveProgress,
        worked_at: Timestamp,
    ) -> Result<Option<OwnEnding>, ApiError> {
        let is_done = matches!(worked.stop, StopReason::Done);
        let now = self.clock.now();
        let OwnEnding { key, etag, ending } = own;
        let is_kept = ending.done.is_some();
        let ending = LetterEnding {
            done: Some(worked.add_counts(ending.done)),
            progressed_at: if worked.after == ending.after {
                ending.progressed_at
            } else {
                Some(now)
            },
            after: worked.after.clone(),
            worked_at: if is_done { now } else { worked_at },
            ended_at: is_done.then_some(now),
            has_ended: is_done && !is_kept,
            ..ending
        };
        let condition = PutCondition::IfMatch(etag);
        let Some(etag) = self.put_ending(&key, &ending, condition).await? else {
            self.settle_cancelled(&key, &ending).await?;
            return Ok(None);
        };
        if ending.has_ended {
            self.state.delete(&key).await?;
        }
        Ok((!is_done).then_some(OwnEnding { key, etag, ending }))
    }

    /// Adds the numbers of the last turn to work that an operator cancelled meanwhile, also where the
    /// same was asked for again since. What came to its end in that turn was not cancelled.
    async fn settle_cancelled(&self, key: &str, worked: &LetterEnding) -> Result<(), ApiError> {
        if !self.settle_under(key, worked).await? && LetterEnding::is_work_id(&worked.id) {
            self.settle_under(&worked.kept_key(), worked).await?;
        }
        Ok(())
    }

    /// Adds the numbers to the cancelled work, if it lies under this key.
    async fn settle_under(&self, key: &str, worked: &LetterEnding) -> Result<bool, ApiError> {
        let Some(StoredObject { bytes, etag }) = self.state.get(key).await? else {
            return Ok(false);
        };
        let Ok(cancelled) = LetterEnding::parse(&bytes) else {
            return Ok(false);
        };
        if cancelled.id != worked.id || cancelled.cancelled_at.is_none() {
            return Ok(false);
        }
        // Two may have worked from the same place on, and the other one came further.
        if objects_read(worked) < objects_read(&cancelled) {
            return Ok(true);
        }
        let is_done = worked.ended_at.is_some();
        let settled = LetterEnding {
            cancelled_at: cancelled.cancelled_at.filter(|_| !is_done),
            has_ended: false,
            ..worked.clone()
        };
        let condition = PutCondition::IfMatch(etag);
        Ok(self.put_ending(key, &settled, condition).await?.is_some())
    }

    /// Deletes the object of work that has ended. The store deletes without a condition: so the
    /// object first says, under a condition, that it may go, and nobody writes it for a while.
    pub(super) async fn close_ending(&self, own: OwnEnding) -> Result<(), ApiError> {
        let OwnEnding { key, etag, ending } = own;
        let ended = LetterEnding {
            worked_at: self.clock.now(),
            has_ended: true,
            ..ending
        };
        let condition = PutCondition::IfMatch(etag);
        if self.put_ending(&key, &ended, condition).await?.is_some() {
            self.state.delete(&key).await?;
        }
        Ok(())
    }

    /// Takes up what a process left, if it still is as it was found.
    pub(super) async fn take_over_ending(
        &self,
        key: String,
        etag: ETag,
        open: LetterEnding,
    ) -> Result<Option<OwnEnding>, ApiError> {
        let worked_at = self.clock.now();
        let ending = LetterEnding { worked_at, ..open };
        let condition = PutCondition::IfMatch(etag);
        let taken = self.put_ending(&key, &ending, condition).await?;
        Ok(taken.map(|etag| OwnEnding { key, etag, ending }))
    }

    /// Writes the object of some work; `None` if the condition does not hold.
    pub(super) async fn put_ending(
        &self,
        key: &str,
        ending: &LetterEnding,
        condition: PutCondition,
    ) -> Result<Option<ETag>, ApiError> {
        match self.state.put(key, ending.render(), condition).await {
            Ok(etag) => Ok(Some(etag)),
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn is_left(&self, open: &LetterEnding) -> bool {
        self.time_since(open.worked_at) >= LEFT_AFTER
    }

    pub(super) fn time_since(&self, at: Timestamp) -> Duration {
        self.clock.now().since(at)
    }
}

/// The number of objects that were looked at.
fn objects_read(work: &LetterEnding) -> u64 {
    work.done.map_or(0, |done| done.read)
}
