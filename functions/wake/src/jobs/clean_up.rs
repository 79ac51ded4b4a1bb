//! Deletion of objects in the state bucket whose time is over. On AWS lifecycle rules of the bucket do the
//! same instead.

mod kinds;

use std::error::Error;

use futures_util::future::try_join_all;
use posthaste_core::model::Timestamp;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use posthaste_services::timeout_at;

use crate::budget::Budget;
use crate::ports::WakePorts;
use kinds::{KINDS, Kind};

/// Objects deleted at once.
const DELETES_AT_ONCE: usize = 64;

/// Each kind is looked for once an hour: they are kept for a day or longer.
const MINUTES_BETWEEN: u64 = 60;

/// Deletes what is old.
pub(crate) struct CleanUp<'a, P: Ports> {
    store: &'a P::Store,
    clock: &'a P::Clock,
}

impl<'a, P: Ports> CleanUp<'a, P> {
    pub(crate) fn new(ports: &'a WakePorts<P>) -> Self {
        Self { store: &ports.state, clock: &ports.clock }
    }

    /// Deletes what is old of the kinds whose minute this is, while there is time. What fails, or must wait,
    /// is found again an hour later, and holds up no other kind.
    pub(crate) async fn run(&self, budget: Budget<'_>) {
        let now = self.clock.now();
        for kind in KINDS.iter().filter(|kind| now.minute() % MINUTES_BETWEEN == kind.minute) {
            let objects = kind.name;
            match timeout_at(self.clock, budget.work, Box::pin(self.delete_old(kind, now, budget))).await {
                Some(Ok(0)) => {}
                Some(Ok(deleted)) => tracing::info!(objects, deleted, "old objects deleted"),
                Some(Err(error)) => {
                    tracing::warn!(objects, error = &error as &dyn Error, "old objects not deleted");
                }
                None => tracing::warn!(objects, "old objects not deleted in time"),
            }
        }
    }

    async fn delete_old(&self, kind: &Kind, now: Timestamp, budget: Budget<'_>) -> Result<usize, PortError> {
        let (is_old, mut deleted, mut after) = (kind.is_old(now), 0, None);
        for _ in 0..kind.pages_max {
            let page = self.store.list(kind.prefix, after.as_deref(), LIST_PAGE_MAX).await?;
            let old: Vec<_> = page.objects.iter().filter(|object| is_old(object)).collect();
            for some in old.chunks(DELETES_AT_ONCE) {
                if !budget.has_time(self.clock) {
                    return Ok(deleted);
                }
                let gone = try_join_all(some.iter().map(|object| self.delete_one(kind, &object.key, now)));
                deleted += gone.await?.into_iter().filter(|is_gone| *is_gone).count();
            }
            // A page may be short and yet not the last.
            after = page.next_after;
            if after.is_none() || (kind.is_in_order() && old.len() < page.objects.len()) {
                break;
            }
        }
        Ok(deleted)
    }

    /// Deletes an object that was listed as old, unless its content shows that it is in use again.
    async fn delete_one(&self, kind: &Kind, key: &str, now: Timestamp) -> Result<bool, PortError> {
        if let Some(is_over) = kind.is_over {
            let Some(found) = self.store.get(key).await? else { return Ok(false) };
            if !is_over(&found.bytes, now) {
                return Ok(false);
            }
        }
        self.store.delete(key).await.map(|()| true)
    }
}
