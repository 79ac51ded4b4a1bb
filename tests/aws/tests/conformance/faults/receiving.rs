//! Receiving, changing visibility, counting.

use std::time::Duration;

use posthaste_ports::{ErrorKind, QueueCounts, QueueReceiver, ReceiveRequest};
use posthaste_tests_aws::double::{Action, Fault, Refusal};

use super::{ATTEMPTS, HIDDEN, World, kind, message, numbered, retry};

#[tokio::test]
async fn a_receive_whose_answer_is_lost_loses_nothing() {
    let world = World::new().await;
    let first = world.received_one("x").await;
    world
        .queue
        .change_visibility(&first.receipt, Duration::ZERO)
        .await
        .unwrap();
    world
        .double
        .fail_next(Action::ReceiveMessage, Fault::AnswerLost);
    // The second attempt finds nothing: the first has hidden it.
    assert_eq!(world.receive().await.len(), 0);
    world.clock.advance(HIDDEN);
    assert_eq!(world.receive().await.remove(0).receive_count, 3);
}

#[tokio::test]
async fn a_receive_cut_in_the_middle_loses_nothing() {
    let world = World::new().await;
    let first = world.received_one("x").await;
    world
        .queue
        .change_visibility(&first.receipt, Duration::ZERO)
        .await
        .unwrap();
    world
        .double
        .fail_next(Action::ReceiveMessage, Fault::AnswerCut);
    let request = ReceiveRequest {
        max: 10,
        visibility: HIDDEN,
        wait: Duration::ZERO,
    };
    // Half an answer is an error or was asked for again; it is never taken for a message.
    if let Ok(received) = world.queue.receive(request).await {
        assert_eq!(received.len(), 0);
    }
    world.clock.advance(HIDDEN);
    assert_eq!(world.receive().await.remove(0).body, "x");
}

#[tokio::test]
async fn every_way_of_being_stale_is_not_found() {
    let world = World::new().await;
    let first = world.received_one("x").await;
    let change = async || kind(world.queue.change_visibility(&first.receipt, HIDDEN).await);
    assert_eq!(change().await, None);
    world.clock.advance(HIDDEN);
    assert_eq!(
        change().await,
        Some(ErrorKind::NotFound),
        "its timeout has passed"
    );
    let second = world.receive().await.remove(0);
    assert_eq!(
        change().await,
        Some(ErrorKind::NotFound),
        "somebody else has received it"
    );
    world.queue.replace(&second.receipt, vec![]).await.unwrap();
    assert_eq!(change().await, Some(ErrorKind::NotFound), "it is deleted");
    world.double.fail_next(
        Action::ChangeMessageVisibility,
        Fault::Refused(Refusal::BadHandle),
    );
    assert_eq!(
        change().await,
        Some(ErrorKind::NotFound),
        "it was never given out"
    );
}

#[tokio::test]
async fn twelve_hours_in_all_are_invalid_and_not_stale() {
    let world = World::new().await;
    let received = world.received_one("x").await;
    let hour = Duration::from_hours(1);
    let twelve_hours = Duration::from_hours(12);
    world
        .queue
        .change_visibility(&received.receipt, twelve_hours)
        .await
        .unwrap();
    world.clock.advance(hour);
    let over = world
        .queue
        .change_visibility(&received.receipt, twelve_hours)
        .await;
    assert_eq!(kind(over), Some(ErrorKind::Invalid));
}

#[tokio::test]
async fn counts_that_cannot_be_had_are_an_error_and_never_zero() {
    let check = async |fault: Fault, expected| {
        let world = World::new().await;
        world
            .double
            .fail_always(Action::GetQueueAttributes, fault.clone());
        assert_eq!(
            world.queue.counts().await.map_err(|e| e.kind),
            Err(expected),
            "{fault:?}"
        );
    };
    check(Fault::Refused(Refusal::Denied), ErrorKind::Denied).await;
    check(
        Fault::Refused(Refusal::Throttled),
        ErrorKind::Throttled { retry_after: None },
    )
    .await;
    check(Fault::RequestLost, ErrorKind::Other).await;
    check(Fault::AnswerCut, ErrorKind::Other).await;
}

#[tokio::test]
async fn counts_are_asked_for_again_when_that_may_help() {
    let world = World::new().await;
    world.received_one("x").await;
    for _ in 1..ATTEMPTS {
        world.double.fail_next(
            Action::GetQueueAttributes,
            Fault::Refused(Refusal::Throttled),
        );
    }
    let expected = QueueCounts {
        visible: 0,
        delayed: 0,
        in_flight: 1,
    };
    assert_eq!(world.queue.counts().await.unwrap(), expected);
    assert_eq!(
        world.double.journal().count(Action::GetQueueAttributes),
        ATTEMPTS
    );
}

/// A receive past the limit in flight is throttled or waits, and nothing is lost.
#[tokio::test]
async fn receive_past_the_in_flight_limit_is_throttled_or_waits() {
    let world = World::new().await;
    world.double.limit_in_flight("deliveries", 2);
    let sent = posthaste_services::send_all(
        &world.queue,
        numbered(3).iter().map(|it| message(it)).collect(),
    )
    .await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    let received = world.receive().await;
    assert_eq!(received.len(), 2);
    let ask = |wait| ReceiveRequest {
        max: 10,
        visibility: HIDDEN,
        wait,
    };
    let throttled = ErrorKind::Throttled { retry_after: None };
    assert_eq!(
        kind(world.queue.receive(ask(Duration::ZERO)).await),
        Some(throttled)
    );
    // A settled message frees its place, also while the queue is full.
    let wait = Duration::from_secs(20);
    let settle = async {
        while world.double.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        world
            .queue
            .replace(&received[0].receipt, vec![retry("again")])
            .await
            .unwrap();
    };
    let (third, ()) = tokio::join!(world.queue.receive(ask(wait)), settle);
    assert_eq!(third.unwrap().remove(0).body, "02");
    assert_eq!(world.deliveries(), ["01", "02", "again"]);
    world.clock.advance(HIDDEN);
    assert_eq!(world.receive().await.len(), 2);
}
