//! Changes of several steps that are cut: the process dies at a write, before it happened or after.
//! Two minutes later all is as it was asked for, or as it was.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::circuit::{DeliveryTarget, Observation, RequestFailure, TargetPhase};
use posthaste_core::model::{OutcomeName, Timestamp};
use posthaste_core::stored::{StoredLease, WAKE_LEASE, WakeCheckpoint, layout};
use posthaste_ports::{Clock, ObjectStore, PutCondition, QueueName};
use posthaste_services::LeftWork;
use posthaste_simulation::{Answer, Api, Faults, World};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use posthaste_testkit::recorded::PortOperation;
use serde_json::{Value, json};

const SUBSCRIPTION: &str = "/topics/orders/subscriptions/billing";
const LINK: &str = "https://billing.example.com:443";
const OWN: &str = "https://billing.example.com:443 orders.billing";

/// The time between two runs of wake, and of manage over what was left.
const HALF_MINUTE: Duration = Duration::from_secs(30);

/// More writes than any change has.
const WRITES_MAX: u64 = 100;

fn is_write(effect: PortEffect<'_>) -> bool {
    matches!(effect.operation, PortOperation::Put | PortOperation::Delete)
}

/// A request, and whether its process died in the middle.
struct Request {
    method: &'static str,
    path: &'static str,
    body: Value,
}

impl Request {
    fn new(method: &'static str, path: &'static str, body: Value) -> Self {
        Self { method, path, body }
    }

    async fn send(&self, api: &Api) -> (u16, Value) {
        api.ask(self.method, self.path, &self.body).await
    }

    /// Sends it until the plan hangs it, and drops it there; whether it did.
    async fn is_cut(&self, world: &World, plan: &FaultPlan) -> bool {
        let api = world.api();
        let is_hit = async {
            while plan.faults() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = is_hit => true,
            (status, answer) = self.send(&api) => {
                assert!((200..300).contains(&status), "{status} {answer}");
                false
            }
        }
    }
}

/// Cuts a request at each of its writes, before it and after it, in the part that `faults` says,
/// and looks at what is left two minutes later, and when the process begins again that has the
/// stores to itself. `check` gets the fault in words.
async fn cut_everywhere(
    faults: fn(&FaultPlan) -> Faults,
    request: &Request,
    prepare: impl AsyncFn(&World),
    check: impl AsyncFn(&World, &str),
) {
    let faults_at = [CallFault::HangBefore, CallFault::HangAfter];
    for (fault, is_start) in faults_at.iter().flat_map(|it| [(it, false), (it, true)]) {
        for number in 0.. {
            assert!(number < WRITES_MAX, "more writes than expected");
            let plan = FaultPlan::nth_of(number, fault.clone(), is_write);
            plan.switch(false);
            let world = World::with(&faults(&plan));
            world.subscribe(json!({})).await;
            prepare(&world).await;
            let before = Traced::look(&world).await;
            plan.switch(true);
            let is_cut = request.is_cut(&world, &plan).await;
            plan.switch(false);
            settle(&world).await;
            let place = format!(
                "{} {}, start {is_start}: {fault:?} at write {number}",
                request.method, request.path
            );
            before.check(&world, is_cut, &place).await;
            if is_start {
                start(&world).await;
            } else {
                two_minutes(&world).await;
            }
            check(&world, &place).await;
            if !is_cut {
                break;
            }
        }
    }
}

/// A topic's record, and the number of entries in the audit trail.
struct Traced {
    record: Option<Bytes>,
    entries: usize,
}

impl Traced {
    async fn look(world: &World) -> Self {
        let record = world
            .local
            .state_store()
            .get("topics/orders.json")
            .await
            .unwrap();
        Self {
            record: record.map(|object| object.bytes),
            entries: world.keys(layout::AUDIT).await.len(),
        }
    }

    /// A record that is another one has an entry, whatever was cut. A request that was answered has
    /// one that says so.
    async fn check(&self, world: &World, is_cut: bool, place: &str) {
        let now = Self::look(world).await;
        if now.record != self.record {
            assert!(now.entries > self.entries, "{place}: no entry");
        }
        let (_, trail) = shown(world, "/audit").await;
        let all = trail["entries"].as_array().unwrap();
        let is_begun = |entry: &&Value| entry["outcome"] == "begun";
        let begun = all.iter().filter(is_begun).count();
        assert!(begun <= usize::from(is_cut), "{place}: {trail}");
        if !is_cut {
            assert!(now.entries > self.entries, "{place}: {trail}");
        }
    }
}

