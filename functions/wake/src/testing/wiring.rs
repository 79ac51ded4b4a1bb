//! wake's ports in memory, for its unit tests and for the tests of whole runs in `tests/wake`.

use std::time::Duration;

use posthaste_core::circuit::HealthSettings;
use posthaste_delivery_log::DeliveryLog;
use posthaste_ports::PortBundle;
use posthaste_services::{ActivityNotes, LinkHealth, PressureReader, TopicRegistry};
use posthaste_testkit::endpoint::MemoryEndpoint;
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::{FaultPlan, Faulty, ManualClock, SeededEntropy};

use crate::WakePorts;

type Store = Faulty<MemoryStore>;

pub(crate) type TestPorts = PortBundle<
    Faulty<MemoryQueue>,
    Store,
    Store,
    Store,
    MemoryEndpoint,
    ManualClock,
    SeededEntropy,
>;

/// The time after which the log is complete.
pub(crate) const LOG_DELAY: Duration = Duration::from_secs(5);

/// Most objects of a page, whatever is asked for.
pub(crate) const PAGE: usize = 3;

/// Ports over this store and this queue, which fail by their plans.
pub(crate) fn ports(
    clock: &ManualClock,
    (store, store_plan): (&MemoryStore, &FaultPlan),
    log: &MemoryStore,
    (queue, queue_plan): (&MemoryQueue, &FaultPlan),
    seed: u64,
) -> WakePorts<TestPorts> {
    let store = Faulty::new(store.clone(), "state", store_plan);
    WakePorts {
        deliveries: Faulty::new(queue.clone(), "deliveries", queue_plan),
        slow_lane: None,
        state: store.clone(),
        dead_letters: store.clone(),
        log: DeliveryLog::new(Faulty::new(log.clone(), "log", &FaultPlan::none())),
        log_delay: LOG_DELAY,
        registry: TopicRegistry::new(store.clone(), clock.clone(), Duration::ZERO),
        pressure: PressureReader::new(store.clone(), clock.clone(), Duration::ZERO),
        links: LinkHealth::new(store, clock.clone(), HealthSettings::default()).counting_arrivals(),
        activity: ActivityNotes::default(),
        clock: clock.clone(),
        entropy: SeededEntropy::new(seed),
    }
}
