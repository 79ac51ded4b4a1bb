//! Cases of counting what waits, group by group.

use std::time::Duration;

use posthaste_core::model::Timestamp;

use super::{QueueHarness, message, remove, send, take};
use posthaste_ports::{GroupCount, OutgoingMessage, QueueReceiver};

fn group_message(group: &str, body: &'static str, delay_secs: u64) -> OutgoingMessage {
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
        .waiting_counts(&names(groups))
        .await
        .unwrap()
        .expect("a queue that shows its groups")
}

/// Events that are due, delayed and in flight.
fn events(due: u64, delayed: u64, in_flight: u64) -> GroupCount {
    GroupCount {
        due,
        delayed,
        in_flight,
        ..GroupCount::default()
    }
}

pub(super) async fn events_of_a_group_are_counted_wherever_they_are(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    let now = harness.now().expect("a clock of the test");
    let second = |at: Timestamp| Timestamp::from_millis(at.as_secs() * 1000);
    let delivery =
        r#"{"v":1,"n":7,"topic":"a","subscription":"b","schema":"x","publishedAt":5400}"#;
    for message in [
        group_message("a", delivery, 0),
        group_message("a", "2", 60),
        group_message("b", "3", 0),
        group_message("a", delivery, 30),
        message("none"),
    ] {
        send(&queue, message).await;
    }
    // The clock of a test may begin with the epoch.
    let old = Some(second(now).min(Timestamp::from_millis(5000)));
    let sent = Some(second(now));
    let next_due = Some(now + Duration::from_secs(30));
    let a = |due, in_flight| GroupCount {
        oldest: old,
        next_due,
        ..events(due, 8, in_flight)
    };
    let b = |due, in_flight| GroupCount {
        oldest: sent,
        ..events(due, 0, in_flight)
    };
    let none = GroupCount::default();
    let look = async || counts(&queue, ["a", "no such group", "b"]).await;
    assert_eq!(look().await, [a(7, 0), none, b(1, 0)]);
    let taken = take(&queue, backend, 3).await;
    assert_eq!(look().await, [a(0, 7), none, b(0, 1)]);
    assert_eq!(
        all(&queue).await,
        [
            (String::new(), b(0, 1)),
            (
                "a".to_owned(),
                GroupCount {
                    next_due: None,
                    ..a(0, 7)
                }
            ),
            ("b".to_owned(), b(0, 1)),
        ]
    );
    for received in &taken {
        remove(&queue, backend, &received.receipt).await;
    }
    assert_eq!(look().await, [a(0, 0), none, none]);
    harness.pass(Duration::from_secs(30)).await;
    let later = GroupCount {
        oldest: old,
        next_due: Some(now + Duration::from_mins(1)),
        ..events(7, 1, 0)
    };
    assert_eq!(look().await, [later, none, none]);
    let again = take(&queue, backend, 1).await;
    remove(&queue, backend, &again[0].receipt).await;
    let last = GroupCount {
        oldest: sent,
        ..GroupCount { due: 0, ..later }
    };
    assert_eq!(look().await, [last, none, none]);
}

async fn all(queue: &impl QueueReceiver) -> Vec<(String, GroupCount)> {
    let all = queue.waiting_by_group().await.unwrap();
    let all = all.expect("a queue that shows its groups").into_iter();
    let mut all: Vec<_> = all.map(|(group, of)| (group.to_string(), of)).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
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
        .due_counts(&names(["a", "no such group", "b"]))
        .await
        .unwrap();
    (all, of.expect("a queue that shows its groups"))
}

pub(super) async fn due_messages_are_counted_by_group(harness: &impl QueueHarness) {
    let queue = harness.fresh().await.deliveries;
    let backend = harness.backend();
    for message in [
        group_message("a", "1234", 0),
        group_message("a", "1234", 0),
        group_message("a", "1234", 30),
        group_message("b", "12", 0),
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
