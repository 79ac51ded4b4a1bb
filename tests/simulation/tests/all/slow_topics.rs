//! A subscription whose endpoint answers well but slowly, seen by the monitor: its messages wait for
//! places of its own, so they slow its own topic, and nobody else.

use std::time::Duration;

use posthaste_core::model::{ProducerTier, SubscriptionName};
use posthaste_core::pressure::{
    PressureLevel, PressureProfile, PressureSettings, PressureState, Resource, admit_producer,
    admit_to,
};
use posthaste_local::{LocalQueue, StateStore};
use posthaste_monitor::{Monitor, MonitorPorts, MonitorSettings};
use posthaste_ports::{NoMachine, QueueName};
use posthaste_services::{DrainMeter, TopicRegistry};
use posthaste_simulation::{Answer, World, event};
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use serde_json::json;

const DAY: Duration = Duration::from_hours(24);
const POLL: Duration = Duration::from_secs(2);
const ANSWER_TIME: Duration = Duration::from_secs(29);
const INVOCATION: Duration = Duration::from_mins(2);

type Watch = Monitor<TestPorts<LocalQueue<ManualClock>, StateStore>, NoMachine, DrainMeter>;

fn monitor(world: &World, profile: PressureProfile) -> Watch {
    let queue = |name| world.local.queue(name);
    let state = world.local.state_store();
    let ports = MonitorPorts {
        deliveries: queue(QueueName::Deliveries),
        slow_lane: None,
        dead_letters: queue(QueueName::DeadLetters),
        registry: TopicRegistry::new(state.clone(), world.clock.clone(), Duration::ZERO),
        state,
        probe: NoMachine,
        clock: world.clock.clone(),
        drain: world.drain.clone(),
        entropy: SeededEntropy::new(1),
    };
    let pressure = PressureSettings {
        profile,
        ..PressureSettings::default()
    };
    let settings = MonitorSettings {
        slow_places: 0,
        pressure,
        notices_topic: None,
    };
    Monitor::new(ports, settings).unwrap()
}

/// A world whose one subscription has a slow endpoint, and so many more that get nothing. In the
/// queue wait 200 messages, of which the first ten have a hundred requests each.
async fn flooded(more: usize) -> World {
    let world = World::new();
    world
        .subscribe(json!({ "endpoint": { "url": "https://slow.example.com/" } }))
        .await;
    let mut record = world.record().await;
    for index in 0..more {
        let quick = json!({ "endpoint": { "url": "https://quick.example.com/" } });
        let name = SubscriptionName::parse(&format!("s{index}")).unwrap();
        let settings = serde_json::from_value(quick).unwrap();
        record.settings.subscriptions.insert(name, settings);
    }
    world.write_record(record.render()).await;
    world.endpoint.answer([Answer::SlowAt("slow", ANSWER_TIME)]);
    let events: Vec<_> = (0..100).map(|number| event(&number.to_string())).collect();
    for _ in 0..10 {
        world.publish(&events, DAY).await;
    }
    for _ in 0..190 {
        world.publish(&events[..1], DAY).await;
    }
    world
}

/// Lets go on what can without time.
async fn settle(world: &World) {
    let mut seen = usize::MAX;
    while seen != world.endpoint.seen() {
        seen = world.endpoint.seen();
        world.rest().await;
    }
}

/// The state after so many polls while an invocation waits for the slow endpoint.
async fn polled(world: &World, profile: PressureProfile, polls: usize) -> PressureState {
    let mut monitor = monitor(world, profile);
    let script = async {
        let mut state = monitor.poll_once().await.unwrap();
        for _ in 0..polls {
            settle(world).await;
            world.clock.advance(POLL);
            state = monitor.poll_once().await.unwrap();
        }
        world.stop();
        world.clock.advance(ANSWER_TIME);
        state
    };
    let (_, state) = tokio::join!(world.deliver_within(INVOCATION), script);
    state
}

fn reading(state: &PressureState, resource: Resource) -> u64 {
    state.resource(resource).unwrap().reading
}

#[tokio::test]
async fn slow_endpoint_slows_its_own_topic_alone() {
    let world = flooded(0).await;
    let state = polled(&world, PressureProfile::Scaled, 32).await;
    assert_eq!(state.effective_level(), PressureLevel::Normal);
    assert_eq!(reading(&state, Resource::SubmissionQueue), 0);
    assert_eq!(reading(&state, Resource::DrainTime), 0);
    let topic = &state.topics[0];
    assert_eq!(
        (topic.topic.as_str(), topic.subscription.as_str()),
        ("orders", "billing")
    );
    assert_eq!(topic.due, 190);
    let standard = admit_to(Some(&state), &topic.topic, ProducerTier::Standard, state.at);
    assert_ne!(
        standard,
        admit_producer(Some(&state), ProducerTier::Standard, state.at)
    );
}

#[tokio::test]
async fn slow_endpoint_among_a_hundred_slows_no_other() {
    let world = flooded(99).await;
    let state = polled(&world, PressureProfile::Scaled, 32).await;
    assert_eq!(
        (state.effective_level(), state.topics),
        (PressureLevel::Normal, Vec::new())
    );
}

#[tokio::test]
async fn in_the_documents_profile_its_messages_slow_everybody() {
    let world = flooded(0).await;
    let state = polled(&world, PressureProfile::Exchange2013, 1).await;
    assert_eq!(reading(&state, Resource::SubmissionQueue), 190);
    assert_eq!(state.topics, []);
}
