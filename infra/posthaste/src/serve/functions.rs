//! The wiring: every function over its embedded adapters, its poller or schedule, and the one HTTP router.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use posthaste_core::address::AddressPolicy;
use posthaste_core::secret::Secret;
use posthaste_deadletter::{DeadLetterPorts, DeadLetters};
use posthaste_deliver::{Deliver, DeliverPorts, DeliverSettings};
use posthaste_http::{ClientSettings, HyperWebhookClient};
use posthaste_local::{FileStore, Local, LocalQueue, StateStore, SystemClock, SystemEntropy};
use posthaste_manage::Manage;
use posthaste_ports::{
    BatchResponse, DrainMeter, PRESSURE_MAX_AGE, PressureReader, QueueName, ReceivedMessage, Registry,
};
use posthaste_publish::{BodyBudget, Publish, PublishSettings};
use posthaste_wake::{Wake, WakePorts};
use tokio::task::JoinSet;

use super::poller::{Handler, PollSettings, poll};
use super::schedule::every;
use super::stage::Stage;
use super::{ServeError, ServeSettings, monitor};

/// The folder of dead letters in the data folder.
const DEAD_LETTERS_DIR: &str = "dead-letters";

/// How deliveries are polled. An attempt takes up to a minute, and is begun only if its time ends before the deadline.
const DELIVERIES: PollSettings = PollSettings {
    queue: QueueName::Deliveries,
    batch_max: 10,
    window: Duration::ZERO,
    timeout: Duration::from_mins(2),
    loops: 2,
};

/// How dead letters are polled: many at once, so that they are gathered into few objects.
const DEAD_LETTERS: PollSettings = PollSettings {
    queue: QueueName::DeadLetters,
    batch_max: 1000,
    window: Duration::from_secs(1),
    timeout: Duration::from_mins(1),
    loops: 1,
};

/// How what failed again and again is polled.
const REDRIVE: PollSettings = PollSettings {
    queue: QueueName::Redrive,
    batch_max: 10,
    window: Duration::ZERO,
    timeout: Duration::from_mins(1),
    loops: 1,
};

/// How often parked deliveries are looked at (DESIGN: once a minute).
const WAKE_PERIOD: Duration = Duration::from_mins(1);

/// The memory that the bodies of requests in progress may take together, in bytes.
const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

type Queue = LocalQueue<SystemClock>;
type Webhooks = HyperWebhookClient<SystemClock>;
type EmbeddedDeliver = Deliver<Queue, StateStore, Webhooks, SystemClock, SystemEntropy>;
type EmbeddedDeadLetters = DeadLetters<Queue, StateStore, FileStore, SystemClock, SystemEntropy>;
type EmbeddedWake = Wake<Queue, StateStore, SystemClock, SystemEntropy>;
type EmbeddedPublish = Publish<Queue, StateStore, SystemClock, SystemEntropy>;
type EmbeddedManage = Manage<StateStore, FileStore, SystemClock, SystemEntropy>;

/// Every function, wired.
pub(super) struct Functions {
    local: Local<SystemClock>,
    publish: Arc<EmbeddedPublish>,
    manage: Arc<EmbeddedManage>,
    deliver: Arc<EmbeddedDeliver>,
    dead_letters: Arc<EmbeddedDeadLetters>,
    redrive: Arc<EmbeddedDeadLetters>,
    wake: Arc<EmbeddedWake>,
    monitor: monitor::Embedded,
}

