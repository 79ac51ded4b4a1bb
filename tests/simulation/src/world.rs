//! Everything wired up, with the handles a test needs.

mod objects;
mod publish;
mod runs;
mod topics;

use std::sync::Mutex;
use std::time::Duration;

use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::name::TopicName;
use posthaste_core::model::time::Timestamp;
use posthaste_deadletter::{DeadLetterPorts, DeadLetters};
use posthaste_deliver::{Deliver, DeliverPorts, DeliverSettings};
use posthaste_local::{FileStore, Local, LocalOptions};
use posthaste_ports::QueueName;
use posthaste_services::{DrainMeter, LinkHealth, PressureReader, Registry};
use posthaste_testkit::recorded::Calls;
use posthaste_testkit::{ManualClock, SeededEntropy};
use posthaste_wake::{Wake, WakePorts};
use tempfile::TempDir;

use crate::names::start;
use crate::ports::{Bucket, Faults, Queue, State, Wrap};
use crate::{Chance, ScriptedEndpoint, Worker};

/// The functions, wired up.
pub struct World {
    /// The time.
    pub clock: ManualClock,
    /// The other side.
    pub endpoint: ScriptedEndpoint,
    /// Every call of a port.
    pub calls: Calls,
    /// The embedded queues and state.
    pub local: Local<ManualClock>,
    /// The dead-letter bucket.
    pub bucket: FileStore,
    /// Links that are not well, as all functions see them.
    pub links: LinkHealth<State, ManualClock>,
    /// Deliver's reports of the drain.
    pub drain: DrainMeter,
    /// The source of deliver's jitter.
    pub chance: Chance,
    worker: Worker,
    faults: Faults,
    dead_letters: DeadLetters<TestPorts<Queue, State, Bucket>>,
    redrive: DeadLetters<TestPorts<Queue, State, Bucket>>,
    wake: Wake<TestPorts<Queue, State, Bucket, ScriptedEndpoint>>,
    created: Mutex<Created>,
    folder: TempDir,
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

    /// A world with faults, in which what is known of a topic is asked for again only after so long, as on
    /// AWS.
    pub fn remembering(faults: &Faults, topic_max_age: Duration) -> Self {
        Self::wired(faults, topic_max_age, DeliverSettings::default(), LocalOptions::default())
    }

    /// A world with faults, in which deliver has other bounds.
    pub fn bounded(faults: &Faults, settings: DeliverSettings) -> Self {
        Self::wired(faults, Duration::ZERO, settings, LocalOptions::default())
    }

    /// A world in which so many messages of the delivery queue may be in flight.
    pub fn with_in_flight_max(deliveries_in_flight_max: usize) -> Self {
        let options = LocalOptions { deliveries_in_flight_max, ..LocalOptions::default() };
        Self::wired(&Faults::none(), Duration::ZERO, DeliverSettings::default(), options)
    }

    /// A world over what another process left in a data folder. It goes on at this time.
    pub fn over(folder: TempDir, now: Timestamp) -> Self {
        let (settings, options) = (DeliverSettings::default(), LocalOptions::default());
        Self::wired_over((folder, now), &Faults::none(), Duration::ZERO, settings, options)
    }

    /// Ends all functions in order, and gives the data folder.
    pub async fn end(self) -> TempDir {
        self.local.close().await;
        self.folder
    }

    /// The same, in which wake tells the subscribers of `ops` of links.
    #[must_use]
    pub fn telling_ops(self) -> Self {
        Self { wake: self.wake.telling(TopicName::parse("ops").ok()), ..self }
    }

    fn wired(
        faults: &Faults,
        topic_max_age: Duration,
        settings: DeliverSettings,
        options: LocalOptions,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::wired_over((folder, start()), faults, topic_max_age, settings, options)
    }

    fn wired_over(
        (folder, now): (TempDir, Timestamp),
        faults: &Faults,
        topic_max_age: Duration,
        settings: DeliverSettings,
        options: LocalOptions,
    ) -> Self {
        let (clock, entropy, calls) = (ManualClock::new(now), SeededEntropy::new(7), Calls::default());
        let local =
            Local::open(folder.path(), options, clock.clone(), entropy.clone()).expect("an embedded store");
        let bucket = FileStore::open(&folder.path().join("dead-letters")).expect("a folder of files");
        let wrap = Wrap { calls: &calls, faults };
        let queue = |name| wrap.queue(&local, name);
        let state = || wrap.state(&local);
        let registry = || Registry::new(state(), clock.clone(), topic_max_age);
        let links = LinkHealth::new(state(), clock.clone(), HealthSettings::default());
        let endpoint = ScriptedEndpoint::new(clock.clone());
        let letters = |source: QueueName| {
            DeadLetters::new(DeadLetterPorts {
                queue: queue(source),
                source,
                deliveries: queue(QueueName::Deliveries),
                state: state(),
                bucket: wrap.bucket(&bucket),
                registry: registry(),
                clock: clock.clone(),
                entropy: entropy.clone(),
            })
        };
        let (drain, chance) = (DrainMeter::default(), Chance::new(7));
        let ports = DeliverPorts {
            queue: queue(QueueName::Deliveries),
            state: state(),
            registry: registry(),
            links: links.clone(),
            webhook: endpoint.clone(),
            clock: clock.clone(),
            entropy: chance.clone(),
            drain: drain.clone(),
        };
        let deliver = Deliver::new(ports, settings);
        let worker = Worker {
            links: links.clone(),
            deliver,
            local: local.clone(),
            clock: clock.clone(),
            calls: calls.clone(),
        };
        Self {
            worker,
            faults: faults.clone(),
            dead_letters: letters(QueueName::DeadLetters),
            redrive: letters(QueueName::Redrive),
            wake: Wake::new(WakePorts {
                deliveries: queue(QueueName::Deliveries),
                state: state(),
                dead_letters: wrap.bucket(&bucket),
                registry: registry(),
                pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
                links: links.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
            }),
            clock,
            endpoint,
            calls,
            local,
            bucket,
            links,
            drain,
            chance,
            created: Mutex::new(Created { topic: 1, subscription: 1 }),
            folder,
        }
    }

    /// Another worker of deliver, which sees links through a book of its own, and draws its own chance.
    pub fn another_worker(&self, seed: u64) -> Worker {
        let wrap = Wrap { calls: &self.calls, faults: &self.faults };
        let state = || wrap.state(&self.local);
        let links = LinkHealth::new(state(), self.clock.clone(), HealthSettings::default());
        let ports = DeliverPorts {
            queue: wrap.queue(&self.local, QueueName::Deliveries),
            state: state(),
            registry: Registry::new(state(), self.clock.clone(), Duration::ZERO),
            links: links.clone(),
            webhook: self.endpoint.clone(),
            clock: self.clock.clone(),
            entropy: Chance::new(seed),
            drain: self.drain.clone(),
        };
        let deliver = Deliver::new(ports, DeliverSettings::default());
        let (local, clock, calls) = (self.local.clone(), self.clock.clone(), self.calls.clone());
        Worker { links, deliver, local, clock, calls }
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
