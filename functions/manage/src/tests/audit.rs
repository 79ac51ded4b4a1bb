//! The audit trail: every change has one entry, whoever makes it, and no entry has a secret.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use posthaste_core::api::PeerAddress;
use posthaste_core::model::KeyDigest;
use posthaste_core::stored::layout;
use posthaste_ports::{Entropy, ErrorKind};
use posthaste_testkit::endpoint::answered;
use serde_json::{Value, json};

use super::{ADMIN_KEY, Answer, Api, TestPorts, billing};
use crate::router::openapi_document;

const TOPIC: &str = "/topics/Orders";
const SUBSCRIPTION: &str = "/topics/Orders/subscriptions/Billing";
const LETTERS: &str = "ORDERS/BILLING/2026/11/21/10/a.json";
const MILLISECOND: Duration = Duration::from_millis(1);

/// The entries that a list with this query has, the newest first.
async fn entries(api: &Api, query: &str) -> Vec<Value> {
    let answer = api.get(&format!("/audit?limit=1000&{query}")).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let page = answer.json();
    assert_eq!(page.get("cursor"), None, "{page}");
    page["entries"].as_array().unwrap().clone()
}

/// The operations of the newest entries.
async fn actions(api: &Api, query: &str) -> Vec<String> {
    let all = entries(api, query).await;
    let action = |entry: &Value| entry["action"].as_str().unwrap().to_owned();
    all.iter().map(action).collect()
}

async fn post(api: &Api, path: &str, body: Value) -> Answer {
    let json = [("content-type", "application/json")];
    api.call("POST", path, &json, body.to_string()).await
}

/// Every operation of the API that may change something: all that are not safe, and the consent by
/// GET. Publishing is none.
fn changing_operations() -> BTreeSet<String> {
    let document = serde_json::to_value(openapi_document::<TestPorts>()).unwrap();
    let mut found = BTreeSet::from(["get /validate/{topic}/{subscription}/{code}".to_owned()]);
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let is_publish = operation["tags"] == json!(["publish"]);
            if method != "get" && method != "parameters" && !is_publish {
                found.insert(format!("{method} {path}"));
            }
        }
    }
    found
}

/// A walk over all operations that change something.
struct Walk {
    api: Api,
    walked: BTreeSet<String>,
}

impl Walk {
    /// Makes a request, and wants one more entry, of this operation.
    async fn step(&mut self, operation: &str, action: &str, request: impl AsyncFn(&Api) -> Answer) {
        self.api.clock.advance(MILLISECOND);
        let before = entries(&self.api, "").await.len();
        let answer = request(&self.api).await;
        assert!(
            (200..300).contains(&answer.status),
            "{operation}: {:?}",
            answer.body
        );
        let after = entries(&self.api, "").await;
        assert_eq!(after.len(), before + 1, "{operation}");
        let entry = &after[0];
        assert_eq!(
            (&entry["action"], &entry["outcome"]),
            (&json!(action), &json!("done")),
            "{operation}: {entry}"
        );
        let who = if action == "subscription.consent" {
            (json!("endpoint"), Value::Null)
        } else {
            (
                json!("adminKey"),
                json!(KeyDigest::for_key(ADMIN_KEY).tag()),
            )
        };
        assert_eq!((entry["actor"].clone(), entry["key"].clone()), who);
        self.walked.insert(operation.to_owned());
    }

    /// Leaves a subscription whose endpoint is yet to consent, and returns the path for it.
    async fn pending(&self, name: &str) -> String {
        self.api.endpoint.take();
        self.api.endpoint.answer(|_| answered(200, &[], ""));
        let mut settings = billing();
        settings["endpoint"]["validation"] = "CloudEvents".into();
        let path = format!("{TOPIC}/subscriptions/{name}");
        assert_eq!(self.api.put(&path, settings).await.status, 201);
        let asked = self.api.endpoint.take();
        let url = asked[0].headers["webhook-request-callback"].to_str();
        let path = url.unwrap().strip_prefix("https://manage.example/base");
        path.unwrap().to_owned()
    }
}

