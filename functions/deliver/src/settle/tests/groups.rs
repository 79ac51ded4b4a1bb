//! Groups: messages with records of the delivery log share a message of records.

use std::time::Duration;

use posthaste_core::delivery_log::{LogRecord, LogResult, RecordKind};
use posthaste_core::model::DeliveryLogMode;
use posthaste_ports::ReceiptHandle;

use super::*;
use posthaste_services::delivery_log::RECORDS_TIME;

const DELIVERED: [EntryVerdict; 1] = [EntryVerdict::Delivered];

/// An invocation with this number of messages of one event each, which are logged.
async fn logged(world: &World, messages: usize) -> Invocation {
    let mut batch = Vec::new();
    for _ in 0..messages {
        batch.push(world.received().await);
    }
    let mut invocation = world.invocation_of(&batch);
    let own = subscription(json!({}));
    let jobs = batch.iter().map(MessageHandle::from_message);
    let log = DeliveryLogMode::Payloads;
    invocation.jobs = jobs
        .map(|message| DeliveryJob {
            message,
            log,
            ..job(delivery(1), &own)
        })
        .collect();
    invocation
}

/// An attempt at the event of each message, one for each verdict.
fn attempts(invocation: &Invocation, verdicts: &[EntryVerdict]) -> Vec<EndedAttempt> {
    let attempt = |(job, verdict): (usize, &EntryVerdict)| EndedAttempt {
        verdicts: vec![(EntryRef { job, entry: 0 }, *verdict)],
        ..attempted(invocation, &[])
    };
    verdicts.iter().enumerate().map(attempt).collect()
}

fn beside(world: &World) -> MessageSettler<TestPorts> {
    let mut settler = settler(world);
    settler.records.settings = RecordsSettings::AWS;
    settler
}

/// Settles a message for each verdict. Answers the records by message, and how many messages are
/// reported as failed.
async fn recorded(
    world: &World,
    settler: MessageSettler<TestPorts>,
    verdicts: &[EntryVerdict],
) -> (Vec<Vec<LogRecord>>, usize) {
    let invocation = logged(world, verdicts.len()).await;
    settle(&settler, &invocation, attempts(&invocation, verdicts)).await;
    (world.recorded(), invocation.into_response().failures.len())
}

/// The calls of the queues, in their order.
fn calls(world: &World) -> Vec<(&'static str, PortOperation)> {
    world
        .calls
        .all()
        .into_iter()
        .map(|call| (call.port, call.operation))
        .collect()
}

/// Runs work that waits for the clock.
async fn run<T>(world: &World, work: impl Future<Output = T>) -> (T, Duration) {
    use posthaste_ports::Clock;
    let began = world.clock.monotonic();
    let mut work = std::pin::pin!(work);
    for _ in 0..1000 {
        tokio::select! {
            biased;
            done = &mut work => return (done, world.clock.monotonic().saturating_sub(began)),
            () = tokio::task::yield_now() => {}
        }
        world.clock.advance_to_next();
    }
    panic!("the work does not end");
}

#[tokio::test]
async fn without_the_log_a_message_is_settled_at_once() {
    let world = World::new();
    let mut invocation = logged(&world, 1).await;
    invocation.jobs[0].log = DeliveryLogMode::Off;
    let settler = settler(&world);
    let (settling, _recorded) = settler.begin_settling(&invocation);
    let [attempt] = attempts(&invocation, &DELIVERED).try_into().unwrap();
    settling.settle_attempt(&invocation, attempt).await;
    assert_eq!(calls(&world), [("queue", PortOperation::Acknowledge)]);
    assert_eq!(world.recorded().len(), 0);
}

/// Records travel in the transaction that replaces the first message.
#[tokio::test]
async fn records_share_the_transaction_of_the_first_replacement() {
    let world = World::new();
    let verdicts = [
        EntryVerdict::Delivered,
        retry(START + secs(60)),
        EntryVerdict::Delivered,
    ];
    let (records, failed) = recorded(&world, settler(&world), &verdicts).await;
    assert_eq!(failed, 0);
    assert_eq!(records.iter().map(Vec::len).collect::<Vec<_>>(), [3]);
    let acknowledged = ("queue", PortOperation::Acknowledge);
    assert_eq!(
        calls(&world),
        [
            ("queue", PortOperation::Replace),
            acknowledged,
            acknowledged
        ]
    );
    assert!(
        records[0]
            .iter()
            .all(|record: &LogRecord| record.kind == RecordKind::Attempt)
    );
}

