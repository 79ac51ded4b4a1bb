//! One dead subscriber with a hundred thousand events that wait for their next attempt: first
//! delayed in the queue, then parked. They are no pressure, and the neighbour's producer never
//! notices them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use posthaste_core::api::{SecretText, TopicSettings};
use posthaste_core::model::{SQS_DELAY_MAX, SubscriptionName, TopicName};
use posthaste_core::pressure::{PressureLevel, PressureState, Resource};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_local::{LocalQueue, StateStore};
use posthaste_monitor::{Monitor, MonitorPorts, MonitorSettings};
use posthaste_ports::{NoMachine, OutgoingMessage, QueueName, QueueSender};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, DrainMeter, PressureReader, TopicRegistry};
use posthaste_simulation::{Answer, World, event};
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use serde_json::json;
use tokio::task::JoinSet;

/// The waiting events, each a message of its own.
const WAITING: u64 = 100_000;

/// Of these, so many have failed before our eyes and are tried again. The others, whose attempts
/// would take the test minutes, wait in the queue from the beginning for as long as it lets them.
const TRIED: u64 = 2_000;

/// Most messages of one call to a queue.
const BATCH: usize = 10;

const POLL: Duration = Duration::from_secs(2);
const HEALTHY_KEY: &str = "healthy-key";

type Neighbour = Publish<TestPorts<LocalQueue<ManualClock>, StateStore>>;
type Watch = Monitor<TestPorts<LocalQueue<ManualClock>, StateStore>, NoMachine, DrainMeter>;

/// The world, with the monitor and the publish function beside it.
struct Scene {
    world: World,
    monitor: Watch,
    publish: Arc<Neighbour>,
    published: usize,
}

impl Scene {
    async fn new() -> Self {
        let world = World::new();
        // The first wait is one in the queue, the second is too long for it.
        let policy = json!({ "schedule": ["PT10M", "PT2H"], "maxDeliveryAttempts": 10 });
        world.subscribe(json!({ "retryPolicy": policy })).await;
        healthy_topic(&world).await;
        // The endpoint refuses each of the events for itself: after a 503 its deliveries would
        // pause, and few of them be tried.
        world.endpoint.answer([Answer::By(
            |body, _| if body.contains("healthy") { 204 } else { 422 },
        )]);
        let monitor = monitor(&world);
        let publish = Arc::new(publish(&world));
        Self {
            world,
            monitor,
            publish,
            published: 0,
        }
    }

    /// Two seconds later: a poll, before anything of what has become due is worked on, and a
    /// publish of the neighbour's.
    async fn step(&mut self) -> PressureState {
        self.world.clock.advance(POLL);
        let state = self.monitor.poll_once().await.unwrap();
        assert_eq!(state.effective_level(), PressureLevel::Normal, "{state:?}");
        assert_eq!(state.tarpit_wait(), Duration::ZERO);
        self.publish_healthy().await;
        self.deliver_all().await;
        state
    }

    /// Nothing moves the clock meanwhile, so a publish that is delayed would never end.
    async fn publish_healthy(&mut self) {
        self.published += 1;
        let body = event(&format!("healthy-{}", self.published));
        let request = Request::post("/topics/neighbour/events")
            .header("aeg-sas-key", HEALTHY_KEY)
            .header("content-type", "application/cloudevents+json")
            .body(Body::from(body))
            .unwrap();
        let publish = self.publish.publish("neighbour", request);
        let published = tokio::time::timeout(Duration::from_mins(1), publish)
            .await
            .expect("no delay");
        assert_eq!(published.unwrap().pressure, None);
    }

    async fn deliver_all(&self) {
        while self.world.visible(QueueName::Deliveries).await > 0 {
            let one = || Box::pin(self.world.deliver());
            let four = async || tokio::join!(one(), one(), one(), one());
            tokio::join!(four(), four(), four(), four());
        }
        // The requests would take more memory than all events that wait.
        self.world.endpoint.take();
        self.world.calls.take();
    }

    async fn waiting(&self) -> u64 {
        self.world.delayed(QueueName::Deliveries).await
    }
}

