//! Messages that come again, as a queue that promises "at least once" may bring them, and
//! invocations that end badly: an event may be delivered again, and may become one more dead
//! letter. It is never lost.
//!
//! A message that comes again is its body sent again: on SQS the copy has a receipt of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_deliver::RecordsSettings;
use posthaste_ports::{ErrorKind, OutgoingMessage, QueueName, QueueSender};
use posthaste_simulation::{Answer, Faults, Letter, VISIBILITY, World, event, start};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Time of the endpoint for an answer, so that two workers' requests are under way together.
const ANSWER_TIME: Duration = Duration::from_millis(50);

/// deliver's timeout in the template.
const INVOCATION: Duration = Duration::from_mins(2);

/// A world whose first retry comes after ten seconds.
async fn world(settings: Value, answers: impl IntoIterator<Item = Answer>) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    world.subscribe(settings).await;
    world.endpoint.answer(answers);
    world
}

/// The message that publish sends for one event.
fn message(world: &World, time_to_live: Duration) -> Bytes {
    world.message(&[event("e")], time_to_live).body
}

async fn send(world: &World, body: &Bytes) {
    world.send(QueueName::Deliveries, body.clone()).await;
}

/// The number of times that each event was sent to the endpoint since the last call.
fn sent(world: &World) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    for request in world.endpoint.take() {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        *times
            .entry(body["id"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    times
}

fn of(times: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([("e".to_owned(), times)])
}

/// The reason for which each event was given up, once for each dead letter.
async fn reasons(world: &World) -> Vec<(String, String)> {
    let letters: Vec<Letter> = world.letters().await;
    letters
        .into_iter()
        .map(|letter| (letter.id, letter.reason))
        .collect()
}

fn e(reason: &str) -> (String, String) {
    ("e".to_owned(), reason.to_owned())
}

/// Two workers receive a copy of one message each, and work on it at the same time.
async fn both_deliver(world: &World) {
    let body = message(world, DAY);
    send(world, &body).await;
    send(world, &body).await;
    let one = world.another_worker(1);
    let other = world.another_worker(2);
    let both = async {
        tokio::join!(
            one.deliver_some(1, INVOCATION),
            other.deliver_some(1, INVOCATION)
        )
    };
    let (one, other) = world.in_time(Box::pin(both)).await;
    assert_eq!((one.failures, other.failures), (vec![], vec![]));
    assert_eq!(world.endpoint.most_at_once(), 2);
}

/// Two workers with the same message at once deliver its event twice and leave nothing.
#[tokio::test]
async fn two_workers_with_one_message_deliver_twice_and_leave_nothing() {
    let world = world(json!({}), [Answer::Late(ANSWER_TIME, 204)]).await;
    both_deliver(&world).await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(2), true));
    assert_eq!(reasons(&world).await, []);
}

#[tokio::test]
async fn two_workers_with_one_message_write_one_dead_letter_more() {
    let world = world(json!({}), [Answer::Late(ANSWER_TIME, 400)]).await;
    both_deliver(&world).await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(2), true));
    let refused = || e("UndeliverableDueToClientError");
    assert_eq!(reasons(&world).await, [refused(), refused()]);
}

/// Two workers with the same message at once retry it twice, and both retries arrive.
#[tokio::test]
async fn two_workers_with_one_message_retry_twice_and_both_arrive() {
    let world = world(json!({}), [Answer::Late(ANSWER_TIME, 503)]).await;
    both_deliver(&world).await;
    assert_eq!(
        (sent(&world), world.delayed(QueueName::Deliveries).await),
        (of(2), 2)
    );
    world.endpoint.answer([Answer::Status(204)]);
    world.pass(MINUTE).await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(2), true));
    assert_eq!(reasons(&world).await, []);
}