/// No transaction stands between a delivered message and its acknowledgement.
#[tokio::test]
async fn delivered_messages_are_acknowledged_without_a_transaction() {
    let world = World::new();
    let (records, failed) = recorded(&world, settler(&world), &[EntryVerdict::Delivered; 3]).await;
    assert_eq!(
        (records.iter().map(Vec::len).collect::<Vec<_>>(), failed),
        (vec![3], 0)
    );
    let acknowledged = ("queue", PortOperation::Acknowledge);
    let sent = ("records", PortOperation::SendBatch);
    assert_eq!(
        calls(&world),
        [sent, acknowledged, acknowledged, acknowledged]
    );
    assert!(
        records[0]
            .iter()
            .all(|record: &LogRecord| record.result == LogResult::Delivered)
    );
}

/// Records that are sent by themselves are durable before the first message is settled.
#[tokio::test]
async fn separately_sent_records_are_durable_before_settling() {
    let world = World::new();
    let (records, failed) = recorded(&world, beside(&world), &[EntryVerdict::Delivered; 2]).await;
    assert_eq!((records.len(), records[0].len(), failed), (1, 2, 0));
    let acknowledged = ("queue", PortOperation::Acknowledge);
    assert_eq!(
        calls(&world),
        [
            ("records", PortOperation::SendBatch),
            acknowledged,
            acknowledged
        ]
    );
}

