//! Parked deliveries whose minute has come, oldest first, from the minute in which one may still be
//! left. Pressure of the queue slows their release and never stops it.

use std::collections::VecDeque;
use std::error::Error;

use futures_util::future::join_all;
use parking_lot::Mutex;
use posthaste_core::release::parked::is_due;
use posthaste_core::release::speed::release_speed;
use posthaste_core::release::{
    ParkedWalk, ReleaseQuota, ReleaseSource, ReleaseSpeed, ReleasedCounts, RunAccount,
};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ListPage, PortError, Ports};
use posthaste_services::catch_panic::catch_panic;

use crate::batches;
use crate::objects::{self, RELEASES_AT_ONCE, ReleaseError};
use crate::run::WakeRun;

/// Most objects that a run looks at under pressure for what has expired; the next run goes on after
/// them.
const EXPIRED_OBJECTS_MAX: usize = 1000;

/// Releases parked deliveries, in one run.
pub(crate) struct ParkedRelease<'a, P: Ports> {
    run: WakeRun<'a, P>,
    account: &'a Mutex<RunAccount>,
    /// The progress of the run.
    pub(crate) walk: ParkedWalk,
    /// Objects whose deliveries were all sent.
    pub(crate) objects: usize,
    /// Deliveries that were sent.
    pub(crate) sent: usize,
    /// Objects that are tried again in the next run.
    pub(crate) left: usize,
    /// True if pressure slowed the release.
    pub(crate) was_slowed: bool,
    /// The minute of the first object that was seen and is not due.
    pub(crate) next_due: Option<u64>,
}

/// A part of the list: the objects between two keys.
#[derive(Debug, Clone, Default)]
struct KeyRange {
    after: Option<String>,
    before: Option<String>,
}

impl KeyRange {
    /// Whether a key lies before the end of the part.
    fn ends_behind(&self, key: &str) -> bool {
        self.before.as_deref().is_none_or(|before| key < before)
    }
}

/// The keys of a page that are due.
#[derive(Debug)]
struct DuePage {
    due: Vec<String>,
    /// The key after which more may be due.
    next_after: Option<String>,
    /// The minute of the first object that is not due.
    next_due: Option<u64>,
}

impl<'a, P: Ports> ParkedRelease<'a, P> {
    pub(crate) fn new(
        run: WakeRun<'a, P>,
        walk: ParkedWalk,
        account: &'a Mutex<RunAccount>,
    ) -> Self {
        Self {
            run,
            account,
            walk,
            objects: 0,
            sent: 0,
            left: 0,
            was_slowed: false,
            next_due: None,
        }
    }

    /// Releases what is due, at first at this speed; once a day also from the start of the list.
    pub(crate) async fn release_due(&mut self, speed: ReleaseSpeed) -> Result<(), PortError> {
        let after = self.walk.begins_after();
        if !self
            .release_part(
                KeyRange {
                    after: after.clone(),
                    before: None,
                },
                speed,
            )
            .await?
        {
            return Ok(());
        }
        self.walk.note_all_tried();
        if after.is_none() {
            self.walk.end_scan();
        } else if self.walk.is_scan_due() {
            self.release_oldest(KeyRange {
                after: None,
                before: after,
            })
            .await;
        }
        Ok(())
    }

    /// Releases what lies before the list's beginning. That may fail, where it has to walk past
    /// very much that was deleted; no delivery that was parked on time depends on it.
    async fn release_oldest(&mut self, part: KeyRange) {
        self.walk.begin_scan();
        match self.release_part(part, self.current_speed().await).await {
            Ok(true) => self.walk.end_scan(),
            Ok(false) => {}
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::warn!(
                    error,
                    "the oldest parked deliveries not looked for, tried again in an hour"
                );
            }
        }
    }

    /// Releases what is due in a part of the list. Answers whether it came to the part's end.
    async fn release_part(
        &mut self,
        mut part: KeyRange,
        mut speed: ReleaseSpeed,
    ) -> Result<bool, PortError> {
        loop {
            let page = due_page(self.run, &part).await?;
            self.next_due = page.next_due.or(self.next_due);
            let is_through = match speed {
                ReleaseSpeed::Full => {
                    self.walk.expired_to = None;
                    self.release_page(&page.due).await
                }
                ReleaseSpeed::Slow | ReleaseSpeed::OneObject => {
                    self.release_slowly(&page.due, speed).await
                }
            };
            if !is_through {
                if speed != ReleaseSpeed::Full {
                    self.release_expired(page, part).await?;
                }
                return Ok(false);
            }
            part.after = page.next_after;
            if part.after.is_none() {
                return Ok(true);
            }
            speed = self.current_speed().await;
        }
    }

    /// Releases a page as fast as there is time. Answers whether there was time for all of it.
    async fn release_page(&mut self, due: &[String]) -> bool {
        let run = self.run;
        for some in due.chunks(RELEASES_AT_ONCE) {
            if !run.has_time() {
                self.walk.note_retry(some);
                return false;
            }
            let work = some
                .iter()
                .map(|key| catch_panic(objects::release(run, key)));
            for (released, key) in join_all(work).await.into_iter().zip(some) {
                let released = released.map_err(ReleaseError::Panicked).flatten();
                if let Err(error) = &released {
                    tracing::error!(%key, error = error as &dyn Error, "parked deliveries not released");
                }
                self.objects += usize::from(released.is_ok());
                self.left += usize::from(released.is_err());
                if released.as_ref().is_err_and(|error| !error.is_lasting()) {
                    self.walk.note_retry(std::slice::from_ref(key));
                }
                self.sent += released.unwrap_or_default();
            }
            self.walk.note_tried(some);
        }
        true
    }

    /// Releases as much of a page as may go under pressure. Answers whether that was all of it.
    async fn release_slowly(&mut self, due: &[String], speed: ReleaseSpeed) -> bool {
        self.was_slowed = true;
        let mut keys = VecDeque::from(due.to_vec());
        let max = self
            .account
            .lock()
            .left_to_release(ReleaseSource::Parked, speed);
        let quota = ReleaseQuota {
            max,
            at_once: RELEASES_AT_ONCE,
        };
        let released = batches::release_within_quota(self.run, &mut keys, quota).await;
        self.account
            .lock()
            .note_released(ReleaseSource::Parked, released.amount());
        self.count_released(released);
        self.objects += due.len() - keys.len() - released.left;
        self.walk.note_tried(due);
        let is_through = keys.is_empty() && released.left == 0;
        if !is_through {
            self.walk.note_retry(due);
        }
        is_through
    }

    /// Releases what has expired of this page and the following ones, in half of the time, from
    /// where the last run ended.
    async fn release_expired(
        &mut self,
        mut page: DuePage,
        mut part: KeyRange,
    ) -> Result<(), PortError> {
        let half = self.run.with_half_time();
        let from = self.walk.expired_to.clone();
        let mut looked_at = 0;
        loop {
            let due = page.due.into_iter();
            let new = due.filter(|key| from.as_ref().is_none_or(|from| key > from));
            let mut keys: VecDeque<_> = new.collect();
            keys.truncate(EXPIRED_OBJECTS_MAX - looked_at);
            looked_at += keys.len();
            let now = half.ports.clock.now();
            let (released, last) =
                batches::release_expired(half, &mut keys, now, RELEASES_AT_ONCE).await;
            self.count_released(released);
            // If the next page is not listed, the next run goes on here.
            self.walk.expired_to = last.or(self.walk.expired_to.take());
            if released.is_refused || !half.may_begin() || looked_at >= EXPIRED_OBJECTS_MAX {
                return Ok(());
            }
            let Some(after) = page.next_after else {
                self.walk.expired_to = None;
                return Ok(());
            };
            part.after = from.clone().max(Some(after));
            page = due_page(half, &part).await?;
        }
    }

    async fn current_speed(&self) -> ReleaseSpeed {
        release_speed(self.run.ports.pressure.state().await.as_deref())
    }

    fn count_released(&mut self, released: ReleasedCounts) {
        self.sent += released.sent;
        self.left += released.left;
    }
}

