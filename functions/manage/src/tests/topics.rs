use std::time::Duration;

use serde_json::{Value, json};

use super::{Api, Memory, billing};

#[tokio::test]
async fn a_topic_is_made_read_replaced_listed_and_deleted() {
    let api = Api::new();
    let made = api
        .put("/topics/Orders", json!({ "inputSchema": "EventGrid" }))
        .await;
    assert_eq!(
        (made.status, made.json()),
        (201, json!({ "name": "Orders", "inputSchema": "EventGrid" }))
    );

    let written = json!({ "name": "ORDERS", "defaultTimeToLive": "P1D", "noticesTopic": "Ops", "deliveryLog": "off" });
    let replaced = api.put("/topics/orders", written).await;
    let shown = json!({
        "name": "Orders", "inputSchema": "CloudEvents", "defaultTimeToLive": "P1D", "noticesTopic": "Ops",
        "deliveryFailedNotices": false, "deliveryLog": "off",
    });
    assert_eq!((replaced.status, replaced.json()), (200, shown.clone()));

    let read = api.get("/topics/oRDERS").await;
    assert_eq!((read.status, read.json()), (200, shown));
    assert_eq!(read.header("etag"), replaced.header("etag"));
    assert_eq!(
        (read.header("content-type"), read.header("cache-control")),
        ("application/json", "no-store")
    );

    let deleted = api.delete("/topics/ORDERS").await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    api.get("/topics/orders")
        .await
        .problem(404, "unknown-topic");
    api.delete("/topics/orders")
        .await
        .problem(404, "unknown-topic");
}

