//! The functions of one process, wired over what processes share: as `infra/server` and
//! `infra/lambda` wire them.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{
    AddressPolicy, ArrivalSettings, DeliveryLogMode, KeyDigest, PublishUrls, SenderHeaders,
};
use posthaste_core::pressure::{PressureSettings, Resource, ThresholdSettings};
use posthaste_deadletter::{DeadLetterPorts, DeadLetters};
use posthaste_deliver::{
    DELAY_STEP_AWS, Deliver, DeliverPorts, DeliverSettings, DisablingMode, RecordsSettings,
};
use posthaste_manage::{BegunRequests, LogSettings, Manage, ManageSettings, RequestCaches};
use posthaste_monitor::{Monitor, MonitorPorts, MonitorSettings};
use posthaste_ports::{NoMachine, PortBundle, QueueName};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitMode, TarpitTurns};
use posthaste_record::{
    AsideStore, HealthPorts, LogRecorder, RecordPorts, RecordSettings, SummaryStore, WaitingPorts,
};
use posthaste_services::{
    ActivityNotes, ArrivalTracker, DrainMeter, LinkHealth, PressureReader, SlowLane,
    SlowTargetCache, TopicRegistry, WaitingBook, WakeSignaller, WrongKeys,
};
use posthaste_simulation::Api;
use posthaste_testkit::faulty::FaultPlan;
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{Adversary, Faulty, ManualClock, Mood, SeededEntropy};
use posthaste_wake::{DeliveryLog, Wake, WakePorts};
use tokio::sync::Mutex;
use url::Url;

use crate::course::{Place, Setting};
use crate::draw::hash;
use crate::endpoint::Endpoints;
use crate::queue::SimulatedQueue;

/// Most bytes of dead letters of what disabled subscriptions miss.
const MISSED_BYTES_MAX: u64 = 64 << 20;

/// The time after which the log is complete.
const LOG_DELAY: Duration = Duration::from_secs(10);

/// Messages in the queue that are pressure.
const QUEUED_NORMAL: u64 = 2;
const QUEUED_MEDIUM: u64 = 4;
const QUEUED_HIGH: u64 = 8;

/// The time between two looks of the monitor.
pub(crate) const MONITOR_PERIOD: Duration = Duration::from_secs(10);

type Store = Faulty<Adversary<MemoryStore>>;

/// A queue as functions see it.
type Queue = Faulty<Adversary<SimulatedQueue>>;

/// The adapters of all functions.
pub(crate) type Adapters =
    PortBundle<Queue, Store, Store, Store, Endpoints, ManualClock, SeededEntropy>;

/// The parts that the processes of an installation share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) setting: Setting,
    pub(crate) clock: ManualClock,
    pub(crate) endpoints: Endpoints,
    pub(crate) queue: SimulatedQueue,
    pub(crate) state: MemoryStore,
    pub(crate) bucket: MemoryStore,
    pub(crate) log: MemoryStore,
    pub(crate) mood: Mood,
}

/// monitor over the adapters of an installation.
pub(crate) type MonitorFunction = Monitor<Adapters, NoMachine, DrainMeter>;

/// One process, or as many Lambda instances as there are.
pub(crate) struct Functions {
    pub(crate) publish: Arc<Publish<Adapters>>,
    pub(crate) manage: Arc<Manage<Adapters>>,
    /// The API over `manage`, made when it is asked for: its routes and their description take as
    /// long as a step or two of a course.
    pub(crate) api: OnceCell<Api>,
    pub(crate) workers: Vec<Arc<Deliver<Adapters>>>,
    pub(crate) dead_letters: Arc<DeadLetters<Adapters>>,
    pub(crate) redrive: Arc<DeadLetters<Adapters>>,
    pub(crate) wake: Arc<Wake<Adapters>>,
    pub(crate) record: Arc<LogRecorder<Adapters>>,
    /// Only where few messages are pressure.
    pub(crate) monitor: Option<Arc<Mutex<MonitorFunction>>>,
}

