use std::cell::RefCell;
use std::time::Duration;

use posthaste_core::model::LetterPlace;
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_core::stored::layout;
use posthaste_core::stored::resolved_message::render_resolved;
use posthaste_ports::QueueName;
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::letters::{Key, Letters, Object, Variant};
use posthaste_tests_models::trace::{Run, follow};
use serde_json::json;

use crate::kit::{Kit, dead_letter, deadline, number, write_letter};
use crate::report;

#[test]
fn an_event_keeps_one_letter_in_every_order() {
    for (deliveries, may_arrive) in [(2, true), (3, false)] {
        let model = Letters::of_the_code(deliveries, may_arrive);
        report("letters", holds("letters", model));
    }
}

#[test]
fn variants_without_a_part_are_refuted() {
    let one = "at rest it has one letter, and one more for each fault";
    let kept = "an event that did not arrive has a letter";
    for (variant, property, faults) in [
        (Variant::PutWithoutMatch, one, 0),
        (Variant::NoChain, one, 0),
        (Variant::ResolvesFirst, kept, 1),
    ] {
        let model = Letters {
            variant,
            faults,
            deaths: faults,
            ..Letters::of_the_code(2, false)
        };
        refutes("letters", model, property);
    }
}

/// Two deliveries of one letter are given up, and a third one arrives.
#[tokio::test]
async fn calls_of_deadletter_are_steps_of_the_model() {
    let kit = Kit::new(&json!({}));
    let first = LetterPlace {
        object: write_letter(&kit, "first", None),
        index: 0,
    };
    for id in ["a", "b"] {
        let mut dead = dead_letter(kit.clock_now(), id, None);
        dead.delivery.events[0].marks.letter = Some(first.clone());
        kit.send(QueueName::DeadLetters, render_dead_letter(&dead))
            .await;
    }
    kit.send(QueueName::DeadLetters, render_resolved(vec![first.clone()]))
        .await;
    for actor in [0, 1, 0] {
        let until = deadline(&kit, Duration::from_mins(1));
        let worker = kit.dead_letters(actor);
        kit.invoke((QueueName::DeadLetters, actor), 1, |batch| {
            worker.handle(batch, until)
        })
        .await;
    }
    let keys = RefCell::new(vec![first.object]);
    let store_key = |key: &str| {
        let number = |key: &str| Object::try_from(number(&keys, key)).unwrap();
        match key.strip_prefix(layout::RESOLVED) {
            Some(of) => Some(Key::Resolved(number(of))),
            None => key.starts_with("ORDERS/").then(|| Key::Letter(number(key))),
        }
    };
    let queue_key = |queue| (queue == QueueName::DeadLetters).then_some(Key::DeadLetters);
    let run = Run::of(&kit.notes, store_key, queue_key, None);
    let model = Letters {
        faults: 0,
        deaths: 0,
        ..Letters::of_the_code(3, true)
    };
    let ends = follow("letters", &model, &run, (1, 5));
    assert!(
        ends.iter()
            .any(|end| end.arrived == 1 && Letters::unresolved(end) == 0)
    );
    assert_eq!(run.calls().len(), 23, "{run:#?}");
}
