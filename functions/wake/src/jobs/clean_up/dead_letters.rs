//! Deletion of dead letters that have been kept for as long as the operator wants. On AWS a
//! lifecycle rule of the bucket does the same instead.

use std::time::Duration;

use futures_util::future::try_join_all;
use parking_lot::Mutex;
use posthaste_core::model::{RECOVERY_WITHIN_MAX, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ObjectStore, PortError, Ports};

use super::kinds::DELETES_AT_ONCE;
use crate::run::WakeRun;

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

/// The time for which letters are kept, subscription by subscription: keys are listed in their
/// order.
struct LetterRetention<'a, P: Ports> {
    run: WakeRun<'a, P>,
    kept: Duration,
    last: Option<((TopicName, SubscriptionName), Duration)>,
}

impl<'a, P: Ports> LetterRetention<'a, P> {
    fn new(run: WakeRun<'a, P>, kept: Duration) -> Self {
        Self {
            run,
            kept,
            last: None,
        }
    }

    /// The time for which the letters of the object under this key are kept, or the list beside it.
    /// While its topic cannot be read, this is as long as recovery ever goes back.
    async fn for_object(&mut self, key: &str) -> Duration {
        let letters = key.strip_prefix(layout::RESOLVED).unwrap_or(key);
        let Some(owner) = layout::dead_letter_owner(letters) else {
            return self.kept;
        };
        if let Some((_, kept)) = self.last.as_ref().filter(|(last, _)| *last == owner) {
            return *kept;
        }
        let (topic, name) = &owner;
        let within = match self.run.ports.registry.topic(topic).await {
            Ok(Some(topic)) => topic
                .find_subscription(name)
                .filter(|subscription| subscription.recovery.enabled)
                .map_or(Duration::ZERO, |subscription| subscription.recovery.within),
            Ok(None) => Duration::ZERO,
            Err(_) => RECOVERY_WITHIN_MAX,
        };
        let kept = self.kept.max(within);
        self.last = Some((owner, kept));
        kept
    }
}

/// Deletes the objects of the dead-letter bucket that were written longer ago than `kept`, also
/// the lists of resolved letters beside them, while there is time. Those of a subscription that
/// recovers by itself are kept for as long as it goes back at least. Returns their number.
pub(super) async fn delete_old<P: Ports>(
    run: WakeRun<'_, P>,
    walk: &DeadLetterWalk,
    kept: Duration,
    now: Timestamp,
) -> Result<usize, PortError> {
    let bucket = &run.ports.dead_letters;
    let mut kept_for = LetterRetention::new(run, kept);
    let mut deleted = 0;
    loop {
        let after = walk.0.lock().clone();
        let page = bucket.list("", after.as_deref(), LIST_PAGE_MAX).await?;
        let mut old = Vec::new();
        for object in &page.objects {
            let age = now.since(object.modified_at);
            if age >= kept && age >= kept_for.for_object(&object.key).await {
                old.push(object);
            }
        }
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
