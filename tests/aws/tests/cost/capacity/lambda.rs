//! A model of Lambda: pollers that receive and invoke deliver, each with an instance of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select};
use parking_lot::Mutex;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::lane::{DeliveryLane, SlowTargets};
use posthaste_core::model::DeliveryLogMode;
use posthaste_core::stored::layout;
use posthaste_deliver::{
    DELAY_STEP_AWS, Deliver, DeliverPorts, DeliverSettings, DisablingMode, RecordsSettings,
};
use posthaste_ports::{Clock as _, ObjectStore, OutgoingMessage, ReceivedMessage};
use posthaste_services::{
    ActivityNotes, DrainMeter, LinkHealth, PressureReader, SlowGroups, SlowLane, SlowTargetCache,
    TopicRegistry, send_by_lane,
};
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{ManualClock, Recorded, RecordedCalls, SeededEntropy, TestPorts};
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

type Store = Recorded<MemoryStore>;
type Instance = Deliver<TestPorts<Sqs, Store, MemoryStore, Endpoints>>;

/// Pollers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pollers {
    /// All are there from the beginning.
    Ready(usize),
    /// Five at the beginning, and more by and by.
    Scaling(usize),
}

/// The mapping of the slow lane's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlowPollers {
    /// The most invocations at once: the template's default is [`SLOW_POLLERS`].
    pub(super) max: usize,
}

/// Most invocations of the slow lane at once, most messages of each, and the time for which a batch
/// is gathered, in the template.
pub(super) const SLOW_POLLERS: usize = 10;
const SLOW_BATCH_MAX: usize = 100;
const SLOW_WINDOW: Duration = Duration::from_secs(1);

/// The time between two looks of the monitor at the slow targets, while all is calm.
const MONITOR_PACE: Duration = Duration::from_mins(1);

