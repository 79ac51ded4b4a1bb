//! Records of the delivery log never take the room of events.

use posthaste_ports::{ErrorKind, QueueCounts, QueueName, QueueReceiver, QueueSender};

use super::device::Device;
use super::{ask, clock, drain, message, open, open_with, to};
use crate::{EmbeddedStore, LocalOptions};
use posthaste_testkit::ManualClock;

const DELIVERIES: QueueName = QueueName::Deliveries;
const RECORDS: QueueName = QueueName::Records;
const MIB: u64 = 1 << 20;

async fn send(
    local: &EmbeddedStore<ManualClock>,
    queue: QueueName,
    body: &str,
) -> Result<(), ErrorKind> {
    let sent = local.queue(queue).send_batch(vec![message(body)]).await;
    sent.map_err(|error| error.kind)?
        .remove(0)
        .map(drop)
        .map_err(|error| error.kind)
}

/// Receives a message of a queue, and replaces it by one of `queue_of_successor` with this body.
async fn replace(
    local: &EmbeddedStore<ManualClock>,
    queue: QueueName,
    queue_of_successor: QueueName,
    body: &str,
) -> Result<(), ErrorKind> {
    let received = local.queue(queue).receive(ask(1)).await.unwrap().remove(0);
    let replaced = local
        .queue(queue)
        .replace(&received.receipt, vec![to(queue_of_successor, body)])
        .await;
    replaced.map_err(|error| error.kind)
}

/// A store in which records of so many bytes may wait.
fn bounded(device: &Device, records_bytes_max: u64) -> EmbeddedStore<ManualClock> {
    open_with(
        device,
        &LocalOptions {
            records_bytes_max,
            ..LocalOptions::default()
        },
        &clock(),
    )
}

#[tokio::test]
async fn records_are_refused_while_events_still_have_room() {
    let device = Device::default();
    let local = open(&device);
    for (free, records, events) in [
        (129, Ok(()), Ok(())),
        (100, Err(ErrorKind::Full), Ok(())),
        (20, Err(ErrorKind::Full), Err(ErrorKind::Full)),
    ] {
        device.set_free_bytes(Some(free * MIB));
        assert_eq!(
            send(&local, RECORDS, "records").await,
            records,
            "{free} MiB"
        );
        assert_eq!(
            send(&local, DELIVERIES, "event").await,
            events,
            "{free} MiB"
        );
    }
}

/// A message is replaced without the records that were refused together with it.
#[tokio::test]
async fn message_is_replaced_without_its_refused_records() {
    let device = Device::default();
    let local = open(&device);
    device.set_free_bytes(Some(100 * MIB));
    let queue = local.queue(DELIVERIES);
    for _ in 0..200 {
        send(&local, DELIVERIES, "event").await.unwrap();
        let received = queue.receive(ask(1)).await.unwrap().remove(0);
        let both = vec![
            to(QueueName::DeadLetters, "refused"),
            to(RECORDS, "records"),
        ];
        let refused = queue.replace(&received.receipt, both).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Full);
        // At once: a caller that hears of the refusal finds the message as it was.
        queue
            .replace(
                &received.receipt,
                vec![to(QueueName::DeadLetters, "letter")],
            )
            .await
            .unwrap();
    }
    assert_eq!(queue.counts().await.unwrap(), QueueCounts::default());
    assert_eq!(
        drain(&local, QueueName::DeadLetters).await,
        vec!["letter"; 200]
    );
    assert_eq!(drain(&local, RECORDS).await.len(), 0);
}

#[tokio::test]
async fn records_that_wait_are_bounded_also_after_a_restart() {
    let device = Device::default();
    let local = bounded(&device, 2_500);
    let kilobyte = "x".repeat(1_000);
    send(&local, RECORDS, &kilobyte).await.unwrap();
    send(&local, RECORDS, &kilobyte).await.unwrap();
    assert_eq!(send(&local, RECORDS, &kilobyte).await, Err(ErrorKind::Full));
    // Events and smaller records still fit.
    send(&local, DELIVERIES, &kilobyte).await.unwrap();
    send(&local, RECORDS, "small").await.unwrap();
    local.close().await;

    let local = bounded(&device, 2_500);
    assert_eq!(send(&local, RECORDS, &kilobyte).await, Err(ErrorKind::Full));
    assert_eq!(
        replace(&local, DELIVERIES, RECORDS, &kilobyte).await,
        Err(ErrorKind::Full)
    );
    let queue = local.queue(RECORDS);
    for received in queue.receive(ask(10)).await.unwrap() {
        queue.acknowledge(&received.receipt).await.unwrap();
    }
    // Acknowledgements are written with the next commit, and before it.
    send(&local, DELIVERIES, "event").await.unwrap();
    send(&local, RECORDS, &kilobyte).await.unwrap();
    assert_eq!(drain(&local, RECORDS).await, [kilobyte]);
}

#[tokio::test]
async fn jobs_of_one_commit_share_the_bound() {
    let local = bounded(&Device::default(), 2_500);
    let kilobyte = "x".repeat(1_000);
    let sends = (0..10).map(|_| send(&local, RECORDS, &kilobyte));
    let sent = futures_util::future::join_all(sends).await;
    assert_eq!(
        sent.iter().filter(|sent| sent.is_ok()).count(),
        2,
        "{sent:?}"
    );
    assert_eq!(drain(&local, RECORDS).await.len(), 2);
}

#[tokio::test]
async fn record_puts_back_what_it_cannot_read_whatever_the_bound() {
    let device = Device::default();
    let local = bounded(&device, 1_000);
    send(&local, RECORDS, &"x".repeat(900)).await.unwrap();
    device.set_free_bytes(Some(1));
    replace(&local, RECORDS, RECORDS, &"y".repeat(900))
        .await
        .unwrap();
    assert_eq!(drain(&local, RECORDS).await, ["y".repeat(900)]);
}

#[tokio::test]
async fn records_that_are_given_up_no_longer_wait() {
    let options = LocalOptions {
        records_bytes_max: 1_000,
        max_receive_count: 1,
        ..LocalOptions::default()
    };
    let time = clock();
    let local = open_with(&Device::default(), &options, &time);
    let large = "x".repeat(900);
    send(&local, RECORDS, &large).await.unwrap();
    assert_eq!(drain(&local, RECORDS).await, [large.as_str()]);
    assert_eq!(send(&local, RECORDS, &large).await, Err(ErrorKind::Full));
    time.advance(ask(1).visibility);
    assert_eq!(drain(&local, RECORDS).await.len(), 0);
    send(&local, RECORDS, &large).await.unwrap();
    assert_eq!(drain(&local, QueueName::Redrive).await, [large]);
}
