//! Requests that their producer named: published once, also when they race, fail or crash.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::{join_all, poll_immediate};
use posthaste_core::model::Timestamp;
use posthaste_ports::{
    ErrorKind, MessageId, ObjectStore, OutgoingMessage, PortError, PutCondition, QueueCounts,
    QueueReceiver, QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor,
};
use posthaste_publish::router;
use posthaste_testkit::faulty::{CallFault, FaultPlan, Faulty, at_every_effect};
use posthaste_testkit::memory::MemoryQueue;
use posthaste_testkit::recorded::PortOperation;

use crate::world::{
    Answer, BATCH, KEY, MINIMAL, STRUCTURED, World, events, one, request, send, subscriptions,
};

const NAMED: (&str, &str) = ("idempotency-key", "8e03978e-40d5");

async fn post(world: &World, name: &str, body: &str) -> Answer {
    world
        .post(&[STRUCTURED, ("idempotency-key", name)], body.to_owned())
        .await
}

fn assert_problem(answer: &Answer, status: u16, kind: &str) {
    let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        (answer.status, &problem["type"]),
        (status, &kind.into()),
        "{}",
        answer.body
    );
    assert_eq!(problem["member"], "idempotency-key");
}

/// The number of events that were published.
fn published(world: &World) -> usize {
    world
        .deliveries()
        .iter()
        .map(|delivery| delivery.events.len())
        .sum()
}

#[tokio::test]
async fn the_same_request_is_published_once() {
    let world = World::new(one()).await;
    for _ in 0..3 {
        assert_eq!(post(&world, "a", MINIMAL).await.status, 200);
    }
    assert_eq!(published(&world), 1);
    assert_eq!(post(&world, "b", MINIMAL).await.status, 200);
    assert_eq!(published(&world), 2);
}

#[tokio::test]
async fn a_packed_request_is_the_same_as_a_plain_one() {
    let world = World::new(one()).await;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(MINIMAL.as_bytes()).unwrap();
    let headers = [STRUCTURED, NAMED, ("content-encoding", "gzip")];
    let packed = world.post(&headers, encoder.finish().unwrap()).await;
    assert_eq!(packed.status, 200, "{}", packed.body);
    assert_eq!(world.post(&[STRUCTURED, NAMED], MINIMAL).await.status, 200);
    assert_eq!(published(&world), 1);
}

/// A repeated request is answered like the first one, whatever has changed since.
#[tokio::test]
async fn repeated_request_gets_the_first_response_after_changes() {
    let world = World::new(one()).await;
    let batch = format!("[{MINIMAL},{MINIMAL}]");
    let ask = async || world.post(&[BATCH, NAMED], batch.clone()).await.body;
    let first = ask().await;
    assert_eq!(
        first,
        r#"{"acceptedEvents":2,"matchedSubscriptions":1,"unmatchedEvents":0}"#
    );
    world
        .put_topic(serde_json::json!({}), "key-one", "key-two")
        .await;
    assert_eq!(ask().await, first);
}

