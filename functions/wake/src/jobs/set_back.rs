//! Objects that were parked by a clock that was ahead go to a nearer minute, so that a clock that is set back
//! makes no delivery wait for as long as it jumped. Before everything else that reads what is parked, so that
//! nothing is sent while it is moved.

use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::release::set_back::key_instead;
use posthaste_core::stored::{SetBackScan, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::timeout_at;

use crate::budget::Budget;
use crate::listing::list_until;
use crate::objects::{RELEASES_AT_ONCE, ReleaseError};
use crate::ports::WakePorts;

/// Most pages of what is parked that a run looks at; the next one goes on after them.
const PAGES_MAX: usize = 20;

/// Moves parked objects to nearer minutes.
pub(crate) struct SetBack<'a, P: Ports> {
    store: &'a P::Store,
    clock: &'a P::Clock,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct SetBackRun {
    /// The scan with which the next run goes on. `None` if all was looked at.
    pub(crate) scan: Option<SetBackScan>,
    /// Objects that were moved.
    pub(crate) moved: usize,
}

/// The result of one page.
enum Page {
    /// The key after which the next one begins, if there is one, and a key before the first object that could
    /// not be moved.
    Through { next_after: Option<String>, left_after: Option<String> },
    /// There was no time for all of it.
    OutOfTime,
}

/// The key of an object, and the one that it gets instead.
type Move = (String, String);

impl<'a, P: Ports> SetBack<'a, P> {
    pub(crate) fn new(ports: &'a WakePorts<P>) -> Self {
        Self { store: &ports.state, clock: &ports.clock }
    }

    /// Scans all that is parked, where that is due, in half of the run's time at most. Objects that cannot be
    /// moved are tried again when all was looked at.
    pub(crate) async fn run(&self, scan: Option<SetBackScan>, budget: Budget<'_>) -> SetBackRun {
        let mut run = SetBackRun { scan, moved: 0 };
        if run.scan.is_none() {
            return run;
        }
        let scan = Box::pin(self.scan(&mut run, budget.half(self.clock)));
        let _ = timeout_at(self.clock, budget.begin, scan).await;
        run
    }

    async fn scan(&self, run: &mut SetBackRun, budget: Budget<'_>) {
        for _ in 0..PAGES_MAX {
            let Some(scan) = run.scan.clone().filter(|_| budget.may_begin(self.clock)) else { return };
            match self.scan_page(&scan, run, budget).await {
                Ok(Page::Through { next_after, left_after }) => {
                    let is_end = next_after.is_none();
                    run.scan = scan.past_page(next_after, left_after);
                    if is_end {
                        return;
                    }
                }
                Ok(Page::OutOfTime) => return,
                Err(error) => {
                    let error = &error as &dyn Error;
                    tracing::warn!(error, "parked deliveries not scanned, the next run does");
                    return;
                }
            }
        }
    }

    async fn scan_page(
        &self,
        scan: &SetBackScan,
        run: &mut SetBackRun,
        budget: Budget<'_>,
    ) -> Result<Page, PortError> {
        let page =
            list_until(self.store, self.clock, budget.begin, layout::PARKED, Some(&scan.after)).await?;
        let now = self.clock.now();
        let keys = page.objects.into_iter().map(|object| object.key);
        let new_key = |key: &str| key_instead(key, scan.began_at, now);
        let moves: Vec<Move> = keys.filter_map(|key| new_key(&key).map(|new_key| (key, new_key))).collect();
        let mut left_after = None;
        for some in moves.chunks(RELEASES_AT_ONCE) {
            if !budget.may_begin(self.clock) {
                return Ok(Page::OutOfTime);
            }
            let done = join_all(some.iter().map(|object| self.move_object(object))).await;
            run.moved += done.iter().filter(|is_moved| **is_moved).count();
            let left = some.iter().zip(done).find(|(_, is_moved)| !is_moved);
            let minute = left.and_then(|((key, _), _)| layout::parked_due_minute(key));
            left_after = left_after.or(minute.map(layout::parked_before));
        }
        Ok(Page::Through { next_after: page.next_after, left_after })
    }

    /// Tells whether the object is under its new key. A crash in between leaves it under both.
    async fn move_object(&self, (key, new_key): &Move) -> bool {
        let moved = catch_panic(self.try_move(key, new_key)).await;
        let moved = moved.map_err(ReleaseError::Panicked).flatten();
        if let Err(error) = &moved {
            tracing::error!(%key, error = error as &dyn Error, "parked object not moved, tried again");
        }
        moved.is_ok()
    }

    async fn try_move(&self, key: &str, new_key: &str) -> Result<(), ReleaseError> {
        // As it is: its messages are due from the moment at which they are sent.
        let Some(object) = self.store.get(key).await.map_err(ReleaseError::Store)? else { return Ok(()) };
        match self.store.put(new_key, object.bytes, PutCondition::IfAbsent).await {
            // An earlier try has copied it, and some of the copy may have been sent since.
            Err(error) if error.kind != ErrorKind::PreconditionFailed => {
                return Err(ReleaseError::Store(error));
            }
            Ok(_) | Err(_) => {}
        }
        self.store.delete(key).await.map_err(ReleaseError::Store)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::stored::Checkpoint;

    use super::*;
    use crate::testing::{Kit, PAGE};

    const HOUR: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn objects_of_a_clock_that_was_ahead_are_moved_and_a_scan_goes_on_in_the_next_run() {
        let kit = Kit::new();
        for n in 0..=PAGES_MAX * PAGE {
            kit.park(2 * HOUR, &layout::parked_id(kit.clock.now() + HOUR, &format!("{n:03}")), 1);
        }
        let ahead = Some(kit.clock.now());
        kit.clock.set_back(6 * HOUR);
        let job = SetBack::<crate::testing::TestPorts>::new(&kit.ports);
        let scan =
            SetBackScan::resume(&Checkpoint { began_at: ahead, ..Checkpoint::default() }, kit.clock.now());
        let first = job.run(scan, kit.budget()).await;
        assert_eq!((first.moved, first.scan.is_some()), (PAGES_MAX * PAGE, true));
        let second = job.run(first.scan, kit.budget()).await;
        assert_eq!((second.moved, second.scan), (1, None));
        let in_an_hour = kit.clock.now().minute() + 60;
        let keys = kit.store.keys(layout::PARKED);
        assert!(keys.iter().all(|key| layout::parked_due_minute(key) == Some(in_an_hour)), "{keys:?}");
    }

    #[tokio::test]
    async fn where_no_scan_is_due_nothing_is_listed() {
        let kit = Kit::new();
        let run = SetBack::new(&kit.ports).run(None, kit.budget()).await;
        assert_eq!((run.moved, run.scan), (0, None));
        assert!(kit.store.take_listed(layout::PARKED).is_empty());
    }
}
