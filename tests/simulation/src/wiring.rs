//! Wiring of the functions of a world over its adapters.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{
    AddressPolicy, DeliveryLogMode, KeyDigest, PublishUrls, SenderHeaders,
};
use posthaste_deadletter::{DeadLetterPorts, DeadLetters};
use posthaste_deliver::{Deliver, DeliverPorts, DeliverSettings};
use posthaste_local::{EmbeddedStore, FileStore};
use posthaste_manage::{BegunRequests, LogSettings, Manage, ManageSettings, RequestCaches};
use posthaste_ports::QueueName;
use posthaste_record::{
    AsideStore, HealthPorts, LogRecorder, RecordPorts, RecordSettings, SummaryStore, WaitingPorts,
};
use posthaste_services::{
    ActivityNotes, ArrivalTracker, DrainMeter, LinkHealth, PressureReader, TopicRegistry,
    WaitingBook, WakeSignaller, WrongKeys,
};
use posthaste_testkit::recorded::RecordedCalls;
use posthaste_testkit::{Faulty, ManualClock, Recorded, SeededEntropy, TestPorts};
use posthaste_wake::{DeliveryLog, Wake, WakePorts};
use url::Url;

use crate::ports::{Bucket, Faults, Log, Queue, State};
use crate::{Chance, ScriptedEndpoint, Worker};

/// The time after which the log is complete, for wake.
const LOG_DELAY: Duration = Duration::from_secs(5);

/// Most bytes of dead letters of what disabled subscriptions miss.
pub const MISSED_BYTES_MAX: u64 = 64 << 10;

/// wake over a world's adapters.
pub(crate) type WakeFunction = Wake<TestPorts<Queue, State, Bucket, ScriptedEndpoint, Log>>;

/// manage over a world's adapters.
pub(crate) type ManageFunction = Manage<TestPorts<Queue, State, Bucket, ScriptedEndpoint, Log>>;

/// The ports of record.
type RecordTestPorts = TestPorts<Queue, State, Bucket, ScriptedEndpoint, Log>;

/// The adapters of a world. Their calls are recorded and may fail.
pub(crate) struct Wiring {
    pub(crate) faults: Faults,
    pub(crate) calls: RecordedCalls,
    pub(crate) local: EmbeddedStore<ManualClock>,
    pub(crate) bucket: FileStore,
    pub(crate) log: FileStore,
    pub(crate) clock: ManualClock,
    pub(crate) entropy: SeededEntropy,
    pub(crate) endpoint: ScriptedEndpoint,
    pub(crate) drain: DrainMeter,
}

impl Wiring {
    pub(crate) fn worker(
        &self,
        links: LinkHealth<State, ManualClock>,
        topic_max_age: Duration,
        chance: Chance,
        settings: DeliverSettings,
    ) -> Worker {
        let ports = DeliverPorts {
            queue: self.queue(QueueName::Deliveries),
            slow_queue: None,
            records: self.queue(QueueName::Records),
            state: self.state(),
            registry: self.registry(topic_max_age),
            links: links.clone(),
            webhook: self.endpoint.clone(),
            clock: self.clock.clone(),
            entropy: chance,
            drain: self.drain.clone(),
        };
        let local = self.local.clone();
        let clock = self.clock.clone();
        let calls = self.calls.clone();
        Worker {
            links,
            deliver: Deliver::new(ports, settings),
            local,
            clock,
            calls,
        }
    }

    pub(crate) fn dead_letters(
        &self,
        source: QueueName,
        topic_max_age: Duration,
    ) -> DeadLetters<TestPorts<Queue, State, Bucket>> {
        DeadLetters::new(DeadLetterPorts {
            queue: self.queue(source),
            source,
            records: self.queue(QueueName::Records),
            delivery_log: DeliveryLogMode::Payloads,
            missed_bytes_max: Some(MISSED_BYTES_MAX),
            deliveries: self.queue(QueueName::Deliveries),
            state: self.state(),
            bucket: self.bucket(),
            registry: self.registry(topic_max_age),
            book: ArrivalTracker::new(self.state(), self.clock.clone()),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        })
    }

    pub(crate) fn wake(
        &self,
        links: LinkHealth<State, ManualClock>,
        topic_max_age: Duration,
    ) -> WakeFunction {
        Wake::new(WakePorts {
            deliveries: self.queue(QueueName::Deliveries),
            slow_lane: None,
            state: self.state(),
            dead_letters: self.bucket(),
            log: DeliveryLog::new(self.log()),
            log_delay: LOG_DELAY,
            registry: self.registry(topic_max_age),
            pressure: PressureReader::new(self.state(), self.clock.clone(), Duration::ZERO),
            links,
            activity: ActivityNotes::default(),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        })
    }

