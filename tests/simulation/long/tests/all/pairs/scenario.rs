//! The scenarios of the tests with one fault, step by step, so that a run can be cut in any of them.

use std::collections::BTreeSet;

use posthaste_core::api::ReplayState;
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{ObjectStore, QueueName, QueueReceiver};
use posthaste_services::LeftWork;
use posthaste_simulation::{Faults, Request, World};
use posthaste_wake::WakeError;
use serde_json::Value;

use crate::{faults, recovery_faults, replay_faults};

/// A scenario: what is there before anything fails, and what is done again and again after it.
pub(crate) trait Scenario {
    const NAME: &'static str;

    /// Pairs of faults that `tests/run` draws.
    const PAIRS: usize;

    /// Steps after which everything is at rest, whatever has failed.
    const STEPS_MAX: usize;

    /// Everything before the first fault.
    async fn begin() -> World;

    /// One step. All of it may fail, and goes on with the next step.
    async fn step(world: &World, number: usize, left: LeftWork) -> Result<(), WakeError>;

    /// Whether the endpoint took the event of this request.
    fn is_taken(step: usize, request: &Request) -> bool;

    /// Whether nothing is left to do, beside what is in the queues.
    async fn is_at_rest(world: &World) -> bool;

    /// Returns the rules that do not hold at the end, where these events have arrived.
    async fn mistakes(world: &World, arrived: &BTreeSet<String>) -> Vec<String>;
}

/// The number of messages in the queues of deliveries and of dead letters.
pub(crate) async fn messages(world: &World) -> u64 {
    let mut total = 0;
    for name in [QueueName::Deliveries, QueueName::DeadLetters] {
        let queue = world.local.queue(name);
        total += queue.counts().await.expect("counts").total();
    }
    total
}

/// The id of an event.
pub(crate) fn id_of(event: &Value) -> String {
    event["id"].as_str().expect("an id").to_owned()
}

fn missing(arrived: &BTreeSet<String>, all: impl IntoIterator<Item = String>) -> Vec<String> {
    let lost = all.into_iter().filter(|id| !arrived.contains(id));
    lost.map(|id| format!("{id} did not arrive")).collect()
}

/// Three events, of which one arrives, one is refused and one waits.
pub(crate) struct ThreeEnds;

impl Scenario for ThreeEnds {
    const NAME: &'static str = "three ends";
    const PAIRS: usize = 100;
    const STEPS_MAX: usize = 28;

    async fn begin() -> World {
        let world = World::new();
        faults::begin(&world).await;
        world
    }

    async fn step(world: &World, _: usize, left: LeftWork) -> Result<(), WakeError> {
        faults::step(world, left).await
    }

    fn is_taken(_: usize, request: &Request) -> bool {
        faults::answer(&request.body, request.at) == 200
    }

    async fn is_at_rest(world: &World) -> bool {
        world.parked().await.is_empty() && world.held().await.is_empty()
    }

    /// Each event has one end: it arrived, or it is a dead letter.
    async fn mistakes(world: &World, arrived: &BTreeSet<String>) -> Vec<String> {
        let letters = world.unresolved().await;
        let given_up: BTreeSet<_> = letters.iter().map(id_of).collect();
        let mut mistakes = Vec::new();
        for id in faults::EVENTS {
            let ends = (arrived.contains(id), given_up.contains(id));
            let expected = (id != "refused", id == "refused");
            if ends != expected {
                mistakes.push(format!("{id}: arrived and given up: {ends:?}"));
            }
        }
        mistakes
    }
}

/// An outage, and the recovery by itself after it.
pub(crate) struct Recovery;

impl Scenario for Recovery {
    const NAME: &'static str = "recovery";
    const PAIRS: usize = 50;
    const STEPS_MAX: usize = 120;

    async fn begin() -> World {
        recovery_faults::world(&Faults::none()).await
    }

    async fn step(world: &World, number: usize, left: LeftWork) -> Result<(), WakeError> {
        world.chance.hold(0.0);
        recovery_faults::step(world, number, left).await
    }

    fn is_taken(step: usize, _: &Request) -> bool {
        step >= recovery_faults::WELL_FROM
    }

    async fn is_at_rest(world: &World) -> bool {
        recovery_faults::working_marks(world).await.is_empty() && world.replaying().await.is_empty()
    }

    async fn mistakes(_: &World, arrived: &BTreeSet<String>) -> Vec<String> {
        missing(
            arrived,
            (0..recovery_faults::EVENTS).map(|it| it.to_string()),
        )
    }
}

/// Dead letters that are asked for again.
pub(crate) struct Replay;

impl Scenario for Replay {
    const NAME: &'static str = "replay";
    const PAIRS: usize = 50;
    const STEPS_MAX: usize = 40;

    async fn begin() -> World {
        let world = replay_faults::world(&Faults::none()).await;
        replay_faults::ask(&world).await;
        world
    }

    async fn step(world: &World, _: usize, left: LeftWork) -> Result<(), WakeError> {
        let woken = replay_faults::step(world, left).await;
        // What arrived resolves its letter, unless the queue did not take that.
        world.bury().await;
        woken
    }

    fn is_taken(_: usize, _: &Request) -> bool {
        true
    }

    async fn is_at_rest(world: &World) -> bool {
        world.replaying().await.is_empty()
    }

    async fn mistakes(world: &World, arrived: &BTreeSet<String>) -> Vec<String> {
        let mut mistakes = missing(arrived, replay_faults::IDS.map(str::to_owned));
        for key in world.keys(layout::REPLAYS).await {
            let object = world.local.state_store().get(&key).await.expect("a read");
            let record = ReplayRecord::parse(&object.expect("a replay").bytes).expect("a record");
            if record.state != ReplayState::Done || record.progress.failed > 0 {
                mistakes.push(format!("the replay: {record:?}"));
            }
        }
        mistakes
    }
}
