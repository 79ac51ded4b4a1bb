use std::time::Duration;

use posthaste_core::health::{HealthBook, MissedFacts, SeenTry, TryResult};
use posthaste_core::model::{KeepingMissed, Timestamp};
use posthaste_core::stored::HEALTH;
use posthaste_ports::{ErrorKind, ObjectStore};
use posthaste_testkit::records::{topic_name, topic_record, topic_settings};
use posthaste_testkit::{CallFault, FaultPlan, PortOperation};
use serde_json::{Value, json};

use super::*;
use crate::testing::{Kit, subscription};

const FAILED: TryResult = TryResult::Failed {
    outcome: None,
    status: Some(401),
    is_last: true,
};
const BUSY: TryResult = TryResult::Failed {
    outcome: None,
    status: Some(503),
    is_last: false,
};
const TOGETHER: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The topic `orders`, whose notices nobody gets, with this subscription.
fn orders(kit: &Kit, billing: Value) {
    kit.topic(json!({ "subscriptions": { "Billing": subscription(billing) } }));
}

/// The topic `orders`, whose subscriptions fail together on one link.
fn orders_that_fail_together(kit: &Kit) {
    let all = TOGETHER.map(|name| (name.to_owned(), subscription(json!({}))));
    kit.topic(json!({ "subscriptions": serde_json::Map::from_iter(all) }));
    for name in TOGETHER {
        for _ in 0..10 {
            note_of(kit, &format!("orders.{name}"), kit.clock.now(), FAILED);
        }
    }
}

fn fail(kit: &Kit, count: usize) {
    for _ in 0..count {
        note(kit, kit.clock.now(), FAILED);
    }
}

fn note(kit: &Kit, at: Timestamp, result: TryResult) {
    note_of(kit, "orders.billing", at, result);
}

fn note_of(kit: &Kit, key: &str, at: Timestamp, result: TryResult) {
    let seen = SeenTry {
        key: "a",
        accepted_at: at,
        at,
        is_first: false,
        result,
    };
    kit.ports
        .links
        .arrivals()
        .note_try(|| key.to_owned(), &seen);
}

async fn book(kit: &Kit) -> HealthBook {
    let object = kit.store.get(HEALTH).await.unwrap();
    object
        .map(|object| HealthBook::parse(&object.bytes).unwrap())
        .unwrap_or_default()
}

#[tokio::test]
async fn incident_is_known_and_marked_where_nobody_is_told() {
    let kit = Kit::new();
    orders(&kit, json!({}));
    fail(&kit, 10);
    check_health(kit.run(), None).await;
    let found = book(&kit).await;
    let health = found.subscription("orders.billing").unwrap();
    assert!(health.incident.as_ref().unwrap().told);
    // In a minute of its own: what is judged is the share of the last two.
    kit.clock.advance(Duration::from_mins(2));
    note(&kit, kit.clock.now(), TryResult::Arrived);
    check_health(kit.run(), None).await;
    let found = book(&kit).await;
    assert_eq!(found.subscription("orders.billing").unwrap().incident, None);
}

#[tokio::test]
async fn subscription_that_is_paused_or_gone_leaves_the_book() {
    let paused = json!({ "status": { "state": "Paused", "since": "2026-03-07T04:05:00Z" } });
    for settings in [Some(paused), None] {
        let kit = Kit::new();
        match settings {
            Some(settings) => orders(&kit, settings),
            None => kit.topic(json!({})),
        }
        fail(&kit, 10);
        check_health(kit.run(), None).await;
        assert!(book(&kit).await.is_empty());
    }
}

#[tokio::test]
async fn topic_that_cannot_be_read_keeps_its_tries() {
    let kit = Kit::new();
    kit.store.write("topics/orders.json", "{");
    fail(&kit, 10);
    check_health(kit.run(), None).await;
    let found = book(&kit).await;
    let health = found.subscription("orders.billing").unwrap();
    assert_eq!((health.tries.in_row(), &health.incident), (10, &None));
}