/// Waits for a write that was under way at the cut: the store makes writes durable in their order.
async fn settle(world: &World) {
    const KEY: &str = "settled";
    write(world, KEY, "").await;
    world.local.state_store().delete(KEY).await.unwrap();
}

/// Runs the next process at its start and half a minute later, when nothing counts as left yet by
/// its age.
async fn start(world: &World) {
    world.clock.advance(Duration::from_secs(1));
    let left = LeftWork::From(world.clock.now());
    world.finish_left(left).await;
    world.wake_over(left).await;
    world.clock.advance(HALF_MINUTE);
    world.finish_left(LeftWork::Old).await;
    world.wake().await;
}

/// Runs wake and manage for two minutes.
async fn two_minutes(world: &World) {
    for _ in 0..4 {
        world.clock.advance(HALF_MINUTE);
        world.finish_left(LeftWork::Old).await;
        world.wake().await;
    }
}

async fn write(world: &World, key: &str, text: &str) {
    let bytes = text.to_owned().into();
    let state = world.local.state_store();
    state.put(key, bytes, PutCondition::Always).await.unwrap();
}

/// Holds the subscription and its link.
async fn hold(world: &World) {
    world.clock.advance(HALF_MINUTE);
    let last = RequestFailure {
        outcome: OutcomeName::Busy,
        status: Some(503),
    };
    for target in [LINK, OWN] {
        let failing = Observation::Failing {
            failures: 10,
            last,
            began: world.clock.now(),
        };
        let target = DeliveryTarget::parse(target).unwrap();
        world.links.observe(&[(target, failing)]).await.unwrap();
    }
    world.clock.advance(HALF_MINUTE);
}

/// Whether the target is held, as the store says.
async fn is_held(world: &World, target: &str) -> bool {
    let target = DeliveryTarget::parse(target).unwrap();
    let all = world.links.read_all().await.unwrap();
    let mut conditions = all.iter().flat_map(|(_, shard)| shard.conditions());
    conditions.any(|(of, it)| of == target && it.phase != TargetPhase::Recovering)
}

async fn shown(world: &World, path: &str) -> (u16, Value) {
    world.api().ask("GET", path, &Value::Null).await
}

async fn state(world: &World) -> String {
    let (status, shown) = shown(world, SUBSCRIPTION).await;
    assert_eq!(status, 200, "{shown}");
    shown["status"]["state"]
        .as_str()
        .unwrap_or("Active")
        .to_owned()
}

#[tokio::test]
async fn cut_deletion_of_a_topic_ends_and_frees_its_name() {
    let request = Request::new("DELETE", "/topics/orders", Value::Null);
    cut_everywhere(Faults::in_state, &request, hold, async |world, place| {
        let (status, _) = shown(world, "/topics/orders").await;
        let object = world
            .local
            .state_store()
            .get("topics/orders.json")
            .await
            .unwrap();
        assert_eq!(object.is_some(), status == 200, "{place}: {status}");
        if status == 404 {
            assert!(!is_held(world, OWN).await, "{place}");
        }
        let (again, answer) = world.api().ask("PUT", "/topics/orders", &json!({})).await;
        assert_eq!(
            again,
            if status == 200 { 200 } else { 201 },
            "{place}: {answer}"
        );
    })
    .await;
}

#[tokio::test]
async fn cut_deletion_of_a_subscription_leaves_no_hold() {
    let request = Request::new("DELETE", SUBSCRIPTION, Value::Null);
    cut_everywhere(Faults::in_state, &request, hold, async |world, place| {
        let (status, _) = shown(world, SUBSCRIPTION).await;
        assert_eq!(
            is_held(world, OWN).await,
            status == 200,
            "{place}: {status}"
        );
    })
    .await;
}

