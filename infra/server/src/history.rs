//! The last day of the server in memory, for the console's charts: what was counted in each step of
//! 10 s, and how things stood at its end. What is older than the start comes from the delivery log.

mod backfill;
mod ring;
mod sampler;

use std::sync::Arc;

use posthaste_console::history::STEP;
use posthaste_local::{FileStore, LocalQueue, StateStore};
use posthaste_ports::{Clock, QueueName};
use posthaste_system::SystemClock;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::backfill::HistoryBackfill;
pub use self::ring::StepRing;
pub use self::sampler::{HistorySampler, SampledPorts};
use super::adapters::SharedAdapters;
use super::metrics::MetricTotals;
use super::schedule::run_on_the_clock;
use super::settings::ServeSettings;

type EmbeddedSampler = HistorySampler<StateStore, LocalQueue<SystemClock>, SystemClock>;

/// The history, wired.
pub(super) struct WiredHistory {
    ring: Arc<StepRing>,
    sampler: Arc<EmbeddedSampler>,
    backfill: HistoryBackfill<FileStore, SystemClock>,
}

impl WiredHistory {
    pub(super) fn wire(
        settings: &ServeSettings,
        adapters: &SharedAdapters<'_>,
        totals: Arc<MetricTotals>,
    ) -> Self {
        let ring = Arc::new(StepRing::default());
        let sampler = HistorySampler::new(
            Arc::clone(&ring),
            totals,
            SampledPorts {
                state: adapters.local.state_store(),
                deliveries: adapters.local.queue(QueueName::Deliveries),
                links: adapters.links.clone(),
                clock: SystemClock,
            },
        );
        let backfill = HistoryBackfill {
            ring: Arc::clone(&ring),
            log: adapters.delivery_log.clone(),
            delay: settings.manage.log.delay,
            clock: SystemClock,
        };
        Self {
            ring,
            sampler: Arc::new(sampler),
            backfill,
        }
    }

    /// The steps, as the console reads them.
    pub(super) fn steps(&self) -> Arc<StepRing> {
        Arc::clone(&self.ring)
    }

    /// Starts the schedule, and fills what is older than now.
    pub(super) fn spawn(&self, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let sampler = Arc::clone(&self.sampler);
        tasks.spawn(run_on_the_clock(
            "history",
            STEP,
            SystemClock,
            stop.clone(),
            move || {
                let sampler = Arc::clone(&sampler);
                async move { sampler.sample().await }
            },
        ));
        let backfill = self.backfill.clone();
        let stop = stop.clone();
        let start = SystemClock.now();
        tasks.spawn(async move {
            stop.run_until_cancelled(backfill.run(start)).await;
            // A task that ends is a fault of the server.
            stop.cancelled().await;
        });
    }
}
