//! Bad input from where our own come: message bodies that are not ours, and stored payloads that
//! are gone, forbidden or altered. What cannot be used is kept byte for byte, its neighbours do not
//! notice, and nothing is dropped. Topic records have their tests in `registry.rs`.

use std::time::Duration;

use bytes::Bytes;
use metrics_exporter_prometheus::PrometheusBuilder;
use posthaste_core::delivery_log::{LogRecord, render_records};
use posthaste_core::model::{MAX_RECEIVE_COUNT, SQS_RETENTION};
use posthaste_core::stored::WIRE_VERSION;
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);
const KEY: &str = "payloads/20231114/x";
const STORED: &str =
    r#"{"specversion":"1.0","id":"stored","source":"/s","type":"t","data":{"n":1}}"#;

/// Contents in a stored payload's place, other than the stored ones.
const ALTERED: [&str; 4] = [
    "",
    "{",
    r#"{"specversion":"1.0","id":"stored","source":"/s","type":"t","data":{"n":2}}"#,
    r#"{"specversion":"1.0","id":"stored","source":"/s","type":"t","data":{"n":1}} "#,
];

async fn world(faults: Faults) -> World {
    let world = World::with(&faults);
    world.subscribe(json!({})).await;
    world
}

/// A delivery, a dead letter and their like as they lie in the queues.
async fn ours() -> (String, String) {
    let world = world(Faults::none()).await;
    world.publish(&[event("a")], DAY).await;
    let delivery = world
        .receive(QueueName::Deliveries)
        .await
        .pop()
        .expect("a delivery")
        .body;
    world.endpoint.answer([Answer::Status(400)]);
    world.publish(&[event("b")], DAY).await;
    world.deliver().await;
    world.clock.advance(Duration::from_mins(5));
    let letter = world
        .receive(QueueName::DeadLetters)
        .await
        .pop()
        .expect("a dead letter")
        .body;
    let text = |body: Bytes| String::from_utf8(body.to_vec()).expect("text");
    (text(delivery), text(letter))
}

/// Bodies that are none of ours, given one that is.
fn foreign(ours: &str, of_the_other_queue: Option<String>) -> Vec<Bytes> {
    let truncated = ours[..ours.len() - 20].to_owned();
    let no_events = ours.replace("\"events\":[", "\"none\":[");
    let bad_name = ours.replace("\"orders\"", "\"../orders\"");
    let bad_digest = ours.replace(
        "\"event\":{",
        "\"payload\":{\"key\":\"x\",\"bytes\":1,\"sha256\":\"x\"},\"e\":{",
    );
    let all = [
        truncated,
        no_events,
        bad_name,
        bad_digest,
        "ü {".into(),
        "null".into(),
        "[]".into(),
        " ".into(),
    ];
    assert!(all.iter().all(|body| body != ours));
    all.into_iter()
        .chain(of_the_other_queue)
        .map(Bytes::from)
        .collect()
}

/// A body that is kept as it is.
async fn kept(world: &World) -> Vec<Bytes> {
    let buried = world.buried().await.into_iter();
    buried
        .filter(|(key, _)| key.starts_with("MALFORMED/"))
        .map(|(_, bytes)| bytes)
        .collect()
}

async fn buried_events(world: &World) -> usize {
    let mut events = 0;
    for (key, object) in world.buried().await {
        if key.starts_with("ORDERS/BILLING/") {
            events += serde_json::from_slice::<Vec<serde_json::Value>>(&object)
                .expect("an array")
                .len();
        }
    }
    events
}

/// A body that is not ours is kept byte for byte, and its neighbours are delivered.
#[tokio::test]
async fn foreign_body_is_kept_byte_for_byte_and_neighbours_delivered() {
    let (delivery, letter) = ours().await;
    for body in foreign(&delivery, Some(letter)) {
        let world = world(Faults::none()).await;
        world.send(QueueName::Deliveries, body.clone()).await;
        world.publish(&[event("neighbour")], DAY).await;
        assert_eq!(world.deliver().await.failures, [], "{body:?}");
        assert_eq!(world.endpoint.take().len(), 1, "{body:?}");
        if body.starts_with(b"{\"v\":1,\"reason\"") {
            // A dead letter in the wrong queue is one in the right queue now.
            world.bury().await;
            assert_eq!(buried_events(&world).await, 1);
            continue;
        }
        assert_eq!(world.bury().await.failures, [], "{body:?}");
        assert_eq!(kept(&world).await, [body]);
    }
}

/// A body that is not ours among dead letters is kept byte for byte beside them.
#[tokio::test]
async fn foreign_body_among_dead_letters_is_kept_byte_for_byte() {
    let (delivery, letter) = ours().await;
    for body in foreign(&letter, Some(delivery)) {
        let world = world(Faults::none()).await;
        world.send(QueueName::DeadLetters, body.clone()).await;
        world
            .send(QueueName::DeadLetters, Bytes::from(letter.clone()))
            .await;
        assert_eq!(world.bury().await.failures, [], "{body:?}");
        assert_eq!(
            (kept(&world).await, buried_events(&world).await),
            (vec![body], 1)
        );
    }
}