#[tokio::test]
async fn cut_resume_ends_the_hold_or_leaves_the_pause() {
    let request = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/resume",
        Value::Null,
    );
    let pause = async |world: &World| {
        let path = format!("{SUBSCRIPTION}/pause");
        assert_eq!(world.api().ask("POST", &path, &Value::Null).await.0, 200);
        hold(world).await;
    };
    cut_everywhere(Faults::in_state, &request, pause, async |world, place| {
        let is_paused = state(world).await == "Paused";
        for target in [LINK, OWN] {
            assert_eq!(is_held(world, target).await, is_paused, "{place}: {target}");
        }
        assert_eq!(world.keys(layout::FORCING).await, [""; 0], "{place}");
    })
    .await;
}

#[tokio::test]
async fn cut_force_ends_the_holds_or_begins_nothing() {
    let request = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/force",
        Value::Null,
    );
    cut_everywhere(Faults::in_state, &request, hold, async |world, place| {
        let held = [is_held(world, LINK).await, is_held(world, OWN).await];
        assert_eq!(held[0], held[1], "{place}");
        assert_eq!(world.keys(layout::FORCING).await, [""; 0], "{place}");
    })
    .await;
}

#[tokio::test]
async fn cut_put_with_validation_asks_the_endpoint_itself() {
    let endpoint = json!({ "url": "https://crm.example.com/", "validation": "CloudEvents" });
    let body = json!({ "endpoint": endpoint });
    let path = "/topics/orders/subscriptions/crm";
    let request = Request::new("PUT", path, body);
    let consenting = async |world: &World| {
        let consent = Answer::With(200, "webhook-allowed-origin", "*");
        world.endpoint.answer([consent]);
    };
    cut_everywhere(
        Faults::in_state,
        &request,
        consenting,
        async |world, place| {
            let (status, shown) = shown(world, path).await;
            if status == 200 {
                assert_eq!(shown["status"]["state"], "Active", "{place}: {shown}");
            } else {
                assert_eq!(status, 404, "{place}: {shown}");
            }
            assert_eq!(world.keys(layout::VALIDATING).await, [""; 0], "{place}");
        },
    )
    .await;
}

#[tokio::test]
async fn cut_disable_tells_of_it_if_it_happened() {
    let request = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/disable",
        Value::Null,
    );
    let told = async |world: &World| world.tell_ops(json!({})).await;
    cut_everywhere(Faults::in_state, &request, told, async |world, place| {
        let is_disabled = state(world).await == "Disabled";
        let notices = world.visible(QueueName::Deliveries).await;
        assert_eq!(notices, u64::from(is_disabled), "{place}");
        assert_eq!(world.keys(layout::TELLING).await, [""; 0], "{place}");
    })
    .await;
}

/// Writes so many objects with a dead letter each.
async fn bury(world: &World, objects: usize) {
    for number in 0..objects {
        let key = format!("ORDERS/BILLING/2020/1/1/1/{number}.json");
        let letter = json!([{
            "specversion": "1.0", "id": number.to_string(), "source": "/s", "type": "t",
            "deadletterreason": "EndpointGone",
        }]);
        let bytes = letter.to_string().into();
        world
            .bucket
            .put(&key, bytes, PutCondition::Always)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn cut_deletion_of_letters_ends_or_never_began() {
    let request = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/dead-letters/delete",
        json!({ "includeFormer": true }),
    );
    let check = async |world: &World, place: &str| {
        let left = world.buried().await.len();
        assert!(left == 0 || left == 3, "{place}: {left} objects are left");
        assert_eq!(world.keys(layout::ENDING).await, [""; 0], "{place}");
    };
    let buried = async |world: &World| bury(world, 3).await;
    cut_everywhere(Faults::in_state, &request, buried, check).await;
    cut_everywhere(Faults::in_bucket, &request, buried, check).await;
}

#[tokio::test]
async fn cut_resolving_of_letters_ends_or_never_began() {
    let request = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/dead-letters/resolve",
        json!({ "includeFormer": true }),
    );
    let check = async |world: &World, place: &str| {
        let resolved = world.resolved().await.len();
        assert!(
            resolved == 0 || resolved == 3,
            "{place}: {resolved} are resolved"
        );
        assert_eq!(world.keys(layout::ENDING).await, [""; 0], "{place}");
    };
    let buried = async |world: &World| bury(world, 3).await;
    cut_everywhere(Faults::in_state, &request, buried, check).await;
    cut_everywhere(Faults::in_bucket, &request, buried, check).await;
}

const REPLAY: &str = "/topics/orders/subscriptions/billing/dead-letters/replay";

