//! Everything wired up, with the handles a test needs.

mod objects;
mod paths;
mod publish;
mod runs;
mod topics;

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use posthaste_core::model::{Timestamp, TopicName};
use posthaste_deadletter::DeadLetters;
use posthaste_deliver::DeliverSettings;
use posthaste_local::{EmbeddedStore, FileStore, LocalOptions};
use posthaste_ports::{PortError, QueueName};
use posthaste_record::LogRecorder;
use posthaste_services::{DrainMeter, LeftWork, LinkHealth};
use posthaste_testkit::recorded::RecordedCalls;
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use posthaste_wake::WakeSettings;
use tempfile::TempDir;

use crate::folder::data_folder;
use crate::names::start;
use crate::ports::{Bucket, Faults, Log, Queue, State};
use crate::wiring::{WakeFunction, Wiring};
use crate::{Api, Chance, ScriptedEndpoint, Worker};

/// The chance of a world that is the first in its folder.
const SEED: u64 = 7;

/// Most tries to open a folder of files in a row.
const OPENS_MAX: u32 = 100_000;

/// The state that a process finds when it starts, and the seed of its chance.
#[derive(Debug)]
pub struct Start {
    /// The data folder, with what another process left.
    pub folder: TempDir,
    /// The time.
    pub now: Timestamp,
    /// The seed of its ids and of its jitter.
    pub seed: u64,
}

/// record over the adapters of a world.
type RecordFunction = LogRecorder<TestPorts<Queue, State, Bucket, ScriptedEndpoint, Log>>;

/// The functions, wired up.
pub struct World {
    /// The time.
    pub clock: ManualClock,
    /// The other side.
    pub endpoint: ScriptedEndpoint,
    /// Every call of a port.
    pub calls: RecordedCalls,
    /// The embedded queues and state.
    pub local: EmbeddedStore<ManualClock>,
    /// The dead-letter bucket.
    pub bucket: FileStore,
    /// The bucket of the delivery log.
    pub log: FileStore,
    /// Links that are not well, as all functions see them.
    pub links: LinkHealth<State, ManualClock>,
    /// Deliver's reports of the drain.
    pub drain: DrainMeter,
    /// The source of deliver's jitter.
    pub chance: Chance,
    worker: Worker,
    wiring: Wiring,
    dead_letters: DeadLetters<TestPorts<Queue, State, Bucket>>,
    redrive: DeadLetters<TestPorts<Queue, State, Bucket>>,
    wake: WakeFunction,
    record: Box<RecordFunction>,
    created: Mutex<Created>,
    folder: TempDir,
}

/// Opens a folder of files. A thread of the world before, which was killed, may be at the end of a
/// write there, so that its unfinished files are not all gone at once.
fn open_files(folder: &Path) -> FileStore {
    for _ in 0..OPENS_MAX {
        match FileStore::open(folder) {
            Err(error) if is_not_empty(&error) => std::thread::yield_now(),
            opened => return opened.expect("a folder of files"),
        }
    }
    panic!("{} is written to all the time", folder.display());
}

fn is_not_empty(error: &PortError) -> bool {
    let source = std::error::Error::source(error);
    let cause = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::DirectoryNotEmpty)
}

impl World {
    /// A world in which nothing goes wrong.
    pub fn new() -> Self {
        Self::with(&Faults::none())
    }

    /// A world with faults.
    pub fn with(faults: &Faults) -> Self {
        Self::remembering(faults, Duration::ZERO)
    }

    /// A world with faults, in which what is known of a topic is asked for again only after so
    /// long, as on AWS.
    pub fn remembering(faults: &Faults, topic_max_age: Duration) -> Self {
        Self::wired(
            faults,
            topic_max_age,
            DeliverSettings::default(),
            LocalOptions::default(),
        )
    }

    /// A world with faults, in which deliver has other bounds.
    pub fn bounded(faults: &Faults, settings: DeliverSettings) -> Self {
        Self::wired(faults, Duration::ZERO, settings, LocalOptions::default())
    }

    /// A world with this bound on messages of the delivery queue in flight.
    pub fn with_in_flight_max(deliveries_in_flight_max: usize) -> Self {
        let options = LocalOptions {
            deliveries_in_flight_max,
            ..LocalOptions::default()
        };
        Self::wired(
            &Faults::none(),
            Duration::ZERO,
            DeliverSettings::default(),
            options,
        )
    }

    /// A world with faults, in which so many bytes of records of the delivery log may wait.
    pub fn with_records_bytes_max(faults: &Faults, records_bytes_max: u64) -> Self {
        let options = LocalOptions {
            records_bytes_max,
            ..LocalOptions::default()
        };
        Self::wired(faults, Duration::ZERO, DeliverSettings::default(), options)
    }

