//! Idempotency keys that are remembered no longer. On AWS a lifecycle rule of the bucket does the same, instead of this.

use futures_util::future::try_join_all;
use posthaste_core::idempotency::IdempotencyRecord;
use posthaste_core::layout::IDEMPOTENCY;
use posthaste_core::limits::{IDEMPOTENCY_KEPT, IDEMPOTENCY_SWEPT_AFTER};
use posthaste_core::time::Timestamp;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender};

use crate::limits::{Limits, within};
use crate::{PAGE_MAX, Wake};

/// Most pages looked at in one run: a million keys, which is twelve a second for a day.
const PAGES_MAX: usize = 1000;

/// Objects deleted at once.
const DELETES_AT_ONCE: usize = 64;

/// Looked for once an hour, half an hour away from what else is done once an hour.
const MINUTES_BETWEEN: u64 = 60;
const MINUTE: u64 = 30;

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Deletes old keys, if this is the minute for it and there is time left. What fails, or must wait, is found again an
    /// hour later.
    pub(crate) async fn expire_idempotency_keys(&self, limits: Limits) {
        let clock = &self.ports.clock;
        let now = clock.now();
        if now.minute() % MINUTES_BETWEEN != MINUTE {
            return;
        }
        match within(clock, limits.work, self.delete_idempotency_keys(now, limits)).await {
            Some(Ok(0)) => {}
            Some(Ok(deleted)) => tracing::info!(deleted, "old idempotency keys deleted"),
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "old idempotency keys not deleted");
            }
            None => tracing::warn!("old idempotency keys not deleted in time"),
        }
    }

    async fn delete_idempotency_keys(&self, now: Timestamp, limits: Limits) -> Result<usize, PortError> {
        let (mut deleted, mut after) = (0, None);
        for _ in 0..PAGES_MAX {
            let page = self.ports.state.list(IDEMPOTENCY, after.as_deref(), PAGE_MAX).await?;
            let is_old =
                |modified_at: Timestamp| now.since(modified_at) >= IDEMPOTENCY_KEPT + IDEMPOTENCY_SWEPT_AFTER;
            let old: Vec<_> = page.objects.iter().filter(|object| is_old(object.modified_at)).collect();
            for some in old.chunks(DELETES_AT_ONCE) {
                if self.ports.clock.monotonic() >= limits.begin {
                    return Ok(deleted);
                }
                let gone = try_join_all(some.iter().map(|object| self.forget_key(&object.key, now))).await?;
                deleted += gone.into_iter().filter(|is_gone| *is_gone).count();
            }
            after = page.next_after;
            if after.is_none() {
                break;
            }
        }
        Ok(deleted)
    }

    /// Deletes a key that was listed as old, unless somebody has claimed it since. What cannot be read is over.
    async fn forget_key(&self, key: &str, now: Timestamp) -> Result<bool, PortError> {
        let Some(found) = self.ports.state.get(key).await? else { return Ok(false) };
        let is_over = IdempotencyRecord::parse(&found.bytes).is_none_or(|record| record.is_forgotten(now));
        if is_over {
            self.ports.state.delete(key).await?;
        }
        Ok(is_over)
    }
}