async fn call_back(api: &Api, method: &str, path: &str) -> Answer {
    let request = Request::builder().method(method).uri(path);
    api.send(request.body(Body::empty()).unwrap()).await
}

/// A route that changes something and has no entry fails here, and so does one that is new.
#[tokio::test]
async fn every_operation_that_changes_something_has_one_entry() {
    let api = Api::new();
    let walked = BTreeSet::new();
    let mut walk = Walk { api, walked };
    walk.step("put /topics/{topic}", "topic.put", async |api| {
        api.put(TOPIC, json!({})).await
    })
    .await;
    walk.step(
        "put /topics/{topic}/subscriptions/{name}",
        "subscription.put",
        async |api| api.put(SUBSCRIPTION, billing()).await,
    )
    .await;
    let keys = format!("{TOPIC}/keys/internalKey1");
    walk.step(
        "post /topics/{topic}/keys/{key}/regenerate",
        "key.regenerate",
        async |api| post(api, &format!("{keys}/regenerate"), json!({})).await,
    )
    .await;
    walk.step(
        "delete /topics/{topic}/keys/{key}",
        "key.delete",
        async |api| api.delete(&keys).await,
    )
    .await;
    for action in ["pause", "resume", "disable", "enable"] {
        walk.step(
            "post /topics/{topic}/subscriptions/{name}/{action}",
            &format!("subscription.{action}"),
            async |api| post(api, &format!("{SUBSCRIPTION}/{action}"), json!({})).await,
        )
        .await;
    }
    for (action, operation) in [
        ("force", "subscription.force"),
        ("rotate-secret", "subscription.rotate-secret"),
        ("test", "subscription.test"),
    ] {
        let body = if action == "test" { "" } else { "{}" };
        let json = [("content-type", "application/json")];
        walk.step(
            &format!("post /topics/{{topic}}/subscriptions/{{name}}/{action}"),
            operation,
            async |api| {
                let path = format!("{SUBSCRIPTION}/{action}");
                api.call("POST", &path, &json, body).await
            },
        )
        .await;
    }
    walk_over_letters(&mut walk).await;
    for (method, name) in [("GET", "one"), ("POST", "two")] {
        let path = walk.pending(name).await;
        let operation = format!(
            "{} /validate/{{topic}}/{{subscription}}/{{code}}",
            method.to_lowercase()
        );
        walk.step(&operation, "subscription.consent", async |api| {
            call_back(api, method, &path).await
        })
        .await;
    }
    walk.step(
        "delete /topics/{topic}/subscriptions/{name}",
        "subscription.delete",
        async |api| api.delete(SUBSCRIPTION).await,
    )
    .await;
    walk.step("delete /topics/{topic}", "topic.delete", async |api| {
        api.delete(TOPIC).await
    })
    .await;
    assert_eq!(walk.walked, changing_operations());
}

