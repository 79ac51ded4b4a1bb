//! Deliveries in `held_key/`: they go out when they may, expire in time, burden no other, and are never
//! lost.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use posthaste_core::api::{StatusState, StatusView};
use posthaste_core::model::{HELD_PER_OBJECT_MAX, SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, EntryFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

async fn set(world: &World, state: StatusState) {
    let mut record = world.record().await;
    for settings in record.settings.subscriptions.values_mut() {
        settings.status = Some(StatusView::new(state, None, world.clock.now()));
    }
    world.write_record(record.render()).await;
}

/// A world whose one subscription is paused.
async fn paused(faults: &Faults) -> World {
    let world = World::with(faults);
    world.subscribe(json!({})).await;
    set(&world, StatusState::Paused).await;
    world
}

/// Publishes an event of each id, a minute apart, to a paused subscription.
async fn hold(world: &World, ids: &[&str], time_to_live: Duration) {
    for id in ids {
        world.publish(&[event(id)], time_to_live).await;
        world.deliver_all().await;
        world.clock.advance(MINUTE);
    }
}

/// One run of wake, and what deliver makes of it.
async fn wake(world: &World) {
    world.wake().await;
    world.deliver_all().await;
}

/// The ids of the events that arrived since this was asked last, in order.
fn arrived(world: &World) -> Vec<String> {
    let id = |body: &str| {
        serde_json::from_str::<Value>(body).ok()?["id"]
            .as_str()
            .map(str::to_owned)
    };
    world
        .endpoint
        .take()
        .iter()
        .filter_map(|request| id(&request.body))
        .collect()
}

/// The reason and attempts of every dead letter.
async fn letters(world: &World) -> Vec<(String, u64)> {
    world.clock.advance(6 * MINUTE);
    world.bury().await;
    let mut letters = Vec::new();
    for (_, bytes) in world.buried().await {
        let array: Vec<Value> = serde_json::from_slice(&bytes).expect("an array of dead letters");
        let letter = |letter: &Value| {
            let reason = letter["deadletterreason"]
                .as_str()
                .expect("a reason")
                .to_owned();
            (
                reason,
                letter["deliveryattempts"]
                    .as_u64()
                    .expect("a number of attempts"),
            )
        };
        letters.extend(array.iter().map(letter));
    }
    letters
}

/// A plan that makes puts of held objects fail.
fn refusing() -> FaultPlan {
    let is_put =
        |e: PortEffect<'_>| e.operation == PortOperation::Put && e.key.starts_with(layout::HELD);
    FaultPlan::at(CallFault::Before(ErrorKind::Denied), is_put)
}

/// Events held while paused are delivered in order of age by the next run.
#[tokio::test]
async fn events_held_while_paused_go_by_age_in_the_next_run() {
    let world = paused(&Faults::none()).await;
    hold(&world, &["1", "2", "3"], DAY).await;
    wake(&world).await;
    assert_eq!((world.held().await.len(), arrived(&world)), (3, vec![]));
    set(&world, StatusState::Active).await;
    world.clock.advance(MINUTE);
    let report = world.wake().await;
    assert_eq!((report.held_sent, report.held_left, report.sent), (3, 0, 0));
    world.deliver_all().await;
    assert_eq!(
        (arrived(&world), world.held().await.len()),
        (vec!["1".into(), "2".into(), "3".into()], 0)
    );
}

#[test]
fn held_deliveries_are_counted_by_subscription() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let world = paused(&Faults::none()).await;
            hold(&world, &["1", "2"], DAY).await;
        });
    });
    let text = recorder.handle().render();
    let held: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("HeldDeliveryCount{"))
        .collect();
    assert_eq!(
        held,
        [r#"HeldDeliveryCount{topic="orders",subscription="billing"} 2"#]
    );
}

/// Deliveries to be held leave the queue, and those that come back have not waited in it.
#[tokio::test]
async fn held_deliveries_leave_the_queue_and_return_without_a_wait() {
    let world = paused(&Faults::none()).await;
    hold(&world, &["1"], DAY).await;
    assert_eq!(world.drained().await.messages, 1);
    world.clock.advance(3 * HOUR);
    set(&world, StatusState::Active).await;
    wake(&world).await;
    let drained = world.drained().await;
    assert_eq!((drained.messages, drained.waited_max), (1, Duration::ZERO));
}

