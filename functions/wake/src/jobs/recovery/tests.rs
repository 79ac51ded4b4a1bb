//! Steps of a mark, and what changes beside them.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{DeadLetter, DeadLetterReason, EventPayload, Timestamp};
use posthaste_core::release::recovery::OutageLetters;
use posthaste_core::stored::dead_letter::dead_letter_record;
use posthaste_core::stored::{DeadLetterArray, RecoveryJob, RecoveryMark};
use posthaste_ports::Clock;
use posthaste_testkit::records::{delivery, subscription_name, topic_name};
use posthaste_testkit::{FaultPlan, PortOperation};
use serde_json::{Value, json};

use super::probe::send_probe;
use super::*;
use crate::jobs::recovery_permits::RecoveryPermit;
use crate::testing::{Kit, TestPorts, subscription};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

/// A change that happens while a probe looks for its letter.
type Change = Box<dyn Fn(&Kit) + Send + Sync>;

fn key() -> String {
    layout::recovery_mark_key(&topic_name("orders"), &subscription_name("billing"))
}

fn subscribe(kit: &Kit, settings: Value) {
    kit.topic(json!({ "subscriptions": { "billing": subscription(settings) } }));
}

/// A kit with a subscription that recovers. Meanwhile something happens, at each effect that
/// is meant.
fn kit(
    is_meant: fn(PortOperation, &str) -> bool,
    meanwhile: impl Fn(&Kit) + Send + Sync + 'static,
) -> Arc<Kit> {
    let shared = Arc::new(OnceLock::<Weak<Kit>>::new());
    let of_plan = Arc::clone(&shared);
    let plan = FaultPlan::by(move |effect| {
        let kit = of_plan.get().and_then(Weak::upgrade);
        if let Some(kit) = kit.filter(|_| is_meant(effect.operation, effect.key)) {
            meanwhile(&kit);
        }
        None
    });
    let kit = Arc::new(Kit::with(&plan, &plan));
    assert!(shared.set(Arc::downgrade(&kit)).is_ok());
    subscribe(&kit, json!({ "recovery": { "enabled": true } }));
    kit
}

fn quiet() -> Arc<Kit> {
    kit(|_, _| false, |_| {})
}

/// A letter of an outage that began an hour ago, written at this time.
fn letter(kit: &Kit, at: Timestamp, id: &str) {
    let names = (topic_name("orders"), subscription_name("billing"));
    let key = layout::dead_letter_key(&names.0, &names.1, at, id);
    let text = json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t" });
    let payload = Bytes::from(text.to_string());
    let dead = DeadLetter {
        reason: DeadLetterReason::TimeToLiveExceeded,
        delivery: delivery(names, id, [EventPayload::Inline(payload.clone())], at),
        storage: None,
        object: None,
        dropped: false,
        outage_since: Some(at),
    };
    let mut gathered = DeadLetterArray::default();
    gathered.push(&dead_letter_record(
        &dead,
        &dead.delivery.events[0],
        &payload,
    ));
    kit.store.write_at(&key, gathered.into_object(), at);
}

fn letters(now: Timestamp) -> OutageLetters {
    OutageLetters {
        topic: topic_name("orders"),
        subscription: subscription_name("billing"),
        identity: None,
        accepted_at: now,
        outages: [(now, 1)].into(),
        written_at: now,
    }
}

/// One letter more, as deadletter counts it.
fn count_one(kit: &Kit) {
    let now = kit.clock.now();
    let mark = letters(now).updated_mark(stored(kit)).unwrap().unwrap();
    kit.store.write(&key(), mark.render());
}

fn stored(kit: &Kit) -> Option<RecoveryMark> {
    let (_, bytes) = kit.store.objects_under(&key()).pop()?;
    Some(RecoveryMark::parse(&bytes).unwrap())
}

fn look(kit: &Kit) -> RecoveryContext<'_, TestPorts> {
    RecoveryContext {
        run: kit.run(),
        notices_topic: None,
        book: HealthBook::default(),
        probed: BTreeSet::new(),
        permits: RecoveryPermits::new(),
    }
}

