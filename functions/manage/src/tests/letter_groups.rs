//! Dead letters by subscription and reason.

use std::time::Duration;

use posthaste_core::stored::{ResolvedLetters, layout};
use posthaste_ports::ErrorKind;
use serde_json::{Value, json};

use super::Api;

const GROUPS: &str = "/dead-letters/groups";

/// Writes an object of Billing with letters of these reasons and statuses.
fn write(api: &Api, hour: &str, name: &str, letters: &[(&str, u16)]) -> String {
    let letters: Vec<_> = letters
        .iter()
        .map(|(reason, status)| {
            json!({ "id": name, "deadletterreason": reason, "lasthttpstatuscode": status })
        })
        .collect();
    let key = format!("ORDERS/BILLING/2026/{hour}/{name}.json");
    api.dead_letters.write(&key, json!(letters).to_string());
    key
}

/// The reason and the number of letters of each group, in order.
fn counts(page: &Value) -> Vec<(String, u64)> {
    let groups = page["groups"].as_array().unwrap().iter();
    groups
        .map(|group| {
            let reason = group["reason"].as_str().unwrap_or("-").to_owned();
            (reason, group["letters"].as_u64().unwrap())
        })
        .collect()
}

fn count(reason: &str, letters: u64) -> (String, u64) {
    (reason.to_owned(), letters)
}

#[tokio::test]
async fn letters_are_counted_by_subscription_and_reason() {
    let api = Api::with_billing().await;
    write(
        &api,
        "3/7/4",
        "a",
        &[("EndpointGone", 410), ("TimeToLiveExceeded", 503)],
    );
    write(
        &api,
        "3/9/4",
        "b",
        &[
            ("TimeToLiveExceeded", 500),
            ("TimeToLiveExceeded", 503),
            ("HandlerFailed", 0),
        ],
    );
    let page = api.get(GROUPS).await.json();
    let time = |day| json!(format!("2026-03-0{day}T04:00:00.000Z"));
    let expected = json!({ "groups": [
        { "topic": "Orders", "subscription": "Billing", "reason": "HandlerFailed", "letters": 1,
          "newestAt": time(9), "oldestAt": time(9), "statuses": [{ "status": 0, "letters": 1 }] },
        { "topic": "Orders", "subscription": "Billing", "reason": "TimeToLiveExceeded", "letters": 3,
          "newestAt": time(9), "oldestAt": time(7),
          "statuses": [{ "status": 503, "letters": 2 }, { "status": 500, "letters": 1 }] },
        { "topic": "Orders", "subscription": "Billing", "reason": "EndpointGone", "letters": 1,
          "newestAt": time(7), "oldestAt": time(7), "statuses": [{ "status": 410, "letters": 1 }] },
    ] });
    assert_eq!(page, expected);
    let page = api
        .get("/dead-letters/groups?topic=orders&subscription=billing&from=2026-03-08T00:00:00Z")
        .await
        .json();
    assert_eq!(
        counts(&page),
        [count("HandlerFailed", 1), count("TimeToLiveExceeded", 2)]
    );
}

#[tokio::test]
async fn unknown_reasons_are_one_group_and_deleted_owners_say_so() {
    let api = Api::new();
    let letters = json!([{ "deadletterreason": "<b>" }, { "deadletterreason": "x" }, 17]);
    api.dead_letters
        .write("STOCK/AUDIT/2026/3/7/4/a.json", letters.to_string());
    let page = api.get(GROUPS).await.json();
    assert_eq!(counts(&page), [count("-", 3)]);
    assert_eq!(page["groups"][0]["topic"], "STOCK");
    assert_eq!(page["groups"][0]["ownerDeleted"], true);
}

/// A second look reads no object again, and yet sees what was resolved since.
#[tokio::test]
async fn letter_resolved_between_two_views_is_no_longer_counted() {
    let api = Api::with_billing().await;
    let key = write(
        &api,
        "3/7/4",
        "a",
        &[("EndpointGone", 410), ("EndpointGone", 410)],
    );
    assert_eq!(
        counts(&api.get(GROUPS).await.json()),
        [count("EndpointGone", 2)]
    );
    api.dead_letters.write(
        &layout::resolved_letters_key(&key),
        ResolvedLetters::from_places([1]).render(),
    );
    let reads = api.dead_letters.reads();
    assert_eq!(
        counts(&api.get(GROUPS).await.json()),
        [count("EndpointGone", 1)]
    );
    assert_eq!(api.dead_letters.reads() - reads, 1);
    let all = api
        .get("/dead-letters/groups?includeResolved=true")
        .await
        .json();
    assert_eq!(counts(&all), [count("EndpointGone", 2)]);
    assert_eq!(all["groups"][0]["resolved"], 1);
}

