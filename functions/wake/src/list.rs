//! Walking through what is parked, oldest first.

use std::collections::VecDeque;

use posthaste_core::model::time::Timestamp;
use posthaste_core::pressure::Level;
use posthaste_core::release::speed::{Speed, Waiting, speed};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, ErrorKind, ListPage, ObjectStore, PortError, QueueSender};

use crate::course::Course;
use crate::held::Portion;
use crate::limits::{Limits, within};
use crate::release::RELEASES_AT_ONCE;
use crate::{PAGE_MAX, Wake};

/// Most objects that a run looks at under pressure for what has expired; the next run goes on after them.
const EXPIRED_OBJECTS_MAX: usize = 1000;

/// A part of the list: what lies between two keys.
#[derive(Debug, Clone, Default)]
struct Part {
    after: Option<String>,
    before: Option<String>,
}

/// The keys of a page that are due.
#[derive(Debug)]
struct DuePage {
    due: Vec<String>,
    /// The key after which more may be due.
    next_after: Option<String>,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Releases what is due, from where something may still lie; once a day from the start as well.
    /// It begins at this speed.
    pub(crate) async fn release_due(
        &self,
        speed: Speed,
        limits: Limits,
        course: &mut Course,
    ) -> Result<(), PortError> {
        let after = course.beginning();
        let part = Part { after: after.clone(), before: None };
        if !self.release_part(part, speed, limits, course).await? {
            return Ok(());
        }
        course.was_completed();
        if after.is_none() {
            course.was_scanned();
        } else if course.is_scan_due() {
            self.scan(Part { after: None, before: after }, limits, course).await;
        }
        Ok(())
    }

    /// Looks at what lies before the list's beginning. That may fail, where it has to walk past very much that was
    /// deleted; nothing that was written in time depends on it.
    async fn scan(&self, part: Part, limits: Limits, course: &mut Course) {
        course.scan_begins();
        match self.release_part(part, self.speed().await, limits, course).await {
            Ok(true) => course.was_scanned(),
            Ok(false) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the start of the list not looked at, tried again in an hour");
            }
        }
    }

    /// Releases what is due in a part of the list; whether it came to its end.
    async fn release_part(
        &self,
        part: Part,
        mut speed: Speed,
        limits: Limits,
        course: &mut Course,
    ) -> Result<bool, PortError> {
        let Part { mut after, before } = part;
        loop {
            let page = self.due_page(after.take(), before.as_deref(), limits).await?;
            let is_through = match speed {
                Speed::Full => {
                    course.expired_to = None;
                    self.release_page(&page.due, limits, course).await
                }
                Speed::Slow | Speed::OneObject => self.release_slowly(&page.due, speed, limits, course).await,
            };
            if !is_through {
                if speed != Speed::Full {
                    self.release_expired_parked(page, before.as_deref(), limits, course).await?;
                }
                return Ok(false);
            }
            after = page.next_after;
            if after.is_none() {
                return Ok(true);
            }
            speed = self.speed().await;
        }
    }

    /// Releases a page as fast as there is time; whether there was time for all of it.
    async fn release_page(&self, due: &[String], limits: Limits, course: &mut Course) -> bool {
        for some in due.chunks(RELEASES_AT_ONCE) {
            if self.ports.clock.monotonic() >= limits.begin {
                course.hold(some);
                return false;
            }
            self.release_some(some, limits, course).await;
        }
        true
    }

    /// Releases of a page what may go under pressure; whether that was all of it.
    async fn release_slowly(
        &self,
        due: &[String],
        speed: Speed,
        limits: Limits,
        course: &mut Course,
    ) -> bool {
        course.report.was_slowed = true;
        let mut keys = VecDeque::from(due.to_vec());
        let max = course.account.left(Waiting::Parked, speed);
        let taken = self.take(&mut keys, Portion { max, at_once: RELEASES_AT_ONCE }, limits).await;
        course.account.add(Waiting::Parked, taken.amount());
        course.report.sent += taken.sent;
        course.report.left += taken.left;
        course.report.released += due.len() - keys.len() - taken.left;
        course.tried(due);
        let is_through = keys.is_empty() && taken.left == 0;
        if !is_through {
            course.hold(due);
        }
        is_through
    }

    /// Sends what has expired of this page and the following ones, in half of the time, from where the last run ended.
    async fn release_expired_parked(
        &self,
        mut page: DuePage,
        before: Option<&str>,
        limits: Limits,
        course: &mut Course,
    ) -> Result<(), PortError> {
        let half = limits.half_from(self.ports.clock.monotonic());
        let from = course.expired_to.clone();
        let mut looked_at = 0;
        loop {
            let is_new = |key: &String| from.as_ref().is_none_or(|from| key > from);
            let mut keys: VecDeque<_> = page.due.into_iter().filter(is_new).collect();
            keys.truncate(EXPIRED_OBJECTS_MAX - looked_at);
            looked_at += keys.len();
            let now = self.ports.clock.now();
            let (taken, last) = self.take_expired(&mut keys, now, RELEASES_AT_ONCE, half).await;
            course.report.sent += taken.sent;
            course.report.left += taken.left;
            // Should the next page not be listed, the next run goes on here.
            course.expired_to = last.or(course.expired_to.take());
            if taken.is_refused || !self.may_begin(half) || looked_at >= EXPIRED_OBJECTS_MAX {
                return Ok(());
            }
            let Some(after) = page.next_after else {
                course.expired_to = None;
                return Ok(());
            };
            let after = from.clone().max(Some(after));
            page = self.due_page(after, before, half).await?;
        }
    }

    /// The next page of what is due.
    async fn due_page(
        &self,
        after: Option<String>,
        before: Option<&str>,
        limits: Limits,
    ) -> Result<DuePage, PortError> {
        let clock = &self.ports.clock;
        let list = self.ports.state.list(layout::PARKED, after.as_deref(), PAGE_MAX);
        // Nothing could be done with a page that comes later.
        let ListPage { objects, next_after } =
            within(clock, limits.begin, list).await.unwrap_or_else(late)?;
        let now = clock.now();
        let is_wanted = |key: &String| is_due(key, now) && before.is_none_or(|before| key.as_str() < before);
        let listed = objects.len();
        let due: Vec<_> = objects.into_iter().map(|object| object.key).take_while(is_wanted).collect();
        // A page may be short and yet not the last.
        let next_after = next_after.filter(|_| due.len() == listed);
        Ok(DuePage { due, next_after })
    }

    pub(crate) async fn speed(&self) -> Speed {
        speed(self.ports.pressure.state().await.as_deref())
    }

    pub(crate) async fn is_under_pressure(&self) -> bool {
        self.ports.pressure.state().await.is_some_and(|state| state.level() != Level::Normal)
    }
}

/// The answer of a list that did not come in time.
pub(crate) fn late<T>() -> Result<T, PortError> {
    Err(PortError::new("list objects before the run's end", ErrorKind::TimedOut))
}

/// Whether a parked object's minute has come. A key that is none of ours counts as due, so that its object is looked
/// at and reported instead of holding up the list.
fn is_due(key: &str, now: Timestamp) -> bool {
    layout::parked_due_minute(key).is_none_or(|minute| minute <= now.minute())
}
