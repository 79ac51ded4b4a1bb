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

/// The work that a request asks for.
pub(super) struct AskedEnding {
    pub(super) ending: LetterEnding,
    /// Whether its cursor names the work, whose id it has.
    pub(super) names_work: bool,
}

/// The next step of a claim.
enum ClaimStep {
    /// To write this, on this condition.
    Write(Box<LetterEnding>, PutCondition),
    /// Nothing more.
    Answer(SelectionClaim),
}

impl ClaimStep {
    fn write(ending: LetterEnding, condition: PutCondition) -> Self {
        Self::Write(Box::new(ending), condition)
    }

    fn beside(ending: LetterEnding) -> Self {
        Self::Answer(SelectionClaim::Beside(Box::new(ending)))
    }
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
    /// have any key. Work that an operator cancelled is not gone on with; it may be begun anew. What
    /// has ended stays as it is: the same request again is other work, with a time of its own.
    pub(super) async fn claim_ending(
        &self,
        asked: AskedEnding,
    ) -> Result<SelectionClaim, ApiError> {
        let key = asked.ending.key();
        let mut found = match &asked.ending.after {
            Some(_) => self.state.get(&key).await?,
            // Most have nobody beside them, and need no look.
            None => None,
        };
        let mut is_about_to_go = false;
        for _ in 0..UPDATE_TRIES_MAX {
            let was_found = found.is_some();
            let (ending, condition) = match self.next_step(&asked, found).await? {
                ClaimStep::Write(ending, condition) => (*ending, condition),
                ClaimStep::Answer(claim) => return Ok(claim),
            };
            is_about_to_go |= was_found && condition == PutCondition::IfAbsent;
            if let Some(etag) = self.put_ending(&key, &ending, condition).await? {
                return Ok(SelectionClaim::Own(Box::new(OwnEnding {
                    key,
                    etag,
                    ending,
                })));
            }
            found = self.state.get(&key).await?;
        }
        if is_about_to_go {
            return Ok(SelectionClaim::Beside(Box::new(asked.ending)));
        }
        Err(conflict_problem().into())
    }

    /// The next step of a request, where this object lies under the key of its selection.
    async fn next_step(
        &self,
        asked: &AskedEnding,
        found: Option<StoredObject>,
    ) -> Result<ClaimStep, ApiError> {
        let AskedEnding { ending, .. } = asked;
        let Some(StoredObject { bytes, etag }) = found else {
            if ending.after.is_some() && self.is_kept(ending).await? {
                return Ok(ClaimStep::beside(ending.clone()));
            }
            return Ok(ClaimStep::write(ending.clone(), PutCondition::IfAbsent));
        };
        let condition = PutCondition::IfMatch(etag);
        match LetterEnding::parse(&bytes) {
            // It is about to be deleted, whatever is in it.
            Ok(open) if open.has_ended && !self.is_left(&open) => {
                Ok(ClaimStep::write(ending.clone(), PutCondition::IfAbsent))
            }
            Ok(open) if !open.has_ended && ending.after.is_some() => {
                self.step_of_next(asked, open, condition).await
            }
            Ok(open) if !open.has_ended => self.step_of_first(ending, open, condition).await,
            Ok(_) | Err(FormatError::Malformed(..)) => {
                Ok(ClaimStep::write(ending.clone(), condition))
            }
            Err(FormatError::Newer(_)) => Err(newer_version_problem().into()),
        }
    }

    /// The next step of a request that says where to go on.
    async fn step_of_next(
        &self,
        AskedEnding { ending, names_work }: &AskedEnding,
        open: LetterEnding,
        condition: PutCondition,
    ) -> Result<ClaimStep, ApiError> {
        let is_of_others = *names_work && ending.id != open.id;
        if is_of_others {
            self.is_kept(ending).await?;
            return Ok(ClaimStep::beside(ending.clone()));
        }
        if open.cancelled_at.is_some() {
            return Err(cancelled_problem().into());
        }
        let is_place_of_work = open.is_open() && open.after == ending.after;
        let ending = LetterEnding {
            id: open.id,
            ..ending.clone()
        };
        if !is_place_of_work {
            return Ok(ClaimStep::beside(ending));
        }
        let mine = LetterEnding {
            began_at: open.began_at,
            done: open.done,
            ..ending
        };
        Ok(ClaimStep::write(mine, condition))
    }

    /// The next step of a request that begins.
    async fn step_of_first(
        &self,
        ending: &LetterEnding,
        open: LetterEnding,
        condition: PutCondition,
    ) -> Result<ClaimStep, ApiError> {
        if !open.is_open() {
            self.keep_closed(&open).await?;
            return Ok(ClaimStep::write(ending.clone(), condition));
        }
        if !self.is_left(&open) {
            return Ok(ClaimStep::Answer(SelectionClaim::Others(open.id)));
        }
        let id = open.id;
        let mine = LetterEnding {
            id,
            ..ending.clone()
        };
        Ok(ClaimStep::write(mine, condition))
    }

    /// Writes work that has ended under a key of its own, so that the same may be done again.
    async fn keep_closed(&self, closed: &LetterEnding) -> Result<(), ApiError> {
        if LetterEnding::is_work_id(&closed.id) {
            let key = closed.kept_key();
            self.put_ending(&key, closed, PutCondition::IfAbsent)
                .await?;
        }
        Ok(())
    }

    /// Whether the work of this id has ended and made room for the same that was asked for again. Work
    /// that was cancelled is not gone on with.
    async fn is_kept(&self, asked: &LetterEnding) -> Result<bool, ApiError> {
        let kept = self.state.get(&asked.kept_key()).await?;
        let kept = kept.and_then(|object| LetterEnding::parse(&object.bytes).ok());
        match &kept {
            Some(kept) if kept.cancelled_at.is_some() => Err(cancelled_problem().into()),
            Some(_) | None => Ok(kept.is_some()),
        }
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