/// A request that an older release published is answered without the matches.
#[tokio::test]
async fn request_of_an_older_release_is_answered_without_matches() {
    let world = World::new(one()).await;
    post(&world, "a", MINIMAL).await;
    let (key, record) = world.store.objects_under("idempotency/").remove(0);
    let mut record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    record.as_object_mut().unwrap().remove("matched").unwrap();
    world
        .store
        .put(&key, record.to_string().into(), PutCondition::Always)
        .await
        .unwrap();
    let again = post(&world, "a", MINIMAL).await;
    assert_eq!(
        (again.status, again.body.as_str()),
        (200, r#"{"acceptedEvents":1}"#)
    );
}

#[tokio::test]
async fn without_a_name_nothing_is_remembered() {
    let world = World::new(one()).await;
    for _ in 0..2 {
        assert_eq!(world.post(&[STRUCTURED], MINIMAL).await.status, 200);
    }
    assert_eq!(
        (
            published(&world),
            world.store.objects_under("idempotency/").len()
        ),
        (2, 0)
    );
}

#[tokio::test]
async fn a_name_is_remembered_for_a_day() {
    let world = World::new(one()).await;
    assert_eq!(post(&world, "a", MINIMAL).await.status, 200);
    world
        .clock
        .advance(Duration::from_hours(24) - Duration::from_millis(1));
    assert_eq!(post(&world, "a", MINIMAL).await.status, 200);
    assert_eq!(published(&world), 1);
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(post(&world, "a", MINIMAL).await.status, 200);
    assert_eq!(published(&world), 2);
}

#[tokio::test]
async fn another_request_of_the_same_name_is_refused() {
    let world = World::new(one()).await;
    assert_eq!(post(&world, "a", MINIMAL).await.status, 200);
    let hurried = [
        STRUCTURED,
        ("idempotency-key", "a"),
        ("posthaste-time-to-live", "PT1M"),
    ];
    assert_problem(
        &world.post(&hurried, MINIMAL).await,
        422,
        "urn:posthaste:problem:idempotency-key-reused",
    );
    let other = MINIMAL.replace("/s", "/other");
    assert_problem(
        &post(&world, "a", &other).await,
        422,
        "urn:posthaste:problem:idempotency-key-reused",
    );
    let binary = [
        ("content-type", "text/plain"),
        ("ce-specversion", "1.0"),
        ("ce-source", "/s"),
        ("ce-type", "t"),
        NAMED,
    ];
    let with_id = |id| [&binary[..], &[("ce-id", id)]].concat();
    assert_eq!(world.post(&with_id("1"), "x").await.status, 200);
    assert_eq!(world.post(&with_id("1"), "x").await.status, 200);
    assert_eq!(world.post(&with_id("2"), "x").await.status, 422);
    assert_eq!(published(&world), 2);
}

#[tokio::test]
async fn a_name_that_is_none_is_refused_and_so_are_two() {
    let world = World::new(one()).await;
    for bad in ["", " ", "a b", &"x".repeat(256)] {
        assert_problem(&post(&world, bad, MINIMAL).await, 400, "about:blank");
    }
    let two = [STRUCTURED, NAMED, ("idempotency-key", "b")];
    assert_problem(&world.post(&two, MINIMAL).await, 400, "about:blank");
    world.assert_untouched();
    assert_eq!(post(&world, &"x".repeat(255), MINIMAL).await.status, 200);
}

#[tokio::test]
async fn request_refused_for_another_reason_leaves_its_name_free() {
    let world = World::new(one()).await;
    assert_eq!(post(&world, "a", "{}").await.status, 400);
    assert_eq!(
        world
            .post(&[("aeg-sas-key", "wrong"), STRUCTURED, NAMED], MINIMAL)
            .await
            .status,
        401
    );
    assert_eq!(world.store.objects_under("idempotency/").len(), 0);
    assert_eq!(post(&world, "a", MINIMAL).await.status, 200);
    assert_eq!(published(&world), 1);
}

#[tokio::test]
async fn only_one_of_racing_requests_publishes() {
    let world = World::new(one()).await;
    let app = router(world.publish().into());
    let posts = (0..20).map(|_| {
        let app = app.clone();
        tokio::spawn(send(
            app,
            request("/topics/orders/events", &[KEY, BATCH, NAMED], events(3)),
        ))
    });
    let statuses: Vec<u16> = join_all(posts)
        .await
        .into_iter()
        .map(|answer| answer.unwrap().status)
        .collect();
    assert!(
        statuses.contains(&200) && statuses.iter().all(|status| [200, 409].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(published(&world), 3);
}

/// A request of the same name while another is at it: the queue of that one never answers.
#[tokio::test]
async fn request_in_progress_keeps_its_name_until_over_or_lapsed() {
    let world = World::new(one()).await;
    let plan = FaultPlan::by(|effect| {
        (effect.operation == PortOperation::SendBatch).then_some(CallFault::HangBefore)
    });
    let queue = |queue| Faulty::new(queue, "deliveries", &plan);
    let app = router(world.publish_over(queue, world.store.clone()).into());
    let hanging = tokio::spawn(send(
        app,
        request("/topics/orders/events", &[KEY, STRUCTURED, NAMED], MINIMAL),
    ));
    while world.store.objects_under("idempotency/").is_empty() {
        tokio::task::yield_now().await;
    }
    world.clock.advance(Duration::from_secs(30));
    let answer = world.post(&[STRUCTURED, NAMED], MINIMAL).await;
    assert_problem(&answer, 409, "urn:posthaste:problem:idempotency-key-in-use");
    assert_eq!(answer.headers["retry-after"], "60");
    let other = world
        .post(&[STRUCTURED, NAMED], MINIMAL.replace("/s", "/other"))
        .await;
    assert_eq!(other.status, 422);
    hanging.abort();
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.post(&[STRUCTURED, NAMED], MINIMAL).await.status, 200);
    assert_eq!(published(&world), 1);
}

/// A queue that takes its time.
struct Slow(MemoryQueue);

impl QueueSender for Slow {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        tokio::task::yield_now().await;
        let sent = self.0.send_batch(entries).await;
        tokio::task::yield_now().await;
        sent
    }
}

impl QueueReceiver for Slow {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        self.0.receive(request).await
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        self.0.acknowledge(receipt).await
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        self.0.replace(receipt, successors).await
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        self.0.change_visibility(receipt, visibility).await
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        self.0.counts().await
    }
}

/// A client that leaves while its request is written leaves nothing half done.
#[tokio::test]
async fn client_leaving_during_the_write_leaves_nothing_half_done() {
    let world = World::new(one()).await;
    let app = router(world.publish_over(Slow, world.store.clone()).into());
    let left = send(
        app,
        request("/topics/orders/events", &[KEY, STRUCTURED, NAMED], MINIMAL),
    );
    let mut left = Box::pin(left);
    // One poll at a time, until the name is claimed.
    while world.store.objects_under("idempotency/").is_empty() {
        assert!(poll_immediate(&mut left).await.is_none());
        tokio::task::yield_now().await;
    }
    drop(left);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(published(&world), 1);
    assert_eq!(world.post(&[STRUCTURED, NAMED], MINIMAL).await.status, 200);
    assert_eq!(published(&world), 1);
}

