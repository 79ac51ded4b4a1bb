//! Every function with its poller or schedule, and the one HTTP router.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use posthaste_core::model::Secret;
use posthaste_deadletter::DeadLetters;
use posthaste_deliver::Deliver;
use posthaste_local::{EmbeddedStore, LocalQueue, StateStore};
use posthaste_manage::{FINISH_PERIOD, Manage};
use posthaste_ports::{BatchResponse, Clock, QueueName, ReceivedMessage};
use posthaste_publish::Publish;
use posthaste_record::LogRecorder;
use posthaste_services::LeftWork;
use posthaste_system::SystemClock;
use posthaste_wake::Wake;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::adapters::{EmbeddedPorts, SharedAdapters};
use super::backup::{self, BackupService};
use super::console::{ConsoleAccess, ServeConsole};
use super::data_folder::DataFolder;
use super::error::ServeError;
use super::former::RunNote;
use super::log_upkeep::LogUpkeep;
use super::metrics::{LookedUpMetrics, MetricSeries, MetricTotals, MetricsPages};
use super::monitor;
use super::poller::{PollSettings, QueueHandler, poll};
use super::schedule::run_every;
use super::settings::ServeSettings;

/// Polling of deliveries. An attempt takes up to a minute, and starts only if its time ends before
/// the deadline. There is a loop for each thread of the runtime, and never fewer than two.
const DELIVERIES: PollSettings = PollSettings {
    queue: QueueName::Deliveries,
    batch_max: 10,
    window: Duration::ZERO,
    timeout: Duration::from_mins(2),
    loops: 2,
    // The queue's own bound on messages in flight is smaller.
    invocations_max: 1000,
};

/// Polling of dead letters: many at once, so that they become few objects.
const DEAD_LETTERS: PollSettings = PollSettings {
    queue: QueueName::DeadLetters,
    batch_max: 1000,
    window: Duration::from_secs(1),
    timeout: Duration::from_mins(1),
    loops: 1,
    invocations_max: 1,
};

/// Polling of messages that functions failed on many times.
const REDRIVE: PollSettings = PollSettings {
    queue: QueueName::Redrive,
    batch_max: 10,
    window: Duration::ZERO,
    timeout: Duration::from_mins(1),
    loops: 1,
    invocations_max: 1,
};

/// Polling of the delivery log's records: many at once, so that they become few files, and soon, so
/// that they are visible within seconds.
const RECORDS: PollSettings = PollSettings {
    queue: QueueName::Records,
    batch_max: 10_000,
    window: Duration::from_secs(1),
    timeout: Duration::from_mins(1),
    loops: 1,
    invocations_max: 1,
};

/// Time between two runs of wake, as on AWS.
const WAKE_PERIOD: Duration = Duration::from_mins(1);

/// The page of metrics over the embedded store.
pub(super) type EmbeddedPages = MetricsPages<StateStore, LocalQueue<SystemClock>, SystemClock>;

/// Every function, wired.
pub(super) struct WiredFunctions {
    local: EmbeddedStore<SystemClock>,
    publish: Arc<Publish<EmbeddedPorts>>,
    console: Option<ServeConsole>,
    manage: Arc<Manage<EmbeddedPorts>>,
    deliver: Arc<Deliver<EmbeddedPorts>>,
    dead_letters: Arc<DeadLetters<EmbeddedPorts>>,
    redrive: Arc<DeadLetters<EmbeddedPorts>>,
    wake: Arc<Wake<EmbeddedPorts>>,
    record: Arc<LogRecorder<EmbeddedPorts>>,
    log_upkeep: LogUpkeep,
    monitor: monitor::WiredMonitor,
    data_folder: Arc<DataFolder>,
    backups: Arc<BackupService>,
}

impl WiredFunctions {
    /// Wires the functions of a server that listens on `address` over an open data folder. Nothing
    /// runs yet.
    pub(super) fn wire(
        settings: &ServeSettings,
        adapters: &SharedAdapters<'_>,
        admin_key: &Secret,
        address: SocketAddr,
        totals: Arc<MetricTotals>,
    ) -> Result<Self, ServeError> {
        let local = adapters.local;
        let record = Arc::new(adapters.make_record(settings));
        let manage = Arc::new(adapters.make_manage(settings, admin_key, address));
        let console = settings
            .console
            .then(|| ServeConsole::wire(settings, &manage, admin_key, adapters, totals));
        Ok(Self {
            local: local.clone(),
            publish: Arc::new(adapters.make_publish(settings)),
            console,
            manage,
            deliver: Arc::new(adapters.make_deliver(settings)),
            dead_letters: Arc::new(adapters.make_dead_letters(settings, QueueName::DeadLetters)),
            redrive: Arc::new(adapters.make_dead_letters(settings, QueueName::Redrive)),
            wake: Arc::new(adapters.make_wake(settings)),
            log_upkeep: LogUpkeep::new(&record, settings),
            record,
            monitor: monitor::wire(settings, local, adapters)?,
            data_folder: Arc::new(adapters.data_folder(settings, admin_key)),
            backups: Arc::new(adapters.backups(settings)),
        })
    }

