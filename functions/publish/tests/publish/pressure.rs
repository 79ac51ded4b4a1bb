//! Back pressure: the tarpit, refusals by tier, and dehydration.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use futures_util::stream;
use posthaste_core::model::{EventPayload, ProducerTier, Timestamp};
use posthaste_core::pressure::{
    LevelThresholds, PressureLevel, PressureMeasure, PressureState, Resource, ResourceState,
};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ObjectStore, PutCondition};
use posthaste_publish::{Publish, TarpitMode};
use posthaste_testkit::TestPorts;
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::refused::shown;
use crate::world::{
    Answer, BATCH, KEY, MINIMAL, START, STRUCTURED, World, event_of, one, request, send,
    subscriptions,
};

type EmbeddedPublish = Publish<TestPorts<MemoryQueue, MemoryStore>>;

const BULK: (&str, &str) = ("posthaste-tier", "bulk");

/// Writes a state in which the submission queue is at Medium.
pub(crate) async fn put_pressure(
    world: &World,
    tarpit: Duration,
    refused_from: Option<ProducerTier>,
    measures: &[PressureMeasure],
) {
    write_pressure(
        world,
        Timestamp::parse(START).unwrap(),
        tarpit,
        refused_from,
        measures,
    )
    .await;
}

/// The same at this time.
async fn write_pressure(
    world: &World,
    at: Timestamp,
    tarpit: Duration,
    refused_from: Option<ProducerTier>,
    measures: &[PressureMeasure],
) {
    let mut state = PressureState::normal(at);
    state.tarpit_ms = tarpit.as_millis().try_into().unwrap();
    state.stale_after_ms = 6_000;
    state.resources = vec![ResourceState {
        resource: Resource::SubmissionQueue,
        level: PressureLevel::Medium,
        since: at,
        reading: 5000,
        read_at: at,
        thresholds: LevelThresholds::new(2000, 4000, 10_000),
        acts: true,
        watched_only: false,
        tarpits: true,
        polls: 2,
        history_depth: Some(300),
        in_flight: false,
        refused_from,
        measures: measures.iter().copied().collect(),
    }];
    world
        .store
        .put(PRESSURE_KEY, state.render().into(), PutCondition::Always)
        .await
        .unwrap();
}

async fn tarpitted() -> World {
    let world = World::new(one()).await;
    put_pressure(&world, Duration::from_secs(15), None, &[]).await;
    world
}

pub(crate) fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn the_tarpit_writes_nothing_until_the_wait_is_over() {
    let world = tarpitted().await;
    let mut answer = pin!(world.post(&[STRUCTURED], MINIMAL));
    assert!(poll(answer.as_mut()).is_pending());
    world.clock.advance(Duration::from_millis(14_999));
    assert!(poll(answer.as_mut()).is_pending());
    world.assert_untouched();
    world.clock.advance(Duration::from_millis(1));
    let answer = answer.await;
    assert_eq!((answer.status, world.packed().len()), (200, 1));
    assert_eq!(
        answer.headers["posthaste-pressure"],
        "medium; resource=submission-queue; delay=15"
    );
    let accepted = Timestamp::parse(START).unwrap() + Duration::from_secs(15);
    assert_eq!(world.deliveries()[0].published_at, accepted);
}

#[tokio::test]
async fn a_client_that_gives_up_in_the_tarpit_has_published_nothing() {
    let world = tarpitted().await;
    {
        let mut answer = pin!(world.post(&[STRUCTURED], MINIMAL));
        assert!(poll(answer.as_mut()).is_pending());
        assert_eq!(world.clock.sleepers(), 1);
    }
    assert_eq!(world.clock.sleepers(), 0);
    world.clock.advance(Duration::from_mins(1));
    world.assert_untouched();
}