#[tokio::test]
async fn successors_and_records_share_a_transaction() {
    let world = World::new();
    let (records, failed) = recorded(
        &world,
        settler(&world),
        &[retry(START + secs(60)), give_up()],
    )
    .await;
    assert_eq!((records.len(), failed), (1, 0));
    let shown = records[0].iter().map(|record| (record.kind, record.result));
    let expected = [
        (RecordKind::Attempt, LogResult::Retry),
        (RecordKind::GivenUp, LogResult::DeadLettered),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    // What is given up is judged by the policy as it is now, and by whether its endpoint is well.
    let replaced = ("queue", PortOperation::Replace);
    let [topic, link] = ["topics", "links"].map(|store| (store, PortOperation::Get));
    let expected = [topic, link, replaced, replaced];
    assert_eq!(calls(&world), expected);
    assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
    assert_eq!(world.sent(QueueName::DeadLetters).await.len(), 1);
}

/// Records of messages that wait in the object store are sent by themselves.
#[tokio::test]
async fn records_of_stored_deliveries_are_sent_separately() {
    let world = World::new();
    let invocation = logged(&world, 2).await;
    settle(
        &settler(&world),
        &invocation,
        attempts(&invocation, &[EntryVerdict::Held; 2]),
    )
    .await;
    let records = world.recorded();
    assert_eq!(
        (records.len(), records[0].len(), records[0][0].kind),
        (1, 2, RecordKind::Held)
    );
    assert_eq!(calls(&world), [("records", PortOperation::SendBatch)]);
    assert_eq!(invocation.take_waiting().len(), 2);
}

#[tokio::test]
async fn messages_without_an_attempt_are_recorded_too() {
    let world = World::new();
    let invocation = logged(&world, 2).await;
    invocation
        .jobs
        .iter()
        .for_each(|job| drop(job.note_verdict(0, give_up())));
    settle(&settler(&world), &invocation, Vec::new()).await;
    assert_eq!(world.recorded()[0].len(), 2);
    assert_eq!(invocation.into_response().failures.len(), 0);
}

#[tokio::test]
async fn events_that_go_back_untried_are_recorded_the_first_time() {
    let world = World::new();
    let postponed = EntryVerdict::Postponed {
        not_before: START + secs(9),
    };
    let verdicts = [EntryVerdict::NotStarted, postponed];
    let (records, failed) = recorded(&world, settler(&world), &verdicts).await;
    let kinds: Vec<_> = records.iter().flatten().map(|record| record.kind).collect();
    assert_eq!((kinds, failed), (vec![RecordKind::Waiting; 2], 0));
    assert_eq!(world.sent(QueueName::Deliveries).await.len(), 2);
}

/// Settles messages while another attempt of the invocation is under way. Answers how long it takes
/// until the first one is settled, and how many records are sent by then.
async fn settled_after(
    world: &World,
    settler: MessageSettler<TestPorts>,
    invocation: &Invocation,
) -> (Duration, usize) {
    use posthaste_ports::Clock;
    let (settling, recorded) = settler.begin_settling(invocation);
    let under_way = async move {
        for attempt in attempts(
            invocation,
            &vec![EntryVerdict::Delivered; invocation.jobs.len()],
        ) {
            settling.settle_attempt(invocation, attempt).await;
        }
        rest().await;
        while world.calls.count(PortOperation::Acknowledge) == 0 {
            world.clock.advance_to_next();
            rest().await;
        }
        let records = world.recorded().iter().map(Vec::len).sum();
        let after = world.clock.monotonic();
        drop(settling);
        world.clock.advance(RECORDS_TIME);
        (after, records)
    };
    tokio::join!(under_way, settler.settle_recorded(invocation, recorded)).0
}

/// Lets everything go on that needs no time.
async fn rest() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// A group is gathered for a while, as long as attempts are under way.
#[tokio::test]
async fn group_gathers_for_a_while_during_attempts() {
    let world = World::new();
    let invocation = logged(&world, 3).await;
    let after = settled_after(&world, settler(&world), &invocation).await;
    assert_eq!(after, (RecordsSettings::EMBEDDED.gathering, 3));
    let world = World::new();
    let invocation = logged(&world, 3).await;
    let after = settled_after(&world, beside(&world), &invocation).await;
    assert_eq!(after, (RecordsSettings::AWS.gathering, 3));
}

#[tokio::test]
async fn a_full_group_is_settled_at_once() {
    let world = World::new();
    let mut invocation = logged(&world, 20).await;
    for job in &mut invocation.jobs {
        let large = format!("{{\"id\":\"1\",\"data\":\"{}\"}}", "x".repeat(60_000));
        job.delivery.events[0].payload = posthaste_core::model::EventPayload::Inline(large.into());
    }
    assert_eq!(
        settled_after(&world, settler(&world), &invocation).await,
        (Duration::ZERO, 14)
    );
    assert_eq!(
        world.recorded().iter().map(Vec::len).collect::<Vec<_>>(),
        [6]
    );
}

fn refuses(operation: PortOperation) -> FaultPlan {
    FaultPlan::at(CallFault::Before(ErrorKind::Other), move |effect| {
        effect.operation == operation
    })
}

fn hangs(operation: PortOperation) -> FaultPlan {
    FaultPlan::at(CallFault::HangBefore, move |effect| {
        effect.operation == operation
    })
}

fn panics(operation: PortOperation) -> FaultPlan {
    FaultPlan::by(move |effect| {
        assert!(effect.operation != operation, "as the test wants it");
        None
    })
}

/// Settles three delivered messages. Answers how long that takes.
async fn delivered(world: &World, settler: MessageSettler<TestPorts>) -> Duration {
    let verdicts = [EntryVerdict::Delivered; 3];
    let ((records, failed), took) = run(world, recorded(world, settler, &verdicts)).await;
    assert_eq!(
        (
            records.len(),
            failed,
            world.calls.count(PortOperation::Acknowledge)
        ),
        (0, 0, 3)
    );
    took
}

/// Messages are settled even if the queue refuses their records, panics or hangs.
#[tokio::test]
async fn messages_are_settled_though_their_records_are_refused() {
    let plans: [fn(PortOperation) -> FaultPlan; 3] = [refuses, panics, hangs];
    for (plan, expected) in plans
        .into_iter()
        .zip([Duration::ZERO, Duration::ZERO, RECORDS_TIME])
    {
        for way in [settler, beside] {
            let world = World::with_queues(&FaultPlan::none(), &plan(PortOperation::SendBatch));
            assert_eq!(delivered(&world, way(&world)).await, expected);
        }
    }
}

/// A message that is tried again is settled without the records that the queue refused.
#[tokio::test]
async fn retried_message_is_settled_without_its_refused_records() {
    let world = World::with_queues(
        &FaultPlan::nth(0, CallFault::Before(ErrorKind::Full)),
        &FaultPlan::none(),
    );
    let (records, failed) = recorded(&world, settler(&world), &[retry(START)]).await;
    assert_eq!((records.len(), failed), (0, 0));
    assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
}

#[tokio::test]
async fn records_are_not_lost_with_a_transaction_that_fails_once() {
    for kind in [ErrorKind::Other, ErrorKind::TimedOut] {
        let world = World::with_queues(
            &FaultPlan::nth(0, CallFault::Before(kind)),
            &FaultPlan::none(),
        );
        let verdicts = [retry(START), EntryVerdict::Delivered];
        let (records, failed) = recorded(&world, settler(&world), &verdicts).await;
        assert_eq!((records.len(), failed), (1, 0), "{kind:?}");
        assert_eq!(records[0].len(), 2, "{kind:?}");
        assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
    }
}

#[tokio::test]
async fn a_group_that_waits_for_its_records_does_not_delay_the_next() {
    let is_first = |effect: posthaste_testkit::faulty::PortEffect<'_>| {
        effect.operation == PortOperation::SendBatch
    };
    let world = World::with_queues(
        &FaultPlan::none(),
        &FaultPlan::nth_of(0, CallFault::HangBefore, is_first),
    );
    let mut invocation = logged(&world, 20).await;
    for job in &mut invocation.jobs {
        let large = format!("{{\"id\":\"1\",\"data\":\"{}\"}}", "x".repeat(60_000));
        job.delivery.events[0].payload = posthaste_core::model::EventPayload::Inline(large.into());
    }
    // The second group is gathered for a second. The first would be settled after two.
    let after = settled_after(&world, beside(&world), &invocation).await;
    assert_eq!(after, (RecordsSettings::AWS.gathering, 6));
}

