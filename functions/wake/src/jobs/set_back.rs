//! Objects that were parked by a clock that was ahead go to a nearer minute, so that a clock that
//! is set back makes no delivery wait for as long as it jumped. This job comes before all others
//! that read parked objects, so that nothing is sent while it is moved.

use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::release::set_back::key_instead;
use posthaste_core::stored::{SetBackScan, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::timeout_at;

use crate::objects::{RELEASES_AT_ONCE, ReleaseError};
use crate::run::WakeRun;

/// Most pages of parked objects that a run looks at; the next run goes on after them.
const PAGES_MAX: usize = 20;

/// The key of an object, and the one that it gets instead.
struct KeyMove {
    key: String,
    new_key: String,
}

/// Moves parked objects to nearer minutes, in one run.
pub(crate) struct SetBack<'a, P: Ports> {
    run: WakeRun<'a, P>,
    /// The scan with which the next run goes on; `None` if this one looked at everything.
    pub(crate) scan: Option<SetBackScan>,
    /// Objects that were moved.
    pub(crate) moved: usize,
}

impl<'a, P: Ports> SetBack<'a, P> {
    /// Scans all that is parked, where a scan is due, in half of the run's time at most. Objects
    /// that cannot be moved are tried again after the scan.
    pub(crate) async fn run(run: WakeRun<'a, P>, scan: Option<SetBackScan>) -> Self {
        let mut job = Self {
            run,
            scan,
            moved: 0,
        };
        if job.scan.is_some() {
            run.note_work();
            job.run = run.with_half_time();
            let _ = timeout_at(&run.ports.clock, run.begin, Box::pin(job.scan_pages())).await;
        }
        job
    }

    async fn scan_pages(&mut self) {
        for _ in 0..PAGES_MAX {
            let Some(scan) = self.scan.clone().filter(|_| self.run.may_begin()) else {
                return;
            };
            match self.scan_page(scan).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let error = &error as &dyn Error;
                    tracing::warn!(
                        error,
                        "parked deliveries not checked for wrong minutes, the next run tries again"
                    );
                    return;
                }
            }
        }
    }

    /// Scans a page. Tells whether there is another one, and time for it.
    async fn scan_page(&mut self, scan: SetBackScan) -> Result<bool, PortError> {
        let page = self
            .run
            .ports
            .list_until(self.run.begin, layout::PARKED, Some(&scan.after))
            .await?;
        let now = self.run.ports.clock.now();
        let keys = page.objects.into_iter().map(|object| object.key);
        let moves = keys.filter_map(|key| {
            let new_key = key_instead(&key, scan.began_at, now)?;
            Some(KeyMove { key, new_key })
        });
        let moves: Vec<_> = moves.collect();
        let mut left_after = None;
        for some in moves.chunks(RELEASES_AT_ONCE) {
            if !self.run.may_begin() {
                return Ok(false);
            }
            let done = join_all(
                some.iter()
                    .map(|object| move_object(&self.run.ports.state, object)),
            )
            .await;
            self.moved += done.iter().filter(|is_moved| **is_moved).count();
            let left = some.iter().zip(done).find(|(_, is_moved)| !is_moved);
            let minute = left.and_then(|(object, _)| layout::parked_due_minute(&object.key));
            left_after = left_after.or(minute.map(layout::parked_before));
        }
        let has_more = page.next_after.is_some();
        self.scan = scan.past_page(page.next_after, left_after);
        Ok(has_more)
    }
}

/// Tells whether the object is under its new key. A crash in between leaves it under both.
async fn move_object(store: &impl ObjectStore, object: &KeyMove) -> bool {
    let KeyMove { key, new_key } = object;
    let moved = catch_panic(try_move(store, key, new_key)).await;
    let moved = moved.map_err(ReleaseError::Panicked).flatten();
    if let Err(error) = &moved {
        tracing::error!(%key, error = error as &dyn Error, "parked object not moved, tried again");
    }
    moved.is_ok()
}

async fn try_move(store: &impl ObjectStore, key: &str, new_key: &str) -> Result<(), ReleaseError> {
    // Unchanged: its messages are due from the moment at which they are sent.
    let Some(object) = store.get(key).await.map_err(ReleaseError::Store)? else {
        return Ok(());
    };
    match store
        .put(new_key, object.bytes, PutCondition::IfAbsent)
        .await
    {
        // An earlier try has copied it, and some of the copy may have been sent since.
        Err(error) if error.kind != ErrorKind::PreconditionFailed => {
            return Err(ReleaseError::Store(error));
        }
        Ok(_) | Err(_) => {}
    }
    store.delete(key).await.map_err(ReleaseError::Store)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::stored::WakeCheckpoint;

    use super::*;
    use crate::testing::{Kit, PAGE};

    const HOUR: Duration = Duration::from_hours(1);

    /// Objects of a clock that was ahead are moved, and the next run continues a long scan.
    #[tokio::test]
    async fn objects_parked_ahead_are_moved_and_the_next_run_continues() {
        let kit = Kit::new();
        for n in 0..=PAGES_MAX * PAGE {
            kit.park(
                2 * HOUR,
                &layout::parked_id(kit.clock.now() + HOUR, &format!("{n:03}")),
                1,
            );
        }
        let ahead = Some(kit.clock.now());
        kit.clock.set_back(6 * HOUR);
        let scan = SetBackScan::resume(
            &WakeCheckpoint {
                began_at: ahead,
                ..WakeCheckpoint::default()
            },
            kit.clock.now(),
        );
        let first = SetBack::run(kit.run(), scan).await;
        assert_eq!(
            (first.moved, first.scan.is_some()),
            (PAGES_MAX * PAGE, true)
        );
        let second = SetBack::run(kit.run(), first.scan).await;
        assert_eq!((second.moved, second.scan), (1, None));
        let in_an_hour = kit.clock.now().minute_rounded_down() + 60;
        let keys = kit.store.keys(layout::PARKED);
        assert!(
            keys.iter()
                .all(|key| layout::parked_due_minute(key) == Some(in_an_hour)),
            "{keys:?}"
        );
    }

    #[tokio::test]
    async fn run_without_a_due_scan_lists_nothing() {
        let kit = Kit::new();
        let job = SetBack::run(kit.run(), None).await;
        assert_eq!((job.moved, job.scan), (0, None));
        assert!(kit.store.take_listed(layout::PARKED).is_empty());
    }
}
