use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use posthaste_core::api::events::ListTime;
use posthaste_core::delivery_log::{LogHour, LogRecord, LogResult, RecordKind};
use posthaste_delivery_log::{RowGroups, write_file};
use serde_json::{Value, json};

use super::{another, before, delivered, key, refused, write};
use crate::tests::{ADMIN_KEY, Api};

pub(super) const LIST: &str = "/topics/orders/events";
const ATTEMPTS: &str = "/topics/Orders/subscriptions/Billing/attempts";

fn ids(page: &Value) -> Vec<&str> {
    page["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect()
}

pub(super) async fn list(api: &Api, path: &str, query: &str) -> Value {
    let answer = api.get(&format!("{path}?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {:?}", answer.body);
    answer.json()
}

/// Records of three hours and two subscriptions.
pub(super) async fn filled() -> Api {
    let api = Api::with_billing().await;
    let audit = LogRecord {
        subscription: "audit".to_owned(),
        ..delivered("e", 3)
    };
    let held = LogRecord {
        kind: RecordKind::Held,
        result: LogResult::Held,
        status: None,
        ..delivered("d", 61)
    };
    let shipped = LogRecord {
        event_type: Some("order.shipped".to_owned()),
        ..delivered("c", 62)
    };
    let elsewhere = LogRecord {
        topic: "invoices".to_owned(),
        ..delivered("x", 1)
    };
    write(
        &api,
        "a",
        &[refused("a", 130), delivered("b", 125), shipped],
    );
    write(&api, "b", &[held, audit, elsewhere]);
    api
}

#[tokio::test]
async fn the_newest_come_first_and_every_parameter_selects() {
    let api = filled().await;
    let check = async |query: &str, expected: &[&str]| {
        assert_eq!(ids(&list(&api, LIST, query).await), expected, "{query}");
    };
    check("", &["e", "d", "c", "b", "a"]).await;
    check("subscription=Audit", &["e"]).await;
    check("result=retry", &["a"]).await;
    check("type=order.shipped", &["c"]).await;
    check("status=503", &["a"]).await;
    check("status=2xx", &["e", "c", "b"]).await;
    check("webhookId=msg_key-of-b", &["b"]).await;
    check("webhookId=msg_key-of-x", &[]).await;
    check("from=2026-11-21T08:58:00Z", &["e", "d", "c"]).await;
    check("to=2026-11-21T08:58:00Z", &["b", "a"]).await;
    check(
        "from=2026-11-21T07:55:00Z&to=2026-11-21T09:00:00Z&result=delivered",
        &["c", "b"],
    )
    .await;
}

#[tokio::test]
async fn a_row_has_what_became_of_it_and_neither_answer_nor_payload() {
    let api = filled().await;
    let page = list(&api, LIST, "result=retry").await;
    let row = json!({ "recordId": refused("a", 130).record_id, "time": "2026-11-21T07:50:00.000Z",
        "kind": "attempt", "id": "a", "subscription": "Billing", "type": "order.paid", "result": "retry",
        "reason": "Busy", "status": 503, "durationMs": 12, "attempt": 1, "origin": "first",
        "webhookId": "msg_key-of-a", "nextAttemptAt": "2026-11-21T07:50:10.000Z", "key": "key-of-a",
        "acceptedAt": "2026-11-21T07:50:00.000Z" });
    assert_eq!(
        page,
        json!({ "records": [row], "completeUntil": "2026-11-21T09:59:55.000Z" })
    );
}

async fn all_pages(api: &Api, path: &str, query: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = list(api, path, &format!("{query}{cursor}")).await;
        pages.push(ids(&page).into_iter().map(str::to_owned).collect());
        let Some(next) = page.get("cursor") else {
            return pages;
        };
        cursor = format!("&cursor={}", next.as_str().unwrap());
    }
}

#[tokio::test]
async fn pages_have_every_record_once() {
    let api = filled().await;
    let check = async |query: &str, expected: &[&[&str]]| {
        assert_eq!(all_pages(&api, LIST, query).await, expected, "{query}");
    };
    check("limit=2", &[&["e", "d"], &["c", "b"], &["a"]]).await;
    check("limit=1&result=delivered", &[&["e"], &["c"], &["b"]]).await;
    check("limit=1&webhookId=msg_key-of-b", &[&["b"]]).await;
    check("limit=5", &[&["e", "d", "c", "b", "a"]]).await;
    check(
        "limit=1&from=2026-11-21T08:58:00Z",
        &[&["e"], &["d"], &["c"]],
    )
    .await;
}

#[tokio::test]
async fn records_that_lie_in_two_files_are_listed_once() {
    let api = Api::with_billing().await;
    let records: Vec<_> = (0..5)
        .map(|n| delivered(&format!("order-{n}"), n + 1))
        .collect();
    write(&api, "a", &records);
    write(&api, "b", &records[1..]);
    for query in ["limit=2", "limit=3", "limit=100"] {
        let listed = all_pages(&api, LIST, query).await.concat();
        assert_eq!(
            listed,
            ["order-0", "order-1", "order-2", "order-3", "order-4"],
            "{query}"
        );
    }
}

#[tokio::test]
async fn attempts_are_those_of_one_subscription_with_answers() {
    let api = filled().await;
    write(
        &api,
        "c",
        &[LogRecord {
            time: before(2),
            ..another(delivered("a", 130), 2)
        }],
    );
    let page = list(&api, ATTEMPTS, "").await;
    assert_eq!(ids(&page), ["a", "c", "b", "a"]);
    let first = &page["records"][0];
    assert_eq!(
        [&first["answer"], &first["answerType"], &first["attempt"]],
        [&json!("thanks"), &json!("text/plain"), &json!(2)]
    );
    assert_eq!(ids(&list(&api, ATTEMPTS, "status=5xx").await), ["a"]);
    assert_eq!(
        all_pages(&api, ATTEMPTS, "limit=3").await,
        [vec!["a", "c", "b"], vec!["a"]]
    );
}

#[tokio::test]
async fn a_name_that_is_written_wrong_is_no_empty_list() {
    let api = Api::with_billing().await;
    assert_eq!(list(&api, LIST, "").await["records"], json!([]));
    assert_eq!(list(&api, ATTEMPTS, "").await["records"], json!([]));
    let check = async |path: &str, kind: &str| {
        api.get(path).await.problem(404, kind);
    };
    check("/topics/order/events", "unknown-topic").await;
    check(
        "/topics/order/subscriptions/billing/attempts",
        "unknown-topic",
    )
    .await;
    check(
        "/topics/orders/subscriptions/biling/attempts",
        "unknown-subscription",
    )
    .await;
    let former = LogRecord {
        subscription: "former".to_owned(),
        ..delivered("a", 1)
    };
    write(&api, "a", &[former]);
    assert_eq!(
        ids(&list(&api, "/topics/orders/subscriptions/Former/attempts", "").await),
        ["a"]
    );
}

#[tokio::test]
async fn bad_parameters_are_named_all_at_once() {
    let api = Api::with_billing().await;
    for path in [LIST, ATTEMPTS] {
        let bad = api
            .get(&format!("{path}?result=lost&status=6&from=soon"))
            .await;
        let problem = bad.problem(400, "about:blank");
        let errors = problem["errors"].as_array().unwrap();
        let members: Vec<_> = errors
            .iter()
            .map(|error| error["member"].as_str().unwrap())
            .collect();
        assert_eq!(members, ["result", "status", "from"]);
        for (query, member) in [
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("cursor=%25", "cursor"),
            ("cursor=b3JkZXJz", "cursor"),
            ("from=2026-11-21T10:00:00Z&to=2026-11-21T10:00:00Z", "to"),
        ] {
            let problem = api
                .get(&format!("{path}?{query}"))
                .await
                .problem(400, "about:blank");
            assert_eq!(problem["member"], member, "{query}");
        }
        api.get(&format!("{path}?colour=red"))
            .await
            .problem(400, "about:blank");
    }
    let problem = api
        .get(&format!("{LIST}?subscription=a/b"))
        .await
        .problem(400, "about:blank");
    assert_eq!(problem["member"], "subscription");
    let problem = api
        .get(&format!("{ATTEMPTS}?subscription=audit"))
        .await
        .problem(400, "about:blank");
    assert_eq!(
        (&problem["member"], &problem["detail"]),
        (
            &json!("subscription"),
            &json!("the path names the subscription")
        )
    );
}

/// Twenty hours of 64 files each have no such record; one before them has.
#[tokio::test]
async fn a_rare_record_is_found_over_short_pages() {
    let api = Api::with_billing().await;
    write(&api, "a", &[refused("rare", 25 * 60)]);
    for hour in 0..20 {
        let record = delivered("common", hour * 60 + 1);
        let file = write_file(std::slice::from_ref(&record), RowGroups::default()).unwrap();
        for name in 0..64 {
            api.log.write(
                &key(LogHour::containing(record.time), &name.to_string()),
                file.clone(),
            );
        }
    }
    assert_eq!(
        all_pages(&api, LIST, "result=retry").await,
        [vec![], vec!["rare"]]
    );
}

/// An hour has more files than a request reads, and the one before it has the record.
#[tokio::test]
async fn an_hour_of_many_files_stops_no_list() {
    let api = Api::with_billing().await;
    write(&api, "a", &[refused("rare", 90)]);
    let record = delivered("common", 1);
    let file = write_file(std::slice::from_ref(&record), RowGroups::default()).unwrap();
    for name in 0..1_000 {
        api.log.write(
            &key(LogHour::containing(record.time), &name.to_string()),
            file.clone(),
        );
    }
    assert_eq!(
        all_pages(&api, LIST, "result=retry").await,
        [vec![], vec!["rare"]]
    );
}

#[tokio::test]
async fn a_request_with_more_records_than_a_page_is_listed_wholly() {
    let api = Api::with_billing().await;
    let many: Vec<_> = (1..=1_500)
        .map(|attempt| another(refused("a", 5), attempt))
        .collect();
    write(&api, "a", &many);
    for query in [
        "webhookId=msg_key-of-a&limit=1000",
        "webhookId=msg_key-of-a&subscription=billing&limit=700",
    ] {
        assert_eq!(
            all_pages(&api, LIST, query).await.concat().len(),
            1_500,
            "{query}"
        );
    }
}

#[tokio::test]
async fn the_newest_records_cost_few_reads() {
    let api = Api::with_billing().await;
    let records: Vec<_> = (0..24 * 10)
        .map(|n| delivered(&n.to_string(), n * 6))
        .collect();
    write(&api, "a", &records);
    // The newest hour has one of them, so that the one before it is read too.
    list(&api, LIST, "limit=5").await;
    assert!(api.log.reads() < 10, "{}", api.log.reads());
}

#[tokio::test]
async fn a_list_answers_what_it_has_when_its_time_is_over() {
    let api = filled().await;
    api.log.slow_reads(&api.clock, Duration::from_secs(6));
    let pages = all_pages(&api, LIST, "result=retry").await;
    assert_eq!(pages, [vec![], vec![], vec!["a"]]);
}

/// A page of the console that waits for a list gets what was found in its own time, and the way on.
#[tokio::test]
async fn list_with_a_time_of_its_own_ends_with_what_it_found() {
    let api = Api::with_billing().await;
    write(&api, "a", &[delivered("new", 5), delivered("old", 300)]);
    let ask = async |time: Option<ListTime>| {
        let mut request =
            Request::get(ATTEMPTS).header("authorization", format!("Bearer {ADMIN_KEY}"));
        if let Some(time) = time {
            request = request.extension(time);
        }
        api.send(request.body(Body::empty()).unwrap()).await.json()
    };
    let whole = ask(None).await;
    assert_eq!(whole["records"].as_array().unwrap().len(), 2);
    assert!(whole["cursor"].is_null(), "{whole}");
    let part = ask(Some(ListTime(Duration::ZERO))).await;
    assert_eq!(part["records"][0]["id"], "new");
    assert_eq!(part["records"].as_array().unwrap().len(), 1);
    assert!(part["cursor"].is_string() && part["searchedBackTo"].is_string());
}
