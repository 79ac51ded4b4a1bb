//! Notices of changes: their addressee, their time, and failures between the state and its notices.

use posthaste_core::stored::delivery::parse_delivery;
use posthaste_testkit::faulty::PortEffect;
use serde_json::{Value, json};

use super::*;

/// A world that sends notices to the topic `ops`, which has one subscription.
async fn telling(state: &FaultPlan, sending: &FaultPlan) -> World {
    let world = World {
        sending: sending.clone(),
        ..World::with(state)
    };
    let world = World {
        notices_topic: Some(TopicName::parse("ops").unwrap()),
        ..world
    };
    let record = json!({
        "v": 1, "name": "ops", "key1": "a", "key2": "b", "createdAt": 0, "updatedAt": 0,
        "settings": { "subscriptions": { "pager": { "endpoint": { "url": "https://pager.example.com/" } } } },
    });
    world.write("topics/ops.json", record.to_string()).await;
    world
}

impl World {
    /// Writes an object of the state bucket, past its faults.
    async fn write(&self, key: &str, text: String) {
        let store = FileStore::open(self.folder.path()).unwrap();
        store
            .put(key, Bytes::from(text), PutCondition::Always)
            .await
            .unwrap();
    }

    async fn stored(&self) -> PressureState {
        let store = FileStore::open(self.folder.path()).unwrap();
        PressureState::parse(&store.get(PRESSURE_KEY).await.unwrap().unwrap().bytes).unwrap()
    }

    fn batch_points(&self, count: u64) {
        self.machine.0.lock().unwrap().batch_points = Some(count);
    }

    /// The notices that were put into the delivery queue since the last time, in order.
    fn notices(&self) -> Vec<Value> {
        let sent = std::mem::take(&mut *self.deliveries.1.lock().unwrap());
        let deliveries = sent
            .iter()
            .map(|message| parse_delivery(&message.body).unwrap());
        let entries = deliveries.flat_map(|delivery| delivery.events);
        entries
            .map(|entry| {
                assert!(entry.marks.notice);
                let posthaste_core::model::EventPayload::Inline(text) = entry.payload else {
                    panic!("stored")
                };
                serde_json::from_slice(&text).unwrap()
            })
            .collect()
    }

    /// The notices in short: resource, level before and after, and time.
    fn told(&self) -> Vec<(String, u64)> {
        let short = |notice: &Value| {
            let data = |name: &str| notice["data"][name].as_str().unwrap().to_owned();
            let at = Timestamp::parse(notice["time"].as_str().unwrap()).unwrap();
            let expected = format!("pressure.{}.{}", data("resource"), at.as_millis());
            assert_eq!(notice["id"], expected);
            (
                format!(
                    "{} {} {}",
                    data("resource"),
                    data("previousLevel"),
                    data("level")
                ),
                at.since(START).as_secs(),
            )
        };
        self.notices().iter().map(short).collect()
    }
}

/// One poll after two seconds; whether it succeeded.
async fn poll(world: &World, monitor: &mut TestMonitor) -> bool {
    world.clock.advance(POLL);
    monitor.poll_once().await.is_ok()
}

fn is_send(effect: PortEffect<'_>) -> bool {
    effect.operation == PortOperation::SendBatch
}

fn rose(secs: u64) -> (String, u64) {
    ("batch-points normal medium".to_owned(), secs)
}

fn fell(secs: u64) -> (String, u64) {
    ("batch-points medium normal".to_owned(), secs)
}

#[tokio::test]
async fn every_change_is_told_once_and_what_stays_as_it_is_is_not() {
    let world = telling(&FaultPlan::none(), &FaultPlan::none()).await;
    let mut monitor = world.monitor();
    for (count, expected) in [
        (0, vec![]),
        (2000, vec![rose(4)]),
        (2000, vec![]),
        (1500, vec![]),
        (999, vec![fell(10)]),
        (0, vec![]),
    ] {
        world.batch_points(count);
        assert!(poll(&world, &mut monitor).await);
        assert_eq!(world.told(), expected, "{count}");
    }
    assert_eq!(world.stored().await.untold, []);
}