#[tokio::test]
async fn message_received_hours_after_its_deletion_delivers_again() {
    let world = world(json!({}), [Answer::Status(204)]).await;
    let body = message(&world, DAY);
    send(&world, &body).await;
    world.deliver_all().await;
    world.clock.advance(5 * HOUR);
    send(&world, &body).await;
    world.deliver_all().await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(2), true));
    assert_eq!(reasons(&world).await, []);
}

/// A message received again hours after its time to live is a dead letter and no request.
#[tokio::test]
async fn message_received_hours_after_expiry_is_one_dead_letter() {
    let world = world(json!({}), [Answer::Status(204)]).await;
    let body = message(&world, HOUR);
    send(&world, &body).await;
    world.deliver_all().await;
    world.clock.advance(5 * HOUR);
    send(&world, &body).await;
    world.deliver_all().await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(1), true));
    assert_eq!(reasons(&world).await, [e("TimeToLiveExceeded")]);
}

/// A refused message received again hours after its deletion is one dead letter more.
#[tokio::test]
async fn refused_message_received_hours_later_adds_a_dead_letter() {
    let world = world(json!({}), [Answer::Status(400)]).await;
    let body = message(&world, DAY);
    send(&world, &body).await;
    world.deliver_all().await;
    assert_eq!(reasons(&world).await.len(), 1);
    world.clock.advance(5 * HOUR);
    send(&world, &body).await;
    world.deliver_all().await;
    world.pass(MINUTE).await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(2), true));
    assert_eq!(reasons(&world).await.len(), 2);
}

/// An attempt seen after the one that followed it is delivered again and leaves nothing.
#[tokio::test]
async fn attempt_seen_after_its_successor_delivers_and_leaves_nothing() {
    let world = world(json!({}), [Answer::Status(503), Answer::Status(204)]).await;
    let first = message(&world, DAY);
    send(&world, &first).await;
    world.deliver_all().await;
    world.pass(MINUTE).await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(2), true));
    send(&world, &first).await;
    world.deliver_all().await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(1), true));
    assert_eq!(reasons(&world).await, []);
}

#[tokio::test]
async fn an_attempt_seen_after_the_last_one_is_one_dead_letter_more() {
    let once_more = json!({ "retryPolicy": { "maxDeliveryAttempts": 2, "schedule": ["PT10S"] } });
    let world = world(once_more, [Answer::Status(500)]).await;
    let first = message(&world, DAY);
    send(&world, &first).await;
    world.pass(MINUTE).await;
    assert_eq!(reasons(&world).await, [e("MaxDeliveryAttemptsExceeded")]);
    send(&world, &first).await;
    world.pass(MINUTE).await;
    assert_eq!((sent(&world), world.is_at_rest().await), (of(4), true));
    assert_eq!(reasons(&world).await.len(), 2);
}

/// One invocation, in which the clock moves whenever nothing goes on without it.
async fn deliver_over_time(world: &World) {
    let time = async {
        loop {
            world.rest().await;
            world.clock.advance_to_next();
        }
    };
    tokio::select! {
        biased;
        response = world.deliver_within(INVOCATION) => assert_eq!(response.failures, []),
        () = time => unreachable!("time has no end"),
    }
}

/// Ten messages of which the last one's event gets no answer, ever.
async fn last_one_hangs(settings: Value) -> World {
    let mut answers = vec![Answer::Status(204); 9];
    answers.push(Answer::Late(HOUR, 204));
    let world = world(settings, answers).await;
    for number in 0..10 {
        world.publish(&[event(&number.to_string())], DAY).await;
    }
    world
}

/// A batch that times out on its last event again and again delivers the others once.
#[tokio::test]
async fn batch_that_hangs_on_its_last_event_delivers_the_others_once() {
    let settings = json!({ "retryPolicy": { "maxDeliveryAttempts": 4, "schedule": ["PT10S"] } });
    let world = last_one_hangs(settings).await;
    for _ in 0..4 {
        deliver_over_time(&world).await;
        world.clock.advance(3 * MINUTE);
    }
    let expected: BTreeMap<_, _> = (0..10)
        .map(|n| (n.to_string(), if n == 9 { 4 } else { 1 }))
        .collect();
    assert_eq!((sent(&world), world.is_at_rest().await), (expected, true));
    assert_eq!(
        reasons(&world).await,
        [("9".to_owned(), "MaxDeliveryAttemptsExceeded".to_owned())]
    );
}