/// Sends a probe for the stored mark. Answers the number of messages.
async fn probes(kit: &Kit) -> usize {
    let mut look = look(kit);
    let marked = StoredMark::load(&kit.ports, &key()).await.unwrap();
    let mut marked = marked.unwrap();
    let to = marked.find_receiver(&kit.ports).await.unwrap().unwrap();
    let probed = Box::pin(send_probe(&mut look, &mut marked, &to, None)).await;
    probed.unwrap();
    kit.queue.take_bodies().len()
}

#[tokio::test]
async fn probe_is_noted_while_deadletter_counts_more() {
    let kit = kit(
        |operation, _| operation == PortOperation::SendBatch,
        count_one,
    );
    let now = kit.clock.now();
    letter(&kit, now, "a");
    count_one(&kit);
    kit.clock.advance(HOUR);
    assert_eq!(probes(&kit).await, 1);
    let mark = stored(&kit).unwrap();
    assert_eq!((mark.letters, mark.probes.len()), (2, 1));
}

/// The probe's letter was chosen before that.
#[tokio::test]
async fn probe_is_not_sent_where_its_subscription_or_its_mark_changed() {
    let reads_letter = |operation, key: &str| {
        operation == PortOperation::Get && key.starts_with("ORDERS/BILLING/")
    };
    let recovery = json!({ "enabled": true });
    let paused = json!({
        "recovery": recovery,
        "status": { "state": "Paused", "since": "1970-01-01T00:00:00Z" },
    });
    let changes: [(Change, usize); 5] = [
        (Box::new(move |kit| subscribe(kit, paused.clone())), 0),
        (
            Box::new(|kit| subscribe(kit, json!({ "recovery": { "enabled": false } }))),
            0,
        ),
        (Box::new(|kit| kit.topic(json!({ "subscriptions": {} }))), 0),
        (
            Box::new(|kit| {
                let cancelled = RecoveryMark {
                    cancelled_at: Some(kit.clock.now()),
                    ..stored(kit).unwrap()
                };
                kit.store.write(&key(), cancelled.render());
            }),
            0,
        ),
        (Box::new(count_one), 1),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let kit = kit(reads_letter, change);
        letter(&kit, kit.clock.now(), "a");
        count_one(&kit);
        kit.clock.advance(SECOND);
        assert_eq!(probes(&kit).await, expected, "{number}");
        let noted = stored(&kit).unwrap().probes.len();
        assert_eq!(noted, expected, "{number}");
    }
}

/// A list has three of them, and keys do not sort by time.
#[tokio::test]
async fn letter_probes_behind_many_older_ones() {
    let kit = quiet();
    for number in 0..200 {
        let at = Timestamp::parse("2026-01-07T04:05:00Z").unwrap();
        letter(&kit, at, &format!("old-{number}"));
    }
    kit.clock.advance(HOUR);
    letter(&kit, kit.clock.now(), "a");
    count_one(&kit);
    kit.clock.advance(HOUR);
    assert_eq!(probes(&kit).await, 1);
    let probed = stored(&kit).unwrap().probes.remove(0).letter;
    assert!(probed.object.ends_with("/a.json"), "{probed:?}");
}

/// The run that began it was cut before it wrote the replay.
#[tokio::test]
async fn replay_opened_late_rests_until_its_endpoint_has_been_well() {
    for (minutes, runs) in [(None, false), (Some(30), true)] {
        let kit = quiet();
        count_one(&kit);
        kit.clock.advance(HOUR);
        let now = kit.clock.now();
        let well_since =
            minutes.map(|minutes: u64| Timestamp::from_millis(now.as_millis() - minutes * 60_000));
        let named = RecoveryMark {
            job: Some(RecoveryJob {
                id: "20260307T050500Z-x".to_owned(),
                created_at: now,
            }),
            well_since,
            ..stored(&kit).unwrap()
        };
        kit.store.write(&key(), named.render());
        let mut look = look(&kit);
        check_mark(&mut look, &key()).await.unwrap();
        assert_eq!(kit.store.keys(layout::REPLAYS).len(), 1);
        let permit = look.permits.get("20260307T050500Z-x").unwrap();
        let expected = if runs {
            RecoveryPermit::Runs(Vec::new())
        } else {
            RecoveryPermit::Rests
        };
        assert_eq!(*permit, expected);
    }
}
