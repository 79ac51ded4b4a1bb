//! A subscription or topic that was deleted and created again under its name never receives what
//! was accepted for the old one, wherever that waited.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::{ReplayReason, ReplayState, StatusState, StatusView};
use posthaste_core::model::{Delivery, SubscriptionName, Timestamp, TopicCreations, TopicName};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ErrorKind, ObjectStore, QueueName};
use posthaste_simulation::{Answer, Faults, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// The settings of the subscription that takes the old one's place.
fn other() -> Value {
    json!({ "endpoint": { "url": "https://other.example.com/" } })
}

/// The targets of the requests since the last time, with the ids of their events, in order.
fn received(world: &World) -> Vec<(String, String)> {
    let id = |body: &str| {
        let event: Value = serde_json::from_str(body).expect("an event");
        event["id"].as_str().expect("an id").to_owned()
    };
    world
        .endpoint
        .take()
        .iter()
        .map(|request| (request.url.clone(), id(&request.body)))
        .collect()
}

/// The id and reason of every dead letter, in order of the ids.
async fn letters(world: &World) -> Vec<(String, String)> {
    world.clock.advance(15 * MINUTE);
    while world.visible(QueueName::DeadLetters).await > 0 {
        world.bury().await;
    }
    let mut letters = Vec::new();
    for (_, bytes) in world.buried().await {
        let array: Vec<Value> = serde_json::from_slice(&bytes).expect("an array");
        let text = |letter: &Value, name: &str| letter[name].as_str().expect("a text").to_owned();
        letters.extend(
            array
                .iter()
                .map(|letter| (text(letter, "id"), text(letter, "deadletterreason"))),
        );
    }
    letters.sort();
    letters
}

fn deleted(id: &str) -> (String, String) {
    (id.to_owned(), "SubscriptionDeleted".to_owned())
}

fn at_other(id: &str) -> (String, String) {
    ("https://other.example.com/".to_owned(), id.to_owned())
}

/// The waiting event becomes a dead letter, and an event that is published now arrives.
async fn check_goes_on(world: &World) {
    world.deliver_all().await;
    assert_eq!(received(world), []);
    world.publish(&[event("new")], DAY).await;
    world.deliver_all().await;
    assert_eq!(received(world), [at_other("new")]);
    assert_eq!(letters(world).await, [deleted("old")]);
}

#[tokio::test]
async fn queued_event_of_a_former_subscription_is_a_dead_letter() {
    for is_topic in [false, true] {
        let world = World::new();
        world.subscribe(json!({})).await;
        world.publish(&[event("old")], DAY).await;
        if is_topic {
            world.create_topic_again(other()).await;
        } else {
            world.subscribe_again(other()).await;
        }
        check_goes_on(&world).await;
    }
}

#[tokio::test]
async fn retrying_event_of_a_former_subscription_is_a_dead_letter() {
    for schedule in ["PT1M", "PT1H"] {
        let world = World::new();
        world
            .subscribe(json!({ "retryPolicy": { "schedule": [schedule] } }))
            .await;
        world.endpoint.answer([Answer::Status(503)]);
        world.publish(&[event("old")], DAY).await;
        world.deliver_all().await;
        assert_eq!(received(&world).len(), 1);
        assert_eq!(world.parked().await.len(), usize::from(schedule == "PT1H"));
        world.subscribe_again(other()).await;
        world.clock.advance(HOUR + 6 * MINUTE);
        world.wake().await;
        check_goes_on(&world).await;
    }
}

#[tokio::test]
async fn held_event_of_a_former_subscription_is_a_dead_letter() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let mut record = world.record().await;
    for settings in record.settings.subscriptions.values_mut() {
        settings.status = Some(StatusView::new(
            StatusState::Paused,
            None,
            world.clock.now(),
        ));
    }
    world.write_record(record.render()).await;
    world.publish(&[event("old")], DAY).await;
    world.deliver_all().await;
    assert_eq!(world.held().await.len(), 1);
    world.subscribe_again(other()).await;
    world.wake().await;
    check_goes_on(&world).await;
}

#[tokio::test]
async fn messages_of_both_in_one_invocation_are_told_apart() {
    let world = World::new();
    world
        .subscribe(json!({ "batching": { "maxEventsPerBatch": 10 } }))
        .await;
    world.publish(&[event("old")], DAY).await;
    world.clock.advance(Duration::from_millis(1));
    let batched =
        json!({ "endpoint": other()["endpoint"], "batching": { "maxEventsPerBatch": 10 } });
    world.subscribe_again(batched).await;
    world.publish(&[event("new")], DAY).await;
    world.deliver_all().await;
    let requests = world.endpoint.take();
    let [request] = &requests[..] else {
        panic!("one request: {requests:?}")
    };
    let events: Vec<Value> = serde_json::from_str(&request.body).unwrap();
    assert_eq!((events.len(), &events[0]["id"]), (1, &json!("new")));
    assert_eq!(letters(&world).await, [deleted("old")]);
}

