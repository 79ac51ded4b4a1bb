//! Parked deliveries whose minute has come, oldest first, from where something may still lie. Pressure of the
//! queue slows their release and never stops it.

mod due_pages;

use std::collections::VecDeque;
use std::error::Error;

use futures_util::future::join_all;
use parking_lot::Mutex;
use posthaste_core::release::speed::speed;
use posthaste_core::release::{ParkedWalk, Quota, Released, RunAccount, Speed, Waiting};
use posthaste_ports::{Clock, PortError, Ports};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::{PressureReader, timeout_at};

use crate::batches::Batches;
use crate::budget::Budget;
use crate::objects::{Objects, RELEASES_AT_ONCE, ReleaseError};
use crate::ports::WakePorts;
use due_pages::{DuePage, DuePages, Part};

/// Most objects that a run looks at under pressure for what has expired; the next run goes on after them.
const EXPIRED_OBJECTS_MAX: usize = 1000;

/// Releases parked deliveries.
pub(crate) struct Parked<'a, P: Ports> {
    objects: &'a Objects<'a, P>,
    batches: &'a Batches<'a, P>,
    account: &'a Mutex<RunAccount>,
    pages: DuePages<'a, P>,
    pressure: &'a PressureReader<P::Store, P::Clock>,
    clock: &'a P::Clock,
}

/// One run, and its result.
#[derive(Debug)]
pub(crate) struct ParkedRun<'a> {
    budget: Budget<'a>,
    /// How far it came.
    pub(crate) walk: ParkedWalk,
    /// Objects whose deliveries were all sent.
    pub(crate) objects: usize,
    /// Deliveries that were sent.
    pub(crate) sent: usize,
    /// Objects that are tried again in the next run.
    pub(crate) left: usize,
    /// True if pressure slowed it.
    pub(crate) was_slowed: bool,
}

impl<'a, P: Ports> Parked<'a, P> {
    pub(crate) fn new(
        ports: &'a WakePorts<P>,
        objects: &'a Objects<'a, P>,
        batches: &'a Batches<'a, P>,
        account: &'a Mutex<RunAccount>,
    ) -> Self {
        let WakePorts { state, pressure, clock, .. } = ports;
        Self { objects, batches, account, pages: DuePages { store: state, clock }, pressure, clock }
    }

    /// Releases what is due, at first at this speed; once a day from the start of the list as well. Answers
    /// `None` beside the run where there was not time enough.
    pub(crate) async fn run(
        &self,
        walk: ParkedWalk,
        speed: Speed,
        budget: Budget<'a>,
    ) -> (ParkedRun<'a>, Option<Result<(), PortError>>) {
        let mut run = ParkedRun { budget, walk, objects: 0, sent: 0, left: 0, was_slowed: false };
        let ended = timeout_at(self.clock, budget.work, Box::pin(self.release(&mut run, speed))).await;
        (run, ended)
    }

    async fn release(&self, run: &mut ParkedRun<'_>, speed: Speed) -> Result<(), PortError> {
        let after = run.walk.begins_after();
        let part = Part { after: after.clone(), before: None };
        if !self.release_part(part, speed, run).await? {
            return Ok(());
        }
        run.walk.complete();
        if after.is_none() {
            run.walk.end_scan();
        } else if run.walk.is_scan_due() {
            self.scan(Part { after: None, before: after }, run).await;
        }
        Ok(())
    }

