//! Dead letters that their bucket refused. They wait in their queue as fresh ones do, so that its
//! counts cannot tell them. The processes of deadletter report them while the bucket refuses.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::REFUSED;
use posthaste_core::stored::refused_letters::RefusedLetters;
use posthaste_ports::{ObjectStore, PortError, QueueCounts};

/// Most reports that are listed, and read.
const READ_MAX: usize = 1000;

/// Age of a report from which on it may be removed: between the look at it and its removal its
/// process could write a new one, as it does while letters are refused.
const REMOVED_FROM: Duration = Duration::from_mins(1);

/// Reports read or removed at once.
const AT_ONCE: usize = 32;

/// The letters that are due and not stored: those that the queue shows, and those that were refused
/// and wait. While nothing waits in the queue, nothing is read.
pub(crate) async fn dead_letter_backlog(
    state: &impl ObjectStore,
    counts: QueueCounts,
    now: Timestamp,
) -> Option<u64> {
    if counts.delayed == 0 {
        return Some(counts.visible);
    }
    let refused = waiting_letters(state, now).await.inspect_err(|error| {
        let error = error as &dyn std::error::Error;
        tracing::warn!(error, "refused dead letters not counted");
    });
    // There are no more of them than wait.
    Some(
        counts
            .visible
            .saturating_add(refused.ok()?.min(counts.delayed)),
    )
}

/// The letters of all reports that still wait. A report of which none does is removed; one that
/// cannot be removed is found by the next look.
async fn waiting_letters(state: &impl ObjectStore, now: Timestamp) -> Result<u64, PortError> {
    let listed = state.list(REFUSED, None, READ_MAX).await?.objects;
    let reads = listed.into_iter().map(async |object| {
        let letters = read_report(state, &object.key, now).await?;
        let age = now.since(object.modified_at);
        if letters == Some(0) && age >= REMOVED_FROM {
            let _ = state.delete(&object.key).await;
        }
        Ok(letters.unwrap_or_default())
    });
    let mut letters = 0_u64;
    let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
    while let Some(read) = reads.next().await {
        let read: Result<u64, PortError> = read;
        letters = letters.saturating_add(read?);
    }
    Ok(letters)
}

/// The letters of one report that still wait; `None` if it is gone, or cannot be understood.
async fn read_report(
    state: &impl ObjectStore,
    key: &str,
    now: Timestamp,
) -> Result<Option<u64>, PortError> {
    let Some(object) = state.get(key).await? else {
        return Ok(None);
    };
    let letters = RefusedLetters::parse(&object.bytes).inspect_err(|error| {
        let error = error as &dyn std::error::Error;
        tracing::warn!(
            key,
            error,
            "a report of refused dead letters was passed over"
        );
    });
    Ok(letters.ok().map(|letters| letters.count_waiting(now)))
}

#[cfg(test)]
mod tests {
    use posthaste_core::stored::refused_letters::refused_letters_key;
    use posthaste_testkit::memory::MemoryStore;

    use super::*;

    /// A report's process may write it anew between the look and the removal.
    #[tokio::test]
    async fn report_is_removed_once_it_is_old() {
        let written_at = Timestamp::from_millis(1_700_000_000_000);
        let is_left = async |age_secs| {
            let store = MemoryStore::default();
            let mut letters = RefusedLetters::default();
            letters.add_letter(Timestamp::EPOCH);
            store.write_at(&refused_letters_key("a"), letters.render(), written_at);
            let now = written_at + Duration::from_secs(age_secs);
            assert_eq!(waiting_letters(&store, now).await.unwrap(), 0);
            store
                .get(&refused_letters_key("a"))
                .await
                .unwrap()
                .is_some()
        };
        assert!(is_left(59).await);
        assert!(!is_left(60).await);
    }
}
