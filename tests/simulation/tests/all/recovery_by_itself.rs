//! Recovery by itself: what was given up in an outage is sent again once the endpoint is well.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::model::{DeadLetter, DeadLetterReason, Delivery, EventPayload, SendFailure};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_core::stored::{RecoveryMark, ReplayRecord, layout};
use posthaste_ports::{Clock, ObjectStore, QueueName};
use posthaste_simulation::{Answer, LinkPath, Request, World, event};
use posthaste_testkit::records::{delivery, subscription_name, topic_name};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const DOWN: Answer = Answer::Failure(SendFailure::Socket);
const WELL: Answer = Answer::Status(204);

/// A world whose subscription has these settings, and dead letters at once.
async fn world(more: Value) -> World {
    let world = World::new();
    world.chance.hold(0.0);
    let mut settings = json!({ "deadLetter": { "delay": "PT0S" } });
    let members = settings.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    world.subscribe(settings).await;
    world
}

/// Time passes in steps. Deliver and deadletter take what is there, and wake runs each minute.
async fn pass(world: &World, step: Duration, length: Duration) {
    let end = world.clock.now() + length;
    while world.clock.now() < end {
        world
            .pass_by(step, step.min(end.since(world.clock.now())))
            .await;
        while world.visible(QueueName::DeadLetters).await > 0 {
            world.bury().await;
        }
    }
}

/// An outage in which these events are published and given up, ten in a message. Then some of them
/// are sent as probes. Answers the requests.
async fn outage(world: &World, ids: &[String]) -> Vec<Request> {
    world.endpoint.answer([DOWN]);
    publish(world, ids, DAY).await;
    pass(world, 20 * SECOND, 3 * MINUTE).await;
    pass(world, HOUR / 2, 2 * DAY).await;
    world.endpoint.take()
}

async fn publish(world: &World, ids: &[String], time_to_live: Duration) {
    for ten in ids.chunks(10) {
        let events: Vec<_> = ten.iter().map(|id| event(id)).collect();
        world.publish(&events, time_to_live).await;
        // Keys are made of the time.
        world.clock.advance(Duration::from_millis(1));
    }
}

/// Waits until letters that were sent as probes arrive: their next attempt is 12 hours away at
/// most. One that is given up then is recovered by a replay of its own, whose end is seen five
/// steps later.
async fn probes_arrive(world: &World) {
    pass(world, HOUR / 2, 15 * HOUR).await;
}

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|id| format!("{prefix}{id}")).collect()
}

/// The endpoint is well, and time passes until a replay has begun.
async fn recover(world: &World) {
    let before = replays(world).await.len();
    world.endpoint.answer([WELL]);
    for _ in 0..60 {
        pass(world, MINUTE, MINUTE).await;
        if replays(world).await.len() > before {
            return;
        }
    }
    panic!("no replay begins: {:?}", mark(world).await);
}

/// The mark, unless it only remembers what is on its way as a probe.
async fn mark(world: &World) -> Option<RecoveryMark> {
    let key = layout::recovery_mark_key(&topic_name("orders"), &subscription_name("billing"));
    let found = world.local.state_store().get(&key).await.unwrap();
    let mark = found.map(|object| RecoveryMark::parse(&object.bytes).unwrap());
    mark.filter(|mark| !mark.is_empty() || mark.cancelled_at.is_some())
}

/// Whether nothing is left to recover. The mark stays for a while.
async fn has_recovered(world: &World) -> bool {
    let mark = mark(world).await;
    mark.is_none_or(|mark| mark.is_empty() && mark.job.is_none())
}

/// The replays that were begun, the oldest first.
async fn replays(world: &World) -> Vec<ReplayRecord> {
    let page = world
        .local
        .state_store()
        .list(layout::REPLAYS, None, 100)
        .await;
    let mut records = Vec::new();
    for object in page.unwrap().objects {
        let id = layout::replay_of(&object.key).unwrap();
        records.push(world.replayed(id).await);
    }
    records
}

fn id_of(request: &Request) -> String {
    let event: Value = serde_json::from_str(&request.body).unwrap();
    event["id"].as_str().unwrap().to_owned()
}

