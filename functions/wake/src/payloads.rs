//! Payloads that no message can refer to any more, and replays that ended long ago. On AWS a lifecycle rule of the bucket does the same, instead of this.

use futures_util::future::try_join_all;
use posthaste_core::layout::{PAYLOADS, payloads_before};
use posthaste_core::limits::PAYLOAD_KEPT;
use posthaste_core::time::Timestamp;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender};

use crate::limits::{Limits, within};
use crate::{PAGE_MAX, Wake};

/// Most pages deleted in one run: as many payloads in an hour as 1,600 a minute make.
const PAGES_MAX: usize = 100;

/// Objects deleted at once.
const DELETES_AT_ONCE: usize = 64;

/// Looked for once an hour: payloads are kept for days.
const MINUTES_BETWEEN: u64 = 60;

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Deletes old payloads, if this is the minute for it and there is time left. What fails, or must wait, is found
    /// again an hour later.
    pub(crate) async fn expire_payloads(&self, limits: Limits) {
        let clock = &self.ports.clock;
        let now = clock.now();
        if !now.minute().is_multiple_of(MINUTES_BETWEEN) {
            return;
        }
        let work = async {
            self.expire_replays().await?;
            self.delete_payloads(now, limits).await
        };
        match within(clock, limits.work, work).await {
            Some(Ok(0)) => {}
            Some(Ok(deleted)) => tracing::info!(deleted, "old payloads deleted"),
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "old payloads not deleted");
            }
            None => tracing::warn!("old payloads not deleted in time"),
        }
    }

    async fn delete_payloads(&self, now: Timestamp, limits: Limits) -> Result<usize, PortError> {
        let kept_ms = u64::try_from(PAYLOAD_KEPT.as_millis()).unwrap_or(u64::MAX);
        let oldest = Timestamp::from_millis(now.as_millis().saturating_sub(kept_ms));
        let first_kept = payloads_before(oldest);
        let (mut deleted, mut after) = (0, None);
        for _ in 0..PAGES_MAX {
            let page = self.ports.state.list(PAYLOADS, after.as_deref(), PAGE_MAX).await?;
            let listed = page.objects.len();
            let keys = page.objects.into_iter().map(|object| object.key);
            let old: Vec<_> = keys.take_while(|key| *key < first_kept).collect();
            for some in old.chunks(DELETES_AT_ONCE) {
                if self.ports.clock.monotonic() >= limits.begin {
                    return Ok(deleted);
                }
                try_join_all(some.iter().map(|key| self.ports.state.delete(key))).await?;
                deleted += some.len();
            }
            // A page may be short and yet not the last.
            if old.len() < listed || page.next_after.is_none() {
                break;
            }
            after = page.next_after;
        }
        Ok(deleted)
    }
}