/// Deliveries of one invocation that expire in the same minute share an object.
#[tokio::test]
async fn deliveries_that_expire_in_one_minute_share_an_object() {
    let world = paused(&Faults::none()).await;
    for id in ["1", "2", "3"] {
        world.publish(&[event(id)], DAY).await;
    }
    world.deliver().await;
    assert_eq!(world.held().await.len(), 1);
    set(&world, StatusState::Active).await;
    wake(&world).await;
    assert_eq!(arrived(&world).len(), 3);
}

#[tokio::test]
async fn expired_held_event_is_a_dead_letter_without_an_attempt() {
    let world = paused(&Faults::none()).await;
    hold(&world, &["1"], 10 * MINUTE).await;
    for _ in 0..12 {
        wake(&world).await;
        world.clock.advance(MINUTE);
    }
    assert_eq!((arrived(&world), world.held().await.len()), (vec![], 0));
    assert_eq!(
        letters(&world).await,
        [("TimeToLiveExceeded".to_owned(), 0)]
    );
}

/// Events held for a deleted or disabled subscription are dead letters that say so.
#[tokio::test]
async fn held_event_of_a_gone_subscription_is_a_dead_letter() {
    for (is_deleted, reason) in [(true, "SubscriptionDeleted"), (false, "EndpointGone")] {
        let world = paused(&Faults::none()).await;
        hold(&world, &["1"], DAY).await;
        if is_deleted {
            world.unsubscribe().await;
        } else {
            set(&world, StatusState::Disabled).await;
        }
        wake(&world).await;
        assert_eq!(letters(&world).await, [(reason.to_owned(), 0)]);
        assert_eq!((arrived(&world), world.held().await.len()), (vec![], 0));
    }
}

/// Deliveries that the store does not take wait in the queue, and are held once it does.
#[tokio::test]
async fn deliveries_refused_by_the_store_wait_and_are_held_later() {
    let state = refusing();
    let world = paused(&Faults::in_state(&state)).await;
    hold(&world, &["1", "2"], DAY).await;
    assert_eq!(
        (
            world.delayed(QueueName::Deliveries).await,
            world.held().await.len()
        ),
        (2, 0)
    );
    state.switch(false);
    world.clock.advance(15 * MINUTE);
    world.deliver_all().await;
    assert_eq!(
        (
            world.delayed(QueueName::Deliveries).await,
            world.held().await.is_empty()
        ),
        (0, false)
    );
    set(&world, StatusState::Active).await;
    wake(&world).await;
    assert_eq!(arrived(&world).len(), 2);
}

#[tokio::test]
async fn delivery_that_cannot_be_held_expires_in_time() {
    let world = paused(&Faults::in_state(&refusing())).await;
    hold(&world, &["1"], 5 * MINUTE).await;
    world.clock.advance(5 * MINUTE);
    world.deliver_all().await;
    assert_eq!(
        letters(&world).await,
        [("TimeToLiveExceeded".to_owned(), 0)]
    );
}

/// A run that is killed between a send and its delete makes copies and loses nothing.
#[tokio::test]
async fn run_killed_between_send_and_delete_copies_and_loses_nothing() {
    let is_delete =
        |e: PortEffect<'_>| e.operation == PortOperation::Delete && e.key.starts_with(layout::HELD);
    let state = FaultPlan::nth_of(0, CallFault::HangBefore, is_delete);
    let world = paused(&Faults::in_state(&state)).await;
    hold(&world, &["1"], DAY).await;
    set(&world, StatusState::Active).await;
    state.kill(world.wake()).await;
    world.deliver_all().await;
    world.clock.advance(2 * MINUTE);
    wake(&world).await;
    assert_eq!(
        (arrived(&world), world.held().await.len()),
        (vec!["1".into(), "1".into()], 0)
    );
}

#[tokio::test]
async fn unsent_messages_of_an_object_stay_for_the_next_run() {
    let second_fails = FaultPlan::by(|effect| {
        let entry = EntryFault {
            index: 1,
            is_sent: false,
            kind: ErrorKind::Throttled { retry_after: None },
        };
        (effect.operation == PortOperation::SendBatch).then(|| CallFault::Entries(vec![entry]))
    });
    let world = paused(&Faults::in_queues(&second_fails)).await;
    for id in ["1", "2", "3"] {
        world.publish(&[event(id)], DAY).await;
    }
    world.deliver().await;
    set(&world, StatusState::Active).await;
    let report = world.wake().await;
    assert_eq!((report.held_sent, report.held_left), (2, 1));
    let report = world.wake().await;
    assert_eq!((report.held_sent, report.held_left), (1, 0));
    world.deliver_all().await;
    assert_eq!(arrived(&world).len(), 3);
}

