//! The functions over the embedded adapters: each gets its queue, store and client.

use std::net::SocketAddr;
use std::time::Duration;

use posthaste_cli::backup::parts;
use posthaste_cli::commands::ADMIN_KEY_FILE;
use posthaste_core::model::size::DiskShare;
use posthaste_core::model::{KeyDigest, LOG_DISK_FREE_MIN, PublishUrls, Secret};
use posthaste_deadletter::{DeadLetterPorts, DeadLetters};
use posthaste_deliver::{Deliver, DeliverPorts};
use posthaste_http::HyperWebhookClient;
use posthaste_local::{EmbeddedStore, FileStore, LocalQueue, StateStore};
use posthaste_manage::{
    BegunRequests, DeliveryLog, LogSettings, Manage, ManageSettings, RequestCaches,
};
use posthaste_ports::{PortBundle, QueueName};
use posthaste_publish::{BodyBudget, Publish, TarpitTurns};
use posthaste_record::{AsideStore, LogRecorder, RecordPorts, RecordSettings, SummaryStore};
use posthaste_services::{
    ActivityNotes, ArrivalTracker, DrainMeter, EventTraces, LinkHealth, MemoryReliever,
    PRESSURE_MAX_AGE, PressureReader, TopicRegistry, WrongKeys,
};
use posthaste_system::probe::disk_usage;
use posthaste_system::{SystemClock, SystemEntropy, resident_bytes};
use posthaste_wake::{Wake, WakePorts};

use super::backup::BackupService;
use super::data_folder::{DataFolder, KeyFile};
use super::error::ServeError;
use super::machine::MachineExaminer;
use super::machine_clock::ClockFloor;
use super::settings::ServeSettings;

/// The memory that the bodies of requests in progress may take together, in bytes.
const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Greatest age of a cached topic. Asking the embedded store is cheap, so every change is visible
/// at once.
const TOPIC_MAX_AGE: Duration = Duration::ZERO;

type EmbeddedQueue = LocalQueue<SystemClock>;
type ServeWebhooks = HyperWebhookClient<SystemClock>;

/// The embedded adapters, on which every function runs.
pub(super) type EmbeddedPorts = PortBundle<
    EmbeddedQueue,
    StateStore,
    FileStore,
    FileStore,
    ServeWebhooks,
    SystemClock,
    SystemEntropy,
>;

/// Adapters and caches that the functions share.
pub(super) struct SharedAdapters<'a> {
    /// The meter of what deliver settles.
    pub(super) drain: DrainMeter,
    pub(super) local: &'a EmbeddedStore<SystemClock>,
    bucket: FileStore,
    log: FileStore,
    log_aside: FileStore,
    log_summaries: FileStore,
    /// The delivery log, as it is read.
    pub(super) delivery_log: DeliveryLog<FileStore>,
    /// Topics, as all functions see them.
    pub(super) registry: TopicRegistry<StateStore, SystemClock>,
    pressure: PressureReader<StateStore, SystemClock>,
    /// Links that are not well, as all functions see them.
    pub(super) links: LinkHealth<StateStore, SystemClock>,
    webhooks: ServeWebhooks,
    /// The traces of events.
    traces: EventTraces,
    request_caches: RequestCaches,
}

impl<'a> SharedAdapters<'a> {
    /// Opens the folders of dead letters and of the delivery log, and the webhook client.
    pub(super) fn open(
        settings: &ServeSettings,
        local: &'a EmbeddedStore<SystemClock>,
        traces: EventTraces,
    ) -> Result<Self, ServeError> {
        // With a shorter poll, producers learn of the pressure sooner.
        let pressure_max_age = PRESSURE_MAX_AGE.min(settings.monitor.pressure.interval);
        let log = open_log_folder(settings, parts::LOG)?;
        let log_summaries = open_log_folder(settings, parts::LOG_SUMMARY)?;
        Ok(Self {
            drain: DrainMeter::default(),
            local,
            bucket: FileStore::open(&settings.data_dir.join(parts::DEAD_LETTERS))
                .map_err(ServeError::DeadLetters)?,
            delivery_log: DeliveryLog::with_summaries(
                log.clone(),
                SummaryStore::in_own_store(log_summaries.clone()),
            ),
            log,
            log_summaries,
            log_aside: open_log_folder(settings, parts::LOG_ASIDE)?,
            registry: TopicRegistry::new(local.state_store(), SystemClock, TOPIC_MAX_AGE),
            pressure: PressureReader::new(local.state_store(), SystemClock, pressure_max_age),
            links: LinkHealth::new(local.state_store(), SystemClock, settings.links.clone())
                .counting_arrivals(),
            webhooks: HyperWebhookClient::new(settings.client.clone(), SystemClock)?,
            traces,
            request_caches: RequestCaches::default(),
        })
    }

