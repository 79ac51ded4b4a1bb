//! Paths of one host and port that hang, crash, answer slowly or refuse, all at once and with long
//! backlogs, beside healthy subscriptions there: each event of those has its first request at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;
use posthaste_simulation::{LinkPath, World, event};
use serde_json::{Value, json};

/// The time between two events of a busy subscription: four a second.
const STEP: Duration = Duration::from_millis(250);

/// Time in which a path that hangs times out, is held for a minute, and is probed twice.
const LENGTH: Duration = Duration::from_secs(200);

/// The step at which the events of the bad paths are published, all at once. Until then the busy
/// subscriptions are answered: two paths that crash stop a link of which nothing else is known.
const BAD_FROM: u32 = 8;

/// The time within which a new event must have a place.
const FIRST_PLACE: Duration = Duration::from_secs(1);

/// Messages that wait for each bad path, and events of each.
const WAITING: usize = 100;
const PACKED: usize = 10;

/// Steps between two events of a subscription that wakes up rarely: 75 seconds.
const RARELY: u32 = 300;

/// A healthy subscription and the number of steps between its events.
struct Healthy {
    path: LinkPath,
    every: u32,
}

fn busy(path: LinkPath) -> Healthy {
    Healthy { path, every: 1 }
}

fn rare(path: LinkPath) -> Healthy {
    Healthy {
        path,
        every: RARELY,
    }
}

/// When healthy events were published, and how long each waited for its first request.
#[derive(Default)]
struct Waits {
    published: BTreeMap<String, Timestamp>,
    waited: BTreeMap<String, Duration>,
    /// Requests to each bad path.
    bad_requests: BTreeMap<String, usize>,
}

impl Waits {
    fn hear(&mut self, world: &World, bad: &[LinkPath]) {
        for request in world.endpoint.take() {
            let is_at = |path: &&LinkPath| request.url.contains(&path.url_path());
            if let Some(path) = bad.iter().find(is_at) {
                *self
                    .bad_requests
                    .entry(path.place().to_owned())
                    .or_default() += 1;
                continue;
            }
            let body: Value = serde_json::from_str(&request.body).unwrap();
            let events = match body {
                Value::Array(events) => events,
                event => vec![event],
            };
            for event in events {
                let id = event["id"].as_str().unwrap().to_owned();
                let waited = request.at.since(self.published[&id]);
                self.waited.entry(id).or_insert(waited);
            }
        }
    }
}

/// The healthy events that had no place in time, and how long they waited.
async fn late(bad: &[LinkPath], healthy: &[Healthy]) -> BTreeMap<String, Option<Duration>> {
    let world = World::new();
    let all: Vec<_> = healthy
        .iter()
        .map(|of| &of.path)
        .chain(bad)
        .cloned()
        .collect();
    world.subscribe_paths(&all).await;
    let packed: Vec<_> = (0..PACKED)
        .map(|number| event(&format!("bad-{number}")))
        .collect();
    let mut waits = Waits::default();
    let publish = async |step: u32| {
        waits.hear(&world, bad);
        let flooding = if step == BAD_FROM { bad } else { &[] };
        for path in flooding {
            world.publish_to(path.place(), &packed, WAITING).await;
        }
        for of in healthy.iter().filter(|of| step % of.every == of.every / 2) {
            let id = format!("{}-{step}", of.path.place());
            waits.published.insert(id.clone(), world.clock.now());
            world.publish_to(of.path.place(), &[event(&id)], 1).await;
        }
    };
    world.pass_busily(STEP, LENGTH, publish).await;
    waits.hear(&world, bad);
    // The bad ones were really there.
    let asked: BTreeSet<_> = waits.bad_requests.keys().map(String::as_str).collect();
    assert_eq!(asked, bad.iter().map(LinkPath::place).collect());
    assert!(waits.published.len() >= healthy.len());
    let waited = |id: String| (id.clone(), waits.waited.get(&id).copied());
    let all = waits.published.into_keys().map(waited);
    all.filter(|(_, waited)| waited.is_none_or(|waited| waited > FIRST_PLACE))
        .collect()
}

/// One of each kind, so many times, of the topic `bad`.
fn each_kind(times: usize) -> Vec<LinkPath> {
    let of = |index| {
        let place = |kind: &str| format!("bad.{kind}{index}");
        [
            LinkPath::hanging(&place("hang")),
            LinkPath::crashing(&place("crash")),
            LinkPath::slow(&place("slow")),
        ]
    };
    (0..times).flat_map(of).collect()
}

fn healthy() -> [Healthy; 2] {
    [
        busy(LinkPath::healthy("orders.billing")),
        rare(LinkPath::healthy("ops.pager")),
    ]
}

#[tokio::test]
async fn hanging_crashing_and_slow_path_delay_no_other() {
    assert_eq!(late(&each_kind(1), &healthy()).await, BTreeMap::new());
}

#[tokio::test]
async fn two_paths_of_each_bad_kind_delay_no_other() {
    assert_eq!(late(&each_kind(2), &healthy()).await, BTreeMap::new());
}

#[tokio::test]
async fn refusing_paths_beside_the_others_delay_no_other() {
    let mut bad = each_kind(1);
    bad.extend(["refuse0", "refuse1"].map(|name| LinkPath::refusing(&format!("bad.{name}"))));
    assert_eq!(late(&bad, &healthy()).await, BTreeMap::new());
}

#[tokio::test]
async fn bad_paths_of_the_same_topic_delay_no_other() {
    let bad = ["orders.a", "orders.b", "orders.c"];
    let bad = [
        LinkPath::hanging(bad[0]),
        LinkPath::crashing(bad[1]),
        LinkPath::slow(bad[2]),
    ];
    let healthy = [
        busy(LinkPath::healthy("orders.billing")),
        rare(LinkPath::healthy("orders.pager")),
    ];
    assert_eq!(late(&bad, &healthy).await, BTreeMap::new());
}

#[tokio::test]
async fn bad_paths_delay_no_subscription_with_batches() {
    let batches = || json!({ "batching": { "maxEventsPerBatch": 10 } });
    let bad: Vec<_> = each_kind(1)
        .into_iter()
        .map(|path| path.with(batches()))
        .collect();
    let healthy = [
        busy(LinkPath::healthy("orders.billing").with(batches())),
        rare(LinkPath::healthy("ops.pager").with(batches())),
    ];
    assert_eq!(late(&bad, &healthy).await, BTreeMap::new());
}

/// Nothing else on the host and port is well: no success of another speaks for it.
#[tokio::test]
async fn bad_paths_delay_no_other_that_is_alone_and_rare() {
    let healthy = [rare(LinkPath::healthy("ops.pager"))];
    assert_eq!(late(&each_kind(1), &healthy).await, BTreeMap::new());
}