async fn walk_over_letters(walk: &mut Walk) {
    let letter = |id: &str| {
        json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t",
            "deadletterreason": "EndpointGone" })
    };
    let letters = json!([letter("1"), letter("2")]);
    walk.api.dead_letters.write(LETTERS, letters.to_string());
    walk.api.clock.advance(Duration::from_mins(1));
    walk.step(
        "post /topics/{topic}/subscriptions/{name}/events/{id}/resend",
        "event.resend",
        async |api| post(api, &format!("{SUBSCRIPTION}/events/1/resend"), json!({})).await,
    )
    .await;
    walk.step(
        "delete /topics/{topic}/events/{id}",
        "event.cancel",
        async |api| api.delete(&format!("{TOPIC}/events/1")).await,
    )
    .await;
    let of_letters = format!("{SUBSCRIPTION}/dead-letters");
    for (word, action) in [
        ("replay", "replay.begin"),
        ("resolve", "dead-letters.resolve"),
        ("delete", "dead-letters.delete"),
    ] {
        walk.step(
            &format!("post /topics/{{topic}}/subscriptions/{{name}}/dead-letters/{word}"),
            action,
            async |api| post(api, &format!("{of_letters}/{word}"), json!({})).await,
        )
        .await;
    }
    let work = json!({ "v": 1, "id": "open", "topic": "Orders", "subscription": "Billing",
        "end": "resolve", "request": {}, "beganAt": 0, "workedAt": 0 });
    walk.api.state.write("ending/0a", work.to_string());
    walk.step(
        "delete /dead-letters/work/{id}",
        "dead-letters.cancel",
        async |api| api.delete("/dead-letters/work/open").await,
    )
    .await;
    let letter = json!({ "id": "1", "deadletterreason": "EndpointGone" });
    let object = "ORDERS/BILLING/2026/3/7/4/a.json";
    let import = json!({ "objects": [{ "object": object, "letters": [letter] }] });
    walk.step(
        "post /dead-letters/import",
        "dead-letters.import",
        async |api| post(api, "/dead-letters/import", import.clone()).await,
    )
    .await;
    let replays = walk.api.get("/replays").await.json();
    let replay = format!("/replays/{}", replays["replays"][0]["id"].as_str().unwrap());
    walk.step("delete /replays/{id}", "replay.cancel", async |api| {
        api.delete(&replay).await
    })
    .await;
    let cancelled = &entries(&walk.api, "").await[0];
    assert_eq!(
        cancelled["changes"],
        json!([{ "member": "state", "before": "Running", "after": "Cancelled" }])
    );
}

#[tokio::test]
async fn reads_dry_runs_and_refusals_have_no_entry() {
    let api = Api::with_billing().await;
    let before = entries(&api, "").await.len();
    for path in ["/topics", TOPIC, SUBSCRIPTION, "/links", "/replays"] {
        assert_eq!(api.get(path).await.status, 200, "{path}");
    }
    for word in ["replay", "resolve", "delete"] {
        let path = format!("{SUBSCRIPTION}/dead-letters/{word}");
        let answer = post(&api, &path, json!({ "dryRun": true })).await;
        assert_eq!(answer.status, 200, "{word}");
    }
    let bad = json!({ "endpoint": { "url": "http://10.0.0.1/" } });
    assert_eq!(api.put(SUBSCRIPTION, bad).await.status, 400);
    let other = [
        ("if-match", "\"other\""),
        ("content-type", "application/json"),
    ];
    let refused = api.call("PUT", SUBSCRIPTION, &other, billing().to_string());
    assert_eq!(refused.await.status, 412);
    assert_eq!(api.delete("/topics/none").await.status, 404);
    let resumed = post(&api, &format!("{SUBSCRIPTION}/resume"), json!({})).await;
    assert_eq!(resumed.status, 409);
    assert_eq!(entries(&api, "").await.len(), before);
}

