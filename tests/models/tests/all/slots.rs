use std::time::Duration;

use posthaste_core::stored::layout;
use posthaste_ports::QueueName;
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::slots::{Key, Slots, Variant};
use posthaste_tests_models::trace::{Run, follow};
use serde_json::json;

use crate::kit::{Kit, deadline};
use crate::report;

const BOUND: &str = "no more requests are open than the bound";

#[test]
fn open_requests_stay_within_the_bound_in_every_order() {
    for (limit, ahead) in [(1, [1, 0]), (1, [0, 1])] {
        let model = Slots::of_the_code(limit, ahead);
        report("slots", holds("slots", model));
    }
}

#[test]
fn two_slots_of_two_workers_are_kept_in_every_order() {
    let model = Slots {
        most: [[2, 1, 1], [1, 1, 1]],
        ticks: 2,
        ..Slots::of_the_code(2, [0, 0])
    };
    report("slots, two", holds("slots, two", model));
}

#[test]
fn slots_of_a_dead_worker_are_taken_after_its_requests() {
    let model = Slots {
        faults: 0,
        deaths: 1,
        ..Slots::of_the_code(1, [0, 1])
    };
    report("slots, dead", holds("slots, dead", model));
}

#[test]
fn clocks_further_apart_than_the_margin_are_refuted() {
    refutes("slots", Slots::of_the_code(1, [0, 2]), BOUND);
}

#[test]
fn variants_without_a_part_are_refuted() {
    for variant in [Variant::PutWithoutMatch, Variant::GivesBackBeforeItShrinks] {
        let model = Slots {
            variant,
            most: [[2, 1, 1], [1, 1, 0]],
            ..Slots::of_the_code(1, [0, 0])
        };
        refutes("slots", model, BOUND);
    }
}

#[tokio::test]
async fn calls_of_two_workers_are_steps_of_the_model() {
    let url = "https://billing.example.com/";
    let kit = Kit::new(&json!({ "endpoint": { "url": url, "maxConcurrentRequests": 1 } }));
    for (worker, id) in ["a", "b"].into_iter().enumerate() {
        kit.send_delivery(id).await;
        let deliver = kit.deliver(worker);
        let until = deadline(&kit, Duration::from_mins(1));
        let handled = kit.invoke((QueueName::Deliveries, worker), 1, |batch| {
            deliver.handle(batch, until)
        });
        kit.in_time(handled).await;
    }
    assert_eq!(kit.endpoint.take().len(), 2);
    let store_key = |key: &str| key.starts_with(layout::SLOTS).then_some(Key::Slots);
    let run = Run::of(&kit.notes, store_key, |_| None, Some(Key::Endpoint));
    assert_eq!(run.calls().len(), 8, "{run:#?}");
    let model = Slots {
        most: [[1, 1, 1]; 2],
        faults: 0,
        ..Slots::of_the_code(1, [0, 0])
    };
    let ends = follow("slots", &model, &run, (2, 5));
    assert!(!ends.is_empty());
}