/// Looks whether a replay of the three letters was begun as often as that, and sent to its end.
async fn expect_replays(world: &World, count: usize, place: &str) {
    let (_, page) = shown(world, "/replays").await;
    let replays = page["replays"].as_array().unwrap();
    assert_eq!(replays.len(), count, "{place}: {page}");
    let messages =
        world.visible(QueueName::Deliveries).await + world.delayed(QueueName::Deliveries).await;
    assert_eq!(
        messages,
        3 * count as u64,
        "{place}: a message of each letter"
    );
    assert_eq!(world.replaying().await, [""; 0], "{place}");
}

/// Wake alone ends what was begun, because no client asks again.
#[tokio::test]
async fn cut_replay_is_begun_by_wake_once_it_was_noted() {
    let request = Request::new("POST", REPLAY, json!({ "includeFormer": true }));
    let buried = async |world: &World| bury(world, 3).await;
    cut_everywhere(Faults::in_state, &request, buried, async |world, place| {
        // The first write is the entry of the audit trail, then come the signal and the marker.
        let is_noted = ![
            "HangBefore at write 0",
            "HangAfter at write 0",
            "HangBefore at write 1",
            "HangAfter at write 1",
            "HangBefore at write 2",
        ]
        .iter()
        .any(|before| place.ends_with(before));
        expect_replays(world, usize::from(is_noted), place).await;
        let claims = world.keys(layout::CLAIMS).await.len();
        assert_eq!(claims, usize::from(is_noted), "{place}");
    })
    .await;
}

/// The second request finds the replay of the first open, and is cut.
#[tokio::test]
async fn cut_repetition_of_an_open_replay_begins_nothing() {
    let request = Request::new("POST", REPLAY, json!({ "includeFormer": true }));
    let asked = async |world: &World| {
        bury(world, 3).await;
        assert_eq!(request.send(&world.api()).await.0, 202);
        world.clock.advance(Duration::from_secs(1));
    };
    cut_everywhere(Faults::in_state, &request, asked, async |world, place| {
        expect_replays(world, 1, place).await;
    })
    .await;
}

/// The client asks again after the cut, and that replay is over before wake looks at what was cut.
#[tokio::test]
async fn cut_replay_that_was_repeated_and_is_done_is_not_done_again() {
    let plan = FaultPlan::at(CallFault::HangBefore, |effect| {
        is_write(effect) && effect.key.starts_with(layout::CLAIMS)
    });
    let world = World::with(&Faults::in_state(&plan));
    world.subscribe(json!({})).await;
    bury(&world, 3).await;
    let request = Request::new("POST", REPLAY, json!({ "includeFormer": true }));
    assert!(request.is_cut(&world, &plan).await);
    plan.switch(false);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(request.send(&world.api()).await.0, 202);
    world.clock.advance(Duration::from_secs(1));
    world.wake().await;
    two_minutes(&world).await;
    expect_replays(&world, 1, "once").await;
}

/// A marker of a former version says nothing: it goes after an hour, and one that says what was
/// meant after a day, when its record may have been deleted.
#[tokio::test]
async fn marker_that_is_too_old_or_empty_begins_nothing() {
    for (is_empty, hours) in [(true, 1), (false, 24)] {
        let world = World::new();
        world.subscribe(json!({})).await;
        bury(&world, 3).await;
        let id = world.replay(json!({ "includeFormer": true })).await;
        let record = world.replayed(&id).await;
        let state = world.local.state_store();
        state.delete(&layout::replay_record_key(&id)).await.unwrap();
        let text = String::from_utf8(record.render().to_vec()).unwrap();
        let text = if is_empty { String::new() } else { text };
        write(&world, &layout::replaying_mark_key(&id), &text).await;
        world
            .clock
            .advance(Duration::from_hours(hours).saturating_sub(HALF_MINUTE));
        if is_empty {
            world.wake().await;
            assert_eq!(world.replaying().await.len(), 1);
        }
        world.clock.advance(HALF_MINUTE);
        world.wake().await;
        expect_replays(&world, 0, &format!("{is_empty}")).await;
    }
}

