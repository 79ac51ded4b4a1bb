//! Cases of `QueueReceiver::receive` and of counting.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, join, join_all, select};

use super::{
    HIDDEN, PATIENCE, QueueHarness, ask, counts, is_empty, kinds, message, remove, send,
    sorted_bodies, take, take_one,
};
use posthaste_ports::validate::RECEIVE_WAIT_MAX;
use posthaste_ports::{ErrorKind, OutgoingMessage, QueueReceiver, QueueSender, ReceiveRequest};

/// A visibility timeout short enough to wait for in real time.
const SHORT: Duration = Duration::from_secs(2);

pub(super) async fn a_received_message_is_hidden_and_returns(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    send(&queue, message("again")).await;
    let briefly = ReceiveRequest {
        visibility: SHORT,
        ..ask(backend, 10)
    };
    let mut received = Vec::new();
    for _ in 0..PATIENCE {
        received = queue.receive(briefly).await.unwrap();
        if !received.is_empty() {
            break;
        }
    }
    assert_eq!(sorted_bodies(&received), ["again"]);
    is_empty(&queue, backend).await;
    harness.pass(SHORT).await;
    assert_eq!(take_one(&queue, backend).await.body, "again");
}

pub(super) async fn the_receive_count_rises_and_receipts_are_new_while_ids_stay(
    harness: &impl QueueHarness,
) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    let id = send(&queue, message("x")).await;
    let mut receipts = HashSet::new();
    for count in 1..=backend.max_receive_count.min(3) {
        let received = take_one(&queue, backend).await;
        assert_eq!((&received.id, received.receive_count), (&id, count));
        queue
            .change_visibility(&received.receipt, Duration::ZERO)
            .await
            .unwrap();
        assert!(receipts.insert(received.receipt), "a receipt came twice");
    }
}

pub(super) async fn at_most_the_asked_number_is_received(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    queue.send_batch(vec![message("x"); 10]).await.unwrap();
    queue.send_batch(vec![message("x"); 10]).await.unwrap();
    for max in [1, 3, 10] {
        let received = queue.receive(ask(backend, max)).await.unwrap();
        assert!(received.len() <= max);
        assert!(!backend.is_exact || received.len() == max);
    }
}

pub(super) async fn requests_over_the_limits_are_refused(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    send(&queue, message("x")).await;
    let good = ask(backend, 1);
    let long = Duration::from_secs(43_201);
    for bad in [
        ReceiveRequest { max: 0, ..good },
        ReceiveRequest { max: 11, ..good },
        ReceiveRequest {
            visibility: long,
            ..good
        },
        ReceiveRequest {
            wait: RECEIVE_WAIT_MAX + Duration::from_secs(1),
            ..good
        },
    ] {
        let refused = queue.receive(bad).await.map(|received| received.len());
        assert_eq!(
            refused.map_err(|e| e.kind),
            Err(ErrorKind::Invalid),
            "{bad:?}"
        );
    }
    take_one(&queue, backend).await;
}

pub(super) async fn receivers_at_once_never_share_a_message(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    for batch in 0..5 {
        let entries = (0..10)
            .map(|entry| message(format!("{batch}{entry}")))
            .collect();
        assert_eq!(kinds(&queue.send_batch(entries).await.unwrap()), [None; 10]);
    }
    let drain = async || {
        let mut taken = Vec::new();
        let mut empty = 0;
        while empty < if backend.is_exact { 1 } else { 5 } {
            let more = queue.receive(ask(backend, 3)).await.unwrap();
            empty += usize::from(more.is_empty());
            taken.extend(more);
        }
        taken
    };
    let taken: Vec<_> = join_all((0..8).map(|_| drain()))
        .await
        .into_iter()
        .flatten()
        .collect();
    let expected: Vec<_> = (0..5)
        .flat_map(|b| (0..10).map(move |e| format!("{b}{e}")))
        .collect();
    let mut bodies = sorted_bodies(&taken);
    if backend.is_exact {
        assert!(taken.iter().all(|m| m.receive_count == 1));
    } else {
        // SQS delivers at least once, and so does moto to those who ask at the same moment.
        bodies.dedup();
    }
    assert_eq!(bodies, expected);
}

pub(super) async fn an_empty_queue_answers_nothing(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    is_empty(&queue, harness.backend()).await;
}

pub(super) async fn a_wait_for_a_message_that_never_comes_ends_with_nothing(
    harness: &impl QueueHarness,
) {
    let queue = harness.fresh().await.deliveries;
    let waiting = ReceiveRequest {
        wait: SHORT,
        ..ask(harness.backend(), 10)
    };
    assert_eq!(
        while_time_passes(harness, queue.receive(waiting))
            .await
            .unwrap()
            .len(),
        0
    );
}

pub(super) async fn a_waiting_receiver_gets_what_is_sent_meanwhile(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let waiting = ReceiveRequest {
        wait: RECEIVE_WAIT_MAX,
        ..ask(harness.backend(), 10)
    };
    let receive_and_send = async {
        join(queue.receive(waiting), send(&queue, message("meanwhile")))
            .await
            .0
    };
    let received = while_time_passes(harness, receive_and_send).await.unwrap();
    assert_eq!(sorted_bodies(&received), ["meanwhile"]);
}

