//! Late answers: "if the endpoint responds within 3 minutes, Event Grid will attempt to remove the
//! event from the retry queue on a best effort basis but duplicates may still be received."

use std::future::Future;
use std::time::Duration;

use posthaste_deliver::DeliverSettings;
use posthaste_ports::QueueName;
use posthaste_simulation::{Answer, Faults, World, event, start};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);
const TURNS_MAX: usize = 100_000;

/// An invocation's time: longer than the request's, which is 30 s.
const INVOCATION: Duration = Duration::from_mins(2);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A world whose retries come after these waits, to the second.
async fn world(schedule: Value, answers: impl IntoIterator<Item = Answer>) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    world
        .subscribe(json!({ "retryPolicy": { "schedule": schedule } }))
        .await;
    world.endpoint.answer(answers);
    world
}

/// Runs a script beside the listener for late answers.
async fn while_listening(world: &World, script: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = script => {}
        () = world.hear_late_answers() => panic!("it listened no more"),
    }
}

/// Moves the clock to so long after the start.
fn until(world: &World, since_start: Duration) {
    world.clock.advance_to(start() + since_start);
}

/// One invocation, in which the clock moves to so long after the start once its request is with the
/// endpoint.
async fn deliver_until(world: &World, since_start: Duration) {
    let before = world.endpoint.seen();
    let time = async {
        while world.endpoint.seen() == before {
            tokio::task::yield_now().await;
        }
        until(world, since_start);
    };
    let (response, ()) = tokio::join!(world.deliver_within(INVOCATION), time);
    assert_eq!(response.failures, []);
}

