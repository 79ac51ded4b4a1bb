//! Slow subscriptions, which slow their own topic's producers and nobody else.

use posthaste_core::model::SubscriptionName;
use posthaste_core::pressure::PressureProfile;
use serde_json::{Map, Value, json};

use super::*;

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).unwrap()
}

impl World {
    /// Writes a topic with so many subscriptions, `s0` and so on.
    async fn topic(&self, name: &str, subscriptions: usize, paused: usize) {
        let state = |index| if index < paused { "Paused" } else { "Active" };
        let subscription = |index: usize| {
            let status = json!({ "state": state(index), "since": "2026-01-01T00:00:00Z" });
            let endpoint = json!({ "url": "https://example.com/hooks" });
            let settings = json!({ "endpoint": endpoint, "status": status });
            (format!("s{index}"), settings)
        };
        let subscriptions: Map<String, Value> = (0..subscriptions).map(subscription).collect();
        let record = json!({
            "v": 1, "name": name, "key1": "a", "key2": "b", "createdAt": 0, "updatedAt": 0,
            "settings": { "subscriptions": subscriptions },
        });
        let store = FileStore::open(self.folder.path()).unwrap();
        let key = format!("topics/{name}.json");
        let text = Bytes::from(record.to_string());
        store.put(&key, text, PutCondition::Always).await.unwrap();
    }

    /// So many messages of these groups are due, each of so many bytes.
    fn due(&self, groups: &[(&str, u64, u64)]) {
        self.deliveries.set(groups.iter().map(|of| of.1).sum());
        let of = |(group, due, bytes): &(&str, u64, u64)| DueOfGroup {
            group: (*group).into(),
            due: *due,
            bytes: due * bytes,
        };
        *self.deliveries.2.lock().unwrap() = Some(groups.iter().map(of).collect());
    }

    /// Notes that so many deliveries of a subscription were received after they had been due for so
    /// long, and settled.
    fn drained(&self, topic_name: &str, subscription: &str, messages: u64, waited_secs: u64) {
        let name = SubscriptionName::parse(subscription).unwrap();
        let delivery = posthaste_testkit::records::delivery(
            (topic(topic_name), name),
            "e",
            [posthaste_core::model::EventPayload::Inline(
                Bytes::from_static(b"{}"),
            )],
            START,
        );
        for _ in 0..messages {
            self.drain.note_delivery_received(
                &delivery,
                Duration::from_secs(waited_secs),
                Duration::ZERO,
            );
            self.drain.note_delivery_settled(&delivery);
        }
    }
}

/// The answer to a standard producer of a topic.
async fn admission(reader: &PressureReader<Store, ManualClock>, name: &str) -> Admission {
    reader
        .admit_to(&topic(name), ProducerTier::Standard)
        .await
        .admission
}

/// Polls so often, while 900 messages wait for places of `orders.s0` and ten of them are settled in
/// each.
async fn poll(world: &World, monitor: &mut TestMonitor, times: usize) -> PressureState {
    let name = SubscriptionName::parse("s0").unwrap();
    let orders = topic("orders");
    let quick = topic("quick");
    let waiting = world.drain.clone();
    let _waits = waiting.wait_for_own_place(&orders, &name, Duration::ZERO);
    let mut last = PressureState::normal(START);
    for _ in 0..times {
        world.clock.advance(POLL);
        world.due(&[("orders.s0", 900, 1 << 20), ("quick.s0", 2, 100)]);
        world.drained("orders", "s0", 10, 40);
        world.drained(quick.as_str(), "s0", 50, 0);
        last = monitor.poll_once().await.unwrap();
    }
    last
}

fn reading(state: &PressureState, resource: Resource) -> Option<u64> {
    Some(state.resource(resource)?.reading)
}

#[tokio::test]
async fn slow_subscription_slows_its_own_topic_alone() {
    let world = World::new();
    world.topic("orders", 1, 0).await;
    world.topic("quick", 1, 0).await;
    let mut monitor = world.monitor();
    let reader = world.reader();
    let state = poll(&world, &mut monitor, 3).await;
    // 900 at five a second.
    let slow = state.topic(&topic("orders")).unwrap();
    assert_eq!((slow.drain_time.reading, slow.due), (180, 900));
    assert_eq!(slow.subscription.as_str(), "s0");
    assert_eq!(state.topics.len(), 1);
    assert_eq!(reading(&state, Resource::SubmissionQueue), Some(2));
    assert_eq!(state.effective_level(), PressureLevel::Normal);
    assert_eq!(
        admission(&reader, "orders").await,
        Admission::Delay(Duration::from_secs(15))
    );
    assert_eq!(admission(&reader, "quick").await, Admission::Accept);
    poll(&world, &mut monitor, 30).await;
    world.clock.advance(POLL);
    assert!(matches!(
        admission(&reader, "orders").await,
        Admission::Refuse { .. }
    ));
    assert_eq!(admission(&reader, "quick").await, Admission::Accept);
    let told = reader
        .admit_to(&topic("orders"), ProducerTier::Standard)
        .await;
    assert_eq!(
        told.header.as_deref(),
        Some("medium; resource=drain-time; subscription=s0; retry-after=30")
    );
}

#[tokio::test]
async fn single_slow_subscription_among_many_slows_no_producer() {
    let check = async |subscriptions, paused, is_slow| {
        let world = World::new();
        world.topic("orders", subscriptions, paused).await;
        let mut monitor = world.monitor();
        let state = poll(&world, &mut monitor, 3).await;
        assert_eq!(
            !state.topics.is_empty(),
            is_slow,
            "{subscriptions} {paused}"
        );
        assert_eq!(state.effective_level(), PressureLevel::Normal);
    };
    check(1, 0, true).await;
    check(2, 0, false).await;
    check(100, 0, false).await;
    // The slow one is paused, so that it takes no deliveries.
    check(3, 1, false).await;
}

