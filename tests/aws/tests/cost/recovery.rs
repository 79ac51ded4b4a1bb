//! The recovery of the dead letters of an outage, from their mark to the queue.

use std::time::Duration;

use posthaste_core::model::{SubscriptionName, Timestamp};
use posthaste_core::release::recovery::OutageLetters;
use posthaste_core::stored::{RecoveryMark, layout};
use posthaste_ports::Clock;
use serde_json::json;

use crate::bill::Requests;
use crate::prices::{S3_GET, S3_PUT, SQS_FAIR_REQUEST};
use crate::world::{World, identity, topic_name};

const MINUTE: Duration = Duration::from_mins(1);

const OBJECTS: usize = 10;
const LETTERS_OF_OBJECT: usize = 100;

/// Minutes in which all of it is done: five of health, the ramp, and two to see that it has ended.
const MINUTES: u64 = 20;

/// Most requests of wake in those minutes beside its look for work: for each letter a tenth of a
/// send; for each object two gets; and in each minute what tells how the endpoint, the replay and
/// its subscription are.
const SENDS_MAX: u64 = 130;
const PUTS_MAX: u64 = 100;
const GETS_MAX: u64 = 400;

/// The most that a million letters of outages of this size cost, in dollars.
const MILLION_MAX: f64 = 1.00;

/// The dead letters of an object, given up while their endpoint was not well.
fn letters(object: usize, at: Timestamp) -> String {
    let letter = |number: usize| {
        json!({
            "specversion": "1.0", "id": format!("{object}-{number}"), "source": "/s", "type": "t",
            "data": { "refusedUntil": 0 },
        })
        .to_string()
        .trim_end_matches('}')
        .to_owned()
            + &format!(
                r#","deadletterreason":"TimeToLiveExceeded","deliveryattempts":1,"publishtime":"{0}","outagesince":"{0}"}}"#,
                at.to_event_grid()
            )
    };
    let all: Vec<_> = (0..LETTERS_OF_OBJECT).map(letter).collect();
    format!("[{}]", all.join(","))
}

#[tokio::test]
async fn recovery_of_a_thousand_letters_asks_for_so_much() {
    let billing = json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "recovery": { "ratePerSecond": 1000 },
    });
    let mut world = World::new(&json!({ "billing": billing })).await;
    let topic = topic_name();
    let subscription = SubscriptionName::parse("billing").unwrap();
    let began = world.clock.now();
    for object in 0..OBJECTS {
        let key = layout::dead_letter_key(&topic, &subscription, began, &object.to_string());
        world.put(&key, letters(object, began));
    }
    let outage = OutageLetters {
        topic: topic.clone(),
        subscription: subscription.clone(),
        identity: Some(identity()),
        accepted_at: began,
        outages: [(began, (OBJECTS * LETTERS_OF_OBJECT) as u64)].into(),
        written_at: began,
    };
    let mark = outage.updated_mark(None).unwrap().unwrap();
    let key = layout::recovery_mark_key(&topic, &subscription);
    world.put(&key, mark.render());
    for _ in 0..MINUTES {
        world.clock.advance(MINUTE);
        world.wake().await;
        world.deliver_all().await;
    }
    assert_eq!(world.take_delivered(), OBJECTS * LETTERS_OF_OBJECT);
    let rests = RecoveryMark::parse(&world.object(&key).unwrap()).unwrap();
    assert!(rests.is_empty() && rests.job.is_none(), "{rests:?}");
    let Requests {
        sends, puts, gets, ..
    } = world.bill.wake;
    let dollars = sends as f64 * SQS_FAIR_REQUEST + puts as f64 * S3_PUT + gets as f64 * S3_GET;
    let million = dollars * 1000.0;
    println!("{sends} sends, {puts} puts, {gets} gets: ${million:.2} a million");
    assert!(
        sends <= SENDS_MAX && puts <= PUTS_MAX && gets <= GETS_MAX,
        "{sends} {puts} {gets}"
    );
    assert!(million <= MILLION_MAX, "${million:.3}");
}