#[tokio::test]
async fn topics_are_selected_by_the_beginning_of_their_names() {
    let api = Api::new();
    for name in ["Orders", "orders-eu", "or", "bills"] {
        assert_eq!(
            api.put(&format!("/topics/{name}"), json!({})).await.status,
            201
        );
    }
    let names = async |query: &str| {
        let page = api.get(&format!("/topics?{query}")).await.json();
        let topics = page["topics"].as_array().unwrap().iter();
        topics
            .map(|topic| topic["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("prefix=ORD").await, ["orders-eu", "Orders"]);
    assert_eq!(names("prefix=orders-").await, ["orders-eu"]);
    assert!(names("prefix=x").await.is_empty());
    for bad in ["a/b", "..", "%C3%A4"] {
        let problem = api
            .get(&format!("/topics?prefix={bad}"))
            .await
            .problem(400, "about:blank");
        assert_eq!(problem["member"], "prefix", "{bad}");
    }
}

#[tokio::test]
async fn topics_are_listed_page_by_page() {
    let api = Api::with_billing().await;
    for name in ["alpha", "zeta"] {
        api.clock.advance(Duration::from_secs(1));
        api.put(&format!("/topics/{name}"), json!({})).await;
    }
    let first = api.get("/topics?limit=2").await.json();
    assert_eq!(first["topics"][0]["name"], "alpha");
    let orders = json!({
        "name": "Orders", "inputSchema": "CloudEvents", "subscriptionCount": 1,
        "createdAt": "2026-11-21T10:00:00.000Z", "updatedAt": "2026-11-21T10:00:00.000Z",
        "etag": api.get("/topics/orders").await.header("etag"),
    });
    assert_eq!(first["topics"][1], orders);
    let cursor = first["cursor"].as_str().unwrap();
    let second = api
        .get(&format!("/topics?limit=2&cursor={cursor}"))
        .await
        .json();
    let zeta = json!({
        "name": "zeta", "inputSchema": "CloudEvents", "subscriptionCount": 0,
        "createdAt": "2026-11-21T10:00:02.000Z", "updatedAt": "2026-11-21T10:00:02.000Z",
        "etag": api.get("/topics/zeta").await.header("etag"),
    });
    assert_eq!(second, json!({ "topics": [zeta] }));
    assert_eq!(
        Api::new().get("/topics").await.json(),
        json!({ "topics": [] })
    );
}

#[tokio::test]
async fn topics_are_listed_whole_where_that_is_asked_for() {
    let api = Api::with_billing().await;
    api.put("/topics/alpha", json!({})).await;
    let page = api.get("/topics?settings=true").await.json();
    for topic in page["topics"].as_array().unwrap() {
        let name = topic["name"].as_str().unwrap();
        let shown = api.get(&format!("/topics/{name}")).await;
        assert_eq!(topic["etag"], shown.header("etag"));
        assert_eq!(topic["settings"], shown.json());
    }
    let bad = api.get("/topics?settings=maybe").await;
    assert_eq!(bad.problem(400, "about:blank")["member"], "settings");
}

#[tokio::test]
async fn page_of_large_topics_is_shorter_than_asked_for() {
    const TOPICS: usize = 12;
    let api = Api::new();
    // About 700 kB each: the headers of a subscription, many times.
    let header = |n| json!({ "name": format!("X-{n}"), "value": "v".repeat(4000) });
    let large = json!({
        "endpoint": { "url": "https://a.example/" },
        "deliveryHeaders": (0..9).map(header).collect::<Vec<_>>(),
    });
    for n in 0..TOPICS {
        let name = format!("/topics/t{n:02}");
        let subscriptions: serde_json::Map<_, _> =
            (0..20).map(|n| (format!("s{n}"), large.clone())).collect();
        let put = api.put(&name, json!({ "subscriptions": subscriptions }));
        assert_eq!(put.await.status, 201);
    }
    let mut names = Vec::new();
    let mut pages = 0;
    let mut next = String::new();
    loop {
        let page = api.get(&format!("/topics?settings=true{next}")).await;
        let page = page.json();
        assert!(page.to_string().len() < 6_000_000);
        let topics = page["topics"].as_array().unwrap().iter();
        names.extend(topics.map(|it| it["name"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(cursor) = page["cursor"].as_str() else {
            break;
        };
        next = format!("&cursor={cursor}");
    }
    let all: Vec<_> = (0..TOPICS).map(|n| format!("t{n:02}")).collect();
    assert_eq!(names, all);
    assert!(pages > 1, "{pages}");
    // One that no page has room for is there without its settings.
    for part in 0..5 {
        let one = |n| (format!("s{part}-{n}"), large.clone());
        let subscriptions: serde_json::Map<_, _> = (0..20).map(one).collect();
        let put = api.put("/topics/t05", json!({ "subscriptions": subscriptions }));
        assert_eq!(put.await.status, 200);
    }
    let page = api.get("/topics?settings=true&prefix=t05").await.json();
    assert_eq!(page["topics"][0].get("settings"), None);
    assert_eq!(page["topics"][0]["subscriptionCount"], 120);
}

#[tokio::test]
async fn subscriptions_in_the_body_are_put_and_the_others_stay() {
    let api = Api::with_billing().await;
    let mut again = billing();
    again["contentMode"] = json!("binary");
    let body = json!({ "subscriptions": { "BILLING": again, "audit": billing() } });
    let answer = api.put("/topics/orders", body).await;
    assert_eq!(answer.status, 200);
    api.put("/topics/orders/subscriptions/third", billing())
        .await;
    assert_eq!(
        api.put(
            "/topics/orders",
            json!({ "subscriptions": { "audit": billing() } })
        )
        .await
        .status,
        200
    );
    let shown = api.get("/topics/orders").await.json();
    let names: Vec<_> = shown["subscriptions"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["Billing", "audit", "third"]);
    assert_eq!(shown["subscriptions"]["Billing"]["contentMode"], "binary");
}

#[tokio::test]
async fn shown_settings_can_be_put_back() {
    let api = Api::with_billing().await;
    let shown = api.get("/topics/orders").await;
    let again = api.put("/topics/orders", shown.json()).await;
    assert_eq!((again.status, again.json()), (200, shown.json()));
    assert_eq!(again.header("etag"), shown.header("etag"));
}

#[tokio::test]
async fn a_topic_is_shown_with_where_to_publish_if_that_is_elsewhere() {
    for base in [
        "https://publish.example.com",
        "https://publish.example.com/",
        "https://example.com/a/",
    ] {
        let api = Api::publishing_at(base);
        let made = api
            .put(
                "/topics/Orders",
                json!({ "endpoint": "https://mine.example.com/" }),
            )
            .await;
        let endpoint = format!("{}/topics/Orders/events", base.trim_end_matches('/'));
        assert_eq!(
            (made.status, made.json()["endpoint"].as_str()),
            (201, Some(endpoint.as_str()))
        );
        let shown = api.get("/topics/orders").await;
        assert_eq!(shown.json(), made.json());
        assert_eq!(
            api.put("/topics/orders", shown.json()).await.json(),
            shown.json()
        );
        // It is no part of what is stored: the function may move.
        let record =
            String::from_utf8(api.state.read("topics/orders.json").unwrap().to_vec()).unwrap();
        assert!(!record.contains("example.com"), "{record}");
    }
}

/// An endpoint that is a publish URL of this installation is refused by member.
#[tokio::test]
async fn own_publish_url_as_an_endpoint_is_refused_by_member() {
    let api = Api::publishing_at("https://publish.example.com/stage/");
    assert_eq!(api.put("/topics/orders", json!({})).await.status, 201);
    let own = "https://Publish.example.com:443/stage/topics/another/api/events";
    let well = "https://publish.example.com/hooks";
    let endpoints = [
        (json!({ "url": own }), "endpoint.url"),
        (
            json!({ "url": "https://a.example/", "fallbackUrl": own }),
            "endpoint.fallbackUrl",
        ),
    ];
    for (endpoint, member) in endpoints {
        let settings = json!({ "endpoint": endpoint });
        let put = api
            .put("/topics/orders/subscriptions/billing", settings.clone())
            .await;
        let problem = put.problem(400, "bad-settings");
        assert_eq!(problem["member"], member);
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("write the URL of the service"),
            "{problem}"
        );
        let topic = json!({ "subscriptions": { "billing": settings } });
        let problem = api
            .put("/topics/orders", topic)
            .await
            .problem(400, "bad-settings");
        assert_eq!(problem["member"], format!("subscriptions.billing.{member}"));
    }
    let settings = json!({ "endpoint": { "url": well } });
    assert_eq!(
        api.put("/topics/orders/subscriptions/billing", settings)
            .await
            .status,
        201
    );
}

/// A publish URL that an older release took as an endpoint stays while it is not changed.
#[tokio::test]
async fn older_publish_url_stays_while_unchanged() {
    let own = "https://publish.example.com/topics/another/events";
    let also = "https://publish.example.com/topics/third/events";
    let first = |url: &str| json!({ "endpoint": { "url": url } });
    let second =
        |url: &str| json!({ "endpoint": { "url": "https://a.example/", "fallbackUrl": url } });
    let check = async |settings: &dyn Fn(&str) -> Value, member: &str| {
        let api = Api::over(Memory::default(), Memory::default());
        let topic = json!({ "subscriptions": { "billing": settings(own) } });
        assert_eq!(api.put("/topics/orders", topic.clone()).await.status, 201);
        let api = api.then_publishing_at("https://publish.example.com");
        assert_eq!(api.put("/topics/orders", topic).await.status, 200);
        let mut edited = settings(own);
        edited["contentMode"] = json!("binary");
        assert_eq!(
            api.put("/topics/orders/subscriptions/billing", edited)
                .await
                .status,
            200
        );
        let changed = api
            .put("/topics/orders/subscriptions/billing", settings(also))
            .await;
        assert_eq!(changed.problem(400, "bad-settings")["member"], member);
    };
    check(&first, "endpoint.url").await;
    check(&second, "endpoint.fallbackUrl").await;
}

/// A topic's schema stays if its subscriptions cannot follow it, also those in the same write.
#[tokio::test]
async fn schema_that_other_subscriptions_cannot_follow_is_refused() {
    let api = Api::with_billing().await;
    let mut binary = billing();
    binary["contentMode"] = json!("binary");
    api.put("/topics/orders/subscriptions/billing", binary.clone())
        .await;

    let refused = api
        .put("/topics/orders", json!({ "inputSchema": "EventGrid" }))
        .await;
    let problem = refused.problem(409, "incompatible");
    assert_eq!(problem["member"], "subscriptions.Billing.contentMode");

    let body = json!({ "inputSchema": "EventGrid", "subscriptions": { "billing": binary } });
    let problem = api
        .put("/topics/orders", body)
        .await
        .problem(400, "bad-settings");
    assert_eq!(problem["member"], "subscriptions.Billing.contentMode");
    assert_eq!(
        api.get("/topics/orders").await.json()["inputSchema"],
        "CloudEvents"
    );
}
