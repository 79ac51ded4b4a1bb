//! An emulator with a state bucket and queues, and deliver and wake on it.

use std::time::Duration;

use bytes::Bytes;
use posthaste_aws::{AwsClients, QueueUrls, S3Store, SqsQueue};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::delivery::message_group_id;
use posthaste_core::model::{EventPayload, SubscriptionName, TopicName};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_deliver::{
    DELAY_STEP_AWS, Deliver, DeliverPorts, DeliverSettings, DisablingMode, RecordsSettings,
};
use posthaste_ports::{
    Clock, ErrorKind, ObjectStore, OutgoingMessage, PortBundle, PutCondition, QueueName,
    QueueReceiver, QueueSender, ReceiveRequest,
};
use posthaste_services::{ActivityNotes, DrainMeter, LinkHealth, PressureReader, TopicRegistry};
use posthaste_simulation::{ScriptedEndpoint, event, start};
use posthaste_system::{SystemClock, SystemEntropy};
use posthaste_testkit::{ManualClock, records};
use posthaste_tests_aws::emulator::{Emulator, Tool};
use posthaste_wake::{DeliveryLog, Wake, WakePorts};
use serde_json::json;

use crate::clients::{Sdk, clients};

/// Longest wait for something that must happen: far longer than it takes.
const PATIENCE: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(100);

/// The timeout of deliver and the visibility timeout of its queue in the template.
const INVOCATION: Duration = Duration::from_mins(2);
const VISIBILITY: Duration = Duration::from_secs(730);

/// Most messages of one invocation.
const BATCH_MAX: usize = 10;

type Queue = SqsQueue<SystemClock>;

/// An emulator, with a state bucket and queues.
pub(crate) struct Emulated {
    clients: AwsClients,
    bucket: String,
    urls: QueueUrls,
    emulator: Emulator,
}

/// deliver and wake on it, and a subscription whose endpoint answers by script.
pub(crate) struct World {
    pub(crate) endpoint: ScriptedEndpoint,
    pub(crate) links: LinkHealth<S3Store, SystemClock>,
    state: S3Store,
    queue: Queue,
    dead_letters: Queue,
    deliver: Deliver<
        PortBundle<Queue, S3Store, S3Store, S3Store, ScriptedEndpoint, SystemClock, SystemEntropy>,
    >,
    wake: Wake<
        PortBundle<Queue, S3Store, S3Store, S3Store, ScriptedEndpoint, SystemClock, SystemEntropy>,
    >,
    _emulator: Emulator,
}

/// The defaults in seconds instead of minutes.
pub(crate) fn settings() -> HealthSettings {
    HealthSettings {
        glitch_hold: Duration::from_secs(1),
        first_hold: Duration::from_secs(3),
        later_hold: Duration::from_secs(3),
        probe_lease: Duration::from_secs(10),
        ramp_step: Duration::from_millis(100),
        ..HealthSettings::default()
    }
}

/// Calls `probe` again and again until it answers.
pub(crate) async fn wait_until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = SystemClock.monotonic() + PATIENCE;
    loop {
        if let Some(seen) = probe().await {
            return seen;
        }
        assert!(
            SystemClock.monotonic() < deadline,
            "gave up waiting for {what}"
        );
        SystemClock.sleep(POLL).await;
    }
}

impl Emulated {
    pub(crate) async fn start() -> Self {
        let emulator = Emulator::start(Tool::Ministack);
        let sdk = Sdk::new(emulator.endpoint());
        let bucket = "state".to_owned();
        sdk.s3.create_bucket().bucket(&bucket).send().await.unwrap();
        let make = async |name| {
            sdk.sqs
                .create_queue()
                .queue_name(name)
                .send()
                .await
                .unwrap()
                .queue_url
                .unwrap()
        };
        let urls = QueueUrls::from([
            (QueueName::Deliveries, make("deliveries").await),
            (QueueName::DeadLetters, make("deadletters").await),
            (QueueName::Records, make("records").await),
        ]);
        Self {
            clients: clients(emulator.endpoint()),
            bucket,
            urls,
            emulator,
        }
    }

    /// The links as a worker of its own sees them.
    pub(crate) fn links(&self) -> LinkHealth<S3Store, SystemClock> {
        LinkHealth::new(self.state(), SystemClock, settings())
    }

    fn state(&self) -> S3Store {
        self.clients.store(&self.bucket)
    }

    fn queue(&self, name: QueueName) -> Queue {
        self.clients.queue(name, self.urls.clone(), SystemClock)
    }

