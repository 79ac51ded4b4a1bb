//! A running server: the whole of `serve` without the process around it. The command, the demo and
//! the tests all run one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::delivery_log::records_waiting_bytes_max;
use posthaste_core::model::Secret;
use posthaste_core::pressure::ByteUsage;
use posthaste_local::{EmbeddedStore, LocalOptions};
use posthaste_ports::Clock;
use posthaste_services::timeout_at;
use posthaste_system::probe::disk_usage;
use posthaste_system::{SystemClock, SystemEntropy};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::adapters::SharedAdapters;
use super::error::ServeError;
use super::export::ServeExport;
use super::former::RunNote;
use super::functions::{EmbeddedPages, WiredFunctions};
use super::left::{InFlight, LeftBehind};
use super::listening::{self, BoundAddresses};
use super::readiness::Readiness;
use super::settings::ServeSettings;
use super::tls::ServerTls;
use super::upkeep::UpkeepThread;
use super::{admin_key, advice, http, machine_clock, metrics, schedule};

/// Time between two clean-ups of the metrics recorder.
const METRICS_UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// Time between two looks at how far the delivery log goes, for the note for the next start.
const NOTE_PERIOD: Duration = Duration::from_mins(1);

/// A running server.
#[derive(Debug)]
pub struct RunningServer {
    addresses: BoundAddresses,
    admin_key: Secret,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    local: EmbeddedStore<SystemClock>,
    note: Arc<RunNote>,
    readiness: Arc<Readiness>,
    in_flight: InFlight,
    pages: Arc<EmbeddedPages>,
    export: Option<ServeExport>,
    /// Ends after the tasks.
    _upkeep: UpkeepThread,
}

impl RunningServer {
    /// Opens the data folder, which one process can do at a time, and begins to serve.
    pub async fn start(settings: &ServeSettings) -> Result<Self, ServeError> {
        let tls = open_tls(settings).await?;
        let local = open_store(settings).await?;
        advice::warn_of_root(&settings.data_dir);
        let written_until = local.opening_report().written_until;
        machine_clock::warn_if_wrong(SystemClock.now(), written_until);
        let given = settings.admin_key.as_ref();
        let admin_key = admin_key::given_or_stored(given, &settings.data_dir, &SystemEntropy)?;
        let metrics = metrics::install_recorder(settings.metrics_by);
        let (addresses, listening) = listening::bind(settings).await?;
        let export = settings.export.as_ref().map(ServeExport::new);
        let traces = export.as_ref().map(ServeExport::traces).unwrap_or_default();
        let adapters = SharedAdapters::open(settings, &local, traces)?;
        let note = RunNote::prepare(&local, adapters.delivery_log.clone(), settings).await?;
        let mut settings = settings.clone();
        settings.manage.log.gaps = note.gaps().await;
        let settings = &settings;
        let totals = metrics.totals();
        let functions =
            WiredFunctions::wire(settings, &adapters, &admin_key, addresses.public, totals)?;
        drop(adapters);
        let note = Arc::new(note);
        let readiness = Arc::new(Readiness::until_applied(&settings.config_files));
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let upkeep = UpkeepThread::start().map_err(ServeError::Process)?;
        note.report_and_write().await;
        functions.spawn_work(&mut tasks, &stop, &upkeep.handle(), &note);
        let pages = Arc::new(functions.metrics_pages(metrics));
        if let Some(export) = &export {
            export.spawn(&mut tasks, &stop, &upkeep.handle(), Arc::clone(&pages));
        }
        let router = functions
            .router()
            .merge(http::metrics_route(Arc::clone(&pages)))
            .merge(http::probe_routes());
        let console = functions.console_access();
        if let Some(console) = &console {
            console.read_sessions().await;
        }
        let operators = http::OperatorCheck::new(admin_key.clone(), console);
        let in_flight = InFlight {
            deliver: functions.deliver(),
            clients: Arc::default(),
        };
        let front = http::RequestFront {
            router,
            operators,
            data_folder: functions.data_folder(),
            upkeep: upkeep.handle(),
            readiness: Arc::clone(&readiness),
            limits: settings.connections.clone(),
            under_way: Arc::clone(&in_flight.clients),
            tls: tls.clone(),
        };
        tasks.spawn(http::serve(listening, front, SystemClock, stop.clone()));
        spawn_metrics_upkeep(&pages, &mut tasks, &stop);
        if let Some(tls) = tls {
            tls.spawn(&mut tasks, &stop);
        }
        spawn_note(&note, &upkeep, &mut tasks, &stop);
        addresses.warn_of_clear_text(settings);
        Ok(Self {
            addresses,
            admin_key,
            stop,
            tasks,
            local,
            note,
            readiness,
            in_flight,
            pages,
            export,
            _upkeep: upkeep,
        })
    }

    /// The URL to publish to.
    pub fn publish_url(&self) -> String {
        self.addresses.url_for(self.addresses.public)
    }

    /// The URL of the management API and the console.
    pub fn manage_url(&self) -> String {
        self.addresses.url_for(self.addresses.management)
    }

