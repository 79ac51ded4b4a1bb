//! The events that wait for subscriptions, their health, and their last outcome, as they are shown.

use std::time::Duration;

use axum::extract::FromRef;
use bytes::Bytes;
use posthaste_core::circuit::{
    DeliveryTarget, HealthSettings, LinkShard, Observation, RequestFailure, shard_index,
};
use posthaste_core::delivery_log::{
    LogRecord, LookOutcome, WaitChanges, WaitTransition, WaitingLook, WaitingPart,
};
use posthaste_core::health::{HealthBook, SeenTry, SubscriptionTries, TryResult};
use posthaste_core::model::{Delivery, DeliveryLogMode, EventPayload, OutcomeName, Timestamp};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::parked::render_parked;
use posthaste_core::stored::{HEALTH, WAITING_LOOK, layout, waiting_part_key};
use posthaste_ports::{Clock, ErrorKind, OutgoingMessage, QueueSender};
use posthaste_testkit::records::{delivery, subscription_name, topic_name};
use serde_json::{Value, json};

use super::events::{before, delivered, refused, write};
use super::{Api, billing};
use crate::log_coverage::LogCoverage;
use crate::topic_records::TopicRecords;

const BILLING: &str = "/topics/orders/subscriptions/billing";

/// A delivery to a subscription of `orders`, accepted this many minutes ago.
pub(super) fn accepted(name: &str, events: usize, minutes: u64) -> Delivery {
    let payloads = (0..events).map(|_| EventPayload::Inline(Bytes::from_static(b"{}")));
    delivery(
        (topic_name("orders"), subscription_name(name)),
        "k",
        payloads,
        before(minutes),
    )
}

impl Api {
    pub(super) async fn queue_up(&self, delivery: &Delivery, delay_secs: u64) {
        let body = render_delivery(delivery);
        let group = Some(delivery.message_group_id());
        let sent = self
            .queue
            .send_batch(vec![OutgoingMessage {
                body,
                group,
                delay: Duration::from_secs(delay_secs),
            }])
            .await;
        sent.unwrap().remove(0).unwrap();
    }

    fn park(&self, deliveries: &[Delivery], due: Timestamp) {
        let of = &deliveries[0];
        let id = layout::id_with_carried("20261121T0900Z-x", &bodies(deliveries));
        let key = layout::parked_key(due, &of.topic, &of.subscription, &id);
        self.state.write(&key, objects(deliveries));
    }

    fn hold_these(&self, id: &str, deliveries: &[Delivery]) {
        let of = &deliveries[0];
        let id = layout::id_with_carried(id, &bodies(deliveries));
        let key = layout::held_key(&of.topic, &of.subscription, of.expires_first(), &id);
        self.state.write(&key, objects(deliveries));
    }

    async fn waiting(&self) -> Value {
        self.get(BILLING).await.json()["waiting"].clone()
    }
}

fn bodies(deliveries: &[Delivery]) -> Vec<Bytes> {
    deliveries.iter().map(render_delivery).collect()
}

fn objects(deliveries: &[Delivery]) -> Bytes {
    render_parked(&bodies(deliveries))
}

/// The numbers of waiting events by place, and in sum.
fn places(due: u64, delayed: u64, parked: u64, held: u64) -> Value {
    let queued = due + delayed;
    json!({
        "count": queued + parked + held, "queued": queued, "due": due, "delayed": delayed,
        "underWay": 0, "parked": parked, "held": held,
    })
}

/// The same with the oldest one's time, and the time of the next attempt.
fn waiting_since(mut places: Value, oldest: Timestamp, next: Option<Timestamp>) -> Value {
    places["oldestAcceptedAt"] = json!(oldest.to_string());
    if let Some(next) = next {
        places["nextAttemptAt"] = json!(next.to_string());
    }
    places
}

#[tokio::test]
async fn events_that_wait_are_counted_wherever_they_wait() {
    let api = Api::with_billing().await;
    assert_eq!(api.waiting().await, places(0, 0, 0, 0));
    api.queue_up(&accepted("Billing", 3, 1), 0).await;
    api.queue_up(&accepted("Other", 9, 9), 0).await;
    let expected = waiting_since(places(3, 0, 0, 0), before(1), None);
    assert_eq!(api.waiting().await, expected);
    let due = Timestamp::parse("2026-11-21T10:30:00.000Z").unwrap();
    api.park(
        &[accepted("Billing", 2, 40), accepted("Billing", 1, 30)],
        due,
    );
    api.park(&[accepted("Other", 1, 50)], before(1));
    api.hold_these("a", &[accepted("Billing", 4, 50)]);
    api.hold_these("b", &[accepted("Billing", 1, 20)]);
    api.hold_these("c", &[accepted("Billing-2", 1, 59)]);
    let expected = waiting_since(places(3, 0, 3, 5), before(50), Some(due));
    assert_eq!(api.waiting().await, expected);
    let listed = api.get("/topics/orders/subscriptions").await.json();
    assert_eq!(listed["subscriptions"][0]["waiting"], expected);
}

