//! Walking through what is parked, oldest first.

use posthaste_core::layout;
use posthaste_core::pressure::Level;
use posthaste_core::time::Timestamp;
use posthaste_ports::{Clock, Entropy, ErrorKind, ListPage, ObjectStore, PortError, QueueSender};

use crate::course::Course;
use crate::limits::{Limits, within};
use crate::release::RELEASES_AT_ONCE;
use crate::{PAGE_MAX, Wake};

/// A part of the list: what lies between two keys.
#[derive(Debug, Clone, Default)]
struct Part {
    after: Option<String>,
    before: Option<String>,
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
    pub(crate) async fn release_due(&self, limits: Limits, course: &mut Course) -> Result<(), PortError> {
        let after = course.beginning();
        if !self.release_part(Part { after: after.clone(), before: None }, limits, course).await? {
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
        match self.release_part(part, limits, course).await {
            Ok(true) => course.was_scanned(),
            Ok(false) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the start of the list not looked at, tried again in an hour");
            }
        }
    }

    /// Releases what is due in a part of the list; whether it came to its end.
    async fn release_part(&self, part: Part, limits: Limits, course: &mut Course) -> Result<bool, PortError> {
        let clock = &self.ports.clock;
        let mut after = part.after;
        loop {
            // Nothing could be done with a page that comes later.
            let page = within(clock, limits.begin, self.page(after.as_deref())).await.unwrap_or_else(late)?;
            let Some(ListPage { objects, next_after }) = page else {
                course.report.was_held_back = true;
                return Ok(false);
            };
            let now = clock.now();
            let is_wanted =
                |key: &String| is_due(key, now) && part.before.as_ref().is_none_or(|before| key < before);
            let listed = objects.len();
            let due: Vec<_> = objects.into_iter().map(|o| o.key).take_while(is_wanted).collect();
            for some in due.chunks(RELEASES_AT_ONCE) {
                if clock.monotonic() >= limits.begin {
                    course.hold(some);
                    return Ok(false);
                }
                self.release_some(some, limits, course).await;
            }
            // A page may be short and yet not the last.
            if due.len() < listed || next_after.is_none() {
                return Ok(true);
            }
            after = next_after;
        }
    }

    /// The next page, or `None` under pressure.
    async fn page(&self, after: Option<&str>) -> Result<Option<ListPage>, PortError> {
        if self.is_under_pressure().await {
            return Ok(None);
        }
        self.ports.state.list(layout::PARKED, after, PAGE_MAX).await.map(Some)
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
