//! Behaviour at the seams of opening, closing, waiting and sharing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_ports::{
    ETag, ErrorKind, MessageId, ObjectStore, OutgoingMessage, PutCondition, QueueCounts, QueueName,
    QueueReceiver, QueueSender, ReceiveRequest,
};

use super::device::Device;
use super::{ask, clock, drain, message, open, open_with, text, to};
use crate::embedded::WaitingCalls;
use crate::embedded::lock::LOCK_FILE;
use crate::{EmbeddedStore, LocalOptions, OpenError};
use posthaste_system::{SystemClock, SystemEntropy};
use posthaste_testkit::{ManualClock, SeededEntropy};

const DELIVERIES: QueueName = QueueName::Deliveries;

async fn send(local: &EmbeddedStore<ManualClock>, message: OutgoingMessage) -> MessageId {
    local
        .queue(DELIVERIES)
        .send_batch(vec![message])
        .await
        .unwrap()
        .remove(0)
        .unwrap()
}

fn counts(visible: u64, delayed: u64, in_flight: u64) -> QueueCounts {
    QueueCounts {
        visible,
        delayed,
        in_flight,
    }
}

#[tokio::test]
async fn a_second_opening_of_a_folder_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let open = || EmbeddedStore::open(&dir, LocalOptions::default(), SystemClock, SystemEntropy);
    let first = open().unwrap();
    let error = open().unwrap_err();
    assert!(
        matches!(&error, OpenError::Locked { pid: Some(pid), .. } if *pid == std::process::id())
    );
    let expected = format!(
        "the data folder {} is open in another posthaste (process {})",
        dir.display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
    first.close().await;
    open().unwrap().close().await;
}

#[tokio::test]
async fn a_folder_whose_lock_file_was_deleted_is_refused_too() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        EmbeddedStore::open(
            folder.path(),
            LocalOptions::default(),
            SystemClock,
            SystemEntropy,
        )
    };
    let first = open().unwrap();
    std::fs::remove_file(folder.path().join(LOCK_FILE)).unwrap();
    let error = open().unwrap_err();
    assert!(
        matches!(&error, OpenError::Locked { pid: None, .. }),
        "{error:?}"
    );
    assert!(
        first
            .state_store()
            .get("still/there")
            .await
            .unwrap()
            .is_none()
    );
    first.close().await;
    open().unwrap().close().await;
}

/// A folder that cannot be made, or a file that is no store, is an error.
#[tokio::test]
async fn unusable_folder_or_foreign_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let open = |dir: &std::path::Path| {
        EmbeddedStore::open(dir, LocalOptions::default(), SystemClock, SystemEntropy)
    };
    assert!(matches!(open(&file).unwrap_err(), OpenError::Folder { .. }));
    std::fs::write(
        folder.path().join("posthaste.redb"),
        "this is no database".repeat(1000),
    )
    .unwrap();
    assert!(matches!(
        open(folder.path()).unwrap_err(),
        OpenError::Engine { .. }
    ));
    assert!(folder.path().join(LOCK_FILE).exists());
}

/// Messages that were in flight are visible after a restart, and delays continue.
#[tokio::test]
async fn restart_makes_messages_visible_and_keeps_delays() {
    let device = Device::default();
    let clock = clock();
    let local = open_with(&device, &LocalOptions::default(), &clock);
    let id = send(
        &local,
        OutgoingMessage {
            group: Some("g".to_owned()),
            ..message("now")
        },
    )
    .await;
    send(
        &local,
        OutgoingMessage {
            delay: Duration::from_mins(15),
            ..message("later")
        },
    )
    .await;
    let receipt = local
        .queue(DELIVERIES)
        .receive(ask(10))
        .await
        .unwrap()
        .remove(0)
        .receipt;
    local.close().await;
    clock.advance(Duration::from_secs(899));
    let local = open_with(&device, &LocalOptions::default(), &clock);
    let queue = local.queue(DELIVERIES);
    assert_eq!(queue.counts().await.unwrap(), counts(1, 1, 0));
    let again = queue.receive(ask(10)).await.unwrap().remove(0);
    assert_eq!(
        (&again.id, again.receive_count, text(&again)),
        (&id, 1, "now".to_owned())
    );
    // A receipt from before the restart is worth nothing, though the receive counts are the same.
    assert_ne!(again.receipt, receipt);
    queue.acknowledge(&receipt).await.unwrap();
    assert_eq!(queue.counts().await.unwrap(), counts(0, 1, 1));
    clock.advance(Duration::from_secs(1));
    assert_eq!(queue.counts().await.unwrap(), counts(1, 0, 1));
    assert_eq!(drain(&local, DELIVERIES).await, ["later"]);
}

#[tokio::test]
async fn ids_never_come_twice_though_messages_were_deleted() {
    let device = Device::default();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let local = open(&device);
        ids.push(send(&local, message("x")).await);
        let received = local
            .queue(DELIVERIES)
            .receive(ask(1))
            .await
            .unwrap()
            .remove(0);
        local
            .queue(DELIVERIES)
            .acknowledge(&received.receipt)
            .await
            .unwrap();
        local.close().await;
    }
    let first = ids[0].clone();
    let last = ids[2].clone();
    ids.sort_by(|a, b| a.0.cmp(&b.0));
    ids.dedup();
    assert_eq!((ids.len(), &ids[0], &ids[2]), (3, &first, &last));
}