/// On AWS records say what is in the queue, with the time up to which they are counted.
#[tokio::test]
async fn records_say_what_waits_where_the_queue_cannot_be_asked() {
    let api = Api::with_billing().await.then_like_aws();
    api.hold_these("a", &[accepted("Billing", 4, 50)]);
    let at_least = json!({ "count": 4, "atLeast": true, "parked": 0, "held": 4, "queued": 0 });
    let shown = |waiting: &Value| {
        let members = ["count", "atLeast", "parked", "held", "queued"];
        let kept = members.map(|name| (name.to_owned(), waiting[name].clone()));
        Value::Object(kept.into_iter().filter(|(_, it)| !it.is_null()).collect())
    };
    assert_eq!(shown(&api.waiting().await), at_least);
    let look = WaitingLook::default().next(api.clock.now(), LookOutcome::Exact);
    api.state.write(WAITING_LOOK, look.render());
    let record = LogRecord {
        topic: "orders".to_owned(),
        subscription: "billing".to_owned(),
        wait: WaitTransition::Begins,
        ..LogRecord::default()
    };
    let changes = WaitChanges::from_records("m-1", std::iter::repeat_n(&record, 11));
    for (number, changes) in changes.into_parts() {
        let mut part = WaitingPart::default();
        part.add_messages([&changes], api.clock.now());
        api.state.write(&waiting_part_key(number), part.render());
    }
    let waiting = api.waiting().await;
    let exact = json!({ "count": 11, "parked": 0, "held": 4, "queued": 7 });
    assert_eq!(shown(&waiting), exact);
    let until = LogCoverage::from_ref(&api.manage).complete_until();
    assert_eq!(waiting["countedUntil"], json!(until));
    assert_eq!(
        (&waiting["due"], &waiting["underWay"]),
        (&Value::Null, &Value::Null)
    );
    let links = api.get("/links").await.json();
    assert_eq!(links["links"][0]["waiting"], waiting);
    // What is in the queue may have left no record.
    let message = OutgoingMessage {
        body: render_delivery(&accepted("Billing", 1, 1)),
        group: None,
        delay: Duration::ZERO,
    };
    let queue = &api.manage.deliveries;
    queue.send_batch(vec![message]).await.unwrap();
    let mut at_least = exact;
    at_least["atLeast"] = json!(true);
    assert_eq!(shown(&api.waiting().await), at_least);
    // Nothing is recorded from now on: the numbers say nothing.
    let mut record = TopicRecords::from_ref(&api.manage)
        .load_record(&topic_name("orders"))
        .await
        .unwrap()
        .unwrap();
    record.settings.delivery_log = Some(DeliveryLogMode::Off);
    let key = layout::topic_record_key(&topic_name("orders"));
    api.state.write(&key, record.render());
    let unrecorded = json!({ "count": 4, "atLeast": true, "parked": 0, "held": 4 });
    let waiting = api.waiting().await;
    assert_eq!(shown(&waiting), unrecorded);
    assert_eq!(waiting["countedUntil"], Value::Null);
    let links = api.get("/links").await.json();
    assert_eq!(shown(&links["links"][0]["waiting"]), unrecorded);
}

#[tokio::test]
async fn a_list_counts_for_each_subscription_apart() {
    let api = Api::with_billing().await;
    for name in ["Audit", "Quiet"] {
        assert_eq!(
            api.put(&format!("/topics/orders/subscriptions/{name}"), billing())
                .await
                .status,
            201
        );
    }
    api.queue_up(&accepted("Billing", 3, 1), 0).await;
    api.queue_up(&accepted("Audit", 2, 2), 600).await;
    api.hold_these("a", &[accepted("audit", 4, 50)]);
    let listed = api.get("/topics/orders/subscriptions").await.json();
    let counts: Vec<_> = listed["subscriptions"].as_array().unwrap().iter().collect();
    let counts: Vec<_> = counts
        .iter()
        .map(|it| (&it["name"], &it["waiting"]["count"]))
        .collect();
    let expected = [("Audit", 6), ("Billing", 3), ("Quiet", 0)]
        .map(|(name, count)| (json!(name), json!(count)));
    assert_eq!(
        counts,
        expected
            .iter()
            .map(|(name, count)| (name, count))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        listed["subscriptions"][0]["waiting"]["nextAttemptAt"],
        "1970-01-01T00:10:00.000Z"
    );
}

