//! Services that take a request and never answer. The time of these tests is paused and runs ahead
//! whenever there is nothing left to do but wait, so the adapters' real timeouts pass at once.

use std::time::Duration;

use bytes::Bytes;
use posthaste_ports::{
    ErrorKind, ObjectStore, PutCondition, QueueReceiver, QueueSender, ReceiveRequest,
};
use posthaste_tests_aws::double::{Action, Fault};

use super::{HIDDEN, World, kind, message, retry};

#[tokio::test(start_paused = true)]
async fn a_silent_queue_is_timed_out() {
    for fault in [Fault::SilentBefore, Fault::SilentAfter] {
        let world = World::new().await;
        world
            .double
            .fail_always(Action::SendMessageBatch, fault.clone());
        let sent = world.queue.send_batch(vec![message("x")]).await;
        assert_eq!(kind(sent), Some(ErrorKind::TimedOut), "{fault:?}");
        assert!(
            world.double.journal().count(Action::SendMessageBatch) > 1,
            "a second attempt is made"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_silent_once_is_asked_again() {
    let world = World::new().await;
    world
        .double
        .fail_next(Action::SendMessageBatch, Fault::SilentBefore);
    let sent = world.queue.send_batch(vec![message("x")]).await.unwrap();
    assert!(sent[0].is_ok());
    assert_eq!(world.deliveries(), ["x"]);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_whose_send_is_never_answered_keeps_the_message() {
    let world = World::new().await;
    let received = world.received_one("first").await;
    world
        .double
        .fail_always(Action::SendMessageBatch, Fault::SilentBefore);
    let replaced = world
        .queue
        .replace(&received.receipt, vec![retry("second")])
        .await;
    assert_eq!(kind(replaced), Some(ErrorKind::TimedOut));
    assert_eq!(world.double.journal().count(Action::DeleteMessageBatch), 0);
    assert_eq!(world.deliveries(), ["first"]);
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_for_a_message_is_not_taken_for_silence() {
    let world = World::new().await;
    let waiting = ReceiveRequest {
        max: 1,
        visibility: HIDDEN,
        wait: Duration::from_secs(20),
    };
    let receive = world.queue.receive(waiting);
    let end_of_wait = async {
        // Longer than an attempt of any other request may take, and shorter than this one's.
        tokio::time::timeout(Duration::from_secs(20), std::future::pending::<()>())
            .await
            .unwrap_err();
        world.clock.advance(Duration::from_secs(20));
    };
    let (received, ()) = futures_util::future::join(receive, end_of_wait).await;
    assert_eq!(received.unwrap().len(), 0);
    assert_eq!(world.double.journal().count(Action::ReceiveMessage), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_store_is_timed_out() {
    let world = World::new().await;
    for action in [Action::GetObject, Action::PutObject, Action::ListObjects] {
        world.double.fail_always(action, Fault::SilentBefore);
    }
    let timed_out = Some(ErrorKind::TimedOut);
    assert_eq!(kind(world.store.get("k").await), timed_out);
    assert_eq!(
        kind(
            world
                .store
                .put("k", Bytes::from("x"), PutCondition::IfAbsent)
                .await
        ),
        timed_out
    );
    assert_eq!(kind(world.store.list("", None, 1).await), timed_out);
}

#[tokio::test(start_paused = true)]
async fn a_put_that_took_effect_in_silence_is_known_as_our_own() {
    let world = World::new().await;
    world
        .double
        .fail_next(Action::PutObject, Fault::SilentAfter);
    world
        .store
        .put("k", Bytes::from("ours"), PutCondition::IfAbsent)
        .await
        .unwrap();
    assert_eq!(world.double.object("state", "k"), Some(Bytes::from("ours")));
}
