//! Messages that are sent all or none, and those that are withheld until all of them are durable.

use std::time::Duration;

use posthaste_ports::{
    ErrorKind, OutgoingMessage, QueueCounts, QueueName, QueueReceiver, QueueSender, Successor,
};

use super::device::Device;
use super::{ask, drain, message, open};

const DELIVERIES: QueueName = QueueName::Deliveries;
const MIB: u64 = 1 << 20;

/// More messages than a batch holds.
fn many(body: &str) -> Vec<OutgoingMessage> {
    (0..25).map(|n| message(format!("{body}{n}"))).collect()
}

#[tokio::test]
async fn withheld_messages_are_received_once_shown() {
    let local = open(&Device::default());
    let queue = local.queue(DELIVERIES);
    let first = queue.withhold(many("a")).await.unwrap();
    let late = OutgoingMessage {
        delay: Duration::from_mins(1),
        ..message("late")
    };
    let second = queue.withhold(vec![late]).await.unwrap();
    queue.send_batch(vec![message("other")]).await.unwrap();
    assert_eq!(queue.receive(ask(10)).await.unwrap().len(), 1);
    first.show();
    second.show();
    let counts = queue.counts().await.unwrap();
    assert_eq!((counts.visible, counts.delayed), (25, 1));
    assert_eq!(drain(&local, DELIVERIES).await.len(), 25);
}

#[tokio::test]
async fn withheld_messages_that_are_dropped_are_deleted() {
    let device = Device::default();
    let local = open(&device);
    let queue = local.queue(DELIVERIES);
    drop(queue.withhold(many("a")).await.unwrap());
    queue.send_batch(vec![message("other")]).await.unwrap();
    assert_eq!(drain(&local, DELIVERIES).await, ["other"]);
    local.close().await;
    assert_eq!(drain(&open(&device), DELIVERIES).await, ["other"]);
}

/// Messages of a caller that got no result may come, and must not stay invisible forever.
#[tokio::test]
async fn withheld_messages_come_after_a_crash() {
    let device = Device::default();
    let local = open(&device);
    let withheld = local.queue(DELIVERIES).withhold(many("a")).await.unwrap();
    let after = device.after_power_cut(1);
    let local_again = open(&after);
    assert_eq!(drain(&local_again, DELIVERIES).await.len(), 25);
    drop(withheld);
}

/// Messages whose caller is gone when they are durable are deleted: no other would ever show them.
#[tokio::test]
async fn withheld_messages_of_a_lost_caller_are_deleted() {
    let device = Device::default();
    let local = open(&device);
    let queue = local.queue(DELIVERIES);
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    for _ in 0..50 {
        let mut withholding = Box::pin(queue.withhold(many("a")));
        let begun = std::future::poll_fn(|context| {
            std::task::Poll::Ready(withholding.as_mut().poll(context).is_ready())
        });
        let _ = begun.await;
    }
    // Its commit comes after theirs, and their tasks hear of them before the next commit.
    queue.send_batch(vec![message("other")]).await.unwrap();
    while tasks() > before {
        tokio::task::yield_now().await;
    }
    queue.send_batch(vec![message("next")]).await.unwrap();
    assert_eq!(drain(&local, DELIVERIES).await, ["next", "other"]);
    local.close().await;
    assert_eq!(drain(&open(&device), DELIVERIES).await, ["next", "other"]);
}

/// Records beside deliveries: both or neither, also when the folder is opened again.
#[tokio::test]
async fn messages_of_other_queues_are_sent_with_the_others() {
    let device = Device::default();
    let local = open(&device);
    let queue = local.queue(DELIVERIES);
    let beside = |body: &str| {
        let to = QueueName::Records;
        let message = message(body);
        vec![Successor { to, message }]
    };
    device.set_free_bytes(Some(MIB));
    let refused = queue.send_whole(many("a"), beside("record"));
    assert_eq!(refused.await.unwrap_err().kind, ErrorKind::Full);
    device.set_free_bytes(None);
    let refused = queue.send_whole(many("b"), beside(""));
    assert_eq!(refused.await.unwrap_err().kind, ErrorKind::Invalid);
    queue.send_whole(many("c"), beside("record")).await.unwrap();
    local.close().await;
    let local = open(&device);
    assert_eq!(drain(&local, QueueName::Records).await, ["record"]);
    assert_eq!(drain(&local, DELIVERIES).await.len(), 25);
}

#[tokio::test]
async fn messages_that_are_sent_whole_all_fit_or_none() {
    let device = Device::default();
    let local = open(&device);
    let queue = local.queue(DELIVERIES);
    device.set_free_bytes(Some(MIB));
    let refused = queue.send_whole(many("a"), Vec::new()).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Full);
    let refused = queue.withhold(many("a")).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Full);
    device.set_free_bytes(None);
    let mut one_is_bad = many("b");
    one_is_bad.push(message(""));
    let refused = queue.send_whole(one_is_bad, Vec::new()).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert_eq!(queue.counts().await.unwrap(), QueueCounts::default());
    queue.send_whole(many("c"), Vec::new()).await.unwrap();
    let received = ask(10);
    assert_eq!(received.wait, Duration::ZERO);
    assert_eq!(drain(&local, DELIVERIES).await.len(), 25);
}
