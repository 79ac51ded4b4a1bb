//! `Retry-After`: a floor for the event that was answered so, and a pause for its subscription.

use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, Observation, TargetCondition, TargetPhase};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ErrorKind, QueueName};
use posthaste_simulation::{Answer, Faults, World, event, start};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A world whose schedule would try again after a second, and whose endpoint answers so.
async fn world(faults: &Faults, answers: impl IntoIterator<Item = Answer>) -> World {
    let world = World::with(faults);
    world.chance.hold(0.0);
    let retry = json!({ "schedule": ["PT1S"], "waitFloors": { "default": "PT0S", "429": "PT0S", "503": "PT0S" } });
    world.subscribe(json!({ "retryPolicy": retry })).await;
    world.endpoint.answer(answers);
    world
}

fn asks(status: u16, wait: &'static str) -> Answer {
    Answer::With(status, "retry-after", wait)
}

fn billing() -> DeliveryTarget {
    DeliveryTarget::parse("https://billing.example.com:443 orders.billing").unwrap()
}

fn condition(world: &World) -> Option<TargetCondition> {
    world.links.condition(&billing())
}

async fn publish(world: &World, ids: &[&str]) {
    for id in ids {
        world.publish(&[event(id)], DAY).await;
    }
}

/// Lets time pass, second by second until `end` since the start, and lets everything have its turn.
async fn pass_until(world: &World, end: Duration) {
    while world.clock.now() < start() + end {
        let second = world.clock.now().as_secs() + 1;
        world
            .clock
            .advance_to(posthaste_core::model::Timestamp::from_millis(second * 1000));
        // Twice: the queue may take a moment to show what has become due.
        for _ in 0..2 {
            world.in_time(world.deliver()).await;
        }
    }
}

