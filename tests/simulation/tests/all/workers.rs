//! Several workers of deliver over one store, one queue and one endpoint, each with its own view of
//! links: they race for every transition, none is lost, and one at a time asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::circuit::{
    DeliveryTarget, LinkShard, TargetCondition, TargetPhase, shard_index,
};
use posthaste_core::model::SubscriptionName;
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectStore, QueueName};
use posthaste_simulation::{Answer, Request, Worker, World, event, start};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// Time of the endpoint for an answer, so that the workers' requests are under way together.
const ANSWER_TIME: Duration = Duration::from_millis(50);

/// Most messages of one invocation: what a worker may have sent before it knows better.
const OF_INVOCATION: usize = 10;

/// The minutes between the probes of an hour: Exchange's holds, whose ends wake sees at its next
/// run.
const HOLDS_MIN: [u64; 6] = [1, 1, 10, 10, 10, 15];

struct Fleet {
    world: World,
    workers: Vec<Arc<Worker>>,
    published: usize,
}

impl Fleet {
    async fn new(workers: usize) -> Self {
        let world = World::new();
        world.subscribe(json!({})).await;
        let workers = (0..workers)
            .map(|n| Arc::new(world.another_worker(n as u64)))
            .collect();
        Self {
            world,
            workers,
            published: 0,
        }
    }

    async fn publish(&mut self, events: usize) {
        for _ in 0..events {
            self.world
                .publish(&[event(&self.published.to_string())], DAY)
                .await;
            self.published += 1;
        }
    }

    /// One invocation of every worker, all at once, with so many messages each.
    async fn deliver_some(&self, messages_max: usize) {
        let mut invocations = JoinSet::new();
        for worker in &self.workers {
            let worker = Arc::clone(worker);
            invocations.spawn(async move { worker.deliver_some(messages_max, MINUTE).await });
        }
        let responses = self.world.in_time(invocations.join_all()).await;
        assert!(
            responses
                .iter()
                .all(|response| response.failures.is_empty()),
            "{responses:?}"
        );
    }

    /// The same, as long as there is something.
    async fn deliver(&self) {
        while self.world.visible(QueueName::Deliveries).await > 0 {
            self.deliver_some(OF_INVOCATION).await;
        }
    }

    /// A minute passes, in steps of five seconds. What comes due is worked on by all.
    async fn minute(&self) {
        for _ in 0..12 {
            self.world.clock.advance_to(self.next(5 * SECOND));
            self.deliver().await;
        }
        self.world.wake().await;
        self.deliver().await;
    }

    /// The next full step.
    fn next(&self, step: Duration) -> posthaste_core::model::Timestamp {
        let steps = self.world.clock.now().since(start()).as_millis() / step.as_millis();
        start() + step * (u32::try_from(steps).unwrap() + 1)
    }

    /// The state of a target in the store.
    async fn condition(&self, target: &DeliveryTarget) -> Option<TargetCondition> {
        let key = layout::link_shard_key(shard_index(target.link()));
        let object = self.world.local.state_store().get(&key).await.unwrap()?;
        LinkShard::parse(&object.bytes)
            .unwrap()
            .condition(target)
            .cloned()
    }
}

fn billing() -> DeliveryTarget {
    DeliveryTarget::parse("https://billing.example.com:443 orders.billing").unwrap()
}

fn minute_of(request: &Request) -> u64 {
    request.at.since(start()).as_secs() / 60
}

fn id(request: &Request) -> String {
    serde_json::from_str::<Value>(&request.body).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// An hour's outage, and what comes after it.
async fn an_hour_with(workers: usize) {
    let mut fleet = Fleet::new(workers).await;
    fleet
        .world
        .endpoint
        .answer([Answer::Late(ANSWER_TIME, 503)]);
    fleet.publish(2 * OF_INVOCATION * workers).await;
    fleet.deliver().await;
    // Each worker learns by an invocation of its own, and what it was not told before that began.
    let first = fleet.world.endpoint.take();
    assert!(first.len() <= OF_INVOCATION * workers, "{}", first.len());
    fleet.world.endpoint.most_at_once();
    let mut asked = Vec::new();
    for _ in 0..59 {
        fleet.publish(2).await;
        fleet.minute().await;
        assert!(fleet.world.endpoint.most_at_once() <= 1);
        asked.extend(fleet.world.endpoint.take());
    }
    let minutes: Vec<_> = asked.iter().map(minute_of).collect();
    let holds: Vec<_> = minutes.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(minutes.len(), HOLDS_MIN.len() + 1, "{minutes:?}");
    for (hold, least) in holds.iter().zip(HOLDS_MIN) {
        assert!((least..=least + 1).contains(hold), "{minutes:?}");
    }
    let condition = fleet.condition(&billing()).await.unwrap();
    assert_eq!((condition.phase, condition.hold), (TargetPhase::Retry, 5));
    fleet
        .world
        .endpoint
        .answer([Answer::Late(ANSWER_TIME, 204)]);
    let mut arrived: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..30 {
        fleet.minute().await;
        for request in fleet.world.endpoint.take() {
            *arrived.entry(id(&request)).or_default() += 1;
        }
    }
    // Wake forgets it when the ramp is over.
    assert!(
        fleet
            .condition(&billing())
            .await
            .is_none_or(|it| it.phase == TargetPhase::Recovering)
    );
    assert!(fleet.world.is_at_rest().await);
    assert_eq!(arrived.len(), fleet.published);
    assert!(arrived.values().all(|times| *times == 1), "{arrived:?}");
}

#[tokio::test]
async fn two_workers_ask_one_at_a_time_and_see_every_transition() {
    an_hour_with(2).await;
}

#[tokio::test]
async fn ten_workers_ask_one_at_a_time_and_see_every_transition() {
    an_hour_with(10).await;
}

/// The message's delivery for another subscription of its topic.
fn to(body: &bytes::Bytes, name: &str) -> bytes::Bytes {
    let mut delivery = parse_delivery(body).unwrap();
    delivery.subscription = SubscriptionName::parse(name).unwrap();
    render_delivery(&delivery)
}

/// Ten workers that each find another subscription of one link failing at once lose none.
#[tokio::test]
async fn ten_workers_lose_none_of_the_failures_found_at_once() {
    let fleet = Fleet::new(10).await;
    fleet
        .world
        .endpoint
        .answer([Answer::Late(ANSWER_TIME, 503)]);
    let mut record = fleet.world.record().await;
    let names: Vec<_> = (0..10).map(|n| format!("s{n}")).collect();
    for name in &names {
        let endpoint =
            json!({ "endpoint": { "url": format!("https://shared.example.com/{name}") } });
        let settings = serde_json::from_value(endpoint).unwrap();
        record
            .settings
            .subscriptions
            .insert(SubscriptionName::parse(name).unwrap(), settings);
    }
    fleet.world.write_record(record.render()).await;
    let events: Vec<_> = (0..3).map(|n| event(&n.to_string())).collect();
    let message = fleet.world.message(&events, DAY);
    for name in &names {
        fleet
            .world
            .send(QueueName::Deliveries, to(&message.body, name))
            .await;
    }
    fleet.deliver_some(1).await;
    assert_eq!(fleet.world.endpoint.take().len(), 30);
    for name in &names {
        let target =
            DeliveryTarget::parse(&format!("https://shared.example.com:443 orders.{name}"))
                .unwrap();
        let condition = fleet.condition(&target).await;
        assert_eq!(
            condition.map(|it| (it.phase, it.hold)),
            Some((TargetPhase::Glitch, 1)),
            "{name}"
        );
    }
}