#[tokio::test]
async fn acknowledgements_are_written_when_the_store_closes() {
    let device = Device::default();
    let local = open(&device);
    send(&local, message("done")).await;
    send(&local, message("open")).await;
    let received = local.queue(DELIVERIES).receive(ask(10)).await.unwrap();
    let done = received
        .iter()
        .find(|message| text(message) == "done")
        .unwrap();
    local
        .queue(DELIVERIES)
        .acknowledge(&done.receipt)
        .await
        .unwrap();
    local.close().await;
    assert_eq!(drain(&open(&device), DELIVERIES).await, ["open"]);
}

#[tokio::test]
async fn a_closed_store_answers_with_errors() {
    let local = open(&Device::default());
    let queue = local.queue(DELIVERIES);
    let state = local.state_store();
    queue.send_batch(vec![message("x")]).await.unwrap();
    let received = queue.receive(ask(1)).await.unwrap().remove(0);
    local.close().await;
    let other = Some(ErrorKind::Other);
    assert_eq!(
        queue
            .send_batch(vec![message("y")])
            .await
            .err()
            .map(|error| error.kind),
        other
    );
    assert_eq!(
        queue
            .replace(&received.receipt, vec![])
            .await
            .err()
            .map(|error| error.kind),
        other
    );
    assert_eq!(state.get("key").await.err().map(|error| error.kind), other);
    let put = state.put("key", Bytes::new(), PutCondition::Always).await;
    assert_eq!(put.err().map(|error| error.kind), other);
}

#[tokio::test]
async fn senders_at_once_share_their_fsyncs() {
    let device = Device::default();
    let local = open(&device);
    let before = device.syncs();
    let senders = (0..200).map(|n| {
        let local = local.clone();
        async move { send(&local, message(n.to_string())).await }
    });
    let ids = join_all(senders).await;
    assert_eq!(ids.len(), 200);
    // The first may go alone while a second group gathers. There are more only if this thread is
    // interrupted.
    let syncs = device.syncs() - before;
    assert!(syncs < 100, "{syncs} syncs");
    assert_eq!(local.waiting_calls(), WaitingCalls::default());
}

/// Records that are sent count as a call, and as nothing that is published.
#[tokio::test]
async fn sent_records_count_as_a_call_but_not_as_published() {
    let local = open(&Device::default());
    // Without room every call waits.
    let _all_room = local.handle.shared.inbox.reserve_room(usize::MAX).await;
    let waiting = |queue| {
        let queue = local.queue(queue);
        let mut sending =
            Box::pin(async move { queue.send_batch(vec![message("x")]).await.map(drop) });
        assert!(futures_util::FutureExt::now_or_never(&mut sending).is_none());
        (local.waiting_calls(), sending)
    };
    let (gauges, publish) = waiting(DELIVERIES);
    assert_eq!(
        gauges,
        WaitingCalls {
            version_buckets: 1,
            batch_points: 1,
            calls: 1
        }
    );
    drop(publish);
    let (gauges, records) = waiting(QueueName::Records);
    assert_eq!(
        gauges,
        WaitingCalls {
            version_buckets: 0,
            batch_points: 0,
            calls: 1
        }
    );
    drop(records);
}

