//! A bound on the open requests of a subscription: kept over all workers, without attempts, whatever
//! fails, and everything arrives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ErrorKind, ObjectStore, QueueName};
use posthaste_simulation::{Answer, Faults, Request, Worker, World, event};
use posthaste_testkit::faulty::{CallFault, FaultPlan};
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_hours(24);

/// Time of the endpoint for an answer, so that requests are under way together.
const ANSWER_TIME: Duration = Duration::from_millis(300);

/// The time that an invocation has.
const INVOCATION: Duration = Duration::from_mins(1);

const KEY: &str = "slots/orders.billing.json";

fn bounded(most: u32) -> Value {
    json!({ "endpoint": { "url": "https://billing.example.com/hooks", "maxConcurrentRequests": most } })
}

/// Workers over one queue, one store and one endpoint that answers after a while.
struct Fleet {
    world: World,
    workers: Vec<Arc<Worker>>,
    arrived: BTreeMap<String, usize>,
}

impl Fleet {
    async fn new(faults: &Faults, workers: u64, settings: Value) -> Self {
        let world = World::with(faults);
        world.subscribe(settings).await;
        world.endpoint.answer([Answer::Late(ANSWER_TIME, 204)]);
        let workers = (0..workers).map(|seed| Arc::new(world.another_worker(seed)));
        Self {
            workers: workers.collect(),
            world,
            arrived: BTreeMap::new(),
        }
    }

    async fn publish(&self, events: usize) {
        for id in 0..events {
            self.world.publish(&[event(&id.to_string())], DAY).await;
        }
    }

    /// One invocation of every worker, all at once, with so many messages each.
    async fn deliver_some(&self, messages_max: usize) {
        let mut invocations = JoinSet::new();
        for worker in &self.workers {
            let worker = Arc::clone(worker);
            invocations.spawn(async move { worker.deliver_some(messages_max, INVOCATION).await });
        }
        self.world.in_time(invocations.join_all()).await;
    }

    /// All workers work on what comes due within so many seconds, and the endpoint never has more
    /// requests open than this.
    async fn go_on(&mut self, secs: u32, most: usize) {
        let end = self.world.clock.now() + SECOND * secs;
        while self.world.clock.now() < end {
            let is_over = || self.world.clock.now() >= end;
            while !is_over() && self.world.visible(QueueName::Deliveries).await > 0 {
                self.deliver_some(4).await;
            }
            let open = self.world.endpoint.most_at_once();
            assert!(open <= most, "{open} open of {most}");
            for request in self.world.endpoint.take() {
                *self.arrived.entry(id(&request)).or_default() += 1;
            }
            self.world.clock.advance(SECOND);
        }
    }

    /// The slots that are held by the stored state.
    async fn held(&self) -> u64 {
        let object = self.world.local.state_store().get(KEY).await.unwrap();
        let state: Value = serde_json::from_slice(&object.unwrap().bytes).unwrap();
        let leases = state["leases"].as_array().unwrap().iter();
        leases.map(|lease| lease["slots"].as_u64().unwrap()).sum()
    }

    /// All events have arrived, each once.
    fn check_arrived(&self, events: usize, label: &str) {
        assert_eq!(self.arrived.len(), events, "{label}");
        let is_once = |times: &usize| *times == 1;
        assert!(
            self.arrived.values().all(is_once),
            "{label} {:?}",
            self.arrived
        );
    }
}

fn id(request: &Request) -> String {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    body["id"].as_str().unwrap().to_owned()
}

/// The calls to the states of slots so far.
fn asked(world: &World, operation: PortOperation) -> usize {
    let calls = world.calls.all();
    let asked = calls
        .iter()
        .filter(|call| call.key.starts_with(layout::SLOTS) && call.operation == operation);
    asked.count()
}