    /// Releases what lies before the list's beginning. That may fail, where it has to walk past very much
    /// that was deleted; nothing that was written in time depends on it.
    async fn scan(&self, part: Part, run: &mut ParkedRun<'_>) {
        run.walk.begin_scan();
        match self.release_part(part, self.speed().await, run).await {
            Ok(true) => run.walk.end_scan(),
            Ok(false) => {}
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(error, "the start of the list not scanned, tried again in an hour");
            }
        }
    }

    /// Releases what is due in a part of the list; whether it came to its end.
    async fn release_part(
        &self,
        mut part: Part,
        mut speed: Speed,
        run: &mut ParkedRun<'_>,
    ) -> Result<bool, PortError> {
        loop {
            let page = self.pages.next(&part, run.budget).await?;
            let is_through = match speed {
                Speed::Full => {
                    run.walk.expired_to = None;
                    self.release_page(&page.due, run).await
                }
                Speed::Slow | Speed::OneObject => self.release_slowly(&page.due, speed, run).await,
            };
            if !is_through {
                if speed != Speed::Full {
                    self.release_expired(page, part, run).await?;
                }
                return Ok(false);
            }
            part.after = page.next_after;
            if part.after.is_none() {
                return Ok(true);
            }
            speed = self.speed().await;
        }
    }

    /// Releases a page as fast as there is time; whether there was time for all of it.
    async fn release_page(&self, due: &[String], run: &mut ParkedRun<'_>) -> bool {
        for some in due.chunks(RELEASES_AT_ONCE) {
            if !run.budget.has_time(self.clock) {
                run.walk.retry(some);
                return false;
            }
            let releases = some.iter().map(|key| catch_panic(self.objects.release(key, run.budget)));
            for (ended, key) in join_all(releases).await.into_iter().zip(some) {
                let ended = ended.map_err(ReleaseError::Panicked).flatten();
                if let Err(error) = &ended {
                    tracing::error!(%key, error = error as &dyn Error, "parked deliveries not ended");
                }
                run.objects += usize::from(ended.is_ok());
                run.left += usize::from(ended.is_err());
                if ended.as_ref().is_err_and(|error| !error.is_lasting()) {
                    run.walk.retry(std::slice::from_ref(key));
                }
                run.sent += ended.unwrap_or_default();
            }
            run.walk.tried(some);
        }
        true
    }

    /// Releases of a page what may go under pressure; whether that was all of it.
    async fn release_slowly(&self, due: &[String], speed: Speed, run: &mut ParkedRun<'_>) -> bool {
        run.was_slowed = true;
        let mut keys = VecDeque::from(due.to_vec());
        let max = self.account.lock().left(Waiting::Parked, speed);
        let quota = Quota { max, at_once: RELEASES_AT_ONCE };
        let released = self.batches.release(&mut keys, quota, run.budget).await;
        self.account.lock().add(Waiting::Parked, released.amount());
        run.add(released);
        run.objects += due.len() - keys.len() - released.left;
        run.walk.tried(due);
        let is_through = keys.is_empty() && released.left == 0;
        if !is_through {
            run.walk.retry(due);
        }
        is_through
    }

    /// Releases what has expired of this page and the following ones, in half of the time, from where the
    /// last run ended.
    async fn release_expired(
        &self,
        mut page: DuePage,
        mut part: Part,
        run: &mut ParkedRun<'_>,
    ) -> Result<(), PortError> {
        let half = run.budget.half(self.clock);
        let from = run.walk.expired_to.clone();
        let mut looked_at = 0;
        loop {
            let is_new = |key: &String| from.as_ref().is_none_or(|from| key > from);
            let mut keys: VecDeque<_> = page.due.into_iter().filter(is_new).collect();
            keys.truncate(EXPIRED_OBJECTS_MAX - looked_at);
            looked_at += keys.len();
            let now = self.clock.now();
            let (released, last) = self.batches.release_expired(&mut keys, now, RELEASES_AT_ONCE, half).await;
            run.add(released);
            // Should the next page not be listed, the next run goes on here.
            run.walk.expired_to = last.or(run.walk.expired_to.take());
            if released.is_refused || !half.may_begin(self.clock) || looked_at >= EXPIRED_OBJECTS_MAX {
                return Ok(());
            }
            let Some(after) = page.next_after else {
                run.walk.expired_to = None;
                return Ok(());
            };
            part.after = from.clone().max(Some(after));
            page = self.pages.next(&part, half).await?;
        }
    }

    async fn speed(&self) -> Speed {
        speed(self.pressure.state().await.as_deref())
    }
}

impl ParkedRun<'_> {
    fn add(&mut self, released: Released) {
        self.sent += released.sent;
        self.left += released.left;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::stored::Checkpoint;

    use super::*;
    use crate::testing::Kit;
    use crate::waits::WaitNotes;

    const MINUTE: Duration = Duration::from_mins(1);

    /// The result of a run from a checkpoint, and the minutes between its start and the minute from which the
    /// next begins.
    async fn run(kit: &Kit, checkpoint: &Checkpoint, speed: Speed) -> ([usize; 3], Option<u64>) {
        let (waits, account) = (WaitNotes::new(&kit.ports, &kit.activity), Mutex::default());
        let objects = Objects::new(&kit.ports, &waits);
        let batches = Batches::new(&objects, &kit.clock);
        let parked = Parked::new(&kit.ports, &objects, &batches, &account);
        let walk = ParkedWalk::resume(checkpoint, kit.clock.now());
        let (run, ended) = parked.run(walk, speed, kit.budget()).await;
        ended.unwrap().unwrap();
        let open_from = run.walk.checkpoint().open_from_minute;
        let back = open_from.map(|minute| kit.clock.now().minute() - minute);
        ([run.objects, run.sent, run.left], back)
    }

    #[tokio::test]
    async fn all_that_is_due_goes_and_the_next_run_begins_here() {
        let kit = Kit::new();
        for n in 0..7 {
            kit.park(Duration::ZERO, &n.to_string(), 2);
        }
        let later = kit.park(MINUTE, "later", 1);
        assert_eq!(run(&kit, &Checkpoint::default(), Speed::Full).await, ([7, 14, 0], Some(0)));
        assert_eq!(kit.store.keys("parked/"), [later]);
    }

    #[tokio::test]
    async fn the_next_run_begins_where_something_was_left() {
        let kit = Kit::refusing(|_| true);
        kit.park(Duration::ZERO, "x", 2);
        kit.clock.advance(20 * MINUTE);
        assert_eq!(run(&kit, &Checkpoint::default(), Speed::Full).await, ([0, 0, 1], Some(20)));
    }

    #[tokio::test]
    async fn one_object_goes_at_a_time_where_that_is_the_speed() {
        let kit = Kit::new();
        for n in 0..4 {
            kit.park(Duration::ZERO, &n.to_string(), 2);
        }
        assert_eq!(run(&kit, &Checkpoint::default(), Speed::OneObject).await, ([1, 2, 0], Some(0)));
        assert_eq!(kit.store.keys("parked/").len(), 3);
    }
}
