use std::cell::RefCell;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use posthaste_core::stored::layout;
use posthaste_ports::QueueName;
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::replay::{Key, Record, Replay, Variant, WAKE};
use posthaste_tests_models::step::{Actor, Call};
use posthaste_tests_models::trace::{Made, Run, follow};
use serde_json::{Value, json};

use crate::kit::{Kit, ask, number, write_letter};
use crate::report;

#[test]
fn a_selection_has_one_replay_in_every_order() {
    for (letters, faults, deaths) in [(2, 0, 0), (1, 1, 0), (1, 0, 1)] {
        let model = Replay {
            letters,
            faults,
            deaths,
            // A request that is slow, and a call that fails, are too many states together.
            may_age: faults == 0,
            ..Replay::of_the_code()
        };
        report("replay", holds("replay", model));
    }
}

#[test]
fn a_replay_that_is_cancelled_ends_in_every_order() {
    let model = Replay {
        letters: 1,
        cancels: 1,
        may_age: false,
        faults: 0,
        deaths: 0,
        ..Replay::of_the_code()
    };
    report("replay, cancelled", holds("replay, cancelled", model));
}

#[test]
fn variants_without_a_part_are_refuted() {
    for (variant, property) in [
        (
            Variant::ClaimWithoutMatch,
            "a selection has one open replay",
        ),
        (
            Variant::RecordWithoutMatch,
            "a letter is sent once for each replay",
        ),
        (
            Variant::SavesBeforeSend,
            "a replay that is done has sent every letter",
        ),
        (Variant::NoMarkerFirst, "all comes to rest from everywhere"),
        (Variant::ForgetsEnded, "two requests at once are one replay"),
    ] {
        let model = Replay {
            variant,
            faults: 0,
            ..Replay::of_the_code()
        };
        refutes("replay", model, property);
    }
}

async fn replay(kit: &Kit, actor: Actor) -> Value {
    let path = "/topics/orders/subscriptions/billing/dead-letters/replay";
    let request = Request::post(path).body(Body::empty()).unwrap();
    let (status, replay) = ask(kit.manage(actor), request).await;
    assert_eq!(status, 202, "{replay}");
    replay["id"].clone()
}

/// Two requests for the same selection, and two runs of wake.
#[tokio::test]
async fn calls_of_manage_and_wake_are_steps_of_the_model() {
    let kit = Kit::new(&json!({}));
    write_letter(&kit, "x", None);
    kit.clock.advance(Duration::from_mins(1));
    let first = replay(&kit, 0).await;
    kit.clock.advance(Duration::from_secs(1));
    assert_eq!(replay(&kit, 1).await, first);
    for _ in 0..2 {
        kit.clock.advance(Duration::from_mins(1));
        kit.wake(WAKE).run().await.unwrap();
    }
    let ids = RefCell::default();
    let store_key = |key: &str| {
        let key = key.trim_end_matches(".json");
        let id = |prefix| key.strip_prefix(prefix).map(|id| number(&ids, id));
        match key {
            layout::REPLAYING => Some(Key::Markers),
            _ if key.starts_with(layout::CLAIMS) => Some(Key::Claim),
            _ => id(layout::REPLAYING)
                .map(Key::Marker)
                .or_else(|| id(layout::REPLAYS).map(Key::Record)),
        }
    };
    let queue_key = |queue| (queue == QueueName::Deliveries).then_some(Key::Deliveries);
    let run = Run::of(&kit.notes, store_key, queue_key, None);
    // The model runs where there is a marker; wake lists none when it rests, or finds none.
    let mut has_ended = false;
    let run = run.kept(|_, made: &Made<Key>| {
        has_ended |= made.call == Call::Delete(Key::Marker(0));
        !has_ended || made.call != Call::List(Key::Markers)
    });
    assert_eq!(run.calls().len(), 15, "{run:#?}");
    let model = Replay {
        letters: 1,
        ..Replay::of_the_code()
    };
    let ends = follow("replay", &model, &run, (1, 3));
    let is_done = |record: Option<&Record>| record == Some(&Record::Done);
    assert!(
        ends.iter()
            .any(|end| is_done(end.records[0].content()) && end.sent == [1])
    );
}
