//! `replace`: the successor is durable before its message goes, and concurrent calls share
//! requests.

use std::time::Duration;

use futures_util::future::join_all;
use posthaste_ports::{ErrorKind, QueueName, QueueReceiver, Successor};
use posthaste_tests_aws::double::{Action, Fault, Refusal};

use super::{HIDDEN, World, kind, message, numbered, retry};

const SEND: Action = Action::SendMessageBatch;
const DELETE: Action = Action::DeleteMessageBatch;

#[tokio::test]
async fn the_successor_is_durable_before_the_message_goes() {
    let world = World::new().await;
    let received = world.received_one("first").await;
    world
        .queue
        .replace(&received.receipt, vec![retry("second")])
        .await
        .unwrap();
    let journal = world.double.journal();
    assert_eq!(journal.actions(), [SEND, DELETE]);
    assert_eq!(journal.seen()[0].subjects, ["second"]);
    assert_eq!(journal.seen()[1].subjects, [&*received.receipt.0]);
    assert_eq!(world.deliveries(), ["second"]);
}

#[tokio::test]
async fn all_successors_are_durable_before_the_message_goes() {
    let world = World::new().await;
    let received = world.received_one("first").await;
    let dead = Successor {
        to: QueueName::DeadLetters,
        message: message("dead"),
    };
    world
        .queue
        .replace(
            &received.receipt,
            vec![retry("second"), dead, retry("third")],
        )
        .await
        .unwrap();
    let actions = world.double.journal().actions();
    assert_eq!(actions.last(), Some(&DELETE));
    assert_eq!(
        actions.iter().filter(|action| **action == DELETE).count(),
        1
    );
    assert_eq!(world.deliveries(), ["second", "third"]);
    assert_eq!(world.double.bodies("deadletters"), ["dead"]);
}

