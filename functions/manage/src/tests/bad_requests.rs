use axum::body::Body;
use axum::http::Request;
use posthaste_core::model::MANAGE_REQUEST_BYTES_MAX;
use serde_json::{Value, json};

use super::{ADMIN_KEY, Api, billing};

#[tokio::test]
async fn without_the_admin_key_nothing_is_shown_or_done() {
    let api = Api::with_billing().await;
    let paths = [
        ("GET", "/topics"),
        ("GET", "/topics/orders"),
        ("PUT", "/topics/orders"),
        ("DELETE", "/topics/orders"),
        ("GET", "/topics/orders/keys"),
        ("POST", "/topics/orders/keys/key1/regenerate"),
        ("DELETE", "/topics/orders/keys/bulkKey1"),
        ("POST", "/topics/orders/subscriptions/billing/rotate-secret"),
        ("GET", "/topics/orders/subscriptions"),
        ("GET", "/topics/orders/subscriptions/billing"),
        ("PUT", "/topics/orders/subscriptions/billing"),
        ("DELETE", "/topics/orders/subscriptions/billing"),
        ("GET", "/topics/orders/subscriptions/billing/dead-letters"),
        ("GET", "/dead-letters/ORDERS/BILLING/x.json"),
        ("GET", "/topics/orders/events"),
        ("GET", "/topics/orders/events/order-1"),
        ("GET", "/topics/orders/subscriptions/billing/attempts"),
        ("GET", "/pressure"),
    ];
    let keys = [
        None,
        Some(""),
        Some("Bearer"),
        Some("Bearer wrong"),
        Some("Basic dGhlLWFkbWluLWtleQ=="),
        Some(ADMIN_KEY),
    ];
    let before = api.state.read("topics/orders.json");
    for (method, path) in paths {
        for key in keys {
            let mut request = Request::builder().method(method).uri(path);
            if let Some(key) = key {
                request = request.header("authorization", key);
            }
            let answer = api.send(request.body(Body::from("{}")).unwrap()).await;
            answer.problem(401, "unauthorized");
            assert_eq!(
                answer.header("www-authenticate"),
                "Bearer",
                "{method} {path} {key:?}"
            );
        }
    }
    assert_eq!(api.state.read("topics/orders.json"), before);
}

#[tokio::test]
async fn a_key_that_is_too_short_or_its_digest_opens_nothing() {
    /// The output of `printf %s 0123456789abcdef | sha256sum`.
    const DIGEST: &str = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";
    for (key, offered, expected) in [
        ("0123456789abcde", "0123456789abcde", 401),
        ("0123456789abcdef", "0123456789abcdef", 200),
        ("0123456789abcdef", DIGEST, 401),
    ] {
        let api = Api::opened_by(key);
        let request = Request::get("/topics").header("authorization", format!("Bearer {offered}"));
        assert_eq!(
            api.send(request.body(Body::empty()).unwrap()).await.status,
            expected,
            "{offered}"
        );
    }
}

#[tokio::test]
async fn the_scheme_of_the_key_is_read_in_any_case() {
    let api = Api::new();
    let request = Request::get("/topics").header("authorization", format!("bEARER {ADMIN_KEY}"));
    assert_eq!(
        api.send(request.body(Body::empty()).unwrap()).await.status,
        200
    );
}

async fn bad_settings(api: &Api, path: &str, body: Value, member: &str, detail: &str) {
    let problem = api.put(path, body).await.problem(400, "bad-settings");
    assert_eq!(problem["member"], member);
    let shown = problem["detail"].as_str().unwrap();
    assert!(shown.starts_with(detail), "{shown}");
}

