//! The list of what fails now: its rows, their order, and what is said where something cannot be
//! read.

mod unread;

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::circuit::{
    DeliveryTarget, HealthSettings, LinkShard, Observation, RequestFailure, shard_index,
};
use posthaste_core::health::{HealthBook, SeenTry, SubscriptionTries, TryResult};
use posthaste_core::model::{OutcomeName, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{HEALTH, layout};
use posthaste_ports::{Clock, ErrorKind};
use serde_json::{Map, Value, json};

use super::{Api, billing};

const LINK: &str = "https://billing.example.com:443";

/// A failure without a status, and one with.
const REFUSED: TryResult = TryResult::Failed {
    outcome: Some(OutcomeName::Unauthorized),
    status: Some(401),
    is_last: true,
};

/// Shards of links that are not well.
#[derive(Default)]
struct FailingLinks(BTreeMap<usize, LinkShard>);

impl FailingLinks {
    fn fail(&mut self, target: &str, at: Timestamp) {
        let last = RequestFailure {
            outcome: OutcomeName::Busy,
            status: Some(503),
        };
        let failing = Observation::Failing {
            failures: 10,
            last,
            began: at,
        };
        let target = DeliveryTarget::parse(target).unwrap();
        let shard = self.0.entry(shard_index(target.link())).or_default();
        shard.apply_observation(&target, &failing, at, &HealthSettings::default());
    }

    fn write(&self, api: &Api) {
        for (index, shard) in &self.0 {
            api.state
                .write(&layout::link_shard_key(*index), shard.render());
        }
    }
}

/// The tries of a subscription: arrivals, and then failures.
fn tries(arrived: u32, failed: u32, at: Timestamp) -> SubscriptionTries {
    let mut tries = SubscriptionTries::default();
    let arrivals = (0..arrived).map(|_| TryResult::Arrived);
    let failures = (0..failed).map(|_| REFUSED);
    for (number, result) in arrivals.chain(failures).enumerate() {
        tries.add_try(&SeenTry {
            key: &number.to_string(),
            accepted_at: at,
            at,
            is_first: true,
            result,
        });
    }
    tries
}

impl Api {
    /// Writes that tries of these subscriptions failed.
    fn note_failures(&self, subscriptions: &[(&str, SubscriptionTries)]) {
        let tries = subscriptions
            .iter()
            .map(|(key, tries)| ((*key).to_owned(), tries.clone()));
        let mut book = HealthBook::default();
        book.add_tries(tries.collect(), "run");
        self.state.write(HEALTH, book.render());
    }

    fn hold_objects(&self, name: &str, objects: usize) {
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse(name).unwrap();
        for index in 0..objects {
            let key = layout::held_key(&topic, &name, Timestamp::EPOCH, &index.to_string());
            self.state.write(&key, "{}");
        }
    }

    async fn put_subscription(&self, name: &str, url: &str) {
        let path = format!("/topics/orders/subscriptions/{name}");
        let body = json!({ "endpoint": { "url": url } });
        assert_eq!(self.put(&path, body).await.status, 201, "{name}");
    }

    async fn failing(&self, query: &str) -> Value {
        let answer = self.get(&format!("/failing{query}")).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        answer.json()
    }
}

/// The subscriptions or links of a view, each with its state.
fn rows(view: &Value) -> Vec<String> {
    let rows = view["failing"].as_array().unwrap().iter();
    rows.map(|row| {
        let name = row["subscription"].as_str().or(row["link"].as_str());
        format!("{} {}", name.unwrap(), row["state"].as_str().unwrap())
    })
    .collect()
}

#[tokio::test]
async fn healthy_installation_has_no_row() {
    let api = Api::with_billing().await;
    let view = api.failing("").await;
    assert_eq!(view["failing"], json!([]));
    let members = ["total", "recovering", "stopped"].map(|member| view[member].clone());
    assert_eq!(members, [json!(0), json!(0), json!(0)]);
    assert_eq!(view["waiting"]["count"], 0);
    assert_eq!(view["countedAt"], api.clock.now().to_string());
    assert_eq!([view.get("leftOut"), view.get("truncated")], [None, None]);
}

/// A link that does not answer, an endpoint that refuses, one that refuses some, and a pause.
#[tokio::test]
async fn four_causes_make_four_rows_the_oldest_first() {
    let api = Api::with_billing().await;
    let began = api.clock.now();
    for name in ["crm", "audit", "stock", "well"] {
        api.put_subscription(name, &format!("https://{name}.example.com/"))
            .await;
    }
    let mut links = FailingLinks::default();
    links.fail(LINK, began);
    links.write(&api);
    api.hold_objects("billing", 2);
    api.hold_objects("stock", 1);
    let paused = "/topics/orders/subscriptions/stock/pause";
    assert_eq!(api.call("POST", paused, &[], "").await.status, 200);
    api.clock.advance(Duration::from_mins(2));
    let now = api.clock.now();
    api.note_failures(&[
        ("orders.crm", tries(0, 30, now)),
        ("orders.audit", tries(10, 30, now)),
        ("orders.well", tries(10, 1, now)),
    ]);
    let view = api.failing("").await;
    assert_eq!(
        rows(&view),
        ["Billing down", "audit failing", "crm down", "stock paused"]
    );
    assert_eq!([&view["total"], &view["stopped"]], [&json!(4), &json!(1)]);
    assert_eq!(view["waiting"]["count"], 3);
    let link = json!({
        "scope": "link", "link": LINK, "topic": "Orders", "subscription": "Billing", "state": "down",
        "since": began.to_string(), "lastOutcome": "Busy", "lastHttpStatusCode": 503,
        "waiting": {
            "count": 2, "atLeast": true, "queued": 0, "due": 0, "delayed": 0, "underWay": 0,
            "parked": 0, "held": 2, "nextAttemptAt": (began + Duration::from_mins(1)).to_string(),
        },
        "nextAttemptAt": (began + Duration::from_mins(1)).to_string(),
    });
    assert_eq!(view["failing"][0], link);
    let refused = &view["failing"][1];
    let hour = json!({ "arrived": 10, "tried": 40, "from": now.to_string() });
    assert_eq!(refused["hour"], hour);
    let members = ["scope", "lastOutcome", "lastHttpStatusCode"].map(|it| refused[it].clone());
    assert_eq!(
        members,
        [json!("subscription"), json!("Unauthorized"), json!(401)]
    );
    assert_eq!(view["failing"][3].get("nextAttemptAt"), None);
}

/// A refresh that moves a row would move its buttons under the pointer.
#[tokio::test]
async fn counts_do_not_change_the_order() {
    let api = Api::with_billing().await;
    let now = api.clock.now();
    for name in ["a", "b", "c"] {
        api.put_subscription(name, &format!("https://{name}.example.com/"))
            .await;
    }
    let failed = [("orders.a", 10), ("orders.b", 500), ("orders.c", 90)];
    api.note_failures(&failed.map(|(key, failed)| (key, tries(0, failed, now))));
    let before = rows(&api.failing("").await);
    assert_eq!(before, ["a down", "b down", "c down"]);
    api.hold_objects("c", 9);
    let failed = [("orders.a", 900), ("orders.b", 20), ("orders.c", 4_000)];
    api.note_failures(&failed.map(|(key, failed)| (key, tries(0, failed, now))));
    assert_eq!(rows(&api.failing("").await), before);
}

/// Five rows tell of a host, and the last of them how many more there are.
#[tokio::test]
async fn host_with_500_subscriptions_leaves_room_for_others() {
    let api = Api::with_billing().await;
    let now = api.clock.now();
    let settings = |number: usize| {
        let url = format!("https://big.example.com/{number}");
        (
            format!("s{number:03}"),
            json!({ "endpoint": { "url": url } }),
        )
    };
    let all: Map<_, _> = (0..500).map(settings).collect();
    let body = json!({ "subscriptions": all });
    assert_eq!(api.put("/topics/many", body).await.status, 201);
    let keys: Vec<_> = (0..500)
        .map(|number| format!("many.s{number:03}"))
        .collect();
    let mut failed: Vec<_> = keys
        .iter()
        .map(|key| (key.as_str(), tries(0, 10, now)))
        .collect();
    failed.push(("orders.billing", tries(0, 10, now)));
    api.note_failures(&failed);
    let view = api.failing("").await;
    let expected =
        ["s000", "s001", "s002", "s003", "s004", "Billing"].map(|it| format!("{it} down"));
    assert_eq!(rows(&view), expected);
    assert_eq!(view["failing"][4]["others"], 495);
    assert_eq!(view["failing"][3].get("others"), None);
    assert_eq!([&view["total"], &view["stopped"]], [&json!(501), &json!(0)]);
    let whole = api.failing("?name=BIG.example&limit=500").await;
    assert_eq!(whole["failing"].as_array().unwrap().len(), 500);
    assert_eq!(
        [&whole["total"], &whole["failing"][4]["subscription"]],
        [&json!(500), &json!("s004")]
    );
}

#[tokio::test]
async fn pages_follow_each_other_and_filters_select() {
    let api = Api::with_billing().await;
    let now = api.clock.now();
    for name in ["a", "b", "c"] {
        api.put_subscription(name, &format!("https://{name}.example.com/"))
            .await;
    }
    let keys = ["orders.a", "orders.b", "orders.c"];
    api.note_failures(&keys.map(|key| (key, tries(0, 10, now))));
    let first = api.failing("?limit=2").await;
    assert_eq!(rows(&first), ["a down", "b down"]);
    let cursor = first["cursor"].as_str().unwrap();
    let second = api.failing(&format!("?limit=2&cursor={cursor}")).await;
    assert_eq!(rows(&second), ["c down"]);
    assert_eq!(
        [&second["total"], &second["cursor"]],
        [&json!(3), &Value::Null]
    );
    assert_eq!(rows(&api.failing("?name=B.EXAMPLE").await), ["b down"]);
    assert_eq!(rows(&api.failing("?name=ORDERS").await).len(), 3);
    assert_eq!(rows(&api.failing("?state=failing").await), [""; 0]);
    assert_eq!(rows(&api.failing("?state=down").await).len(), 3);
    for query in [
        "limit=0",
        "cursor=x!",
        "cursor=eA",
        "state=broken",
        "other=1",
    ] {
        let answer = api.get(&format!("/failing?{query}")).await;
        answer.problem(400, "about:blank");
    }
}

/// A row says what is known, and the answer what is not.
#[tokio::test]
async fn part_that_cannot_be_read_is_named_and_hides_no_other() {
    let failing_link = async || {
        let api = Api::with_billing().await;
        let mut links = FailingLinks::default();
        links.fail(LINK, api.clock.now());
        links.write(&api);
        api.hold_objects("billing", 1);
        api.note_failures(&[("orders.billing", tries(0, 30, api.clock.now()))]);
        api
    };
    let api = failing_link().await;
    api.state.damage(HEALTH);
    let view = api.failing("").await;
    assert_eq!(
        (rows(&view), &view["leftOut"]),
        (vec!["Billing down".to_owned()], &json!(["health"]))
    );
    let api = failing_link().await;
    api.state.damage("topics/orders.json");
    let view = api.failing("").await;
    let expected = vec![format!("{LINK} failing"), "billing unknown".to_owned()];
    assert_eq!((rows(&view), view.get("leftOut")), (expected, None));
    assert_eq!(view["failing"][1]["waiting"]["count"], 1);
    let api = failing_link().await;
    api.state.fail(ErrorKind::Other);
    api.get("/failing").await.problem(503, "unavailable");
}

/// A subscription that is gone, or stopped without anything that waits, needs nobody.
#[tokio::test]
async fn subscription_that_is_gone_or_stopped_has_no_row() {
    let api = Api::with_billing().await;
    let now = api.clock.now();
    api.note_failures(&[
        ("orders.billing", tries(0, 30, now)),
        ("orders.gone", tries(0, 30, now)),
        ("gone.billing", tries(0, 30, now)),
    ]);
    assert_eq!(rows(&api.failing("").await), ["Billing down"]);
    let paused = "/topics/orders/subscriptions/billing/pause";
    assert_eq!(api.call("POST", paused, &[], "").await.status, 200);
    assert_eq!(rows(&api.failing("").await), [""; 0]);
    let path = "/topics/orders/subscriptions/billing";
    assert_eq!(api.delete(path).await.status, 204);
    assert_eq!(api.put(path, billing()).await.status, 201);
}

/// After a retry by an operator the row says so, and keeps its place.
#[tokio::test]
async fn retry_now_makes_a_row_recovering() {
    let api = Api::with_billing().await;
    let began = api.clock.now();
    let mut links = FailingLinks::default();
    links.fail(LINK, began);
    links.write(&api);
    assert_eq!(rows(&api.failing("").await), [format!("{LINK} failing")]);
    api.clock.advance(Duration::from_secs(5));
    let force = "/topics/orders/subscriptions/billing/force";
    assert_eq!(api.call("POST", force, &[], "").await.status, 200);
    let view = api.failing("").await;
    assert_eq!(rows(&view), [format!("{LINK} recovering")]);
    let row = &view["failing"][0];
    assert_eq!(
        (&row["since"], row.get("nextAttemptAt")),
        (&json!(began.to_string()), None)
    );
    assert_eq!(view["recovering"], 1);
}
