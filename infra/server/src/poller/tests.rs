//! The poller over the embedded queue, on a clock that is moved by hand.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::model::Timestamp;
use posthaste_local::{EmbeddedStore, LocalOptions, LocalQueue};
use posthaste_ports::{
    OutgoingMessage, PortError, QueueCounts, QueueSender, ReceiptHandle, Successor,
};
use posthaste_testkit::{ManualClock, SeededEntropy};
use tempfile::TempDir;
use tokio::sync::mpsc;

const SETTINGS: PollSettings = PollSettings {
    queue: QueueName::Deliveries,
    batch_max: 10,
    window: Duration::ZERO,
    timeout: Duration::from_secs(10),
    loops: 1,
    invocations_max: 100,
};

/// Reports the bodies of every batch. It panics at "panic" and fails every "fail".
struct Told(Mutex<mpsc::UnboundedSender<Vec<String>>>);

impl QueueHandler for Told {
    async fn handle(&self, batch: Vec<ReceivedMessage>, _: Duration) -> BatchResponse {
        let body = |message: &ReceivedMessage| String::from_utf8(message.body.to_vec()).unwrap();
        self.0
            .lock()
            .send(batch.iter().map(body).collect())
            .unwrap();
        assert!(
            batch.iter().all(|message| body(message) != "panic"),
            "a fault of the function"
        );
        let failures = batch
            .iter()
            .filter(|message| body(message) == "fail")
            .map(|m| m.id.clone())
            .collect();
        BatchResponse { failures }
    }
}

/// Counts the batches under way, and reports each that begins.
struct Counted {
    begun: mpsc::UnboundedSender<usize>,
    under_way: AtomicUsize,
    is_slow: bool,
}

impl QueueHandler for Counted {
    async fn handle(&self, _: Vec<ReceivedMessage>, _: Duration) -> BatchResponse {
        self.begun
            .send(self.under_way.fetch_add(1, Ordering::Relaxed) + 1)
            .unwrap();
        if self.is_slow {
            std::future::pending::<()>().await;
        }
        yield_now().await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        BatchResponse::default()
    }
}

struct World {
    clock: ManualClock,
    stop: CancellationToken,
    queue: LocalQueue<ManualClock>,
    batches: mpsc::UnboundedReceiver<Vec<String>>,
    poller: tokio::task::JoinHandle<()>,
    _folder: TempDir,
}

/// A queue with these messages.
async fn queue_of(
    folder: &TempDir,
    clock: &ManualClock,
    bodies: &[&'static str],
) -> LocalQueue<ManualClock> {
    let entropy = SeededEntropy::new(1);
    let local = EmbeddedStore::open(
        folder.path(),
        LocalOptions::default(),
        clock.clone(),
        entropy,
    )
    .unwrap();
    let queue = local.queue(QueueName::Deliveries);
    let message = |body: &&'static str| OutgoingMessage {
        body: Bytes::from(*body),
        group: None,
        delay: Duration::ZERO,
    };
    queue
        .send_batch(bodies.iter().map(message).collect())
        .await
        .unwrap();
    queue
}