#[tokio::test]
async fn every_member_at_fault_is_named() {
    let api = Api::new();
    let wrong = json!({
        "enpoint": { "url": 5 }, "contentMode": "binry", "retryPolicy": { "schedule": ["x", "PT1S"] },
        "whileDisabled": "skips",
    });
    let problem = api
        .put("/topics/orders", json!({ "subscriptions": { "x": wrong } }))
        .await;
    let problem = problem.problem(400, "bad-settings");
    let duration = "expected a duration such as 10s, 5m, 1h30m or 1d, or in ISO 8601 such as PT10S";
    let endpoint = "unknown member `enpoint`, did you mean `endpoint`?";
    let errors = json!([
        { "member": "subscriptions.x.contentMode", "detail": "unknown word, did you mean `binary`?" },
        { "member": "subscriptions.x.enpoint", "detail": endpoint },
        { "member": "subscriptions.x.enpoint.url", "detail": "expected a text, found a number" },
        { "member": "subscriptions.x.retryPolicy.schedule[0]", "detail": duration },
        { "member": "subscriptions.x.whileDisabled", "detail": "unknown word, did you mean `skip`?" },
    ]);
    assert_eq!(problem["errors"], errors);
    assert_eq!(
        [&problem["member"], &problem["detail"]],
        [&errors[0]["member"], &errors[0]["detail"]]
    );
    let problem = api
        .put("/topics/orders", json!({ "name": "a", "colour": 1 }))
        .await;
    let problem = problem.problem(400, "bad-settings");
    assert_eq!(
        (&problem["member"], problem.get("errors")),
        (&json!("colour"), None)
    );
    assert_eq!(api.state.read("topics/orders.json"), None);
}

