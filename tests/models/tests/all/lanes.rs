use std::time::Duration;

use posthaste_core::lane::DeliveryLane;
use posthaste_core::stored::layout;
use posthaste_ports::QueueName;
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::lanes::{Key, Lanes, Queue, Variant, slow_lanes};
use posthaste_tests_models::step::Call;
use posthaste_tests_models::trace::{Made, Run, follow};
use serde_json::json;

use crate::kit::{Kit, START, deadline};
use crate::report;

#[test]
fn a_message_is_kept_through_both_lanes_in_every_order() {
    for (faults, deaths) in [(1, 0), (0, 1)] {
        let model = Lanes {
            faults,
            deaths,
            ..Lanes::of_the_code()
        };
        report("lanes", holds("lanes", model));
    }
}

#[test]
fn a_slow_lane_is_drained_in_every_order() {
    let model = Lanes {
        is_drained: true,
        ..Lanes::of_the_code()
    };
    report("lanes, drained", holds("lanes, drained", model));
}

#[test]
fn variants_without_a_part_are_refuted() {
    let kept = "a message is in a queue or has arrived";
    let agreed = "two late requests within a minute make a target slow";
    for (variant, property) in [
        (Variant::SettlesFirst, kept),
        (Variant::SettlesAnyway, kept),
        (Variant::PutWithoutMatch, agreed),
    ] {
        let model = Lanes {
            variant,
            faults: u8::from(property == kept),
            deaths: u8::from(property == kept),
            ticks: 0,
            ..Lanes::of_the_code()
        };
        refutes("lanes", model, property);
    }
}

/// The worker of the slow lane.
const SLOW: usize = 2;

/// An invocation of two messages is two workers of the model: both receive and look up, and then each
/// has its own message.
fn as_two_workers(run: &Run<Key>) -> Run<Key> {
    let mut calls = Vec::new();
    let mut settled = 0;
    for made in run.calls() {
        let by = |actor| Made { actor, ..*made };
        match made.call {
            _ if made.actor == SLOW => calls.push(*made),
            Call::Receive(_) | Call::Get(_) => calls.extend([by(0), by(1)]),
            call => {
                calls.push(by(settled));
                settled += usize::from(matches!(call, Call::Acknowledge(_)));
            }
        }
    }
    Run::from_calls(calls)
}

#[tokio::test]
async fn calls_of_workers_of_both_lanes_are_steps_of_the_model() {
    let kit = Kit::new(&json!({}));
    kit.state.write(layout::LANES, slow_lanes(START));
    kit.send_delivery("a").await;
    kit.send_delivery("b").await;
    let quick = kit.deliver(0);
    let slow = kit.deliver(SLOW);
    let until = deadline(&kit, Duration::from_mins(1));
    let handled = kit.invoke((QueueName::Deliveries, 0), 2, |batch| {
        quick.handle_in(DeliveryLane::Quick, batch, until)
    });
    kit.in_time(handled).await;
    for _ in 0..2 {
        let handled = kit.invoke((QueueName::SlowDeliveries, SLOW), 1, |batch| {
            slow.handle_in(DeliveryLane::Slow, batch, until)
        });
        kit.in_time(handled).await;
    }
    assert_eq!(kit.endpoint.take().len(), 2);
    let store_key = |key: &str| (key == layout::LANES).then_some(Key::Lanes);
    let queue_key = |queue| match queue {
        QueueName::Deliveries => Some(Key::Queue(Queue::Quick)),
        QueueName::SlowDeliveries => Some(Key::Queue(Queue::Slow)),
        _ => None,
    };
    let run = Run::of(&kit.notes, store_key, queue_key, Some(Key::Endpoint));
    // The second message of the slow lane is looked up by what the first one read.
    let run = as_two_workers(&run);
    let model = Lanes {
        is_slow_first: true,
        ..Lanes::of_the_code()
    };
    let ends = follow("lanes", &model, &run, (1, 4));
    assert!(
        ends.iter()
            .any(|end| end.copies.is_empty() && end.arrived == [1, 1])
    );
    assert_eq!(run.calls().len(), 15, "{run:#?}");
}
