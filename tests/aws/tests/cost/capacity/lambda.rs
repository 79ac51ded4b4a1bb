//! A model of Lambda: pollers that receive and invoke deliver, each with an instance of its own.

use std::time::Duration;

use futures_util::future::{join_all, select};
use parking_lot::Mutex;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::DeliveryLogMode;
use posthaste_deliver::{
    DELAY_STEP_AWS, Deliver, DeliverPorts, DeliverSettings, Disabling, RecordsSettings,
};
use posthaste_ports::{Clock as _, OutgoingMessage, QueueSender, ReceivedMessage};
use posthaste_services::{Activity, DrainMeter, LinkHealth, PressureReader, Registry};
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use posthaste_wake::{DeliveryLog, Wake, WakePorts};

use super::endpoints::Endpoints;
use super::queue::Sqs;
use crate::prices::{DELIVER_SECONDS, POLLERS};
use crate::world::{BATCH_MAX, DELIVER_TIMEOUT, TOPIC_MAX_AGE, VISIBILITY};

/// The time of an endpoint for its answer of which [`DELIVER_SECONDS`] is made.
pub(super) const QUICK: Duration = Duration::from_millis(100);

/// The time between two invocations that Lambda adds while messages are there: 300 a minute.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
pub(super) const SCALING: Duration = Duration::from_millis(200);

/// The time between two looks at whether a run is over.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

type Instance = Deliver<TestPorts<Sqs, MemoryStore, MemoryStore, Endpoints>>;

/// Pollers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pollers {
    /// All are there from the beginning.
    Ready(usize),
    /// Five at the beginning, and more by and by.
    Scaling(usize),
}

/// The functions of a run, and what they have in common.
pub(super) struct Lambda {
    pub(super) clock: ManualClock,
    pub(super) queue: Sqs,
    pub(super) state: MemoryStore,
    pub(super) endpoints: Endpoints,
    pub(super) invocations: Mutex<Invocations>,
}

/// Invocations of deliver.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Invocations {
    pub(super) count: u32,
    /// The messages of all.
    pub(super) messages: u32,
    /// The time of all.
    pub(super) time: Duration,
    /// The end of the last.
    pub(super) end: Duration,
}

impl Pollers {
    /// The most invocations at once.
    pub(super) fn max(self) -> usize {
        let (Self::Ready(max) | Self::Scaling(max)) = self;
        max
    }

    /// The time at which the poller of this number begins.
    fn begins(self, number: usize) -> Duration {
        let late = u32::try_from(number + 1)
            .expect("a small number")
            .saturating_sub(POLLERS);
        if matches!(self, Self::Scaling(_)) {
            SCALING * late
        } else {
            Duration::ZERO
        }
    }
}

impl Lambda {
    /// Publishes, delivers, and runs wake each minute, until `is_over`.
    pub(super) async fn run(
        &self,
        (pollers, batch): (Pollers, usize),
        (requests, pace): (Vec<Vec<OutgoingMessage>>, Duration),
        is_over: impl Fn() -> bool,
    ) {
        let over = async {
            while !is_over() {
                self.clock.sleep(LOOK_AGAIN).await;
            }
        };
        let pollers =
            (0..pollers.max()).map(|number| self.poll(number, pollers.begins(number), batch));
        let work = async {
            let publishing = self.publish(requests, pace);
            tokio::join!(join_all(pollers), publishing, self.wake());
        };
        select(Box::pin(over), Box::pin(work)).await;
    }

    /// Sends the messages of a request, at most ten at a time, and waits for the next request.
    async fn publish(&self, requests: Vec<Vec<OutgoingMessage>>, pace: Duration) {
        for request in requests {
            for part in request.chunks(BATCH_MAX) {
                self.queue
                    .send_batch(part.to_vec())
                    .await
                    .expect("a queue in memory");
            }
            self.clock.sleep(pace).await;
        }
    }

    async fn poll(&self, number: usize, begins: Duration, batch: usize) {
        self.clock.sleep(begins).await;
        let deliver = self.deliver(number);
        loop {
            let batch = self.queue.take(batch, VISIBILITY);
            if batch.is_empty() {
                self.queue.arrival().await;
            } else {
                Box::pin(self.invoke(&deliver, batch)).await;
            }
        }
    }

    async fn invoke(&self, deliver: &Instance, batch: Vec<ReceivedMessage>) {
        let began = self.clock.monotonic();
        let messages: Vec<_> = batch
            .iter()
            .map(|m| (m.id.clone(), m.receipt.clone()))
            .collect();
        let response = deliver.handle(batch, began + DELIVER_TIMEOUT).await;
        self.clock
            .sleep(Duration::from_secs_f64(DELIVER_SECONDS).saturating_sub(QUICK))
            .await;
        let done = messages
            .iter()
            .filter(|(id, _)| !response.failures.contains(id));
        self.queue
            .delete(&done.map(|(_, receipt)| receipt.clone()).collect::<Vec<_>>());
        let mut invocations = self.invocations.lock();
        invocations.count += 1;
        invocations.messages += u32::try_from(messages.len()).expect("ten at most");
        let end = self.clock.monotonic();
        invocations.end = end;
        invocations.time += end.saturating_sub(began);
    }

    async fn wake(&self) {
        let wake = Wake::<TestPorts<Sqs, MemoryStore, MemoryStore, Endpoints>>::new(WakePorts {
            deliveries: self.queue.clone(),
            state: self.state.clone(),
            dead_letters: MemoryStore::default(),
            log: DeliveryLog::new(MemoryStore::default()),
            log_delay: Duration::ZERO,
            registry: self.registry(),
            pressure: PressureReader::new(self.state.clone(), self.clock.clone(), Duration::ZERO),
            links: self.links(),
            activity: Activity::default(),
            clock: self.clock.clone(),
            entropy: SeededEntropy::new(3),
        });
        loop {
            self.clock.sleep(Duration::from_mins(1)).await;
            Box::pin(wake.run()).await.expect("a run of wake");
        }
    }

    fn deliver(&self, number: usize) -> Instance {
        let ports = DeliverPorts {
            queue: self.queue.clone(),
            records: self.queue.clone(),
            state: self.state.clone(),
            registry: self.registry(),
            links: self.links(),
            webhook: self.endpoints.clone(),
            clock: self.clock.clone(),
            entropy: SeededEntropy::new(100 + number as u64),
            drain: DrainMeter::default(),
        };
        let (records, delivery_log) = (RecordsSettings::AWS, DeliveryLogMode::Off);
        Deliver::new(
            ports,
            DeliverSettings {
                records,
                delay_step: DELAY_STEP_AWS,
                delivery_log,
                disabling: Disabling::ByWake,
                ..DeliverSettings::default()
            },
        )
    }

    fn registry(&self) -> Registry<MemoryStore, ManualClock> {
        Registry::new(self.state.clone(), self.clock.clone(), TOPIC_MAX_AGE)
    }

    fn links(&self) -> LinkHealth<MemoryStore, ManualClock> {
        LinkHealth::new(
            self.state.clone(),
            self.clock.clone(),
            HealthSettings::default(),
        )
    }
}