#[tokio::test]
async fn records_are_not_lost_with_a_message_that_another_worker_has() {
    let world = World::new();
    let mut invocation = logged(&world, 2).await;
    invocation.jobs[0].message.receipt = ReceiptHandle("stale".into());
    settle(
        &settler(&world),
        &invocation,
        attempts(&invocation, &[retry(START), EntryVerdict::Delivered]),
    )
    .await;
    assert_eq!(
        world.recorded().iter().map(Vec::len).collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(invocation.into_response().failures.len(), 0);
}

/// A message that a failed transaction may still keep is handed back.
#[tokio::test]
async fn message_kept_by_a_failed_transaction_is_handed_back() {
    let tries = std::sync::atomic::AtomicU64::new(0);
    let keeps = FaultPlan::by(move |effect| {
        let faults = [ErrorKind::Other, ErrorKind::NotFound].map(CallFault::Before);
        let is_replace = effect.operation == PortOperation::Replace;
        let number = is_replace.then(|| tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst))?;
        faults.into_iter().nth(usize::try_from(number).ok()?)
    });
    let world = World::with_queues(&keeps, &FaultPlan::none());
    let (records, failed) = recorded(&world, settler(&world), &[retry(START)]).await;
    assert_eq!((records.len(), failed), (1, 1));
}

#[tokio::test]
async fn a_message_that_is_slow_to_prepare_delays_no_other() {
    use posthaste_ports::Clock;
    let world = World::with(
        &FaultPlan::at(CallFault::HangBefore, |_| true),
        &FaultPlan::none(),
    );
    let mut invocation = logged(&world, 3).await;
    let noted = subscription(json!({ "autoDeleteOnIdle": "PT10M" }));
    invocation.jobs[0].subscription = Some(noted);
    let verdicts = [
        retry(START + secs(60)),
        EntryVerdict::Delivered,
        EntryVerdict::Delivered,
    ];
    let at = |job| EntryRef { job, entry: 0 };
    let attempted = EndedAttempt {
        subscription: invocation.jobs[1]
            .subscription
            .clone()
            .expect("a subscription"),
        verdicts: verdicts
            .iter()
            .enumerate()
            .map(|(job, verdict)| (at(job), *verdict))
            .collect(),
        is_to_be_disabled: false,
    };
    let settler = settler(&world);
    let (settling, recorded) = settler.begin_settling(&invocation);
    let of = &invocation;
    let attempt = async move { settling.settle_attempt(of, attempted).await };
    let look = async {
        rest().await;
        world.clock.advance(RecordsSettings::EMBEDDED.gathering);
        rest().await;
        let records: Vec<_> = world.recorded().iter().map(Vec::len).collect();
        assert_eq!(
            (records, world.calls.count(PortOperation::Acknowledge)),
            (vec![2], 2)
        );
        world.clock.advance(of.deadlines.end);
    };
    tokio::join!(attempt, look, settler.settle_recorded(of, recorded));
    assert_eq!(
        world.recorded().iter().map(Vec::len).collect::<Vec<_>>(),
        [1]
    );
    assert!(world.clock.monotonic() >= of.deadlines.end);
    assert_eq!(
        (
            invocation.into_response().failures.len(),
            world.sent(QueueName::Deliveries).await.len()
        ),
        (0, 1)
    );
}