    /// A world over what another process left in a data folder. It goes on at this time.
    pub fn over(folder: TempDir, now: Timestamp) -> Self {
        let start = Start {
            folder,
            now,
            seed: SEED,
        };
        Self::over_with(start, &Faults::none())
    }

    /// The same with faults. A process that goes on draws other ids than the one before.
    pub fn over_with(start: Start, faults: &Faults) -> Self {
        let settings = DeliverSettings::default();
        let options = LocalOptions::default();
        Self::wired_over(start, faults, Duration::ZERO, settings, options)
    }

    /// Bytes of the file in which queues and state are.
    pub fn stored_bytes(&self) -> u64 {
        let file = std::fs::metadata(self.folder.path().join("posthaste.redb"));
        file.expect("the file of the embedded store").len()
    }

    /// Ends all functions in order, and gives the data folder.
    pub async fn end(self) -> TempDir {
        self.local.close().await;
        self.folder
    }

    /// The same, in which wake tells the subscribers of `ops` of links.
    #[must_use]
    pub fn telling_ops(self) -> Self {
        Self {
            wake: self.wake.with_settings(WakeSettings {
                notices_topic: TopicName::parse("ops").ok(),
                ..WakeSettings::default()
            }),
            ..self
        }
    }

    /// The same, in which health is known from the delivery log, as on AWS.
    #[must_use]
    pub fn knowing_health_from_records(self) -> Self {
        let links = self.wiring.links_of_lambda();
        let settings = DeliverSettings::default();
        let max_age = Duration::ZERO;
        let chance = self.chance.clone();
        Self {
            worker: self.wiring.worker(links.clone(), max_age, chance, settings),
            wake: self.wiring.wake(links.clone(), max_age),
            record: Box::new(self.wiring.record_counting()),
            links,
            ..self
        }
    }

    /// The same, in which record adds up what waits, as on AWS.
    #[must_use]
    pub fn counting_what_waits_from_records(self) -> Self {
        Self {
            record: Box::new(self.wiring.record_counting_waiting()),
            ..self
        }
    }

    fn wired(
        faults: &Faults,
        topic_max_age: Duration,
        settings: DeliverSettings,
        options: LocalOptions,
    ) -> Self {
        let first = Start {
            folder: data_folder(),
            now: start(),
            seed: SEED,
        };
        Self::wired_over(first, faults, topic_max_age, settings, options)
    }

    fn wired_over(
        Start { folder, now, seed }: Start,
        faults: &Faults,
        topic_max_age: Duration,
        settings: DeliverSettings,
        options: LocalOptions,
    ) -> Self {
        let clock = ManualClock::new(now);
        let entropy = SeededEntropy::new(seed);
        let calls = RecordedCalls::default();
        let local = EmbeddedStore::open(folder.path(), options, clock.clone(), entropy.clone())
            .expect("an embedded store");
        let bucket = open_files(&folder.path().join("dead-letters"));
        let log = open_files(&folder.path().join("log"));
        let wiring = Wiring {
            faults: faults.clone(),
            calls: calls.clone(),
            local: local.clone(),
            bucket: bucket.clone(),
            log: log.clone(),
            clock: clock.clone(),
            entropy,
            endpoint: ScriptedEndpoint::new(clock.clone()),
            drain: DrainMeter::default(),
        };
        let links = wiring.links();
        let chance = Chance::new(seed);
        Self {
            worker: wiring.worker(links.clone(), topic_max_age, chance.clone(), settings),
            dead_letters: wiring.dead_letters(QueueName::DeadLetters, topic_max_age),
            redrive: wiring.dead_letters(QueueName::Redrive, topic_max_age),
            wake: wiring.wake(links.clone(), topic_max_age),
            record: Box::new(wiring.record()),
            endpoint: wiring.endpoint.clone(),
            drain: wiring.drain.clone(),
            created: Mutex::new(Created {
                topic: 1,
                subscription: 1,
            }),
            clock,
            calls,
            local,
            bucket,
            log,
            links,
            chance,
            wiring,
            folder,
        }
    }

    /// The management API.
    pub fn api(&self) -> Api {
        Api::over(self.wiring.manage(self.links.clone()))
    }

    /// The state bucket, as the functions see it.
    pub fn state(&self) -> State {
        self.wiring.state()
    }

    /// One run of manage, as an instance that knows nothing yet, over what processes left.
    pub async fn finish_left(&self, left: LeftWork) {
        self.wiring
            .manage(self.links.clone())
            .finish_left(left)
            .await;
    }

    /// Another worker of deliver, which sees links through a book of its own, and draws its own
    /// chance.
    pub fn another_worker(&self, seed: u64) -> Worker {
        let links = self.wiring.links();
        let chance = Chance::new(seed);
        self.wiring
            .worker(links, Duration::ZERO, chance, DeliverSettings::default())
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// The creations of the topic and its subscription.
#[derive(Debug, Clone, Copy)]
struct Created {
    topic: u8,
    subscription: u8,
}
