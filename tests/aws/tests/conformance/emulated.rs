//! The suites on emulators, in real time: the cases without long waits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName::{QueueArn, RedrivePolicy};
use posthaste_aws::{AwsClients, QueueUrls, S3Store, SqsQueue};
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, QueueName};
use posthaste_system::SystemClock;
use posthaste_testkit::conformance::{queue, store};
use posthaste_tests_aws::emulator::{Emulator, Tool};

use crate::clients::{Sdk, clients};

/// Low, so that the case that receives a message too often is short.
const MAX_RECEIVE_COUNT: u32 = 4;

/// Longest wait of a case: most cases need visibility timeouts and delays of a few seconds.
const PASS_MAX: Duration = Duration::from_secs(5);

/// An emulator, the adapters on it, and clients of the SDK that make queues and buckets.
struct Emulated {
    _emulator: Emulator,
    tool: Tool,
    clients: AwsClients,
    sdk: Sdk,
    made: AtomicU32,
}

impl Emulated {
    fn start(tool: Tool) -> Self {
        let emulator = Emulator::start(tool);
        let sdk = Sdk::new(emulator.endpoint());
        let clients = clients(emulator.endpoint());
        Self {
            _emulator: emulator,
            tool,
            clients,
            sdk,
            made: AtomicU32::new(0),
        }
    }

    /// A name that nothing had before.
    fn name(&self, kind: &str) -> String {
        format!("{kind}-{}", self.made.fetch_add(1, Ordering::SeqCst))
    }

    /// Makes a queue and answers its URL.
    async fn make_queue(&self, kind: &str, redrive_policy: Option<String>) -> String {
        let request = self.sdk.sqs.create_queue().queue_name(self.name(kind));
        let request = match redrive_policy {
            Some(policy) => request.attributes(RedrivePolicy, policy),
            None => request,
        };
        request.send().await.unwrap().queue_url.unwrap()
    }

    async fn arn(&self, url: &str) -> String {
        let request = self
            .sdk
            .sqs
            .get_queue_attributes()
            .queue_url(url)
            .attribute_names(QueueArn);
        request.send().await.unwrap().attributes.unwrap()[&QueueArn].clone()
    }
}

impl queue::QueueHarness for Emulated {
    type Queue = SqsQueue<SystemClock>;

    async fn fresh(&self) -> queue::QueueSet<Self::Queue> {
        let redrive = self.make_queue("redrive", None).await;
        let target = self.arn(&redrive).await;
        let policy = format!(
            r#"{{"deadLetterTargetArn":"{target}","maxReceiveCount":"{MAX_RECEIVE_COUNT}"}}"#
        );
        let urls = QueueUrls::from([
            (
                QueueName::Deliveries,
                self.make_queue("deliveries", Some(policy)).await,
            ),
            (
                QueueName::DeadLetters,
                self.make_queue("deadletters", None).await,
            ),
            (QueueName::Redrive, redrive),
            (QueueName::Records, self.make_queue("records", None).await),
        ]);
        let of = |name| self.clients.queue(name, urls.clone(), SystemClock);
        queue::QueueSet {
            deliveries: of(QueueName::Deliveries),
            dead_letters: of(QueueName::DeadLetters),
            redrive: of(QueueName::Redrive),
            records: of(QueueName::Records),
        }
    }

    async fn pass(&self, length: Duration) {
        SystemClock.sleep(length).await;
    }

    fn now(&self) -> Option<Timestamp> {
        None
    }

    fn backend(&self) -> queue::QueueBackend {
        queue::QueueBackend {
            pass_max: PASS_MAX,
            // LocalStack shows a delayed message up to a second late; moto gives one message to
            // several receivers that ask at the same moment.
            is_exact: self.tool == Tool::Ministack,
            acknowledges: false,
            refuses_stale_receipts: self.tool == Tool::Ministack,
            replaces_atomically: false,
            shows_groups: false,
            is_fair: false,
            max_receive_count: MAX_RECEIVE_COUNT,
            wait: if self.tool == Tool::Localstack {
                Duration::from_secs(1)
            } else {
                Duration::ZERO
            },
        }
    }
}

impl store::StoreHarness for Emulated {
    type Store = S3Store;

    async fn fresh(&self) -> S3Store {
        let bucket = self.name("state");
        self.sdk
            .s3
            .create_bucket()
            .bucket(&bucket)
            .send()
            .await
            .unwrap();
        self.clients.store(&bucket)
    }

    fn is_exact(&self) -> bool {
        self.tool != Tool::Moto
    }
}

#[tokio::test]
async fn sqs_passes_as_a_queue_on_ministack() {
    queue::run(&Emulated::start(Tool::Ministack)).await;
}

#[tokio::test]
async fn s3_passes_as_an_object_store_on_ministack() {
    store::run(&Emulated::start(Tool::Ministack)).await;
}

#[tokio::test]
async fn sqs_passes_as_a_queue_on_moto() {
    queue::run(&Emulated::start(Tool::Moto)).await;
}

#[tokio::test]
async fn s3_passes_as_an_object_store_on_moto() {
    store::run(&Emulated::start(Tool::Moto)).await;
}

#[tokio::test]
async fn sqs_passes_as_a_queue_on_localstack() {
    queue::run(&Emulated::start(Tool::Localstack)).await;
}

#[tokio::test]
async fn s3_passes_as_an_object_store_on_localstack() {
    store::run(&Emulated::start(Tool::Localstack)).await;
}