/// Lets other tasks run until the clock has this many sleepers. The limit only ends a test that
/// fails.
async fn until_sleepers(world: &World, count: usize) {
    let reached = async {
        while world.clock.sleepers() != count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_connection_that_closes_in_the_tarpit_has_published_nothing() {
    let world = tarpitted().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = posthaste_publish::router(world.publish().into());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let head = "POST /topics/orders/events HTTP/1.1\r\nhost: x";
    let length = MINIMAL.len();
    let headers = format!("aeg-sas-key: key-one\r\n{}: {}", STRUCTURED.0, STRUCTURED.1);
    let request = format!("{head}\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{MINIMAL}");
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    until_sleepers(&world, 1).await;
    drop(connection);
    until_sleepers(&world, 0).await;
    world.clock.advance(Duration::from_mins(1));
    tokio::task::yield_now().await;
    world.assert_untouched();
}

/// A bad event waits before it is refused, and a wrong key is refused at once.
#[tokio::test]
async fn bad_event_waits_before_refusal_and_a_wrong_key_does_not() {
    let world = tarpitted().await;
    assert_eq!(
        world
            .post(&[("aeg-sas-key", "wrong"), STRUCTURED], MINIMAL)
            .await
            .status,
        401
    );
    let mut answer = pin!(world.post(&[STRUCTURED], "{}"));
    assert!(poll(answer.as_mut()).is_pending());
    world.clock.advance(Duration::from_secs(15));
    assert_eq!(answer.await.status, 400);
}

#[tokio::test]
async fn the_tarpit_holds_no_more_bodies_than_it_may() {
    let world = tarpitted().await;
    let publish = Arc::new(world.publish());
    let post = |bytes| {
        let request = request("/topics/orders/events", &[KEY, STRUCTURED], event_of(bytes));
        Box::pin(send(
            posthaste_publish::router(Arc::clone(&publish)),
            request,
        ))
    };
    let mut held: Vec<_> = (0..16).map(|_| post(1_000_000)).collect();
    for answer in &mut held {
        assert!(poll(answer.as_mut()).is_pending());
    }
    insta::assert_snapshot!(shown(&post(100).await));
    held.pop();
    assert!(poll(post(100).as_mut()).is_pending());
}

#[tokio::test]
async fn a_refused_tier_is_told_when_to_come_back() {
    let world = World::new(one()).await;
    put_pressure(&world, Duration::ZERO, Some(ProducerTier::Standard), &[]).await;
    let answer = world.post(&[STRUCTURED], MINIMAL).await;
    insta::assert_snapshot!(shown(&answer));
    assert_eq!(
        answer.headers["posthaste-pressure"],
        "medium; resource=submission-queue; retry-after=30"
    );
    world.assert_untouched();
}

/// Posts to a function that stands where the tarpit advises.
async fn advised(publish: &Arc<EmbeddedPublish>, headers: &[(&str, &str)], body: &str) -> Answer {
    let request = request("/topics/orders/events", headers, body.to_owned());
    send(posthaste_publish::router(Arc::clone(publish)), request).await
}

fn advising(world: &World) -> Arc<EmbeddedPublish> {
    let mut publish = world.publish();
    publish.settings.tarpit = TarpitMode::Advise;
    Arc::new(publish)
}

/// An advising tarpit makes no request wait, and one per delay goes on.
#[tokio::test]
async fn advising_tarpit_lets_one_request_per_delay_through() {
    let world = tarpitted().await;
    let publish = advising(&world);
    let post = async |headers: &[(&str, &str)]| advised(&publish, headers, MINIMAL).await;
    let first = post(&[KEY, STRUCTURED]).await;
    assert_eq!(
        (first.status, world.packed().len(), world.clock.sleepers()),
        (200, 1, 0)
    );
    let answer = post(&[KEY, STRUCTURED]).await;
    insta::assert_snapshot!(shown(&answer));
    assert_eq!(
        answer.headers["posthaste-pressure"],
        "medium; resource=submission-queue; delay=15"
    );
    assert_eq!(
        post(&[("aeg-sas-key", "wrong"), STRUCTURED]).await.status,
        401
    );
    assert_eq!((world.packed().len(), world.clock.sleepers()), (1, 0));
    // Refusals stay as they are where acknowledgements wait, and without pressure no producer is
    // asked to wait.
    put_pressure(&world, Duration::ZERO, Some(ProducerTier::Standard), &[]).await;
    assert_eq!(post(&[KEY, STRUCTURED]).await.status, 503);
    put_pressure(&world, Duration::ZERO, None, &[]).await;
    assert_eq!(post(&[KEY, STRUCTURED]).await.status, 200);
    assert_eq!(world.packed().len(), 2);
}

/// At rest, with a base that every acknowledgement waits.
async fn at_rest_with_a_base() -> World {
    let world = World::new(one()).await;
    let mut state = PressureState::normal(Timestamp::parse(START).unwrap());
    state.tarpit_ms = 2000;
    state.base_ms = 2000;
    world
        .store
        .put(PRESSURE_KEY, state.render().into(), PutCondition::Always)
        .await
        .unwrap();
    world
}

#[tokio::test]
async fn at_rest_an_acknowledgement_waits_the_base() {
    let world = at_rest_with_a_base().await;
    let mut answer = pin!(world.post(&[STRUCTURED], MINIMAL));
    assert!(poll(answer.as_mut()).is_pending());
    world.clock.advance(Duration::from_millis(1999));
    assert!(poll(answer.as_mut()).is_pending());
    world.assert_untouched();
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(answer.await.status, 200);
}

#[tokio::test]
async fn the_base_is_never_advised() {
    let world = at_rest_with_a_base().await;
    let publish = advising(&world);
    for _ in 0..3 {
        assert_eq!(
            advised(&publish, &[KEY, STRUCTURED], MINIMAL).await.status,
            200
        );
    }
}

/// Posts for two minutes: again when the answer says so or, without `obeys`, every second. Returns
/// the times at which a request was let through. The monitor writes its state all the time.
async fn let_through(obeys: bool) -> Vec<u64> {
    let world = tarpitted().await;
    let publish = advising(&world);
    let mut through = Vec::new();
    let start = world.clock.monotonic();
    while let at @ ..120 = world.clock.monotonic().saturating_sub(start).as_secs() {
        write_pressure(
            &world,
            world.clock.now(),
            Duration::from_secs(15),
            None,
            &[],
        )
        .await;
        let answer = advised(&publish, &[KEY, STRUCTURED], MINIMAL).await;
        let told = answer
            .headers
            .get("retry-after")
            .map(|told| told.to_str().unwrap().parse().unwrap());
        through.extend((answer.status == 200).then_some(at));
        assert_eq!(
            (answer.status == 200, told),
            (told.is_none(), told.map(|_: u64| 15))
        );
        world
            .clock
            .advance(Duration::from_secs(told.filter(|_| obeys).unwrap_or(1)));
    }
    assert_eq!(world.packed().len(), through.len());
    through
}

/// A producer that waits as it is told is let through again and again.
#[tokio::test]
async fn producer_that_waits_as_told_is_always_let_through() {
    assert_eq!(let_through(true).await, [0, 16, 32, 48, 64, 80, 96, 112]);
}

/// A producer that does not wait is held to one request per delay.
#[tokio::test]
async fn impatient_producer_gets_one_request_per_delay() {
    assert_eq!(let_through(false).await, [0, 15, 30, 45, 60, 75, 90, 105]);
}

#[tokio::test]
async fn only_a_request_that_goes_on_takes_the_place_of_its_topic() {
    let world = tarpitted().await;
    let publish = advising(&world);
    let too_large = event_of(1_000_001);
    assert_eq!(
        advised(&publish, &[("aeg-sas-key", "wrong"), STRUCTURED], MINIMAL)
            .await
            .status,
        401
    );
    assert_eq!(
        advised(&publish, &[KEY, STRUCTURED], &too_large)
            .await
            .status,
        413
    );
    assert_eq!(
        advised(&publish, &[KEY, STRUCTURED], MINIMAL).await.status,
        200
    );
    assert_eq!(
        advised(&publish, &[KEY, STRUCTURED], MINIMAL).await.status,
        429
    );
}

#[tokio::test]
async fn a_client_that_is_told_to_wait_is_not_listened_to() {
    let world = tarpitted().await;
    let publish = advising(&world);
    assert_eq!(
        advised(&publish, &[KEY, STRUCTURED], MINIMAL).await.status,
        200
    );
    // It asks before it sends, and is not asked to.
    let unread = Body::from_stream(stream::poll_fn(
        |_| -> Poll<Option<Result<Vec<u8>, std::io::Error>>> { panic!("the body was read") },
    ));
    let headers = [KEY, STRUCTURED, ("expect", "100-continue")];
    let request = request("/topics/orders/events", &headers, unread);
    assert_eq!(
        send(posthaste_publish::router(publish), request)
            .await
            .status,
        429
    );
}

#[tokio::test]
async fn a_request_that_publishes_nothing_gives_its_place_back() {
    let world = tarpitted().await;
    let publish = advising(&world);
    for _ in 0..3 {
        assert_eq!(advised(&publish, &[KEY, STRUCTURED], "{").await.status, 400);
    }
    assert_eq!(
        advised(&publish, &[KEY, ("content-type", "text/plain")], MINIMAL)
            .await
            .status,
        415
    );
    assert_eq!(
        advised(&publish, &[KEY, STRUCTURED], MINIMAL).await.status,
        200
    );
    assert_eq!(
        advised(&publish, &[KEY, STRUCTURED], MINIMAL).await.status,
        429
    );
    // Another tier's place is another one.
    assert_eq!(
        advised(&publish, &[KEY, STRUCTURED, BULK], MINIMAL)
            .await
            .status,
        200
    );
    assert_eq!(
        advised(&publish, &[KEY, STRUCTURED, BULK], MINIMAL)
            .await
            .status,
        429
    );
}

#[tokio::test]
async fn a_tier_that_is_none_is_refused_by_name() {
    let world = World::new(one()).await;
    for unknown in ["imports", "low", "bulk,bulk"] {
        let answer = world
            .post(&[KEY, STRUCTURED, ("posthaste-tier", unknown)], MINIMAL)
            .await;
        let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (answer.status, &problem["member"]),
            (400, &json!("posthaste-tier")),
            "{unknown}"
        );
    }
    assert_eq!(world.packed().len(), 0);
}

/// The statuses of requests with this key that say of themselves that they are of each of these
/// tiers.
async fn statuses(world: &World, key: &str) -> [u16; 5] {
    let mut statuses = [0; 5];
    for (status, tier) in statuses
        .iter_mut()
        .zip(["bulk", "Bulk", "standard", "internal", ""])
    {
        let headers = [("aeg-sas-key", key), STRUCTURED, ("posthaste-tier", tier)];
        *status = world.post(&headers, MINIMAL).await.status;
    }
    statuses
}

#[tokio::test]
async fn the_key_says_the_tier_and_the_header_can_only_lower_it() {
    let world = World::new(one()).await;
    world.put_topic_with_tier_keys(one()).await;
    let check = async |refused_from, expected: [(&str, [u16; 5]); 4]| {
        put_pressure(&world, Duration::ZERO, refused_from, &[]).await;
        for (key, statuses_of) in expected {
            assert_eq!(
                statuses(&world, key).await,
                statuses_of,
                "{key} {refused_from:?}"
            );
        }
    };
    let taken = [200; 5];
    let refused = [503; 5];
    let back = [503, 503, 200, 200, 200];
    let all = ["key-internal", "key-one", "key-two", "key-bulk"];
    let of = |expected: [[u16; 5]; 4]| std::array::from_fn(|at| (all[at], expected[at]));
    check(None, of([taken; 4])).await;
    check(Some(ProducerTier::Bulk), of([back, back, back, refused])).await;
    // An internal key may step back to `standard` too, and is refused with it.
    let inner = [503, 503, 503, 200, 200];
    check(
        Some(ProducerTier::Standard),
        of([inner, refused, refused, refused]),
    )
    .await;
    check(Some(ProducerTier::Internal), of([refused; 4])).await;
}

#[tokio::test]
async fn an_internal_key_is_not_held_once_others_are_refused() {
    let world = World::new(one()).await;
    world.put_topic_with_tier_keys(one()).await;
    put_pressure(&world, Duration::ZERO, Some(ProducerTier::Standard), &[]).await;
    let answer = world
        .post(&[("aeg-sas-key", "key-internal"), STRUCTURED], MINIMAL)
        .await;
    assert_eq!(
        (answer.status, world.clock.sleepers(), world.packed().len()),
        (200, 0, 1)
    );
    assert_eq!(
        answer.headers["posthaste-pressure"],
        "medium; resource=submission-queue; delay=0"
    );
}

/// Without keys of other tiers, a producer can step back but not forward.
#[tokio::test]
async fn producer_without_other_keys_may_only_step_back() {
    let world = World::new(one()).await;
    put_pressure(&world, Duration::ZERO, Some(ProducerTier::Bulk), &[]).await;
    assert_eq!(statuses(&world, "key-one").await, [503, 503, 200, 200, 200]);
    put_pressure(&world, Duration::ZERO, Some(ProducerTier::Standard), &[]).await;
    assert_eq!(statuses(&world, "key-one").await, [503; 5]);
    put_pressure(&world, Duration::ZERO, None, &[]).await;
    assert_eq!(world.post(&[STRUCTURED, BULK], MINIMAL).await.status, 200);
}

/// Dehydrated events are stored and referenced, unless they are tiny.
#[tokio::test]
async fn dehydrated_events_are_stored_unless_tiny() {
    let world = World::new(subscriptions(&[("a", json!({})), ("b", json!({}))])).await;
    put_pressure(&world, Duration::ZERO, None, &[PressureMeasure::Dehydrate]).await;
    let body = format!("[{},{MINIMAL},{}]", event_of(2000), event_of(3000));
    assert_eq!(world.post(&[BATCH], body).await.status, 200);
    let stored = world.store.objects_under("payloads/");
    let mut sizes: Vec<_> = stored.iter().map(|(_, bytes)| bytes.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [2000, 3000]);
    for delivery in world.deliveries() {
        let is_stored = |payload: &EventPayload| matches!(payload, EventPayload::Stored { .. });
        let places: Vec<_> = delivery
            .events
            .iter()
            .map(|entry| is_stored(&entry.payload))
            .collect();
        assert_eq!(places, [true, false, true]);
    }
}