impl World {
    async fn begin(settings: PollSettings, bodies: &[&'static str]) -> Self {
        let folder = TempDir::new().unwrap();
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        let queue = queue_of(&folder, &clock, bodies).await;
        let stop = CancellationToken::new();
        let (tell, batches) = mpsc::unbounded_channel();
        let handler = Arc::new(Told(Mutex::new(tell)));
        let poller = tokio::spawn(poll(
            queue.clone(),
            handler,
            clock.clone(),
            settings,
            stop.clone(),
        ));
        Self {
            clock,
            stop,
            queue,
            batches,
            poller,
            _folder: folder,
        }
    }

    async fn next_batch(&mut self) -> Vec<String> {
        self.batches.recv().await.unwrap()
    }

    /// Ends the poller and returns the number of messages that are left.
    async fn end(mut self) -> u64 {
        self.stop.cancel();
        while !self.poller.is_finished() {
            self.clock.advance(RECEIVE_WAIT);
            yield_now().await;
        }
        (&mut self.poller).await.unwrap();
        let counts = self.queue.counts().await.unwrap();
        counts.visible + counts.in_flight
    }

    /// Lets the visibility timeout run out.
    async fn wait_for_visibility(&self) {
        self.clock
            .advance(SETTINGS.timeout * VISIBILITY_PER_TIMEOUT);
        yield_now().await;
    }
}

#[tokio::test]
async fn messages_not_reported_as_failed_are_deleted() {
    let mut world = World::begin(SETTINGS, &["a", "fail", "b"]).await;
    assert_eq!(world.next_batch().await, ["a", "fail", "b"]);
    assert_eq!(world.end().await, 1);
}

#[tokio::test]
async fn a_failure_comes_back_after_its_visibility_timeout() {
    let mut world = World::begin(SETTINGS, &["fail", "b"]).await;
    assert_eq!(world.next_batch().await, ["fail", "b"]);
    world.wait_for_visibility().await;
    assert_eq!(world.next_batch().await, ["fail"]);
    assert_eq!(world.end().await, 1);
}

#[tokio::test]
async fn a_panic_fails_its_own_batch_only_and_the_messages_come_back() {
    let mut world = World::begin(
        PollSettings {
            batch_max: 1,
            ..SETTINGS
        },
        &["panic", "b"],
    )
    .await;
    assert_eq!(
        (world.next_batch().await, world.next_batch().await),
        (vec!["panic".into()], vec!["b".into()])
    );
    world.wait_for_visibility().await;
    assert_eq!(world.next_batch().await, ["panic"]);
    assert_eq!(world.end().await, 1);
}

/// The most batches of ten that were under way at once.
async fn most_under_way(is_slow: bool) -> usize {
    let folder = TempDir::new().unwrap();
    let clock = ManualClock::new(Timestamp::EPOCH);
    let queue = queue_of(&folder, &clock, &["a"; 10]).await;
    let (begun, mut counts) = mpsc::unbounded_channel();
    let handler = Arc::new(Counted {
        begun,
        under_way: AtomicUsize::new(0),
        is_slow,
    });
    let settings = PollSettings {
        batch_max: 1,
        ..SETTINGS
    };
    let poller = tokio::spawn(poll(
        queue,
        handler,
        clock,
        settings,
        CancellationToken::new(),
    ));
    let mut most = 0;
    for _ in 0..10 {
        most = counts.recv().await.unwrap().max(most);
    }
    poller.abort();
    most
}

/// Quick batches end before more begin; slow batches do not hold up others.
#[tokio::test]
async fn quick_batches_are_bounded_and_slow_ones_block_no_others() {
    assert!(most_under_way(false).await <= UNDER_WAY_AT_ONCE + 1);
    assert_eq!(most_under_way(true).await, 10);
}

/// A queue that panics when it is asked.
#[derive(Clone)]
struct Broken;

impl QueueReceiver for Broken {
    async fn receive(&self, _: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        panic!("a fault of the queue")
    }

    async fn acknowledge(&self, _: &ReceiptHandle) -> Result<(), PortError> {
        Ok(())
    }

    async fn replace(&self, _: &ReceiptHandle, _: Vec<Successor>) -> Result<(), PortError> {
        Ok(())
    }

    async fn change_visibility(&self, _: &ReceiptHandle, _: Duration) -> Result<(), PortError> {
        Ok(())
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        Ok(QueueCounts::default())
    }
}

#[tokio::test]
async fn a_panic_of_the_loop_itself_ends_the_poller_with_it() {
    let handler = Arc::new(Told(Mutex::new(mpsc::unbounded_channel().0)));
    let settings = PollSettings {
        loops: 2,
        ..SETTINGS
    };
    let clock = ManualClock::new(Timestamp::EPOCH);
    let ended = tokio::spawn(poll(
        Broken,
        handler,
        clock,
        settings,
        CancellationToken::new(),
    ))
    .await;
    assert!(ended.unwrap_err().is_panic());
}
