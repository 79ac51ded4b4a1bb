//! Records that are deleted, and the names of topics.

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn record() -> TopicRecord {
    let text = r#"{"v":1,"name":"Orders","key1":"a","key2":"b","createdAt":0,"updatedAt":0,"settings":{}}"#;
    TopicRecord::parse(text.as_bytes()).unwrap()
}

async fn stored(store: &MemoryStore) -> ETag {
    store
        .put(
            "topics/orders.json",
            record().render(),
            PutCondition::Always,
        )
        .await
        .unwrap()
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
    let changed = TopicRecord {
        updated_at: NOW,
        ..record()
    };
    store
        .put("topics/orders.json", changed.render(), PutCondition::Always)
        .await
        .unwrap();
    let error = delete_topic(&store, record(), etag, NOW).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PreconditionFailed);
    let object = store.get("topics/orders.json").await.unwrap().unwrap();
    assert_eq!(TopicRecord::parse(&object.bytes).unwrap(), changed);
}

#[tokio::test]
async fn a_topic_whose_object_stays_is_deleted_all_the_same() {
    let store = MemoryStore::default();
    let etag = stored(&store).await;
    let fault = CallFault::Before(ErrorKind::TimedOut);
    let plan = FaultPlan::by(move |effect| {
        (effect.operation == PortOperation::Delete).then(|| fault.clone())
    });
    let broken = Faulty::new(store.clone(), "state", &plan);
    assert!(!delete_topic(&broken, record(), etag, NOW).await.unwrap());
    let object = store.get("topics/orders.json").await.unwrap().unwrap();
    assert_eq!(
        TopicRecord::parse(&object.bytes).unwrap().deleted_at,
        Some(NOW)
    );
}

#[tokio::test]
async fn the_names_are_those_of_the_keys() {
    let store = MemoryStore::default();
    for key in [
        "topics/orders.json",
        "topics/billing.json",
        "topics/notes.txt",
        "links/0.json",
    ] {
        store
            .put(key, Bytes::from("?"), PutCondition::Always)
            .await
            .unwrap();
    }
    let expected = ["billing", "orders"].map(str::to_owned).into();
    assert_eq!(topic_names(&store).await.unwrap(), expected);
}
