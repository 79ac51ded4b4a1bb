use std::time::Duration;

use futures_util::future::join_all;
use posthaste_core::model::SUBSCRIPTIONS_PER_TOPIC_MAX;
use posthaste_ports::Entropy;
use serde_json::{Map, json};

use super::{Api, billing};

#[tokio::test]
async fn a_subscription_is_read_replaced_and_deleted_in_any_case() {
    let api = Api::with_billing().await;
    let shown = api.get("/topics/ORDERS/subscriptions/BILLING").await;
    let waiting = json!({
        "count": 0, "queued": 0, "due": 0, "delayed": 0, "underWay": 0, "parked": 0, "held": 0,
    });
    let mut expected = json!({
        "name": "Billing",
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "contentMode": "structured",
        "filter": { "isSubjectCaseSensitive": false },
        "retryPolicy": {},
        "deadLetter": {},
        "signing": { "secrets": [shown.json()["signing"]["secrets"][0]] },
        "status": { "state": "Active", "since": "2026-11-21T10:00:00.000Z" },
        "waiting": waiting,
        "health": { "state": "healthy" },
    });
    assert_eq!((shown.status, shown.json()), (200, expected.clone()));
    for member in ["waiting", "health"] {
        expected.as_object_mut().unwrap().remove(member);
    }

    api.clock.advance(Duration::from_mins(1));
    let again = api
        .put("/topics/orders/subscriptions/billing", shown.json())
        .await;
    assert_eq!((again.status, again.json()), (200, expected));
    assert_eq!(again.header("etag"), shown.header("etag"));

    assert_eq!(
        api.delete("/topics/orders/subscriptions/bILLING")
            .await
            .status,
        204
    );
    api.get("/topics/orders/subscriptions/billing")
        .await
        .problem(404, "unknown-subscription");
    api.delete("/topics/orders/subscriptions/billing")
        .await
        .problem(404, "unknown-subscription");
    assert_eq!(
        api.get("/topics/orders").await.json(),
        json!({ "name": "Orders", "inputSchema": "CloudEvents" })
    );
}

#[tokio::test]
async fn without_its_topic_there_is_no_subscription() {
    let api = Api::new();
    api.put("/topics/orders/subscriptions/billing", billing())
        .await
        .problem(404, "unknown-topic");
    for path in [
        "/topics/orders/subscriptions/billing",
        "/topics/orders/subscriptions",
    ] {
        api.get(path).await.problem(404, "unknown-topic");
    }
    api.delete("/topics/orders/subscriptions/billing")
        .await
        .problem(404, "unknown-topic");
}

/// A disabled subscription that is written with another URL is active from now on.
#[tokio::test]
async fn disabled_subscription_with_a_new_url_is_active_from_now() {
    let api = Api::with_billing().await;
    let record = String::from_utf8(api.state.read("topics/orders.json").unwrap().to_vec()).unwrap();
    let disabled = record.replace(
        r#""state":"Active""#,
        r#""state":"Disabled","reason":"gone""#,
    );
    api.state.write("topics/orders.json", disabled);
    let path = "/topics/orders/subscriptions/billing";
    let shown = api.get(path).await.json();
    assert_eq!(
        shown["status"],
        json!({ "state": "Disabled", "reason": "gone", "since": "2026-11-21T10:00:00.000Z" })
    );
    api.clock.advance(Duration::from_mins(1));
    let mut written = shown.clone();
    assert_eq!(
        api.put(path, written.clone()).await.json()["status"],
        shown["status"]
    );
    written["endpoint"]["url"] = "https://new.example.com/".into();
    let again = api.put(path, written).await.json();
    assert_eq!(
        again["status"],
        json!({ "state": "Active", "since": "2026-11-21T10:01:00.000Z" })
    );
}

#[tokio::test]
async fn subscriptions_are_listed_page_by_page_without_regard_to_case() {
    let api = Api::with_billing().await;
    for name in ["Zeta", "audit"] {
        api.put(&format!("/topics/orders/subscriptions/{name}"), billing())
            .await;
    }
    let names = |page: &serde_json::Value| -> Vec<String> {
        let all = page["subscriptions"].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = api.get("/topics/orders/subscriptions?limit=2").await.json();
    assert_eq!(names(&first), ["audit", "Billing"]);
    let cursor = first["cursor"].as_str().unwrap();
    let second = api
        .get(&format!(
            "/topics/orders/subscriptions?limit=1&cursor={cursor}"
        ))
        .await
        .json();
    assert_eq!(
        (names(&second), second.get("cursor")),
        (vec!["Zeta".to_owned()], None)
    );
}

/// Subscriptions are selected by the beginning of their names, and by state.
#[tokio::test]
async fn subscriptions_are_selected_by_name_prefix_and_state() {
    let api = Api::with_billing().await;
    for name in ["bills", "audit"] {
        api.put(&format!("/topics/orders/subscriptions/{name}"), billing())
            .await;
    }
    api.call("POST", "/topics/orders/subscriptions/bills/pause", &[], "")
        .await;
    let names = async |query: &str| {
        let page = api
            .get(&format!("/topics/orders/subscriptions?{query}"))
            .await
            .json();
        let all = page["subscriptions"].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("prefix=BILL").await, ["Billing", "bills"]);
    assert_eq!(names("prefix=bill&state=Active").await, ["Billing"]);
    assert_eq!(names("state=Paused&limit=1").await, ["bills"]);
    assert!(names("state=Failed").await.is_empty());
    for (query, member) in [("prefix=a/b", "prefix"), ("state=Bored", "state")] {
        let url = format!("/topics/orders/subscriptions?{query}");
        assert_eq!(
            api.get(&url).await.problem(400, "about:blank")["member"],
            member
        );
    }
}

#[tokio::test]
async fn writers_at_the_same_moment_lose_nothing() {
    let api = Api::with_billing().await;
    let other = Api::over(api.state.clone(), api.dead_letters.clone());
    // The numbers of another worker are other ones.
    other.manage.entropy.fill(&mut [0; 8 * 2_000]);
    let put = async |index: usize| {
        let api = if index.is_multiple_of(2) {
            &api
        } else {
            &other
        };
        api.put(&format!("/topics/orders/subscriptions/s{index}"), billing())
            .await
            .status
    };
    let statuses = join_all((0..12).map(put)).await;
    assert_eq!(statuses, vec![201; 12]);
    let shown = api.get("/topics/orders").await.json();
    assert_eq!(shown["subscriptions"].as_object().map(Map::len), Some(13));
}

#[tokio::test]
async fn a_topic_holds_no_more_subscriptions_than_the_limit() {
    let api = Api::new();
    let many: Map<_, _> = (0..SUBSCRIPTIONS_PER_TOPIC_MAX)
        .map(|i| (format!("s{i}"), billing()))
        .collect();
    assert_eq!(
        api.put("/topics/orders", json!({ "subscriptions": many }))
            .await
            .status,
        201
    );
    let problem = api
        .put("/topics/orders/subscriptions/one-more", billing())
        .await
        .problem(400, "bad-settings");
    assert_eq!(
        (&problem["member"], &problem["detail"]),
        (
            &json!("subscriptions"),
            &json!("expected at most 500 items, found 501; leave 1 out")
        )
    );
    assert_eq!(
        api.put("/topics/orders/subscriptions/s7", billing())
            .await
            .status,
        200
    );
}
