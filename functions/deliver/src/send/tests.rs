use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::delivery_log::{LogRecord, join_records, parse_records};
use posthaste_core::model::{
    AttemptOutcome, DeadLetterReason, Delivery, DeliveryLogMode, LastAttempt, SendFailure,
    Subscription,
};
use posthaste_services::{DrainMeter, LinkHealth, TopicRegistry};
use posthaste_testkit::{FaultPlan, Faulty, ManualClock, Recorded};
use serde_json::{Value, json};

use super::*;
use crate::current::CurrentSubscriptions;
use crate::invocation::DeliveryJob;
use crate::late_answers::LateAnswers;
use crate::limits::{DeliverSettings, DisablingMode};
use crate::plan::plan_requests;
use crate::rate_limit::RateLimiter;
use crate::slots::SlotLimiter;
use crate::testing::{
    Answer, START, Store, TestPorts, World, delivery, event, job, secs, subscription_named, target,
    topic_record, topic_settings,
};
use bytes::Bytes;
use posthaste_core::attempt::DrawnJitter;
use posthaste_core::pressure::OwnWait;
use posthaste_ports::{Clock, DrainSource, LookTime, ObjectStore, PutCondition};

#[test]
fn subscriptions_share_equally_and_each_fills_its_limit() {
    assert_eq!(requests_per_target(0, 10), 1000);
    assert_eq!(requests_per_target(1, 10), 1000);
    assert_eq!(requests_per_target(3, 10), 333);
    assert_eq!(requests_per_target(500, 10), 10);
    assert_eq!(requests_per_target(5000, 0), 1);
}

