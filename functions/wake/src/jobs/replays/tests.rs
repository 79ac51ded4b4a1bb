//! All replays of a run.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use posthaste_core::model::{RecoveryPolicy, SubscriptionCreation};
use posthaste_core::release::recovery::OutageLetters;
use posthaste_core::stored::{RecoveryJob, RecoveryMark, ReplayRecord};
use posthaste_testkit::records::{subscription_name, topic_name};
use posthaste_testkit::{FaultPlan, ManualClock, PortOperation};
use serde_json::json;

use super::*;
use crate::testing::{Kit, subscription};

const MINUTE: Duration = Duration::from_mins(1);

const POLICY: RecoveryPolicy = RecoveryPolicy {
    enabled: true,
    within: Duration::from_hours(24),
    rate_per_second: 10,
};

fn kit() -> Kit {
    let kit = Kit::new();
    subscribe(&kit);
    kit
}

fn subscribe(kit: &Kit) {
    let recovers = json!({ "recovery": { "enabled": true } });
    kit.topic(json!({ "subscriptions": { "billing": subscription(recovers) } }));
}

fn mark(kit: &Kit, job: Option<&str>) -> RecoveryMark {
    let now = kit.clock.now();
    let letters = OutageLetters {
        topic: topic_name("orders"),
        subscription: subscription_name("billing"),
        identity: None,
        accepted_at: now,
        outages: [(now, 1)].into(),
        written_at: now,
    };
    RecoveryMark {
        job: job.map(|id| RecoveryJob {
            id: id.to_owned(),
            created_at: now,
        }),
        ..letters.updated_mark(None).unwrap().unwrap()
    }
}

fn write_mark(kit: &Kit, mark: &RecoveryMark) {
    let key = layout::recovery_mark_key(&mark.topic, &mark.subscription);
    kit.store.write(&key, mark.render());
}

/// An open recovery.
fn begin_recovery(kit: &Kit, id: &str) {
    let created_at = kit.clock.now();
    let id = id.to_owned();
    let job = RecoveryJob { id, created_at };
    let record = mark(kit, None).replay_record(&job, &SubscriptionCreation::UNKNOWN, POLICY);
    begin(kit, &record);
}

fn begin(kit: &Kit, record: &ReplayRecord) {
    kit.store
        .write(&layout::replaying_mark_key(&record.id), record.render());
    kit.store
        .write(&layout::replay_record_key(&record.id), record.render());
}

async fn stored(kit: &Kit, id: &str) -> ReplayRecord {
    ReplayJob::load(&kit.ports, id)
        .await
        .unwrap()
        .unwrap()
        .record
}

/// No run would ever permit it.
#[tokio::test]
async fn recovery_that_its_mark_does_not_name_is_cancelled() {
    for named in [None, Some(None), Some(Some("other")), Some(Some("own"))] {
        let kit = kit();
        if let Some(job) = named {
            write_mark(&kit, &mark(&kit, job));
        }
        begin_recovery(&kit, "own");
        replay_all(kit.run(), &ReplayWalk::default(), &RecoveryPermits::new()).await;
        let is_open = named == Some(Some("own"));
        let expected = if is_open {
            ReplayState::Running
        } else {
            ReplayState::Cancelled
        };
        assert_eq!(stored(&kit, "own").await.state, expected, "{named:?}");
        let open = kit.store.keys(layout::REPLAYING);
        assert_eq!(open.is_empty(), !is_open, "{named:?}");
    }
}

/// A list has three of them.
#[tokio::test]
async fn replay_behind_many_that_rest_is_worked_on() {
    let kit = kit();
    write_mark(&kit, &mark(&kit, Some("a0")));
    let mut permits = RecoveryPermits::new();
    for number in 0..10 {
        let id = format!("a{number}");
        begin_recovery(&kit, &id);
        permits.insert(id, RecoveryPermit::Rests);
    }
    let record = ReplayRecord::new(
        "z".to_owned(),
        topic_name("orders"),
        (subscription_name("billing"), &SubscriptionCreation::UNKNOWN),
        serde_json::from_value(json!({})).unwrap(),
        kit.clock.now(),
    );
    begin(&kit, &record);
    replay_all(kit.run(), &ReplayWalk::default(), &permits).await;
    assert_eq!(stored(&kit, "z").await.state, ReplayState::Done);
}

/// The time of each run is over after one replay.
#[tokio::test]
async fn next_run_goes_on_behind_the_last_replay() {
    let clock = Arc::new(OnceLock::<ManualClock>::new());
    let seen = Arc::new(Mutex::new(String::new()));
    let its_clock = Arc::clone(&clock);
    let ids = Arc::clone(&seen);
    let plan = FaultPlan::by(move |effect| {
        let id = layout::replay_of(effect.key);
        if let Some(id) = id.filter(|_| effect.operation == PortOperation::Get) {
            ids.lock().push_str(id);
            its_clock.get().unwrap().advance(MINUTE);
        }
        None
    });
    let kit = Kit::with(&plan, &FaultPlan::none());
    assert!(clock.set(kit.clock.clone()).is_ok());
    subscribe(&kit);
    let mut permits = RecoveryPermits::new();
    for id in ["a", "b", "c", "d", "e"] {
        begin_recovery(&kit, id);
        permits.insert(id.to_owned(), RecoveryPermit::Rests);
    }
    let walk = ReplayWalk::default();
    for _ in 0..7 {
        replay_all(kit.run(), &walk, &permits).await;
    }
    assert_eq!(*seen.lock(), "abcdeab");
    // With time for all, each is looked at once.
    plan.switch(false);
    let listed = plan.effects();
    replay_all(kit.run(), &walk, &permits).await;
    assert!(plan.effects() > listed);
    assert_eq!(*walk.0.lock(), None);
}