/// Settings that are applied again and again would push the changes out.
#[tokio::test]
async fn put_that_changes_nothing_has_no_entry() {
    let api = Api::new();
    let settings = json!({
        "endpoint": { "url": "https://a.example/?key=one" },
        "signing": { "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] },
        "deliveryHeaders": [{ "name": "Authorization", "value": "Bearer token", "isSecret": true }],
    });
    let topic = json!({ "defaultTimeToLive": "PT1H", "subscriptions": { "Second": settings } });
    api.put(TOPIC, topic.clone()).await;
    api.put(SUBSCRIPTION, settings.clone()).await;
    let before = entries(&api, "").await;
    assert_eq!(before.len(), 2);
    let shown = api.get(SUBSCRIPTION).await.json();
    for (path, body) in [
        (TOPIC, topic),
        (SUBSCRIPTION, settings.clone()),
        (SUBSCRIPTION, shown),
    ] {
        api.clock.advance(MILLISECOND);
        let version = api.get(path).await.header("etag").to_owned();
        let answer = api.put(path, body).await;
        assert_eq!(
            (answer.status, answer.header("etag")),
            (200, version.as_str())
        );
        assert_eq!(entries(&api, "").await, before, "{path}");
    }
    // The query is not shown, and yet it is a change.
    let mut other = settings;
    other["endpoint"]["url"] = "https://a.example/?key=two".into();
    api.clock.advance(MILLISECOND);
    api.put(SUBSCRIPTION, other).await;
    assert_eq!(entries(&api, "").await.len(), 3);
}

#[tokio::test]
async fn entry_says_what_was_before_and_after_without_secrets() {
    let api = Api::new();
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let settings = |url: &str, token: &str| {
        json!({
            "endpoint": { "url": url },
            "signing": { "secrets": [secret] },
            "deliveryHeaders": [{ "name": "Authorization", "value": token, "isSecret": true }],
        })
    };
    api.put(TOPIC, json!({})).await;
    let first = settings("https://a.example/?key=in-the-query", "Bearer first-token");
    assert_eq!(api.put(SUBSCRIPTION, first).await.status, 201);
    api.clock.advance(MILLISECOND);
    let second = settings("https://b.example/?key=in-the-query", "Bearer other-token");
    assert_eq!(api.put(SUBSCRIPTION, second).await.status, 200);
    api.clock.advance(MILLISECOND);
    let rotated = post(&api, &format!("{SUBSCRIPTION}/rotate-secret"), json!({})).await;
    let made = rotated.json()["secret"].as_str().unwrap().to_owned();
    post(&api, &format!("{TOPIC}/keys/key1/regenerate"), json!({})).await;
    let keys = api.get(&format!("{TOPIC}/keys")).await.json();

    let all = entries(&api, "").await;
    let put = all
        .iter()
        .find(|entry| entry["changes"][0]["before"] == "https://a.example/?…");
    let changes = json!([
        { "member": "subscriptions.Billing.endpoint.url",
          "before": "https://a.example/?…", "after": "https://b.example/?…" },
        { "member": "subscriptions.Billing.deliveryHeaders",
          "before": "(masked)", "after": "(masked)" },
    ]);
    assert_eq!(put.unwrap()["changes"], changes);
    let text = json!(all).to_string();
    let trail = api.state.list_text(layout::AUDIT);
    for hidden in [
        secret,
        &made,
        "in-the-query",
        "first-token",
        "other-token",
        keys["key1"].as_str().unwrap(),
        ADMIN_KEY,
    ] {
        assert!(!text.contains(hidden), "{hidden} is shown");
        assert!(!trail.contains(hidden), "{hidden} is stored");
    }
    assert!(text.contains("keys.key1") && text.contains("(masked:"));
}

#[tokio::test]
async fn entry_says_from_where_and_by_which_way() {
    let api = Api::new();
    let address: IpAddr = "203.0.113.7".parse().unwrap();
    for (agent, via) in [("curl/8.5.0", "api"), ("posthaste/0.2.0", "cli")] {
        api.clock.advance(MILLISECOND);
        let request = Request::put(format!("/topics/{via}"))
            .header("authorization", format!("Bearer {ADMIN_KEY}"))
            .header("content-type", "application/json")
            .header("user-agent", agent)
            .extension(PeerAddress(address));
        api.send(request.body(Body::from("{}")).unwrap()).await;
        let entry = &entries(&api, "").await[0];
        assert_eq!(
            (&entry["via"], &entry["address"]),
            (&json!(via), &json!("203.0.113.7")),
            "{agent}"
        );
    }
}

#[tokio::test]
async fn wrong_keys_are_one_entry_an_hour_with_their_number() {
    let api = Api::new();
    let guess = async || {
        let request = Request::put(TOPIC)
            .header("authorization", "Bearer a-key-that-opens-nothing")
            .extension(PeerAddress("203.0.113.9".parse().unwrap()));
        let answer = api.send(request.body(Body::from("{}")).unwrap()).await;
        assert_eq!(answer.status, 401);
    };
    for _ in 0..5 {
        guess().await;
    }
    // Those since the last line of the log are added with the next one.
    api.clock.advance(Duration::from_mins(2));
    guess().await;
    let all = entries(&api, "").await;
    let expected = json!([{
        "id": "refused-api", "at": "2026-11-21T10:00:00.000Z", "actor": "unknown", "via": "api",
        "address": "203.0.113.9", "action": "key.refused", "outcome": "refused", "count": 6,
    }]);
    assert_eq!(json!(all), expected);
    let text = api.state.list_text(layout::AUDIT);
    assert!(!text.contains("opens-nothing"), "{text}");
    api.clock.advance(Duration::from_hours(1));
    guess().await;
    assert_eq!(entries(&api, "").await.len(), 2);
}

#[tokio::test]
async fn changes_of_two_workers_at_once_have_an_entry_each() {
    let one = Api::with_billing().await;
    let other = Api::over(one.state.clone(), one.dead_letters.clone());
    // The numbers of another worker are other ones.
    other.manage.entropy.fill(&mut [0; 8 * 2_000]);
    let before = entries(&one, "").await.len();
    let put = async |api: &Api, nth: usize| {
        let path = format!("{TOPIC}/subscriptions/s{nth}");
        let status = api.put(&path, billing()).await.status;
        assert!([201, 409].contains(&status), "{status}");
        usize::from(status == 201)
    };
    let both = async |nth: usize| {
        let (first, second) = tokio::join!(put(&one, 2 * nth), put(&other, 2 * nth + 1));
        first + second
    };
    let mut made = 0;
    for nth in 0..8 {
        made += both(nth).await;
    }
    let all = entries(&one, "").await;
    let done = all.iter().filter(|entry| entry["outcome"] == "done");
    assert_eq!(done.count(), before + made);
    assert_eq!(made, 16);
}

#[tokio::test]
async fn change_whose_entry_cannot_be_written_is_not_made() {
    let api = Api::with_billing().await;
    let before = api.state.read("topics/orders.json");
    let kept = entries(&api, "").await;
    api.state.fail_puts(ErrorKind::TimedOut);
    assert_eq!(api.delete(SUBSCRIPTION).await.status, 503);
    api.state.mend_puts();
    assert_eq!(api.state.read("topics/orders.json"), before);
    assert_eq!(entries(&api, "").await, kept);
}

/// The subscription is deleted by another worker between the look at it and the write.
#[tokio::test]
async fn change_that_lost_its_race_is_refused_in_its_entry() {
    let api = Api::with_billing().await;
    let other = Api::over(api.state.clone(), api.dead_letters.clone());
    api.clock.advance(MILLISECOND);
    let bare = {
        let bare = Api::new();
        bare.put(TOPIC, json!({})).await;
        bare.state.read("topics/orders.json").unwrap()
    };
    let state = other.state.clone();
    api.state.when_put(layout::AUDIT, move || {
        state.write("topics/orders.json", bare.clone());
    });
    let answer = api.delete(SUBSCRIPTION).await;
    assert_eq!(answer.status, 404, "{:?}", answer.body);
    let entry = &entries(&api, "").await[0];
    assert_eq!(
        (&entry["action"], &entry["outcome"]),
        (&json!("subscription.delete"), &json!("refused")),
        "{entry}"
    );
}

/// The answer to a write is lost, and the store is asked again: it has this very record.
#[tokio::test]
async fn change_whose_answer_was_lost_keeps_what_it_changed() {
    let api = Api::with_billing().await;
    let other = {
        let state = api.state.clone();
        let other = Api::with_billing().await;
        assert_eq!(
            other.state.read("topics/orders.json"),
            state.read("topics/orders.json")
        );
        other.clock.advance(MILLISECOND);
        let paused = post(&other, &format!("{SUBSCRIPTION}/pause"), json!({})).await;
        assert_eq!(paused.status, 200, "{:?}", paused.body);
        let made = other.state.read("topics/orders.json").unwrap();
        move || state.write("topics/orders.json", made.clone())
    };
    api.clock.advance(MILLISECOND);
    api.state.when_put(layout::AUDIT, other);
    let answer = post(&api, &format!("{SUBSCRIPTION}/pause"), json!({})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let entry = &entries(&api, "").await[0];
    assert_eq!(
        (&entry["action"], &entry["outcome"]),
        (&json!("subscription.pause"), &json!("done")),
        "{entry}"
    );
    assert_ne!(entry.get("changes"), None, "{entry}");
}

/// Makes a change and then another one with an API of its own, each a millisecond later, from the
/// state of [`Api::with_billing`].
async fn record_after(change: &str, third: &str) -> Bytes {
    let other = Api::with_billing().await;
    for path in [change, third] {
        other.clock.advance(MILLISECOND);
        let made = post(&other, &format!("{SUBSCRIPTION}/{path}"), json!({})).await;
        assert_eq!(made.status, 200, "{:?}", made.body);
    }
    other.state.read("topics/orders.json").unwrap()
}

/// The answer to a write is lost, and a third writer comes before the store is asked again.
#[tokio::test]
async fn lost_answer_before_a_third_write_is_done_in_its_entry() {
    let api = Api::with_billing().await;
    let record = record_after("pause", "disable").await;
    api.clock.advance(MILLISECOND);
    let state = api.state.clone();
    api.state.when_put(layout::AUDIT, move || {
        state.write("topics/orders.json", record.clone());
    });
    let answer = post(&api, &format!("{SUBSCRIPTION}/pause"), json!({})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let entry = &entries(&api, "").await[0];
    assert_eq!(
        (&entry["action"], &entry["outcome"]),
        (&json!("subscription.pause"), &json!("done")),
        "{entry}"
    );
    let shown = api.get(SUBSCRIPTION).await.json();
    assert_eq!(shown["status"]["state"], "Disabled", "{shown}");
}

/// Two workers make the same change at once: one of them has made it.
#[tokio::test]
async fn change_that_another_made_first_is_refused_in_its_entry() {
    let api = Api::with_billing().await;
    let settings = json!({ "defaultTimeToLive": "PT1H" });
    let record = {
        let other = Api::with_billing().await;
        // The numbers of another worker are other ones.
        other.manage.entropy.fill(&mut [0; 8 * 2_000]);
        assert_eq!(other.put(TOPIC, settings.clone()).await.status, 200);
        other.state.read("topics/orders.json").unwrap()
    };
    api.clock.advance(MILLISECOND);
    let state = api.state.clone();
    api.state.when_put(layout::AUDIT, move || {
        state.write("topics/orders.json", record.clone());
    });
    assert_eq!(api.put(TOPIC, settings).await.status, 200);
    let all = entries(&api, "").await;
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!(
        (&all[0]["outcome"], &all[0]["detail"]),
        (
            &json!("refused"),
            &json!("another change made the same before it")
        ),
        "{all:?}"
    );
}

#[tokio::test]
async fn lists_are_by_topic_and_time_and_come_in_pages() {
    let api = Api::new();
    for (nth, topic) in ["one", "two", "one", "three", "One"].iter().enumerate() {
        api.clock.advance(Duration::from_mins(1));
        let settings = json!({ "defaultTimeToLive": format!("PT{}H", nth + 1) });
        api.put(&format!("/topics/{topic}"), settings).await;
    }
    let topics = async |query: &str| {
        let all = entries(&api, query).await;
        let topic = |entry: &Value| entry["topic"].as_str().unwrap().to_owned();
        all.iter().map(topic).collect::<Vec<_>>()
    };
    assert_eq!(topics("").await, ["One", "three", "one", "two", "one"]);
    assert_eq!(topics("topic=ONE").await, ["One", "one", "one"]);
    assert_eq!(topics("from=2026-11-21T10:04:00Z").await, ["One", "three"]);
    assert_eq!(topics("to=2026-11-21T10:02:00Z").await, ["one"]);
    let between = "from=2026-11-21T10:02:00Z&to=2026-11-21T10:04:00Z";
    assert_eq!(topics(between).await, ["one", "two"]);
    assert_eq!(topics("topic=none").await, [""; 0]);

    let mut query = "/audit?topic=one&limit=1".to_owned();
    let mut ids = BTreeSet::new();
    for page in 0..4 {
        let answer = api.get(&query).await.json();
        let found = answer["entries"].as_array().unwrap();
        assert_eq!(found.len(), usize::from(page < 3), "{answer}");
        ids.extend(found.iter().map(|entry| entry["id"].to_string()));
        let Some(cursor) = answer["cursor"].as_str() else {
            break;
        };
        query = format!("/audit?topic=one&limit=1&cursor={cursor}");
    }
    assert_eq!(ids.len(), 3);
    for (query, member) in [
        ("limit=0", "limit"),
        ("cursor=eA", "cursor"),
        ("from=soon", "from"),
        ("topic=a%20b", "topic"),
        ("color=red", "color"),
    ] {
        let problem = api.get(&format!("/audit?{query}")).await;
        assert_eq!(problem.problem(400, "about:blank")["member"], member);
    }
}

#[tokio::test]
async fn damaged_entry_hides_no_other() {
    let api = Api::with_billing().await;
    let keys: Vec<_> = api.state.keys(layout::AUDIT);
    api.state.damage(&keys[0]);
    api.state.write("audit/0000000000000-x.json", "?");
    assert_eq!(entries(&api, "").await.len(), keys.len() - 1);
}

/// A write that drops an expired subscription leaves an entry with posthaste as the actor.
#[tokio::test]
async fn dropped_expired_subscription_has_one_entry_by_posthaste() {
    let api = Api::with_billing().await;
    let mut ending = billing();
    ending["expirationTimeUtc"] = "2026-11-21T11:00:00Z".into();
    let path = format!("{TOPIC}/subscriptions/short");
    assert_eq!(api.put(&path, ending).await.status, 201);
    api.clock.advance(Duration::from_hours(2));
    for _ in 0..2 {
        assert_eq!(api.put(SUBSCRIPTION, billing()).await.status, 200);
    }
    let all = entries(&api, "from=2026-11-21T11:00:00Z").await;
    let own: Vec<_> = all
        .iter()
        .filter(|entry| entry["actor"] == "posthaste")
        .collect();
    assert_eq!(own.len(), 1, "{all:?}");
    assert_eq!(
        (&own[0]["action"], &own[0]["subscription"], &own[0]["at"]),
        (
            &json!("subscription.delete"),
            &json!("short"),
            &json!("2026-11-21T11:00:00.000Z")
        )
    );
}

/// The answer of an endpoint that was asked is audited as a change by posthaste.
#[tokio::test]
async fn endpoint_answer_to_a_handshake_is_audited() {
    let api = Api::with_billing().await;
    let consent = [("webhook-allowed-origin", "*")];
    api.endpoint.answer(move |_| answered(200, &consent, ""));
    let mut asked = billing();
    asked["endpoint"]["validation"] = "CloudEvents".into();
    assert_eq!(api.put(SUBSCRIPTION, asked).await.status, 200);
    let found = actions(&api, "").await;
    assert!(
        found.contains(&"subscription.handshake".to_owned()),
        "{found:?}"
    );
}