#[tokio::test]
async fn object_deleted_between_two_views_is_no_longer_counted() {
    let api = Api::with_billing().await;
    let key = write(&api, "3/7/4", "a", &[("EndpointGone", 410)]);
    assert_eq!(counts(&api.get(GROUPS).await.json()).len(), 1);
    let deleted = api
        .call("DELETE", "/topics/orders", &[], String::new())
        .await;
    assert_eq!(deleted.status, 204);
    posthaste_ports::ObjectStore::delete(&api.dead_letters, &key)
        .await
        .unwrap();
    assert_eq!(counts(&api.get(GROUPS).await.json()), []);
}

/// Each answer says how far back it counted, and the next one counts only what is older.
#[tokio::test]
async fn count_that_is_cut_goes_on_where_it_stopped() {
    let api = Api::with_billing().await;
    for number in 0..40 {
        write(
            &api,
            &format!("1/7/{}", number / 2),
            &format!("{number:02}"),
            &[("EndpointGone", 410)],
        );
    }
    api.dead_letters
        .slow_reads(&api.clock, Duration::from_millis(200));
    let mut path = GROUPS.to_owned();
    let mut found = Vec::new();
    let mut back_to = Vec::new();
    loop {
        let page = api.get(&path).await.json();
        found.push(page["groups"][0]["letters"].as_u64().unwrap());
        let Some(cursor) = page["cursor"].as_str() else {
            assert_eq!(page.get("countedBackTo"), None);
            break;
        };
        back_to.push(page["countedBackTo"].as_str().unwrap().to_owned());
        path = format!("{GROUPS}?cursor={cursor}");
    }
    assert_eq!(found.iter().sum::<u64>(), 40);
    assert_eq!(found, [16, 16, 8]);
    assert_eq!(
        back_to,
        ["2026-01-07T12:00:00.000Z", "2026-01-07T04:00:00.000Z"]
    );
}

#[tokio::test]
async fn object_that_cannot_be_read_is_named_and_stops_no_count() {
    let api = Api::with_billing().await;
    let foreign = write(&api, "3/7/5", "b", &[]);
    let damaged = write(&api, "3/7/6", "c", &[]);
    write(&api, "3/7/4", "a", &[("EndpointGone", 410)]);
    api.dead_letters.write(&foreign, "not ours");
    api.dead_letters.damage(&damaged);
    for _ in 0..2 {
        let page = api.get(GROUPS).await.json();
        assert_eq!(counts(&page), [count("EndpointGone", 1)]);
        let failures = page["failures"].as_array().unwrap();
        let keys = [&failures[0]["key"], &failures[1]["key"]];
        assert_eq!(keys, [&json!(damaged), &json!(foreign)]);
        assert_eq!(failures[1]["detail"], "not a JSON array of dead letters");
    }
    api.dead_letters.fail(ErrorKind::TimedOut);
    assert_eq!(api.get(GROUPS).await.status, 503);
}

#[tokio::test]
async fn mistakes_in_the_query_are_named() {
    let api = Api::with_billing().await;
    for (query, member) in [
        ("subscription=billing", "topic"),
        ("cursor=x", "cursor"),
        ("from=soon", "from"),
    ] {
        let answer = api.get(&format!("{GROUPS}?{query}")).await;
        let problem = answer.problem(400, "about:blank");
        assert_eq!(problem["member"], member, "{query}");
    }
    for (query, kind) in [
        ("topic=order", "unknown-topic"),
        ("topic=orders&subscription=biling", "unknown-subscription"),
    ] {
        api.get(&format!("{GROUPS}?{query}"))
            .await
            .problem(404, kind);
    }
    let empty = api
        .get(&format!("{GROUPS}?topic=orders&subscription=billing"))
        .await;
    assert_eq!(empty.json(), json!({ "groups": [] }));
}
