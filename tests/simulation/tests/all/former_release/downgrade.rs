//! The way back to a program that does not know what this one leaves, and forward again.

use posthaste_core::api::{ReplayState, StatusState, StatusView};
use posthaste_core::model::{SendFailure, TopicName};
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, World};
use serde_json::{Value, json};

use super::moved::Left;
use super::{
    MINUTE, SECOND, Seen, all_gone, arrived, change, dead_letters, each, name, publish,
    publish_events, received, resume, seen_in, sorted, upgraded,
};

/// The replay that this program has accepted.
const REPLAY: &str = "20231114T230000Z-0b8b9c5e6a0d";

/// The versions of this program, as those of the next.
const TO_NEXT: &[(&str, &str)] = &[
    (r#""v":3,"n":"#, r#""v":4,"n":"#),
    (r#"{"v":2,"id""#, r#"{"v":8,"id""#),
];

const FROM_NEXT: &[(&str, &str)] = &[
    (r#""v":4,"n":"#, r#""v":3,"n":"#),
    (r#"{"v":8,"id""#, r#"{"v":2,"id""#),
];

/// The state that the former release left after two hours on this program's state.
const GAVE_BACK: &str = include_str!("fixtures/gave-back.json");

/// A full queue and bucket, everything in the versions of this program.
pub(super) async fn full() -> World {
    let world = upgraded();
    world
        .endpoint
        .answer_at("down.", Answer::Failure(SendFailure::Socket));
    // The messages of the former release go, so that the rest is this program's.
    world.deliver_all().await;
    world.pass_by(10 * SECOND, 2 * MINUTE).await;
    world.endpoint.take();
    change(&world, |_| ()).await;
    pause(&world).await;
    for place in ["delayed.", "parked."] {
        world.endpoint.answer_at(place, Answer::Status(500));
    }
    world.endpoint.answer_at("letters.", Answer::Status(400));
    world
        .endpoint
        .answer_at("named.", Answer::With(429, "retry-after", "600"));
    world.clock.advance(SECOND);
    for subscription in ["delayed", "parked", "held", "named", "down"] {
        publish(&world, subscription, 90..92).await;
    }
    publish_events(&world, "letters", [90, 91].map(with_own_reason).into()).await;
    world.deliver_all().await;
    publish(&world, "flight", 90..92).await;
    assert_eq!(world.receive(QueueName::Deliveries).await.len(), 1);
    publish(&world, "waiting", 90..92).await;
    begin_replay(&world).await;
    world.endpoint.take();
    world
}

/// An event with a member that its dead letter has too.
fn with_own_reason(number: u32) -> Value {
    let id = format!("letters-{number}");
    json!({
        "specversion": "1.0", "id": id, "source": "/shop", "type": "letters", "deadletterreason": "mine",
    })
}

async fn pause(world: &World) {
    let paused = StatusView::new(StatusState::Paused, None, world.clock.now());
    change(world, |record| {
        record
            .settings
            .subscriptions
            .get_mut(&name("held"))
            .expect("the subscription")
            .status = Some(paused);
    })
    .await;
}

async fn begin_replay(world: &World) {
    let buried = name("buried");
    let created = world.record().await.identities_of(&buried);
    let request = serde_json::from_value(json!({ "ratePerSecond": 1000 })).expect("a request");
    let orders = TopicName::parse("orders").expect("a name");
    let record = ReplayRecord::new(
        REPLAY.to_owned(),
        orders,
        (buried, &created),
        request,
        world.clock.now(),
    );
    assert_eq!(record.v, 2);
    let text = String::from_utf8(record.render().to_vec()).expect("text");
    world
        .write_state(&layout::replay_record_key(REPLAY), text)
        .await;
    world
        .write_state(&layout::replaying_mark_key(REPLAY), String::new())
        .await;
}

/// The events that this program accepted, with those that it replays.
fn accepted() -> Vec<Seen> {
    let subscriptions = [
        "waiting", "flight", "delayed", "parked", "held", "named", "down",
    ];
    let events = subscriptions
        .into_iter()
        .map(|subscription| arrived(subscription, 90..92));
    sorted(events.chain([arrived("buried", 0..70), arrived("buried", 0..3)]))
}

/// Of what was seen, what this program accepted.
fn of_this_program(mut seen: Vec<Seen>) -> Vec<Seen> {
    let own = accepted();
    let letters = each("letters", 90..92, "");
    seen.retain(|(id, _)| {
        own.iter()
            .chain(&letters)
            .any(|(accepted, _)| accepted == id)
    });
    seen
}

/// Goes on with everything until nothing waits, and looks what has become of it.
async fn check_goes_on(world: World) {
    world.pass_by(10 * SECOND, 2 * MINUTE).await;
    resume(&world, "held").await;
    world.pass_by(MINUTE, 90 * MINUTE).await;
    assert!(all_gone(&world).await);
    let requests = world.endpoint.take();
    let mut own = requests
        .iter()
        .filter(|request| request.body.contains("-9"));
    assert!(own.all(|request| request.headers["posthaste-hops"] == "3"));
    assert_eq!(of_this_program(seen_in(&requests)), accepted());
    let (letters, malformed) = dead_letters(&world).await;
    let letters: Vec<_> = letters
        .into_iter()
        .filter(|(id, _)| id.starts_with("letters-9"))
        .collect();
    assert_eq!(
        (letters, malformed),
        (each("letters", 90..92, "UndeliverableDueToClientError"), 1)
    );
    assert_eq!(originals(&world).await, 2);
    assert_eq!(world.replayed(REPLAY).await.state, ReplayState::Done);
}

/// The number of dead letters that keep a member of the event's own beside theirs.
async fn originals(world: &World) -> usize {
    let objects = world
        .buried()
        .await
        .into_iter()
        .filter(|(key, _)| key.contains("/LETTERS/"));
    let letters = objects
        .flat_map(|(_, bytes)| serde_json::from_slice::<Vec<Value>>(&bytes).expect("letters"));
    let own = |letter: &Value| {
        letter["originalattributes"]
            .as_str()
            .is_some_and(|own| own.contains("mine"))
    };
    letters.filter(own).count()
}

/// Messages of a newer program are handed back unchanged, and delivered by that program.
#[tokio::test]
async fn newer_messages_are_handed_back_and_delivered_by_the_newer() {
    let left = Left::by(Box::pin(full()).await).await;
    let next = left.clone().replaced(TO_NEXT);
    assert_ne!(next, left);
    // Now the program under test is the older one.
    let world = next.world().await;
    for _ in 0..8 {
        world.pass_by(MINUTE, 10 * MINUTE).await;
        world.bury().await;
    }
    assert_eq!(of_this_program(received(&world)), []);
    let (letters, malformed) = dead_letters(&world).await;
    let own = letters.iter().filter(|(id, _)| id.contains("-9")).count();
    // Every program recognises a message that is not ours.
    assert_eq!((own, malformed), (0, 1));
    let back = Left::by(world).await.replaced(FROM_NEXT);
    Box::pin(check_goes_on(back.world().await)).await;
}

#[tokio::test]
async fn messages_handed_back_by_the_former_release_are_delivered() {
    let left: Left = serde_json::from_str(GAVE_BACK).expect("what it left");
    Box::pin(check_goes_on(left.world().await)).await;
}
