//! Deleting a topic's record, so that no change of it is lost. Stores delete without a condition: so the
//! record is first replaced, under a condition, by one that says that it is deleted.

use posthaste_core::model::Timestamp;
use posthaste_core::stored::{TopicRecord, layout};

use posthaste_ports::{ETag, ObjectStore, PortError, PutCondition};

/// Deletes the topic of this record, if the record is still of this version: else an `Err` of kind
/// `PreconditionFailed`, and nothing happened. From the moment the record is replaced there is no such topic,
/// whatever becomes of the object: `Ok(false)` if it could not be removed then.
pub async fn delete_topic<S: ObjectStore>(
    store: &S,
    record: TopicRecord,
    etag: ETag,
    now: Timestamp,
) -> Result<bool, PortError> {
    let key = layout::topic(&record.name);
    store.put(&key, record.tombstone(now).render(), PutCondition::IfMatch(etag)).await?;
    let deleted = store.delete(&key).await;
    if let Err(error) = &deleted {
        tracing::warn!(
            %key, error = error as &dyn std::error::Error, "the record of a deleted topic not removed"
        );
    }
    Ok(deleted.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_ports::ErrorKind;
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{Fault, Faulty, Operation, Plan};

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn record() -> TopicRecord {
        let text =
            r#"{"v":1,"name":"Orders","key1":"a","key2":"b","createdAt":0,"updatedAt":0,"settings":{}}"#;
        TopicRecord::parse(text.as_bytes()).unwrap()
    }

    async fn stored(store: &MemoryStore) -> ETag {
        store.put("topics/orders.json", record().render(), PutCondition::Always).await.unwrap()
    }

    #[tokio::test]
    async fn a_topic_that_was_not_changed_goes() {
        let store = MemoryStore::default();
        let etag = stored(&store).await;
        assert!(delete_topic(&store, record(), etag, NOW).await.unwrap());
        assert!(store.get("topics/orders.json").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_change_that_came_first_stays() {
        let store = MemoryStore::default();
        let etag = stored(&store).await;
        let changed = TopicRecord { updated_at: NOW, ..record() };
        store.put("topics/orders.json", changed.render(), PutCondition::Always).await.unwrap();
        let error = delete_topic(&store, record(), etag, NOW).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::PreconditionFailed);
        let object = store.get("topics/orders.json").await.unwrap().unwrap();
        assert_eq!(TopicRecord::parse(&object.bytes).unwrap(), changed);
    }

    #[tokio::test]
    async fn a_topic_whose_object_stays_is_deleted_all_the_same() {
        let store = MemoryStore::default();
        let etag = stored(&store).await;
        let fault = Fault::Before(ErrorKind::TimedOut);
        let plan = Plan::by(move |effect| (effect.operation == Operation::Delete).then(|| fault.clone()));
        let broken = Faulty::new(store.clone(), "state", &plan);
        assert!(!delete_topic(&broken, record(), etag, NOW).await.unwrap());
        let object = store.get("topics/orders.json").await.unwrap().unwrap();
        assert_eq!(TopicRecord::parse(&object.bytes).unwrap().deleted_at, Some(NOW));
    }
}