    /// The files of the data folder, to be looked at from time to time. The key of a file that is
    /// not the server's is the operator's own.
    pub(super) fn data_folder(&self, settings: &ServeSettings, admin_key: &Secret) -> DataFolder {
        let key = settings.admin_key.is_none().then(|| KeyFile {
            path: settings.data_dir.join(ADMIN_KEY_FILE),
            key: admin_key.clone(),
        });
        let folders = vec![
            self.bucket.clone(),
            self.log.clone(),
            self.log_aside.clone(),
            self.log_summaries.clone(),
        ];
        DataFolder::new(self.local.open_files().cloned(), folders, key)
    }

    /// Backups of the data folder.
    pub(super) fn backups(&self, settings: &ServeSettings) -> BackupService {
        BackupService::new(
            self.local.clone(),
            self.log.clone(),
            settings.data_dir.clone(),
        )
    }

    /// Caches that can be trimmed under memory pressure. Notes of activity and slices of rate
    /// limits stay: they are small, and learning them again costs writes.
    pub(super) fn reliever(&self) -> MemoryReliever<SystemClock> {
        MemoryReliever::new(SystemClock, resident_bytes)
            .with_cache("topics", self.registry.clone())
            .with_cache("log footers", self.delivery_log.clone())
            .with_cache("bodies", self.local.clone())
            .with_cache("connections", self.webhooks.clone())
            .with_cache("answers of the API", self.request_caches.clone())
    }

    pub(super) fn make_publish(&self, settings: &ServeSettings) -> Publish<EmbeddedPorts> {
        Publish {
            deliveries: self.local.queue(QueueName::Deliveries),
            slow_lane: None,
            records: Some(self.local.queue(QueueName::Records)),
            registry: self.registry.clone(),
            payloads: self.local.state_store(),
            pressure: self.pressure.clone(),
            clock: SystemClock,
            entropy: SystemEntropy,
            activity: ActivityNotes::default(),
            bodies: BodyBudget::new(BODIES_BYTES_MAX),
            advice: TarpitTurns::default(),
            wrong_keys: WrongKeys::with_pause(),
            traces: self.traces.clone(),
            settings: settings.publish,
        }
    }

    /// manage of a server that listens on `address`.
    pub(super) fn make_manage(
        &self,
        settings: &ServeSettings,
        admin_key: &Secret,
        address: SocketAddr,
    ) -> Manage<EmbeddedPorts> {
        let written_until = self.local.opening_report().written_until;
        let shown_time = ClockFloor::begin(&SystemClock, written_until);
        Manage {
            state: self.local.state_store(),
            dead_letters: self.bucket.clone(),
            log: self.delivery_log.clone(),
            deliveries: self.local.queue(QueueName::Deliveries),
            slow_deliveries: None,
            webhooks: self.webhooks.clone(),
            links: self.links.clone(),
            clock: SystemClock,
            entropy: SystemEntropy,
            admin_key: KeyDigest::for_key(admin_key.expose()),
            wrong_keys: WrongKeys::with_pause(),
            activity: ActivityNotes::default(),
            address_policy: settings.client.addresses.clone(),
            examiner: Some(MachineExaminer::new(
                settings,
                shown_time,
                self.webhooks.clone(),
            )),
            own_publish_urls: PublishUrls::default()
                .listening_on(address)
                .with_base(settings.manage.public_url.clone()),
            settings: ManageSettings {
                log: LogSettings {
                    retention: settings.record.retention,
                    ..settings.manage.log.clone()
                },
                ..settings.manage.clone()
            },
            work: BegunRequests::default(),
            caches: self.request_caches.clone(),
        }
    }