/// The object of the topic `broken` is damaged: its own notice can never be sent.
#[tokio::test]
async fn damaged_topic_keeps_nobody_elses_notices() {
    let plan = FaultPlan::at(CallFault::Before(ErrorKind::Damaged), |effect| {
        effect.key == "topics/broken.json"
    });
    let kit = Kit::with(&plan, &FaultPlan::none());
    kit.store.write("topics/broken.json", "{}");
    orders_that_fail_together(&kit);
    note_of(&kit, "broken.billing", kit.clock.now(), BUSY);
    check_health(kit.run(), None).await;
    let found = book(&kit).await;
    assert!(found.failing_links().all(|(_, incident)| incident.told));
    assert_eq!(found.failing_links().count(), 1);
    kit.clock.advance(Duration::from_hours(1));
    check_health(kit.run(), None).await;
    let found = book(&kit).await;
    let health = found.subscription("broken.billing").unwrap();
    assert!(health.delayed.unwrap().told && health.incident.is_none());
}

/// The record of its topic may be mended.
#[tokio::test]
async fn notice_of_missed_events_waits_for_a_topic_that_is_broken() {
    let kit = Kit::new();
    let since = kit.clock.now();
    let disabled = MissedFacts::Disabled(since, KeepingMissed::Always);
    let mut before = HealthBook::default();
    before.add_missed("orders.billing", 1, 90, Some(100));
    let facts = BTreeMap::from([("orders.billing".to_owned(), disabled)]);
    before.decide_missed(&facts, since);
    kit.store.write(HEALTH, before.render());
    let is_told = async |kit: &Kit| {
        check_health(kit.run(), None).await;
        let missed = *book(kit).await.missed_by("orders.billing").unwrap();
        missed.end.unwrap().told
    };
    kit.store.write("topics/orders.json", "{");
    assert!(!is_told(&kit).await);
    let status = json!({ "state": "Disabled", "since": since.to_string() });
    orders(
        &kit,
        json!({ "status": status, "whileDisabled": "deadLetter" }),
    );
    assert!(is_told(&kit).await);
}

/// The receivers of the link's notice are not known, because the topics cannot be listed.
#[tokio::test]
async fn notice_that_cannot_be_sent_keeps_no_other() {
    let plan = FaultPlan::at(CallFault::Before(ErrorKind::Other), |effect| {
        effect.operation == PortOperation::List && effect.key.starts_with("topics/")
    });
    let kit = Kit::with(&plan, &FaultPlan::none());
    orders_that_fail_together(&kit);
    let elsewhere = json!({ "endpoint": { "url": "https://b.example/" } });
    let settings = json!({ "subscriptions": { "Billing": subscription(elsewhere) } });
    let invoices = topic_record(
        topic_name("invoices"),
        topic_settings(settings),
        kit.clock.now(),
    );
    kit.store.write("topics/invoices.json", invoices.render());
    for _ in 0..10 {
        note_of(&kit, "invoices.billing", kit.clock.now(), FAILED);
    }
    for is_listed in [false, true] {
        plan.switch(!is_listed);
        check_health(kit.run(), None).await;
        let found = book(&kit).await;
        let health = found.subscription("invoices.billing").unwrap();
        assert!(health.incident.as_ref().unwrap().told, "{is_listed}");
        let links: Vec<_> = found
            .failing_links()
            .map(|(_, incident)| incident.told)
            .collect();
        assert_eq!(links, [is_listed]);
    }
}

#[tokio::test]
async fn incident_in_which_nothing_happens_lets_wake_rest() {
    let kit = Kit::new();
    orders(&kit, json!({}));
    fail(&kit, 10);
    for (hours, is_idle) in [(0, false), (1, true)] {
        kit.clock.advance(Duration::from_hours(hours));
        let run = kit.run();
        check_health(run, None).await;
        assert_eq!(run.was_idle(), is_idle, "{hours}");
        let found = book(&kit).await;
        let health = found.subscription("orders.billing").unwrap();
        assert!(health.incident.as_ref().unwrap().told);
    }
}

#[tokio::test]
async fn healthy_minute_writes_nothing() {
    let kit = Kit::new();
    orders(&kit, json!({}));
    let now = kit.clock.now();
    let seen = SeenTry {
        key: "a",
        accepted_at: now,
        at: now,
        is_first: true,
        result: TryResult::Arrived,
    };
    let arrivals = kit.ports.links.arrivals();
    for _ in 0..100 {
        arrivals.note_try(|| "orders.billing".to_owned(), &seen);
    }
    check_health(kit.run(), None).await;
    assert_eq!(kit.store.keys("health/"), [""; 0]);
}