/// Writes held objects of so many deliveries in all, as deliver does.
async fn write_held(world: &World, deliveries: usize) {
    let topic = TopicName::parse("orders");
    let subscription = SubscriptionName::parse("billing");
    let topic = topic.expect("a name");
    let subscription = subscription.expect("a name");
    for object in 0..deliveries / HELD_PER_OBJECT_MAX {
        let ids = (0..HELD_PER_OBJECT_MAX).map(|n| format!("{object}-{n}"));
        let messages: Vec<_> = ids
            .map(|id| world.message(&[event(&id)], DAY).body)
            .collect();
        let expires_at = world.clock.now() + DAY;
        let key = layout::held_key(&topic, &subscription, expires_at, &format!("{object:04}"));
        let object = render_parked(&messages);
        world
            .local
            .state_store()
            .put(&key, object, PutCondition::Always)
            .await
            .expect("a write");
    }
}

#[tokio::test]
async fn ten_thousand_go_out_in_passes_while_new_ones_go_out_at_once() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.tell_ops(json!({})).await;
    write_held(&world, 10_000).await;
    let mut seen = Vec::new();
    let mut most_visible = 0;
    let mut is_published = false;
    let deliver = async || {
        most_visible = most_visible.max(world.visible(QueueName::Deliveries).await);
        if !is_published && seen.len() > 3_000 {
            is_published = true;
            world.publish(&[event("new")], DAY).await;
            world.publish_to_ops(&[event("other")], DAY).await;
        }
        world.deliver().await;
        seen.extend(arrived(&world));
    };
    let mut sent = 0;
    let mut runs = 0;
    let releasing = async {
        while !world.held().await.is_empty() {
            let report = world.wake().await;
            sent += report.held_sent;
            runs += 1;
            world.rest().await;
            world.clock.advance(Duration::from_secs(15));
        }
    };
    Box::pin(world.deliver_beside(releasing, deliver)).await;
    assert_eq!((sent, runs), (10_000, 2));
    // A pass is all that is ever in front of a new delivery.
    assert!(
        most_visible <= 2 * HELD_PER_OBJECT_MAX as u64,
        "{most_visible}"
    );
    assert_eq!(seen.len(), 10_002);
    for id in ["new", "other"] {
        let place = seen.iter().position(|seen| seen == id).expect("an arrival");
        assert!(
            place <= 3_000 + 10 + 2 * HELD_PER_OBJECT_MAX,
            "{id} is number {place}"
        );
    }
}

/// A mark of force releases parked deliveries before their minute, and is deleted.
#[tokio::test]
async fn force_mark_releases_parked_deliveries_early_and_goes() {
    let world = World::new();
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT6H"] } }))
        .await;
    world.endpoint.answer([Answer::Status(500)]);
    for id in ["1", "2", "3"] {
        world.publish(&[event(id)], DAY).await;
        world.deliver_all().await;
    }
    assert_eq!((arrived(&world).len(), world.parked().await.len()), (3, 3));
    world.endpoint.answer([Answer::Status(204)]);
    world.clock.advance(HOUR);
    wake(&world).await;
    assert_eq!(arrived(&world).len(), 0);
    world.ask_wake("forcing/orders.other", String::new()).await;
    world
        .ask_wake("forcing/orders.billing", String::new())
        .await;
    let report = world.wake().await;
    assert_eq!(
        (report.forced_sent, report.sent, report.held_left),
        (3, 0, 0)
    );
    world.deliver_all().await;
    assert_eq!((arrived(&world).len(), world.parked().await.len()), (3, 0));
    assert_eq!(world.keys(layout::FORCING).await.len(), 0);
}

#[tokio::test]
async fn a_run_in_which_nothing_is_held_costs_two_lists() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.calls.take();
    world.wake().await;
    let lists = |prefix: &str| {
        world
            .calls
            .all()
            .iter()
            .filter(|call| call.operation == PortOperation::List && call.key == prefix)
            .count()
    };
    assert_eq!((lists(layout::HELD), lists(layout::FORCING)), (1, 1));
    assert_eq!(
        world
            .local
            .state_store()
            .list(layout::HELD, None, 1)
            .await
            .expect("a list")
            .objects
            .len(),
        0
    );
}