/// A body that is not ours in the redrive queue is kept byte for byte beside what is.
#[tokio::test]
async fn foreign_body_in_the_redrive_queue_is_kept_byte_for_byte() {
    let (delivery, letter) = ours().await;
    for body in foreign(&letter, None)
        .into_iter()
        .chain(foreign(&delivery, None))
    {
        let world = world(Faults::none()).await;
        for body in [
            body.clone(),
            Bytes::from(letter.clone()),
            Bytes::from(delivery.clone()),
        ] {
            world.send(QueueName::Redrive, body).await;
        }
        assert_eq!(world.bury_redriven().await.failures, [], "{body:?}");
        assert_eq!(
            (kept(&world).await, buried_events(&world).await),
            (vec![body], 2)
        );
    }
}

/// A message of the delivery log with six records of the topic `orders`, some of which share
/// payloads.
const SHARED_RECORDS: &[u8] =
    include_bytes!("../../../../shared/core/src/delivery_log/fixtures/records-v2.json");

/// A message of the delivery log, with these many records of each topic.
fn log_records(topics: &[(&str, usize)]) -> Bytes {
    let record = |topic: &str| LogRecord {
        record_id: "r".into(),
        topic: topic.into(),
        ..LogRecord::default()
    };
    let records = topics
        .iter()
        .flat_map(|(topic, count)| vec![record(topic); *count]);
    render_records(&records.collect::<Vec<_>>()).remove(0)
}

/// Records of the delivery log in the redrive queue are counted as lost and not kept.
#[test]
fn log_records_in_the_redrive_queue_are_counted_as_lost() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let (delivery, _) = ours().await;
            let world = world(Faults::none()).await;
            world
                .send(
                    QueueName::Redrive,
                    log_records(&[("orders", 2), ("ops", 1)]),
                )
                .await;
            world
                .send(QueueName::Redrive, Bytes::from_static(SHARED_RECORDS))
                .await;
            world.send(QueueName::Redrive, Bytes::from(delivery)).await;
            assert_eq!(world.bury_redriven().await.failures, []);
            assert_eq!(
                (kept(&world).await, buried_events(&world).await),
                (vec![], 1)
            );
            world.clock.advance(DAY);
            assert_eq!(world.visible(QueueName::Redrive).await, 0);
        });
    });
    let text = recorder.handle().render();
    let mut lost: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("LogRecordsLostCount{"))
        .collect();
    lost.sort_unstable();
    assert_eq!(
        lost,
        [
            r#"LogRecordsLostCount{topic="ops"} 1"#,
            r#"LogRecordsLostCount{topic="orders"} 8"#
        ]
    );
}

#[tokio::test]
async fn log_records_among_dead_letters_are_kept_byte_for_byte() {
    let world = world(Faults::none()).await;
    let body = log_records(&[("orders", 1)]);
    world.send(QueueName::DeadLetters, body.clone()).await;
    assert_eq!(world.bury().await.failures, []);
    assert_eq!(kept(&world).await, [body]);
}

#[tokio::test]
async fn messages_of_a_newer_program_wait_for_it_in_every_queue() {
    let (delivery, letter) = ours().await;
    let queues = [
        QueueName::Deliveries,
        QueueName::DeadLetters,
        QueueName::Redrive,
    ];
    for (queue, body) in queues.into_iter().zip([&delivery, &letter, &letter]) {
        let world = world(Faults::none()).await;
        let version = |v: u32| format!("\"v\":{v},");
        let newer = |body: String, v| body.replace(&version(v), &version(WIRE_VERSION + 1));
        let newer = Bytes::from((1..=WIRE_VERSION).fold(body.clone(), newer));
        world.send(queue, newer.clone()).await;
        for _ in 0..60 {
            let responses = [
                world.deliver().await,
                world.bury().await,
                world.bury_redriven().await,
            ];
            assert!(
                responses
                    .iter()
                    .all(|response| response.failures.is_empty())
            );
            world.clock.advance(Duration::from_mins(15));
        }
        assert_eq!(
            world.receive(queue).await.pop().expect("a message").body,
            newer
        );
        assert_eq!(world.buried().await, []);
    }
}

async fn put(world: &World, text: &'static str) {
    let bytes = Bytes::from_static(text.as_bytes());
    world
        .local
        .state_store()
        .put(KEY, bytes, PutCondition::Always)
        .await
        .expect("a write");
}

/// A stored event and one beside it, of which the first cannot be delivered: the message about it
/// is kept.
async fn assert_kept(world: &World) {
    world.publish_stored(KEY, STORED).await;
    world.publish(&[event("neighbour")], DAY).await;
    assert_eq!(world.deliver().await.failures, []);
    let requests = world.endpoint.take();
    assert!(
        requests.len() == 1 && requests[0].body.contains("neighbour"),
        "{requests:?}"
    );
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(world.bury().await.failures, []);
    let kept = kept(world).await;
    let text = String::from_utf8_lossy(&kept[0]);
    assert!(
        kept.len() == 1 && text.contains(KEY) && text.contains("MalformedMessage"),
        "{kept:?}"
    );
}