/// The wiring of one process.
struct Wiring<'a> {
    shared: &'a Shared,
    plan: &'a FaultPlan,
    /// The number of the process, so that each draws other chance.
    number: u64,
    links: LinkHealth<Store, ManualClock>,
    registry: TopicRegistry<Store, ManualClock>,
    drain: DrainMeter,
}

impl Shared {
    /// The functions of the process of this number. Their calls go wrong by the plan.
    pub(crate) fn functions(&self, number: u64, plan: &FaultPlan) -> Functions {
        let state = || store(&self.state, "state", &self.mood, plan);
        let clock = self.clock.clone();
        let max_age = self.topic_max_age();
        let wiring = Wiring {
            shared: self,
            plan,
            number,
            links: links(state(), clock.clone(), self.setting.place),
            registry: TopicRegistry::new(state(), clock, max_age),
            drain: DrainMeter::default(),
        };
        let workers = match self.setting.place {
            Place::Serve => 1,
            Place::Aws => 2 * u64::from(self.setting.workers),
        };
        Functions {
            publish: Arc::new(wiring.publish()),
            manage: Arc::new(wiring.manage()),
            api: OnceCell::new(),
            workers: (0..workers)
                .map(|it| Arc::new(wiring.deliver(it)))
                .collect(),
            dead_letters: Arc::new(wiring.dead_letters(QueueName::DeadLetters)),
            redrive: Arc::new(wiring.dead_letters(QueueName::Redrive)),
            wake: Arc::new(wiring.wake()),
            record: Arc::new(wiring.record()),
            monitor: self
                .setting
                .has_pressure
                .then(|| Arc::new(Mutex::new(wiring.monitor()))),
        }
    }

    fn topic_max_age(&self) -> Duration {
        self.setting.place.topic_max_age()
    }
}

fn store(store: &MemoryStore, label: &'static str, mood: &Mood, plan: &FaultPlan) -> Store {
    Faulty::new(Adversary::new(store.clone(), label, mood), label, plan)
}

/// The name of a queue in plans and plays.
pub(crate) fn label(name: QueueName) -> &'static str {
    match name {
        QueueName::Deliveries => "deliveries",
        QueueName::SlowDeliveries => "deliveries-slow",
        QueueName::DeadLetters => "deadletters",
        QueueName::Redrive => "redrive",
        QueueName::Records => "records",
    }
}

fn links(state: Store, clock: ManualClock, place: Place) -> LinkHealth<Store, ManualClock> {
    let links = LinkHealth::new(state, clock, HealthSettings::default());
    match place {
        Place::Serve => links.counting_arrivals(),
        Place::Aws => links,
    }
}

impl Functions {
    /// The API of this process.
    pub(crate) fn api(&self) -> Api {
        let api = self.api.get_or_init(|| Api::over(Arc::clone(&self.manage)));
        api.clone()
    }
}