#[tokio::test]
async fn a_topic_made_anew_remembers_no_name_of_the_one_before() {
    let world = World::new(one()).await;
    assert_eq!(post(&world, "a", MINIMAL).await.status, 200);
    let (_, record) = world.store.objects_under("topics/").remove(0);
    let mut record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    record["createdAt"] = Timestamp::parse("2026-11-21T10:00:01Z")
        .unwrap()
        .as_millis()
        .into();
    let record = record.to_string();
    world
        .store
        .put("topics/orders.json", record.into(), PutCondition::Always)
        .await
        .unwrap();
    assert_eq!(post(&world, "a", MINIMAL).await.status, 200);
    assert_eq!(published(&world), 2);
}

/// The name is free again or lapses, and nothing is lost, whichever call fails.
#[tokio::test]
async fn name_is_freed_or_lapses_under_any_fault_without_loss() {
    at_every_effect(async |plan, place| {
        let world = World::new(one()).await;
        let queue = |queue| Faulty::new(queue, "deliveries", plan);
        let store = Faulty::new(world.store.clone(), "state", plan);
        let app = router(Arc::new(world.publish_over(queue, store)));
        let post = async || {
            let request = request("/topics/orders/events", &[KEY, STRUCTURED, NAMED], MINIMAL);
            send(app.clone(), request).await.status
        };
        let first = post().await;
        assert!([200, 503].contains(&first), "{place} {first}");
        assert!(first != 200 || published(&world) == 1, "{place}");
        world.clock.advance(Duration::from_secs(90));
        if post().await != 200 {
            // The fault was in store for the second request.
            world.clock.advance(Duration::from_secs(90));
            assert_eq!(post().await, 200, "{place}");
        }
        assert!((1..=2).contains(&published(&world)), "{place}");
        assert!(plan.faults() > 0 || published(&world) == 1, "{place}");
    })
    .await;
}

#[tokio::test]
async fn after_a_failure_the_name_is_free_at_once() {
    let world = World::new(one()).await;
    let plan = FaultPlan::by(|e| {
        (e.operation == PortOperation::SendBatch).then_some(CallFault::Before(ErrorKind::Other))
    });
    let queue = |queue| Faulty::new(queue, "deliveries", &plan);
    let app = router(world.publish_over(queue, world.store.clone()).into());
    let failed = send(
        app,
        request("/topics/orders/events", &[KEY, STRUCTURED, NAMED], MINIMAL),
    )
    .await;
    assert_eq!(failed.status, 503);
    assert_eq!(world.post(&[STRUCTURED, NAMED], MINIMAL).await.status, 200);
    assert_eq!(published(&world), 1);
}

#[tokio::test]
async fn a_record_that_cannot_be_read_keeps_nobody_from_publishing() {
    let world = World::new(one()).await;
    assert_eq!(world.post(&[STRUCTURED, NAMED], MINIMAL).await.status, 200);
    let (key, _) = world.store.objects_under("idempotency/").remove(0);
    world
        .store
        .put(&key, "half a rec".into(), PutCondition::Always)
        .await
        .unwrap();
    assert_eq!(world.post(&[STRUCTURED, NAMED], MINIMAL).await.status, 200);
    assert_eq!(published(&world), 2);
}

/// The keys of the events that were sent, from which they have their `webhook-id`, each once.
fn keys(world: &World) -> std::collections::BTreeSet<String> {
    let deliveries = world.deliveries();
    let events = deliveries.iter().flat_map(|delivery| &delivery.events);
    events.map(|event| event.key.clone()).collect()
}

/// A queue without transactions, as SQS is: some deliveries exist although the answer is 503, and
/// the repeated request makes their copies with the same ids.
#[tokio::test]
async fn repeated_request_after_half_a_failure_has_the_same_ids() {
    let names: Vec<_> = (0..25).map(|n| format!("s{n:02}")).collect();
    let all: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), serde_json::json!({})))
        .collect();
    let world = World::new(subscriptions(&all)).await;
    let fault = CallFault::Before(ErrorKind::Other);
    let plan = FaultPlan::nth_of(1, fault, |effect| {
        effect.operation == PortOperation::SendBatch
    });
    let queue = |queue| Faulty::new(queue, "deliveries", &plan);
    let app = router(world.publish_over(queue, world.store.clone()).into());
    let headers = [KEY, STRUCTURED, NAMED];
    let first = request("/topics/orders/events", &headers, MINIMAL.to_owned());
    assert_eq!(send(app.clone(), first).await.status, 503);
    let sent = published(&world);
    assert!(sent > 0 && sent < 25, "{sent} of 25");
    let ids = keys(&world);
    assert_eq!(ids.len(), 1);
    let again = request("/topics/orders/events", &headers, MINIMAL.to_owned());
    assert_eq!(send(app.clone(), again).await.status, 200);
    assert_eq!((published(&world), keys(&world)), (sent + 25, ids));
    let unnamed = request("/topics/orders/events", &headers[..2], MINIMAL.to_owned());
    assert_eq!(send(app, unnamed).await.status, 200);
    assert_eq!(keys(&world).len(), 2, "another request has other ids");
}