/// An event whose payload is gone is kept, and its neighbour is delivered.
#[tokio::test]
async fn event_with_a_missing_payload_is_kept_and_its_neighbour_goes() {
    assert_kept(&world(Faults::none()).await).await;
}

#[tokio::test]
async fn an_event_whose_payload_was_altered_is_kept_and_never_sent() {
    for altered in ALTERED {
        let world = world(Faults::none()).await;
        put(&world, altered).await;
        assert_kept(&world).await;
        // The object in its place stays there for the operator.
        let object = world
            .local
            .state_store()
            .get(KEY)
            .await
            .expect("a read")
            .expect("an object");
        assert_eq!(object.bytes, altered);
    }
}

#[tokio::test]
async fn an_event_whose_payload_is_forbidden_waits_until_it_is_not() {
    let denied = |effect: PortEffect<'_>| {
        let is_payload = effect.key == KEY && effect.number < 30;
        is_payload.then_some(CallFault::Before(ErrorKind::Denied))
    };
    let world = world(Faults::in_state(&FaultPlan::by(denied))).await;
    put(&world, STORED).await;
    world.publish_stored(KEY, STORED).await;
    for _ in 0..40 {
        assert_eq!(world.deliver().await.failures, []);
        world.clock.advance(Duration::from_secs(30));
    }
    let requests = world.endpoint.take();
    assert_eq!(
        requests
            .iter()
            .map(|request| request.body.as_str())
            .collect::<Vec<_>>(),
        [STORED]
    );
    assert_eq!(requests[0].headers["aeg-delivery-count"], "0");
}

/// A dead letter of a stored event and one beside it, both due.
async fn give_up_stored(world: &World) {
    world.publish_stored(KEY, STORED).await;
    world.publish(&[event("neighbour")], DAY).await;
    // The events expire untried, so that only deadletter reads the payload.
    world.clock.advance(DAY);
    assert_eq!(world.deliver().await.failures, []);
    world.clock.advance(Duration::from_mins(5));
}

#[tokio::test]
async fn a_dead_letter_shows_its_stored_event_as_it_was_accepted() {
    let world = world(Faults::none()).await;
    put(&world, STORED).await;
    give_up_stored(&world).await;
    assert_eq!(world.bury().await.failures, []);
    assert_eq!(
        (kept(&world).await, buried_events(&world).await),
        (vec![], 2)
    );
}

/// A dead letter whose payload is gone or altered is kept beside the others.
#[tokio::test]
async fn dead_letter_with_a_missing_or_altered_payload_is_kept() {
    for altered in ALTERED.map(Some).into_iter().chain([None]) {
        let world = world(Faults::none()).await;
        if let Some(altered) = altered {
            put(&world, altered).await;
        }
        give_up_stored(&world).await;
        assert_eq!(world.bury().await.failures, []);
        let kept = kept(&world).await;
        assert!(
            kept.len() == 1 && String::from_utf8_lossy(&kept[0]).contains(KEY),
            "{altered:?}: {kept:?}"
        );
        assert_eq!(buried_events(&world).await, 1, "{altered:?}");
    }
}

/// A dead letter whose payload is forbidden waits, and is kept before it is lost.
#[tokio::test]
async fn dead_letter_with_a_forbidden_payload_waits_and_is_kept() {
    let denied = |effect: PortEffect<'_>| {
        (effect.key == KEY).then_some(CallFault::Before(ErrorKind::Denied))
    };
    let world = world(Faults::in_state(&FaultPlan::by(denied))).await;
    give_up_stored(&world).await;
    let sent_at = world.clock.now();
    for _ in 0..=MAX_RECEIVE_COUNT {
        world.bury().await;
        world.clock.advance(Duration::from_mins(6));
    }
    // The other event is where it belongs. The bad one was handed back so often that it is in the
    // redrive queue.
    assert_eq!(
        (kept(&world).await.len(), buried_events(&world).await),
        (0, 1)
    );
    assert_eq!(world.visible(QueueName::Redrive).await, 1);
    // The redrive queue keeps trying it until a day before SQS would delete it.
    while world.clock.now().since(sent_at) + DAY < SQS_RETENTION {
        assert_eq!(world.bury_redriven().await.failures.len(), 1);
        world.clock.advance(Duration::from_hours(1));
    }
    assert_eq!(kept(&world).await.len(), 0);
    assert_eq!(world.bury_redriven().await.failures, []);
    let kept = kept(&world).await;
    assert!(
        kept.len() == 1 && String::from_utf8_lossy(&kept[0]).contains(KEY),
        "{kept:?}"
    );
    assert_eq!(world.visible(QueueName::Redrive).await, 0);
}