#[tokio::test]
async fn bound_holds_over_all_workers_and_everything_arrives() {
    for most in [1, 5] {
        let mut fleet = Fleet::new(&Faults::none(), 4, bounded(most)).await;
        fleet.publish(60).await;
        fleet.deliver_some(4).await;
        let open = fleet.world.endpoint.most_at_once();
        assert_eq!(open, most as usize, "the bound is used");
        fleet.go_on(600, most as usize).await;
        fleet.check_arrived(60, "");
        assert_eq!(fleet.held().await, 0);
    }
}

#[tokio::test]
async fn subscription_without_a_bound_asks_for_no_slots() {
    let mut fleet = Fleet::new(&Faults::none(), 2, json!({})).await;
    fleet.publish(20).await;
    fleet.go_on(5, 20).await;
    fleet.check_arrived(20, "");
    let calls = fleet.world.calls.all();
    assert!(
        calls
            .iter()
            .all(|call| !call.key.starts_with(layout::SLOTS))
    );
}

#[tokio::test]
async fn invocation_takes_its_slots_once_and_gives_them_back_once() {
    let mut fleet = Fleet::new(&Faults::none(), 1, bounded(5)).await;
    fleet.publish(10).await;
    fleet.deliver_some(10).await;
    assert_eq!(fleet.world.endpoint.most_at_once(), 5);
    assert_eq!(
        fleet.world.endpoint.take().len(),
        10,
        "the rest waited for slots"
    );
    let calls = |operation| asked(&fleet.world, operation);
    // It lasted so long that the state was read again before the slots were given back.
    assert_eq!(
        (calls(PortOperation::Get), calls(PortOperation::Put)),
        (2, 2)
    );
    assert_eq!(fleet.held().await, 0);
    // An invocation a moment later knows the state.
    fleet.publish(1).await;
    fleet.deliver_some(10).await;
    let calls = |operation| asked(&fleet.world, operation);
    assert_eq!(
        (calls(PortOperation::Get), calls(PortOperation::Put)),
        (3, 4)
    );
    fleet.go_on(1, 1).await;
}

#[tokio::test]
async fn request_that_finds_no_slot_uses_up_no_attempt() {
    let mut fleet = Fleet::new(&Faults::none(), 1, bounded(1)).await;
    let until = (fleet.world.clock.now() + 40 * SECOND).as_millis();
    let taken =
        json!({ "v": 1, "at": 0, "leases": [{ "holder": "x", "slots": 1, "until": until }] });
    fleet.world.write_state(KEY, taken.to_string()).await;
    fleet.publish(1).await;
    // Requests look for a second at most.
    fleet.go_on(38, 0).await;
    fleet.world.clock.advance(4 * SECOND);
    fleet.deliver_some(1).await;
    let requests = fleet.world.endpoint.take();
    let attempts_before = requests[0].headers["aeg-delivery-count"].to_str();
    assert_eq!((requests.len(), attempts_before.unwrap()), (1, "0"));
}

/// Each call about slots fails once, or is made and its answer is lost.
#[tokio::test]
async fn bound_holds_whatever_fails_at_the_slots() {
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::TimedOut),
    ] {
        for at in 0..12 {
            let fault = fault.clone();
            let label = format!("{fault:?} at {at}");
            let calls = AtomicUsize::new(0);
            let plan = FaultPlan::by(move |effect| {
                let is_slots = effect.key.starts_with(layout::SLOTS);
                let is_it = is_slots && calls.fetch_add(1, Ordering::Relaxed) == at;
                is_it.then(|| fault.clone())
            });
            let mut fleet = Fleet::new(&Faults::in_state(&plan), 2, bounded(2)).await;
            fleet.publish(12).await;
            fleet.go_on(180, 2).await;
            fleet.check_arrived(12, &label);
            assert_eq!(plan.faults(), 1, "{label}");
        }
    }
}

#[tokio::test]
async fn store_that_is_down_postpones_and_keeps_the_bound() {
    let plan = FaultPlan::by(|effect| {
        let is_down = effect.key.starts_with(layout::SLOTS) && effect.number < 60;
        is_down.then_some(CallFault::Before(ErrorKind::Other))
    });
    let mut fleet = Fleet::new(&Faults::in_state(&plan), 2, bounded(1)).await;
    fleet.publish(3).await;
    fleet.go_on(1800, 1).await;
    assert!(plan.faults() > 1);
    fleet.check_arrived(3, "");
}

