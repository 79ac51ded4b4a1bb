//! The monitor over real implementations of its ports; the counts and the machine's numbers are set by hand.

mod polling;
mod writing;

use std::sync::{Arc, Mutex};

use posthaste_core::pressure::{Admission, Level, Measure, Resource, Tier, Usage};
use posthaste_local::{FileStore, ManualClock};
use posthaste_ports::recorded::Operation;
use posthaste_ports::{
    Calls, Database, DrainMeter, Fault, Faulty, Plan, PressureReader, Receipt, ReceiveRequest,
    ReceivedMessage, Recorded, Sample, Successor,
};

use super::*;

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const POLL: Duration = Duration::from_secs(2);

/// A queue that holds as many messages as it is told, none of which can be had. `None` cannot be counted.
#[derive(Debug, Clone, Default)]
struct Counted(Arc<Mutex<Option<QueueCounts>>>);

impl Counted {
    fn set(&self, visible: u64) {
        *self.0.lock().unwrap() = Some(QueueCounts { visible, ..QueueCounts::default() });
    }
}

impl QueueReceiver for Counted {
    async fn receive(&self, _: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        Ok(Vec::new())
    }

    async fn acknowledge(&self, _: &Receipt) -> Result<(), PortError> {
        Ok(())
    }

    async fn replace(&self, _: &Receipt, _: Vec<Successor>) -> Result<(), PortError> {
        Err(PortError::new("replace", ErrorKind::NotFound))
    }

    async fn change_visibility(&self, _: &Receipt, _: Duration) -> Result<(), PortError> {
        Err(PortError::new("change visibility", ErrorKind::NotFound))
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        self.0.lock().unwrap().ok_or(PortError::new("count", ErrorKind::TimedOut))
    }
}

#[derive(Debug, Clone, Default)]
struct Machine(Arc<Mutex<Sample>>);

impl Probe for Machine {
    fn sample(&self) -> Sample {
        *self.0.lock().unwrap()
    }
}

type Store = Recorded<Faulty<FileStore>>;

/// A world with one state bucket, in which monitors are started and producers ask.
struct World {
    deliveries: Counted,
    dead_letters: Counted,
    machine: Machine,
    drain: DrainMeter,
    clock: ManualClock,
    store: Store,
    calls: Calls,
    settings: PressureSettings,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(&Plan::none())
    }

    fn with(plan: &Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let calls = Calls::default();
        let store = Faulty::new(FileStore::open(folder.path()).unwrap(), "state", plan);
        let world = Self {
            deliveries: Counted::default(),
            dead_letters: Counted::default(),
            machine: Machine::default(),
            drain: DrainMeter::default(),
            clock: ManualClock::new(START),
            store: Recorded::new(store, "state", &calls),
            calls,
            settings: PressureSettings::default(),
            _folder: folder,
        };
        world.deliveries.set(0);
        world.dead_letters.set(0);
        world
    }

    fn monitor(&self) -> Monitor<Counted, Store, Machine, ManualClock, DrainMeter> {
        self.start().unwrap()
    }

    fn start(&self) -> Result<Monitor<Counted, Store, Machine, ManualClock, DrainMeter>, SettingsError> {
        let ports = MonitorPorts {
            deliveries: self.deliveries.clone(),
            dead_letters: self.dead_letters.clone(),
            state: self.store.clone(),
            probe: self.machine.clone(),
            clock: self.clock.clone(),
            drain: self.drain.clone(),
        };
        Monitor::new(ports, self.settings.clone())
    }

    fn reader(&self) -> PressureReader<Store, ManualClock> {
        PressureReader::new(self.store.clone(), self.clock.clone(), POLL)
    }

    fn puts(&self) -> usize {
        self.calls.count(Operation::Put)
    }
}

fn full(percent: u64) -> Usage {
    Usage { used: percent << 30, total: 100 << 30 }
}