#[tokio::test]
async fn a_notice_says_what_producers_get() {
    let world = telling(&FaultPlan::none(), &FaultPlan::none()).await;
    let mut monitor = world.monitor();
    world.machine.0.lock().unwrap().database = Some(DatabaseResource::Disk(full(99)));
    monitor.poll_once().await.unwrap();
    let data = &world.notices()[0]["data"];
    let expected = json!({
        "resource": "database-disk", "previousLevel": "normal", "level": "high", "overallLevel": "high",
        "refusalBegan": true, "reading": 99, "unit": "percent",
        "thresholds": { "normal": 95, "medium": 97, "high": 99 }, "since": START.to_string(),
        "tarpit": "PT0S", "refusedTiers": ["internal", "standard", "bulk"],
        "text": "database-disk went from normal to high.",
    });
    assert_eq!(data, &expected);
}

#[tokio::test]
async fn without_an_addressee_no_notice_is_kept_or_asked_for() {
    let told = telling(&FaultPlan::none(), &FaultPlan::none()).await;
    let world = World {
        notices_topic: None,
        ..telling(&FaultPlan::none(), &FaultPlan::none()).await
    };
    for world in [&told, &world] {
        let mut monitor = world.monitor();
        for count in [0, 2000, 2000] {
            world.batch_points(count);
            assert!(poll(world, &mut monitor).await);
        }
    }
    assert_eq!((told.notices().len(), world.notices().len()), (1, 0));
    assert_eq!(world.stored().await.untold, []);
    // The topic's record, once: at the change.
    assert_eq!(told.gets(), world.gets() + 1);
    assert_eq!(told.puts(), world.puts());
}

/// A notice that could not be sent is sent by the next poll, with the same id.
#[tokio::test]
async fn unsent_notice_is_sent_by_the_next_poll_with_the_same_id() {
    for fault in [
        CallFault::Before(ErrorKind::Full),
        CallFault::After(ErrorKind::TimedOut),
    ] {
        let is_twice = matches!(fault, CallFault::After(_));
        let sending = FaultPlan::at(fault, |effect| is_send(effect) && effect.number < 20);
        let world = telling(&FaultPlan::none(), &sending).await;
        let mut monitor = world.monitor();
        world.batch_points(2000);
        let mut told = Vec::new();
        for _ in 0..12 {
            assert!(poll(&world, &mut monitor).await);
            told.extend(world.told());
        }
        assert!(sending.faults() > 1);
        told.dedup();
        assert_eq!(told, [rose(2)], "sent before the failure: {is_twice}");
        assert_eq!(world.stored().await.untold, []);
    }
}

/// A queue that hangs delays the monitor for three seconds at most.
#[tokio::test]
async fn hanging_queue_holds_the_monitor_for_three_seconds_at_most() {
    let sending = FaultPlan::at(CallFault::HangBefore, is_send);
    let world = telling(&FaultPlan::none(), &sending).await;
    let mut monitor = world.monitor();
    world.batch_points(2000);
    let wait = async {
        while world.clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        world.clock.advance(Duration::from_secs(3));
    };
    let (state, ()) = tokio::join!(monitor.poll_once(), wait);
    assert_eq!(state.unwrap().untold.len(), 1);
    assert_eq!(world.stored().await.untold.len(), 1);
}

#[tokio::test]
async fn a_topic_that_is_not_there_or_broken_keeps_nobody_waiting() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let world = telling(&FaultPlan::none(), &FaultPlan::none()).await;
    world.write("topics/ops.json", "{".to_owned()).await;
    let mut monitor = world.monitor();
    world.batch_points(2000);
    assert!(poll(&world, &mut monitor).await);
    world.store.delete("topics/ops.json").await.unwrap();
    world.batch_points(0);
    assert!(poll(&world, &mut monitor).await);
    assert!(poll(&world, &mut monitor).await);
    assert_eq!(
        (world.notices(), world.stored().await.untold),
        (vec![], vec![])
    );
    let text = recorder.handle().render();
    assert!(text.contains("NoticeNotSentCount 2"), "{text}");
}

