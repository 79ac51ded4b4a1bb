//! Cases of a look at what waits, group by group.

use std::time::Duration;

use bytes::Bytes;

use super::{QueueHarness, message, remove, send, take};
use posthaste_ports::{GroupCount, OutgoingMessage, QueueReceiver};

fn of(group: &str, body: &'static str, delay_secs: u64) -> OutgoingMessage {
    OutgoingMessage {
        group: Some(group.to_owned()),
        delay: Duration::from_secs(delay_secs),
        ..message(body)
    }
}

fn names(groups: [&str; 3]) -> [String; 3] {
    groups.map(str::to_owned)
}

async fn counts(queue: &impl QueueReceiver, groups: [&str; 3]) -> Vec<GroupCount> {
    queue
        .waiting(&names(groups), 0, |_, _| true)
        .await
        .unwrap()
        .expect("a queue that shows its groups")
}

pub(super) async fn a_group_is_counted_wherever_its_messages_are(harness: &impl QueueHarness) {
    let (queue, backend) = (harness.fresh().await.deliveries, harness.backend());
    let now = harness.now().expect("a clock of the test");
    let count = |messages, next_due| GroupCount { messages, next_due };
    for message in [
        of("a", "1", 0),
        of("a", "2", 60),
        of("b", "3", 0),
        of("a", "4", 30),
        message("none"),
    ] {
        send(&queue, message).await;
    }
    let due = now + Duration::from_secs(30);
    let expected = [count(3, Some(due)), count(0, None), count(1, None)];
    assert_eq!(counts(&queue, ["a", "no such group", "b"]).await, expected);
    let taken = take(&queue, backend, 3).await;
    assert_eq!(counts(&queue, ["a", "no such group", "b"]).await, expected);
    for received in &taken {
        remove(&queue, backend, &received.receipt).await;
    }
    let expected = [count(2, Some(due)), count(0, None), count(0, None)];
    assert_eq!(counts(&queue, ["a", "no such group", "b"]).await, expected);
}

/// Due messages and bytes of each group, and the due ones of three groups.
type Due = (Vec<(String, u64, u64)>, Vec<u64>);

async fn due(queue: &impl QueueReceiver) -> Due {
    let all = queue.due_by_group().await.unwrap();
    let all = all.expect("a queue that shows its groups").into_iter();
    let mut all: Vec<_> = all
        .map(|of| (of.group.to_string(), of.due, of.bytes))
        .collect();
    all.sort();
    let of = queue
        .due(&names(["a", "no such group", "b"]))
        .await
        .unwrap();
    (all, of.expect("a queue that shows its groups"))
}

pub(super) async fn due_messages_are_counted_by_group(harness: &impl QueueHarness) {
    let (queue, backend) = (harness.fresh().await.deliveries, harness.backend());
    for message in [
        of("a", "1234", 0),
        of("a", "1234", 0),
        of("a", "1234", 30),
        of("b", "12", 0),
    ] {
        send(&queue, message).await;
    }
    let row = |group: &str, due, bytes| (group.to_owned(), due, bytes);
    let all = vec![row("a", 2, 12), row("b", 1, 2)];
    assert_eq!(due(&queue).await, (all, vec![2, 0, 1]));
    let taken = take(&queue, backend, 3).await;
    assert_eq!(due(&queue).await, (vec![], vec![0, 0, 0]));
    for received in &taken {
        remove(&queue, backend, &received.receipt).await;
    }
    harness.pass(Duration::from_secs(30)).await;
    assert_eq!(due(&queue).await, (vec![row("a", 1, 4)], vec![1, 0, 0]));
}

pub(super) async fn bodies_are_shown_group_by_group_until_there_are_enough(
    harness: &impl QueueHarness,
) {
    let queue = harness.fresh().await.deliveries;
    for message in [of("a", "1", 0), of("a", "2", 60), of("b", "3", 0)] {
        send(&queue, message).await;
    }
    let shown = async |bodies_max: usize, enough: usize| {
        let mut shown = Vec::new();
        let see = |place: usize, body: Option<&Bytes>| {
            shown.push((place, body.cloned().unwrap_or_default()));
            shown.len() < enough
        };
        queue
            .waiting(&names(["a", "b", "c"]), bodies_max, see)
            .await
            .unwrap()
            .expect("groups");
        shown.sort();
        shown
    };
    let all = [(0, "1"), (0, "2"), (1, "3")].map(|(place, body)| (place, Bytes::from(body)));
    assert_eq!(shown(10, 10).await, all);
    assert_eq!(
        (
            shown(2, 10).await.len(),
            shown(10, 1).await.len(),
            shown(0, 10).await.len()
        ),
        (2, 1, 0)
    );
}
