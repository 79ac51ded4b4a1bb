//! The claim of a selection by one request. Every write of the claim is on condition that nobody else
//! wrote it since, so that only who has it says how far the work came, and that it has ended.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::FormatError;
use posthaste_core::stored::LetterEnding;
use posthaste_ports::{Ports, PutCondition, StoredObject};
use posthaste_services::update::UPDATE_TRIES_MAX;

use super::ending_marks::{EndingMarks, OwnEnding};
use crate::answer::{ApiError, conflict_problem};
use crate::manage::Manage;

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

/// The claims of selections.
pub(super) struct EndingClaims<P: Ports> {
    marks: EndingMarks<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EndingClaims<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            marks: EndingMarks::from_ref(manage),
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
            Some(_) => self.marks.load_object(&key).await?,
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
            if let Some(etag) = self.marks.put_ending(&key, &ending, condition).await? {
                return Ok(SelectionClaim::Own(Box::new(OwnEnding {
                    key,
                    etag,
                    ending,
                })));
            }
            found = self.marks.load_object(&key).await?;
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
            return self.step_of_free(ending, PutCondition::IfAbsent).await;
        };
        let condition = PutCondition::IfMatch(etag);
        match LetterEnding::parse(&bytes) {
            // It is about to be deleted, whatever is in it.
            Ok(open) if open.has_ended && !self.marks.is_left(&open) => {
                self.step_of_free(ending, PutCondition::IfAbsent).await
            }
            Ok(open) if !open.has_ended && ending.after.is_some() => {
                self.step_of_next(asked, open, condition).await
            }
            Ok(open) if !open.has_ended => self.step_of_first(ending, open, condition).await,
            Ok(_) | Err(FormatError::Malformed(..)) => self.step_of_free(ending, condition).await,
            Err(FormatError::Newer(_)) => Err(newer_version_problem().into()),
        }
    }

    /// The next step where nobody's work is in the way. Work that was kept is not gone on with under
    /// the key of its selection.
    async fn step_of_free(
        &self,
        ending: &LetterEnding,
        condition: PutCondition,
    ) -> Result<ClaimStep, ApiError> {
        if ending.after.is_some() && self.is_kept(ending).await? {
            return Ok(ClaimStep::beside(ending.clone()));
        }
        Ok(ClaimStep::write(ending.clone(), condition))
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
            self.marks.keep_closed(&open).await?;
            return Ok(ClaimStep::write(ending.clone(), condition));
        }
        if !self.marks.is_left(&open) {
            return Ok(ClaimStep::Answer(SelectionClaim::Others(open.id)));
        }
        let id = open.id;
        let mine = LetterEnding {
            id,
            ..ending.clone()
        };
        Ok(ClaimStep::write(mine, condition))
    }

    /// Whether the work of this id has ended and made room for the same that was asked for again. Work
    /// that was cancelled is not gone on with.
    async fn is_kept(&self, asked: &LetterEnding) -> Result<bool, ApiError> {
        match self.marks.load_kept(asked).await? {
            Some(kept) if kept.cancelled_at.is_some() => Err(cancelled_problem().into()),
            kept => Ok(kept.is_some()),
        }
    }
}

fn cancelled_problem() -> ApiProblem {
    let detail = "an operator cancelled this work; what was done by then stays done. Ask again without \
        `cursor` to start again";
    ApiProblem::new(ProblemKind::Incompatible).detail(detail)
}

fn newer_version_problem() -> ApiProblem {
    let detail = "the same dead letters are being ended by a newer version";
    ApiProblem::new(ProblemKind::Internal).detail(detail)
}
