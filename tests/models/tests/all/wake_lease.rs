use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join;
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::QueueName;
use posthaste_testkit::records::{subscription_name, topic_name};
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::step::Call;
use posthaste_tests_models::trace::{Made, Run, follow};
use posthaste_tests_models::wake_lease::{Key, Variant, WakeLease};
use serde_json::json;

use crate::kit::{Kit, START};
use crate::report;

/// The clocks of two runs may be as far apart as `CLOCKS_APART_MAX`.
#[test]
fn single_run_works_at_a_time_in_every_order() {
    for (ahead, faults, ticks) in [([3, 0], 0, 10), ([0, 3], 1, 7)] {
        let model = WakeLease {
            faults,
            deaths: 1 - faults,
            ticks,
            ..WakeLease::of_the_code(ahead)
        };
        report("wake_lease", holds("wake_lease", model));
    }
}

#[test]
fn clocks_further_apart_than_a_lease_is_longer_are_refuted() {
    let model = WakeLease::of_the_code([0, 4]);
    refutes("wake_lease", model, "one run works at a time");
}

#[test]
fn variants_without_a_part_are_refuted() {
    let lacks = |variant| WakeLease {
        variant,
        ..WakeLease::of_the_code([1, 0])
    };
    for (variant, property) in [
        (Variant::PutWithoutMatch, "one run works at a time"),
        (Variant::NoMargin, "one run works at a time"),
        (
            Variant::DeletesBeforeSend,
            "nothing is deleted that was not sent",
        ),
    ] {
        let steps = refutes("wake_lease", lacks(variant), property);
        assert!(!steps.is_empty(), "{variant:?}");
    }
}

fn run_of(kit: &Kit) -> Run<Key> {
    let store_key = |key: &str| match key {
        layout::WAKE_LEASE => Some(Key::Lease),
        _ => key.starts_with(layout::PARKED).then_some(Key::Parked),
    };
    let queue_key = |queue| (queue == QueueName::Deliveries).then_some(Key::Deliveries);
    let run = Run::of(&kit.notes, store_key, queue_key, None);
    // A run lists what is parked more than once. One list is a step.
    run.kept(|kept: &[Made<Key>], made| {
        let last = kept.iter().rev().find(|last| last.actor == made.actor);
        let is_first = last.is_some_and(|last| {
            matches!(
                last.call,
                Call::PutIfAbsent(Key::Lease) | Call::PutIfMatch(Key::Lease)
            )
        });
        made.call != Call::List(Key::Parked) || is_first
    })
}

#[tokio::test]
async fn calls_of_runs_of_wake_are_steps_of_the_model() {
    let kit = Kit::new(&json!({}));
    let names = (topic_name("orders"), subscription_name("billing"));
    let key = layout::parked_key(START, &names.0, &names.1, "x");
    kit.state
        .write(&key, render_parked(&[Bytes::from_static(b"\"x\"")]));
    let first = kit.wake(0);
    let second = kit.wake(1);
    let (first, second) = join(first.run(), second.run()).await;
    assert!(!first.unwrap().was_busy);
    assert!(second.unwrap().was_busy);
    kit.clock.advance(Duration::from_mins(1));
    assert!(!kit.wake(1).run().await.unwrap().was_busy);
    let run = run_of(&kit);
    assert_eq!(run.calls().len(), 13, "{run:#?}");
    let model = WakeLease {
        faults: 0,
        deaths: 0,
        begins: [1, 2],
        ..WakeLease::of_the_code([0, 0])
    };
    let ends = follow("wake_lease", &model, &run, (1, 16));
    assert!(ends.iter().any(|end| !end.parked && end.sent == 1));
}