#[tokio::test]
async fn a_message_stays_whose_successor_was_not_sent() {
    for fault in [
        Fault::Refused(Refusal::Unavailable),
        Fault::Refused(Refusal::Denied),
        Fault::RequestLost,
        Fault::failed(&[0], "InternalError", false),
        Fault::unmentioned(&[0], false),
    ] {
        let world = World::new().await;
        let received = world.received_one("first").await;
        world.double.fail_always(SEND, fault.clone());
        world
            .queue
            .replace(&received.receipt, vec![retry("second")])
            .await
            .unwrap_err();
        assert_eq!(world.double.journal().count(DELETE), 0, "{fault:?}");
        assert_eq!(world.deliveries(), ["first"], "{fault:?}");
        // The message is still the caller's, which may show it again.
        world
            .queue
            .change_visibility(&received.receipt, Duration::ZERO)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_successor_of_unknown_fate_is_sent_again() {
    for (happens, expected) in [(false, &["second"][..]), (true, &["second", "second"])] {
        let world = World::new().await;
        let received = world.received_one("first").await;
        world
            .double
            .fail_next(SEND, Fault::unmentioned(&[0], happens));
        world
            .queue
            .replace(&received.receipt, vec![retry("second")])
            .await
            .unwrap();
        assert_eq!(world.double.journal().actions(), [SEND, SEND, DELETE]);
        assert_eq!(world.deliveries(), expected);
    }
}

#[tokio::test]
async fn only_the_successor_of_unknown_fate_is_sent_again() {
    let world = World::new().await;
    let bodies = numbered(5);
    let received = world.received(&bodies).await;
    world
        .double
        .fail_next(SEND, Fault::unmentioned(&[2], false));
    let replaced = join_all(
        received
            .iter()
            .map(|m| world.queue.replace(&m.receipt, vec![retry("next")])),
    )
    .await;
    assert!(replaced.iter().all(Result::is_ok), "{replaced:?}");
    let sent: Vec<_> = world
        .double
        .journal()
        .of(SEND)
        .map(|seen| seen.subjects.len())
        .collect();
    assert_eq!(sent, [5, 1]);
    assert_eq!(world.deliveries(), ["next"; 5]);
}

#[tokio::test]
async fn a_refused_successor_fails_its_own_replacement_and_no_other() {
    let world = World::new().await;
    let received = world.received(&numbered(3)).await;
    world
        .double
        .fail_next(SEND, Fault::failed(&[1], "InvalidMessageContents", true));
    let replaced = join_all(
        received
            .iter()
            .map(|m| world.queue.replace(&m.receipt, vec![retry("next")])),
    )
    .await;
    let kinds: Vec<_> = replaced.into_iter().map(kind).collect();
    assert_eq!(
        kinds.iter().filter(|kind| kind.is_none()).count(),
        2,
        "{kinds:?}"
    );
    assert!(kinds.contains(&Some(ErrorKind::Invalid)), "{kinds:?}");
    assert_eq!(
        world
            .deliveries()
            .iter()
            .filter(|body| *body == "next")
            .count(),
        2
    );
    assert_eq!(world.deliveries().len(), 3);
}

#[tokio::test]
async fn a_delete_that_fails_leaves_both_and_loses_nothing() {
    for fault in [
        Fault::Refused(Refusal::Broken),
        Fault::RequestLost,
        Fault::failed(&[0], "InternalError", false),
    ] {
        let world = World::new().await;
        let received = world.received_one("first").await;
        world.double.fail_always(DELETE, fault.clone());
        // The successor is durable, so its caller must not report the message as failed: the
        // mapping deletes it.
        world
            .queue
            .replace(&received.receipt, vec![retry("second")])
            .await
            .unwrap();
        assert_eq!(world.deliveries(), ["first", "second"], "{fault:?}");
    }
}

#[tokio::test]
async fn a_delete_whose_answer_is_lost_is_no_error() {
    let world = World::new().await;
    let received = world.received_one("first").await;
    world.double.fail_next(DELETE, Fault::AnswerLost);
    world
        .queue
        .replace(&received.receipt, vec![retry("second")])
        .await
        .unwrap();
    assert_eq!(world.deliveries(), ["second"]);
}

#[tokio::test]
async fn a_handle_that_sqs_refuses_is_told_to_its_owner_alone() {
    let world = World::new().await;
    let received = world.received(&numbered(3)).await;
    world
        .double
        .fail_next(DELETE, Fault::failed(&[1], "ReceiptHandleIsInvalid", true));
    let replaced = join_all(
        received
            .iter()
            .map(|m| world.queue.replace(&m.receipt, vec![])),
    )
    .await;
    let kinds: Vec<_> = replaced.into_iter().map(kind).collect();
    assert_eq!(
        kinds.iter().filter(|kind| kind.is_none()).count(),
        2,
        "{kinds:?}"
    );
    assert!(kinds.contains(&Some(ErrorKind::NotFound)), "{kinds:?}");
}

#[tokio::test]
async fn a_stale_receipt_takes_the_message_from_nobody() {
    let world = World::new().await;
    let stale = world.received_one("first").await;
    world.clock.advance(HIDDEN);
    let current = world.receive().await.remove(0);
    // SQS answers a delete with a stale receipt of the same queue with success, so the adapter
    // cannot know.
    world.queue.replace(&stale.receipt, vec![]).await.unwrap();
    assert_eq!(world.deliveries(), ["first"]);
    world.queue.replace(&current.receipt, vec![]).await.unwrap();
    assert_eq!(world.deliveries(), [""; 0]);
}

// Time is paused: a request waits for others until nothing else is left to do, so a busy machine
// does not separate them.
#[tokio::test(start_paused = true)]
async fn replacements_at_once_share_their_requests() {
    let check = async |count: usize, requests: usize| {
        let world = World::new().await;
        let received = world.received(&numbered(count)).await;
        let replaced = received
            .iter()
            .map(|m| world.queue.replace(&m.receipt, vec![retry("next")]));
        assert!(join_all(replaced).await.iter().all(Result::is_ok));
        let journal = world.double.journal();
        assert_eq!(
            (journal.count(SEND), journal.count(DELETE)),
            (requests, requests),
            "{count} at once"
        );
        assert_eq!(world.deliveries(), vec!["next"; count]);
    };
    check(1, 1).await;
    check(10, 1).await;
    check(25, 3).await;
    check(100, 10).await;
}

#[tokio::test(start_paused = true)]
async fn shared_requests_keep_to_a_mebibyte() {
    let world = World::new().await;
    let received = world.received(&numbered(10)).await;
    let large = "x".repeat(300_000);
    let replaced = received
        .iter()
        .map(|m| world.queue.replace(&m.receipt, vec![retry(&large)]));
    assert!(join_all(replaced).await.iter().all(Result::is_ok));
    let journal = world.double.journal();
    // Three of them fit into one request.
    assert_eq!(journal.count(SEND), 4);
    assert!(
        journal
            .of(SEND)
            .all(|seen| seen.status == 200 && seen.payload_bytes <= 1_048_576)
    );
    assert_eq!(world.deliveries().len(), 10);
}

#[tokio::test]
async fn successor_to_an_unknown_queue_is_refused_before_any_send() {
    let world = World::new().await;
    let received = world.received_one("first").await;
    let unknown = Successor {
        to: QueueName::Redrive,
        message: message("second"),
    };
    let refused = world
        .queue
        .replace(&received.receipt, vec![retry("good"), unknown])
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(cause.contains("redrive"), "{cause}");
    assert_eq!(world.double.journal().seen(), []);
}
