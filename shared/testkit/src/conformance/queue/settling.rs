//! Cases of settling what was received: acknowledge, replace, change of visibility.

use std::time::Duration;

use super::{
    HIDDEN, QueueHarness, QueueSet, is_empty, message, remove, send, sorted_bodies, take, take_one,
};
use posthaste_ports::{
    ErrorKind, OutgoingMessage, QueueName, QueueReceiver, ReceiptHandle, Successor,
};

pub(super) async fn an_acknowledged_message_does_not_return(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    send(&queue, message("x")).await;
    let received = take_one(&queue, backend).await;
    queue.acknowledge(&received.receipt).await.unwrap();
    queue.acknowledge(&received.receipt).await.unwrap();
    if HIDDEN <= backend.pass_max {
        harness.pass(HIDDEN).await;
    }
    is_empty(&queue, backend).await;
}

pub(super) async fn acknowledging_leaves_the_message_to_the_mapping(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    send(&queue, message("x")).await;
    let received = take_one(&queue, backend).await;
    queue.acknowledge(&received.receipt).await.unwrap();
    queue.acknowledge(&received.receipt).await.unwrap();
    is_empty(&queue, backend).await;
    queue
        .change_visibility(&received.receipt, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(take_one(&queue, backend).await.receive_count, 2);
}

pub(super) async fn acknowledging_a_stale_receipt_is_no_error_and_deletes_nothing(
    harness: &impl QueueHarness,
) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    let (stale, current) = received_twice(harness, &queue).await;
    queue.acknowledge(&stale).await.unwrap();
    queue
        .change_visibility(&current, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(take_one(&queue, backend).await.body, "twice");
}

pub(super) async fn visibility_zero_shows_a_message_at_once(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    send(&queue, message("x")).await;
    let first = take_one(&queue, backend).await;
    is_empty(&queue, backend).await;
    queue
        .change_visibility(&first.receipt, Duration::ZERO)
        .await
        .unwrap();
    let second = take_one(&queue, backend).await;
    assert_eq!((second.id, second.receive_count), (first.id, 2));
}

pub(super) async fn visibility_can_be_lengthened(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    let shorter = Duration::from_secs(2);
    let longer = Duration::from_secs(4);
    send(&queue, message("x")).await;
    let received = take_one(&queue, backend).await;
    queue
        .change_visibility(&received.receipt, shorter)
        .await
        .unwrap();
    queue
        .change_visibility(&received.receipt, longer)
        .await
        .unwrap();
    harness.pass(shorter).await;
    is_empty(&queue, backend).await;
    harness.pass(longer.saturating_sub(shorter)).await;
    assert_eq!(take_one(&queue, backend).await.receive_count, 2);
}

pub(super) async fn a_stale_receipt_changes_no_visibility(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    let (stale, current) = received_twice(harness, &queue).await;
    // Some emulators take any receipt of a message that they still hold.
    if backend.refuses_stale_receipts {
        let kind = queue
            .change_visibility(&stale, Duration::ZERO)
            .await
            .map_err(|e| e.kind);
        assert_eq!(kind, Err(ErrorKind::NotFound));
        is_empty(&queue, backend).await;
    }
    remove(&queue, backend, &current).await;
    let gone = queue
        .change_visibility(&current, Duration::ZERO)
        .await
        .map_err(|e| e.kind);
    assert_eq!(gone, Err(ErrorKind::NotFound));
    let foreign = queue
        .change_visibility(&ReceiptHandle("no such receipt".into()), Duration::ZERO)
        .await;
    assert_eq!(foreign.map_err(|e| e.kind), Err(ErrorKind::NotFound));
}

pub(super) async fn visibility_over_twelve_hours_is_refused(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    send(&queue, message("x")).await;
    let received = take_one(&queue, backend).await;
    let refused = queue
        .change_visibility(&received.receipt, Duration::from_secs(43_201))
        .await;
    assert_eq!(refused.map_err(|e| e.kind), Err(ErrorKind::Invalid));
    queue
        .change_visibility(&received.receipt, Duration::ZERO)
        .await
        .unwrap();
    take_one(&queue, backend).await;
}

pub(super) async fn twelve_hours_count_from_the_receive(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    send(&queue, message("x")).await;
    let received = take_one(&queue, backend).await;
    let twelve_hours = Duration::from_hours(12);
    queue
        .change_visibility(&received.receipt, twelve_hours)
        .await
        .unwrap();
    let an_hour = Duration::from_hours(1);
    harness.pass(an_hour).await;
    let refused = queue
        .change_visibility(&received.receipt, twelve_hours)
        .await;
    assert_eq!(refused.map_err(|e| e.kind), Err(ErrorKind::Invalid));
    queue
        .change_visibility(&received.receipt, twelve_hours.saturating_sub(an_hour))
        .await
        .unwrap();
    harness
        .pass(twelve_hours.saturating_sub(an_hour + Duration::from_millis(1)))
        .await;
    is_empty(&queue, backend).await;
    harness.pass(Duration::from_millis(1)).await;
    take_one(&queue, backend).await;
}

pub(super) async fn replace_puts_successors_in_the_place_of_a_message(harness: &impl QueueHarness) {
    let set = harness.fresh().await;
    let backend = harness.backend();
    let QueueSet {
        deliveries,
        dead_letters,
        ..
    } = set;
    let id = send(&deliveries, message("first")).await;
    let received = take_one(&deliveries, backend).await;
    let later = OutgoingMessage {
        delay: Duration::from_secs(2),
        group: Some("g".to_owned()),
        ..message("later ü")
    };
    let successors = vec![
        Successor {
            to: QueueName::Deliveries,
            message: message("now"),
        },
        Successor {
            to: QueueName::Deliveries,
            message: later,
        },
        Successor {
            to: QueueName::DeadLetters,
            message: message("dead"),
        },
    ];
    deliveries
        .replace(&received.receipt, successors)
        .await
        .unwrap();
    let now = take_one(&deliveries, backend).await;
    assert_eq!((&*now.body, now.receive_count), (&b"now"[..], 1));
    assert_ne!(now.id, id);
    is_empty(&deliveries, backend).await;
    assert_eq!(take_one(&dead_letters, backend).await.body, "dead");
    is_empty(&dead_letters, backend).await;
    harness.pass(Duration::from_secs(2)).await;
    assert_eq!(take_one(&deliveries, backend).await.body, "later ü");
    if HIDDEN <= backend.pass_max {
        // What was replaced does not return; its successors, never acknowledged, do.
        harness.pass(HIDDEN).await;
        assert_eq!(
            sorted_bodies(&take(&deliveries, backend, 2).await),
            ["later ü", "now"]
        );
        is_empty(&deliveries, backend).await;
    }
}

pub(super) async fn successors_go_to_every_queue_of_the_set(harness: &impl QueueHarness) {
    let set = harness.fresh().await;
    let backend = harness.backend();
    send(&set.deliveries, message("first")).await;
    let received = take_one(&set.deliveries, backend).await;
    let successors = [
        (QueueName::Deliveries, "delivery"),
        (QueueName::DeadLetters, "dead letter"),
        (QueueName::Redrive, "redriven"),
        (QueueName::Records, "records"),
    ];
    let successors = successors.map(|(to, body)| Successor {
        to,
        message: message(body),
    });
    set.deliveries
        .replace(&received.receipt, successors.into())
        .await
        .unwrap();
    assert_eq!(take_one(&set.deliveries, backend).await.body, "delivery");
    assert_eq!(
        take_one(&set.dead_letters, backend).await.body,
        "dead letter"
    );
    assert_eq!(take_one(&set.redrive, backend).await.body, "redriven");
    assert_eq!(take_one(&set.records, backend).await.body, "records");
    for queue in [
        &set.deliveries,
        &set.dead_letters,
        &set.redrive,
        &set.records,
    ] {
        is_empty(queue, backend).await;
    }
}

pub(super) async fn replace_by_nothing_deletes(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    send(&queue, message("x")).await;
    let received = take_one(&queue, backend).await;
    queue.replace(&received.receipt, vec![]).await.unwrap();
    let gone = queue
        .change_visibility(&received.receipt, Duration::ZERO)
        .await;
    assert_eq!(gone.map_err(|e| e.kind), Err(ErrorKind::NotFound));
    is_empty(&queue, backend).await;
}

pub(super) async fn replace_is_refused_whole_if_a_successor_is_invalid(
    harness: &impl QueueHarness,
) {
    let set = harness.fresh().await;
    let backend = harness.backend();
    let QueueSet {
        deliveries,
        dead_letters,
        ..
    } = set;
    send(&deliveries, message("stays")).await;
    let received = take_one(&deliveries, backend).await;
    let late = OutgoingMessage {
        delay: Duration::from_secs(901),
        ..message("late")
    };
    for invalid in [message(""), message("\u{ffff}"), late] {
        let successors = vec![
            Successor {
                to: QueueName::Deliveries,
                message: message("good"),
            },
            Successor {
                to: QueueName::DeadLetters,
                message: message("good"),
            },
            Successor {
                to: QueueName::DeadLetters,
                message: invalid,
            },
        ];
        let refused = deliveries.replace(&received.receipt, successors).await;
        assert_eq!(refused.map_err(|e| e.kind), Err(ErrorKind::Invalid));
    }
    is_empty(&deliveries, backend).await;
    is_empty(&dead_letters, backend).await;
    // The receipt is still good.
    deliveries
        .change_visibility(&received.receipt, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(take_one(&deliveries, backend).await.body, "stays");
}

pub(super) async fn replacing_by_a_stale_receipt_sends_nothing(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    let (stale, current) = received_twice(harness, &queue).await;
    let successor = || {
        vec![Successor {
            to: QueueName::Deliveries,
            message: message("fork"),
        }]
    };
    let refused = queue.replace(&stale, successor()).await;
    assert_eq!(refused.map_err(|e| e.kind), Err(ErrorKind::NotFound));
    is_empty(&queue, backend).await;
    queue.replace(&current, successor()).await.unwrap();
    let again = queue.replace(&current, successor()).await;
    assert_eq!(again.map_err(|e| e.kind), Err(ErrorKind::NotFound));
    assert_eq!(take_one(&queue, backend).await.body, "fork");
    is_empty(&queue, backend).await;
}

/// Sends `twice` and receives it twice: a stale receipt and the current one.
async fn received_twice<H: QueueHarness>(
    harness: &H,
    queue: &H::Queue,
) -> (ReceiptHandle, ReceiptHandle) {
    let backend = harness.backend();
    send(queue, message("twice")).await;
    let stale = take_one(queue, backend).await.receipt;
    queue
        .change_visibility(&stale, Duration::ZERO)
        .await
        .unwrap();
    let current = take_one(queue, backend).await.receipt;
    (stale, current)
}
