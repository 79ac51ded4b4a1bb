use std::cell::RefCell;
use std::time::Duration;

use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_core::stored::layout;
use posthaste_ports::QueueName;
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::marks::{Key, Marks, Variant, WAKE};
use posthaste_tests_models::step::Call;
use posthaste_tests_models::trace::{Made, Run, follow};
use serde_json::json;

use crate::kit::{Kit, START, dead_letter, deadline, number};
use crate::report;

/// Two recoveries one after the other, or one whose mark ends.
const TIMES: [[u8; 3]; 2] = [[0, 2, 0], [0, 1, 1]];

#[test]
fn letters_of_an_outage_are_recovered_once_in_every_order() {
    for times in TIMES {
        let model = Marks {
            times,
            ..Marks::of_the_code()
        };
        report("marks", holds("marks", model));
    }
}

#[test]
fn letters_are_recovered_whatever_fails_or_dies() {
    for (faults, deaths) in [(1, 0), (0, 1)] {
        let model = Marks {
            times: [0, 1, 0],
            faults,
            deaths,
            ..Marks::of_the_code()
        };
        report("marks, faults", holds("marks, faults", model));
    }
}

#[test]
fn variants_without_a_part_are_refuted() {
    let recovered = "every letter is recovered in the end";
    let once = "a letter is sent once, and once more for each fault";
    for (variant, property, times) in [
        (Variant::PutWithoutMatch, recovered, TIMES[0]),
        (Variant::DeletesAtOnce, recovered, TIMES[1]),
        (Variant::EndsWithRecovery, once, TIMES[0]),
    ] {
        let model = Marks {
            variant,
            times,
            ..Marks::of_the_code()
        };
        refutes("marks", model, property);
    }
}

/// deadletter writes a letter of an outage, and wake recovers it.
#[tokio::test]
async fn calls_of_deadletter_and_wake_are_steps_of_the_model() {
    let kit = Kit::new(&json!({ "recovery": { "enabled": true } }));
    kit.clock.advance(Duration::from_hours(1));
    let dead = dead_letter(kit.clock_now(), "x", Some(START));
    kit.send(QueueName::DeadLetters, render_dead_letter(&dead))
        .await;
    let writer = kit.dead_letters(0);
    let until = deadline(&kit, Duration::from_mins(1));
    kit.invoke((QueueName::DeadLetters, 0), 1, |batch| {
        writer.handle(batch, until)
    })
    .await;
    let wake = kit.wake(WAKE);
    for minutes in [0, 6, 1] {
        kit.clock.advance(Duration::from_mins(minutes));
        kit.in_time(wake.run()).await.unwrap();
    }
    let ids = RefCell::default();
    let store_key = |key: &str| {
        let key = key.trim_end_matches(".json");
        let is_own = |prefix: &str| key.starts_with(prefix) && key.len() > prefix.len();
        let id = key.strip_prefix(layout::REPLAYS);
        if is_own(layout::RECOVERY) {
            Some(Key::Mark)
        } else if key.starts_with("ORDERS/") {
            Some(Key::Letter(0))
        } else {
            let id = id.filter(|id| !id.is_empty());
            id.map(|id| Key::Record(number(&ids, id)))
        }
    };
    let queue_key = |queue| (queue == QueueName::Deliveries).then_some(Key::Deliveries);
    let run = Run::of(&kit.notes, store_key, queue_key, None);
    let run = run.kept(|kept: &[Made<Key>], made| {
        let last = kept.last().map(|last| last.call);
        let is_of_wake = made.actor == WAKE;
        match made.call {
            // The replay loads its record again, and reads the letters that it sends.
            Call::Get(Key::Record(_)) => last == Some(Call::Get(Key::Mark)),
            Call::Get(Key::Letter(_)) => false,
            // That the recovery was told of is no part of the model.
            Call::PutIfMatch(Key::Mark) if is_of_wake => {
                !matches!(last, Some(Call::PutIfAbsent(Key::Record(_))))
            }
            // The progress and the end are one write in the model.
            Call::PutIfMatch(Key::Record(_)) => last == Some(Call::Send(Key::Deliveries)),
            Call::List(Key::Letter(_)) => {
                is_of_wake && matches!(last, Some(Call::PutIfAbsent(Key::Record(_))))
            }
            _ => true,
        }
    });
    let run = run.renamed(|made| match made.call {
        Call::List(Key::Letter(_)) => Call::List(Key::Letters),
        call => call,
    });
    let model = Marks {
        times: [1, 1, 0],
        ..Marks::of_the_code()
    };
    let ends = follow("marks", &model, &run, (1, 5));
    assert!(
        ends.iter()
            .any(|end| end.letters[0].iter().all(|it| it.sent == 1))
    );
    assert_eq!(run.calls().len(), 14, "{run:#?}");
}
