//! The suites on the strict double, whose clock is moved by hand: every case there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use posthaste_aws::{QueueUrls, S3Store, SqsQueue};
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, QueueName};
use posthaste_system::SystemClock;
use posthaste_testkit::ManualClock;
use posthaste_testkit::conformance::{queue, store};
use posthaste_tests_aws::double::{Access, Double, Redrive};

use crate::clients::clients;
use crate::watched::Watched;

/// Low, so that the case that receives a message too often is short.
const MAX_RECEIVE_COUNT: u32 = 4;

struct Doubled {
    double: Double,
    clock: ManualClock,
    receiving: Arc<AtomicUsize>,
}

impl Doubled {
    async fn start() -> Self {
        let clock = ManualClock::new(Timestamp::parse("2026-11-21T10:00:00Z").unwrap());
        Self {
            double: Double::start(clock.clone()).await,
            clock,
            receiving: Arc::default(),
        }
    }
}

impl queue::QueueHarness for Doubled {
    type Queue = Watched<SqsQueue<SystemClock>>;

    async fn fresh(&self) -> queue::QueueSet<Self::Queue> {
        let redrive = Redrive {
            to: "redrive".to_owned(),
            max_receive_count: MAX_RECEIVE_COUNT,
        };
        let urls = QueueUrls::from([
            (
                QueueName::Deliveries,
                self.double.queue("deliveries", Some(redrive)),
            ),
            (
                QueueName::DeadLetters,
                self.double.queue("deadletters", None),
            ),
            (QueueName::Redrive, self.double.queue("redrive", None)),
            (QueueName::Records, self.double.queue("records", None)),
        ]);
        let clients = clients(&self.double.endpoint());
        // The adapter's own short waits pass in real time: they are not the queue's.
        let of = |name| {
            Watched::new(
                clients.queue(name, urls.clone(), SystemClock),
                &self.receiving,
            )
        };
        queue::QueueSet {
            deliveries: of(QueueName::Deliveries),
            dead_letters: of(QueueName::DeadLetters),
            redrive: of(QueueName::Redrive),
            records: of(QueueName::Records),
        }
    }

    async fn pass(&self, length: Duration) {
        // A request takes real time, and the double's clock does not move in it.
        while self.double.waiting() != self.receiving.load(Ordering::SeqCst) {
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
            acknowledges: false,
            refuses_stale_receipts: true,
            replaces_atomically: false,
            shows_groups: false,
            is_fair: true,
            max_receive_count: MAX_RECEIVE_COUNT,
            wait: Duration::ZERO,
        }
    }
}

impl store::StoreHarness for Doubled {
    type Store = S3Store;

    async fn fresh(&self) -> S3Store {
        self.double.bucket("state", Access::Full);
        clients(&self.double.endpoint()).store("state")
    }
}

#[tokio::test]
async fn sqs_passes_as_a_queue_on_the_double() {
    queue::run(&Doubled::start().await).await;
}

#[tokio::test]
async fn s3_passes_as_an_object_store_on_the_double() {
    store::run(&Doubled::start().await).await;
}
