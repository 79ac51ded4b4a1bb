use std::time::Duration;

use posthaste_core::stored::{ResolvedLetters, layout};
use serde_json::{Value, json};

use super::Api;
use super::memory::MODIFIED_AT;

const LIST: &str = "/topics/Orders/subscriptions/Billing/dead-letters";

/// Writes an object under an hour of 2026, with one event of this reason.
fn write(api: &Api, hour: &str, name: &str, reason: &str) {
    let object = json!([{ "id": name, "deadletterreason": reason }]).to_string();
    api.dead_letters
        .write(&format!("ORDERS/BILLING/2026/{hour}/{name}.json"), object);
}

fn names(page: &Value) -> Vec<String> {
    let all = page["deadLetters"].as_array().unwrap().iter();
    let name = |key: &str| {
        key.rsplit('/')
            .next()
            .unwrap()
            .trim_end_matches(".json")
            .to_owned()
    };
    all.map(|object| name(object["object"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_row_says_what_became_of_an_event_though_its_topic_is_gone() {
    let api = Api::new();
    let letter = json!({
        "specversion": "1.0", "id": "1", "type": "t", "source": "/s", "deadletterreason": "EndpointGone",
        "deliveryattempts": 3, "lasthttpstatuscode": 410,
    });
    api.dead_letters.write(
        "ORDERS/BILLING/2026/3/7/4/a.json",
        json!([letter]).to_string(),
    );
    api.dead_letters
        .write("ORDERS/BILLING2/2026/3/7/4/other.json", "[]");
    api.dead_letters.write("MALFORMED/2026/3/7/4/other", "?");
    let row = json!({
        "object": "ORDERS/BILLING/2026/3/7/4/a.json", "index": 0, "topic": "ORDERS",
        "subscription": "BILLING",
        "id": "1", "type": "t", "reason": "EndpointGone", "attempts": 3, "status": 410,
        "writtenAt": "2026-03-07T04:00:00.000Z", "ownerDeleted": true,
    });
    let page = api.get(LIST).await;
    assert_eq!(
        (page.status, page.json()),
        (200, json!({ "deadLetters": [row] }))
    );
}

#[tokio::test]
async fn rows_have_the_names_as_they_were_created() {
    let api = Api::with_billing().await;
    write(&api, "3/7/4", "a", "EndpointGone");
    let row = api.get("/dead-letters").await.json()["deadLetters"][0].clone();
    assert_eq!([&row["topic"], &row["subscription"]], ["Orders", "Billing"]);
    assert_eq!(row.get("ownerDeleted"), None);
    let deleted = api
        .call(
            "DELETE",
            "/topics/orders/subscriptions/billing",
            &[],
            String::new(),
        )
        .await;
    assert_eq!(deleted.status, 204);
    let row = api.get("/dead-letters").await.json()["deadLetters"][0].clone();
    assert_eq!(
        (&row["topic"], &row["ownerDeleted"]),
        (&json!("Orders"), &json!(true))
    );
}

/// The newest come first over hours, days, months and subscriptions.
#[tokio::test]
async fn newest_letters_come_first_across_periods_and_subscriptions() {
    let api = Api::with_billing().await;
    for (hour, name) in [
        ("3/9/23", "c"),
        ("3/10/9", "d"),
        ("3/10/10", "e"),
        ("10/1/0", "g"),
        ("9/30/23", "f"),
    ] {
        write(&api, hour, name, "EndpointGone");
    }
    let write_at = |key: &str| {
        let name = key.rsplit('/').next().unwrap().trim_end_matches(".json");
        api.dead_letters.write(
            key,
            json!([{ "id": name, "deadletterreason": "x" }]).to_string(),
        );
    };
    write_at("ORDERS/AUDIT/2026/3/10/9/z.json");
    write_at("ORDERS/AUDIT/2025/12/31/23/b.json");
    write_at("STOCK/AUDIT/2025/11/1/1/a.json");
    let check = async |path: &str, expected: &str| {
        let names = names(&api.get(path).await.json());
        assert_eq!(names.concat(), expected, "{path}");
    };
    check("/dead-letters", "gfezdcba").await;
    check("/topics/orders/dead-letters", "gfezdcb").await;
    check("/topics/orders/subscriptions/audit/dead-letters", "zb").await;
    check(
        "/dead-letters?from=2026-03-10T09:00:00Z&to=2026-10-01T00:00:00Z",
        "fezd",
    )
    .await;
    api.get("/topics/nobody/dead-letters")
        .await
        .problem(404, "unknown-topic");
}

#[tokio::test]
async fn a_month_of_many_objects_is_listed_by_days_and_hours() {
    let api = Api::new();
    for number in 0..1_001 {
        write(&api, "3/7/4", &format!("{number:04}"), "EndpointGone");
    }
    write(&api, "3/7/10", "newest", "EndpointGone");
    write(&api, "3/6/23", "oldest", "EndpointGone");
    let pages = pages(&api, "limit=1000").await;
    let all: Vec<_> = pages.concat();
    assert_eq!(
        (all.len(), &*all[0], &*all[1], &*all[1_002]),
        (1_003, "newest", "0000", "oldest")
    );
}

#[tokio::test]
async fn resolved_letters_are_left_out_unless_asked_for() {
    let api = Api::new();
    let letters =
        json!([{ "id": "1", "deadletterreason": "x" }, { "id": "2", "deadletterreason": "x" }]);
    let key = "ORDERS/BILLING/2026/3/7/4/a.json";
    api.dead_letters.write(key, letters.to_string());
    api.dead_letters.write(
        &layout::resolved_letters_key(key),
        ResolvedLetters::from_places([0]).render(),
    );
    let ids = async |query: &str| {
        let page = api.get(&format!("{LIST}?{query}")).await.json();
        let rows = page["deadLetters"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| (row["id"].clone(), row.get("resolved").is_some()))
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, [(json!("2"), false)]);
    assert_eq!(
        ids("includeResolved=true").await,
        [(json!("1"), true), (json!("2"), false)]
    );
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_named_and_stops_no_list() {
    let api = Api::new();
    write(&api, "3/7/4", "a", "EndpointGone");
    write(&api, "3/7/5", "b", "EndpointGone");
    write(&api, "3/7/6", "c", "EndpointGone");
    api.dead_letters
        .write("ORDERS/BILLING/2026/3/7/5/b.json", "not ours");
    api.dead_letters.damage("ORDERS/BILLING/2026/3/7/6/c.json");
    let page = api.get(LIST).await.json();
    assert_eq!(names(&page), ["a"]);
    let failures = page["failures"].as_array().unwrap();
    assert!(
        failures[0]["key"].as_str().unwrap().ends_with("c.json"),
        "{failures:?}"
    );
    assert_eq!(failures[1]["detail"], "not a JSON array of dead letters");
}

#[tokio::test]
async fn a_name_that_is_written_wrong_is_no_empty_list() {
    let api = Api::with_billing().await;
    let check = async |path: &str, status: u16, kind: &str| {
        let answer = api.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        if status == 404 {
            answer.problem(404, kind);
        }
    };
    check(
        "/topics/orders/subscriptions/biling/dead-letters",
        404,
        "unknown-subscription",
    )
    .await;
    check(
        "/topics/order/subscriptions/billing/dead-letters",
        404,
        "unknown-topic",
    )
    .await;
    check(LIST, 200, "").await;
    api.delete("/topics/orders").await;
    check(LIST, 404, "unknown-topic").await;
    write(&api, "3/7/4", "a", "EndpointGone");
    check(LIST, 200, "").await;
    check(&format!("{LIST}?from=2027-01-01T00:00:00Z"), 200, "").await;
}

#[tokio::test]
async fn they_are_found_by_the_time_at_which_they_were_written() {
    let api = Api::new();
    // Written at ten o'clock, as its hour says, and a copy of an older one.
    write(&api, "11/21/10", "a", "EndpointGone");
    write(&api, "11/21/9", "copied", "EndpointGone");
    assert_eq!(MODIFIED_AT, "2026-11-21T10:00:00.000Z");
    let check = async |query: &str, expected: &[&str]| {
        let mut found = names(&api.get(&format!("{LIST}?{query}")).await.json());
        found.sort();
        assert_eq!(found, expected, "{query}");
    };
    check("from=2026-11-21T10:00:00Z", &["a"]).await;
    check("from=2026-11-21T10:00:00.001Z", &[]).await;
    check("from=2026-11-21T10:30:00Z&to=2026-11-21T10:45:00Z", &[]).await;
    check("to=2026-11-21T10:00:00Z", &["copied"]).await;
    check("to=2026-11-21T10:00:00.001Z", &["a", "copied"]).await;
    check(
        "from=2026-11-21T09:30:00Z&to=2026-11-21T09:45:00Z",
        &["copied"],
    )
    .await;
}

#[tokio::test]
async fn copies_are_found_by_the_hour() {
    let api = Api::new();
    for (hour, name) in [
        ("3/7/4", "a"),
        ("3/7/5", "b"),
        ("11/1/0", "c"),
        ("3/10/23", "d"),
    ] {
        write(&api, hour, name, "EndpointGone");
    }
    api.dead_letters.write("ORDERS/BILLING/foreign.json", "[]");
    let check = async |query: &str, expected: &[&str]| {
        let mut found = names(&api.get(&format!("{LIST}?{query}")).await.json());
        found.sort();
        assert_eq!(found, expected, "{query}");
    };
    // A key that tells no hour is in no list.
    check("", &["a", "b", "c", "d"]).await;
    check("from=2026-03-07T04:59:59Z", &["a", "b", "c", "d"]).await;
    check("from=2026-03-07T05:00:00Z", &["b", "c", "d"]).await;
    check("to=2026-03-07T05:00:00Z", &["a"]).await;
    check("to=2026-03-07T05:00:01Z", &["a", "b"]).await;
    check(
        "from=2026-03-10T00:00:00%2B01:00&to=2026-03-11T00:00:00Z",
        &["d"],
    )
    .await;
    check("from=2027-01-01T00:00:00Z", &[]).await;
}

#[tokio::test]
async fn they_are_found_by_reason() {
    let api = Api::new();
    write(&api, "3/7/4", "a", "EndpointGone");
    write(&api, "3/7/4", "b", "TimeToLiveExceeded");
    let event_grid = r#"[{"deadLetterReason":"MaxDeliveryAttemptsExceeded"},{"deadLetterReason":"EndpointGone"}]"#;
    api.dead_letters
        .write("ORDERS/BILLING/2026/3/7/4/c.json", event_grid);
    api.dead_letters
        .write("ORDERS/BILLING/2026/3/7/4/d.json", "not ours");
    let page = api.get(&format!("{LIST}?reason=EndpointGone")).await.json();
    assert_eq!(
        (names(&page), page.get("cursor")),
        (vec!["a".to_owned(), "c".to_owned()], None)
    );
    assert_eq!(page["deadLetters"][1]["index"], 1);
    let page = api
        .get(&format!(
            "{LIST}?reason=EndpointGone&to=2026-01-01T00:00:00Z"
        ))
        .await
        .json();
    assert_eq!(names(&page), Vec::<String>::new());
}

#[tokio::test]
async fn they_are_found_by_type() {
    let api = Api::new();
    let letters = json!([
        { "id": "1", "type": "t", "deadletterreason": "x" },
        { "id": "2", "type": "u", "deadletterreason": "x" },
        { "id": "3", "eventType": "t", "deadLetterReason": "x" },
    ]);
    api.dead_letters
        .write("ORDERS/BILLING/2026/3/7/4/a.json", letters.to_string());
    let page = api.get(&format!("{LIST}?type=t")).await.json();
    let ids: Vec<_> = page["deadLetters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["id"])
        .collect();
    assert_eq!(ids, ["1", "3"]);
}

/// Every page until there is no cursor.
async fn pages(api: &Api, query: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("{LIST}?{query}{cursor}")).await.json();
        pages.push(names(&page));
        let is_last = page["cursor"].is_null();
        assert_eq!(page["searchedBackTo"].is_null(), is_last, "{page}");
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn pages_follow_each_other_and_the_last_is_not_empty() {
    let api = Api::new();
    for name in ["a", "b", "c", "d"] {
        write(&api, "3/7/4", name, "EndpointGone");
    }
    assert_eq!(pages(&api, "limit=2").await, [["a", "b"], ["c", "d"]]);
    assert_eq!(
        pages(&api, "limit=3").await,
        [vec!["a", "b", "c"], vec!["d"]]
    );
    assert_eq!(pages(&api, "limit=1000").await, [["a", "b", "c", "d"]]);
}

#[tokio::test]
async fn a_page_ends_within_an_object_too() {
    let api = Api::new();
    let letters: Vec<_> = (0..5)
        .map(|id| json!({ "id": id.to_string(), "deadletterreason": "x" }))
        .collect();
    api.dead_letters.write(
        "ORDERS/BILLING/2026/3/7/4/a.json",
        json!(letters).to_string(),
    );
    write(&api, "3/7/3", "b", "x");
    assert_eq!(
        pages(&api, "limit=2").await,
        [["a", "a"], ["a", "a"], ["a", "b"]]
    );
}

#[tokio::test]
async fn each_request_reads_no_more_than_its_share() {
    let api = Api::new();
    for number in 0..520 {
        let reason = if number == 519 {
            "EndpointGone"
        } else {
            "TimeToLiveExceeded"
        };
        write(&api, "3/7/4", &format!("{number:03}"), reason);
    }
    let found = pages(&api, "reason=EndpointGone").await;
    assert_eq!(found, [vec![], vec!["519".to_owned()]]);
}

#[tokio::test]
async fn a_page_ends_when_its_time_is_over_and_the_next_goes_on() {
    let api = Api::new();
    for name in ["a", "b", "c"] {
        write(&api, "3/7/4", name, "EndpointGone");
    }
    api.dead_letters
        .slow_reads(&api.clock, Duration::from_secs(3));
    let pages = pages(&api, "").await;
    assert_eq!(pages.concat(), ["a", "b", "c"]);
    assert!(pages.len() > 1, "{pages:?}");
}

#[tokio::test]
async fn an_object_is_shown_as_it_lies() {
    let api = Api::new();
    let bytes = br#"[ {"id" : "1"} ]"#.as_slice();
    api.dead_letters
        .write("ORDERS/BILLING/2026/3/7/4/a.json", bytes);
    api.dead_letters
        .write("MALFORMED/2026/3/7/4/x", vec![0_u8, 255]);
    let check = async |path: &str, content_type: &str, body: &[u8]| {
        let answer = api.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, content_type)
        );
        assert_eq!(
            (answer.header("x-content-type-options"), &answer.body[..]),
            ("nosniff", body)
        );
    };
    check(
        "/dead-letters/ORDERS/BILLING/2026/3/7/4/a.json",
        "application/json",
        bytes,
    )
    .await;
    check(
        "/dead-letters/ORDERS%2FBILLING%2F2026%2F3%2F7%2F4%2Fa.json",
        "application/json",
        bytes,
    )
    .await;
    // Someone else may have chosen the key, which proxies change in a path.
    api.dead_letters
        .write("ORDERS/BILLING/2026/3/7/4/50%2F .json", bytes);
    check(
        "/dead-letters/-?key=ORDERS/BILLING/2026/3/7/4/50%252F+.json",
        "application/json",
        bytes,
    )
    .await;
    check(
        "/dead-letters/MALFORMED/2026/3/7/4/x",
        "application/octet-stream",
        &[0, 255],
    )
    .await;
}

#[tokio::test]
async fn dead_letter_keys_cannot_leave_the_bucket() {
    let api = Api::with_billing().await;
    for key in [
        "x",
        "topics/orders.json",
        "../topics/orders.json",
        "..%2Ftopics%2Forders.json",
        "a//b",
        "%2Fetc%2Fpasswd",
        "./x",
    ] {
        for path in [
            format!("/dead-letters/{key}"),
            format!("/dead-letters/-?key={key}"),
        ] {
            api.get(&path).await.problem(404, "about:blank");
        }
    }
}