    pub(super) fn make_deliver(&self, settings: &ServeSettings) -> Deliver<EmbeddedPorts> {
        let ports = DeliverPorts {
            queue: self.local.queue(QueueName::Deliveries),
            slow_queue: None,
            records: self.local.queue(QueueName::Records),
            state: self.local.state_store(),
            registry: self.registry.clone(),
            links: self.links.clone(),
            webhook: self.webhooks.clone(),
            clock: SystemClock,
            entropy: SystemEntropy,
            drain: self.drain.clone(),
        };
        Deliver::new(ports, settings.deliver.clone()).with_traces(self.traces.clone())
    }

    pub(super) fn make_dead_letters(
        &self,
        settings: &ServeSettings,
        source: QueueName,
    ) -> DeadLetters<EmbeddedPorts> {
        DeadLetters::new(DeadLetterPorts {
            queue: self.local.queue(source),
            source,
            records: self.local.queue(QueueName::Records),
            delivery_log: settings.deliver.delivery_log,
            missed_bytes_max: missed_bytes_max(settings),
            deliveries: self.local.queue(QueueName::Deliveries),
            state: self.local.state_store(),
            bucket: self.bucket.clone(),
            registry: self.registry.clone(),
            // One of its own: what it reads may be older than what wake has written and deliver
            // goes by.
            book: ArrivalTracker::new(self.local.state_store(), SystemClock),
            clock: SystemClock,
            entropy: SystemEntropy,
        })
    }

    pub(super) fn make_wake(&self, settings: &ServeSettings) -> Wake<EmbeddedPorts> {
        Wake::new(WakePorts {
            deliveries: self.local.queue(QueueName::Deliveries),
            slow_lane: None,
            state: self.local.state_store(),
            dead_letters: self.bucket.clone(),
            log: self.delivery_log.clone(),
            log_delay: settings.manage.log.delay,
            registry: self.registry.clone(),
            pressure: self.pressure.clone(),
            links: self.links.clone(),
            activity: ActivityNotes::default(),
            clock: SystemClock,
            entropy: SystemEntropy,
        })
        .with_settings(settings.wake.clone())
    }

    /// record, which keeps its files in progress in the folder of the log: they are as large as the
    /// log's.
    pub(super) fn make_record(&self, settings: &ServeSettings) -> LogRecorder<EmbeddedPorts> {
        let ports = RecordPorts {
            records: self.local.queue(QueueName::Records),
            state: self.local.state_store(),
            log: self.log.clone(),
            aside: AsideStore::in_own_store(self.log_aside.clone()),
            summaries: SummaryStore::in_own_store(self.log_summaries.clone()),
            health: None,
            waiting: None,
            clock: SystemClock,
            entropy: SystemEntropy,
        };
        let work_folder = settings.data_dir.join(parts::LOG);
        LogRecorder::new(
            ports,
            RecordSettings {
                work_folder,
                ..settings.record.clone()
            },
        )
    }
}

fn open_log_folder(settings: &ServeSettings, name: &str) -> Result<FileStore, ServeError> {
    let folder = settings.data_dir.join(name);
    FileStore::open_keeping_free(&folder, LOG_DISK_FREE_MIN).map_err(ServeError::Log)
}

/// Most bytes of dead letters of what disabled subscriptions miss. There is no bound by a share of
/// a disk that cannot be measured.
fn missed_bytes_max(settings: &ServeSettings) -> Option<u64> {
    match settings.missed_max {
        DiskShare::Bytes(bytes) => Some(bytes),
        share @ DiskShare::Percent(_) => {
            disk_usage(&settings.data_dir).map(|disk| share.bytes_of_disk(disk.total))
        }
    }
}
