//! Messages as publish makes them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use posthaste_core::model::TopicName;
use posthaste_ports::OutgoingMessage;
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, PressureReader, TopicRegistry};
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts, records};
use tokio::runtime;

use super::queue::{Order, Sqs};
use crate::event::event;
use crate::world::{START, TOPIC_MAX_AGE};

/// The messages of so many events to each of these topics in the store, by publish request.
pub(super) fn publish(
    state: &MemoryStore,
    topics: &[TopicName],
    events: usize,
    per_request: usize,
) -> Vec<Vec<OutgoingMessage>> {
    let clock = ManualClock::new(START);
    let queue = Sqs::new(clock.clone(), Order::Plain);
    let function = Arc::new(function(state, &clock, &queue));
    let runtime = runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let request = |first: usize| {
        let ids = first..(first + per_request).min(events);
        let events: Vec<_> = ids.map(|id| event(id, START)).collect();
        for topic in topics {
            let request = Request::post("/")
                .header("aeg-sas-key", records::TOPIC_KEY)
                .header("content-type", "application/cloudevents-batch+json")
                .body(Body::from(format!("[{}]", events.join(","))));
            let published = function.publish(topic.as_str(), request.expect("a request"));
            runtime.block_on(Box::pin(published)).expect("a publish");
        }
        queue.take_messages()
    };
    (0..events).step_by(per_request).map(request).collect()
}

fn function(
    state: &MemoryStore,
    clock: &ManualClock,
    queue: &Sqs,
) -> Publish<TestPorts<Sqs, MemoryStore>> {
    Publish {
        deliveries: queue.clone(),
        slow_lane: None,
        records: Some(Sqs::new(clock.clone(), Order::Plain)),
        registry: TopicRegistry::new(state.clone(), clock.clone(), TOPIC_MAX_AGE),
        payloads: state.clone(),
        pressure: PressureReader::new(state.clone(), clock.clone(), Duration::from_secs(5)),
        clock: clock.clone(),
        entropy: SeededEntropy::new(1),
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(6 << 20),
        advice: TarpitTurns::default(),
        wrong_keys: posthaste_services::WrongKeys::default(),
        traces: posthaste_services::EventTraces::default(),
        settings: PublishSettings::default(),
    }
}