/// The requests of a worker that died may still be open as far as anybody can tell.
#[tokio::test]
async fn slots_of_a_worker_that_died_are_free_when_its_lease_is_over() {
    let mut fleet = Fleet::new(&Faults::none(), 2, bounded(2)).await;
    let start = fleet.world.clock.now();
    fleet.publish(4).await;
    let worker = Arc::clone(&fleet.workers[0]);
    let invocation = tokio::spawn(async move { worker.deliver_some(2, INVOCATION).await });
    fleet.world.rest().await;
    assert_eq!(fleet.world.endpoint.take().len(), 2);
    invocation.abort();
    assert!(invocation.await.unwrap_err().is_cancelled());
    fleet.workers.remove(0);
    fleet.world.endpoint.most_at_once();
    // The lease is of 55 s: 20 in which requests begin, their timeout of 30, and a margin.
    fleet.go_on(53, 0).await;
    assert_eq!(fleet.arrived.len(), 0);
    fleet.go_on(20, 2).await;
    assert_eq!(fleet.arrived.len(), 2, "those that it had are in flight");
    assert!(fleet.world.clock.now() >= start + 55 * SECOND);
    fleet.go_on(400, 2).await;
    fleet.check_arrived(4, "");
}

#[tokio::test]
async fn both_bounds_hold_together() {
    let mut settings = bounded(2);
    settings["endpoint"]["maxRequestsPerSecond"] = json!(2);
    let mut fleet = Fleet::new(&Faults::none(), 2, settings).await;
    let start = fleet.world.clock.now();
    fleet.publish(20).await;
    let mut second = BTreeMap::new();
    for _ in 0..120 {
        while fleet.world.visible(QueueName::Deliveries).await > 0 {
            fleet.deliver_some(4).await;
        }
        assert!(fleet.world.endpoint.most_at_once() <= 2);
        for request in fleet.world.endpoint.take() {
            *fleet.arrived.entry(id(&request)).or_default() += 1;
            *second.entry(request.at.since(start).as_secs()).or_insert(0) += 1;
        }
        fleet.world.clock.advance(SECOND);
    }
    fleet.check_arrived(20, "");
    // Two a second, and those of one lease that are late.
    assert!(second.values().all(|requests| *requests <= 4), "{second:?}");
}

#[tokio::test]
async fn parts_of_a_split_batch_use_one_slot_one_after_the_other() {
    let mut settings = bounded(1);
    settings["batching"] = json!({ "maxEventsPerBatch": 10 });
    let fleet = Fleet::new(&Faults::none(), 1, settings).await;
    let refuses_batches = |body: &str| {
        if body.matches("specversion").count() > 1 {
            400
        } else {
            204
        }
    };
    fleet
        .world
        .endpoint
        .answer([Answer::SlowBy(ANSWER_TIME, refuses_batches)]);
    let events: Vec<_> = (0..4).map(|id| event(&id.to_string())).collect();
    fleet.world.publish(&events, DAY).await;
    fleet.deliver_some(10).await;
    // All four, two halves, and each event.
    assert_eq!(fleet.world.endpoint.take().len(), 7);
    assert_eq!(fleet.world.endpoint.most_at_once(), 1);
    assert!(fleet.world.is_at_rest().await);
    assert_eq!(fleet.held().await, 0);
}

