//! The search for subscriptions of every topic.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ErrorKind};
use posthaste_testkit::records::{topic_name, topic_record, topic_settings};
use serde_json::{Value, json};

use super::{Api, billing};

const SECOND: Duration = Duration::from_secs(1);

fn endpoint(url: &str) -> Value {
    json!({ "endpoint": { "url": url } })
}

/// The bytes of a topic's record with these subscriptions.
fn record(topic: &str, subscriptions: &Value, now: Timestamp) -> String {
    let settings = topic_settings(json!({ "subscriptions": subscriptions }));
    let record = topic_record(topic_name(topic), settings, now);
    String::from_utf8(record.render().to_vec()).unwrap()
}

fn key(topic: &str) -> String {
    layout::topic_record_key(&topic_name(topic))
}

impl Api {
    /// Writes so many topics, each with the subscription `billing`.
    fn write_topics(&self, topics: usize) {
        let now = self.clock.now();
        for at in 0..topics {
            let url = format!("https://host-{at}.example.com/hooks?token=s3cret");
            let name = format!("topic-{at:05}");
            let subscriptions = json!({ "billing": endpoint(&url) });
            self.state
                .write(&key(&name), record(&name, &subscriptions, now));
        }
    }

    async fn found(&self, query: &str) -> Value {
        let answer = self.get(&format!("/subscriptions{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {:?}", answer.body);
        answer.json()
    }

    async fn found_names(&self, query: &str) -> Vec<String> {
        names(&self.found(query).await)
    }
}

fn names(found: &Value) -> Vec<String> {
    let one = |it: &Value| {
        let [topic, name] = ["topic", "name"].map(|member| it[member].as_str().unwrap());
        format!("{topic}/{name}")
    };
    let found = found["subscriptions"].as_array().unwrap();
    found.iter().map(one).collect()
}

async fn three_topics() -> Api {
    let api = Api::with_billing().await;
    let subscriptions = json!({
        "billing-EU": {
            "endpoint": {
                "url": "https://EU.example.com:8443/a?token=s3cret",
                "fallbackUrl": "https://standby.example.org/b?token=s3cret",
            }
        },
        "crm": endpoint("https://billing.example.com/hooks?token=s3cret"),
    });
    let invoices = json!({ "subscriptions": subscriptions });
    assert_eq!(api.put("/topics/invoices", invoices).await.status, 201);
    assert_eq!(api.put("/topics/empty", json!({})).await.status, 201);
    api
}

#[tokio::test]
async fn name_finds_subscriptions_of_every_topic_in_any_case() {
    let api = three_topics().await;
    let found = api.found("?name=BILL").await;
    assert_eq!(names(&found), ["invoices/billing-EU", "Orders/Billing"]);
    assert_eq!(found["topicsSearched"], 3);
    for absent in ["cursor", "note", "unreadable"] {
        assert_eq!(found.get(absent), None);
    }
    assert_eq!(api.found_names("?name=illing").await, [""; 0]);
    assert_eq!(api.found_names("").await.len(), 3);
}

#[tokio::test]
async fn url_finds_endpoints_and_fallbacks_without_queries() {
    let api = three_topics().await;
    let both = ["invoices/crm", "Orders/Billing"];
    for url in [
        "billing.example.com",
        "Billing.example.com/hooks",
        "https://billing.example.com/hooks%3Ftoken%3Dother",
    ] {
        let found = api.found(&format!("?url={url}")).await;
        assert_eq!(names(&found), both, "{url}");
    }
    let found = api.found("?url=standby.example.org").await;
    let expected = json!([{
        "topic": "invoices",
        "name": "billing-EU",
        "url": "https://eu.example.com:8443/a",
        "fallbackUrl": "https://standby.example.org/b",
    }]);
    assert_eq!(found["subscriptions"], expected);
    assert!(!api.found("").await.to_string().contains("s3cret"));
    let of_both = "?name=billing&url=example.com";
    assert_eq!(
        api.found_names(of_both).await,
        ["invoices/billing-EU", "Orders/Billing"]
    );
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    let api = Api::new();
    for (query, member) in [
        ("?name=a%20b", "name"),
        ("?name=", "name"),
        ("?url=%2Fhooks", "url"),
        ("?url=", "url"),
        ("?limit=0", "limit"),
        ("?cursor=x", "cursor"),
        ("?cursor=bGlua3Mv", "cursor"),
        ("?topic=a", "topic"),
    ] {
        let answer = api.get(&format!("/subscriptions{query}")).await;
        assert_eq!(
            answer.problem(400, "about:blank")["member"],
            member,
            "{query}"
        );
    }
    let long = format!("/subscriptions?url=a.example/{}", "x".repeat(2_048));
    assert_eq!(
        api.get(&long).await.problem(400, "about:blank")["member"],
        "url"
    );
}

#[tokio::test]
async fn pages_have_each_subscription_once() {
    let api = three_topics().await;
    let mut all = Vec::new();
    let mut query = "?limit=1".to_owned();
    for _ in 0..3 {
        let found = api.found(&query).await;
        all.extend(names(&found));
        assert_eq!(found.get("note"), None);
        let Some(cursor) = found["cursor"].as_str() else {
            break;
        };
        query = format!("?limit=1&cursor={cursor}");
    }
    assert_eq!(
        all,
        ["invoices/billing-EU", "invoices/crm", "Orders/Billing"]
    );
}

/// The first search reads every record, and the next ones none. Each sees each subscription.
#[tokio::test]
async fn next_search_of_10_000_topics_reads_no_record() {
    let api = Api::new();
    api.write_topics(10_000);
    api.clock.advance(SECOND * 11);
    for reads in [10_000, 0] {
        let before = api.state.reads();
        let found = api.found("?url=host-9999.example.com").await;
        assert_eq!(names(&found), ["topic-09999/billing"]);
        assert_eq!(found["topicsSearched"], 10_000);
        assert_eq!(api.state.reads() - before, reads);
    }
}

#[tokio::test]
async fn unreadable_topic_is_named_and_hides_no_other() {
    let api = three_topics().await;
    api.state.write(&key("a-broken"), "{");
    api.state.write(&key("damaged"), "{}");
    api.state.damage(&key("damaged"));
    api.clock.advance(SECOND * 11);
    for _ in 0..2 {
        let found = api.found("?name=crm").await;
        assert_eq!(names(&found), ["invoices/crm"]);
        assert_eq!(found["topicsSearched"], 3);
        let unreadable = found["unreadable"].as_array().unwrap();
        let unreadable: Vec<_> = unreadable.iter().map(|it| &it["name"]).collect();
        assert_eq!(unreadable, ["a-broken", "damaged"]);
        let note = found["note"].as_str().unwrap();
        assert!(
            note.contains("cannot be read, and which were not searched: 2."),
            "{note}"
        );
    }
}

/// Reads of a tenth of a second: a request ends after its time, says so, and the next ones come to
/// the end.
#[tokio::test]
async fn search_that_takes_too_long_says_so_and_goes_on() {
    let api = Api::new();
    api.write_topics(100);
    api.clock.advance(SECOND * 11);
    api.state.slow_reads(&api.clock, Duration::from_millis(100));
    let mut all = Vec::new();
    let mut query = String::new();
    for _ in 0..100 {
        let found = api.found(&query).await;
        all.extend(names(&found));
        let Some(cursor) = found["cursor"].as_str() else {
            assert_eq!(found.get("note"), None);
            break;
        };
        let note = found["note"].as_str().unwrap();
        assert!(note.starts_with("Not all was searched"), "{note}");
        query = format!("?cursor={cursor}");
    }
    let expected: Vec<_> = (0..100)
        .map(|at| format!("topic-{at:05}/billing"))
        .collect();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn expired_subscription_is_not_found_before_it_is_swept() {
    let api = Api::with_billing().await;
    let mut settings = billing();
    settings["expirationTimeUtc"] = json!((api.clock.now() + SECOND * 60).to_string());
    let put = api.put("/topics/orders/subscriptions/crm", settings).await;
    assert_eq!(put.status, 201);
    api.clock.advance(SECOND * 59);
    assert_eq!(api.found_names("?name=crm").await, ["Orders/crm"]);
    let before = api.state.reads();
    api.clock.advance(SECOND);
    assert_eq!(api.found_names("?name=crm").await, [""; 0]);
    assert_eq!(api.state.reads(), before);
}

#[tokio::test]
async fn store_that_fails_is_no_empty_answer() {
    let api = Api::with_billing().await;
    api.state.fail(ErrorKind::Other);
    api.get("/subscriptions").await.problem(503, "unavailable");
}

/// The record of a deleted topic is there until wake has seen it.
#[tokio::test]
async fn deleted_topic_does_not_count_as_searched() {
    let api = three_topics().await;
    let settings = topic_settings(json!({ "subscriptions": { "crm": billing() } }));
    let mut gone = topic_record(topic_name("gone"), settings, api.clock.now());
    gone.deleted_at = Some(api.clock.now());
    api.state.write(&key("gone"), gone.render());
    for _ in 0..2 {
        let found = api.found("?name=crm").await;
        assert_eq!(names(&found), ["invoices/crm"]);
        assert_eq!(found["topicsSearched"], 3);
        api.clock.advance(SECOND * 11);
    }
}

/// The search ends before the topic, and the next one begins there: it has nothing to show while
/// that lasts.
#[tokio::test]
async fn topic_out_of_reach_hides_none_before_it() {
    let api = three_topics().await;
    api.state.fail_reads_of(&key("orders"));
    let found = api.found("").await;
    assert_eq!(names(&found), ["invoices/billing-EU", "invoices/crm"]);
    assert_eq!(found["topicsSearched"], 2);
    let note = found["note"].as_str().unwrap();
    assert!(note.contains("a topic could not be read now"), "{note}");
    let next = format!(
        "/subscriptions?cursor={}",
        found["cursor"].as_str().unwrap()
    );
    api.get(&next).await.problem(503, "unavailable");
}

/// The list of topics has more than one page, and the second one fails.
#[tokio::test]
async fn second_page_of_topics_that_fails_ends_the_search() {
    let api = Api::new();
    api.write_topics(1_001);
    let state = api.state.clone();
    api.state.when_read(move || {
        if state.reads() == 1_000 {
            state.fail(ErrorKind::TimedOut);
        }
    });
    let found = api.found("?name=billing&limit=1000").await;
    assert_eq!(names(&found).len(), 1_000);
    assert!(found["cursor"].is_string(), "{}", found["note"]);
    assert!(
        found["note"]
            .as_str()
            .unwrap()
            .contains("could not be read now")
    );
}

/// A change that a list cannot show, since it keeps the time and the size, is seen until the record
/// has settled. Other changes are seen at any time.
#[tokio::test]
async fn changed_and_deleted_topics_are_seen_again() {
    let api = Api::with_billing().await;
    assert_eq!(
        api.found_names("?url=billing.example.com").await,
        ["Orders/Billing"]
    );
    let other = endpoint("https://payment.example.com/hooks");
    let put = api.put("/topics/orders/subscriptions/billing", other).await;
    assert_eq!(put.status, 200);
    assert_eq!(
        api.found_names("?url=payment.example.com").await,
        ["Orders/Billing"]
    );
    api.clock.advance(SECOND * 11);
    assert_eq!(api.found_names("").await, ["Orders/Billing"]);
    let put = api.put("/topics/orders/subscriptions/crm", billing()).await;
    assert_eq!(put.status, 201);
    assert_eq!(api.found_names("").await, ["Orders/Billing", "Orders/crm"]);
    let deleted = api.delete("/topics/orders/subscriptions/billing").await;
    assert_eq!(deleted.status, 204);
    assert_eq!(api.found_names("").await, ["Orders/crm"]);
    assert_eq!(api.put("/topics/a", json!({})).await.status, 201);
    assert_eq!(api.delete("/topics/orders").await.status, 204);
    let found = api.found("").await;
    assert_eq!(
        (names(&found).len(), &found["topicsSearched"]),
        (0, &json!(1))
    );
}
