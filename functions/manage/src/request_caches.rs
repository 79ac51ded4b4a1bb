//! Caches that the requests of a process keep for the next ones, each bounded by itself.

use std::sync::Arc;

use posthaste_ports::{EvictableCache, EvictedAmount};

use crate::dead_letters::tally::LetterTallies;
use crate::replays::final_outcomes::FinalOutcomes;
use crate::subscription_index::SubscriptionIndex;

/// The caches that the requests of a process keep for the next ones. Nothing is lost with them.
/// Clones share them.
#[derive(Debug, Default, Clone)]
pub struct RequestCaches {
    /// The dead letters that requests have counted.
    pub(crate) letter_tallies: Arc<LetterTallies>,
    /// The outcomes of replays that they have counted to their ends.
    pub(crate) final_outcomes: Arc<FinalOutcomes>,
    /// The subscriptions that searches have read.
    pub(crate) subscription_index: Arc<SubscriptionIndex>,
}

/// The outcomes of replays stay: they are small, and counting them again reads the log.
impl EvictableCache for RequestCaches {
    fn trim(&self) -> EvictedAmount {
        [self.letter_tallies.clear(), self.subscription_index.clear()]
            .into_iter()
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::Timestamp;
    use posthaste_ports::ObjectMeta;

    use super::*;
    use crate::subscription_index::IndexedTopic;

    #[test]
    fn trimmed_caches_are_empty_and_say_what_they_freed() {
        let caches = RequestCaches::default();
        assert_eq!(caches.trim(), EvictedAmount::default());
        let listed = ObjectMeta {
            key: "topics/orders.json".to_owned(),
            size: 7,
            modified_at: Timestamp::EPOCH,
        };
        let topic = IndexedTopic::new(&listed, Timestamp::EPOCH, None, Arc::default());
        caches.subscription_index.put(&listed.key, topic);
        let freed = caches.clone().trim();
        assert!(freed.entries == 1 && freed.bytes > 0, "{freed:?}");
        assert!(caches.subscription_index.get(&listed.key).is_none());
        assert_eq!(caches.trim(), EvictedAmount::default());
    }
}