/// A replay whose process died is begun by the next one who asks for it, and sent once.
#[tokio::test]
async fn cut_replay_is_begun_once_by_who_asks_again() {
    let request = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/dead-letters/replay",
        json!({ "includeFormer": true }),
    );
    let buried = async |world: &World| bury(world, 3).await;
    for fault in [CallFault::HangBefore, CallFault::HangAfter] {
        for number in 0..WRITES_MAX {
            let plan = FaultPlan::nth_of(number, fault.clone(), is_write);
            let world = World::with(&Faults::in_state(&plan));
            world.subscribe(json!({})).await;
            buried(&world).await;
            let is_cut = request.is_cut(&world, &plan).await;
            plan.switch(false);
            let api = world.api();
            let (again, third) = tokio::join!(request.send(&api), request.send(&api));
            let place = format!("{fault:?} at write {number}");
            assert_eq!(
                (again.0, third.0),
                (202, 202),
                "{place}: {} {}",
                again.1,
                third.1
            );
            assert_eq!(again.1["id"], third.1["id"], "{place}");
            two_minutes(&world).await;
            let messages = world.visible(QueueName::Deliveries).await
                + world.delayed(QueueName::Deliveries).await;
            assert_eq!(messages, 3, "{place}: a message of each object");
            let (_, page) = shown(&world, "/replays").await;
            assert_eq!(
                page["replays"].as_array().unwrap().len(),
                1,
                "{place}: {page}"
            );
            if !is_cut {
                break;
            }
        }
    }
}

/// The same replay can be asked for again once it has ended, or was cancelled.
#[tokio::test]
async fn ended_replay_makes_room_for_the_next_one() {
    let world = World::new();
    world.subscribe(json!({})).await;
    bury(&world, 3).await;
    let replay = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/dead-letters/replay",
        json!({ "includeFormer": true, "ratePerSecond": 5 }),
    );
    let api = world.api();
    let first = replay.send(&api).await.1["id"].clone();
    let other_rate = Request::new("POST", replay.path, json!({ "includeFormer": true }));
    assert_eq!(other_rate.send(&api).await.1["id"], first);
    let other = Request::new(
        "POST",
        replay.path,
        json!({ "includeFormer": true, "types": ["t"] }),
    );
    assert_ne!(other.send(&api).await.1["id"], first);
    let path = format!("/replays/{}", first.as_str().unwrap());
    assert_eq!(api.ask("DELETE", &path, &Value::Null).await.0, 200);
    world.clock.advance(Duration::from_secs(1));
    let second = replay.send(&api).await.1["id"].clone();
    assert_ne!(second, first);
    two_minutes(&world).await;
    world.clock.advance(Duration::from_secs(1));
    assert_ne!(replay.send(&api).await.1["id"], second);
}

/// A client that gives up while the endpoint is asked does not throw the consent away.
#[tokio::test]
async fn client_that_gives_up_loses_no_consent() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let consent = Answer::LateWith(Duration::from_secs(3), 200, "webhook-allowed-origin", "*");
    world.endpoint.answer([consent]);
    let path = "/topics/orders/subscriptions/crm";
    let settings = json!({ "endpoint": {
        "url": "https://crm.example.com/", "validation": "CloudEvents",
    } });
    let request = Request::new("PUT", path, settings);
    let api = world.api();
    let is_asked = async {
        while world.endpoint.seen() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = is_asked => {}
        answer = request.send(&api) => panic!("it waits for the endpoint, and not {answer:?}"),
    }
    assert_eq!(shown(&world, path).await.1["status"]["state"], "Pending");
    world.clock.advance(Duration::from_secs(3));
    world.rest().await;
    assert_eq!(shown(&world, path).await.1["status"]["state"], "Active");
    assert_eq!(world.endpoint.take().len(), 1);
}

/// A second request for the same letters gets the id of the first and does nothing; later it can be
/// done again.
#[tokio::test]
async fn same_letters_are_ended_by_one_request_at_a_time() {
    let plan = FaultPlan::at(CallFault::HangBefore, |effect| {
        effect.operation == PortOperation::Delete && effect.key.ends_with("1.json")
    });
    let world = World::with(&Faults::in_bucket(&plan));
    world.subscribe(json!({})).await;
    bury(&world, 3).await;
    let delete = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/dead-letters/delete",
        json!({ "includeFormer": true }),
    );
    assert!(delete.is_cut(&world, &plan).await);
    let api = world.api();
    let (status, answer) = delete.send(&api).await;
    let numbers = (answer["events"].clone(), answer["inProgress"].clone());
    assert_eq!(
        (status, numbers),
        (202, (json!(0), json!(true))),
        "{answer}"
    );
    let open = answer["id"].clone();
    assert!(open.is_string(), "{answer}");
    assert_eq!(delete.send(&api).await.1["id"], open);
    plan.switch(false);
    two_minutes(&world).await;
    assert_eq!(world.buried().await.len(), 0);
    bury(&world, 1).await;
    let (status, answer) = delete.send(&api).await;
    assert_eq!(
        (status, answer["events"].clone()),
        (200, json!(1)),
        "{answer}"
    );
    assert_ne!(answer["id"], open);
}