/// The functions of a run, and what they have in common.
pub(super) struct Lambda {
    pub(super) clock: ManualClock,
    pub(super) queue: Sqs,
    /// The queue of the slow lane, and its mapping; `None` where there is no such lane.
    pub(super) slow: Option<(Sqs, SlowPollers)>,
    pub(super) state: MemoryStore,
    /// The requests to the state bucket.
    pub(super) calls: RecordedCalls,
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
        let quick = pollers.max();
        let pollers = (0..quick).map(|number| self.poll(number, pollers.begins(number), batch));
        let slow = self.slow.as_ref().map_or(0, |(_, slow)| slow.max);
        let slow_pollers = (0..slow).map(|number| self.poll_slow(quick + number));
        let work = async {
            let publishing = self.publish(requests, pace);
            tokio::join!(
                join_all(pollers),
                join_all(slow_pollers),
                publishing,
                self.wake()
            );
        };
        select(Box::pin(over), Box::pin(work)).await;
    }

    /// Sends the messages of a request, at most ten at a time, and waits for the next request. Those
    /// of slow targets take their lane, once the monitor has seen that there are some.
    async fn publish(&self, requests: Vec<Vec<OutgoingMessage>>, pace: Duration) {
        let lane = self.slow_lane();
        let registry = self.registry();
        let mut looked_at = Duration::ZERO;
        let mut has_slow_targets = false;
        for request in requests {
            let now = self.clock.monotonic();
            if now.saturating_sub(looked_at) >= MONITOR_PACE {
                looked_at = now;
                let object = self.state.get(layout::LANES).await.expect("a store");
                let targets = object.map(|object| SlowTargets::parse(&object.bytes));
                let targets = targets.transpose().expect("slow targets");
                let is_empty = |targets: SlowTargets| targets.is_empty_at(self.clock.now());
                has_slow_targets = !targets.is_none_or(is_empty);
            }
            let mut groups = SlowGroups::new();
            if let Some(lane) = lane.as_ref().filter(|_| has_slow_targets) {
                let of = request.iter().filter_map(|message| message.group.clone());
                groups = lane.slow_among(&registry, of.collect()).await;
            }
            for part in request.chunks(BATCH_MAX) {
                let slow = lane.as_ref().map(|lane| (&lane.queue, &groups));
                let sent = send_by_lane(&self.queue, slow, part.to_vec()).await;
                assert!(sent.iter().all(Result::is_ok), "a queue in memory");
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
                Box::pin(self.invoke(&deliver, (&self.queue, DeliveryLane::Quick), batch)).await;
            }
        }
    }

    /// Polls the queue of the slow lane: a batch is gathered until it is full, or the window is over.
    async fn poll_slow(&self, number: usize) {
        let (queue, _) = self.slow.as_ref().expect("a slow lane");
        let deliver = self.deliver(number);
        loop {
            let mut batch = queue.take(SLOW_BATCH_MAX, VISIBILITY);
            if batch.is_empty() {
                queue.arrival().await;
                continue;
            }
            if batch.len() < SLOW_BATCH_MAX {
                self.clock.sleep(SLOW_WINDOW).await;
                batch.extend(queue.take(SLOW_BATCH_MAX - batch.len(), VISIBILITY));
            }
            Box::pin(self.invoke(&deliver, (queue, DeliveryLane::Slow), batch)).await;
        }
    }

    async fn invoke(
        &self,
        deliver: &Instance,
        (queue, lane): (&Sqs, DeliveryLane),
        batch: Vec<ReceivedMessage>,
    ) {
        let began = self.clock.monotonic();
        let messages: Vec<_> = batch
            .iter()
            .map(|m| (m.id.clone(), m.receipt.clone()))
            .collect();
        let response = deliver
            .handle_in(lane, batch, began + DELIVER_TIMEOUT)
            .await;
        self.clock
            .sleep(Duration::from_secs_f64(DELIVER_SECONDS).saturating_sub(QUICK))
            .await;
        let done = messages
            .iter()
            .filter(|(id, _)| !response.failures.contains(id));
        queue.delete(&done.map(|(_, receipt)| receipt.clone()).collect::<Vec<_>>());
        let end = self.clock.monotonic();
        let messages = u32::try_from(messages.len()).expect("a hundred at most");
        let mut invocations = self.invocations.lock();
        invocations.count += 1;
        invocations.messages += messages;
        invocations.end = end;
        invocations.time += end.saturating_sub(began);
    }

    /// The slow lane as publish and wake know it.
    fn slow_lane(&self) -> Option<SlowLane<Sqs, Store, ManualClock>> {
        let (queue, _) = self.slow.as_ref()?;
        Some(SlowLane {
            queue: queue.clone(),
            lanes: SlowTargetCache::new(Arc::new(self.store()), self.clock.clone()),
        })
    }

    async fn wake(&self) {
        let wake = Wake::<TestPorts<Sqs, Store, MemoryStore, Endpoints>>::new(WakePorts {
            deliveries: self.queue.clone(),
            slow_lane: self.slow_lane(),
            state: self.store(),
            dead_letters: MemoryStore::default(),
            log: DeliveryLog::new(MemoryStore::default()),
            log_delay: Duration::ZERO,
            registry: self.registry(),
            pressure: PressureReader::new(self.store(), self.clock.clone(), Duration::ZERO),
            links: self.links(),
            activity: ActivityNotes::default(),
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
            slow_queue: self.slow.as_ref().map(|(queue, _)| queue.clone()),
            records: self.queue.clone(),
            state: self.store(),
            registry: self.registry(),
            links: self.links(),
            webhook: self.endpoints.clone(),
            clock: self.clock.clone(),
            entropy: SeededEntropy::new(100 + number as u64),
            drain: DrainMeter::default(),
        };
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

    fn store(&self) -> Store {
        Recorded::new(self.state.clone(), "state", &self.calls)
    }

    fn registry(&self) -> TopicRegistry<Store, ManualClock> {
        TopicRegistry::new(self.store(), self.clock.clone(), TOPIC_MAX_AGE)
    }

    fn links(&self) -> LinkHealth<Store, ManualClock> {
        LinkHealth::new(self.store(), self.clock.clone(), HealthSettings::default())
    }
}