#[tokio::test]
async fn unknown_contents_count_as_one_event_or_more() {
    let api = Api::with_billing().await;
    let message = |body| OutgoingMessage {
        body,
        group: Some("orders.billing".to_owned()),
        delay: Duration::ZERO,
    };
    api.queue
        .send_batch(vec![message(Bytes::from_static(b"{}"))])
        .await
        .unwrap();
    // As 0.1.0 wrote them.
    for index in 0..1001 {
        let topic = topic_name("orders");
        let name = subscription_name("billing");
        api.state.write(
            &layout::held_key(&topic, &name, before(1), &index.to_string()),
            "{}",
        );
    }
    let waiting = api.waiting().await;
    let of = |member: &str| waiting[member].clone();
    assert_eq!(
        ["count", "atLeast", "due", "held"].map(of),
        [json!(1002), json!(true), json!(1), json!(1001)]
    );
}

/// Writes that a link failed, and how often.
fn fail(api: &Api, link: &str, failures: u32) {
    let target = DeliveryTarget::parse(link).unwrap();
    let mut shard = LinkShard::default();
    let failing = Observation::Failing {
        failures,
        last: RequestFailure {
            outcome: OutcomeName::Busy,
            status: Some(503),
        },
        began: api.clock.now(),
    };
    shard.apply_observation(
        &target,
        &failing,
        api.clock.now(),
        &HealthSettings::default(),
    );
    api.state.write(
        &layout::link_shard_key(shard_index(target.link())),
        shard.render(),
    );
}

/// A subscription's list, its link and its event name one time.
#[tokio::test]
async fn the_next_attempt_is_at_the_same_time_wherever_it_is_shown() {
    let api = Api::with_billing().await;
    api.hold_these("a", &[accepted("Billing", 4, 50)]);
    write(&api, "a", &[refused("two", 80)]);
    let event = async || {
        let shown = api.get("/topics/orders/events/two").await.json();
        shown["deliveries"][0]["nextAttemptAt"].clone()
    };
    let own = event().await;
    assert!(own.is_string());
    fail(&api, "https://billing.example.com:443", 10);
    let probe = api.clock.now() + Duration::from_mins(1);
    let links = api.get("/links").await.json();
    let listed = api.get("/topics/orders/subscriptions").await.json();
    let all = [
        links["links"][0]["nextProbe"].clone(),
        listed["subscriptions"][0]["waiting"]["nextAttemptAt"].clone(),
        api.waiting().await["nextAttemptAt"].clone(),
        event().await,
    ];
    assert_eq!(all, [(); 4].map(|()| json!(probe.to_string())));
    // Nothing is tried before an operator resumes it.
    assert_eq!(
        api.call("POST", &format!("{BILLING}/pause"), &[], "")
            .await
            .status,
        200
    );
    assert_eq!(api.waiting().await.get("nextAttemptAt"), None);
    assert_eq!(event().await, Value::Null);
}

#[tokio::test]
async fn links_show_the_events_that_their_subscriptions_show() {
    let api = Api::with_billing().await;
    let audit = "/topics/orders/subscriptions/Audit";
    assert_eq!(api.put(audit, billing()).await.status, 201);
    api.queue_up(&accepted("Billing", 3, 1), 0).await;
    api.queue_up(&accepted("Audit", 2, 2), 600).await;
    api.hold_these("a", &[accepted("audit", 4, 50)]);
    fail(&api, "https://billing.example.com:443", 10);
    let links = api.get("/links").await.json();
    let waiting = &links["links"][0]["waiting"];
    let expected = waiting_since(places(3, 2, 0, 4), before(50), None);
    assert_eq!(*waiting, expected);
    let listed = api.get("/topics/orders/subscriptions").await.json();
    let counts = listed["subscriptions"].as_array().unwrap().iter();
    let sum: u64 = counts
        .filter_map(|it| it["waiting"]["count"].as_u64())
        .sum();
    assert_eq!(waiting["count"], sum);
}