/// Notices that cannot be sent for too long are given up, the oldest first, and counted.
#[tokio::test]
async fn oldest_unsent_notices_are_given_up_and_counted() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let sending = FaultPlan::at(CallFault::Before(ErrorKind::Full), is_send);
    let world = telling(&FaultPlan::none(), &sending).await;
    let mut monitor = world.monitor();
    for n in 0..40_u64 {
        world.batch_points(if n % 2 == 0 { 2000 } else { 0 });
        assert!(poll(&world, &mut monitor).await);
    }
    assert_eq!(world.stored().await.untold.len(), UNTOLD_MAX);
    sending.switch(false);
    assert!(poll(&world, &mut monitor).await);
    let told = world.told();
    assert_eq!(
        (told.len(), &told[0], &told[31]),
        (UNTOLD_MAX, &rose(18), &fell(80))
    );
    let text = recorder.handle().render();
    assert!(text.contains("NoticeNotSentCount 8"), "{text}");
    assert!(text.contains("NoticeSentCount 32"), "{text}");
}

/// A monitor that dies between the state and its notice has a successor that sends the same id.
#[tokio::test]
async fn successor_of_a_dead_monitor_sends_the_same_id() {
    let sending = FaultPlan::at(CallFault::HangBefore, |effect| {
        is_send(effect) && effect.number < 4
    });
    let world = telling(&FaultPlan::none(), &sending).await;
    world.batch_points(2000);
    sending.kill(world.monitor().poll_once()).await;
    assert_eq!(world.told(), []);
    let mut successor = world.monitor();
    assert!(poll(&world, &mut successor).await);
    assert!(poll(&world, &mut successor).await);
    // The change of the poll at the start, by the poll after it.
    assert_eq!(world.told(), [rose(0)]);
    assert_eq!(world.stored().await.untold, []);
}

#[tokio::test]
async fn two_monitors_at_once_tell_once() {
    for offset_ms in [0, 1, 500, 1000, 1499] {
        let world = telling(&FaultPlan::none(), &FaultPlan::none()).await;
        let mut one = world.monitor();
        let mut other = world.monitor();
        let [before, after] = [offset_ms, 2000 - offset_ms].map(Duration::from_millis);
        for count in [0, 0, 2000, 2000, 0, 0] {
            world.batch_points(count);
            one.poll_once().await.unwrap();
            world.clock.advance(before);
            other.poll_once().await.unwrap();
            world.clock.advance(after);
        }
        assert_eq!(
            world.told(),
            [rose(4), fell(8)],
            "at an offset of {offset_ms} ms"
        );
    }
}

#[tokio::test]
async fn monitor_that_loses_the_race_sends_no_notice() {
    let lost = CallFault::Before(ErrorKind::PreconditionFailed);
    let plan = FaultPlan::at(lost, |effect| effect.operation == PortOperation::Put);
    let world = telling(&plan, &FaultPlan::none()).await;
    world.batch_points(2000);
    world.monitor().poll_once().await.unwrap();
    assert_eq!((plan.faults(), world.told()), (1, vec![]));
}

#[tokio::test]
async fn change_written_without_a_response_is_sent() {
    let is_first =
        |effect: PortEffect<'_>| effect.operation == PortOperation::Put && effect.number < 2;
    let plan = FaultPlan::at(CallFault::After(ErrorKind::TimedOut), is_first);
    let world = telling(&plan, &FaultPlan::none()).await;
    world.batch_points(2000);
    let mut monitor = world.monitor();
    assert!(!poll(&world, &mut monitor).await);
    assert_eq!((plan.faults(), world.told()), (1, vec![]));
    assert!(poll(&world, &mut monitor).await);
    assert_eq!(world.told(), [rose(2)]);
}

