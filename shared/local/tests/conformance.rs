//! Conformance of the embedded adapters to their ports.

#![expect(clippy::unwrap_used, reason = "a harness that fails panics")]

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_local::{EmbeddedStore, FileStore, LocalOptions, LocalQueue, StateStore};
use posthaste_ports::{Clock, QueueName};
use posthaste_testkit::conformance::{queue, store};
use posthaste_testkit::{ManualClock, SeededEntropy};
use tempfile::TempDir;

/// Low, so that the case that receives a message too often is short.
const MAX_RECEIVE_COUNT: u32 = 4;

/// Folders that live as long as the test.
#[derive(Default)]
struct Folders(Mutex<Vec<TempDir>>);

impl Folders {
    fn fresh(&self) -> PathBuf {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        self.0.lock().unwrap().push(folder);
        path
    }
}

/// The embedded queues and state objects, by a clock that is moved by hand.
struct Embedded {
    folders: Folders,
    clock: ManualClock,
    last: Mutex<Option<EmbeddedStore<ManualClock>>>,
}

impl Embedded {
    fn new() -> Self {
        let start = Timestamp::parse("2026-11-21T10:00:00Z").unwrap();
        Self {
            folders: Folders::default(),
            clock: ManualClock::new(start),
            last: Mutex::default(),
        }
    }

    fn open(&self) -> EmbeddedStore<ManualClock> {
        let options = LocalOptions {
            max_receive_count: MAX_RECEIVE_COUNT,
            ..LocalOptions::default()
        };
        let local = EmbeddedStore::open(
            &self.folders.fresh(),
            options,
            self.clock.clone(),
            SeededEntropy::new(1),
        )
        .unwrap();
        *self.last.lock().unwrap() = Some(local.clone());
        local
    }

    fn waits_for_a_commit(&self) -> bool {
        self.last
            .lock()
            .unwrap()
            .as_ref()
            .is_some_and(|local| local.waiting_calls().calls > 0)
    }
}

impl queue::QueueHarness for Embedded {
    type Queue = LocalQueue<ManualClock>;

    async fn fresh(&self) -> queue::QueueSet<Self::Queue> {
        let local = self.open();
        queue::QueueSet {
            deliveries: local.queue(QueueName::Deliveries),
            dead_letters: local.queue(QueueName::DeadLetters),
            redrive: local.queue(QueueName::Redrive),
            records: local.queue(QueueName::Records),
        }
    }

    async fn pass(&self, length: Duration) {
        // A commit takes real time, and this clock does not move in it.
        while self.waits_for_a_commit() {
            tokio::task::yield_now().await;
        }
        self.clock.advance(length);
    }

    fn now(&self) -> Option<Timestamp> {
        Some(self.clock.now())
    }

    fn backend(&self) -> queue::QueueBackend {
        queue::QueueBackend {
            pass_max: Duration::MAX,
            is_exact: true,
            acknowledges: true,
            refuses_stale_receipts: true,
            replaces_atomically: true,
            shows_groups: true,
            is_fair: true,
            max_receive_count: MAX_RECEIVE_COUNT,
            wait: Duration::ZERO,
        }
    }
}

impl store::StoreHarness for Embedded {
    type Store = StateStore;

    async fn fresh(&self) -> StateStore {
        self.open().state_store()
    }
}

/// Objects as plain files.
#[derive(Default)]
struct Files(Folders);

impl store::StoreHarness for Files {
    type Store = FileStore;

    async fn fresh(&self) -> FileStore {
        FileStore::open(&self.0.fresh()).unwrap()
    }
}

#[tokio::test]
async fn embedded_queues_pass_as_queues() {
    queue::run(&Embedded::new()).await;
}

#[tokio::test]
async fn state_objects_pass_as_an_object_store() {
    store::run(&Embedded::new()).await;
}

#[tokio::test]
async fn plain_files_pass_as_an_object_store() {
    store::run(&Files::default()).await;
}