pub(super) async fn a_waiting_receiver_gets_what_becomes_visible_meanwhile(
    harness: &impl QueueHarness,
) {
    let queue = harness.fresh().await.deliveries;
    send(
        &queue,
        OutgoingMessage {
            delay: Duration::from_secs(2),
            ..message("later")
        },
    )
    .await;
    let waiting = ReceiveRequest {
        wait: RECEIVE_WAIT_MAX,
        ..ask(harness.backend(), 10)
    };
    let received = while_time_passes(harness, queue.receive(waiting))
        .await
        .unwrap();
    assert_eq!(sorted_bodies(&received), ["later"]);
}

/// Lets time pass second by second until `work` is done.
async fn while_time_passes<T>(harness: &impl QueueHarness, work: impl Future<Output = T>) -> T {
    let passing = async {
        // No case here needs more time than the longest wait.
        for _ in 0..=RECEIVE_WAIT_MAX.as_secs() {
            // The work may have to hop between threads before it sleeps on a clock that is moved by
            // hand.
            for _ in 0..PATIENCE {
                tokio::task::yield_now().await;
            }
            harness.pass(Duration::from_secs(1)).await;
        }
    };
    match select(pin!(work), pin!(passing)).await {
        Either::Left((done, _)) => done,
        // All time has passed: what is left to do is under way on another thread.
        Either::Right(((), work)) => work.await,
    }
}

pub(super) async fn the_queues_of_a_set_are_apart(harness: &impl QueueHarness) {
    let set = harness.fresh().await;
    let backend = harness.backend();
    send(&set.deliveries, message("delivery")).await;
    send(&set.dead_letters, message("dead letter")).await;
    send(&set.records, message("records")).await;
    is_empty(&set.redrive, backend).await;
    assert_eq!(take_one(&set.records, backend).await.body, "records");
    is_empty(&set.records, backend).await;
    assert_eq!(
        take_one(&set.dead_letters, backend).await.body,
        "dead letter"
    );
    is_empty(&set.dead_letters, backend).await;
    let delivery = take_one(&set.deliveries, backend).await;
    assert_eq!(delivery.body, "delivery");
    // A receipt is worth nothing in another queue.
    set.dead_letters.acknowledge(&delivery.receipt).await.ok();
    set.deliveries
        .change_visibility(&delivery.receipt, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(take_one(&set.deliveries, backend).await.body, "delivery");
}

pub(super) async fn what_is_received_too_often_moves_to_redrive_byte_for_byte(
    harness: &impl QueueHarness,
) {
    let set = harness.fresh().await;
    let backend = harness.backend();
    let body = "{\"broken\": \"\u{fffd}😀";
    send(&set.deliveries, message(body)).await;
    for count in 1..=backend.max_receive_count {
        let received = take_one(&set.deliveries, backend).await;
        assert_eq!(received.receive_count, count);
        is_empty(&set.redrive, backend).await;
        set.deliveries
            .change_visibility(&received.receipt, Duration::ZERO)
            .await
            .unwrap();
    }
    is_empty(&set.deliveries, backend).await;
    let moved = take_one(&set.redrive, backend).await;
    assert_eq!(moved.body, body);
    set.redrive.acknowledge(&moved.receipt).await.unwrap();
}

pub(super) async fn counts_tell_visible_delayed_and_in_flight(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    assert_eq!(queue.counts().await.unwrap(), counts(0, 0, 0));
    let delayed = OutgoingMessage {
        delay: Duration::from_mins(1),
        ..message("later")
    };
    let batch = vec![
        message("a"),
        message("b"),
        message("c"),
        delayed.clone(),
        delayed,
    ];
    queue.send_batch(batch).await.unwrap();
    assert_eq!(queue.counts().await.unwrap(), counts(3, 2, 0));
    let taken = take(&queue, backend, 2).await;
    assert_eq!(queue.counts().await.unwrap(), counts(1, 2, 2));
    remove(&queue, backend, &taken[0].receipt).await;
    assert_eq!(queue.counts().await.unwrap(), counts(1, 2, 1));
    queue
        .change_visibility(&taken[1].receipt, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(queue.counts().await.unwrap(), counts(2, 2, 0));
}

pub(super) async fn counts_follow_time(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    let delayed = OutgoingMessage {
        delay: Duration::from_mins(1),
        ..message("later")
    };
    queue
        .send_batch(vec![message("a"), message("b"), delayed.clone(), delayed])
        .await
        .unwrap();
    take(&queue, backend, 1).await;
    assert_eq!(queue.counts().await.unwrap(), counts(1, 2, 1));
    harness.pass(HIDDEN).await;
    assert_eq!(queue.counts().await.unwrap(), counts(2, 2, 0));
    harness.pass(HIDDEN).await;
    assert_eq!(queue.counts().await.unwrap(), counts(4, 0, 0));
}

pub(super) async fn a_quiet_group_is_served_before_a_busy_one(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    let of = |group: &str| OutgoingMessage {
        group: Some(group.to_owned()),
        ..message(group.to_owned())
    };
    for _ in 0..5 {
        queue.send_batch(vec![of("busy"); 10]).await.unwrap();
    }
    take(&queue, backend, 10).await;
    send(&queue, of("quiet")).await;
    assert_eq!(take_one(&queue, backend).await.body, "quiet");
    assert_eq!(take_one(&queue, backend).await.body, "busy");
}