    /// manage, as an instance that knows nothing yet.
    pub(crate) fn manage(&self, links: LinkHealth<State, ManualClock>) -> Arc<ManageFunction> {
        Arc::new(Manage {
            state: self.state(),
            dead_letters: self.bucket(),
            log: DeliveryLog::with_summaries(self.log(), SummaryStore::in_log(self.log())),
            deliveries: self.queue(QueueName::Deliveries),
            slow_deliveries: None,
            webhooks: self.endpoint.clone(),
            links,
            activity: ActivityNotes::default(),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            admin_key: KeyDigest::for_key(""),
            wrong_keys: WrongKeys::default(),
            address_policy: AddressPolicy::default(),
            examiner: None,
            own_publish_urls: PublishUrls::default(),
            settings: ManageSettings {
                publish_url: None,
                public_url: Some(Url::parse("https://manage.example").expect("a URL")),
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
            work: BegunRequests::default(),
            caches: RequestCaches::default(),
        })
    }

    pub(crate) fn record(&self) -> LogRecorder<RecordTestPorts> {
        self.record_with(None, None)
    }

    /// record, from whose records health is known.
    pub(crate) fn record_counting(&self) -> LogRecorder<RecordTestPorts> {
        let health = HealthPorts {
            arrivals: ArrivalTracker::new(self.state(), self.clock.clone()).with_counting(),
            wake: WakeSignaller::new(Arc::new(self.state()), self.clock.clone()),
            delayed_after: HealthSettings::default().arrivals.delayed_after,
        };
        self.record_with(Some(health), None)
    }

    /// record, which adds up what waits.
    pub(crate) fn record_counting_waiting(&self) -> LogRecorder<RecordTestPorts> {
        let waiting = WaitingPorts {
            book: WaitingBook::new(self.state(), self.clock.clone()),
            deliveries: Some(self.queue(QueueName::Deliveries)),
            others: [QueueName::DeadLetters, QueueName::Redrive]
                .map(|name| self.queue(name))
                .into(),
        };
        self.record_with(None, Some(waiting))
    }

    fn record_with(
        &self,
        health: Option<HealthPorts<RecordTestPorts>>,
        waiting: Option<WaitingPorts<RecordTestPorts>>,
    ) -> LogRecorder<RecordTestPorts> {
        let ports = RecordPorts {
            records: self.queue(QueueName::Records),
            state: self.state(),
            log: self.log(),
            aside: AsideStore::in_log(self.log()),
            summaries: SummaryStore::in_log(self.log()),
            health,
            waiting,
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        };
        LogRecorder::new(ports, RecordSettings::default())
    }

    pub(crate) fn links(&self) -> LinkHealth<State, ManualClock> {
        self.links_of_lambda().counting_arrivals()
    }

    /// Links as a function sees them that does not know the tries of others.
    pub(crate) fn links_of_lambda(&self) -> LinkHealth<State, ManualClock> {
        LinkHealth::new(self.state(), self.clock.clone(), HealthSettings::default())
    }

    fn registry(&self, topic_max_age: Duration) -> TopicRegistry<State, ManualClock> {
        TopicRegistry::new(self.state(), self.clock.clone(), topic_max_age)
    }

    fn queue(&self, name: QueueName) -> Queue {
        let label = match name {
            QueueName::Deliveries => "deliveries",
            QueueName::SlowDeliveries => "deliveries-slow",
            QueueName::DeadLetters => "deadletters",
            QueueName::Redrive => "redrive",
            QueueName::Records => "records",
        };
        Faulty::new(
            Recorded::new(self.local.queue(name), label, &self.calls),
            label,
            &self.faults.queues,
        )
    }

    pub(crate) fn state(&self) -> State {
        Faulty::new(
            Recorded::new(self.local.state_store(), "state", &self.calls),
            "state",
            &self.faults.state,
        )
    }

    fn bucket(&self) -> Bucket {
        Faulty::new(
            Recorded::new(self.bucket.clone(), "bucket", &self.calls),
            "bucket",
            &self.faults.bucket,
        )
    }

    fn log(&self) -> Log {
        Faulty::new(
            Recorded::new(self.log.clone(), "log", &self.calls),
            "log",
            &self.faults.log,
        )
    }
}