/// Switched off, the monitor tells that the pressure is over, and then writes nothing.
#[tokio::test]
async fn switching_off_ends_pressure_notices_and_then_all_writes() {
    let sending = FaultPlan::at(CallFault::Before(ErrorKind::Full), is_send);
    let mut world = telling(&FaultPlan::none(), &sending).await;
    world.batch_points(2000);
    world.monitor().poll_once().await.unwrap();
    assert_eq!(world.stored().await.untold.len(), 1);
    world.settings.enable_resource_monitoring = false;
    let mut monitor = world.monitor();
    assert!(poll(&world, &mut monitor).await);
    assert_eq!(
        (world.stored().await.untold.len(), world.told()),
        (2, vec![])
    );
    sending.switch(false);
    assert!(poll(&world, &mut monitor).await);
    assert_eq!(world.told(), [rose(0), fell(2)]);
    assert!(poll(&world, &mut monitor).await);
    let puts = world.puts();
    assert!(poll(&world, &mut monitor).await);
    assert_eq!(
        (world.stored().await.untold, world.told(), world.puts()),
        (vec![], vec![], puts)
    );
}

/// A monitor that stood still for an hour tells what became of the change that it told.
#[tokio::test]
async fn monitor_that_paused_an_hour_reports_the_later_change() {
    let world = telling(&FaultPlan::none(), &FaultPlan::none()).await;
    let mut monitor = world.monitor();
    world.batch_points(2000);
    assert!(poll(&world, &mut monitor).await && poll(&world, &mut monitor).await);
    assert_eq!(world.told(), [rose(2)]);
    world.clock.advance(Duration::from_hours(1));
    world.batch_points(0);
    world.monitor().poll_once().await.unwrap();
    assert_eq!(world.told(), [fell(3604)]);
}

#[tokio::test]
async fn unreadable_state_leads_to_no_notice() {
    let world = telling(&FaultPlan::none(), &FaultPlan::none()).await;
    world.write(PRESSURE_KEY, "{]".to_owned()).await;
    world.monitor().poll_once().await.unwrap();
    assert_eq!(world.told(), []);
}

/// A topic that is slowed by itself is told of as a resource is, and so is its end.
#[tokio::test]
async fn slowed_topic_is_told_with_its_subscription() {
    let world = telling(&FaultPlan::none(), &FaultPlan::none()).await;
    let record = json!({
        "v": 1, "name": "Orders", "key1": "a", "key2": "b", "createdAt": 0, "updatedAt": 0,
        "settings": { "subscriptions": { "Slow": { "endpoint": { "url": "https://slow.example.com/" } } } },
    });
    world.write("topics/orders.json", record.to_string()).await;
    let mut monitor = world.monitor();
    let due = |count: u64| {
        world.deliveries.set(count);
        let group = DueOfGroup {
            group: "orders.slow".into(),
            due: count,
            bytes: 0,
        };
        *world.deliveries.2.lock().unwrap() = Some(vec![group]);
    };
    due(900);
    let mut told = Vec::new();
    let waiting = world.drain.clone();
    let names = (
        TopicName::parse("orders").unwrap(),
        posthaste_core::model::SubscriptionName::parse("slow").unwrap(),
    );
    let waits = waiting.wait_for_own_place(&names.0, &names.1, Duration::ZERO);
    // A minute until it is slow, and another one until it is refused.
    for _ in 0..62 {
        assert!(poll(&world, &mut monitor).await);
        told.extend(world.notices());
    }
    waits.end_with_place();
    due(0);
    assert!(poll(&world, &mut monitor).await);
    told.extend(world.notices());
    let short = |notice: &Value| {
        assert_eq!(
            notice["subject"],
            "/pressure/drain-time/topics/Orders/subscriptions/Slow"
        );
        let data = &notice["data"];
        let levels = ["previousLevel", "level"].map(|name| data[name].as_str().unwrap().to_owned());
        (levels, data["refusalBegan"] == true, data["due"].as_u64())
    };
    let told: Vec<_> = told.iter().map(short).collect();
    let of = |before: &str, after: &str, refused, due| {
        ([before.to_owned(), after.to_owned()], refused, Some(due))
    };
    let expected = [
        of("normal", "medium", false, 900),
        of("medium", "medium", true, 900),
        of("medium", "normal", false, 0),
    ];
    assert_eq!(told, expected);
}