/// The dead letters that are not resolved, by the ids of their events: one of each.
async fn unresolved(world: &World) -> BTreeMap<String, Value> {
    let mut letters = BTreeMap::new();
    for letter in world.unresolved().await {
        let id = letter["id"].as_str().unwrap().to_owned();
        let other = letters.insert(id, letter);
        assert_eq!(other, None, "two letters of one event");
    }
    letters
}

#[tokio::test]
async fn events_given_up_in_an_outage_arrive_under_one_id() {
    let world = world(json!({})).await;
    let began = world.clock.now();
    let ids = ids("", 30);
    let attempts = outage(&world, &ids).await;
    let letters = unresolved(&world).await;
    let since = |letter: &Value| letter["outagesince"].is_string();
    assert_eq!(letters.len(), ids.len(), "{letters:?}");
    assert!(letters.values().all(since), "{letters:?}");
    let marked = mark(&world).await.unwrap();
    assert!(marked.letters >= 30, "{marked:?}");
    assert!(marked.outage_since >= began && marked.outage_since < began + HOUR);
    // None of those that are on their way as probes is sent by the replay too.
    assert!(marked.probes.len() > 1, "{marked:?}");
    recover(&world).await;
    probes_arrive(&world).await;
    let requests = world.endpoint.take();
    // Also those that probed, and were given up once more.
    let arrived: BTreeSet<_> = requests.iter().map(id_of).collect();
    assert_eq!(arrived, ids.into_iter().collect());
    let mut of_event = BTreeMap::<String, Vec<_>>::new();
    for request in &requests {
        let header = |name: &str| request.headers.get(name).map(|it| it.to_str().unwrap());
        let sent = (
            request.at.to_string(),
            header("posthaste-attempt"),
            header("posthaste-replayed"),
        );
        of_event.entry(id_of(request)).or_default().push(sent);
    }
    of_event.retain(|_, sent| sent.len() > 1);
    assert!(of_event.is_empty(), "twice: {of_event:?}, {marked:?}");
    let webhook_id = |request: &Request| request.headers["webhook-id"].clone();
    let attempted = attempts.iter().chain(&requests);
    let by_id: BTreeSet<_> = attempted.map(|it| (id_of(it), webhook_id(it))).collect();
    assert_eq!(by_id.len(), arrived.len(), "{by_id:?}");
    assert_eq!(unresolved(&world).await, BTreeMap::new());
    let replays = replays(&world).await;
    let last = mark(&world).await;
    assert!(has_recovered(&world).await, "{last:?} {replays:?}");
    assert!(!replays.is_empty());
    assert!(
        replays
            .iter()
            .all(|replay| replay.state == ReplayState::Done),
        "{replays:?}"
    );
}

/// An event whose attempt failed in the outage is given up hours after its recovery. What that sent
/// may be on its way still: it is not sent again.
#[tokio::test]
async fn letter_that_comes_after_the_recovery_is_recovered_alone() {
    let world = world(json!({})).await;
    let ids = ids("", 30);
    outage(&world, &ids).await;
    let marked = mark(&world).await.unwrap();
    assert!(marked.probes.len() > 1, "{marked:?}");
    recover(&world).await;
    pass(&world, MINUTE, 15 * MINUTE).await;
    assert!(has_recovered(&world).await);
    assert!(
        !unresolved(&world).await.is_empty(),
        "probes are on their way"
    );
    let names = (topic_name("orders"), subscription_name("billing"));
    let payload = EventPayload::Inline(event("late").into());
    let late = DeadLetter {
        reason: DeadLetterReason::TimeToLiveExceeded,
        delivery: Delivery {
            attempts: 5,
            identity: Some(world.identity()),
            ..delivery(names, "late", [payload], world.clock.now())
        },
        storage: None,
        object: None,
        dropped: false,
        outage_since: Some(marked.outage_since),
    };
    world
        .send(QueueName::DeadLetters, render_dead_letter(&late))
        .await;
    world.bury().await;
    assert_eq!(mark(&world).await.unwrap().letters, 1);
    recover(&world).await;
    probes_arrive(&world).await;
    let requests = world.endpoint.take();
    let arrived: BTreeSet<_> = requests.iter().map(id_of).collect();
    assert_eq!(requests.len(), arrived.len(), "each event once");
    assert!(arrived.contains("late"));
    assert_eq!(arrived.len(), ids.len() + 1);
    let queued: Vec<_> = replays(&world)
        .await
        .iter()
        .map(|it| it.progress.queued)
        .collect();
    assert_eq!(queued.last(), Some(&1), "{queued:?}");
    // The mark is deleted once nothing of its outage is on its way.
    pass(&world, HOUR, 2 * DAY).await;
    assert_eq!(mark(&world).await, None);
}