#[test]
fn requests_keep_their_order_by_subscription() {
    let at = |name, url: &str| subscription_named(name, json!({ "endpoint": { "url": url } }));
    let a = at("a", "https://a.example.com/1");
    let b = at("b", "https://b.example.com/");
    let c = at("c", "https://a.example.com/2");
    let of = |subscription: &Arc<Subscription>| {
        job(
            Delivery {
                subscription: subscription.name.clone(),
                ..delivery(1)
            },
            subscription,
        )
    };
    let jobs = [of(&a), of(&b), of(&c), of(&a)];
    let targets = by_target(plan_requests(&jobs, |_, _| false, || DrawnJitter::new(0.0)));
    let names = |target: &Vec<RequestPlan>| {
        target
            .iter()
            .map(|request| request.subscription.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        targets.iter().map(names).collect::<Vec<_>>(),
        [vec!["a", "a"], vec!["b"], vec!["c"]]
    );
}

/// Keeps the attempts that ended.
#[derive(Default)]
struct Kept(Mutex<Vec<EndedAttempt>>);

impl AttemptSink for Kept {
    async fn settle_attempt(&self, _: &Invocation, attempted: EndedAttempt) {
        self.0.lock().push(attempted);
    }
}

fn sender(world: &World) -> RequestSender<TestPorts> {
    sender_noting(world, DrainMeter::default())
}

fn sender_noting(world: &World, drain: DrainMeter) -> RequestSender<TestPorts> {
    sender_over(world, drain, world.links())
}

/// A sender over this knowledge about links.
fn sender_over(
    world: &World,
    drain: DrainMeter,
    links: Arc<LinkHealth<Store, ManualClock>>,
) -> RequestSender<TestPorts> {
    let state = &world.state;
    let clock = world.clock.clone();
    let settings = DeliverSettings::default();
    let current = world.current();
    let late_answers = LateAnswers::new(
        Arc::clone(state),
        clock.clone(),
        settings.late_answers_max,
        world.stopped.clone(),
    );
    RequestSender {
        admission: RequestAdmission {
            clock: clock.clone(),
            limits: settings.concurrency_limits(drain, world.stopped.clone()),
            slots: SlotLimiter::new(state, clock.clone(), world.entropy.clone()),
            rates: RateLimiter::new(Arc::clone(state), clock.clone()),
            circuit: Arc::new(world.circuit_over(links)),
            current: Arc::clone(&current),
        },
        payloads: Arc::new(PayloadReader::new(
            Arc::clone(state),
            clock.clone(),
            &settings,
        )),
        attempts: AttemptMaker {
            poster: EventPoster {
                webhook: Arc::new(world.endpoint.clone()),
                clock: clock.clone(),
                origin: settings.origin,
                sender_headers: settings.sender_headers,
                late_answers: Arc::new(late_answers),
                traces: posthaste_services::EventTraces::default(),
                lanes: None,
            },
            current,
            clock,
            entropy: world.entropy.clone(),
            delay_step: settings.delay_step,
        },
        requests_per_link_start: 8,
    }
}

/// Sends these jobs, and answers the attempts.
async fn sent(world: &World, jobs: Vec<DeliveryJob>) -> Vec<EndedAttempt> {
    let invocation = world.invocation(jobs);
    let kept = Kept::default();
    let requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
    sender(world).send_all(&invocation, requests, &kept).await;
    kept.0.into_inner()
}

/// The verdicts over the events of one message, in their order.
async fn verdicts(world: &World, events: usize, more: Value) -> Vec<EntryVerdict> {
    let attempted = sent(
        world,
        vec![job(delivery(events), &world.subscribe(more).await)],
    )
    .await;
    let mut verdicts: Vec<_> = attempted.into_iter().flat_map(|it| it.verdicts).collect();
    verdicts.sort_by_key(|(at, _)| at.entry);
    verdicts.into_iter().map(|(_, verdict)| verdict).collect()
}

fn batching(events_max: usize) -> Value {
    json!({ "batching": { "maxEventsPerBatch": events_max } })
}

fn is_refused(verdict: &EntryVerdict) -> bool {
    let refused = DeadLetterReason::UndeliverableDueToClientError;
    matches!(verdict, EntryVerdict::GiveUp { reason, last: Some(_) } if *reason == refused)
}

#[tokio::test]
async fn a_batch_arrives_in_one_request() {
    let world = World::new();
    assert_eq!(
        verdicts(&world, 3, batching(10)).await,
        [EntryVerdict::Delivered; 3]
    );
    assert_eq!(
        world.endpoint.bodies(),
        [format!("[{},{},{}]", event(0), event(1), event(2))]
    );
}

#[tokio::test]
async fn a_refused_batch_is_split_until_the_bad_event_is_alone() {
    let world = World::new();
    // All four; the first half, and its first event.
    world.endpoint.answer([400, 400, 400].map(Answer::Status));
    let verdicts = verdicts(&world, 4, batching(10)).await;
    assert!(is_refused(&verdicts[0]), "{verdicts:?}");
    assert_eq!(verdicts[1..], [EntryVerdict::Delivered; 3]);
    assert_eq!(world.endpoint.bodies().len(), 5);
}

/// An endpoint that refuses every event alike is not asked for each event.
#[tokio::test]
async fn endpoint_refusing_all_events_alike_is_not_asked_for_each() {
    let world = World::new();
    world.endpoint.answer((0..100).map(|_| Answer::Status(400)));
    let verdicts = verdicts(&world, 64, batching(100)).await;
    assert!(verdicts.len() == 64 && verdicts.iter().all(is_refused));
    assert!(
        world.endpoint.bodies().len() < 25,
        "{}",
        world.endpoint.bodies().len()
    );
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_not_asked_for_the_other_half() {
    let world = World::new();
    world.endpoint.answer([400, 410].map(Answer::Status));
    let jobs = vec![job(delivery(4), &world.subscribe(batching(10)).await)];
    let attempted = sent(&world, jobs).await;
    assert_eq!((attempted.len(), world.endpoint.bodies().len()), (1, 2));
    let gone = |verdict: &EntryVerdict| {
        matches!(
            verdict,
            EntryVerdict::GiveUp {
                reason: DeadLetterReason::EndpointGone,
                ..
            }
        )
    };
    assert!(
        attempted[0]
            .verdicts
            .iter()
            .all(|(_, verdict)| gone(verdict))
    );
    assert_eq!(attempted[0].verdicts.len(), 4);
    assert_eq!(
        attempted[0].is_to_be_disabled,
        attempted[0].subscription.retry.disable_on_gone
    );
}

#[tokio::test]
async fn an_expired_event_is_left_out_of_its_request() {
    let world = World::new();
    let mut delivery = delivery(2);
    delivery.events[0].expires_at = START;
    let attempted = sent(
        &world,
        vec![job(delivery, &world.subscribe(batching(10)).await)],
    )
    .await;
    let reason = DeadLetterReason::TimeToLiveExceeded;
    let expired = EntryVerdict::GiveUp { reason, last: None };
    let verdicts: Vec<_> = attempted[0]
        .verdicts
        .iter()
        .map(|(_, verdict)| *verdict)
        .collect();
    assert_eq!(verdicts, [expired, EntryVerdict::Delivered]);
    assert_eq!(world.endpoint.bodies(), [format!("[{}]", event(1))]);
}

#[tokio::test]
async fn a_pause_is_kept_and_what_comes_next_waits_for_its_end() {
    let world = World::new();
    world.endpoint.answer([Answer::RetryAfter(503, "30")]);
    let sender = sender(&world);
    let own = world.subscribe(json!({})).await;
    let invocation = world.invocation(vec![job(delivery(1), &own), job(delivery(1), &own)]);
    let mut requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
    let second = requests.pop();
    let kept = Kept::default();
    sender.send_all(&invocation, requests, &kept).await;
    sender
        .send_all(&invocation, second.into_iter().collect(), &kept)
        .await;
    let verdicts: Vec<_> = kept
        .0
        .into_inner()
        .into_iter()
        .map(|it| it.verdicts[0].1)
        .collect();
    assert!(
        matches!(verdicts[0], EntryVerdict::Retry { .. }),
        "{verdicts:?}"
    );
    assert_eq!(
        verdicts[1],
        EntryVerdict::Postponed {
            not_before: START + secs(30)
        }
    );
    assert_eq!(world.endpoint.bodies().len(), 1);
}

#[tokio::test]
async fn a_streak_of_failed_connections_drops_the_link() {
    let world = World::new();
    world
        .endpoint
        .answer((0..40).map(|_| Answer::Failure(SendFailure::Socket)));
    let attempted = sent(
        &world,
        vec![job(delivery(20), &world.subscribe(json!({})).await)],
    )
    .await;
    assert_eq!(
        attempted.iter().map(|it| it.verdicts.len()).sum::<usize>(),
        20
    );
    assert!(world.endpoint.links_dropped() > 0);
    assert!(world.endpoint.bodies().len() < 20);
}

#[tokio::test]
async fn a_report_that_names_an_event_fails_it_alone() {
    let world = World::new();
    world.endpoint.answer([Answer::Body(
        r#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#,
    )]);
    let batching = json!({ "maxEventsPerBatch": 10, "partialAcknowledgement": true });
    let verdicts = verdicts(&world, 3, json!({ "batching": batching })).await;
    assert_eq!([verdicts[0], verdicts[2]], [EntryVerdict::Delivered; 2]);
    assert!(
        matches!(verdicts[1], EntryVerdict::Retry { .. }),
        "{verdicts:?}"
    );
}

/// Sends a message of so many events. Answers of each event's record whether it has a webhook id,
/// and its status, result and answer.
async fn recorded(
    world: &World,
    events: usize,
    more: Value,
) -> Vec<(bool, Option<u16>, String, String)> {
    let log = DeliveryLogMode::Attempts;
    let job = DeliveryJob {
        log,
        ..job(delivery(events), &world.subscribe(more).await)
    };
    let invocation = world.invocation(vec![job]);
    let requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
    sender(world)
        .send_all(&invocation, requests, &Kept::default())
        .await;
    let kept = invocation.jobs[0].records.lock();
    let bodies = join_records(kept.values());
    let records = bodies.iter().flat_map(|body| parse_records(body).unwrap());
    let shown = |record: LogRecord| {
        assert_eq!(
            record.endpoint.as_deref(),
            Some("https://billing.example.com/hooks")
        );
        let result = record.result.as_str().to_owned();
        let answer = record.answer.unwrap_or_default();
        (
            record.webhook_id.is_some(),
            record.status,
            result,
            record.error.unwrap_or(answer),
        )
    };
    records.map(shown).collect()
}

#[tokio::test]
async fn each_event_of_a_request_has_its_record() {
    let check = async |answers: Vec<Answer>,
                       events,
                       more: Value,
                       expected: &[(bool, Option<u16>, &str, &str)]| {
        let world = World::new();
        world.endpoint.answer(answers);
        let recorded = recorded(&world, events, more).await;
        let recorded: Vec<_> = recorded
            .iter()
            .map(|it| (it.0, it.1, &*it.2, &*it.3))
            .collect();
        assert_eq!(recorded, expected);
    };
    let delivered = (true, Some(204), "delivered", "");
    check(vec![], 2, batching(10), &[delivered; 2]).await;
    let retry = (true, Some(503), "retry", "");
    check(vec![Answer::Status(503)], 1, json!({}), &[retry]).await;
    let timed_out = (true, None, "retry", "timed out without an answer");
    check(vec![Answer::Late(204)], 1, json!({}), &[timed_out]).await;
    // All three, and the first half: the bad event alone has the answer that refused it.
    let refused = (true, Some(400), "dead-lettered", "");
    let split = vec![Answer::Status(400), Answer::Status(400)];
    check(split, 2, batching(10), &[refused, delivered]).await;
    // The other half was not sent again.
    let gone = |is_sent| (is_sent, Some(410), "dead-lettered", "");
    let ends = vec![Answer::Status(400), Answer::Status(410)];
    check(ends, 2, batching(10), &[gone(true), gone(false)]).await;
    let report = r#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#;
    let batching =
        json!({ "batching": { "maxEventsPerBatch": 10, "partialAcknowledgement": true } });
    let of = |result| (true, Some(200), result, report);
    check(
        vec![Answer::Body(report)],
        2,
        batching,
        &[of("delivered"), of("retry")],
    )
    .await;
}

#[tokio::test]
async fn untried_events_are_recorded_as_waiting() {
    let world = World::new();
    world
        .endpoint
        .answer([Answer::Failure(SendFailure::Exhausted)]);
    let waits = (
        true,
        None,
        "retry".to_owned(),
        "no resources left to connect".to_owned(),
    );
    assert_eq!(recorded(&world, 1, json!({})).await, [waits]);
}

#[tokio::test]
async fn attempt_after_silence_takes_a_new_connection() {
    let check = async |failed, expected: bool| {
        let world = World::new();
        let tried = Delivery {
            last: LastAttempt::from_outcome(failed, START),
            ..delivery(1)
        };
        sent(&world, vec![job(tried, &world.subscribe(json!({})).await)]).await;
        assert_eq!(world.endpoint.new_connections(), [expected], "{failed:?}");
    };
    let answered = |status| AttemptOutcome::Answered {
        status,
        retry_after: None,
    };
    check(answered(200), false).await;
    check(answered(500), false).await;
    check(answered(408), false).await;
    check(AttemptOutcome::Failed(SendFailure::TimedOut), true).await;
    check(AttemptOutcome::Failed(SendFailure::KeptTimedOut), true).await;
    check(AttemptOutcome::Failed(SendFailure::ConnectTimedOut), false).await;
}

#[tokio::test]
async fn a_timeout_is_tried_again_whatever_comes_late() {
    let world = World::new();
    world.endpoint.answer([Answer::Late(204)]);
    let verdicts = verdicts(&world, 1, json!({})).await;
    let EntryVerdict::Retry { last, .. } = verdicts[0] else {
        panic!("{verdicts:?}")
    };
    assert!(last.had_no_answer_in_time());
}

#[tokio::test]
async fn an_attempt_that_panics_is_not_settled_and_its_neighbour_is() {
    let world = World::new();
    world.endpoint.answer([Answer::Panic]);
    let attempted = sent(
        &world,
        vec![job(delivery(2), &world.subscribe(json!({})).await)],
    )
    .await;
    assert_eq!(attempted.len(), 1);
    assert_eq!(attempted[0].verdicts[0].1, EntryVerdict::Delivered);
}

#[tokio::test]
async fn an_attempt_that_would_end_too_late_is_not_started() {
    let world = World::new();
    let invocation = world.invocation(vec![job(delivery(2), &world.subscribe(batching(10)).await)]);
    let kept = Kept::default();
    let requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
    world
        .clock
        .advance(crate::testing::INVOCATION.saturating_sub(crate::SETTLING_TIME));
    sender(&world).send_all(&invocation, requests, &kept).await;
    let attempted = kept.0.into_inner();
    assert!(
        attempted[0]
            .verdicts
            .iter()
            .all(|(_, verdict)| *verdict == EntryVerdict::NotStarted)
    );
    assert_eq!(
        (attempted[0].verdicts.len(), world.endpoint.bodies().len()),
        (2, 0)
    );
}

#[tokio::test]
async fn once_limits_are_closed_nothing_is_started() {
    let world = World::new();
    let sender = sender(&world);
    world.stopped.cancel();
    let invocation = world.invocation(vec![job(delivery(1), &world.subscribe(json!({})).await)]);
    let kept = Kept::default();
    let requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
    sender.send_all(&invocation, requests, &kept).await;
    assert_eq!(
        kept.0.into_inner()[0].verdicts[0].1,
        EntryVerdict::NotStarted
    );
    assert_eq!(world.endpoint.urls().len(), 0);
}

/// An endpoint that answers the first request, and a change that is made before the second.
async fn bodies_around(world: &World, change: impl Future<Output = ()>) -> (usize, EntryVerdict) {
    let sender = sender(world);
    let own = world.subscribe(json!({})).await;
    let invocation = world.invocation(vec![job(delivery(1), &own), job(delivery(1), &own)]);
    let mut requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
    let kept = Kept::default();
    let second = requests.split_off(1);
    sender.send_all(&invocation, requests, &kept).await;
    change.await;
    sender.send_all(&invocation, second, &kept).await;
    let verdict = kept.0.lock()[1].verdicts[0].1;
    (world.endpoint.bodies().len(), verdict)
}

/// A subscription that changed while a request waited: the request goes back as it came.
#[tokio::test]
async fn changed_subscription_sends_waiting_requests_back() {
    for change in [
        json!({ "endpoint": { "url": "https://new.example.com/" } }),
        json!({ "deliveryHeaders": [{ "name": "x-token", "value": "new" }] }),
        json!({ "status": { "state": "Paused", "since": "2023-01-01T00:00:00Z" } }),
        json!({ "status": { "state": "Disabled", "since": "2023-01-01T00:00:00Z" } }),
    ] {
        let world = World::new();
        let changed = async {
            world.subscribe(change.clone()).await;
        };
        let expected = (1, EntryVerdict::NotStarted);
        assert_eq!(bodies_around(&world, changed).await, expected, "{change}");
    }
}

/// A change while a request waits for its connection, which may take as long as its timeout.
#[tokio::test]
async fn changed_subscription_sends_connecting_requests_back() {
    let world = World::new();
    let own = world.subscribe(json!({})).await;
    let store = world.memory.clone();
    let endpoint = world.endpoint.clone();
    let paused = json!({ "status": { "state": "Paused", "since": "2023-01-01T00:00:00Z" } });
    let record = topic_record(topic_settings(&paused)).render();
    endpoint.when_connecting(move || store.write("topics/orders.json", record.clone()));
    let attempted = sent(&world, vec![job(delivery(1), &own)]).await;
    assert_eq!(attempted[0].verdicts[0].1, EntryVerdict::NotStarted);
    assert_eq!(world.endpoint.bodies().len(), 0);
}

/// The keys of the events tell them apart.
#[tokio::test]
async fn refusals_of_ten_events_hold_their_subscription() {
    for (is_one_event, is_held) in [(false, true), (true, false)] {
        let world = World::new();
        let own = world.subscribe(json!({})).await;
        let answers = (0..10).map(|_| Answer::Status(401));
        world.endpoint.answer(answers);
        let refused = |number: usize| {
            let mut delivery = delivery(1);
            if !is_one_event {
                delivery.events[0].key = format!("k-{number}");
            }
            job(delivery, &own)
        };
        let links = world.links();
        let sender = sender_over(&world, DrainMeter::default(), links.clone());
        let kept = Kept::default();
        let invocation = world.invocation((0..10).map(refused).collect());
        let requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
        sender.send_all(&invocation, requests, &kept).await;
        let condition = links.condition(&target(&own));
        assert_eq!(condition.is_some_and(|it| it.refused), is_held);
    }
}

#[tokio::test]
async fn unchanged_subscription_lets_connecting_requests_begin() {
    let world = World::new();
    let own = world.subscribe(json!({})).await;
    world.endpoint.when_connecting(|| ());
    let attempted = sent(&world, vec![job(delivery(1), &own)]).await;
    assert_eq!(attempted[0].verdicts[0].1, EntryVerdict::Delivered);
}

/// A subscription, or its whole topic, that was deleted while a request waited.
#[tokio::test]
async fn deleted_subscription_sends_waiting_requests_back() {
    let world = World::new();
    let unsubscribed = world.write_topic(serde_json::from_value(json!({})).unwrap());
    let expected = (1, EntryVerdict::NotStarted);
    assert_eq!(bodies_around(&world, unsubscribed).await, expected);
    let world = World::new();
    let deleted = async {
        world.memory.delete("topics/orders.json").await.unwrap();
    };
    assert_eq!(bodies_around(&world, deleted).await, expected);
}

/// An edit that changes nothing of the request, and a record that cannot be read.
#[tokio::test]
async fn other_edits_let_waiting_requests_begin() {
    let world = World::new();
    let edited = async {
        let filter = json!({ "filter": { "includedEventTypes": ["other"] } });
        world.subscribe(filter).await;
    };
    let expected = (2, EntryVerdict::Delivered);
    assert_eq!(bodies_around(&world, edited).await, expected);
    let world = World::new();
    let broken = async {
        let bytes = Bytes::from_static(b"?");
        let put = world
            .memory
            .put("topics/orders.json", bytes, PutCondition::Always);
        put.await.unwrap();
    };
    assert_eq!(bodies_around(&world, broken).await, expected);
}

/// A batch that is refused is sent in halves, which are requests of their own.
#[tokio::test]
async fn changed_subscription_stops_the_halves_of_a_batch() {
    let world = World::new();
    world.endpoint.answer([Answer::Status(400)]);
    let own = world.subscribe(batching(10)).await;
    let store = world.memory.clone();
    let paused = json!({ "status": { "state": "Paused", "since": "2023-01-01T00:00:00Z" } });
    let record = topic_record(topic_settings(&paused)).render();
    let pause = move || store.write("topics/orders.json", record.clone());
    world.endpoint.when_asked(pause);
    let attempted = sent(&world, vec![job(delivery(4), &own)]).await;
    let verdicts: Vec<_> = attempted[0].verdicts.iter().map(|it| it.1).collect();
    assert_eq!(verdicts, [EntryVerdict::NotStarted; 4]);
    assert_eq!(world.endpoint.bodies().len(), 1);
}

/// An endpoint that is gone gets no request that waited, though the record does not say it yet. It
/// is not lost either: where the URL is corrected, it goes there.
#[tokio::test]
async fn gone_endpoint_gets_no_request_that_waited() {
    let world = World::new();
    world.endpoint.answer([Answer::Status(410)]);
    let not_before = START + secs(1);
    let expected = (1, EntryVerdict::Postponed { not_before });
    assert_eq!(bodies_around(&world, async {}).await, expected);
}

/// The waits for places of their own that are noted while the events of these messages are sent.
async fn own_waits(world: &World, jobs: Vec<DeliveryJob>) -> Vec<OwnWait> {
    let drain = DrainMeter::default();
    let invocation = world.invocation(jobs);
    let kept = Kept::default();
    let requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
    let sender = sender_noting(world, drain.clone());
    sender.send_all(&invocation, requests, &kept).await;
    let time = LookTime {
        now: world.clock.monotonic(),
        elapsed: secs(2),
    };
    let look = drain.measure_drain(0, time).await.unwrap().unwrap();
    let waits = look.subscriptions.into_iter().map(|of| of.own_wait);
    waits.collect()
}

/// The first half is answered with a pause, which begins while the second one waits.
#[tokio::test]
async fn request_that_is_turned_back_at_its_turn_waits_for_itself() {
    let world = World::new();
    let pause = Answer::RetryAfter(429, "30");
    world.endpoint.answer([Answer::Status(400), pause]);
    let own = world.subscribe(batching(10)).await;
    let waits = own_waits(&world, vec![job(delivery(4), &own)]).await;
    assert_eq!(world.endpoint.bodies().len(), 2);
    assert_eq!(waits, [OwnWait::Now]);
}

#[tokio::test]
async fn request_to_a_gone_endpoint_waits_for_nothing_of_its_own() {
    let world = World::new();
    world.endpoint.answer([Answer::Status(410)]);
    let own = world.subscribe(json!({})).await;
    let jobs = vec![job(delivery(1), &own), job(delivery(1), &own)];
    assert_eq!(own_waits(&world, jobs).await, []);
}

/// A 410 that does not disable the subscription speaks of its event alone.
#[tokio::test]
async fn gone_event_of_a_subscription_that_stays_stops_no_other() {
    let world = World::new();
    world.endpoint.answer([Answer::Status(410)]);
    let own = world
        .subscribe(json!({ "retryPolicy": { "disableOnGone": false } }))
        .await;
    let jobs = vec![job(delivery(1), &own), job(delivery(1), &own)];
    let attempted = sent(&world, jobs).await;
    assert_eq!(world.endpoint.bodies().len(), 2);
    assert!(attempted.iter().all(|it| !it.is_to_be_disabled));
}

/// The policy that was changed during an attempt judges it.
#[tokio::test]
async fn attempt_is_judged_by_the_policy_at_its_end() {
    let world = World::new();
    world
        .endpoint
        .answer([Answer::Status(503), Answer::Status(410)]);
    let before = world
        .subscribe(json!({ "retryPolicy": { "maxDeliveryAttempts": 1 } }))
        .await;
    let jobs = || vec![job(delivery(1), &before)];
    world.subscribe(json!({})).await;
    let attempted = sent(&world, jobs()).await;
    let verdict = attempted[0].verdicts[0].1;
    assert!(matches!(verdict, EntryVerdict::Retry { .. }), "{verdict:?}");
    let stays = json!({ "retryPolicy": { "disableOnGone": false } });
    world.subscribe(stays).await;
    assert!(!sent(&world, jobs()).await[0].is_to_be_disabled);
}

#[tokio::test]
async fn panicked_request_frees_its_slot_for_the_next() {
    let world = World::new();
    world.endpoint.answer([Answer::Panic]);
    let url = "https://billing.example.com/hooks";
    let bounded = json!({ "endpoint": { "url": url, "maxConcurrentRequests": 1 } });
    let own = world.subscribe(bounded).await;
    let jobs = vec![job(delivery(1), &own), job(delivery(1), &own)];
    let attempted = sent(&world, jobs).await;
    let verdicts = attempted.into_iter().flat_map(|it| it.verdicts);
    let verdicts: Vec<_> = verdicts.map(|(_, verdict)| verdict).collect();
    assert_eq!(verdicts, [EntryVerdict::Delivered]);
    let object = world.memory.get("slots/orders.billing.json").await.unwrap();
    let state: Value = serde_json::from_slice(&object.unwrap().bytes).unwrap();
    assert_eq!(state["leases"], json!([]));
}

/// Sends these jobs, and the clock moves on whenever all of them wait.
async fn sent_in_time(
    world: &World,
    sender: &RequestSender<TestPorts>,
    jobs: Vec<DeliveryJob>,
) -> Vec<EntryVerdict> {
    let invocation = world.invocation(jobs);
    let kept = Kept::default();
    let requests = plan_requests(&invocation.jobs, |_, _| false, || DrawnJitter::new(0.0));
    let time = async {
        loop {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            world.clock.advance_to_next();
        }
    };
    tokio::select! {
        biased;
        () = sender.send_all(&invocation, requests, &kept) => {}
        () = time => unreachable!("time goes on"),
    }
    let verdicts = kept.0.into_inner().into_iter().flat_map(|it| it.verdicts);
    verdicts.map(|(_, verdict)| verdict).collect()
}

/// A token comes each 7.5 s, and each part takes 3 s: the lease of 20 s ends while the fourth part
/// waits for its token.
#[tokio::test]
async fn wait_for_the_rate_that_outlasts_the_lease_costs_no_attempt() {
    let world = World::new();
    world
        .endpoint
        .answer([Answer::Status(400), Answer::Status(400)]);
    let clock = world.clock.clone();
    world.endpoint.when_asked(move || clock.advance(secs(3)));
    let bounded = json!({
        "endpoint": {
            "url": "https://billing.example.com/hooks",
            "timeout": "PT10S",
            "maxConcurrentRequests": 1,
            "maxRequestsPerSecond": 0.134,
        },
        "batching": { "maxEventsPerBatch": 10 },
    });
    let own = world.subscribe(bounded).await;
    let jobs = vec![job(delivery(4), &own)];
    let verdicts = sent_in_time(&world, &sender(&world), jobs).await;
    assert_eq!(verdicts, [EntryVerdict::Delivered; 4]);
}

/// Asking whether the subscription has changed takes longer than the lease lasts.
#[tokio::test]
async fn lease_that_ends_right_before_the_request_is_renewed() {
    let world = World::new();
    let clock = world.clock.clone();
    let plan = FaultPlan::by(move |effect| {
        if effect.number == 0 {
            clock.advance(secs(21));
        }
        None
    });
    let topics = Recorded::new(world.memory.clone(), "topics", &world.calls);
    let topics = Faulty::new(topics, "topics", &plan);
    let registry = TopicRegistry::new(topics, world.clock.clone(), Duration::ZERO);
    let current = CurrentSubscriptions::new(
        Arc::new(registry),
        world.clock.clone(),
        DisablingMode::AtOnce,
    );
    let current = Arc::new(current);
    let mut sender = sender(&world);
    sender.admission.current = Arc::clone(&current);
    sender.attempts.current = current;
    let url = "https://billing.example.com/hooks";
    let bounded = json!({ "endpoint": { "url": url, "maxConcurrentRequests": 1 } });
    let own = world.subscribe(bounded).await;
    let jobs = vec![job(delivery(1), &own)];
    let verdicts = sent_in_time(&world, &sender, jobs).await;
    assert_eq!(verdicts, [EntryVerdict::Delivered]);
    // It was asked again after the wait.
    assert_eq!(plan.effects(), 2);
}
