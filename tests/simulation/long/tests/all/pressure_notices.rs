//! Notices that the pressure changed, from the monitor over the queue to an endpoint, whatever
//! fails on the way.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posthaste_core::model::TopicName;
use posthaste_local::{LocalQueue, StateStore};
use posthaste_monitor::{Monitor, MonitorPorts, MonitorSettings};
use posthaste_ports::{ProbeSample, QueueName, ResourceProbe};
use posthaste_services::{DrainMeter, TopicRegistry};
use posthaste_simulation::{Answer, World};
use posthaste_testkit::faulty::{FaultPlan, Faulty, at_every_effect};
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use serde_json::{Value, json};

const POLL: Duration = Duration::from_secs(2);

/// A machine on which so many batches are on their way.
#[derive(Debug, Clone, Default)]
struct Machine(Arc<Mutex<u64>>);

impl ResourceProbe for Machine {
    fn sample(&self) -> ProbeSample {
        ProbeSample {
            batch_points: Some(*self.0.lock().unwrap()),
            ..ProbeSample::default()
        }
    }
}

type Queue = Faulty<LocalQueue<ManualClock>>;
type State = Faulty<StateStore>;
type TestMonitor = Monitor<TestPorts<Queue, State>, Machine, DrainMeter>;

/// A world in which `ops` gets the notices, and the ports of a monitor in it.
struct Watched {
    world: World,
    machine: Machine,
    queues: FaultPlan,
    state: FaultPlan,
}

impl Watched {
    async fn new(queues: &FaultPlan, state: &FaultPlan) -> Self {
        let world = World::new();
        world.subscribe(json!({})).await;
        world.tell_ops(json!({})).await;
        world.endpoint.answer([Answer::Status(204)]);
        Self {
            world,
            machine: Machine::default(),
            queues: queues.clone(),
            state: state.clone(),
        }
    }

    fn monitor(&self) -> TestMonitor {
        let local = &self.world.local;
        let queue = |name| Faulty::new(local.queue(name), "queue", &self.queues);
        let state = || Faulty::new(local.state_store(), "state", &self.state);
        let ports = MonitorPorts {
            deliveries: queue(QueueName::Deliveries),
            slow_lane: None,
            dead_letters: queue(QueueName::DeadLetters),
            state: state(),
            probe: self.machine.clone(),
            clock: self.world.clock.clone(),
            drain: DrainMeter::default(),
            registry: TopicRegistry::new(state(), self.world.clock.clone(), Duration::ZERO),
            entropy: SeededEntropy::new(1),
        };
        let ops = TopicName::parse("ops").unwrap();
        let settings = MonitorSettings {
            notices_topic: Some(ops),
            ..MonitorSettings::default()
        };
        Monitor::new(ports, settings).unwrap()
    }

    /// One poll, which may fail, and the deliveries that follow from it.
    async fn poll(&self, monitor: &mut TestMonitor, batch_points: u64) {
        self.world.clock.advance(POLL);
        *self.machine.0.lock().unwrap() = batch_points;
        let _: Result<_, _> = monitor.poll_once().await;
        self.world.deliver_all().await;
    }

    /// The notices that arrived since the last time.
    fn told(&self) -> Vec<Value> {
        let requests = self.world.endpoint.take();
        requests
            .iter()
            .map(|request| serde_json::from_str(&request.body).unwrap())
            .collect()
    }
}

fn levels(notices: &[Value]) -> Vec<String> {
    let level = |notice: &Value, name: &str| notice["data"][name].as_str().unwrap().to_owned();
    notices
        .iter()
        .map(|n| format!("{} to {}", level(n, "previousLevel"), level(n, "level")))
        .collect()
}

#[tokio::test]
async fn a_rise_and_a_fall_reach_the_endpoint_once_each() {
    let watched = Watched::new(&FaultPlan::none(), &FaultPlan::none()).await;
    let mut monitor = watched.monitor();
    for batch_points in [0, 2000, 2000, 4000, 1999, 999, 0] {
        watched.poll(&mut monitor, batch_points).await;
    }
    let told = watched.told();
    assert_eq!(
        levels(&told),
        [
            "normal to medium",
            "medium to high",
            "high to medium",
            "medium to normal"
        ]
    );
    assert!(
        told.iter()
            .all(|notice| notice["type"] == "dev.posthaste.pressure.changed")
    );
    let rise = &told[1];
    let data = &told[1]["data"];
    assert_eq!(
        (&rise["source"], &rise["subject"]),
        (&json!("/pressure"), &json!("/pressure/batch-points"))
    );
    assert_eq!(
        (&data["resource"], &data["reading"]),
        (&json!("batch-points"), &json!(4000))
    );
    assert_eq!(
        (&data["tarpit"], &data["overallLevel"]),
        (&json!("PT20S"), &json!("high"))
    );
}

#[tokio::test]
async fn undeliverable_pressure_notice_makes_no_other_notice() {
    let watched = Watched::new(&FaultPlan::none(), &FaultPlan::none()).await;
    watched.world.endpoint.answer([Answer::Status(400)]);
    let mut monitor = watched.monitor();
    watched.poll(&mut monitor, 2000).await;
    watched.world.clock.advance(Duration::from_mins(6));
    watched.world.bury().await;
    watched.world.deliver_all().await;
    assert_eq!(
        (watched.told().len(), watched.world.buried().await.len()),
        (1, 1)
    );
}

/// The notices of a rise and a fall while something fails, as (id, levels), each counted once.
async fn told(queues: &FaultPlan, state: &FaultPlan, dies: bool) -> BTreeSet<(String, String)> {
    let watched = Watched::new(queues, state).await;
    let mut monitor = watched.monitor();
    for batch_points in [0, 2000, 2000, 2000, 0, 0, 0] {
        if dies {
            monitor = watched.monitor();
        }
        watched.poll(&mut monitor, batch_points).await;
    }
    let told = watched.told();
    let id = |notice: &Value| notice["id"].as_str().unwrap().to_owned();
    told.iter().map(id).zip(levels(&told)).collect()
}

#[tokio::test]
async fn every_change_is_announced_whichever_effect_fails() {
    let none = FaultPlan::none();
    for (dies, is_queue) in [(false, false), (false, true), (true, false), (true, true)] {
        at_every_effect(async |plan, place| {
            let (queues, state) = if is_queue {
                (plan, &none)
            } else {
                (&none, plan)
            };
            let told = told(queues, state, dies).await;
            let levels: Vec<_> = told.iter().map(|(_, levels)| &**levels).collect();
            let expected = ["normal to medium", "medium to normal"];
            assert_eq!(levels, expected, "{place}, queue: {is_queue}, dies: {dies}");
        })
        .await;
    }
}
