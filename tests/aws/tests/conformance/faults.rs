//! The adapters' behaviour when AWS goes wrong, seen by the double.

mod objects;
mod receiving;
mod replacing;
mod sending;
mod silence;

use std::time::Duration;

use bytes::Bytes;
use posthaste_aws::{QueueUrls, S3Store, SqsQueue};
use posthaste_core::model::Timestamp;
use posthaste_ports::{
    ErrorKind, OutgoingMessage, PortError, QueueName, QueueReceiver, ReceivedMessage,
};
use posthaste_ports::{ReceiveRequest, Successor};
use posthaste_system::SystemClock;
use posthaste_testkit::ManualClock;
use posthaste_tests_aws::double::{Access, Double};

use crate::clients::clients;

/// The visibility timeout that these tests receive with.
const HIDDEN: Duration = Duration::from_secs(30);

/// Most attempts of one operation, as `shared/aws` sets it.
const ATTEMPTS: usize = posthaste_aws::clients::ATTEMPTS_MAX as usize;

/// A double, and the adapters of one process on it.
struct World {
    double: Double,
    clock: ManualClock,
    queue: SqsQueue<SystemClock>,
    store: S3Store,
}

impl World {
    async fn new() -> Self {
        let clock = ManualClock::new(Timestamp::parse("2026-11-21T10:00:00Z").unwrap());
        let double = Double::start(clock.clone()).await;
        double.bucket("state", Access::Full);
        let clients = clients(&double.endpoint());
        let urls = QueueUrls::from([
            (QueueName::Deliveries, double.queue("deliveries", None)),
            (QueueName::DeadLetters, double.queue("deadletters", None)),
        ]);
        let queue = clients.queue(QueueName::Deliveries, urls, SystemClock);
        Self {
            queue,
            store: clients.store("state"),
            double,
            clock,
        }
    }

    /// Sends messages and receives them, and begins a new journal.
    async fn received(&self, bodies: &[String]) -> Vec<ReceivedMessage> {
        let entries: Vec<_> = bodies.iter().map(|body| message(body)).collect();
        let sent = posthaste_services::send_all(&self.queue, entries).await;
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        let mut received = Vec::new();
        while received.len() < bodies.len() {
            received.extend(self.receive().await);
        }
        self.double.take_journal();
        received
    }

    async fn received_one(&self, body: &str) -> ReceivedMessage {
        self.received(&[body.to_owned()]).await.remove(0)
    }

    async fn receive(&self) -> Vec<ReceivedMessage> {
        let request = ReceiveRequest {
            max: 10,
            visibility: HIDDEN,
            wait: Duration::ZERO,
        };
        self.queue.receive(request).await.unwrap()
    }

    /// The bodies in the delivery queue, in their own order.
    fn deliveries(&self) -> Vec<String> {
        let mut bodies = self.double.bodies("deliveries");
        bodies.sort();
        bodies
    }
}

fn message(body: &str) -> OutgoingMessage {
    OutgoingMessage {
        body: Bytes::from(body.to_owned()),
        group: None,
        delay: Duration::ZERO,
    }
}

fn retry(body: &str) -> Successor {
    Successor {
        to: QueueName::Deliveries,
        message: OutgoingMessage {
            delay: Duration::from_secs(10),
            ..message(body)
        },
    }
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:02}")).collect()
}

/// The kind of a result's error.
fn kind<T>(result: Result<T, PortError>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}