/// An invocation that is killed at its last event again and again loses nothing.
#[tokio::test]
async fn invocation_killed_at_its_last_event_loses_nothing() {
    let world = last_one_hangs(json!({})).await;
    for seen in [10, 1, 1] {
        let is_at_the_last = async {
            while world.endpoint.seen() < seen {
                tokio::task::yield_now().await;
            }
            world.rest().await;
            // The others are settled once they were gathered.
            world.clock.advance(RecordsSettings::EMBEDDED.gathering);
            world.rest().await;
        };
        tokio::select! {
            biased;
            response = world.deliver_within(INVOCATION) => panic!("it hangs, and not {response:?}"),
            () = is_at_the_last => {}
        }
        let times = sent(&world);
        assert_eq!((times.len(), times["9"]), (seen, 1));
        world.clock.advance(VISIBILITY);
    }
    world.endpoint.answer([Answer::Status(204)]);
    world.deliver_all().await;
    assert_eq!(sent(&world), BTreeMap::from([("9".to_owned(), 1)]));
    assert_eq!(
        (world.is_at_rest().await, reasons(&world).await),
        (true, vec![])
    );
}

/// Sends messages of one event each, as many in one call as a queue takes.
async fn publish_many(world: &World, ids: std::ops::Range<usize>) {
    let messages: Vec<OutgoingMessage> = ids
        .map(|number| world.message(&[event(&number.to_string())], DAY))
        .collect();
    for batch in messages.chunks(10) {
        let sent = world
            .local
            .queue(QueueName::Deliveries)
            .send_batch(batch.to_vec())
            .await
            .unwrap();
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    }
}

