//! Pulling in what a clock parked that was ahead: its object goes to a nearer minute, so that a clock that is
//! set back makes no delivery wait for as long as it jumped.

use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::held::due_instead;
use posthaste_core::layout;
use posthaste_ports::guard::guarded;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, PutCondition, QueueSender};

use crate::course::Course;
use crate::limits::{Limits, within};
use crate::list::late;
use crate::release::{RELEASES_AT_ONCE, ReleaseError};
use crate::{PAGE_MAX, Wake};

/// Most pages of what is parked that a run looks at; the next one goes on after them.
const PAGES_MAX: usize = 20;

/// What came of a page.
enum Looked {
    /// The key after which the next one begins, if there is one, and whether some objects could not be moved.
    Through { next_after: Option<String>, has_left: bool },
    /// There was no time for all of it.
    OutOfTime,
}

/// An object and the minute in which it is due instead.
type Move<'a> = (&'a str, u64);

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Looks at all that is parked, where that is due, in half of the run's time at most. Objects that cannot
    /// be moved are tried again when all was looked at.
    pub(crate) async fn pull_in(&self, limits: Limits, course: &mut Course) {
        let limits = limits.half_from(self.ports.clock.monotonic());
        let mut left_after = None;
        for _ in 0..PAGES_MAX {
            let Some(after) = course.look_after.clone().filter(|_| self.may_begin(limits)) else { break };
            match self.pull_in_page(&after, limits, course).await {
                Ok(Looked::Through { next_after, has_left }) => {
                    course.look_after = next_after;
                    left_after = left_after.or(has_left.then_some(after));
                }
                Ok(Looked::OutOfTime) => break,
                Err(error) => {
                    let error = &error as &dyn Error;
                    tracing::warn!(error, "parked deliveries not looked at, the next run does");
                    break;
                }
            }
        }
        course.look_after = course.look_after.take().or(left_after);
    }

    async fn pull_in_page(
        &self,
        after: &str,
        limits: Limits,
        course: &mut Course,
    ) -> Result<Looked, PortError> {
        let clock = &self.ports.clock;
        let list = self.ports.state.list(layout::PARKED, Some(after), PAGE_MAX);
        let page = within(clock, limits.begin, list).await.unwrap_or_else(late)?;
        let now = clock.now();
        let keys = page.objects.iter().map(|object| object.key.as_str());
        let moves: Vec<Move<'_>> = keys.filter_map(|key| Some((key, due_instead(key, now)?))).collect();
        let mut has_left = false;
        for some in moves.chunks(RELEASES_AT_ONCE) {
            if !self.may_begin(limits) {
                return Ok(Looked::OutOfTime);
            }
            let done = join_all(some.iter().map(|object| self.move_object(*object))).await;
            let count = done.into_iter().filter(|is_moved| *is_moved).count();
            course.report.pulled_in += count;
            has_left |= count < some.len();
        }
        Ok(Looked::Through { next_after: page.next_after, has_left })
    }

    /// Whether the object is under its new minute. A crash in between leaves it under both.
    async fn move_object(&self, (key, due): Move<'_>) -> bool {
        let moved = guarded(self.try_move(key, due)).await.map_err(ReleaseError::Panicked).flatten();
        if let Err(error) = &moved {
            tracing::error!(%key, error = error as &dyn Error, "parked object not moved, tried again");
        }
        moved.is_ok()
    }

    async fn try_move(&self, key: &str, due: u64) -> Result<(), ReleaseError> {
        let state = &self.ports.state;
        let id = layout::parked_id(self.ports.clock.now(), &self.ports.entropy.uuid().to_string());
        let Some(new_key) = layout::parked_instead(key, due, &id) else { return Ok(()) };
        // As it is: when they go, its messages are due from then on.
        let Some(object) = state.get(key).await.map_err(ReleaseError::Store)? else { return Ok(()) };
        state.put(&new_key, object.bytes, PutCondition::Always).await.map_err(ReleaseError::Store)?;
        state.delete(key).await.map_err(ReleaseError::Store)
    }
}
