//! Workers of deliver over the adapters and the strict double, and the event source mapping in
//! front of them.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, join_all, select};
use posthaste_aws::{AwsClients, QueueUrls, S3Store, SqsQueue};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::delivery::message_group_id;
use posthaste_core::model::{Delivery, DeliveryLogMode, EventPayload, SubscriptionName, TopicName};
use posthaste_core::stored::dead_letter_message::parse_dead_letter;
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_deliver::{
    DELAY_STEP_AWS, Deliver, DeliverPorts, DeliverSettings, DisablingMode, RecordsSettings,
};
use posthaste_ports::{
    BatchResponse, Clock, OutgoingMessage, PortBundle, PortError, QueueName, QueueReceiver,
    QueueSender, ReceiveRequest, ReceivedMessage,
};
use posthaste_services::{DrainMeter, LinkHealth, TopicRegistry};
use posthaste_simulation::{ScriptedEndpoint, event, start};
use posthaste_testkit::{ManualClock, SeededEntropy, records};
use posthaste_tests_aws::double::{Access, Action, Double};
use posthaste_tests_aws::lingering::lingering;
use serde_json::json;

use crate::clients::clients;

/// The visibility timeout of the delivery queue in the template.
pub(crate) const VISIBILITY: Duration = Duration::from_secs(730);

/// The timeout of deliver in the template.
const INVOCATION: Duration = Duration::from_mins(2);

/// Most messages of one invocation.
pub(crate) const BATCH_MAX: usize = 10;

pub(crate) const DELIVERIES: &str = "deliveries";
pub(crate) const DEAD_LETTERS: &str = "deadletters";
const RECORDS: &str = "records";
const STATE: &str = "state";

type Queue = SqsQueue<ManualClock>;
pub(crate) type Worker = Deliver<
    PortBundle<Queue, S3Store, S3Store, S3Store, ScriptedEndpoint, ManualClock, SeededEntropy>,
>;

/// A subscription whose endpoint answers by script.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) double: Double,
    pub(crate) endpoint: ScriptedEndpoint,
    clients: AwsClients,
    urls: QueueUrls,
    mapping: Queue,
}

impl World {
    pub(crate) async fn start() -> Self {
        let clock = ManualClock::new(start());
        let double = Double::start(clock.clone()).await;
        double.bucket(STATE, Access::Full);
        double.put(
            STATE,
            &layout::topic_record_key(&topic()),
            record(&clock).render(),
        );
        let urls = QueueUrls::from([
            (QueueName::Deliveries, double.queue(DELIVERIES, None)),
            (QueueName::DeadLetters, double.queue(DEAD_LETTERS, None)),
            (QueueName::Records, double.queue(RECORDS, None)),
        ]);
        let clients = clients(&double.endpoint());
        let mapping = clients.queue(QueueName::Deliveries, urls.clone(), clock.clone());
        Self {
            endpoint: ScriptedEndpoint::new(clock.clone()),
            clock,
            double,
            clients,
            urls,
            mapping,
        }
    }

    /// The state bucket.
    pub(crate) fn state(&self) -> S3Store {
        self.store(STATE)
    }

    /// A bucket.
    pub(crate) fn store(&self, bucket: &str) -> S3Store {
        self.clients.store(bucket)
    }

    /// A queue.
    pub(crate) fn queue(&self, name: QueueName) -> SqsQueue<ManualClock> {
        self.clients
            .queue(name, self.urls.clone(), self.clock.clone())
    }

    /// An instance of deliver that knows nothing yet.
    pub(crate) fn worker(&self) -> Worker {
        let state = || self.state();
        let ports = DeliverPorts {
            queue: self.queue(QueueName::Deliveries),
            slow_queue: None,
            records: self.queue(QueueName::Records),
            state: state(),
            registry: TopicRegistry::new(state(), self.clock.clone(), Duration::ZERO),
            links: LinkHealth::new(state(), self.clock.clone(), HealthSettings::default()),
            webhook: self.endpoint.clone(),
            clock: self.clock.clone(),
            entropy: SeededEntropy::new(1),
            drain: DrainMeter::default(),
        };
        // Kills come between sends and deletes of deliveries: the log's sends would be taken for
        // them.
        let records = RecordsSettings::AWS;
        let delivery_log = DeliveryLogMode::Off;
        Deliver::new(
            ports,
            DeliverSettings {
                records,
                delay_step: DELAY_STEP_AWS,
                delivery_log,
                disabling: DisablingMode::ByWake,
                ..DeliverSettings::default()
            },
        )
    }