/// Events that were held in an outage wait for their turn when it is over, here because an operator
/// paused their subscription, and their time ends before that comes: by then the endpoint is
/// forgotten as not well.
#[tokio::test]
async fn backlog_of_an_outage_that_expires_after_it_is_recovered() {
    let world = World::new();
    world.chance.hold(0.0);
    let settings = json!({ "deadLetter": { "delay": "PT0S" } });
    let paths = ["orders.billing", "orders.other"];
    let path = |place: &str| LinkPath::scripted(place).with(settings.clone());
    world.subscribe_paths(&paths.map(path)).await;
    world.endpoint.answer([DOWN]);
    let ids = ids("", 20);
    for id in &ids {
        world.publish_to(paths[0], &[event(id)], 1).await;
        world.clock.advance(Duration::from_millis(1));
    }
    pass(&world, 20 * SECOND, 3 * MINUTE).await;
    pass(&world, HOUR / 2, 23 * HOUR).await;
    assert_eq!(world.buried().await.len(), 0);
    let subscription = "/topics/orders/subscriptions/billing";
    let pause = format!("{subscription}/pause");
    let (status, answer) = world.api().ask("POST", &pause, &json!({})).await;
    assert_eq!(status, 200, "{answer}");
    world.endpoint.take();
    world.endpoint.answer([WELL]);
    for number in 0..45 {
        let other = event(&format!("other-{number}"));
        world.publish_to(paths[1], &[other], 1).await;
        pass(&world, MINUTE, MINUTE).await;
    }
    let link = DeliveryTarget::parse("https://billing.example.com:443").unwrap();
    assert_eq!(world.links.condition(&link), None, "it is well");
    pass(&world, 5 * MINUTE, HOUR).await;
    let resume = format!("{subscription}/resume");
    let (status, answer) = world.api().ask("POST", &resume, &json!({})).await;
    assert_eq!(status, 200, "{answer}");
    pass(&world, 10 * SECOND, 2 * MINUTE).await;
    let letters = unresolved(&world).await;
    assert_eq!(letters.len(), ids.len());
    let is_expired = |letter: &Value| letter["deadletterreason"] == "TimeToLiveExceeded";
    assert!(letters.values().all(is_expired), "{letters:?}");
    let since = |letter: &Value| letter["outagesince"].is_string();
    assert!(letters.values().all(since), "{letters:?}");
    pass(&world, MINUTE, HOUR).await;
    let requests = world.endpoint.take();
    let arrived = requests.iter().map(id_of);
    let mut arrived: Vec<_> = arrived.filter(|id| !id.starts_with("other")).collect();
    arrived.sort_by_key(|id| id.parse::<usize>().unwrap());
    assert_eq!(arrived, ids);
    assert_eq!(unresolved(&world).await, BTreeMap::new());
    assert!(has_recovered(&world).await);
}

#[tokio::test]
async fn letters_without_an_outage_are_not_recovered() {
    let world = world(json!({})).await;
    world.endpoint.answer([Answer::Status(400)]);
    world.publish(&[event("refused")], DAY).await;
    pass(&world, 30 * SECOND, MINUTE).await;
    assert_eq!(unresolved(&world).await.len(), 1);
    world.endpoint.answer([WELL]);
    pass(&world, 5 * MINUTE, HOUR).await;
    assert_eq!((mark(&world).await, replays(&world).await.len()), (None, 0));
}

#[tokio::test]
async fn shorter_time_to_live_recovers_only_if_asked_for() {
    let hour = json!({ "eventTimeToLiveInMinutes": 60 });
    for (asked, expected) in [(None, 0), (Some(true), 1)] {
        let mut settings = json!({ "retryPolicy": hour });
        if let Some(enabled) = asked {
            settings["recovery"] = json!({ "enabled": enabled });
        }
        let world = world(settings).await;
        world.endpoint.answer([DOWN]);
        publish(&world, &ids("", 20), HOUR).await;
        pass(&world, 20 * SECOND, 3 * MINUTE).await;
        pass(&world, 10 * MINUTE, 2 * HOUR).await;
        let marks = usize::from(mark(&world).await.is_some());
        assert_eq!(marks, expected, "{asked:?}");
    }
}

