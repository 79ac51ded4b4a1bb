//! Deletion of dead letters that have been kept for as long as the operator wants. On AWS a
//! lifecycle rule of the bucket does the same instead.

use std::time::Duration;

use futures_util::future::try_join_all;
use parking_lot::Mutex;
use posthaste_core::model::Timestamp;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ObjectStore, PortError, Ports};

use super::kinds::DELETES_AT_ONCE;
use crate::run::Run;

/// The minute of the hour in which old dead letters are looked for, away from all other kinds.
pub(super) const MINUTE: u64 = 45;

/// The key after which the next run goes on, where one had no time to look at all objects.
#[derive(Debug, Default)]
pub(crate) struct DeadLetterWalk(Mutex<Option<String>>);

#[cfg(test)]
impl DeadLetterWalk {
    /// A walk that goes on after this key.
    pub(super) fn after(key: &str) -> Self {
        Self(Mutex::new(Some(key.to_owned())))
    }
}

/// Deletes the objects of the dead-letter bucket that were written longer ago than `kept`, also
/// the lists of resolved letters beside them, while there is time. Returns their number.
pub(super) async fn delete_old<P: Ports>(
    run: Run<'_, P>,
    walk: &DeadLetterWalk,
    kept: Duration,
    now: Timestamp,
) -> Result<usize, PortError> {
    let bucket = &run.ports.dead_letters;
    let kept_ms = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
    let oldest = Timestamp::from_millis(now.as_millis().saturating_sub(kept_ms));
    let mut deleted = 0;
    loop {
        let after = walk.0.lock().clone();
        let page = bucket.list("", after.as_deref(), LIST_PAGE_MAX).await?;
        let old: Vec<_> = page
            .objects
            .iter()
            .filter(|object| object.modified_at <= oldest)
            .collect();
        for some in old.chunks(DELETES_AT_ONCE) {
            if !run.has_time() {
                return Ok(deleted);
            }
            let gone = some.iter().map(|object| bucket.delete(&object.key));
            deleted += try_join_all(gone).await?.len();
        }
        let is_last = page.next_after.is_none();
        *walk.0.lock() = page.next_after;
        if is_last || !run.has_time() {
            return Ok(deleted);
        }
    }
}