/// A worker that still knows the old subscription looks again before it judges.
#[tokio::test]
async fn worker_that_knows_the_old_subscription_looks_again_to_judge() {
    let world = World::remembering(&Faults::none(), HOUR);
    world.subscribe(json!({})).await;
    world.publish(&[event("first")], DAY).await;
    world.deliver_all().await;
    assert_eq!(received(&world).len(), 1);
    // The clock of the machine that accepts it runs behind.
    world.subscribe_again(other()).await;
    let message = world.message(&[event("new")], DAY);
    let early = Timestamp::from_millis(world.clock.now().as_millis() - 10_000);
    let delivery = Delivery {
        published_at: early,
        not_before: early,
        ..parse_delivery(&message.body).unwrap()
    };
    world
        .send(QueueName::Deliveries, render_delivery(&delivery))
        .await;
    world.deliver_all().await;
    assert_eq!(
        (received(&world), letters(&world).await),
        (vec![at_other("new")], vec![])
    );
}

/// A worker that knows a record of before identities looks again before it sends.
#[tokio::test]
async fn worker_with_a_record_without_identities_looks_again() {
    let world = World::remembering(&Faults::none(), HOUR);
    world.subscribe(json!({})).await;
    let mut record = world.record().await;
    record.creations = TopicCreations::default();
    world.write_record(record.render()).await;
    let message = parse_delivery(&world.message(&[event("first")], DAY).body).unwrap();
    world
        .send(
            QueueName::Deliveries,
            render_delivery(&Delivery {
                identity: None,
                ..message
            }),
        )
        .await;
    world.deliver_all().await;
    assert_eq!(received(&world).len(), 1);
    world.subscribe_again(other()).await;
    world.publish(&[event("new")], DAY).await;
    world.deliver_all().await;
    assert_eq!(
        (received(&world), letters(&world).await),
        (vec![at_other("new")], vec![])
    );
}

#[tokio::test]
async fn events_accepted_by_an_older_program_are_judged_by_time() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let message = |world: &World, id: &str| {
        let message = world.message(&[event(id)], DAY);
        let delivery = parse_delivery(&message.body).unwrap();
        render_delivery(&Delivery {
            identity: None,
            ..delivery
        })
    };
    let old = message(&world, "old");
    world.clock.advance(2 * MINUTE);
    let just = message(&world, "just");
    world.clock.advance(MINUTE);
    world.subscribe_again(other()).await;
    for body in [old, just, message(&world, "new")] {
        world.send(QueueName::Deliveries, body).await;
    }
    world.deliver_all().await;
    let mut arrived = received(&world);
    arrived.sort();
    assert_eq!(arrived, [at_other("just"), at_other("new")]);
    assert_eq!(letters(&world).await, [deleted("old")]);
}

#[tokio::test]
async fn record_of_an_older_program_receives_events_with_an_identity() {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.publish(&[event("a")], DAY).await;
    let mut record = world.record().await;
    record.creations = TopicCreations::default();
    world.write_record(record.render()).await;
    world.deliver_all().await;
    world.publish(&[event("b")], DAY).await;
    let mut number = 100;
    let adopted = record
        .clone()
        .with_identities(Some(&record), world.clock.now(), || {
            number += 1;
            posthaste_core::model::CreationId::new([number; 6])
        });
    world.write_record(adopted.render()).await;
    world.deliver_all().await;
    let ids: Vec<_> = received(&world).into_iter().map(|(_, id)| id).collect();
    assert_eq!(
        (ids, letters(&world).await),
        (vec!["a".to_owned(), "b".to_owned()], vec![])
    );
}

#[tokio::test]
async fn a_late_answer_to_the_old_one_still_counts() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let message = world.message(&[event("old")], DAY);
    let delivery = Delivery {
        timed_out: true,
        ..parse_delivery(&message.body).unwrap()
    };
    let note = layout::late_answer_key(
        &delivery.topic,
        &delivery.subscription,
        &delivery.events[0].key,
    );
    world.write_state(&note, String::new()).await;
    world.subscribe_again(other()).await;
    world
        .send(QueueName::Deliveries, render_delivery(&delivery))
        .await;
    world.deliver_all().await;
    assert_eq!((received(&world), letters(&world).await), (vec![], vec![]));
}

/// A world with the dead letter of an event.
async fn left_a_letter() -> World {
    let world = World::new();
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::Status(400)]);
    world.publish(&[event("old")], DAY).await;
    world.deliver_all().await;
    assert_eq!(letters(&world).await.len(), 1);
    world.endpoint.take();
    world.clock.advance(HOUR);
    world
}

/// A replay takes only what this creation accepted, unless former ones are asked for.
#[tokio::test]
async fn replay_takes_letters_of_this_creation_unless_asked() {
    let world = left_a_letter().await;
    world.subscribe_again(other()).await;
    for (request, expected) in [
        (json!({}), vec![]),
        (json!({ "includeFormer": true }), vec![at_other("old")]),
    ] {
        let id = world.replay(request).await;
        world.wake().await;
        world.deliver_all().await;
        let replay = world.replayed(&id).await;
        assert_eq!(
            (replay.state, received(&world)),
            (ReplayState::Done, expected.clone())
        );
        assert_eq!(replay.progress.queued, expected.len() as u64);
        world.clock.advance(MINUTE);
    }
}

