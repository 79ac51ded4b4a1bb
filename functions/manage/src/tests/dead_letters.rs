use serde_json::{Value, json};

use super::Api;
use super::memory::MODIFIED_AT;

const LIST: &str = "/topics/Orders/subscriptions/Billing/dead-letters";

/// Writes an object under an hour of 2026, with one event of this reason.
fn write(api: &Api, hour: &str, name: &str, reason: &str) {
    let object = json!([{ "id": name, "deadletterreason": reason }]).to_string();
    api.dead_letters.write(&format!("ORDERS/BILLING/2026/{hour}/{name}.json"), object);
}

fn names(page: &Value) -> Vec<String> {
    let all = page["deadLetters"].as_array().unwrap().iter();
    let name = |key: &str| key.rsplit('/').next().unwrap().trim_end_matches(".json").to_owned();
    all.map(|object| name(object["key"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn dead_letters_are_listed_though_their_topic_is_gone() {
    let api = Api::new();
    write(&api, "3/7/4", "a", "EndpointGone");
    api.dead_letters.write("ORDERS/BILLING2/2026/3/7/4/other.json", "[]");
    api.dead_letters.write("MALFORMED/2026/3/7/4/other", "?");
    let page = api.get(LIST).await;
    let object = json!({ "key": "ORDERS/BILLING/2026/3/7/4/a.json", "size": 46, "modifiedAt": MODIFIED_AT });
    assert_eq!((page.status, page.json()), (200, json!({ "deadLetters": [object] })));
    assert_eq!(api.dead_letters.reads(), 0);
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
    check("/topics/orders/subscriptions/biling/dead-letters", 404, "unknown-subscription").await;
    check("/topics/order/subscriptions/billing/dead-letters", 404, "unknown-topic").await;
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
    check("from=2026-11-21T09:30:00Z&to=2026-11-21T09:45:00Z", &["copied"]).await;
}

#[tokio::test]
async fn copies_are_found_by_the_hour_without_being_read() {
    let api = Api::new();
    for (hour, name) in [("3/7/4", "a"), ("3/7/5", "b"), ("11/1/0", "c"), ("3/10/23", "d")] {
        write(&api, hour, name, "EndpointGone");
    }
    api.dead_letters.write("ORDERS/BILLING/foreign.json", "[]");
    let check = async |query: &str, expected: &[&str]| {
        let mut found = names(&api.get(&format!("{LIST}?{query}")).await.json());
        found.sort();
        assert_eq!(found, expected, "{query}");
    };
    check("", &["a", "b", "c", "d", "foreign"]).await;
    check("from=2026-03-07T04:59:59Z", &["a", "b", "c", "d"]).await;
    check("from=2026-03-07T05:00:00Z", &["b", "c", "d"]).await;
    check("to=2026-03-07T05:00:00Z", &["a"]).await;
    check("to=2026-03-07T05:00:01Z", &["a", "b"]).await;
    check("from=2026-03-10T00:00:00%2B01:00&to=2026-03-11T00:00:00Z", &["d"]).await;
    check("from=2027-01-01T00:00:00Z", &[]).await;
    assert_eq!(api.dead_letters.reads(), 0);
}

#[tokio::test]
async fn they_are_found_by_reason() {
    let api = Api::new();
    write(&api, "3/7/4", "a", "EndpointGone");
    write(&api, "3/7/4", "b", "TimeToLiveExceeded");
    let event_grid =
        r#"[{"deadLetterReason":"MaxDeliveryAttemptsExceeded"},{"deadLetterReason":"EndpointGone"}]"#;
    api.dead_letters.write("ORDERS/BILLING/2026/3/7/4/c.json", event_grid);
    api.dead_letters.write("ORDERS/BILLING/2026/3/7/4/d.json", "not ours");
    let page = api.get(&format!("{LIST}?reason=EndpointGone")).await.json();
    assert_eq!((names(&page), page.get("cursor")), (vec!["a".to_owned(), "c".to_owned()], None));
    let page = api.get(&format!("{LIST}?reason=EndpointGone&to=2026-01-01T00:00:00Z")).await.json();
    assert_eq!(names(&page), Vec::<String>::new());
    assert_eq!(api.dead_letters.reads(), 4);
}

/// Every page until there is no cursor.
async fn pages(api: &Api, query: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("{LIST}?{query}{cursor}")).await.json();
        pages.push(names(&page));
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
    assert_eq!(pages(&api, "limit=3").await, [vec!["a", "b", "c"], vec!["d"]]);
    assert_eq!(pages(&api, "limit=1000").await, [["a", "b", "c", "d"]]);
}

#[tokio::test]
async fn one_request_reads_no_more_than_its_share() {
    let api = Api::new();
    for number in 0..120 {
        let reason = if number == 119 { "EndpointGone" } else { "TimeToLiveExceeded" };
        write(&api, "3/7/4", &format!("{number:03}"), reason);
    }
    let found = pages(&api, "reason=EndpointGone").await;
    assert_eq!(found, [vec![], vec![], vec!["119".to_owned()]]);
    assert_eq!(api.dead_letters.reads(), 120);
}

#[tokio::test]
async fn one_request_lists_no_more_than_its_share() {
    let api = Api::new();
    for number in 0..10_001 {
        write(&api, "3/7/4", &format!("{number:05}"), "EndpointGone");
    }
    write(&api, "3/7/5", "z", "EndpointGone");
    assert_eq!(pages(&api, "from=2026-03-07T05:00:00Z").await, [vec![], vec!["z".to_owned()]]);
}

#[tokio::test]
async fn an_object_is_shown_as_it_lies() {
    let api = Api::new();
    let bytes = br#"[ {"id" : "1"} ]"#.as_slice();
    api.dead_letters.write("ORDERS/BILLING/2026/3/7/4/a.json", bytes);
    api.dead_letters.write("MALFORMED/2026/3/7/4/x", vec![0_u8, 255]);
    let check = async |path: &str, content_type: &str, body: &[u8]| {
        let answer = api.get(path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, content_type));
        assert_eq!((answer.header("x-content-type-options"), &answer.body[..]), ("nosniff", body));
    };
    check("/dead-letters/ORDERS/BILLING/2026/3/7/4/a.json", "application/json", bytes).await;
    check("/dead-letters/ORDERS%2FBILLING%2F2026%2F3%2F7%2F4%2Fa.json", "application/json", bytes).await;
    check("/dead-letters/MALFORMED/2026/3/7/4/x", "application/octet-stream", &[0, 255]).await;
}

#[tokio::test]
async fn no_key_leads_out_of_the_bucket() {
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
        api.get(&format!("/dead-letters/{key}")).await.problem(404, "about:blank");
    }
}