/// A second outage rests the replay; its letters have another one, after some minutes of health.
#[tokio::test]
async fn second_outage_rests_the_replay_and_is_recovered_too() {
    let world = world(json!({ "recovery": { "ratePerSecond": 1 } })).await;
    outage(&world, &ids("", 100)).await;
    recover(&world).await;
    let first = replays(&world).await;
    let queued = first[0].progress.queued;
    assert_eq!(first[0].state, ReplayState::Running);
    assert!((1..90).contains(&queued), "{queued}");
    world.endpoint.answer([DOWN]);
    pass(&world, MINUTE, 10 * MINUTE).await;
    let rests = replays(&world).await;
    assert_eq!(
        (rests[0].state, rests[0].reason),
        (ReplayState::Waiting, Some(ReplayReason::Outage))
    );
    // What was on its way is given up too: only letters are left that could probe.
    pass(&world, HOUR / 2, DAY + 12 * HOUR).await;
    recover(&world).await;
    probes_arrive(&world).await;
    assert_eq!(unresolved(&world).await, BTreeMap::new());
    assert!(has_recovered(&world).await);
    let all = replays(&world).await;
    assert!(all.iter().all(|replay| replay.state == ReplayState::Done));
    assert!(all.len() >= 2, "{all:?}");
}

#[tokio::test]
async fn cancel_holds_for_the_outage_and_the_next_one_recovers() {
    let world = world(json!({ "recovery": { "ratePerSecond": 1 } })).await;
    outage(&world, &ids("", 100)).await;
    recover(&world).await;
    let id = replays(&world).await[0].id.clone();
    let path = format!("/replays/{id}");
    let (status, view) = world.api().ask("DELETE", &path, &Value::Null).await;
    assert_eq!((status, &view["state"]), (200, &json!("Cancelled")));
    assert!(view["recovery"]["outageSince"].is_string(), "{view}");
    // What was on its way is no part of what was cancelled.
    probes_arrive(&world).await;
    let left = unresolved(&world).await;
    assert!(!left.is_empty());
    assert_eq!(replays(&world).await.len(), 1);
    let cancelled = mark(&world).await.unwrap();
    assert!(cancelled.is_empty() && cancelled.cancelled_at.is_some());
    outage(&world, &ids("later-", 20)).await;
    recover(&world).await;
    probes_arrive(&world).await;
    assert_eq!(unresolved(&world).await, left);
}

/// The list of dead letters says in a line what recovers.
#[tokio::test]
async fn list_of_dead_letters_tells_what_recovers_by_itself() {
    let world = world(json!({ "recovery": { "ratePerSecond": 1 } })).await;
    outage(&world, &ids("", 100)).await;
    let lists = [
        "/dead-letters",
        "/topics/orders/dead-letters",
        "/topics/orders/subscriptions/billing/dead-letters",
    ];
    let recoveries = async |path: &str| {
        let (status, page) = world.api().ask("GET", path, &Value::Null).await;
        assert_eq!(status, 200, "{page}");
        page["recoveries"].clone()
    };
    for path in lists {
        let shown = recoveries(path).await;
        assert_eq!(shown[0]["waits"], true, "{shown}");
        assert!(shown[0].get("replay").is_none(), "{shown}");
    }
    recover(&world).await;
    let on_their_way = mark(&world).await.unwrap().probes.len() as u64;
    let id = replays(&world).await[0].id.clone();
    for path in lists {
        let shown = recoveries(path).await;
        assert_eq!(shown[0]["replay"], id, "{shown}");
        assert!(shown[0]["queued"].as_u64().unwrap() > 0, "{shown}");
        // Those that are on their way as probes are left out where the replay comes to them.
        let letters = shown[0]["letters"].as_u64().unwrap();
        assert!(letters + on_their_way >= 100, "{shown}");
    }
    pass(&world, MINUTE, 15 * MINUTE).await;
    for path in lists {
        assert_eq!(recoveries(path).await, Value::Null);
    }
}