/// Puts so many deliveries into the queue, many calls at once, which share their commits.
async fn put_dead(world: &World, count: u64, delay: Duration) {
    let lasts = Duration::from_hours(24);
    let message = |n: u64| OutgoingMessage {
        delay,
        ..world.message(&[event(&format!("dead-{n}"))], lasts)
    };
    let messages: Vec<OutgoingMessage> = (0..count).map(message).collect();
    let mut calls = JoinSet::new();
    for batch in messages.chunks(BATCH) {
        let queue = world.local.queue(QueueName::Deliveries);
        let batch = batch.to_vec();
        calls.spawn(async move {
            queue
                .send_batch(batch)
                .await
                .unwrap()
                .iter()
                .all(Result::is_ok)
        });
    }
    assert!(calls.join_all().await.into_iter().all(|are_sent| are_sent));
}

/// The topic of the neighbour, whose endpoint is well.
async fn healthy_topic(world: &World) {
    let mut record = TopicRecord {
        name: TopicName::parse("neighbour").unwrap(),
        ..world.record().await
    };
    let endpoint = json!({ "endpoint": { "url": "https://healthy.example.com/" } });
    let subscription = serde_json::from_value(endpoint).unwrap();
    record.settings = TopicSettings::default();
    record
        .settings
        .subscriptions
        .insert(SubscriptionName::parse("well").unwrap(), subscription);
    record.key1 = SecretText::new(HEALTHY_KEY);
    let text = String::from_utf8(record.render().to_vec()).unwrap();
    world
        .write_state(&layout::topic_record_key(&record.name), text)
        .await;
}

fn monitor(world: &World) -> Watch {
    let ports = MonitorPorts {
        deliveries: world.local.queue(QueueName::Deliveries),
        slow_lane: None,
        dead_letters: world.local.queue(QueueName::DeadLetters),
        state: world.local.state_store(),
        probe: NoMachine,
        clock: world.clock.clone(),
        drain: world.drain.clone(),
        registry: TopicRegistry::new(
            world.local.state_store(),
            world.clock.clone(),
            Duration::ZERO,
        ),
        entropy: SeededEntropy::new(5),
    };
    Monitor::new(ports, MonitorSettings::default()).unwrap()
}

fn publish(world: &World) -> Neighbour {
    let state = world.local.state_store();
    let clock = world.clock.clone();
    Publish {
        deliveries: world.local.queue(QueueName::Deliveries),
        slow_lane: None,
        records: Some(world.local.queue(QueueName::Records)),
        registry: TopicRegistry::new(state.clone(), clock.clone(), Duration::ZERO),
        payloads: state.clone(),
        pressure: PressureReader::new(state, clock.clone(), Duration::ZERO),
        clock,
        entropy: SeededEntropy::new(3),
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(16_000_000),
        advice: TarpitTurns::default(),
        wrong_keys: posthaste_services::WrongKeys::default(),
        traces: posthaste_services::EventTraces::default(),
        settings: PublishSettings::default(),
    }
}

fn reading(state: &PressureState, resource: Resource) -> u64 {
    state.resource(resource).unwrap().reading
}

/// A hundred thousand retries, in the queue and parked, leave the level Normal.
#[tokio::test]
async fn hundred_thousand_waiting_retries_leave_the_level_normal() {
    let mut scene = Scene::new().await;
    put_dead(&scene.world, WAITING - TRIED, SQS_DELAY_MAX).await;
    put_dead(&scene.world, TRIED, Duration::ZERO).await;
    // The first attempts fail, and everything waits in the queue.
    scene.deliver_all().await;
    assert_eq!(scene.waiting().await, WAITING);
    // Ten minutes, with jitter eleven: first they wait, then they come due within a minute.
    let mut quiet = 0;
    let mut due = 0;
    while scene.waiting().await > WAITING - TRIED {
        due += reading(&scene.step().await, Resource::SubmissionQueue);
        quiet += usize::from(due == 0);
    }
    // An event that waits never counted. One that became due counted once, like every event to
    // deliver now.
    assert!(quiet >= 299, "{quiet}");
    assert_eq!(due, TRIED);
    // Now they are parked, and wake looks at them once a minute.
    assert!(!scene.world.parked().await.is_empty());
    for step in 0..90 {
        if step % 30 == 0 {
            scene.world.wake().await;
        }
        assert_eq!(reading(&scene.step().await, Resource::SubmissionQueue), 0);
    }
    assert_eq!(scene.waiting().await, WAITING - TRIED);
}
