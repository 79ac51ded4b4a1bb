//! Dead letters that a process did not end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::future::join_all;
use parking_lot::Mutex;
use posthaste_core::api::ResolveResponse;
use posthaste_core::model::{FormatError, Timestamp};
use posthaste_core::stored::{LetterEnd, LetterEnding, layout};
use posthaste_ports::{Clock, ObjectStore, Ports, StoredObject};
use posthaste_services::{LEFT_AFTER, LeftWork};

use super::ender::{LetterEnder, ResolveTask, WORKING_TIME};
use super::ending_marks::{EndingMarks, OwnEnding};
use super::worked::{ResolveProgress, StopReason, log_progress};
use crate::answer::ApiError;
use crate::begun_requests::BegunRequests;
use crate::left_marks::list_left_marks;
use crate::manage::Manage;
use crate::request_clock::time_until;
use crate::shared_port::SharedPort;

/// Selections that are worked on side by side, so that one customer's does not hold up another's.
const AT_ONCE: usize = 4;

/// Time without progress after which work that fails is given up, so that it does not stay for ever.
const GIVEN_UP_AFTER: Duration = Duration::from_hours(24);

/// The time for which work is kept that is done, or was cancelled: who comes back the next day still
/// finds it.
const CLOSED_KEPT: Duration = Duration::from_hours(24);

/// Work that this process took over.
struct TakenEnding {
    own: Box<OwnEnding>,
    /// The time at which the process before it left the work.
    left_at: Timestamp,
}

/// A turn of one selection.
enum SelectionTurn {
    /// The claim was found under this key.
    Found(String),
    /// The claim is one that this process has.
    Taken(TakenEnding),
}

/// The dead letters that processes left.
pub(crate) struct LeftEndings<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    work: SharedPort<P, BegunRequests>,
    marks: EndingMarks<P>,
    ender: LetterEnder<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LeftEndings<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            work: SharedPort::new(manage, |it| &it.work),
            marks: EndingMarks::from_ref(manage),
            ender: LetterEnder::from_ref(manage),
        }
    }
}

impl<P: Ports> LeftEndings<P> {
    /// Ends dead letters that processes left, a few seconds each in turn, until a time of the
    /// clock's `monotonic`. What is not done by then is given back: the next look goes on with it.
    pub(crate) async fn finish_endings(
        &self,
        left: LeftWork,
        until: Duration,
    ) -> Result<(), ApiError> {
        let place = &self.work.endings_seen;
        let found = list_left_marks(&*self.state, layout::ENDING, place, |_| true).await?;
        let turns: VecDeque<_> = found
            .into_iter()
            .map(|it| SelectionTurn::Found(it.key))
            .collect();
        let turns = Mutex::new(turns);
        let take_turns = || async {
            loop {
                let Some(turn) = turns.lock().pop_front() else {
                    return;
                };
                let next = self.take_turn(turn, left, until).await;
                turns.lock().extend(next);
            }
        };
        join_all((0..AT_ONCE).map(|_| take_turns())).await;
        Ok(())
    }

    /// A turn of one selection; answers the next one if there is more to do.
    async fn take_turn(
        &self,
        turn: SelectionTurn,
        left: LeftWork,
        until: Duration,
    ) -> Option<SelectionTurn> {
        let key = match &turn {
            SelectionTurn::Found(key) => key.clone(),
            SelectionTurn::Taken(taken) => taken.own.key.clone(),
        };
        let taken = match turn {
            SelectionTurn::Found(_) if time_until(&self.clock, until).is_zero() => return None,
            SelectionTurn::Found(key) => {
                self.work.endings_seen.set_last_key(&key);
                self.take_over_left(key, left).await
            }
            SelectionTurn::Taken(taken) => Ok(Some(taken)),
        };
        let next = match taken {
            Ok(Some(taken)) => self.work_for_a_turn(taken, until).await,
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        next.unwrap_or_else(|error| {
            let problem = error.0.kind.title();
            tracing::warn!(key, problem, "dead letters not ended; tried again");
            None
        })
    }

    /// Takes up the claim under a key, if its process left it.
    async fn take_over_left(
        &self,
        key: String,
        left: LeftWork,
    ) -> Result<Option<TakenEnding>, ApiError> {
        let Some(StoredObject { bytes, etag }) = self.state.get(&key).await? else {
            return Ok(None);
        };
        let open = match LetterEnding::parse(&bytes) {
            Ok(open) if left.counts_as_left(open.worked_at, self.clock.now(), LEFT_AFTER) => open,
            Ok(_) | Err(FormatError::Newer(_)) => return Ok(None),
            Err(FormatError::Malformed(..)) => {
                self.state.delete(&key).await?;
                return Ok(None);
            }
        };
        if open.has_ended {
            let ending = open;
            self.marks
                .close_ending(OwnEnding { key, etag, ending })
                .await?;
            return Ok(None);
        }
        if let Some(closed_at) = open.closed_at() {
            if self.marks.time_since(closed_at) >= CLOSED_KEPT {
                let ending = open;
                self.marks
                    .close_ending(OwnEnding { key, etag, ending })
                    .await?;
            }
            return Ok(None);
        }
        let left_at = open.worked_at;
        let taken = self.marks.take_over_ending(key, etag, open).await?;
        Ok(taken.map(|own| TakenEnding {
            own: Box::new(own),
            left_at,
        }))
    }

    /// Works for a few seconds, and writes down how far that came.
    async fn work_for_a_turn(
        &self,
        taken: TakenEnding,
        until: Duration,
    ) -> Result<Option<SelectionTurn>, ApiError> {
        let TakenEnding { own, left_at } = taken;
        let turn_ends = self.clock.monotonic() + time_until(&self.clock, until).min(WORKING_TIME);
        let after = own.ending.after.clone();
        let worked = match ResolveTask::for_ending(&own.ending) {
            Ok(task) => self.ender.work_on_task(&task, after, turn_ends).await,
            Err(error) => ResolveProgress {
                answer: ResolveResponse::default(),
                read: 0,
                after,
                stop: StopReason::Failed(error),
            },
        };
        log_progress(&own.ending, &worked);
        let has_failed = matches!(worked.stop, StopReason::Failed(_));
        let is_stuck = has_failed && worked.after == own.ending.after;
        if is_stuck && self.marks.time_since(own.ending.alive_at()) >= GIVEN_UP_AFTER {
            let LetterEnding { id, topic, .. } = &own.ending;
            tracing::warn!(
                id, %topic, subscription = %own.ending.subscription,
                is_deletion = own.ending.end == LetterEnd::Delete, after = worked.after,
                "dead letters not ended within a day, given up"
            );
            return self.marks.close_ending(*own).await.map(|()| None);
        }
        // What is given back counts as left, so that the next look goes on with it at once.
        let is_given_back = has_failed || time_until(&self.clock, until).is_zero();
        let worked_at = if is_given_back {
            left_at
        } else {
            self.clock.now()
        };
        let left = self.marks.write_progress(*own, &worked, worked_at).await?;
        if let StopReason::Failed(error) = worked.stop {
            return Err(error);
        }
        let left = left.filter(|_| !is_given_back);
        Ok(left.map(|own| {
            SelectionTurn::Taken(TakenEnding {
                own: Box::new(own),
                left_at,
            })
        }))
    }
}