    /// The URL of the metrics.
    pub fn metrics_url(&self) -> String {
        format!("{}/metrics", self.addresses.url_for(self.addresses.metrics))
    }

    /// The key that opens the management API.
    pub fn admin_key(&self) -> &Secret {
        &self.admin_key
    }

    /// The store, to look at.
    pub(super) fn store(&self) -> EmbeddedStore<SystemClock> {
        self.local.clone()
    }

    /// The times that the store has waited for the disk.
    pub fn sync_count(&self) -> u64 {
        self.local.sync_count()
    }

    /// The requests that are under way, to be counted.
    pub(super) fn in_flight(&self) -> InFlight {
        self.in_flight.clone()
    }

    /// The work that the server has to do before its health is good.
    pub(super) fn readiness(&self) -> &Arc<Readiness> {
        &self.readiness
    }

    /// Completes when a part of the server ends by itself, which only a fault causes. The other
    /// parts go on, but a server without its listener, a poller or its store is of no use. End
    /// the process, so that a supervisor restarts it.
    pub async fn wait_for_failure(&mut self) -> ServeError {
        tokio::select! {
            ended = self.tasks.join_next() => match ended {
                Some(Err(error)) => ServeError::Task(error),
                Some(Ok(())) | None => ServeError::Ended,
            },
            () = self.local.wait_until_ended() => ServeError::Store,
        }
    }

    /// Stops accepting and receiving, waits at most `timeout` for what is in flight, and makes
    /// everything durable. A delivery that was cut short is made again after the next start. The
    /// log says at the end what was cut short, and what is left.
    /// Fails if a part of the server panics meanwhile.
    pub async fn drain(mut self, timeout: Duration) -> Result<(), ServeError> {
        let began = SystemClock.monotonic();
        self.readiness.mark_ending();
        self.stop.cancel();
        let mut panics = Vec::new();
        let ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                panics.extend(ended.err());
            }
        };
        if timeout_at::timeout(&SystemClock, timeout, ended)
            .await
            .is_none()
        {
            let timeout_s = timeout.as_secs_f64();
            tracing::warn!(timeout_s, "what was still in flight is cut short");
        }
        let cut = self.in_flight.cut_short_now();
        self.tasks.shutdown().await;
        if let Some(export) = &self.export {
            export.send_last(&self.pages).await;
        }
        let left = LeftBehind::count(&self.local).await;
        self.note.note_end(left.in_flight()).await;
        self.local.close().await;
        left.log_left(cut, SystemClock.monotonic().saturating_sub(began));
        panics
            .pop()
            .map_or(Ok(()), |panic| Err(ServeError::Task(panic)))
    }
}

/// The certificate of these settings. It is read before anything is begun.
async fn open_tls(settings: &ServeSettings) -> Result<Option<Arc<ServerTls>>, ServeError> {
    match settings.tls.clone() {
        Some(files) => Ok(Some(Arc::new(ServerTls::open_beside(files).await?))),
        None => Ok(None),
    }
}

/// Starts the notes for the next start.
fn spawn_note(
    note: &Arc<RunNote>,
    upkeep: &UpkeepThread,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let note = Arc::clone(note);
    let stop = stop.clone();
    let writing = schedule::run_every("run-note", NOTE_PERIOD, SystemClock, stop, move || {
        let note = Arc::clone(&note);
        async move { note.note_log_end().await }
    });
    tasks.spawn_on(writing, &upkeep.handle());
}

/// Keeps the series of metrics few.
fn spawn_metrics_upkeep(
    pages: &Arc<EmbeddedPages>,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    let pages = Arc::clone(pages);
    let stop = stop.clone();
    tasks.spawn(schedule::run_every(
        "metrics",
        METRICS_UPKEEP_PERIOD,
        SystemClock,
        stop,
        move || {
            let pages = Arc::clone(&pages);
            async move { pages.run_upkeep().await }
        },
    ));
}

/// Opens the data folder on another thread, because reading the queues may take a while.
async fn open_store(settings: &ServeSettings) -> Result<EmbeddedStore<SystemClock>, ServeError> {
    let data_dir = settings.data_dir.clone();
    let size_max = settings.record.size_max;
    let batch_points = settings.monitor.pressure.batch_points;
    let opening = spawn_blocking(move || {
        let records_bytes_max =
            records_waiting_bytes_max(size_max, disk_of(&data_dir).map(|disk| disk.total));
        let options = LocalOptions {
            batch_points,
            records_bytes_max,
            ..LocalOptions::default()
        };
        EmbeddedStore::open(&data_dir, options, SystemClock, SystemEntropy)
    });
    opening
        .await
        .map_err(ServeError::Task)?
        .map_err(ServeError::Open)
}

/// The disk of a folder, which may not exist yet. `None` if it cannot be measured, although another
/// disk above it can.
fn disk_of(folder: &Path) -> Option<ByteUsage> {
    let folder = std::path::absolute(folder).ok()?;
    disk_usage(folder.ancestors().find(|folder| folder.exists())?)
}

#[cfg(test)]
mod tests;