    /// The routes for producers and operators.
    pub(super) fn router(&self) -> Router {
        let publish = posthaste_publish::routes(Arc::clone(&self.publish));
        let console = self.console.as_ref().map(|console| console.router.clone());
        let backups = backup::routes(Arc::clone(&self.backups));
        let backups = posthaste_manage::with_admin_key_check(Arc::clone(&self.manage), backups);
        let others = publish.merge(console.unwrap_or_default()).merge(backups);
        posthaste_manage::router_beside(Arc::clone(&self.manage), others)
    }

    /// The check of the console's visitors, where there is a console.
    pub(super) fn console_access(&self) -> Option<Arc<ConsoleAccess>> {
        self.console
            .as_ref()
            .map(|console| Arc::clone(&console.access))
    }

    /// deliver, to count what it has under way.
    pub(super) fn deliver(&self) -> Arc<Deliver<EmbeddedPorts>> {
        Arc::clone(&self.deliver)
    }

    /// The page of metrics.
    pub(super) fn metrics_pages(&self, series: MetricSeries) -> EmbeddedPages {
        let standing = LookedUpMetrics {
            state: self.local.state_store(),
            deliveries: self.local.queue(QueueName::Deliveries),
            given_up: [QueueName::DeadLetters, QueueName::Redrive]
                .map(|name| self.local.queue(name)),
            records: self.local.queue(QueueName::Records),
            links: self.manage.links.clone(),
            clock: SystemClock,
        };
        MetricsPages::new(series, standing, self.publish.registry.clone())
    }

    /// The files of the data folder.
    pub(super) fn data_folder(&self) -> Arc<DataFolder> {
        Arc::clone(&self.data_folder)
    }

    /// Starts the pollers and the schedules. Work that takes the processor for long goes to
    /// `upkeep`.
    pub(super) fn spawn_work(
        &self,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
        upkeep: &Handle,
        note: &Arc<RunNote>,
    ) {
        let loops = Handle::current()
            .metrics()
            .num_workers()
            .max(DELIVERIES.loops);
        self.spawn_poller(
            tasks,
            stop,
            PollSettings {
                loops,
                ..DELIVERIES
            },
            &self.deliver,
        );
        self.spawn_poller(tasks, stop, DEAD_LETTERS, &self.dead_letters);
        self.spawn_poller(tasks, stop, REDRIVE, &self.redrive);
        {
            // Tasks that are spawned here go there.
            let _upkeep = upkeep.enter();
            self.spawn_poller(tasks, stop, RECORDS, &self.record);
            self.log_upkeep.spawn(tasks, stop, note);
            self.spawn_wake(tasks, stop);
            self.spawn_finish(tasks, stop);
            // The charts of the console begin with a look through the delivery log.
            if let Some(console) = &self.console {
                console.spawn(tasks, stop);
            }
        }
        let late = Arc::clone(&self.deliver);
        tasks.spawn(async move { late.hear_late_answers().await });
        let deliver = Arc::clone(&self.deliver);
        let wake = Arc::clone(&self.wake);
        let stopped = stop.clone();
        let backups = Arc::clone(&self.backups);
        tasks.spawn(async move {
            stopped.cancelled().await;
            deliver.stop();
            wake.stop();
            backups.stop();
        });
        self.monitor.spawn(tasks, stop);
        self.data_folder.spawn(tasks, stop);
    }

    /// Starts the schedule that finishes what processes left. The data folder has one process, so
    /// the first run takes all that is there.
    fn spawn_finish(&self, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let manage = Arc::clone(&self.manage);
        let mut next = LeftWork::From(SystemClock.now());
        let stop = stop.clone();
        tasks.spawn(run_every(
            "manage",
            FINISH_PERIOD,
            SystemClock,
            stop,
            move || {
                let manage = Arc::clone(&manage);
                let left = std::mem::replace(&mut next, LeftWork::Old);
                async move { manage.finish_left(left).await }
            },
        ));
    }

    /// Starts wake. Its first run, too, takes all that a dead process left.
    fn spawn_wake(&self, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let wake = Arc::clone(&self.wake);
        let mut next = LeftWork::From(SystemClock.now());
        let stop = stop.clone();
        tasks.spawn(run_every(
            "wake",
            WAKE_PERIOD,
            SystemClock,
            stop,
            move || {
                let wake = Arc::clone(&wake);
                let left = std::mem::replace(&mut next, LeftWork::Old);
                async move { run_wake(&wake, left).await }
            },
        ));
    }

    fn spawn_poller<H: QueueHandler>(
        &self,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
        settings: PollSettings,
        handler: &Arc<H>,
    ) {
        let queue = self.local.queue(settings.queue);
        tasks.spawn(poll(
            queue,
            Arc::clone(handler),
            SystemClock,
            settings,
            stop.clone(),
        ));
    }
}

async fn run_wake(wake: &Wake<EmbeddedPorts>, left: LeftWork) {
    if let Err(error) = wake.run_over(left).await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(
            error,
            "parked deliveries not released, the next run goes on"
        );
    }
}

impl QueueHandler for Deliver<EmbeddedPorts> {
    async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        Deliver::handle(self, batch, deadline).await
    }
}

impl QueueHandler for LogRecorder<EmbeddedPorts> {
    async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        LogRecorder::handle(self, batch, deadline).await
    }
}

impl QueueHandler for DeadLetters<EmbeddedPorts> {
    async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        DeadLetters::handle(self, batch, deadline).await
    }
}