#[tokio::test]
async fn a_member_that_is_written_twice_is_named() {
    let api = Api::new();
    let request =
        Request::put("/topics/orders").header("authorization", format!("Bearer {ADMIN_KEY}"));
    let body = Body::from(r#"{"inputSchema":"Custom","inputSchema":"EventGrid"}"#);
    let problem = api
        .send(request.body(body).unwrap())
        .await
        .problem(400, "bad-settings");
    assert_eq!(
        [&problem["member"], &problem["detail"]],
        ["inputSchema", "is there twice, remove or rename one"]
    );
}

#[tokio::test]
async fn the_member_of_a_subscription_at_fault_is_named() {
    let api = Api::with_billing().await;
    let check = async |member: &str, value: Value, path: &str, detail: &str| {
        let mut settings = billing();
        settings[member] = value;
        bad_settings(
            &api,
            "/topics/orders/subscriptions/x",
            settings.clone(),
            path,
            detail,
        )
        .await;
        let path = format!("subscriptions.x.{path}");
        let whole = json!({ "subscriptions": { "x": settings } });
        bad_settings(&api, "/topics/orders", whole, &path, detail).await;
    };
    check(
        "filters",
        json!({}),
        "filters",
        "unknown member `filters`, did you mean `filter`?",
    )
    .await;
    check(
        "filter",
        json!({ "types": [] }),
        "filter.types",
        "unknown member `types`, expected one of",
    )
    .await;
    check(
        "retryPolicy",
        json!({ "schedule": ["PT1S", "1x"] }),
        "retryPolicy.schedule[1]",
        "expected a duration such as 10s",
    )
    .await;
    check(
        "retryPolicy",
        json!({ "maxDeliveryAttempts": 31 }),
        "retryPolicy.maxDeliveryAttempts",
        "expected 1 to 30, found 31",
    )
    .await;
    check(
        "contentMode",
        json!("Binary"),
        "contentMode",
        "unknown word, did you mean `binary`?",
    )
    .await;
    check("endpoint", json!({}), "endpoint", "missing member `url`").await;
    check(
        "name",
        json!("y"),
        "name",
        "differs from the name in the path",
    )
    .await;
}

#[tokio::test]
async fn the_member_of_a_topic_at_fault_is_named() {
    let api = Api::new();
    bad_settings(
        &api,
        "/topics/orders",
        json!({ "inputSchema": "Other" }),
        "inputSchema",
        "unknown word",
    )
    .await;
    bad_settings(
        &api,
        "/topics/orders",
        json!({ "name": "other" }),
        "name",
        "differs from",
    )
    .await;
    bad_settings(
        &api,
        "/topics/orders",
        json!({ "defaultTimeToLive": "PT0S" }),
        "defaultTimeToLive",
        "expected PT1S or more, found PT0S",
    )
    .await;
    let ops = json!({ "noticesTopic": "ops.eu" });
    bad_settings(
        &api,
        "/topics/orders",
        ops,
        "noticesTopic",
        "\"ops.eu\" is not a name",
    )
    .await;
    let log = json!({ "deliveryLog": "all" });
    let modes = "unknown word, expected one of `off`, `attempts`, `payloads`";
    bad_settings(&api, "/topics/orders", log, "deliveryLog", modes).await;
    let twice = json!({ "subscriptions": { "Billing": billing(), "billing": billing() } });
    bad_settings(
        &api,
        "/topics/orders",
        twice,
        "subscriptions.billing",
        "there is another of this name",
    )
    .await;
    assert_eq!(api.state.read("topics/orders.json"), None);
}

#[tokio::test]
async fn an_endpoint_is_refused_at_the_door() {
    let api = Api::with_billing().await;
    for (url, detail) in [
        (
            "http://billing.example.com/",
            "plain http is allowed only to addresses that `--allow-endpoints` opens (on AWS: AllowEndpoints)",
        ),
        (
            "https://billing.example.com:22/",
            "port 22 is allowed only to addresses that `--allow-endpoints` opens (on AWS: AllowEndpoints)",
        ),
        (
            "https://127.0.0.1/",
            "the address 127.0.0.1 is not public (loopback); `--allow-endpoints` opens such (on AWS: \
                AllowEndpoints)",
        ),
        ("https://[::1]/", "the address ::1 is not public"),
        (
            "https://169.254.169.254/latest",
            "the address 169.254.169.254 is not public",
        ),
        ("ftp://a.example/", "the scheme is \"ftp\", expected https"),
        ("hooks", "not an absolute URL"),
        (
            "https:a.example\n",
            "is not a URL as it is written; if https://a.example/ is meant, write that",
        ),
    ] {
        let body = json!({ "endpoint": { "url": url } });
        bad_settings(
            &api,
            "/topics/orders/subscriptions/x",
            body.clone(),
            "endpoint.url",
            detail,
        )
        .await;
        let whole = json!({ "subscriptions": { "x": body } });
        bad_settings(
            &api,
            "/topics/orders",
            whole,
            "subscriptions.x.endpoint.url",
            detail,
        )
        .await;
        let second = json!({ "endpoint": { "url": "https://a.example/", "fallbackUrl": url } });
        bad_settings(
            &api,
            "/topics/orders/subscriptions/x",
            second,
            "endpoint.fallbackUrl",
            detail,
        )
        .await;
    }
}

#[tokio::test]
async fn a_second_endpoint_is_shown_as_it_was_written_and_taken_back() {
    let api = Api::with_billing().await;
    let path = "/topics/orders/subscriptions/x";
    let endpoint = json!({ "url": "https://a.example/", "fallbackUrl": "https://b.example/hooks" });
    assert_eq!(
        api.put(path, json!({ "endpoint": endpoint })).await.json()["endpoint"],
        endpoint
    );
    let shown = api.get(path).await.json();
    assert_eq!(api.put(path, shown).await.status, 200);
    let none = json!({ "endpoint": { "url": "https://a.example/", "fallbackUrl": null } });
    assert_eq!(
        api.put(path, none).await.json()["endpoint"].get("fallbackUrl"),
        None
    );
    for (validation, fallback, detail) in [
        (
            "none",
            "https://a.example/standby",
            "is on the scheme, host and port of endpoint.url",
        ),
        (
            "CloudEvents",
            "https://b.example/",
            "is on another host than endpoint.url",
        ),
    ] {
        let endpoint = json!({ "url": "https://a.example/", "fallbackUrl": fallback, "validation": validation });
        bad_settings(
            &api,
            path,
            json!({ "endpoint": endpoint }),
            "endpoint.fallbackUrl",
            detail,
        )
        .await;
    }
}

#[tokio::test]
async fn bodies_that_are_not_json_are_bad_requests() {
    let api = Api::new();
    for body in ["", "{", "{}x", "\u{feff}{}", "\"\\ud800\""] {
        let answer = api
            .call("PUT", "/topics/orders", &[], body.to_owned())
            .await;
        assert_eq!(answer.status, 400, "{body:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    let deep = "[".repeat(100_000);
    api.call("PUT", "/topics/orders", &[], deep)
        .await
        .problem(400, "about:blank");
    api.call("PUT", "/topics/orders", &[], "[1]")
        .await
        .problem(400, "bad-settings");
    api.call("PUT", "/topics/orders", &[], vec![0xFF, 0xFE])
        .await
        .problem(400, "about:blank");
    assert_eq!(api.state.read("topics/orders.json"), None);
}

#[tokio::test]
async fn another_content_type_is_refused_and_none_is_taken() {
    let api = Api::new();
    for content_type in ["text/plain", "application/yaml", "application/jsonx", ""] {
        let answer = api
            .call(
                "PUT",
                "/topics/orders",
                &[("content-type", content_type)],
                "{}",
            )
            .await;
        answer.problem(415, "about:blank");
    }
    for content_type in ["application/json", "Application/JSON; charset=utf-8"] {
        let answer = api
            .call(
                "PUT",
                "/topics/orders",
                &[("content-type", content_type)],
                "{}",
            )
            .await;
        assert!([200, 201].contains(&answer.status), "{content_type}");
    }
    assert_eq!(
        api.call("PUT", "/topics/orders", &[], "{}").await.status,
        200
    );
}

#[tokio::test]
async fn a_body_past_the_limit_is_refused() {
    let api = Api::new();
    let body = |bytes: usize| format!("{{}}{}", " ".repeat(bytes - 2));
    let answer = api
        .call("PUT", "/topics/orders", &[], body(MANAGE_REQUEST_BYTES_MAX))
        .await;
    assert_eq!(answer.status, 201);
    let answer = api
        .call(
            "PUT",
            "/topics/orders",
            &[],
            body(MANAGE_REQUEST_BYTES_MAX + 1),
        )
        .await;
    answer.problem(413, "too-large");
}

#[tokio::test]
async fn names_and_queries_that_cannot_be_read_are_named() {
    let api = Api::with_billing().await;
    let check = async |path: &str, member: &str, detail: &str| {
        let problem = api.get(path).await.problem(400, "about:blank");
        assert_eq!(problem["member"], json!(member), "{path}");
        let shown = problem["detail"].as_str().unwrap();
        assert!(shown.contains(detail), "{shown}");
    };
    check("/topics/a.b", "topic", "\"a.b\" is not a name").await;
    check("/topics/malformed", "topic", "\"malformed\" is reserved").await;
    check(
        "/topics/orders/subscriptions/-x",
        "name",
        "\"-x\" is not a name",
    )
    .await;
    api.get("/topics/%FF").await.problem(400, "about:blank");
    check("/topics?limit=0", "limit", "expected 1 to 1000, found 0").await;
    check(
        "/topics?limit=1001",
        "limit",
        "expected 1 to 1000, found 1001",
    )
    .await;
    let number = "expected a whole number, found a text";
    check("/topics?limit=many", "limit", number).await;
    check("/topics?cursor=!", "cursor", "not a cursor").await;
    check("/topics?page=2", "page", "unknown member `page`").await;
    let dead_letters = "/topics/orders/subscriptions/billing/dead-letters";
    check(
        &format!("{dead_letters}?from=tomorrow"),
        "from",
        "expected a time such as 2026-11-21T10:00:00Z",
    )
    .await;
    check(
        &format!("{dead_letters}?reason=Bored"),
        "reason",
        "unknown word, expected one of",
    )
    .await;
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems_too() {
    let api = Api::with_billing().await;
    for path in [
        "/",
        "/nothing",
        "/topics/orders/nothing",
        "/topics/orders/subscriptions/billing/a/b",
    ] {
        api.get(path).await.problem(404, "about:blank");
    }
    api.get("/topics/orders/subscriptions/billing/pause")
        .await
        .problem(405, "about:blank");
    let answer = api.call("PATCH", "/topics/orders", &[], "").await;
    answer.problem(405, "about:blank");
    let mut allowed: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD", "PUT"]);
    api.call("POST", "/health", &[], "")
        .await
        .problem(405, "about:blank");
}