    fn registry(&self) -> TopicRegistry<S3Store, SystemClock> {
        TopicRegistry::new(self.state(), SystemClock, Duration::ZERO)
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        let emulated = Emulated::start().await;
        let endpoint = ScriptedEndpoint::new(ManualClock::new(start()));
        let key = layout::topic_record_key(&topic());
        emulated
            .state()
            .put(&key, record().render(), PutCondition::Always)
            .await
            .unwrap();
        let ports = DeliverPorts {
            queue: emulated.queue(QueueName::Deliveries),
            slow_queue: None,
            records: emulated.queue(QueueName::Records),
            state: emulated.state(),
            registry: emulated.registry(),
            links: emulated.links(),
            webhook: endpoint.clone(),
            clock: SystemClock,
            entropy: SystemEntropy,
            drain: DrainMeter::default(),
        };
        let records = RecordsSettings::AWS;
        let wake = Wake::new(WakePorts {
            deliveries: emulated.queue(QueueName::Deliveries),
            slow_lane: None,
            state: emulated.state(),
            dead_letters: emulated.state(),
            log: DeliveryLog::new(emulated.state()),
            log_delay: Duration::ZERO,
            registry: emulated.registry(),
            pressure: PressureReader::new(emulated.state(), SystemClock, Duration::ZERO),
            links: emulated.links(),
            activity: ActivityNotes::default(),
            clock: SystemClock,
            entropy: SystemEntropy,
        });
        Self {
            endpoint,
            links: emulated.links(),
            state: emulated.state(),
            queue: emulated.queue(QueueName::Deliveries),
            dead_letters: emulated.queue(QueueName::DeadLetters),
            deliver: Deliver::new(
                ports,
                DeliverSettings {
                    records,
                    delay_step: DELAY_STEP_AWS,
                    disabling: DisablingMode::ByWake,
                    ..DeliverSettings::default()
                },
            ),
            wake,
            _emulator: emulated.emulator,
        }
    }

    /// Puts a delivery of one event of this id into the queue, as publish does.
    pub(crate) async fn publish(&self, id: &str) {
        let payload = EventPayload::Inline(Bytes::from(event(id)));
        let to = (topic(), subscription());
        let delivery = records::delivery(to, &format!("key-{id}"), [payload], SystemClock.now());
        let body = render_delivery(&delivery);
        let group = Some(message_group_id(&topic(), &subscription()));
        let sent = self
            .queue
            .send_batch(vec![OutgoingMessage {
                body,
                group,
                delay: Duration::ZERO,
            }])
            .await
            .unwrap();
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    }

    /// Works as the event source mapping while messages are visible.
    pub(crate) async fn deliver(&self) {
        loop {
            let request = ReceiveRequest {
                max: BATCH_MAX,
                visibility: VISIBILITY,
                wait: Duration::ZERO,
            };
            let batch = self.queue.receive(request).await.unwrap();
            if batch.is_empty() {
                return;
            }
            let receipts: Vec<_> = batch
                .iter()
                .map(|message| message.receipt.clone())
                .collect();
            let deadline = SystemClock.monotonic() + INVOCATION;
            let response = Box::pin(self.deliver.handle(batch, deadline)).await;
            assert_eq!(response.failures, []);
            for receipt in receipts {
                // The mapping cannot know which messages the function has already deleted, and AWS
                // accepts a second delete.
                let deleted = self.queue.replace(&receipt, vec![]).await;
                let is_done = deleted
                    .as_ref()
                    .err()
                    .is_none_or(|error| error.kind == ErrorKind::NotFound);
                assert!(is_done, "{deleted:?}");
            }
        }
    }

    /// A run of wake, and what deliver makes of it.
    pub(crate) async fn wake(&self) {
        Box::pin(self.wake.run()).await.unwrap();
        self.deliver().await;
    }

    /// The number of messages in the delivery queue, visible or not.
    pub(crate) async fn queued(&self) -> u64 {
        let counts = self.queue.counts().await.unwrap();
        counts.visible + counts.delayed + counts.in_flight
    }

    /// The number of messages in the dead-letter queue.
    pub(crate) async fn dead(&self) -> u64 {
        self.dead_letters.counts().await.unwrap().visible
    }

    /// The number of objects with held deliveries.
    pub(crate) async fn held(&self) -> usize {
        self.state
            .list(layout::HELD, None, 1000)
            .await
            .unwrap()
            .objects
            .len()
    }
}

fn record() -> TopicRecord {
    let billing = json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "retryPolicy": {
            "schedule": ["PT1S"], "waitFloors": { "503": "PT0S" }, "maxDeliveryAttempts": 30,
        },
    });
    let settings = records::topic_settings(json!({ "subscriptions": { "billing": billing } }));
    records::topic_record(topic(), settings, SystemClock.now())
}

fn topic() -> TopicName {
    records::topic_name("orders")
}

fn subscription() -> SubscriptionName {
    records::subscription_name("billing")
}
