//! The monitor over real implementations of its ports; the counts and the machine's numbers are set
//! by hand.

mod lanes;
mod polling;
mod telling;
mod topics;
mod writing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use posthaste_core::model::ProducerTier;
use posthaste_core::pressure::{
    Admission, ByteUsage, DueOfGroup, PressureLevel, PressureMeasure, UNTOLD_MAX,
};
use posthaste_local::FileStore;
use posthaste_ports::{
    DatabaseResource, MessageId, OutgoingMessage, ProbeSample, QueueSender, ReceiptHandle,
    ReceiveRequest, ReceivedMessage, Successor,
};
use posthaste_services::{DrainMeter, PressureReader, SlowTargetCache};
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{CallFault, FaultPlan, Faulty, Recorded, RecordedCalls};
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};

use super::*;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const POLL: Duration = Duration::from_secs(2);

/// A queue with a number of messages that a test sets; none can be received. `None` cannot be
/// counted. Messages that are sent to it are kept apart, and do not count. The third says whose the
/// due messages are, if the queue can tell, and the fourth whether it fails to.
#[derive(Debug, Clone, Default)]
struct Counted(
    Arc<Mutex<Option<QueueCounts>>>,
    Arc<Mutex<Vec<OutgoingMessage>>>,
    Arc<Mutex<Option<Vec<DueOfGroup>>>>,
    Arc<AtomicBool>,
);

impl Counted {
    fn set(&self, visible: u64) {
        *self.0.lock().unwrap() = Some(QueueCounts {
            visible,
            ..QueueCounts::default()
        });
    }
}

impl QueueReceiver for Counted {
    async fn receive(&self, _: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        Ok(Vec::new())
    }

    async fn acknowledge(&self, _: &ReceiptHandle) -> Result<(), PortError> {
        Ok(())
    }

    async fn replace(&self, _: &ReceiptHandle, _: Vec<Successor>) -> Result<(), PortError> {
        Err(PortError::new("replace", ErrorKind::NotFound))
    }

    async fn change_visibility(&self, _: &ReceiptHandle, _: Duration) -> Result<(), PortError> {
        Err(PortError::new("change visibility", ErrorKind::NotFound))
    }

    async fn due_by_group(&self) -> Result<Option<Vec<DueOfGroup>>, PortError> {
        if self.3.load(Ordering::Relaxed) {
            return Err(PortError::new("count", ErrorKind::TimedOut));
        }
        Ok(self.2.lock().unwrap().clone())
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        self.0
            .lock()
            .unwrap()
            .ok_or(PortError::new("count", ErrorKind::TimedOut))
    }
}

impl QueueSender for Counted {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        let mut sent = self.1.lock().unwrap();
        let ids = entries
            .iter()
            .enumerate()
            .map(|(n, _)| Ok(MessageId((sent.len() + n).to_string().into())))
            .collect();
        sent.extend(entries);
        Ok(ids)
    }
}

#[derive(Debug, Clone, Default)]
struct Machine(Arc<Mutex<ProbeSample>>);

impl ResourceProbe for Machine {
    fn sample(&self) -> ProbeSample {
        *self.0.lock().unwrap()
    }
}

type Queue = Faulty<Counted>;
type Store = Recorded<Faulty<FileStore>>;
type TestMonitor = Monitor<TestPorts<Queue, Store>, Machine, DrainMeter>;

/// A world with one state bucket, in which monitors are started and producers ask.
struct World {
    deliveries: Counted,
    /// The queue of the slow lane, where there is one.
    slow: Option<Counted>,
    dead_letters: Counted,
    sending: FaultPlan,
    notices_topic: Option<TopicName>,
    machine: Machine,
    drain: DrainMeter,
    clock: ManualClock,
    store: Store,
    calls: RecordedCalls,
    settings: PressureSettings,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(&FaultPlan::none())
    }

    fn with(plan: &FaultPlan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let calls = RecordedCalls::default();
        let store = Faulty::new(FileStore::open(folder.path()).unwrap(), "state", plan);
        let world = Self {
            deliveries: Counted::default(),
            slow: None,
            dead_letters: Counted::default(),
            sending: FaultPlan::none(),
            notices_topic: None,
            machine: Machine::default(),
            drain: DrainMeter::default(),
            clock: ManualClock::new(START),
            store: Recorded::new(store, "state", &calls),
            calls,
            settings: PressureSettings::default(),
            folder,
        };
        world.deliveries.set(0);
        world.dead_letters.set(0);
        world
    }

    fn monitor(&self) -> TestMonitor {
        self.start().unwrap()
    }

    fn start(&self) -> Result<TestMonitor, SettingsError> {
        let queue = |queue: &Counted, name| Faulty::new(queue.clone(), name, &self.sending);
        let ports = MonitorPorts {
            deliveries: queue(&self.deliveries, "deliveries"),
            slow_lane: self.slow.as_ref().map(|slow| SlowLane {
                queue: queue(slow, "slow"),
                lanes: SlowTargetCache::new(Arc::new(self.store.clone()), self.clock.clone()),
            }),
            dead_letters: queue(&self.dead_letters, "deadletters"),
            state: self.store.clone(),
            probe: self.machine.clone(),
            clock: self.clock.clone(),
            drain: self.drain.clone(),
            registry: TopicRegistry::new(self.store.clone(), self.clock.clone(), Duration::ZERO),
            entropy: SeededEntropy::new(1),
        };
        let pressure = self.settings.clone();
        let notices_topic = self.notices_topic.clone();
        Monitor::new(
            ports,
            MonitorSettings {
                slow_places: 1000,
                pressure,
                notices_topic,
            },
        )
    }

    fn reader(&self) -> PressureReader<Store, ManualClock> {
        PressureReader::new(self.store.clone(), self.clock.clone(), POLL)
    }

    fn gets(&self) -> usize {
        self.calls.count(PortOperation::Get) + self.calls.count(PortOperation::GetIfChanged)
    }

    fn puts(&self) -> usize {
        self.calls.count(PortOperation::Put)
    }
}

fn full(percent: u64) -> ByteUsage {
    ByteUsage {
        used: percent << 30,
        total: 100 << 30,
    }
}