/// The ids of what was sent since the last time, each with the second since the start.
fn sent(world: &World) -> Vec<(String, u64)> {
    let requests = world.endpoint.take();
    let id = |body: &str| {
        serde_json::from_str::<Value>(body).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    requests
        .iter()
        .map(|it| (id(&it.body), it.at.since(start()).as_secs()))
        .collect()
}

fn expected(sent: &[(&str, u64)]) -> Vec<(String, u64)> {
    sent.iter()
        .map(|(id, at)| ((*id).to_owned(), *at))
        .collect()
}

/// Writes of what is known of links since the last time.
fn written(world: &World) -> usize {
    let calls = world.calls.take();
    let is_write = |key: &str| key.starts_with(layout::LINKS);
    calls
        .iter()
        .filter(|it| it.operation == PortOperation::Put && is_write(&it.key))
        .count()
}

/// An event waits as long as its endpoint asks, whatever its schedule.
#[tokio::test]
async fn event_waits_as_long_as_its_endpoint_asks() {
    for status in [429, 503] {
        let world = world(&Faults::none(), [asks(status, "60"), Answer::Status(204)]).await;
        publish(&world, &["a"]).await;
        world.deliver().await;
        pass_until(&world, secs(70)).await;
        assert_eq!(sent(&world), expected(&[("a", 0), ("a", 60)]), "{status}");
    }
}

/// An event waits for twelve hours at most, and its subscription for a quarter of one.
#[tokio::test]
async fn event_waits_twelve_hours_at_most_a_subscription_a_quarter() {
    let world = world(&Faults::none(), [asks(503, "86400"), Answer::Status(204)]).await;
    publish(&world, &["a"]).await;
    world.deliver().await;
    publish(&world, &["b"]).await;
    pass_until(&world, secs(899)).await;
    assert_eq!(sent(&world), expected(&[("a", 0)]));
    pass_until(&world, secs(901)).await;
    assert_eq!(sent(&world), expected(&[("b", 900)]));
    let [parked] = &*world.parked().await else {
        panic!("expected one object")
    };
    let due = layout::parked_due_minute(parked).unwrap();
    assert_eq!(
        due,
        (start() + Duration::from_hours(12)).minute_rounded_up()
    );
}

#[tokio::test]
async fn others_of_a_subscription_wait_and_one_probes_after_the_pause() {
    let world = world(
        &Faults::none(),
        [asks(429, "60"), Answer::Late(secs(1), 204)],
    )
    .await;
    publish(&world, &["a"]).await;
    world.deliver().await;
    publish(&world, &["b", "c", "d", "e"]).await;
    pass_until(&world, secs(59)).await;
    assert_eq!(sent(&world), expected(&[("a", 0)]));
    assert_eq!(world.endpoint.most_at_once(), 1);
    assert!(condition(&world).is_some_and(|it| it.is_pause() && it.until == start() + secs(60)));
    pass_until(&world, secs(60)).await;
    let first = sent(&world);
    let at_its_end = first.iter().filter(|(_, at)| *at == 60).count();
    assert_eq!(
        (at_its_end, world.endpoint.most_at_once()),
        (1, 1),
        "{first:?}"
    );
    assert_eq!(condition(&world).unwrap().phase, TargetPhase::Recovering);
    pass_until(&world, secs(120)).await;
    let mut ids: Vec<_> = first
        .into_iter()
        .chain(sent(&world))
        .map(|(id, _)| id)
        .collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
}

/// Asks for a pause a second after the request.
fn asks_later(wait: &'static str) -> Answer {
    Answer::LateWith(secs(1), 429, "retry-after", wait)
}

#[tokio::test]
async fn latest_end_wins_among_requests_under_way() {
    let answers = ["60", "60", "90", "30", "60"].map(asks_later);
    let world = world(
        &Faults::none(),
        answers.into_iter().chain([Answer::Status(204)]),
    )
    .await;
    publish(&world, &["a", "b", "c", "d", "e"]).await;
    world.in_time(world.deliver()).await;
    assert_eq!(sent(&world).len(), 5);
    assert!(condition(&world).is_some_and(|it| it.is_pause() && it.until == start() + secs(91)));
    publish(&world, &["f"]).await;
    pass_until(&world, secs(90)).await;
    assert_eq!(sent(&world), []);
    pass_until(&world, secs(91)).await;
    assert_eq!(sent(&world)[0].1, 91);
}

#[tokio::test]
async fn success_of_a_request_under_way_does_not_end_a_pause() {
    let world = world(
        &Faults::none(),
        [
            asks_later("60"),
            Answer::Late(secs(2), 204),
            Answer::Status(204),
        ],
    )
    .await;
    publish(&world, &["a", "b"]).await;
    world.in_time(world.deliver()).await;
    assert_eq!(sent(&world).len(), 2);
    publish(&world, &["c"]).await;
    pass_until(&world, secs(60)).await;
    assert_eq!(sent(&world), []);
    pass_until(&world, secs(100)).await;
    assert_eq!(sent(&world).len(), 2);
}

#[tokio::test]
async fn a_probe_that_is_asked_to_wait_waits() {
    // Ten failures are a glitch of a minute; its probe is asked to wait for five.
    let failures = std::iter::repeat_n(Answer::Status(500), 10);
    let world = world(
        &Faults::none(),
        failures.chain([asks(503, "300"), Answer::Status(204)]),
    )
    .await;
    publish(&world, &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]).await;
    world.deliver().await;
    assert_eq!(condition(&world).unwrap().hold, 1);
    world.endpoint.take();
    pass_until(&world, secs(359)).await;
    assert_eq!(
        sent(&world).iter().map(|(_, at)| *at).collect::<Vec<_>>(),
        [60]
    );
    let glitch = condition(&world).unwrap();
    assert_eq!((glitch.hold, glitch.until), (2, start() + secs(360)));
    pass_until(&world, secs(361)).await;
    assert_eq!(sent(&world)[0].1, 360);
}

