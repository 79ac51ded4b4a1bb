//! Notes of late answers: an endpoint accepted events after their request had timed out. deliver
//! writes one note for each event. Later attempts look for them, and deadletter does before it
//! writes.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::{StreamExt, TryStreamExt, stream};
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_ports::{ObjectStore, PortError};

use crate::pages::list_pages;

/// Pages of notes looked through for the events of one subscription.
const PAGES_MAX: usize = 10;

/// Notes removed at once.
const REMOVED_AT_ONCE: usize = 8;

/// The events of these keys that are noted, of one subscription. One event costs one read; several
/// cost one list, which is cheaper than a read for each.
pub async fn answered_late<S: ObjectStore>(
    store: &S,
    topic: &TopicName,
    subscription: &SubscriptionName,
    keys: &BTreeSet<&str>,
) -> Result<BTreeSet<String>, PortError> {
    let mut keys_left = keys.iter();
    match (keys_left.next(), keys_left.next()) {
        (None, _) => Ok(BTreeSet::new()),
        (Some(key), None) => {
            let note = store
                .get(&layout::late_answer_key(topic, subscription, key))
                .await?;
            Ok(note.map(|_| (*key).to_owned()).into_iter().collect())
        }
        (Some(_), Some(_)) => list_noted(store, &layout::late_of(topic, subscription), keys).await,
    }
}

/// Removes the notes of these events. A note that stays is removed when it is old.
pub async fn forget_late<S: ObjectStore>(
    store: &S,
    topic: &TopicName,
    subscription: &SubscriptionName,
    keys: &BTreeSet<String>,
) {
    let keys = keys
        .iter()
        .map(|key| layout::late_answer_key(topic, subscription, key));
    stream::iter(keys)
        .for_each_concurrent(REMOVED_AT_ONCE, |key| async move {
            drop(store.delete(&key).await);
        })
        .await;
}

async fn list_noted<S: ObjectStore>(
    store: &S,
    prefix: &str,
    keys: &BTreeSet<&str>,
) -> Result<BTreeSet<String>, PortError> {
    let mut found = BTreeSet::new();
    let mut pages = pin!(list_pages(store, prefix, None).take(PAGES_MAX));
    while let Some(page) = pages.try_next().await? {
        let noted = page
            .objects
            .iter()
            .filter_map(|object| object.key.strip_prefix(prefix));
        found.extend(noted.filter(|key| keys.contains(key)).map(str::to_owned));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use posthaste_ports::PutCondition;
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::recorded::{PortOperation, Recorded, RecordedCalls};

    async fn check(asked: &[&str], expected: &[&str], reads_and_lists: [usize; 2]) {
        let calls = RecordedCalls::default();
        let memory = MemoryStore::default();
        let topic = TopicName::parse("orders").unwrap();
        let [billing, other] =
            ["billing", "other"].map(|name| SubscriptionName::parse(name).unwrap());
        for (subscription, key) in [(&billing, "a"), (&billing, "b"), (&other, "c")] {
            let key = layout::late_answer_key(&topic, subscription, key);
            memory
                .put(&key, Bytes::new(), PutCondition::Always)
                .await
                .unwrap();
        }
        let store = Recorded::new(memory, "state", &calls);
        let keys = asked.iter().copied().collect();
        let found = answered_late(&store, &topic, &billing, &keys)
            .await
            .unwrap();
        assert_eq!(
            found,
            expected.iter().map(|key| (*key).to_owned()).collect(),
            "{asked:?}"
        );
        assert_eq!(
            [
                calls.count(PortOperation::Get),
                calls.count(PortOperation::List)
            ],
            reads_and_lists
        );
    }

    #[tokio::test]
    async fn forgotten_notes_are_gone_and_the_others_stay() {
        let store = MemoryStore::default();
        let topic = TopicName::parse("orders").unwrap();
        let billing = SubscriptionName::parse("billing").unwrap();
        for key in ["a", "b", "c"] {
            let key = layout::late_answer_key(&topic, &billing, key);
            store
                .put(&key, Bytes::new(), PutCondition::Always)
                .await
                .unwrap();
        }
        forget_late(
            &store,
            &topic,
            &billing,
            &["a", "c", "never noted"].map(str::to_owned).into(),
        )
        .await;
        let noted = answered_late(&store, &topic, &billing, &["a", "b", "c"].into())
            .await
            .unwrap();
        assert_eq!(noted, ["b".to_owned()].into());
    }

    #[tokio::test]
    async fn single_event_costs_a_read_and_several_cost_a_list() {
        check(&[], &[], [0, 0]).await;
        check(&["a"], &["a"], [1, 0]).await;
        check(&["c"], &[], [1, 0]).await;
        check(&["b", "c", "d"], &["b"], [0, 1]).await;
        check(&["a", "b"], &["a", "b"], [0, 1]).await;
    }
}
