use std::time::Duration;

use posthaste_ports::{Clock, ErrorKind};
use serde_json::json;

use super::{Answer, Api, billing};
use crate::guard::REQUEST_TIME_MAX;

async fn every_read(api: &Api) -> Vec<Answer> {
    let mut answers = Vec::new();
    for path in [
        "/topics",
        "/topics/orders",
        "/topics/orders/keys",
        "/topics/orders/subscriptions",
        "/topics/orders/subscriptions/billing",
        "/topics/orders/subscriptions/billing/dead-letters",
        "/topics/orders/subscriptions/billing/dead-letters?reason=EndpointGone",
        "/dead-letters/ORDERS/BILLING/2026/1/1/1/x.json",
        "/topics/orders/events",
        "/topics/orders/events/order-1",
        "/topics/orders/subscriptions/billing/attempts",
        "/pressure",
    ] {
        answers.push(api.get(path).await);
    }
    answers
}

async fn every_write(api: &Api) -> Vec<Answer> {
    let mut answers = vec![
        api.put("/topics/orders", json!({})).await,
        api.put("/topics/orders/subscriptions/billing", billing())
            .await,
        api.delete("/topics/orders/subscriptions/billing").await,
    ];
    answers.push(
        api.call("POST", "/topics/orders/keys/key1/regenerate", &[], "")
            .await,
    );
    answers
}

#[tokio::test]
async fn a_store_that_fails_is_unavailable_and_says_when_to_come_back() {
    let api = Api::with_billing().await;
    let throttled = ErrorKind::Throttled {
        retry_after: Some(Duration::from_secs(7)),
    };
    for (kind, wait) in [
        (ErrorKind::Other, "5"),
        (ErrorKind::TimedOut, "5"),
        (ErrorKind::Denied, "5"),
        (throttled, "7"),
    ] {
        api.state.fail(kind);
        api.dead_letters.fail(kind);
        let deleted = api.delete("/topics/orders").await;
        for answer in every_read(&api)
            .await
            .into_iter()
            .chain(every_write(&api).await)
            .chain([deleted])
        {
            let problem = answer.problem(503, "unavailable");
            assert_eq!(
                (answer.header("retry-after"), problem.get("detail")),
                (wait, None)
            );
        }
    }
}

#[tokio::test]
async fn a_store_that_hangs_is_unavailable_in_time() {
    let api = Api::with_billing().await;
    api.state.hang();
    api.dead_letters.hang();
    api.clock.shorten_nights();
    let began = api.clock.monotonic();
    let mut answers = every_read(&api).await;
    answers.extend(every_write(&api).await);
    for answer in &answers {
        answer.problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), "5");
    }
    let requests = u32::try_from(answers.len()).unwrap();
    assert_eq!(api.clock.monotonic(), began + REQUEST_TIME_MAX * requests);
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_nothing_else() {
    let api = Api::with_billing().await;
    let before = api.state.read("topics/orders.json");
    api.state.fail_puts(ErrorKind::Full);
    for answer in every_write(&api).await {
        answer.problem(507, "storage-full");
    }
    assert_eq!(api.get("/topics/orders").await.status, 200);
    assert_eq!(api.state.read("topics/orders.json"), before);
}

#[tokio::test]
async fn a_writer_that_always_loses_gives_up_with_a_conflict() {
    let api = Api::with_billing().await;
    api.state.fail_puts(ErrorKind::PreconditionFailed);
    for answer in every_write(&api).await {
        answer.problem(409, "conflict");
        assert_eq!(answer.header("retry-after"), "1");
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_never_an_absent_topic() {
    let api = Api::with_billing().await;
    let newer = br#"{"v":3}"#.as_slice();
    for broken in [b"".as_slice(), newer] {
        api.state.write("topics/orders.json", broken.to_vec());
        for answer in every_write(&api)
            .await
            .into_iter()
            .chain([api.delete("/topics/orders").await])
        {
            answer.problem(500, "about:blank");
        }
        api.get("/topics/orders").await.problem(500, "about:blank");
        assert_eq!(
            api.state.read("topics/orders.json").as_deref(),
            Some(broken)
        );
        let listed = api.get("/topics").await.json();
        assert_eq!(
            (&listed["topics"], &listed["unreadable"][0]["name"]),
            (&json!([]), &json!("orders"))
        );
        let detail = listed["unreadable"][0]["detail"].as_str().unwrap();
        assert!(detail.starts_with("the record "), "{detail}");
    }
}

/// A damaged topic is named in lists, and can be deleted and written again.
#[tokio::test]
async fn damaged_topic_is_named_and_can_be_deleted_and_rewritten() {
    let api = Api::with_billing().await;
    api.put("/topics/invoices", json!({})).await;
    api.state.damage("topics/orders.json");
    let answers = every_write(&api)
        .await
        .into_iter()
        .chain([api.get("/topics/orders").await]);
    for answer in answers {
        let problem = answer.problem(500, "about:blank");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("topics/orders.json") && detail.contains("delete the topic"),
            "{detail}"
        );
    }
    let listed = api.get("/topics").await.json();
    assert_eq!(
        listed["topics"].as_array().unwrap().len(),
        1,
        "one that is damaged hides no other"
    );
    let [unreadable] = listed["unreadable"].as_array().unwrap().as_slice() else {
        panic!("{listed}")
    };
    let detail = unreadable["detail"].as_str().unwrap();
    assert!(
        unreadable["name"] == "orders" && detail.contains("delete the topic"),
        "{unreadable}"
    );
    let conditional = api
        .call("DELETE", "/topics/orders", &[("if-match", "\"1\"")], "")
        .await;
    conditional.problem(412, "precondition-failed");
    assert_eq!(api.delete("/topics/orders").await.status, 204);
    api.get("/topics/orders")
        .await
        .problem(404, "unknown-topic");
    assert_eq!(api.put("/topics/orders", json!({})).await.status, 201);
}