#[tokio::test]
async fn circuit_is_that_of_the_subscription_or_else_of_its_link() {
    let api = Api::with_billing().await;
    let shown = api.get(BILLING).await.json();
    assert_eq!(shown.get("circuit"), None);
    assert_eq!(shown["health"], json!({ "state": "healthy" }));
    let last = RequestFailure {
        outcome: OutcomeName::Busy,
        status: Some(503),
    };
    let failing = Observation::Failing {
        failures: 10,
        last,
        began: api.clock.now(),
    };
    let mut shard = LinkShard::default();
    for (target, scope) in [
        ("https://billing.example.com:443", "link"),
        (
            "https://billing.example.com:443 orders.billing",
            "subscription",
        ),
    ] {
        let target = DeliveryTarget::parse(target).unwrap();
        shard.apply_observation(
            &target,
            &failing,
            api.clock.now(),
            &HealthSettings::default(),
        );
        api.state.write(
            &layout::link_shard_key(shard_index(target.link())),
            shard.render(),
        );
        let shown = api.get(BILLING).await.json();
        let of = |member: &str| shown["circuit"][member].clone();
        let expected = [json!(scope), json!("glitch"), json!("Busy"), json!(503)];
        assert_eq!(
            ["scope", "state", "lastOutcome", "lastHttpStatusCode"].map(of),
            expected
        );
        let health = json!({
            "state": "down", "since": api.clock.now().to_string(), "lastOutcome": "Busy",
            "lastHttpStatusCode": 503,
        });
        assert_eq!(shown["health"], health, "a link that is held off");
    }
}

/// The endpoint refuses everything, so its circuit is closed.
#[tokio::test]
async fn health_says_what_arrives_whatever_the_circuit() {
    let api = Api::with_billing().await;
    let now = api.clock.now();
    let refused = SeenTry {
        key: "a",
        accepted_at: now,
        at: now,
        is_first: true,
        result: TryResult::Failed {
            outcome: Some(OutcomeName::Unauthorized),
            status: Some(401),
            is_last: true,
        },
    };
    let mut tries = SubscriptionTries::default();
    (0..100).for_each(|_| tries.add_try(&refused));
    let mut book = HealthBook::default();
    book.add_tries([("orders.billing".to_owned(), tries)].into(), "run");
    api.state.write(HEALTH, book.render());
    let shown = api.get(BILLING).await.json();
    let listed = api.get("/topics/orders/subscriptions").await.json();
    assert_eq!(shown.get("circuit"), None);
    let of = |member: &str| shown["health"][member].clone();
    let members = [
        "state",
        "arrivedPercent",
        "tried",
        "failedInRow",
        "lastHttpStatusCode",
    ];
    let expected = [json!("down"), json!(0), json!(100), json!(100), json!(401)];
    assert_eq!(members.map(of), expected);
    assert_eq!(listed["subscriptions"][0]["health"], shown["health"]);
    let paused = api.call("POST", &format!("{BILLING}/pause"), &[], "").await;
    assert_eq!(paused.status, 200);
    assert_eq!(api.get(BILLING).await.json()["health"]["state"], "paused");
}

#[tokio::test]
async fn the_last_outcome_is_that_of_the_newest_attempt_in_the_log() {
    let api = Api::with_billing().await;
    assert_eq!(api.get(BILLING).await.json().get("lastOutcome"), None);
    write(&api, "old", &[delivered("too-old", 25 * 60)]);
    assert_eq!(api.get(BILLING).await.json().get("lastOutcome"), None);
    write(&api, "a", &[delivered("one", 90), refused("two", 80)]);
    let expected = json!({ "at": before(80).to_string(), "outcome": "Busy", "status": 503 });
    assert_eq!(api.get(BILLING).await.json()["lastOutcome"], expected);
    // A list shows none: it would read the log once for each subscription.
    let listed = api.get("/topics/orders/subscriptions").await.json();
    assert_eq!(listed["subscriptions"][0].get("lastOutcome"), None);
    api.log.fail(ErrorKind::Other);
    let shown = api.get(BILLING).await;
    assert_eq!((shown.status, shown.json().get("lastOutcome")), (200, None));
}

#[tokio::test]
async fn shown_waiting_can_be_put_back_and_is_never_stored() {
    let api = Api::with_billing().await;
    api.hold_these("a", &[accepted("Billing", 4, 50)]);
    write(&api, "a", &[delivered("one", 90)]);
    let shown = api.get(BILLING).await;
    assert!(shown.json()["waiting"]["count"] == 4 && shown.json()["lastOutcome"].is_object());
    let put = api.put(BILLING, shown.json()).await;
    assert_eq!(
        (put.status, put.header("etag")),
        (200, shown.header("etag"))
    );
    for member in ["waiting", "lastOutcome", "health", "circuit"] {
        assert_eq!(put.json().get(member), None, "{member}");
        assert_eq!(
            api.get("/topics/orders").await.json()["subscriptions"]["Billing"].get(member),
            None
        );
    }
}