/// A second force request, while the first is open, gets the same id.
#[tokio::test]
async fn open_force_keeps_its_id() {
    let world = World::new();
    world.subscribe(json!({})).await;
    let force = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/force",
        Value::Null,
    );
    let api = world.api();
    let (first, second) = tokio::join!(force.send(&api), force.send(&api));
    assert_eq!((first.0, second.0), (200, 200));
    assert_eq!(first.1["id"], second.1["id"]);
    world.wake().await;
    assert_ne!(force.send(&api).await.1["id"], first.1["id"]);
    write(&world, "forcing/orders.billing", "{}").await;
    assert_eq!(force.send(&api).await.0, 200);
}

/// The lease that a dead wake had keeps nobody out who knows that it is dead.
#[tokio::test]
async fn start_runs_wake_beside_the_lease_of_a_dead_one() {
    let world = World::new();
    let held = StoredLease {
        lapses_at: world.clock.now() + HALF_MINUTE,
        holder: "dead".to_owned(),
        checkpoint: WakeCheckpoint::default(),
    };
    let text = String::from_utf8(held.render().to_vec()).unwrap();
    world.ask_wake(WAKE_LEASE, text).await;
    assert!(world.wake().await.was_busy);
    let left = LeftWork::From(world.clock.now());
    assert!(!world.wake_over(left).await.was_busy);
}

/// A process that has its stores to itself takes up at its start what a dead one left, and nothing
/// that came later.
#[tokio::test]
async fn start_takes_up_what_a_dead_process_has_just_left() {
    let path = "/topics/orders/subscriptions/crm";
    let endpoint = json!({ "url": "https://crm.example.com/", "validation": "CloudEvents" });
    let put = Request::new("PUT", path, json!({ "endpoint": endpoint }));
    let delete = Request::new(
        "POST",
        "/topics/orders/subscriptions/billing/dead-letters/delete",
        json!({ "includeFormer": true }),
    );
    let plan = FaultPlan::at(CallFault::HangBefore, |effect| {
        effect.key.ends_with("1.json")
    });
    // The first write of the record leads to the request, and the second one has its answer.
    let dying = FaultPlan::nth_of(1, CallFault::HangBefore, |effect| {
        is_write(effect) && effect.key == "topics/orders.json"
    });
    dying.switch(false);
    let faults = Faults::in_bucket(&plan);
    let world = World::with(&Faults {
        state: dying.clone(),
        ..faults
    });
    world.subscribe(json!({})).await;
    bury(&world, 3).await;
    assert!(delete.is_cut(&world, &plan).await);
    plan.switch(false);
    let consent = Answer::With(200, "webhook-allowed-origin", "*");
    world.endpoint.answer([consent]);
    dying.switch(true);
    assert!(put.is_cut(&world, &dying).await);
    dying.switch(false);
    assert_eq!(world.keys(layout::VALIDATING).await.len(), 1);
    assert_eq!(world.keys(layout::ENDING).await.len(), 1);
    let before = Timestamp::from_millis(world.clock.now().as_millis() - 1);
    for (left, is_finished) in [
        (LeftWork::Old, false),
        (LeftWork::From(before), false),
        (LeftWork::From(world.clock.now()), true),
    ] {
        world.finish_left(left).await;
        let of = async |prefix| world.keys(prefix).await.is_empty();
        let finished = (of(layout::VALIDATING).await, of(layout::ENDING).await);
        assert_eq!(finished, (is_finished, is_finished), "{left:?}");
    }
    assert_eq!(shown(&world, path).await.1["status"]["state"], "Active");
    assert_eq!(world.buried().await.len(), 0);
}
