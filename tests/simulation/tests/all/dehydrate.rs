//! Dehydration from end to end: at High new payloads go to the object store and messages only refer
//! to them, until the level is Normal again.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use posthaste_core::model::{EventPayload, PAYLOAD_KEPT};
use posthaste_core::pressure::{
    PressureLevel, PressureProfile, PressureSettings, PressureState, Resource, ThresholdSettings,
};
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::layout::PAYLOADS;
use posthaste_local::{LocalQueue, StateStore};
use posthaste_monitor::{Monitor, MonitorPorts, MonitorSettings};
use posthaste_ports::{Clock, NoMachine, ObjectStore, QueueName, QueueReceiver, ReceivedMessage};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, DrainMeter, PressureReader, TopicRegistry};
use posthaste_simulation::{Answer, World};
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use serde_json::json;

type Queue = LocalQueue<ManualClock>;

/// Bytes of the data of every event: small, but longer than a reference.
const DATA_BYTES: usize = 2000;

/// The settings of Exchange, with a submission queue that is Medium with three messages and High
/// with four.
fn settings() -> PressureSettings {
    let mut settings = PressureSettings {
        profile: PressureProfile::Exchange2013,
        ..PressureSettings::default()
    };
    let set = ThresholdSettings {
        normal: Some(1),
        medium: Some(3),
        high: Some(4),
    };
    settings.thresholds.insert(Resource::SubmissionQueue, set);
    settings
}

/// The functions, with publish and the monitor beside those of every world.
struct Host {
    world: World,
    publish: Arc<Publish<TestPorts<Queue, StateStore>>>,
    monitor: Monitor<TestPorts<Queue, StateStore>, NoMachine, DrainMeter>,
}

impl Host {
    async fn new() -> Self {
        let world = World::new();
        world
            .subscribe(json!({ "retryPolicy": { "schedule": ["PT10S"] } }))
            .await;
        let queue = |name| world.local.queue(name);
        let state = || world.local.state_store();
        let clock = world.clock.clone();
        let registry = TopicRegistry::new(state(), clock.clone(), Duration::ZERO);
        let publish = Publish {
            deliveries: queue(QueueName::Deliveries),
            slow_lane: None,
            records: Some(queue(QueueName::Records)),
            registry: registry.clone(),
            payloads: state(),
            pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
            clock: clock.clone(),
            entropy: SeededEntropy::new(3),
            activity: ActivityNotes::default(),
            bodies: BodyBudget::new(1_000_000),
            advice: TarpitTurns::default(),
            wrong_keys: posthaste_services::WrongKeys::default(),
            traces: posthaste_services::EventTraces::default(),
            settings: PublishSettings::default(),
        };
        let ports = MonitorPorts {
            deliveries: queue(QueueName::Deliveries),
            slow_lane: None,
            dead_letters: queue(QueueName::DeadLetters),
            state: state(),
            probe: NoMachine,
            clock,
            drain: world.drain.clone(),
            registry,
            entropy: SeededEntropy::new(5),
        };
        let monitor = Monitor::new(
            ports,
            MonitorSettings {
                slow_places: 0,
                pressure: settings(),
                notices_topic: None,
            },
        )
        .unwrap();
        Self {
            publish: Arc::new(publish),
            monitor,
            world,
        }
    }

    /// Publishes one event and waits as long as the tarpit wants.
    async fn publish(&self, id: &str) {
        let request = Request::post("/topics/orders/events")
            .header("aeg-sas-key", "k1")
            .header("content-type", "application/cloudevents+json");
        let publish = Arc::clone(&self.publish);
        let request = request.body(Body::from(event(id))).unwrap();
        let published =
            tokio::spawn(async move { publish.publish("orders", request).await.map(drop) });
        while !published.is_finished() {
            if self.world.clock.sleepers() > 0 {
                self.world.clock.advance(Duration::from_secs(1));
            }
            tokio::task::yield_now().await;
        }
        published.await.unwrap().unwrap();
    }

    async fn poll(&mut self) -> PressureState {
        self.monitor.poll_once().await.unwrap()
    }

    /// The keys of the payloads that are stored.
    async fn payloads(&self) -> Vec<String> {
        let page = self
            .world
            .local
            .state_store()
            .list(PAYLOADS, None, 1000)
            .await
            .unwrap();
        page.objects.into_iter().map(|object| object.key).collect()
    }

    /// The messages that wait, which are left where they are.
    async fn waiting(&self) -> Vec<ReceivedMessage> {
        let messages = self.world.receive(QueueName::Deliveries).await;
        for message in &messages {
            let queue = self.world.local.queue(QueueName::Deliveries);
            queue
                .change_visibility(&message.receipt, Duration::ZERO)
                .await
                .unwrap();
        }
        messages
    }

    /// The bodies that the endpoint got.
    fn received(&self) -> Vec<String> {
        let requests = self.world.endpoint.take();
        requests.into_iter().map(|request| request.body).collect()
    }
}

fn event(id: &str) -> String {
    let data = "x".repeat(DATA_BYTES);
    format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"/shop","type":"order.paid","data":"{data}"}}"#
    )
}

/// The stored payload that a message refers to; `None` where the event is in the message.
fn reference(message: &ReceivedMessage) -> Option<String> {
    let delivery = parse_delivery(&message.body).unwrap();
    match &delivery.events[0].payload {
        EventPayload::Stored { key, bytes, .. } => {
            assert_eq!(*bytes, event("high").len());
            Some(key.clone())
        }
        EventPayload::Inline(_) => None,
    }
}