/// Lets everybody run until there are so many notes.
async fn noted(world: &World, notes: usize) {
    for _ in 0..TURNS_MAX {
        if world.late_notes().await.len() == notes {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("there are {:?}", world.late_notes().await);
}

/// Publishes events whose request times out at 30 s and is answered well at 45 s. Their retry is
/// due at `retry_at`.
async fn answer_late(world: &World, events: &[String], time_to_live: Duration, retry_at: Duration) {
    while_listening(world, async {
        world.publish(events, time_to_live).await;
        deliver_until(world, secs(30)).await;
        assert_eq!(world.late_notes().await.len(), 0);
        until(world, secs(45));
        noted(world, events.len()).await;
        until(world, retry_at);
        world.deliver_all().await;
    })
    .await;
}

/// Checks that nothing of the message is left anywhere.
async fn check_gone(world: &World) {
    world.clock.advance(DAY);
    for queue in [QueueName::Deliveries, QueueName::DeadLetters] {
        assert_eq!(world.visible(queue).await, 0, "{queue}");
    }
    assert_eq!(world.parked().await, Vec::<String>::new());
}

/// An answer after 45 seconds takes the event out of the retry queue.
#[tokio::test]
async fn late_answer_takes_the_event_out_of_the_retry_queue() {
    let world = world(json!(["PT1M"]), [Answer::Late(secs(45), 204)]).await;
    answer_late(&world, &[event("e")], DAY, secs(90)).await;
    assert_eq!(world.endpoint.take().len(), 1);
    assert_eq!(world.late_notes().await, Vec::<String>::new());
    check_gone(&world).await;
}

#[tokio::test]
async fn an_answer_after_4_minutes_is_too_late() {
    let world = world(
        json!(["PT10M"]),
        [Answer::Late(secs(240), 204), Answer::Status(204)],
    )
    .await;
    while_listening(&world, async {
        world.publish(&[event("e")], DAY).await;
        deliver_until(&world, secs(30)).await;
        until(&world, secs(240));
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        until(&world, secs(630));
        world.deliver_all().await;
    })
    .await;
    assert_eq!(world.endpoint.take().len(), 2);
    assert_eq!(world.late_notes().await, Vec::<String>::new());
    check_gone(&world).await;
}

#[tokio::test]
async fn an_answer_after_the_retry_went_out_spares_the_one_after_it() {
    let answers = [Answer::Late(secs(45), 200), Answer::Late(secs(600), 200)];
    let world = world(json!(["PT10S", "PT30S"]), answers).await;
    while_listening(&world, async {
        world.publish(&[event("e")], DAY).await;
        deliver_until(&world, secs(30)).await;
        until(&world, secs(40));
        // The first request is answered while the second is under way; the second is not, and its
        // retry is due at 100 s.
        deliver_until(&world, secs(70)).await;
        noted(&world, 1).await;
        until(&world, secs(100));
        world.deliver_all().await;
    })
    .await;
    assert_eq!(world.endpoint.take().len(), 2);
    check_gone(&world).await;
}

#[tokio::test]
async fn an_event_that_was_answered_late_does_not_expire() {
    let world = world(json!(["PT2M"]), [Answer::Late(secs(45), 204)]).await;
    answer_late(&world, &[event("e")], secs(60), secs(150)).await;
    check_gone(&world).await;
}

#[tokio::test]
async fn a_late_answer_that_is_no_success_changes_nothing() {
    let world = world(
        json!(["PT1M"]),
        [Answer::Late(secs(45), 500), Answer::Status(204)],
    )
    .await;
    while_listening(&world, async {
        world.publish(&[event("e")], DAY).await;
        deliver_until(&world, secs(30)).await;
        until(&world, secs(90));
        world.deliver_all().await;
    })
    .await;
    assert_eq!(world.endpoint.take().len(), 2);
    assert_eq!(world.late_notes().await, Vec::<String>::new());
}

#[tokio::test]
async fn every_event_of_a_batch_that_was_answered_late_is_spared() {
    let world = World::new();
    world.chance.hold(0.0);
    let settings = json!({
        "batching": { "maxEventsPerBatch": 10 },
        "retryPolicy": { "schedule": ["PT1M"] },
    });
    world.subscribe(settings).await;
    world.endpoint.answer([Answer::Late(secs(45), 204)]);
    answer_late(&world, &[event("a"), event("b")], DAY, secs(90)).await;
    assert_eq!(world.endpoint.take().len(), 1);
    assert_eq!(world.late_notes().await, Vec::<String>::new());
    check_gone(&world).await;
}

#[tokio::test]
async fn late_request_holds_no_place_in_the_lane_of_its_link() {
    let settings = DeliverSettings {
        requests_per_link_max: 1,
        ..DeliverSettings::default()
    };
    let world = World::bounded(&Faults::none(), settings);
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT10M"] } }))
        .await;
    world
        .endpoint
        .answer([Answer::Late(secs(200), 204), Answer::Status(204)]);
    while_listening(&world, async {
        world.publish(&[event("slow")], DAY).await;
        deliver_until(&world, secs(30)).await;
        world.publish(&[event("next")], DAY).await;
        world.deliver_all().await;
    })
    .await;
    assert_eq!(world.endpoint.take().len(), 2);
}

#[tokio::test]
async fn stopped_worker_waits_for_no_late_answer() {
    let world = world(json!(["PT1M"]), [Answer::Late(secs(45), 204)]).await;
    world.publish(&[event("e")], DAY).await;
    let script = async {
        deliver_until(&world, secs(30)).await;
        world.stop();
    };
    let ((), ()) = tokio::join!(world.hear_late_answers(), script);
    assert_eq!(
        world.clock.sleepers(),
        0,
        "nobody waits for the endpoint any more"
    );
    assert_eq!(world.delayed(QueueName::Deliveries).await, 1);
}

#[tokio::test]
async fn request_ends_with_its_timeout_without_a_listener() {
    let world = world(
        json!(["PT1M"]),
        [Answer::Late(secs(45), 204), Answer::Status(204)],
    )
    .await;
    world.publish(&[event("e")], DAY).await;
    deliver_until(&world, secs(30)).await;
    assert_eq!(world.clock.sleepers(), 0);
    until(&world, secs(90));
    world.deliver_all().await;
    assert_eq!(world.endpoint.take().len(), 2);
}

/// A request that goes on is open: the next ones would come beside it.
#[tokio::test]
async fn endpoint_with_bounded_requests_is_not_heard_late() {
    let world = World::new();
    let url = "https://billing.example.com/hooks";
    let bounded = json!({ "endpoint": { "url": url, "maxConcurrentRequests": 1 } });
    world.subscribe(bounded).await;
    world.endpoint.answer([Answer::Late(secs(45), 204)]);
    while_listening(&world, async {
        world.publish(&[event("0")], DAY).await;
        deliver_until(&world, secs(30)).await;
        until(&world, secs(45));
        world.rest().await;
        assert_eq!(world.late_notes().await.len(), 0);
    })
    .await;
}
