//! Cases of `QueueSender`.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{
    SQS_DELAY_MAX, SQS_DELAY_SECS_MAX, SQS_GROUP_ID_CHARS_MAX, SQS_MESSAGE_BYTES_MAX,
    SQS_VISIBILITY_SECS_MAX,
};

use super::{QueueHarness, is_empty, kinds, message, send, sorted_bodies, take, take_one};
use posthaste_ports::{ErrorKind, OutgoingMessage, QueueSender};

/// Text with what codecs trip over: quotes, a null character as JSON writes it, line ends, and
/// characters of two, three and four bytes up to the last of each range that SQS accepts.
const HARD_TEXT: &str = "{\"a\":\"\\u0000 <&>' \\\\\"}\t\r\n \u{7f}\u{85}\u{a0}Üß€\u{d7ff}\u{e000}\u{fffd}\u{10000}😀\u{10ffff} ";

pub(super) async fn a_message_is_received_byte_for_byte(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    send(&queue, message(HARD_TEXT)).await;
    let received = take_one(&queue, harness.backend()).await;
    assert_eq!(received.body, HARD_TEXT);
    assert_eq!(received.receive_count, 1);
    if let Some(now) = harness.now() {
        assert_eq!(received.sent_at, now);
    }
}

pub(super) async fn a_message_of_one_mebibyte_is_accepted(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let body = Bytes::from("ü".repeat(SQS_MESSAGE_BYTES_MAX / 2));
    send(&queue, message(body.clone())).await;
    let received = take_one(&queue, harness.backend()).await;
    // Not `assert_eq!`, which would print two megabytes.
    assert!(received.body == body, "the body differs");
}

pub(super) async fn a_delayed_message_is_not_visible_before_its_time(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let delayed = OutgoingMessage {
        delay: Duration::from_secs(2),
        ..message("later")
    };
    let answers = queue
        .send_batch(vec![delayed, message("now")])
        .await
        .unwrap();
    assert_eq!(kinds(&answers), [None, None]);
    let backend = harness.backend();
    assert_eq!(take_one(&queue, backend).await.body, "now");
    is_empty(&queue, backend).await;
    harness.pass(Duration::from_secs(2)).await;
    assert_eq!(take_one(&queue, backend).await.body, "later");
}

pub(super) async fn the_longest_delay_ends_on_the_second(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    send(
        &queue,
        OutgoingMessage {
            delay: SQS_DELAY_MAX,
            ..message("later")
        },
    )
    .await;
    harness.pass(Duration::from_millis(899_999)).await;
    is_empty(&queue, harness.backend()).await;
    harness.pass(Duration::from_millis(1)).await;
    assert_eq!(take_one(&queue, harness.backend()).await.body, "later");
    assert!(SQS_VISIBILITY_SECS_MAX > u32::from(SQS_DELAY_SECS_MAX));
}

pub(super) async fn part_of_a_second_of_a_delay_is_not_cut_off(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let delayed = OutgoingMessage {
        delay: Duration::from_millis(1600),
        ..message("later")
    };
    send(&queue, delayed).await;
    harness.pass(Duration::from_millis(1500)).await;
    is_empty(&queue, harness.backend()).await;
    // A queue that delays by whole seconds rounds up.
    harness.pass(Duration::from_millis(500)).await;
    assert_eq!(take_one(&queue, harness.backend()).await.body, "later");
}

pub(super) async fn a_delay_over_900_seconds_is_refused(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    refused(
        harness,
        &queue,
        OutgoingMessage {
            delay: SQS_DELAY_MAX + Duration::from_millis(1),
            ..message("x")
        },
    )
    .await;
}

pub(super) async fn an_empty_or_oversized_body_is_refused(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    refused(harness, &queue, message("")).await;
    let over = message("x".repeat(SQS_MESSAGE_BYTES_MAX + 1));
    // It breaks the limit of an entry and that of a batch; either way of saying so is right.
    let answer = queue.send_batch(vec![over]).await;
    let kind = answer.map_or_else(|outer| Some(outer.kind), |entries| kinds(&entries)[0]);
    assert_eq!(kind, Some(ErrorKind::Invalid));
    is_empty(&queue, harness.backend()).await;
}

pub(super) async fn refused_characters_are_refused(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    for bad in ["\0", "a\u{1}b", "\u{b}", "\u{1f}", "x\u{fffe}", "\u{ffff}"] {
        refused(harness, &queue, message(bad)).await;
    }
    refused(harness, &queue, message(&b"\xff\xfe"[..])).await;
}

pub(super) async fn a_group_id_too_long_is_refused(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let grouped = |chars| OutgoingMessage {
        group: Some("g".repeat(chars)),
        ..message("x")
    };
    refused(harness, &queue, grouped(SQS_GROUP_ID_CHARS_MAX + 1)).await;
    refused(harness, &queue, grouped(0)).await;
    send(&queue, grouped(SQS_GROUP_ID_CHARS_MAX)).await;
    take_one(&queue, harness.backend()).await;
}

pub(super) async fn a_batch_of_none_of_eleven_or_over_a_mebibyte_is_refused_whole(
    harness: &impl QueueHarness,
) {
    let queue = harness.fresh().await.deliveries;
    let half = "x".repeat(SQS_MESSAGE_BYTES_MAX / 2);
    let over = vec![message(half.clone()), message(half), message("x")];
    for batch in [vec![], vec![message("x"); 11], over] {
        let length = batch.len();
        let refused = queue.send_batch(batch).await.map(|answers| kinds(&answers));
        assert_eq!(
            refused.map_err(|e| e.kind),
            Err(ErrorKind::Invalid),
            "{length} entries"
        );
    }
    is_empty(&queue, harness.backend()).await;
}

pub(super) async fn one_bad_entry_leaves_its_neighbours(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let late = OutgoingMessage {
        delay: Duration::from_secs(901),
        ..message("late")
    };
    let batch = vec![
        message("a"),
        message("\u{fffe}"),
        message("b"),
        late,
        message("c"),
    ];
    let answers = queue.send_batch(batch).await.unwrap();
    let invalid = Some(ErrorKind::Invalid);
    assert_eq!(kinds(&answers), [None, invalid, None, invalid, None]);
    let received = take(&queue, harness.backend(), 3).await;
    assert_eq!(sorted_bodies(&received), ["a", "b", "c"]);
    is_empty(&queue, harness.backend()).await;
}

pub(super) async fn ids_differ_and_are_those_of_the_received_messages(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let answers = queue.send_batch(vec![message("same"); 10]).await.unwrap();
    let sent: HashSet<_> = answers.into_iter().map(Result::unwrap).collect();
    let received = take(&queue, harness.backend(), 10).await;
    let ids: HashSet<_> = received.into_iter().map(|m| m.id).collect();
    assert_eq!((sent.len(), ids), (10, sent));
}

/// Checks that a message is refused as an entry and not sent.
async fn refused<H: QueueHarness>(harness: &H, queue: &H::Queue, message: OutgoingMessage) {
    let answers = queue.send_batch(vec![message]).await.unwrap();
    assert_eq!(kinds(&answers), [Some(ErrorKind::Invalid)]);
    is_empty(queue, harness.backend()).await;
}
