//! Pulling in what a clock parked that was ahead: its object goes to a nearer minute, so that a clock that is
//! set back makes no delivery wait for as long as it jumped.

use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::model::time::Timestamp;
use posthaste_core::release::set_back::{key_instead, later_minute};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectStore, PortError, PutCondition, QueueSender};
use posthaste_services::catch_panic::catch_panic;
use serde::{Deserialize, Serialize};

use crate::course::Course;
use crate::limits::{Limits, within};
use crate::list::late;
use crate::release::{RELEASES_AT_ONCE, ReleaseError};
use crate::{PAGE_MAX, Wake};

/// Most pages of what is parked that a run looks at; the next one goes on after them.
const PAGES_MAX: usize = 20;

/// A look at all that is parked, which may take some runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Look {
    began_at: Timestamp,
    /// The key after which it goes on.
    after: String,
    /// The key after which it goes on once it has come to the end: before the first object that could not be
    /// moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again_after: Option<String>,
}

/// The result of one page.
enum Looked {
    /// The key after which the next one begins, if there is one, and a key before the first object that could
    /// not be moved.
    Through { next_after: Option<String>, left_after: Option<String> },
    /// There was no time for all of it.
    OutOfTime,
}

/// The key of an object, and the one that it gets instead.
type Move<'a> = (&'a str, String);

impl Look {
    /// A look that begins now.
    pub(crate) fn begin(now: Timestamp) -> Self {
        Self { began_at: now, after: layout::parked_before(later_minute(now)), again_after: None }
    }

    /// The look past a page, of which some objects may be left. `None` if all was looked at and none is left.
    fn past_page(self, next_after: Option<String>, left_after: Option<String>) -> Option<Self> {
        let Self { began_at, again_after, .. } = self;
        let again_after = again_after.or(left_after);
        match next_after {
            Some(after) => Some(Self { began_at, after, again_after }),
            None => again_after.map(|after| Self { began_at, after, again_after: None }),
        }
    }
}

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
        for _ in 0..PAGES_MAX {
            let Some(look) = course.look.clone().filter(|_| self.may_begin(limits)) else { break };
            match self.pull_in_page(&look, limits, course).await {
                Ok(Looked::Through { next_after, left_after }) => {
                    let is_end = next_after.is_none();
                    course.look = look.past_page(next_after, left_after);
                    if is_end {
                        break;
                    }
                }
                Ok(Looked::OutOfTime) => break,
                Err(error) => {
                    let error = &error as &dyn Error;
                    tracing::warn!(error, "parked deliveries not looked at, the next run does");
                    break;
                }
            }
        }
    }

    async fn pull_in_page(
        &self,
        look: &Look,
        limits: Limits,
        course: &mut Course,
    ) -> Result<Looked, PortError> {
        let clock = &self.ports.clock;
        let list = self.ports.state.list(layout::PARKED, Some(&look.after), PAGE_MAX);
        let page = within(clock, limits.begin, list).await.unwrap_or_else(late)?;
        let now = clock.now();
        let keys = page.objects.iter().map(|object| object.key.as_str());
        let moves: Vec<Move<'_>> =
            keys.filter_map(|key| Some((key, key_instead(key, look.began_at, now)?))).collect();
        let mut left_after = None;
        for some in moves.chunks(RELEASES_AT_ONCE) {
            if !self.may_begin(limits) {
                return Ok(Looked::OutOfTime);
            }
            let done = join_all(some.iter().map(|object| self.move_object(object))).await;
            course.report.pulled_in += done.iter().filter(|is_moved| **is_moved).count();
            let left = some.iter().zip(done).find(|(_, is_moved)| !is_moved);
            let minute = left.and_then(|((key, _), _)| layout::parked_due_minute(key));
            left_after = left_after.or(minute.map(layout::parked_before));
        }
        Ok(Looked::Through { next_after: page.next_after, left_after })
    }

    /// Whether the object is under its new key. A crash in between leaves it under both.
    async fn move_object(&self, (key, new_key): &Move<'_>) -> bool {
        let moved = catch_panic(self.try_move(key, new_key)).await.map_err(ReleaseError::Panicked).flatten();
        if let Err(error) = &moved {
            tracing::error!(%key, error = error as &dyn Error, "parked object not moved, tried again");
        }
        moved.is_ok()
    }

    async fn try_move(&self, key: &str, new_key: &str) -> Result<(), ReleaseError> {
        let state = &self.ports.state;
        // As it is: when they go, its messages are due from then on.
        let Some(object) = state.get(key).await.map_err(ReleaseError::Store)? else { return Ok(()) };
        match state.put(new_key, object.bytes, PutCondition::IfAbsent).await {
            // An earlier try has copied it, and some of the copy may have been sent since.
            Err(error) if error.kind != ErrorKind::PreconditionFailed => {
                return Err(ReleaseError::Store(error));
            }
            Ok(_) | Err(_) => {}
        }
        state.delete(key).await.map_err(ReleaseError::Store)
    }
}