#[tokio::test]
async fn subscription_that_fills_the_disk_slows_its_topic() {
    let check = async |free_gib: u64, is_slow| {
        let world = World::new();
        world.topic("orders", 100, 0).await;
        let disk = ByteUsage {
            used: 0,
            total: free_gib << 30,
        };
        world.machine.0.lock().unwrap().database = Some(DatabaseResource::Disk(disk));
        let mut monitor = world.monitor();
        let state = poll(&world, &mut monitor, 3).await;
        assert_eq!(!state.topics.is_empty(), is_slow, "{free_gib}");
    };
    // 900 MiB wait.
    check(8, true).await;
    check(9, false).await;
}

#[tokio::test]
async fn in_the_documents_profile_everything_counts_for_everybody() {
    let mut world = World::new();
    world.settings.profile = PressureProfile::Exchange2013;
    world.topic("orders", 1, 0).await;
    let mut monitor = world.monitor();
    let state = poll(&world, &mut monitor, 3).await;
    assert_eq!(reading(&state, Resource::SubmissionQueue), Some(902));
    assert_eq!(state.topics, []);
    assert_eq!(reading(&state, Resource::DrainTime), Some(40));
}

#[tokio::test]
async fn exhausted_shared_places_slow_every_producer() {
    let world = World::new();
    world.topic("orders", 1, 0).await;
    let mut monitor = world.monitor();
    let shared = world.drain.clone();
    let _waits = shared.wait_for_shared_place();
    let state = poll(&world, &mut monitor, 3).await;
    assert_eq!(reading(&state, Resource::SubmissionQueue), Some(902));
    assert_eq!(reading(&state, Resource::DrainTime), Some(40));
}

/// Beside the slow one, nothing of the other is settled.
#[tokio::test]
async fn stall_is_seen_beside_a_self_limited_subscription() {
    let world = World::new();
    let mut monitor = world.monitor();
    let name = SubscriptionName::parse("s0").unwrap();
    let orders = topic("orders");
    let waiting = world.drain.clone();
    let _waits = waiting.wait_for_own_place(&orders, &name, Duration::ZERO);
    let mut drain_secs = Vec::new();
    for _ in 0..4 {
        world.clock.advance(POLL);
        world.due(&[("orders.s0", 900, 100), ("quick.s0", 50, 100)]);
        world.drained("orders", "s0", 10, 1);
        let state = monitor.poll_once().await.unwrap();
        drain_secs.extend(reading(&state, Resource::DrainTime));
    }
    assert_eq!(drain_secs, [0, 2, 4, 6]);
}

#[tokio::test]
async fn queue_that_cannot_tell_groups_changes_no_judgement() {
    let world = World::new();
    world.topic("orders", 1, 0).await;
    let mut monitor = world.monitor();
    let before = poll(&world, &mut monitor, 3).await;
    world.deliveries.3.store(true, Ordering::Relaxed);
    let kept = poll(&world, &mut monitor, 1).await;
    let judged = |state: &PressureState| {
        let queue = state.resource(Resource::SubmissionQueue).unwrap();
        let of_topic = state.topic(&topic("orders")).unwrap();
        let drain = &of_topic.drain_time;
        (queue.reading, queue.read_at, drain.reading, drain.read_at)
    };
    assert_eq!(judged(&kept), judged(&before));
    world.deliveries.3.store(false, Ordering::Relaxed);
    let after = poll(&world, &mut monitor, 1).await;
    assert_eq!(judged(&after).0, 2);
    assert_eq!(judged(&after).1, after.at);
}

#[tokio::test]
async fn topics_are_looked_up_only_where_a_subscription_is_slow() {
    let world = World::new();
    world.topic("quick", 1, 0).await;
    let mut monitor = world.monitor();
    monitor.poll_once().await.unwrap();
    let before = world.gets();
    for _ in 0..10 {
        world.clock.advance(POLL);
        world.due(&[("quick.s0", 100, 100)]);
        world.drained("quick", "s0", 100, 0);
        monitor.poll_once().await.unwrap();
    }
    // The state itself, in each poll.
    assert_eq!(world.gets() - before, 10);
}

/// The lines of the gauges of topics.
fn topic_gauges(recorder: &metrics_exporter_prometheus::PrometheusRecorder) -> Vec<String> {
    let text = recorder.handle().render();
    let of_topics = text.lines().filter(|line| line.starts_with("Topic"));
    let mut lines: Vec<_> = of_topics.map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn slowed_topic_has_gauges_and_others_have_none() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = World::new();
    world.topic("orders", 1, 0).await;
    world.topic("quick", 1, 0).await;
    let mut monitor = world.monitor();
    monitor.poll_once().await.unwrap();
    assert_eq!(topic_gauges(&recorder), Vec::<String>::new());
    poll(&world, &mut monitor, 3).await;
    let of_orders = |drain_secs, level| {
        [
            format!("TopicDrainTimeInSeconds{{topic=\"orders\"}} {drain_secs}"),
            format!("TopicPressureLevel{{topic=\"orders\"}} {level}"),
        ]
    };
    assert_eq!(topic_gauges(&recorder), of_orders(180, 1));
    world.clock.advance(POLL);
    world.due(&[]);
    monitor.poll_once().await.unwrap();
    assert_eq!(topic_gauges(&recorder), of_orders(0, 0));
}