    /// Puts deliveries of one event each into the queue, as publish does.
    pub(crate) async fn publish(&self, ids: &[String]) {
        let group = Some(message_group_id(&topic(), &subscription()));
        let message = |id: &String| {
            let body = render_delivery(&delivery(id, &self.clock));
            OutgoingMessage {
                body,
                group: group.clone(),
                delay: Duration::ZERO,
            }
        };
        for ids in ids.chunks(BATCH_MAX) {
            let sent = self
                .mapping
                .send_batch(ids.iter().map(message).collect())
                .await
                .unwrap();
            assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        }
    }

    /// A receive of the mapping that waits for nothing.
    pub(crate) async fn try_receive(&self) -> Result<Vec<ReceivedMessage>, PortError> {
        let request = ReceiveRequest {
            max: BATCH_MAX,
            visibility: VISIBILITY,
            wait: Duration::ZERO,
        };
        self.mapping.receive(request).await
    }

    pub(crate) async fn receive(&self) -> Vec<ReceivedMessage> {
        self.try_receive().await.unwrap()
    }

    /// One invocation, without the mapping's part.
    pub(crate) async fn invoke(&self, worker: &Worker, batch: &[ReceivedMessage]) -> BatchResponse {
        let deadline = self.clock.monotonic() + INVOCATION;
        lingering(
            &self.clock,
            Box::pin(worker.handle(batch.to_vec(), deadline)),
        )
        .await
    }

    /// An invocation that is killed when SQS has taken a message from it, and before it deletes the
    /// one that is replaced by it.
    pub(crate) async fn invoke_and_kill(&self, worker: &Worker, batch: &[ReceivedMessage]) {
        self.double.take_journal();
        let has_sent = async {
            while self.double.journal().count(Action::SendMessageBatch) == 0 {
                tokio::task::yield_now().await;
            }
        };
        // The future that is polled first has not seen the answer yet when the other ends.
        match select(Box::pin(self.invoke(worker, batch)), pin!(has_sent)).await {
            Either::Left((response, _)) => panic!("it had time to answer: {response:?}"),
            Either::Right(_) => {
                assert_eq!(self.double.journal().count(Action::DeleteMessageBatch), 0);
            }
        }
    }

    /// Deletes the messages that were not reported as failed, as the mapping does after an
    /// invocation.
    pub(crate) async fn settle(&self, batch: &[ReceivedMessage], response: &BatchResponse) {
        let done = batch
            .iter()
            .filter(|message| !response.failures.contains(&message.id));
        let deleting = done.map(|message| self.mapping.replace(&message.receipt, vec![]));
        let deleted = lingering(&self.clock, join_all(deleting)).await;
        deleted.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }

    /// Whole invocations while messages are visible.
    pub(crate) async fn deliver_all(&self) {
        let worker = self.worker();
        loop {
            let batch = self.receive().await;
            if batch.is_empty() {
                return;
            }
            let response = self.invoke(&worker, &batch).await;
            self.settle(&batch, &response).await;
        }
    }

    /// The number of messages in the delivery queue, visible or not.
    pub(crate) fn queued(&self) -> usize {
        self.double.bodies(DELIVERIES).len()
    }

    /// The reasons of the dead letters.
    pub(crate) fn dead_letters(&self) -> Vec<String> {
        let bodies = self.double.bodies(DEAD_LETTERS).into_iter();
        let letters = bodies.map(|body| parse_dead_letter(&Bytes::from(body)).unwrap());
        letters
            .map(|letter| format!("{:?}", letter.reason))
            .collect()
    }
}

fn delivery(id: &str, clock: &ManualClock) -> Delivery {
    let payload = EventPayload::Inline(Bytes::from(event(id)));
    records::delivery(
        (topic(), subscription()),
        &format!("key-{id}"),
        [payload],
        clock.now(),
    )
}

fn record(clock: &ManualClock) -> TopicRecord {
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/hooks" } });
    let settings = records::topic_settings(json!({ "subscriptions": { "billing": billing } }));
    records::topic_record(topic(), settings, clock.now())
}

fn topic() -> TopicName {
    records::topic_name("orders")
}

fn subscription() -> SubscriptionName {
    records::subscription_name("billing")
}