#[tokio::test]
async fn a_replay_ends_with_the_subscription_that_asked_for_it() {
    let world = left_a_letter().await;
    let id = world.replay(json!({ "includeFormer": true })).await;
    world.subscribe_again(other()).await;
    world.wake().await;
    world.deliver_all().await;
    let replay = world.replayed(&id).await;
    let end = (replay.state, replay.reason, received(&world));
    assert_eq!(
        end,
        (
            ReplayState::Cancelled,
            Some(ReplayReason::SubscriptionDeleted),
            vec![]
        )
    );
}

/// Neither a replay nor a force ends by a record that is known from before.
#[tokio::test]
async fn outdated_record_ends_neither_a_replay_nor_a_force() {
    let blind = FaultPlan::at(CallFault::Before(ErrorKind::Other), |effect| {
        effect.key.starts_with(layout::TOPICS)
    });
    blind.switch(false);
    let world = World::with(&Faults::in_state(&blind));
    world.subscribe(json!({})).await;
    let former = world.replay(json!({})).await;
    world.wake().await;
    assert_eq!(world.replayed(&former).await.state, ReplayState::Done);
    world.subscribe_again(other()).await;
    let id = world.replay(json!({})).await;
    let folder = (
        TopicName::parse("orders").unwrap(),
        SubscriptionName::parse("billing").unwrap(),
    );
    let mark = layout::force_request_key(&folder.0, &folder.1);
    world
        .write_state(&mark, format!(r#"{{"identity":"{}"}}"#, world.identity()))
        .await;
    blind.switch(true);
    world.clock.advance(MINUTE);
    world.wake().await;
    assert_ne!(world.replayed(&id).await.state, ReplayState::Cancelled);
    assert_eq!(world.keys(layout::FORCING).await, [mark]);
    blind.switch(false);
    world.clock.advance(MINUTE);
    world.wake().await;
    assert_eq!(world.replayed(&id).await.state, ReplayState::Done);
    assert_eq!(world.keys(layout::FORCING).await, [""; 0]);
}

#[tokio::test]
async fn replayed_event_that_waits_does_not_reach_the_next_creation() {
    let world = left_a_letter().await;
    world.replay(json!({})).await;
    world.wake().await;
    world.subscribe_again(other()).await;
    world.deliver_all().await;
    assert_eq!(received(&world), []);
    let reasons: Vec<_> = letters(&world)
        .await
        .into_iter()
        .map(|(_, reason)| reason)
        .collect();
    assert_eq!(
        reasons,
        ["SubscriptionDeleted", "UndeliverableDueToClientError"]
    );
}

#[tokio::test]
async fn a_force_of_the_old_one_forces_nothing_of_the_next_one() {
    let parked_and_forced = async |is_again: bool| {
        let world = World::new();
        let hourly = json!({ "retryPolicy": { "schedule": ["PT1H"] } });
        world.subscribe(hourly.clone()).await;
        let folder = (
            TopicName::parse("orders").unwrap(),
            SubscriptionName::parse("billing").unwrap(),
        );
        let mark = layout::force_request_key(&folder.0, &folder.1);
        world
            .write_state(&mark, format!(r#"{{"identity":"{}"}}"#, world.identity()))
            .await;
        if is_again {
            world.subscribe_again(hourly).await;
        }
        world.endpoint.answer([Answer::Status(503)]);
        world.publish(&[event("a")], DAY).await;
        world.deliver_all().await;
        assert_eq!(world.parked().await.len(), 1);
        world.wake().await;
        assert_eq!(
            world
                .local
                .state_store()
                .get(&mark)
                .await
                .unwrap()
                .map(|object| object.bytes),
            None::<Bytes>
        );
        world.parked().await.len()
    };
    assert_eq!(parked_and_forced(false).await, 0);
    assert_eq!(parked_and_forced(true).await, 1);
}

/// Notices of events that an earlier topic accepted do not reach those of the next one.
#[tokio::test]
async fn notices_of_an_earlier_topic_do_not_reach_the_next_one() {
    for (is_topic, notices) in [(false, 1), (true, 0)] {
        let world = World::new();
        world.subscribe(json!({})).await;
        world.publish(&[event("old")], DAY).await;
        if is_topic {
            world.create_topic_again(other()).await;
        } else {
            world.subscribe_again(other()).await;
        }
        world.tell_ops(json!({})).await;
        world.deliver_all().await;
        assert_eq!(letters(&world).await, [deleted("old")]);
        world.deliver_all().await;
        let told = world.endpoint.take();
        assert_eq!(told.len(), notices, "{told:?}");
        assert!(
            told.iter()
                .all(|request| request.url == "https://pager.example.com/")
        );
    }
}