#[tokio::test]
async fn a_brief_pause_stays_in_its_worker_and_is_not_written() {
    let world = world(&Faults::none(), [asks(429, "5"), Answer::Status(204)]).await;
    publish(&world, &["a"]).await;
    world.calls.take();
    world.deliver().await;
    publish(&world, &["b", "c"]).await;
    pass_until(&world, secs(4)).await;
    assert_eq!(sent(&world), expected(&[("a", 0)]));
    assert_eq!((written(&world), condition(&world)), (0, None));
    // Another worker knows nothing of it.
    world.publish(&[event("x")], DAY).await;
    world.another_worker(7).deliver().await;
    assert_eq!(sent(&world), expected(&[("x", 4)]));
    pass_until(&world, secs(20)).await;
    let mut rest = sent(&world);
    rest.sort();
    assert_eq!(
        rest.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
    assert!(rest.iter().all(|(_, at)| *at >= 5), "{rest:?}");
}

/// Another worker keeps a pause of ten seconds that it was not asked for.
#[tokio::test]
async fn another_worker_keeps_a_pause_that_it_was_not_asked_for() {
    let answers = [Answer::Status(500), asks(503, "10"), Answer::Status(204)];
    let world = world(&Faults::none(), answers).await;
    publish(&world, &["retried"]).await;
    world.deliver().await;
    publish(&world, &["asked"]).await;
    world.calls.take();
    world.deliver().await;
    assert_eq!(written(&world), 1);
    world.clock.advance(secs(1));
    world.another_worker(8).deliver().await;
    assert_eq!(sent(&world), expected(&[("retried", 0), ("asked", 0)]));
    pass_until(&world, secs(9)).await;
    assert_eq!(sent(&world), []);
}

#[tokio::test]
async fn force_ends_a_pause() {
    let world = world(&Faults::none(), [asks(503, "600"), Answer::Status(204)]).await;
    publish(&world, &["a"]).await;
    world.deliver().await;
    world
        .links
        .observe(&[(billing(), Observation::Forced)])
        .await
        .unwrap();
    publish(&world, &["b"]).await;
    pass_until(&world, secs(2)).await;
    assert_eq!(
        sent(&world)
            .iter()
            .map(|(id, _)| id.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
}

#[tokio::test]
async fn event_that_waits_for_the_end_of_a_pause_expires_meanwhile() {
    let world = world(&Faults::none(), [asks(503, "600"), Answer::Status(204)]).await;
    publish(&world, &["a"]).await;
    world.deliver().await;
    world.publish(&[event("b")], secs(30)).await;
    pass_until(&world, secs(40)).await;
    assert_eq!(sent(&world), expected(&[("a", 0)]));
    let letters = world.letters().await;
    assert_eq!(
        letters
            .iter()
            .map(|it| (&*it.id, &*it.reason))
            .collect::<Vec<_>>(),
        [("b", "TimeToLiveExceeded")]
    );
}

/// Nothing that is known of links can be written.
fn unwritable() -> FaultPlan {
    FaultPlan::by(|effect: PortEffect<'_>| {
        let is_write =
            effect.operation == PortOperation::Put && effect.key.starts_with(layout::LINKS);
        is_write.then_some(CallFault::Before(ErrorKind::Other))
    })
}

#[tokio::test]
async fn unwritable_pause_is_kept_for_ten_seconds_at_a_time() {
    let world = world(&Faults::in_state(&unwritable()), [asks(429, "60")]).await;
    publish(&world, &["a"]).await;
    world.deliver().await;
    publish(&world, &["b", "c"]).await;
    pass_until(&world, secs(9)).await;
    assert_eq!(sent(&world), expected(&[("a", 0)]));
    pass_until(&world, secs(10)).await;
    assert_eq!(sent(&world).len(), 1);
    assert!(world.delayed(QueueName::Deliveries).await > 0);
}

/// Each restart inside a pause knows the pause before its first request.
#[tokio::test]
async fn restart_inside_a_pause_sends_nothing_before_its_end() {
    let mut world = world(&Faults::none(), [asks(503, "60"), Answer::Status(204)]).await;
    publish(&world, &["a"]).await;
    world.deliver().await;
    assert_eq!(sent(&world), expected(&[("a", 0)]));
    for second in 1..=29 {
        let now = start() + secs(2 * second);
        world = World::over(world.end().await, now);
        publish(&world, &["b"]).await;
        world.deliver().await;
        assert_eq!(sent(&world), expected(&[]), "{second}");
    }
    let now = start() + secs(60);
    world = World::over(world.end().await, now);
    world.deliver().await;
    let first = sent(&world).first().map(|(_, at)| *at);
    assert_eq!(first, Some(60));
}

/// A cold start of Lambda: another worker, which has seen nothing of the pause.
#[tokio::test]
async fn worker_that_starts_inside_a_pause_sends_nothing() {
    let world = world(&Faults::none(), [asks(503, "60"), Answer::Status(204)]).await;
    publish(&world, &["a"]).await;
    world.deliver().await;
    assert_eq!(sent(&world), expected(&[("a", 0)]));
    for seed in 0..5 {
        world.clock.advance(secs(1));
        publish(&world, &["b"]).await;
        world.another_worker(seed).deliver().await;
    }
    assert_eq!(sent(&world), expected(&[]));
}

/// The state of a link that failed is known at the start like a pause.
#[tokio::test]
async fn start_knows_links_that_failed_before_it() {
    let mut world = world(&Faults::none(), [Answer::Status(500)]).await;
    publish(&world, &["a"; 12]).await;
    for _ in 0..2 {
        world.deliver().await;
    }
    assert_eq!(
        condition(&world).map(|it| it.phase),
        Some(TargetPhase::Glitch)
    );
    world.endpoint.take();
    world = World::over(world.end().await, start());
    publish(&world, &["b"]).await;
    world.deliver().await;
    assert_eq!(sent(&world), expected(&[]));
}