impl Wiring<'_> {
    fn is_on_aws(&self) -> bool {
        self.shared.setting.place == Place::Aws
    }

    fn state(&self) -> Store {
        store(&self.shared.state, "state", &self.shared.mood, self.plan)
    }

    fn bucket(&self) -> Store {
        store(&self.shared.bucket, "bucket", &self.shared.mood, self.plan)
    }

    fn log(&self) -> Store {
        store(&self.shared.log, "log", &self.shared.mood, self.plan)
    }

    fn queue(&self, name: QueueName) -> Queue {
        let label = label(name);
        let adversary = Adversary::new(self.shared.queue.named(name), label, &self.shared.mood);
        Faulty::new(adversary, label, self.plan)
    }

    fn slow_queue(&self) -> Option<Queue> {
        self.is_on_aws()
            .then(|| self.queue(QueueName::SlowDeliveries))
    }

    fn slow_lane(&self) -> Option<SlowLane<Queue, Store, ManualClock>> {
        Some(SlowLane {
            queue: self.slow_queue()?,
            lanes: SlowTargetCache::new(Arc::new(self.state()), self.clock()),
        })
    }

    fn clock(&self) -> ManualClock {
        self.shared.clock.clone()
    }

    fn entropy(&self, of: &str) -> SeededEntropy {
        let number = self.number.to_string();
        SeededEntropy::new(hash(self.shared.setting.seed, &[of, &number]))
    }

    /// Topics as a function sees them: in one process all functions share what they know.
    fn registry(&self, max_age: Duration) -> TopicRegistry<Store, ManualClock> {
        if self.is_on_aws() {
            TopicRegistry::new(self.state(), self.clock(), max_age)
        } else {
            self.registry.clone()
        }
    }

    fn links(&self) -> LinkHealth<Store, ManualClock> {
        if self.is_on_aws() {
            links(self.state(), self.clock(), Place::Aws)
        } else {
            self.links.clone()
        }
    }

    fn pressure(&self) -> PressureReader<Store, ManualClock> {
        PressureReader::new(self.state(), self.clock(), self.shared.topic_max_age())
    }

    fn publish(&self) -> Publish<Adapters> {
        Publish {
            deliveries: self.queue(QueueName::Deliveries),
            slow_lane: self.slow_lane(),
            records: Some(self.queue(QueueName::Records)),
            registry: self.registry(self.shared.topic_max_age()),
            payloads: self.state(),
            pressure: self.pressure(),
            clock: self.clock(),
            entropy: self.entropy("publish"),
            activity: ActivityNotes::default(),
            bodies: BodyBudget::new(10_000_000),
            advice: TarpitTurns::default(),
            wrong_keys: WrongKeys::default(),
            traces: posthaste_services::EventTraces::default(),
            settings: PublishSettings {
                stores_for_log: self.is_on_aws(),
                tarpit: if self.is_on_aws() {
                    TarpitMode::Advise
                } else {
                    TarpitMode::Delay
                },
                ..PublishSettings::default()
            },
        }
    }

    fn manage(&self) -> Manage<Adapters> {
        let work = if self.is_on_aws() {
            BegunRequests::looking_beside_answers()
        } else {
            BegunRequests::default()
        };
        Manage {
            state: self.state(),
            dead_letters: self.bucket(),
            log: DeliveryLog::with_summaries(self.log(), SummaryStore::in_log(self.log())),
            deliveries: self.queue(QueueName::Deliveries),
            slow_deliveries: self.slow_queue(),
            webhooks: self.shared.endpoints.clone(),
            links: self.links(),
            activity: ActivityNotes::default(),
            clock: self.clock(),
            entropy: self.entropy("manage"),
            admin_key: KeyDigest::for_key(""),
            wrong_keys: WrongKeys::default(),
            address_policy: AddressPolicy::default(),
            examiner: None,
            own_publish_urls: PublishUrls::default(),
            settings: ManageSettings {
                publish_url: None,
                public_url: Url::parse("https://manage.example").ok(),
                origin: HeaderValue::from_static("posthaste.example"),
                sender_headers: SenderHeaders::default(),
                notices_topic: None,
                log: LogSettings {
                    mode: DeliveryLogMode::Payloads,
                    retention: None,
                    delay: LOG_DELAY,
                    gaps: Vec::new(),
                },
            },
            work,
            caches: RequestCaches::default(),
        }
    }

    fn deliver(&self, worker: u64) -> Deliver<Adapters> {
        let ports = DeliverPorts {
            queue: self.queue(QueueName::Deliveries),
            slow_queue: self.slow_queue(),
            records: self.queue(QueueName::Records),
            state: self.state(),
            registry: self.registry(self.shared.topic_max_age()),
            links: self.links(),
            webhook: self.shared.endpoints.clone(),
            clock: self.clock(),
            entropy: self.entropy(&format!("deliver {worker}")),
            drain: self.drain.clone(),
        };
        let settings = if self.is_on_aws() {
            DeliverSettings {
                records: RecordsSettings::AWS,
                delay_step: DELAY_STEP_AWS,
                disabling: DisablingMode::ByWake,
                ..DeliverSettings::default()
            }
        } else {
            DeliverSettings::default()
        };
        Deliver::new(ports, settings)
    }

    fn dead_letters(&self, source: QueueName) -> DeadLetters<Adapters> {
        DeadLetters::new(DeadLetterPorts {
            queue: self.queue(source),
            source,
            records: self.queue(QueueName::Records),
            delivery_log: DeliveryLogMode::Payloads,
            missed_bytes_max: Some(MISSED_BYTES_MAX),
            deliveries: self.queue(QueueName::Deliveries),
            state: self.state(),
            bucket: self.bucket(),
            registry: self.registry(self.shared.topic_max_age()),
            book: ArrivalTracker::new(self.state(), self.clock()),
            clock: self.clock(),
            entropy: self.entropy(if source == QueueName::Redrive {
                "redrive"
            } else {
                "letters"
            }),
        })
    }

    fn wake(&self) -> Wake<Adapters> {
        let wake = Wake::new(WakePorts {
            deliveries: self.queue(QueueName::Deliveries),
            slow_lane: self.slow_lane(),
            state: self.state(),
            dead_letters: self.bucket(),
            log: DeliveryLog::new(self.log()),
            log_delay: LOG_DELAY,
            registry: self.registry(Duration::ZERO),
            pressure: self.pressure(),
            links: self.links(),
            activity: ActivityNotes::default(),
            clock: self.clock(),
            entropy: self.entropy("wake"),
        });
        if self.is_on_aws() {
            wake.leaving_payloads()
        } else {
            wake
        }
    }

    fn record(&self) -> LogRecorder<Adapters> {
        let (health, waiting) = if self.is_on_aws() {
            (
                Some(self.health_of_records()),
                Some(self.waiting_of_records()),
            )
        } else {
            (None, None)
        };
        let ports = RecordPorts {
            records: self.queue(QueueName::Records),
            state: self.state(),
            log: self.log(),
            aside: AsideStore::in_log(self.log()),
            summaries: SummaryStore::in_log(self.log()),
            health,
            waiting,
            clock: self.clock(),
            entropy: self.entropy("record"),
        };
        LogRecorder::new(ports, RecordSettings::default())
    }

    /// monitor, for which few messages are pressure.
    fn monitor(&self) -> MonitorFunction {
        let ports = MonitorPorts {
            deliveries: self.queue(QueueName::Deliveries),
            slow_lane: self.slow_lane(),
            dead_letters: self.queue(QueueName::DeadLetters),
            state: self.state(),
            probe: NoMachine,
            clock: self.clock(),
            drain: self.drain.clone(),
            registry: self.registry(Duration::ZERO),
            entropy: self.entropy("monitor"),
        };
        let few = ThresholdSettings {
            normal: Some(QUEUED_NORMAL),
            medium: Some(QUEUED_MEDIUM),
            high: Some(QUEUED_HIGH),
        };
        let pressure = PressureSettings {
            interval: MONITOR_PERIOD,
            thresholds: [(Resource::SubmissionQueue, few)].into(),
            history_depths: [(Resource::SubmissionQueue, 2)].into(),
            ..PressureSettings::default()
        };
        let settings = MonitorSettings {
            pressure,
            ..MonitorSettings::default()
        };
        Monitor::new(ports, settings).expect("settings that make sense")
    }

    fn health_of_records(&self) -> HealthPorts<Adapters> {
        HealthPorts {
            arrivals: ArrivalTracker::new(self.state(), self.clock()).with_counting(),
            wake: WakeSignaller::new(Arc::new(self.state()), self.clock()),
            delayed_after: ArrivalSettings::default().delayed_after,
        }
    }

    fn waiting_of_records(&self) -> WaitingPorts<Adapters> {
        let others = [
            QueueName::SlowDeliveries,
            QueueName::DeadLetters,
            QueueName::Redrive,
        ];
        WaitingPorts {
            book: WaitingBook::new(self.state(), self.clock()),
            deliveries: Some(self.queue(QueueName::Deliveries)),
            others: others.map(|name| self.queue(name)).into(),
        }
    }
}