/// Five thousand records in one invocation are each delivered, retried or given up.
#[tokio::test]
async fn five_thousand_records_of_an_invocation_are_all_settled() {
    const RECORDS: usize = 5_000;
    let world = World::with_in_flight_max(4 * RECORDS);
    world.subscribe(json!({})).await;
    // One in a thousand is busy at first, and one in a thousand is refused.
    world.endpoint.answer([Answer::By(|body, now| match body {
        _ if body.contains(r#"500","#) && now == start() => 503,
        _ if body.contains(r#"250","#) => 400,
        _ => 204,
    })]);
    publish_many(&world, 0..RECORDS).await;
    let worker = world.another_worker(1);
    assert_eq!(worker.deliver_some(RECORDS, INVOCATION).await.failures, []);
    assert_eq!(sent(&world).len(), RECORDS);
    assert_eq!(
        (
            world.visible(QueueName::Deliveries).await,
            world.delayed(QueueName::Deliveries).await
        ),
        (0, 5)
    );
    world.pass(MINUTE).await;
    let again = ["500", "1500", "2500", "3500", "4500"]
        .map(|id| (id.to_owned(), 1))
        .into();
    assert_eq!((sent(&world), world.is_at_rest().await), (again, true));
    let refused: Vec<_> = reasons(&world)
        .await
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(refused, ["1250", "2250", "250", "3250", "4250"]);
}

/// Sends a message of another subscription, which is another group of the queue.
async fn publish_newcomer(world: &World) {
    let mut delivery = parse_delivery(&world.message(&[event("newcomer")], DAY).body).unwrap();
    delivery.topic = TopicName::parse("ops").unwrap();
    delivery.subscription = SubscriptionName::parse("pager").unwrap();
    let message = OutgoingMessage {
        body: render_delivery(&delivery),
        group: Some(delivery.message_group_id()),
        delay: Duration::ZERO,
    };
    let sent = world
        .local
        .queue(QueueName::Deliveries)
        .send_batch(vec![message])
        .await
        .unwrap();
    assert!(sent[0].is_ok(), "{sent:?}");
}

#[tokio::test]
async fn events_past_the_in_flight_limit_wait_and_arrive_once() {
    let world = World::with_in_flight_max(20);
    world.subscribe(json!({})).await;
    world.tell_ops(json!({})).await;
    world
        .endpoint
        .answer_at("billing", Answer::Late(ANSWER_TIME, 204));
    publish_many(&world, 0..30).await;
    let one = world.another_worker(1);
    let other = world.another_worker(2);
    let meanwhile = async {
        while world.endpoint.seen() < 10 {
            tokio::task::yield_now().await;
        }
        // A subscription has no more than half of what may be in flight: another one's event finds
        // room.
        assert_eq!(other.deliver_within(INVOCATION).await.failures, []);
        assert_eq!(world.endpoint.seen(), 10);
        publish_newcomer(&world).await;
        assert_eq!(other.deliver_within(INVOCATION).await.failures, []);
        assert_eq!(
            (
                world.endpoint.seen(),
                world.visible(QueueName::Deliveries).await
            ),
            (11, 20)
        );
        world.clock.advance(ANSWER_TIME);
    };
    let (response, ()) = tokio::join!(one.deliver_within(INVOCATION), meanwhile);
    assert_eq!(response.failures, []);
    world.in_time(Box::pin(world.deliver_all())).await;
    let times = sent(&world);
    assert!(
        times.len() == 31 && times.values().all(|times| *times == 1),
        "{times:?}"
    );
    assert_eq!(
        (world.is_at_rest().await, reasons(&world).await),
        (true, vec![])
    );
}

/// When all is throttled for half an hour, no event is lost or becomes two dead letters.
#[tokio::test]
async fn throttling_for_half_an_hour_loses_and_doubles_no_event() {
    let throttled = FaultPlan::at(
        CallFault::Before(ErrorKind::Throttled { retry_after: None }),
        |_| true,
    );
    throttled.switch(false);
    let [queues, state, bucket] = [(); 3].map(|()| throttled.clone());
    let faults = Faults {
        queues,
        state,
        bucket,
        ..Faults::none()
    };
    // The topic is known, so that requests are made and their outcome cannot be written.
    let world = World::remembering(&faults, DAY);
    world
        .subscribe(json!({ "retryPolicy": { "schedule": ["PT10S", "PT1H"] } }))
        .await;
    world.publish(&[event("before")], DAY).await;
    world.deliver_all().await;
    throttled.switch(true);
    world
        .endpoint
        .answer([Answer::By(|body, now: Timestamp| match body {
            _ if body.contains("refused") => 400,
            _ if body.contains("waits") && now < start() + 40 * MINUTE => 503,
            _ => 204,
        })]);
    for id in ["arrives", "refused", "waits"] {
        world.publish(&[event(id)], DAY).await;
    }
    for _ in 0..30 {
        world.deliver().await;
        world.try_wake().await.unwrap_err();
        world.bury().await;
        world.clock.advance(MINUTE);
    }
    assert_eq!(
        world.all_keys("").await.len(),
        1,
        "nothing but the topic was written"
    );
    throttled.switch(false);
    world.pass_by(10 * SECOND, 2 * HOUR).await;
    let times = sent(&world);
    assert_eq!((times["before"], times["arrives"]), (1, 1));
    // Once for each visibility timeout that ended in the half hour, and then as its schedule says.
    assert!(times["refused"] > 1 && times["waits"] > 1, "{times:?}");
    assert!(world.is_at_rest().await);
    let refused = (
        "refused".to_owned(),
        "UndeliverableDueToClientError".to_owned(),
    );
    assert_eq!(reasons(&world).await, [refused]);
}