/// A host at High, with three events that were published before and lie in their messages, and one,
/// `high`, after.
async fn at_high() -> Host {
    let mut host = Host::new().await;
    for id in ["1", "2", "3", "4"] {
        host.publish(id).await;
    }
    let state = host.poll().await;
    assert_eq!(
        (
            state.effective_level(),
            state.asks_to_dehydrate(),
            host.payloads().await.len()
        ),
        (PressureLevel::High, true, 0)
    );
    host.publish("high").await;
    host
}

/// A message at High carries a reference, and its payload reaches the endpoint.
#[tokio::test]
async fn message_at_high_carries_a_reference_and_its_payload_arrives() {
    let host = Box::pin(at_high()).await;
    let waiting = host.waiting().await;
    let references: Vec<_> = waiting.iter().filter_map(reference).collect();
    assert_eq!((waiting.len(), &references), (5, &host.payloads().await));
    let bytes = |referred| {
        let some = waiting
            .iter()
            .filter(move |message| reference(message).is_some() == referred);
        some.map(|message| message.body.len()).max().unwrap()
    };
    // The gain for memory: the message that waits has no payload in it.
    assert!(
        bytes(true) < DATA_BYTES / 2 && bytes(false) > DATA_BYTES,
        "{} {}",
        bytes(true),
        bytes(false)
    );
    host.world.endpoint.answer([Answer::Status(200)]);
    host.world.deliver_all().await;
    let received = host.received();
    assert_eq!(received.len(), 5);
    assert!(received.contains(&event("high")));
}

#[tokio::test]
async fn retry_and_dead_letter_refer_to_the_same_payload() {
    let host = Box::pin(at_high()).await;
    host.world.endpoint.answer([Answer::Status(503)]);
    host.world.deliver_all().await;
    host.world.clock.advance(Duration::from_mins(2));
    assert_eq!(host.received().len(), 5);
    let again: Vec<_> = host.waiting().await.iter().filter_map(reference).collect();
    assert_eq!(again, host.payloads().await);
    host.world.endpoint.answer([Answer::Status(400)]);
    // Five failures of one invocation began a glitch: the retry of one event asks whether it is
    // over, and the others come after it.
    host.world.pass(Duration::from_mins(2)).await;
    let mut received = host.received();
    received.sort();
    assert_eq!(received, ["1", "2", "3", "4", "high"].map(event));
    host.world.clock.advance(Duration::from_mins(5));
    host.world.bury().await;
    let buried: Vec<_> = host
        .world
        .buried()
        .await
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect();
    let text = String::from_utf8(buried.concat()).unwrap();
    assert!(text.contains(r#""id":"high""#), "{text}");
}

/// Dehydration lasts until Normal, and then events lie in their messages again.
#[tokio::test]
async fn dehydration_lasts_until_normal() {
    let mut host = Box::pin(at_high()).await;
    host.world.endpoint.answer([Answer::Status(200)]);
    let taken = host.world.receive(QueueName::Deliveries).await;
    assert_eq!(taken.len(), 5);
    for id in ["medium-1", "medium-2"] {
        host.publish(id).await;
    }
    let state = host.poll().await;
    assert_eq!(
        (state.effective_level(), state.asks_to_dehydrate()),
        (PressureLevel::Medium, true)
    );
    host.publish("medium-3").await;
    assert_eq!(host.payloads().await.len(), 4);
    host.world.deliver_all().await;
    host.received();
    let state = host.poll().await;
    assert_eq!(
        (state.effective_level(), state.asks_to_dehydrate()),
        (PressureLevel::Normal, false)
    );
    host.publish("normal").await;
    let waiting = host.waiting().await;
    assert_eq!(waiting.iter().map(reference).collect::<Vec<_>>(), [None]);
    host.world.deliver_all().await;
    assert_eq!(
        (host.received(), host.payloads().await.len()),
        (vec![event("normal")], 4)
    );
}

/// A stored payload is deleted when no message can refer to it any more.
#[tokio::test]
async fn stored_payload_is_deleted_when_unreferenced() {
    let host = Box::pin(at_high()).await;
    host.world.endpoint.answer([Answer::Status(200)]);
    host.world.deliver_all().await;
    // The day it was stored on must be over, and wake looks once an hour.
    let to_the_hour = 60 - host.world.clock.now().minute_rounded_down() % 60;
    host.world.clock.advance(Duration::from_mins(to_the_hour));
    host.world.wake().await;
    assert_eq!(host.payloads().await.len(), 1);
    host.world
        .clock
        .advance(PAYLOAD_KEPT + Duration::from_hours(24));
    host.world.wake().await;
    assert_eq!(host.payloads().await, Vec::<String>::new());
}

/// A replay, which would bring payloads into messages, waits while they are dehydrated.
#[tokio::test]
async fn replay_waits_while_payloads_are_dehydrated() {
    let mut host = Box::pin(at_high()).await;
    host.world.endpoint.answer([Answer::Status(400)]);
    host.world.deliver_all().await;
    host.world.clock.advance(Duration::from_mins(5));
    host.world.bury().await;
    let id = host.world.replay(json!({})).await;
    for n in 0..4 {
        host.publish(&format!("more-{n}")).await;
    }
    assert_eq!(host.poll().await.effective_level(), PressureLevel::High);
    host.world.wake().await;
    let progress = host.world.replayed(&id).await.progress;
    assert_eq!(
        (
            progress.queued,
            host.world.visible(QueueName::Deliveries).await
        ),
        (0, 4)
    );
}
