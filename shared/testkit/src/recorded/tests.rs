//! Calls as they are noted.

use super::*;
use crate::endpoint::MemoryEndpoint;
use crate::memory::{MemoryQueue, MemoryStore, message, request};

fn call(
    port: &'static str,
    operation: PortOperation,
    key: &str,
    entries: usize,
    bytes: usize,
) -> RecordedCall {
    RecordedCall {
        port,
        operation,
        key: key.to_owned(),
        entries,
        bytes,
        ended: CallEnd::Ok,
    }
}

#[tokio::test]
async fn calls_of_a_queue_are_noted_with_their_sizes() {
    let calls = RecordedCalls::default();
    let queue = Recorded::new(MemoryQueue::default(), "deliveries", &calls);
    queue
        .send_batch(vec![message("one"), message("three")])
        .await
        .unwrap();
    let all = ReceiveRequest {
        max: 10,
        visibility: Duration::from_secs(30),
        wait: Duration::ZERO,
    };
    let received = queue.receive(all).await.unwrap();
    queue.acknowledge(&received[0].receipt).await.unwrap();
    queue
        .change_visibility(&received[1].receipt, Duration::ZERO)
        .await
        .unwrap();
    let stale = queue
        .replace(&received[0].receipt, vec![])
        .await
        .unwrap_err();
    assert_eq!(stale.kind, ErrorKind::NotFound);
    queue.counts().await.unwrap();
    let expected = [
        call("deliveries", PortOperation::SendBatch, "", 2, 8),
        call("deliveries", PortOperation::Receive, "", 2, 8),
        call("deliveries", PortOperation::Acknowledge, "", 1, 0),
        call("deliveries", PortOperation::ChangeVisibility, "", 1, 0),
        RecordedCall {
            ended: CallEnd::Err(ErrorKind::NotFound),
            ..call("deliveries", PortOperation::Replace, "", 0, 0)
        },
        call("deliveries", PortOperation::Counts, "", 0, 0),
    ];
    assert_eq!(calls.all(), expected);
    assert_eq!(calls.count(PortOperation::Receive), 1);
}

#[tokio::test]
async fn calls_of_a_store_are_noted_with_their_keys() {
    let calls = RecordedCalls::default();
    let store = Recorded::new(MemoryStore::default(), "state", &calls);
    let tag = store
        .put("a/b", Bytes::from("four"), PutCondition::IfAbsent)
        .await
        .unwrap();
    store.get("a/b").await.unwrap();
    store.get("a/c").await.unwrap();
    store.get_if_changed("a/b", &tag).await.unwrap();
    store
        .get_if_changed("a/b", &ETag("other".to_owned()))
        .await
        .unwrap();
    store.get_range("a/b", 1..3).await.unwrap();
    store.get_range("a/b", 1..5).await.unwrap_err();
    store.list("a/", None, 10).await.unwrap();
    store.delete("a/b").await.unwrap();
    let expected = [
        call("state", PortOperation::Put, "a/b", 1, 4),
        call("state", PortOperation::Get, "a/b", 1, 4),
        call("state", PortOperation::Get, "a/c", 0, 0),
        call("state", PortOperation::GetIfChanged, "a/b", 0, 0),
        call("state", PortOperation::GetIfChanged, "a/b", 1, 4),
        call("state", PortOperation::GetRange, "a/b", 1, 2),
        RecordedCall {
            ended: CallEnd::Err(ErrorKind::Damaged),
            ..call("state", PortOperation::GetRange, "a/b", 0, 0)
        },
        call("state", PortOperation::List, "a/", 1, 0),
        call("state", PortOperation::Delete, "a/b", 1, 0),
    ];
    assert_eq!(calls.take(), expected);
    assert_eq!((calls.all(), calls.ended_ever()), (vec![], 9));
}

/// Requests are noted without their query, and one that is dropped is noted as cut.
#[tokio::test]
async fn request_is_noted_without_query_and_dropped_one_as_cut() {
    let calls = RecordedCalls::default();
    let client = Recorded::new(MemoryEndpoint::default(), "webhook", &calls);
    client
        .send(request("https://a.example/hook?token=s3cret", "12345"))
        .await;
    let silent = MemoryEndpoint::default();
    silent.hang();
    let never = Recorded::new(silent, "webhook", &calls);
    let dropped =
        tokio::spawn(async move { never.send(request("https://a.example/x", "1")).await });
    tokio::task::yield_now().await;
    assert_eq!(calls.under_way(), 1);
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    assert_eq!(
        (
            calls.unnoted(async { calls.under_way() }).await,
            calls.under_way()
        ),
        (1, 0)
    );
    let expected = [
        call(
            "webhook",
            PortOperation::Post,
            "https://a.example:443/hook",
            1,
            5,
        ),
        RecordedCall {
            ended: CallEnd::Cut,
            ..call(
                "webhook",
                PortOperation::Post,
                "https://a.example:443/x",
                1,
                1,
            )
        },
    ];
    assert_eq!(calls.all(), expected);
}

/// Reports that a link is down are passed on, and are no call.
#[test]
fn dropped_link_is_passed_on_without_a_call() {
    let calls = RecordedCalls::default();
    let webhook = MemoryEndpoint::default();
    let client = Recorded::new(webhook.clone(), "webhook", &calls);
    client.drop_link(&request("https://a.example/", "").url.link());
    assert_eq!((webhook.links_dropped(), calls.all()), (1, vec![]));
}