#[tokio::test]
async fn records_are_still_in_their_queue_after_a_restart() {
    let device = Device::default();
    let local = open(&device);
    send(&local, message("delivery")).await;
    let received = local
        .queue(DELIVERIES)
        .receive(ask(1))
        .await
        .unwrap()
        .remove(0);
    let successors = vec![to(QueueName::Records, "records"), to(DELIVERIES, "retry")];
    local
        .queue(DELIVERIES)
        .replace(&received.receipt, successors)
        .await
        .unwrap();
    local.close().await;
    let local = open(&device);
    assert_eq!(drain(&local, QueueName::Records).await, ["records"]);
    assert_eq!(drain(&local, DELIVERIES).await, ["retry"]);
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_whole_work() {
    let local = open(&Device::default());
    let queue = local.queue(DELIVERIES);
    send(&local, message("old")).await;
    let received = queue.receive(ask(1)).await.unwrap().remove(0);
    {
        let replace = queue.replace(&received.receipt, vec![to(DELIVERIES, "new")]);
        // Polled once, then dropped: the work is with the commit thread, which may even have done
        // it by then.
        let _ = futures_util::FutureExt::now_or_never(replace);
    }
    assert_eq!(local.waiting_calls(), WaitingCalls::default());
    let waiting = ReceiveRequest {
        wait: Duration::from_secs(20),
        ..ask(10)
    };
    assert_eq!(
        queue
            .receive(waiting)
            .await
            .unwrap()
            .iter()
            .map(text)
            .collect::<Vec<_>>(),
        ["new"]
    );
    assert_eq!(queue.counts().await.unwrap(), counts(0, 0, 1));
}

#[tokio::test]
async fn every_waiting_receiver_is_woken_for_its_message() {
    let local = Arc::new(open(&Device::default()));
    let receivers: Vec<_> = (0..50)
        .map(|_| {
            let local = local.clone();
            let waiting = ReceiveRequest {
                wait: Duration::from_secs(20),
                ..ask(1)
            };
            tokio::spawn(async move { local.queue(DELIVERIES).receive(waiting).await.unwrap() })
        })
        .collect();
    tokio::task::yield_now().await;
    for batch in 0..5 {
        let entries = (0..10).map(|n| message(format!("{batch}{n}"))).collect();
        local.queue(DELIVERIES).send_batch(entries).await.unwrap();
    }
    let mut bodies = Vec::new();
    for receiver in receivers {
        bodies.extend(receiver.await.unwrap().iter().map(text));
    }
    bodies.sort();
    let expected: Vec<_> = (0..5)
        .flat_map(|batch| (0..10).map(move |n| format!("{batch}{n}")))
        .collect();
    assert_eq!(bodies, expected);
}

#[tokio::test]
async fn at_the_limit_a_receive_waits_for_a_slot() {
    let options = LocalOptions {
        deliveries_in_flight_max: 2,
        ..LocalOptions::default()
    };
    let local = open_with(&Device::default(), &options, &clock());
    let queue = local.queue(DELIVERIES);
    for (n, group) in ["a", "b", "c"].into_iter().enumerate() {
        send(
            &local,
            OutgoingMessage {
                group: Some(group.to_owned()),
                ..message(n.to_string())
            },
        )
        .await;
    }
    let taken = queue.receive(ask(10)).await.unwrap();
    assert_eq!(taken.len(), 2);
    assert_eq!(queue.receive(ask(10)).await.unwrap().len(), 0);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        let ask = ReceiveRequest {
            wait: Duration::from_secs(20),
            ..ask(10)
        };
        async move { queue.receive(ask).await.unwrap() }
    });
    tokio::task::yield_now().await;
    queue.acknowledge(&taken[0].receipt).await.unwrap();
    assert_eq!(
        waiting.await.unwrap().iter().map(text).collect::<Vec<_>>(),
        ["2"]
    );
}

#[tokio::test]
async fn a_wait_ends_when_a_visibility_timeout_does() {
    let clock = clock();
    let local = open_with(&Device::default(), &LocalOptions::default(), &clock);
    send(&local, message("x")).await;
    let queue = local.queue(DELIVERIES);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move {
            let briefly = ReceiveRequest {
                visibility: Duration::from_secs(3),
                ..ask(1)
            };
            assert_eq!(queue.receive(briefly).await.unwrap().len(), 1);
            queue
                .receive(ReceiveRequest {
                    wait: Duration::from_secs(20),
                    ..ask(1)
                })
                .await
                .unwrap()
        }
    });
    while clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        clock.advance_to_next(),
        Some(super::START + Duration::from_secs(3))
    );
    assert_eq!(waiting.await.unwrap()[0].receive_count, 2);
}

#[tokio::test]
async fn a_wait_hears_of_a_delay_that_begins_meanwhile() {
    let clock = clock();
    let local = open_with(&Device::default(), &LocalOptions::default(), &clock);
    let queue = local.queue(DELIVERIES);
    let waiting = tokio::spawn(async move {
        queue
            .receive(ReceiveRequest {
                wait: Duration::from_secs(20),
                ..ask(1)
            })
            .await
            .unwrap()
    });
    while clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    send(
        &local,
        OutgoingMessage {
            delay: Duration::from_secs(2),
            ..message("soon")
        },
    )
    .await;
    while clock.next_due() != Some(super::START + Duration::from_secs(2)) {
        tokio::task::yield_now().await;
    }
    clock.advance_to_next();
    assert_eq!(
        waiting.await.unwrap().iter().map(text).collect::<Vec<_>>(),
        ["soon"]
    );
}

#[tokio::test]
async fn versions_of_objects_never_come_twice() {
    let device = Device::default();
    let mut etags: Vec<ETag> = Vec::new();
    for _ in 0..3 {
        let local = open(&device);
        let state = local.state_store();
        etags.push(
            state
                .put("key", Bytes::from("same"), PutCondition::IfAbsent)
                .await
                .unwrap(),
        );
        state.delete("key").await.unwrap();
        local.close().await;
    }
    assert!(etags[0] != etags[1] && etags[1] != etags[2] && etags[0] != etags[2]);
}

#[tokio::test]
async fn a_new_folder_has_ids_of_its_own() {
    let open = |seed| {
        let lock = super::FolderLock::none();
        let disk = Box::new(Device::default());
        let clock = clock();
        EmbeddedStore::open_disk(
            disk,
            lock,
            &LocalOptions::default(),
            clock,
            &SeededEntropy::new(seed),
        )
        .unwrap()
    };
    assert_ne!(
        send(&open(1), message("x")).await,
        send(&open(2), message("x")).await
    );
}
