//! `send_batch`: the result of each entry, and the requests that are tried again.

use std::time::Duration;

use posthaste_aws::QueueUrls;
use posthaste_ports::{ErrorKind, MessageId, OutgoingMessage, PortError, QueueName, QueueSender};
use posthaste_system::SystemClock;
use posthaste_tests_aws::double::{Action, Fault, Refusal};

use super::{ATTEMPTS, World, kind, message};
use crate::clients::clients;

const BATCH: Action = Action::SendMessageBatch;

/// Three messages.
fn three() -> Vec<OutgoingMessage> {
    ["a", "b", "c"].map(message).to_vec()
}

fn kinds(answers: Vec<Result<MessageId, PortError>>) -> Vec<Option<ErrorKind>> {
    answers.into_iter().map(kind).collect()
}

#[tokio::test]
async fn an_entry_in_neither_list_is_not_known_to_be_sent() {
    for happens in [false, true] {
        let world = World::new().await;
        world
            .double
            .fail_next(BATCH, Fault::unmentioned(&[1], happens));
        let answers = world.queue.send_batch(three()).await.unwrap();
        assert_eq!(kinds(answers), [None, Some(ErrorKind::Other), None]);
        assert_eq!(world.deliveries().len(), if happens { 3 } else { 2 });
    }
}

#[tokio::test]
async fn an_entry_that_failed_has_its_own_kind_and_harms_no_other() {
    let check = async |code, is_senders_fault, expected| {
        let world = World::new().await;
        world
            .double
            .fail_next(BATCH, Fault::failed(&[0, 2], code, is_senders_fault));
        let answers = world.queue.send_batch(three()).await.unwrap();
        assert_eq!(
            kinds(answers),
            [Some(expected), None, Some(expected)],
            "{code}"
        );
        assert_eq!(world.deliveries(), ["b"]);
    };
    check("InternalError", false, ErrorKind::Other).await;
    check("ServiceUnavailable", false, ErrorKind::Other).await;
    check("AccessDenied", true, ErrorKind::Denied).await;
    check("InvalidMessageContents", true, ErrorKind::Invalid).await;
    check(
        "RequestThrottled",
        false,
        ErrorKind::Throttled { retry_after: None },
    )
    .await;
}

#[tokio::test]
async fn sent_message_has_the_id_that_it_is_received_with() {
    let world = World::new().await;
    let answers = world.queue.send_batch(three()).await.unwrap();
    let mut sent: Vec<_> = answers
        .into_iter()
        .map(Result::unwrap)
        .map(|id| id.0)
        .collect();
    let mut received: Vec<_> = world
        .receive()
        .await
        .into_iter()
        .map(|message| message.id.0)
        .collect();
    sent.sort();
    received.sort();
    assert_eq!(sent, received);
}

#[tokio::test]
async fn a_lost_request_is_sent_again_once() {
    let world = World::new().await;
    world.double.fail_next(BATCH, Fault::RequestLost);
    let answers = world.queue.send_batch(three()).await.unwrap();
    assert_eq!(kinds(answers), [None; 3]);
    assert_eq!(world.deliveries(), ["a", "b", "c"]);
    assert_eq!(world.double.journal().count(BATCH), 2);
}

#[tokio::test]
async fn a_lost_answer_may_duplicate_and_never_loses() {
    let world = World::new().await;
    world.double.fail_next(BATCH, Fault::AnswerLost);
    let answers = world.queue.send_batch(three()).await.unwrap();
    assert_eq!(kinds(answers), [None; 3]);
    assert_eq!(world.deliveries(), ["a", "a", "b", "b", "c", "c"]);
}

#[tokio::test]
async fn refusal_has_its_kind_and_is_tried_again_where_that_may_help() {
    let check = async |refusal, expected, attempts| {
        let world = World::new().await;
        world.double.fail_always(BATCH, Fault::Refused(refusal));
        assert_eq!(
            kind(world.queue.send_batch(three()).await),
            Some(expected),
            "{refusal:?}"
        );
        assert_eq!(world.double.journal().count(BATCH), attempts, "{refusal:?}");
        assert_eq!(world.deliveries(), [""; 0]);
    };
    check(Refusal::Denied, ErrorKind::Denied, 1).await;
    check(
        Refusal::Throttled,
        ErrorKind::Throttled { retry_after: None },
        ATTEMPTS,
    )
    .await;
    check(Refusal::Unavailable, ErrorKind::Other, ATTEMPTS).await;
    check(Refusal::Broken, ErrorKind::Other, ATTEMPTS).await;
}

#[tokio::test]
async fn a_refusal_that_passes_is_not_seen() {
    for refusal in [Refusal::Throttled, Refusal::Unavailable, Refusal::Broken] {
        let world = World::new().await;
        world.double.fail_next(BATCH, Fault::Refused(refusal));
        let answers = world.queue.send_batch(three()).await.unwrap();
        assert_eq!(kinds(answers), [None; 3], "{refusal:?}");
        assert_eq!(world.deliveries(), ["a", "b", "c"], "{refusal:?}");
    }
}

/// Connections that always close are an error after a few attempts.
#[tokio::test]
async fn connections_that_always_close_are_an_error_after_attempts() {
    let world = World::new().await;
    world.double.fail_always(BATCH, Fault::RequestLost);
    assert_eq!(
        kind(world.queue.send_batch(three()).await),
        Some(ErrorKind::Other)
    );
    assert_eq!(world.double.journal().count(BATCH), ATTEMPTS);
}

#[tokio::test]
async fn an_absent_queue_is_not_found_at_the_first_attempt() {
    let world = World::new().await;
    let absent = world
        .double
        .queue("deliveries", None)
        .replace("deliveries", "absent");
    let urls = QueueUrls::from([(QueueName::Deliveries, absent)]);
    let queue = clients(&world.double.endpoint()).queue(QueueName::Deliveries, urls, SystemClock);
    assert_eq!(
        kind(queue.send_batch(three()).await),
        Some(ErrorKind::NotFound)
    );
    assert_eq!(world.double.journal().count(BATCH), 1);
}

#[tokio::test]
async fn message_above_a_limit_never_reaches_the_queue() {
    let world = World::new().await;
    let late = OutgoingMessage {
        delay: Duration::from_secs(901),
        ..message("late")
    };
    let answers = world
        .queue
        .send_batch(vec![late, message("\0")])
        .await
        .unwrap();
    assert_eq!(kinds(answers), [Some(ErrorKind::Invalid); 2]);
    assert_eq!(
        kind(world.queue.send_batch(vec![message("x"); 11]).await),
        Some(ErrorKind::Invalid)
    );
    assert_eq!(world.double.journal().seen(), []);
}