#[tokio::test]
async fn lowered_bound_holds_as_soon_as_what_was_open_has_ended() {
    let mut fleet = Fleet::new(&Faults::none(), 2, bounded(6)).await;
    fleet.publish(40).await;
    let mut invocations = JoinSet::new();
    for worker in &fleet.workers {
        let worker = Arc::clone(worker);
        invocations.spawn(async move { worker.deliver_some(10, INVOCATION).await });
    }
    fleet.world.rest().await;
    assert_eq!(fleet.world.endpoint.most_at_once(), 6);
    fleet.world.subscribe(bounded(2)).await;
    fleet.world.clock.advance(ANSWER_TIME);
    fleet.world.rest().await;
    fleet.world.endpoint.most_at_once();
    fleet.world.in_time(invocations.join_all()).await;
    for request in fleet.world.endpoint.take() {
        *fleet.arrived.entry(id(&request)).or_default() += 1;
    }
    fleet.go_on(300, 2).await;
    fleet.check_arrived(40, "");
}

#[tokio::test]
async fn bound_that_is_removed_binds_no_more() {
    let mut fleet = Fleet::new(&Faults::none(), 1, bounded(1)).await;
    fleet.publish(3).await;
    fleet.deliver_some(1).await;
    assert_eq!(fleet.world.endpoint.most_at_once(), 1);
    fleet.world.subscribe(json!({})).await;
    fleet.deliver_some(10).await;
    assert_eq!(fleet.world.endpoint.most_at_once(), 2);
    fleet.go_on(1, 2).await;
    fleet.check_arrived(3, "");
}

/// Workers may hold any of the slots, so all are kept for as long as they may.
#[tokio::test]
async fn damaged_slots_are_found_out_again_after_the_longest_lease() {
    let mut fleet = Fleet::new(&Faults::none(), 2, bounded(2)).await;
    fleet.world.write_state(KEY, "{ damaged".to_owned()).await;
    fleet.publish(2).await;
    fleet.go_on(83, 0).await;
    fleet.go_on(30, 2).await;
    fleet.check_arrived(2, "");
}

#[tokio::test]
async fn slots_of_a_newer_program_are_left_to_it() {
    let mut fleet = Fleet::new(&Faults::none(), 2, bounded(2)).await;
    fleet.world.write_state(KEY, r#"{"v":2}"#.to_owned()).await;
    fleet.publish(2).await;
    fleet.go_on(300, 0).await;
    let object = fleet
        .world
        .local
        .state_store()
        .get(KEY)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(object.bytes, r#"{"v":2}"#);
}

#[tokio::test]
async fn request_that_timed_out_frees_its_slot() {
    let mut settings = bounded(1);
    settings["endpoint"]["timeout"] = json!("PT1S");
    let fleet = Fleet::new(&Faults::none(), 1, settings).await;
    let goes_on = Answer::Late(3 * SECOND, 204);
    fleet.world.endpoint.answer([goes_on, Answer::Status(204)]);
    let start = fleet.world.clock.now();
    fleet.publish(2).await;
    fleet.deliver_some(2).await;
    let requests = fleet.world.endpoint.take();
    let times: Vec<_> = requests.iter().map(|it| it.at.since(start)).collect();
    assert_eq!(times, [Duration::ZERO, SECOND]);
}

/// A probe is a request like others: it finds no slot while other workers may have all of them.
#[tokio::test]
async fn probe_needs_a_slot_as_well() {
    let mut fleet = Fleet::new(&Faults::none(), 1, bounded(1)).await;
    fleet.world.endpoint.answer([Answer::Status(503)]);
    fleet.publish(10).await;
    fleet.go_on(5, 1).await;
    assert_eq!(fleet.world.visible(QueueName::Deliveries).await, 0);
    let failed = fleet.arrived.len();
    assert!(failed > 0);
    fleet
        .world
        .endpoint
        .answer([Answer::Late(ANSWER_TIME, 204)]);
    let until = (fleet.world.clock.now() + 80 * SECOND).as_millis();
    let taken =
        json!({ "v": 1, "at": until, "leases": [{ "holder": "x", "slots": 1, "until": until }] });
    fleet.world.write_state(KEY, taken.to_string()).await;
    fleet.arrived.clear();
    // The hold of the first failure is a minute.
    fleet.go_on(77, 0).await;
    fleet.go_on(600, 1).await;
    fleet.check_arrived(10, "");
}
