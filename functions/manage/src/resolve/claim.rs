//! The claim of a selection by one request. Every write of the claim is on condition that nobody else
//! wrote it since, so that only who has it says how far the work came, and that it has ended.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::{FormatError, Timestamp};
use posthaste_core::stored::LetterEnding;
use posthaste_ports::{Clock, ETag, ErrorKind, ObjectStore, Ports, PutCondition, StoredObject};
use posthaste_services::LEFT_AFTER;
use posthaste_services::update::UPDATE_TRIES_MAX;

use super::worked::{ResolveProgress, StopReason};
use crate::answer::{ApiError, conflict_problem};
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The one that works on a selection.
pub(super) enum SelectionClaim {
    /// This request, from where the work says.
    Own(Box<OwnEnding>),
    /// This request, from where it says, beside a claim that is not its own: a letter is not ended
    /// twice, and the claim stays with whom it belongs to.
    Beside(Box<LetterEnding>),
    /// Another one, under this id.
    Others(String),
}

/// Work that is claimed by this process.
pub(super) struct OwnEnding {
    pub(super) key: String,
    pub(super) etag: ETag,
    pub(super) ending: LetterEnding,
}

/// The claims of selections.
pub(super) struct EndingClaims<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EndingClaims<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> EndingClaims<P> {
    /// Claims the selection of a request. One that says where to go on takes the claim over where
    /// that is how far the work came, and is let in beside it elsewhere. A request that says no
    /// place begins anew, also where it takes up what a process left: letters written since may
    /// have any key. Work that an operator cancelled is not gone on with; it may be begun anew.
    pub(super) async fn claim_ending(
        &self,
        asked: LetterEnding,
    ) -> Result<SelectionClaim, ApiError> {
        let key = asked.key();
        let mut mine = asked.clone();
        let mut condition = PutCondition::IfAbsent;
        let mut has_just_ended = false;
        for _ in 0..UPDATE_TRIES_MAX {
            if let Some(etag) = self.put_ending(&key, &mine, condition).await? {
                let ending = mine;
                return Ok(SelectionClaim::Own(Box::new(OwnEnding {
                    key,
                    etag,
                    ending,
                })));
            }
            mine = asked.clone();
            condition = PutCondition::IfAbsent;
            let Some(StoredObject { bytes, etag }) = self.state.get(&key).await? else {
                continue;
            };
            match LetterEnding::parse(&bytes) {
                // It is about to be deleted, whatever is in it.
                Ok(open) if open.has_ended && !self.is_left(&open) => {
                    has_just_ended = true;
                    continue;
                }
                Ok(open) if open.has_ended => {}
                Ok(open) if asked.after.is_some() && open.cancelled_at.is_some() => {
                    return Err(cancelled_problem().into());
                }
                Ok(open) if !open.is_open() => {}
                Ok(open) if asked.after.is_some() && open.after != asked.after => {
                    let id = open.id;
                    return Ok(SelectionClaim::Beside(Box::new(LetterEnding {
                        id,
                        ..asked
                    })));
                }
                Ok(open) if asked.after.is_none() && !self.is_left(&open) => {
                    return Ok(SelectionClaim::Others(open.id));
                }
                Ok(open) => {
                    mine.id = open.id;
                    mine.done = open.done.filter(|_| asked.after.is_some());
                }
                Err(FormatError::Malformed(..)) => {}
                Err(FormatError::Newer(_)) => return Err(newer_version_problem().into()),
            }
            condition = PutCondition::IfMatch(etag);
        }
        if has_just_ended {
            return Ok(SelectionClaim::Beside(Box::new(asked)));
        }
        Err(conflict_problem().into())
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
            after: worked.after.clone(),
            worked_at: if is_done { now } else { worked_at },
            ended_at: is_done.then_some(now),
            has_ended: is_done && !is_kept,
            ..ending
        };
        let condition = PutCondition::IfMatch(etag);
        let Some(etag) = self.put_ending(&key, &ending, condition).await? else {
            self.settle_cancelled(&key, ending).await?;
            return Ok(None);
        };
        if ending.has_ended {
            self.state.delete(&key).await?;
        }
        Ok((!is_done).then_some(OwnEnding { key, etag, ending }))
    }

    /// Adds the numbers of the last turn to work that an operator cancelled meanwhile. What came to
    /// its end in that turn was not cancelled.
    async fn settle_cancelled(&self, key: &str, worked: LetterEnding) -> Result<(), ApiError> {
        let Some(StoredObject { bytes, etag }) = self.state.get(key).await? else {
            return Ok(());
        };
        let Ok(cancelled) = LetterEnding::parse(&bytes) else {
            return Ok(());
        };
        if cancelled.id != worked.id || cancelled.cancelled_at.is_none() {
            return Ok(());
        }
        let is_done = worked.ended_at.is_some();
        let settled = LetterEnding {
            cancelled_at: cancelled.cancelled_at.filter(|_| !is_done),
            has_ended: false,
            ..worked
        };
        let condition = PutCondition::IfMatch(etag);
        self.put_ending(key, &settled, condition).await?;
        Ok(())
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
    async fn put_ending(
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

fn cancelled_problem() -> ApiProblem {
    let detail = "an operator cancelled this work; what was done by then stays done. Ask again without \
        `cursor` to begin anew";
    ApiProblem::new(ProblemKind::Incompatible).detail(detail)
}

fn newer_version_problem() -> ApiProblem {
    let detail = "the same dead letters are being ended by a newer version";
    ApiProblem::new(ProblemKind::Internal).detail(detail)
}
