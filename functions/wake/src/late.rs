//! Notes of late answers that no attempt has looked for. On AWS a lifecycle rule of the bucket does the same, instead of
//! this.

use futures_util::future::try_join_all;
use posthaste_core::layout::LATE;
use posthaste_core::limits::LATE_NOTE_KEPT;
use posthaste_core::time::Timestamp;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender};

use crate::limits::{Limits, within};
use crate::{PAGE_MAX, Wake};

/// Most pages looked at in one run: they are few, for they are notes of what hardly ever happens.
const PAGES_MAX: usize = 100;

/// Objects deleted at once.
const DELETES_AT_ONCE: usize = 64;

/// Looked for once an hour.
const MINUTES_BETWEEN: u64 = 60;

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Deletes old notes, if this is the minute for it and there is time left. What fails is found again an hour later.
    pub(crate) async fn expire_late(&self, limits: Limits) {
        let clock = &self.ports.clock;
        let now = clock.now();
        if !now.minute().is_multiple_of(MINUTES_BETWEEN) {
            return;
        }
        match within(clock, limits.work, self.delete_late(now, limits)).await {
            Some(Ok(0)) => {}
            Some(Ok(deleted)) => tracing::info!(deleted, "old notes of late answers deleted"),
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "notes of late answers not deleted");
            }
            None => tracing::warn!("notes of late answers not deleted in time"),
        }
    }

    async fn delete_late(&self, now: Timestamp, limits: Limits) -> Result<usize, PortError> {
        let (mut deleted, mut after) = (0, None);
        for _ in 0..PAGES_MAX {
            let page = self.ports.state.list(LATE, after.as_deref(), PAGE_MAX).await?;
            let old = page.objects.iter().filter(|note| now >= note.modified_at + LATE_NOTE_KEPT);
            let old: Vec<_> = old.map(|note| note.key.as_str()).collect();
            for some in old.chunks(DELETES_AT_ONCE) {
                if self.ports.clock.monotonic() >= limits.begin {
                    return Ok(deleted);
                }
                try_join_all(some.iter().map(|key| self.ports.state.delete(key))).await?;
                deleted += some.len();
            }
            after = page.next_after;
            if after.is_none() {
                break;
            }
        }
        Ok(deleted)
    }
}
