//! The monitor on its schedule, with the embedded store's gauges and this machine's disks and
//! memory.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::pressure::PressureState;
use posthaste_local::{EmbeddedStore, LocalProbe};
use posthaste_monitor::{Monitor, MonitorError, MonitorPorts};
use posthaste_ports::QueueName;
use posthaste_services::{DrainMeter, MemoryReliever};
use posthaste_system::probe::disk_usage;
use posthaste_system::{SystemClock, SystemEntropy};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::adapters::{self, SharedAdapters};
use super::error::ServeError;
use super::memory_pressure::trim_caches;
use super::schedule::run_every;
use super::settings::ServeSettings;

/// Version buckets and batch points of the embedded store.
type StoreGauges = Box<dyn Fn() -> (u64, u64) + Send + Sync>;
type EmbeddedMonitor = Monitor<adapters::EmbeddedPorts, LocalProbe<StoreGauges>, DrainMeter>;

/// The monitor, wired.
pub(super) struct WiredMonitor {
    monitor: Arc<Mutex<EmbeddedMonitor>>,
    reliever: Arc<MemoryReliever<SystemClock>>,
    interval: Duration,
}

/// Wires the monitor. A disk too small for its formula is refused.
pub(super) fn wire(
    settings: &ServeSettings,
    local: &EmbeddedStore<SystemClock>,
    adapters: &SharedAdapters<'_>,
) -> Result<WiredMonitor, ServeError> {
    if disk_usage(&settings.data_dir).is_none() {
        tracing::warn!(
            path = %settings.data_dir.display(),
            "the file system of the data folder tells no size: neither back pressure nor the delivery log goes by \
             its disk"
        );
    }
    let store = local.clone();
    let gauges: StoreGauges = Box::new(move || {
        let gauges = store.waiting_calls();
        (gauges.version_buckets, gauges.batch_points)
    });
    let ports = MonitorPorts {
        deliveries: local.queue(QueueName::Deliveries),
        slow_lane: None,
        dead_letters: local.queue(QueueName::DeadLetters),
        state: local.state_store(),
        // The journal is in the data folder, so both disks are the same one.
        probe: LocalProbe::new(&settings.data_dir, &settings.data_dir, gauges),
        clock: SystemClock,
        drain: adapters.drain.clone(),
        registry: adapters.registry.clone(),
        entropy: SystemEntropy,
    };
    let monitor = Monitor::new(ports, settings.monitor.clone())?;
    let interval = monitor.interval();
    let reliever = Arc::new(adapters.reliever());
    Ok(WiredMonitor {
        monitor: Arc::new(Mutex::new(monitor)),
        reliever,
        interval,
    })
}

impl WiredMonitor {
    /// Starts the schedule.
    pub(super) fn spawn(&self, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let monitor = Arc::clone(&self.monitor);
        let reliever = Arc::clone(&self.reliever);
        tasks.spawn(run_every(
            "monitor",
            self.interval,
            SystemClock,
            stop.clone(),
            move || {
                let monitor = Arc::clone(&monitor);
                let reliever = Arc::clone(&reliever);
                async move {
                    match sample_on_thread(monitor).await {
                        Ok(pressure) => trim_caches(&reliever, &pressure).await,
                        Err(error) => {
                            let error = &error as &dyn std::error::Error;
                            tracing::error!(error, "resources not sampled, the next poll goes on");
                        }
                    }
                }
            },
        ));
    }
}

/// A poll on a thread of its own: it counts by subscription, and there may be many of them.
async fn sample_on_thread(
    monitor: Arc<Mutex<EmbeddedMonitor>>,
) -> Result<PressureState, SampleError> {
    let runtime = Handle::current();
    let polled =
        spawn_blocking(move || runtime.block_on(async { monitor.lock().await.poll_once().await }));
    Ok(polled.await??)
}

/// Why a poll did not end well.
#[derive(Debug, thiserror::Error)]
enum SampleError {
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    #[error("the poll panicked")]
    Panicked(#[from] JoinError),
}
