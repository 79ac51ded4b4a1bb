//! The number of events that wait, as records add it up.

use posthaste_core::delivery_log::{COUNTED_MESSAGES_MAX, WaitingPart, waiting_part};
use posthaste_core::stored::waiting_part_key;
use posthaste_ports::{ErrorKind, ObjectStore, OutgoingMessage, QueueSender};
use posthaste_testkit::{CallFault, FaultPlan};

use super::*;

fn waiting_record(number: u64, wait: WaitTransition, time: &str) -> LogRecord {
    LogRecord {
        result: LogResult::Retry,
        subscription: "billing".to_owned(),
        wait,
        ..record(number, at(time))
    }
}

fn begun(numbers: std::ops::Range<u64>) -> Vec<LogRecord> {
    numbers
        .map(|number| waiting_record(number, WaitTransition::Begins, "2026-03-07T03:05:00Z"))
        .collect()
}

async fn part(kit: &Kit) -> Option<WaitingPart> {
    let key = waiting_part_key(waiting_part("orders.billing"));
    let object = kit.state.get(&key).await.unwrap()?;
    Some(WaitingPart::parse(&object.bytes).unwrap())
}

async fn waiting(kit: &Kit) -> Option<u64> {
    part(kit).await?.waiting_events("orders.billing")
}

#[tokio::test]
async fn records_of_what_does_not_wait_write_no_number() {
    let kit = Kit::new();
    kit.handle("a", &records(0..100)).await;
    assert_eq!(kit.state.keys("waiting/"), [""; 0]);
}

#[tokio::test]
async fn records_add_up_to_what_waits() {
    let kit = Kit::new();
    kit.handle("a", &begun(0..10)).await;
    assert_eq!(waiting(&kit).await, Some(10));
    let ended = |number| waiting_record(number, WaitTransition::Ends, "2026-03-07T03:06:00Z");
    kit.handle("b", &(0..9).map(ended).collect::<Vec<_>>())
        .await;
    assert_eq!(waiting(&kit).await, Some(1));
    kit.handle("c", &[ended(9)]).await;
    assert_eq!(waiting(&kit).await, None);
}

/// The process dies before the batch is acknowledged, and another one gets its messages, with
/// others beside them.
#[tokio::test]
async fn message_that_comes_again_counts_once() {
    let mut kit = Kit::new();
    kit.handle("a", &begun(0..4)).await;
    kit.start_again();
    let batch: Vec<_> = [("a", begun(0..4)), ("b", begun(4..6))]
        .iter()
        .map(|(id, records)| message(id, render_records(records).remove(0)))
        .collect();
    let response = kit.record.handle(batch, kit.deadline()).await;
    assert_eq!(response.failures, []);
    assert_eq!(waiting(&kit).await, Some(6));
}

/// One of the two hours of a message cannot be written at first: all of its records come again.
#[tokio::test]
async fn message_counts_when_all_its_records_are_written() {
    let plan = FaultPlan::by(|effect| {
        let is_refused = effect.key.contains("hour=02") && effect.number < 4;
        is_refused.then_some(CallFault::Before(ErrorKind::Other))
    });
    let kit = Kit::with(&plan);
    let mut both = begun(0..2);
    both.push(waiting_record(
        2,
        WaitTransition::Begins,
        "2026-03-07T02:59:00Z",
    ));
    kit.handle("a", &both).await;
    assert_eq!(waiting(&kit).await, Some(3));
}

/// The number of such a message would be ahead of the log.
#[tokio::test]
async fn message_whose_records_are_refused_counts_nothing_yet() {
    let plan = FaultPlan::by(|effect| {
        let is_refused = effect.key.contains("hour=02");
        is_refused.then_some(CallFault::Before(ErrorKind::Other))
    });
    let kit = Kit::with(&plan);
    let mut both = begun(0..2);
    both.push(waiting_record(
        2,
        WaitTransition::Begins,
        "2026-03-07T02:59:00Z",
    ));
    let batch = vec![message("a", render_records(&both).remove(0))];
    let response = kit.record.handle(batch, kit.deadline()).await;
    assert_eq!((response.failures.len(), waiting(&kit).await), (1, None));
}

#[tokio::test]
async fn store_that_fails_costs_no_record_and_numbers_come_later() {
    let plan = FaultPlan::by(|effect| {
        let is_first = effect.key.starts_with("waiting/") && effect.number < 12;
        is_first.then_some(CallFault::Before(ErrorKind::TimedOut))
    });
    let kit = Kit::with(&plan);
    kit.handle("a", &begun(0..4)).await;
    assert_eq!((kit.ids().await.len(), waiting(&kit).await), (4, None));
    for number in 4..14 {
        kit.handle(&format!("b{number}"), &begun(number..number + 1))
            .await;
    }
    assert_eq!(waiting(&kit).await, Some(14));
}

/// The schedule of the merge looks whether everything is at rest.
#[tokio::test]
async fn schedule_sets_numbers_right_at_rest() {
    let kit = Kit::new();
    kit.handle("a", &begun(0..4)).await;
    kit.record.merge().await.unwrap();
    assert_eq!(waiting(&kit).await, Some(4));
    kit.close_hour();
    kit.record.merge().await.unwrap();
    assert_eq!(waiting(&kit).await, Some(4));
    kit.clock.advance(10 * MINUTE);
    kit.record.merge().await.unwrap();
    assert_eq!(waiting(&kit).await, None);
}

/// Records in their queue may say more of what waits than the numbers and the objects do.
#[tokio::test]
async fn schedule_keeps_numbers_while_records_are_in_their_queue() {
    let kit = Kit::new();
    kit.handle("a", &begun(0..4)).await;
    let unread = OutgoingMessage {
        body: render_records(&begun(4..5)).remove(0),
        group: None,
        delay: Duration::ZERO,
    };
    let records = kit.queue.sibling_queue(QueueName::Records);
    records.send_batch(vec![unread]).await.unwrap();
    for _ in 0..4 {
        kit.clock.advance(10 * MINUTE);
        kit.record.merge().await.unwrap();
    }
    assert_eq!(waiting(&kit).await, Some(4));
}

#[tokio::test]
async fn schedule_writes_what_could_not_be_written() {
    let plan = FaultPlan::by(|effect| {
        let is_first = effect.key.starts_with("waiting/") && effect.number < 12;
        is_first.then_some(CallFault::Before(ErrorKind::TimedOut))
    });
    let kit = Kit::with(&plan);
    kit.handle("a", &begun(0..4)).await;
    assert_eq!(waiting(&kit).await, None);
    for _ in 0..12 {
        kit.record.merge().await.unwrap();
    }
    assert_eq!(waiting(&kit).await, Some(4));
}

/// A message that was put off has a fresh copy, and the old one comes again.
#[tokio::test]
async fn copy_of_a_message_counts_once() {
    let kit = Kit::new();
    kit.handle("a", &begun(0..4)).await;
    kit.handle("b", &begun(0..4)).await;
    assert_eq!(waiting(&kit).await, Some(4));
}

#[tokio::test]
async fn batch_larger_than_a_part_remembers_counts_whole() {
    let kit = Kit::new();
    let messages = COUNTED_MESSAGES_MAX as u64 + 4;
    let batch = (0..messages).map(|number| {
        let body = render_records(&begun(number..number + 1)).remove(0);
        message(&format!("m{number}"), body)
    });
    let response = kit.record.handle(batch.collect(), kit.deadline()).await;
    assert_eq!(response.failures, []);
    assert_eq!(waiting(&kit).await, Some(messages));
    assert!(!part(&kit).await.unwrap().is_doubtful());
}