impl Functions {
    /// Wires the functions over an open data folder. Nothing runs yet.
    pub(super) fn wire(
        settings: &ServeSettings,
        local: &Local<SystemClock>,
        admin_key: &Secret,
    ) -> Result<Self, ServeError> {
        let bucket =
            FileStore::open(&settings.data_dir.join(DEAD_LETTERS_DIR)).map_err(ServeError::DeadLetters)?;
        // Asking the embedded store is cheap, and every change is visible at once.
        let registry = Registry::new(local.state(), SystemClock, Duration::ZERO);
        let pressure = PressureReader::new(local.state(), SystemClock, PRESSURE_MAX_AGE);
        let drain = DrainMeter::default();
        let addresses =
            AddressPolicy { allowed: settings.allow_endpoints.clone(), ..AddressPolicy::default() };
        let webhook = webhooks(settings, addresses.clone())?;
        let deliver = DeliverPorts {
            queue: local.queue(QueueName::Deliveries),
            state: local.state(),
            registry: registry.clone(),
            webhook,
            clock: SystemClock,
            entropy: SystemEntropy,
            drain: drain.clone(),
        };
        let dead_letters = |source| {
            DeadLetters::new(DeadLetterPorts {
                queue: local.queue(source),
                source,
                state: local.state(),
                bucket: bucket.clone(),
                registry: registry.clone(),
                clock: SystemClock,
                entropy: SystemEntropy,
            })
        };
        let wake = WakePorts {
            deliveries: local.queue(QueueName::Deliveries),
            state: local.state(),
            pressure: pressure.clone(),
            clock: SystemClock,
            entropy: SystemEntropy,
        };
        let publish = Publish {
            deliveries: local.queue(QueueName::Deliveries),
            registry: registry.clone(),
            payloads: local.state(),
            pressure,
            clock: SystemClock,
            entropy: SystemEntropy,
            bodies: BodyBudget::new(BODIES_BYTES_MAX),
            settings: PublishSettings::default(),
        };
        let manage = Manage {
            state: local.state(),
            dead_letters: bucket.clone(),
            clock: SystemClock,
            entropy: SystemEntropy,
            admin_key: admin_key.clone(),
            address_policy: addresses,
        };
        Ok(Self {
            local: local.clone(),
            publish: Arc::new(publish),
            manage: Arc::new(manage),
            deliver: Arc::new(Deliver::new(deliver, DeliverSettings::default())),
            dead_letters: Arc::new(dead_letters(QueueName::DeadLetters)),
            redrive: Arc::new(dead_letters(QueueName::Redrive)),
            wake: Arc::new(Wake::new(wake)),
            monitor: monitor::wire(settings, local, drain)?,
        })
    }

    /// What producers and operators reach.
    pub(super) fn router(&self) -> Router {
        let publish = posthaste_publish::router(Arc::clone(&self.publish));
        publish.merge(posthaste_manage::router(Arc::clone(&self.manage)))
    }

    /// Starts the pollers and the schedules.
    pub(super) fn spawn_work(&self, tasks: &mut JoinSet<()>, stage: &Stage) {
        self.spawn_poller(tasks, stage, DELIVERIES, &self.deliver);
        self.spawn_poller(tasks, stage, DEAD_LETTERS, &self.dead_letters);
        self.spawn_poller(tasks, stage, REDRIVE, &self.redrive);
        let wake = Arc::clone(&self.wake);
        tasks.spawn(every("wake", WAKE_PERIOD, SystemClock, stage.clone(), move || {
            let wake = Arc::clone(&wake);
            async move { run_wake(&wake).await }
        }));
        self.monitor.spawn(tasks, stage);
    }

    fn spawn_poller<H: Handler>(
        &self,
        tasks: &mut JoinSet<()>,
        stage: &Stage,
        settings: PollSettings,
        handler: &Arc<H>,
    ) {
        let queue = self.local.queue(settings.queue);
        tasks.spawn(poll(queue, Arc::clone(handler), SystemClock, settings, stage.clone()));
    }
}

fn webhooks(settings: &ServeSettings, addresses: AddressPolicy) -> Result<Webhooks, ServeError> {
    let client =
        ClientSettings { addresses, extra_root_file: settings.extra_ca.clone(), ..ClientSettings::default() };
    Ok(HyperWebhookClient::new(client, SystemClock)?)
}

async fn run_wake(wake: &EmbeddedWake) {
    if let Err(error) = wake.run().await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "parked deliveries not released, the next run goes on");
    }
}

impl Handler for EmbeddedDeliver {
    async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        Deliver::handle(self, batch, deadline).await
    }
}

impl Handler for EmbeddedDeadLetters {
    /// Writing an object is short, and what is not written goes back to the queue by itself: no deadline.
    async fn handle(&self, batch: Vec<ReceivedMessage>, _deadline: Duration) -> BatchResponse {
        DeadLetters::handle(self, batch).await
    }
}
