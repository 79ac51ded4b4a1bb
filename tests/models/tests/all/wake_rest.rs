use std::time::Duration;

use posthaste_core::stored::{WAKE_LEASE, WAKE_SIGNAL, layout};
use posthaste_deliver::Deliver;
use posthaste_ports::QueueName;
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::step::{Actor, Call};
use posthaste_tests_models::trace::{Made, Run, follow};
use posthaste_tests_models::wake_rest::{Key, Variant, WAKE, WakeRest};
use posthaste_wake::Wake;
use serde_json::json;

use crate::kit::{Kit, Ports, deadline};
use crate::report;

const MINUTE: Duration = Duration::from_mins(1);

/// The minutes until a run begins after the end of a signal of the second minute, and the next one
/// rests.
const MINUTES: usize = 14;

/// A signal ends a minute after the work that needs no other (`ENDING`): clocks may be apart by it, or
/// work may take as long.
#[test]
fn work_is_found_whatever_rests_in_every_order() {
    for (behind, making) in [([0, 1], 0), ([0, 0], 1)] {
        let model = WakeRest::of_the_code(behind, making);
        report("wake_rest", holds("wake_rest", model));
    }
}

#[test]
fn work_whose_signal_is_lost_is_found_after_a_rest() {
    let model = WakeRest::losing_a_signal();
    report("wake_rest, lost", holds("wake_rest, lost", model));
}

#[test]
fn variants_without_a_part_are_refuted() {
    let announced = "announced work is found by the next runs";
    for variant in [Variant::WorkBeforeSignal, Variant::RestsWithoutLook] {
        let model = WakeRest {
            variant,
            ..WakeRest::of_the_code([0, 0], 0)
        };
        refutes("wake_rest", model, announced);
    }
}

/// Two workers and wake over one kit.
struct World {
    kit: Kit,
    workers: [Deliver<Ports>; 2],
    wake: Wake<Ports>,
}

impl World {
    fn new() -> Self {
        let kit = Kit::new(&json!({}));
        Self {
            workers: [kit.deliver(0), kit.deliver(1)],
            wake: kit.wake(WAKE).leaving_payloads(),
            kit,
        }
    }

    /// A worker holds a delivery of the subscription, which is paused for that long.
    async fn hold(&self, worker: Actor, id: &str) {
        let since = self.kit.clock_now().to_string();
        let paused = json!({ "status": { "state": "Paused", "since": since } });
        self.kit.subscribe(&paused);
        self.kit.send_delivery(id).await;
        let until = deadline(&self.kit, MINUTE);
        let handled = self
            .kit
            .invoke((QueueName::Deliveries, worker), 1, |batch| {
                self.workers[worker].handle(batch, until)
            });
        self.kit.in_time(handled).await;
        self.kit.subscribe(&json!({}));
    }

    fn run(&self) -> Run<Key> {
        let store_key = |key: &str| match key {
            WAKE_LEASE => Some(Key::Lease),
            WAKE_SIGNAL => Some(Key::Signal),
            _ => key.starts_with(layout::HELD).then_some(Key::Held),
        };
        let run = Run::of(&self.kit.notes, store_key, |_| None, None);
        run.kept(|kept: &[Made<Key>], made| {
            let last = kept.last().map(|last| last.call);
            let is_taken = matches!(
                last,
                Some(Call::PutIfAbsent(Key::Lease) | Call::PutIfMatch(Key::Lease))
            );
            match made.call {
                // What is held is listed more than once. One list is a step, and all that is found
                // is sent and deleted with it.
                Call::List(Key::Held) => is_taken,
                Call::Get(Key::Held) | Call::Delete(Key::Held) => false,
                _ => true,
            }
        })
    }
}

/// Both workers hold a delivery in the second minute, and the first one another in the fourth, which
/// its signal announces.
#[tokio::test]
async fn calls_of_workers_and_wake_are_steps_of_the_model() {
    let world = World::new();
    let mut rested = Vec::new();
    let mut sent = Vec::new();
    for minute in 0..MINUTES {
        let report = world.kit.in_time(world.wake.run()).await.unwrap();
        rested.push(report.rested);
        sent.push(report.held_sent);
        match minute {
            1 => {
                world.hold(0, "a").await;
                world.hold(1, "b").await;
            }
            3 => world.hold(0, "c").await,
            _ => {}
        }
        world.kit.clock.advance(MINUTE);
    }
    let minutes_of = |is_meant: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..MINUTES).filter(|minute| is_meant(*minute)).collect()
    };
    assert_eq!(minutes_of(&|minute| rested[minute]), [1, 13]);
    assert_eq!(minutes_of(&|minute| sent[minute] > 0), [2, 4]);
    let run = world.run();
    let signals = run
        .calls()
        .iter()
        .filter(|made| made.call == Call::Put(Key::Signal));
    assert_eq!(signals.count(), 2, "{run:#?}");
    assert_eq!(run.calls().len(), 66, "{run:#?}");
    let model = WakeRest::of_the_code([0, 0], 0);
    let ends = follow("wake_rest", &model, &run, (1, 3));
    assert!(ends.iter().any(|end| end.waits.is_empty()));
}