/// The first page of a part, as far as it is due.
async fn due_page<P: Ports>(run: WakeRun<'_, P>, part: &KeyRange) -> Result<DuePage, PortError> {
    let ListPage {
        objects,
        next_after,
    } = run
        .ports
        .list_until(run.begin, layout::PARKED, part.after.as_deref())
        .await?;
    let now = run.ports.clock.now();
    let listed = objects.len();
    let later = objects.iter().find(|object| !is_due(&object.key, now));
    let next_due = later.and_then(|object| layout::parked_due_minute(&object.key));
    let keys = objects.into_iter().map(|object| object.key);
    let due: Vec<_> = keys
        .take_while(|key| is_due(key, now) && part.ends_behind(key))
        .collect();
    if !due.is_empty() {
        run.note_work();
    }
    // A page may be short and yet not the last.
    let next_after = next_after.filter(|_| due.len() == listed);
    Ok(DuePage {
        due,
        next_after,
        next_due,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::stored::WakeCheckpoint;

    use super::*;
    use crate::testing::Kit;

    const MINUTE: Duration = Duration::from_mins(1);

    /// The result of a run from a checkpoint, and the minutes between its start and the minute from
    /// which the next begins.
    async fn run(
        kit: &Kit,
        checkpoint: &WakeCheckpoint,
        speed: ReleaseSpeed,
    ) -> ([usize; 3], Option<u64>) {
        let walk = ParkedWalk::resume(checkpoint, kit.clock.now());
        let account = Mutex::default();
        let mut parked = ParkedRelease::new(kit.run(), walk, &account);
        parked.release_due(speed).await.unwrap();
        let open_from = parked.walk.into_checkpoint().open_from_minute;
        let back = open_from.map(|minute| kit.clock.now().minute_rounded_down() - minute);
        ([parked.objects, parked.sent, parked.left], back)
    }

    #[tokio::test]
    async fn all_that_is_due_goes_and_the_next_run_begins_here() {
        let kit = Kit::new();
        for n in 0..7 {
            kit.park(Duration::ZERO, &n.to_string(), 2);
        }
        let later = kit.park(MINUTE, "later", 1);
        assert_eq!(
            run(&kit, &WakeCheckpoint::default(), ReleaseSpeed::Full).await,
            ([7, 14, 0], Some(0))
        );
        assert_eq!(kit.store.keys("parked/"), [later]);
    }

    #[tokio::test]
    async fn the_next_run_begins_where_something_was_left() {
        let kit = Kit::refusing(|_| true);
        kit.park(Duration::ZERO, "x", 2);
        kit.clock.advance(20 * MINUTE);
        assert_eq!(
            run(&kit, &WakeCheckpoint::default(), ReleaseSpeed::Full).await,
            ([0, 0, 1], Some(20))
        );
    }

    #[tokio::test]
    async fn parked_objects_go_one_at_a_time_at_that_speed() {
        let kit = Kit::new();
        for n in 0..4 {
            kit.park(Duration::ZERO, &n.to_string(), 2);
        }
        assert_eq!(
            run(&kit, &WakeCheckpoint::default(), ReleaseSpeed::OneObject).await,
            ([1, 2, 0], Some(0))
        );
        assert_eq!(kit.store.keys("parked/").len(), 3);
    }
}
