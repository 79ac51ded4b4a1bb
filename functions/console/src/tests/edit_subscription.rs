//! New subscriptions, and the settings of those that are there, as YAML.

use axum::http::Method;
use serde_json::json;

use super::World;

const NEW: &str = "/console/topics/orders/subscriptions/new";
const PAGE: &str = "/console/topics/orders/subscriptions/billing";
const EDIT: &str = "/console/topics/orders/subscriptions/billing/edit";
const EDIT_YAML: &str = "/console/topics/orders/subscriptions/billing/edit?tab=yaml";
const NEW_YAML: &str = "/console/topics/orders/subscriptions/new?tab=yaml";

async fn with_orders() -> World {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    world
}

async fn with_billing() -> World {
    let world = with_orders().await;
    let billing = json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "retryPolicy": { "maxDeliveryAttempts": 7, "waitFloors": { "404": "PT1M" } },
        "filter": { "includedEventTypes": ["no", "1.5", "a: b", "#x"] },
    });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    world
}

/// Forms of new subscriptions begin with a template; the secret is shown once after saving.
#[tokio::test]
async fn new_subscription_has_a_template_and_shows_its_secret_once() {
    let world = with_orders().await;
    let form = world.get(NEW_YAML).await;
    let template = form.text();
    assert!(
        template.starts_with("# Where the events go.\nendpoint:\n  url: "),
        "{template}"
    );
    let text = template.replace("example.com/hooks", "crm.example.com/");
    let fields = |step| [("name", "crm"), ("text", text.as_str()), ("step", step)];
    let review = world.send_form(&form, NEW, &fields("check")).await;
    review.has(&[
        "Saving makes the subscription",
        "url: https://crm.example.com/",
        "A signing secret is made",
    ]);
    world
        .get("/console/topics/orders")
        .await
        .has(&["has no subscription"]);
    let made = world.send_form(&review, NEW, &fields("save")).await;
    made.has(&[
        "whsec_",
        "href=\"/console/topics/orders#publish\"",
        "href=\"/console/topics/orders/subscriptions/crm\"",
        "/console/topics/orders/subscriptions/crm/test",
    ]);
    world
        .get("/console/topics/orders")
        .await
        .has(&["/console/topics/orders/subscriptions/crm"]);
}

#[tokio::test]
async fn a_text_stays_on_the_page_when_a_store_fails() {
    let text = "endpoint: { url: 'https://b.example/' }\n";
    for (method, step, expected) in [
        (
            Method::GET,
            "check",
            "Nothing was saved. Your text is below.",
        ),
        (
            Method::PUT,
            "save",
            "It is not known whether this was saved.",
        ),
    ] {
        for url in [EDIT, NEW, "/console/topics/orders/edit"] {
            let world = with_billing().await;
            let form = world.get(url).await;
            let version = if url == NEW {
                String::new()
            } else {
                form.field("version")
            };
            let world = world.failing(method.clone());
            let text = if url.ends_with("orders/edit") {
                "inputSchema: CloudEvents\n"
            } else {
                text
            };
            let fields = [
                ("name", "crm"),
                ("text", text),
                ("step", step),
                ("version", &version),
            ];
            let shown = world.send_form(&form, url, &fields).await;
            assert_eq!(shown.status, 503, "{url}");
            assert!(shown.html.contains(expected), "{url}: {}", shown.html);
            assert_eq!(shown.text(), text, "{url}");
        }
    }
}

#[tokio::test]
async fn a_secret_of_one_s_own_is_not_shown_again() {
    let world = with_orders().await;
    let text = "endpoint: { url: 'https://a.example/' }\nsigning: { secrets: \
                [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw] }\n";
    let form = world.get(NEW_YAML).await;
    let made = world
        .send_form(
            &form,
            NEW,
            &[("name", "crm"), ("text", text), ("step", "save")],
        )
        .await;
    assert_eq!(
        (made.status, made.page_after()),
        (303, "/console/topics/orders/subscriptions/crm?done=created")
    );
}

#[tokio::test]
async fn every_mistake_of_a_new_subscription_is_named_at_once() {
    let world = with_billing().await;
    let form = world.get(NEW_YAML).await;
    let text = "endpoint: { url: x }\nretry: {}\ncontentMode: binry\n";
    let refused = world
        .send_form(
            &form,
            NEW,
            &[("name", "a b"), ("text", text), ("step", "check")],
        )
        .await;
    assert_eq!(refused.status, 400);
    for expected in [
        "is not a name",
        "endpoint.url",
        "line 2, column 1",
        "`binary`",
        "url: x",
    ] {
        assert!(
            refused.html.contains(expected),
            "{expected:?} is missing in {}",
            refused.html
        );
    }
    let text = "endpoint: { url: 'https://a.example/' }";
    for step in ["check", "save"] {
        let fields = [("name", "Billing"), ("text", text), ("step", step)];
        let taken = world.send_form(&form, NEW, &fields).await;
        assert!(
            taken.status == 400 && taken.html.contains("already"),
            "{}",
            taken.html
        );
    }
    assert_eq!(
        world
            .get("/console/topics/crm/subscriptions/new")
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn the_present_settings_are_saved_as_they_are_shown() {
    let world = with_billing().await;
    let form = world.get(EDIT_YAML).await;
    let version = form.field("version");
    let text = form.text();
    form.has(
        &["\"no\"", "\"1.5\"", "\"a: b\"", "\"#x\"", "\"404\": PT1M"]
            .map(|it| it.replace('"', "&quot;"))
            .each_ref()
            .map(String::as_str),
    );
    form.has_not(&["status:", "health:", "waiting:", "name:"]);
    let fields = |step| {
        [
            ("version", version.as_str()),
            ("text", text.as_str()),
            ("step", step),
        ]
    };
    world
        .send_form(&form, EDIT, &fields("check"))
        .await
        .has(&["No visible change."]);
    let saved = world.send_form(&form, EDIT, &fields("save")).await;
    assert_eq!(
        (saved.status, saved.page_after()),
        (303, format!("{PAGE}?done=saved").as_str())
    );
    assert_eq!(world.get(EDIT_YAML).await.text(), text);
}

#[tokio::test]
async fn the_difference_is_shown_before_it_is_saved() {
    let world = with_billing().await;
    let form = world.get(EDIT_YAML).await;
    let text = form
        .text()
        .replace("maxDeliveryAttempts: 7", "maxDeliveryAttempts: 9");
    let version = form.field("version");
    let fields = |step| {
        [
            ("version", version.as_str()),
            ("text", text.as_str()),
            ("step", step),
        ]
    };
    let review = world.send_form(&form, EDIT, &fields("check")).await;
    review.has(&[
        "retryPolicy.maxDeliveryAttempts: 7 → 9",
        "Save",
        "Go on editing",
    ]);
    world.get(EDIT).await.has(&[r#"value="7""#]);
    world
        .send_form(&review, EDIT, &fields("edit"))
        .await
        .has(&["maxDeliveryAttempts: 9"]);
    assert_eq!(
        world.send_form(&review, EDIT, &fields("save")).await.status,
        303
    );
    world.get(EDIT).await.has(&[r#"value="9""#]);
}

#[tokio::test]
async fn mistakes_of_an_edit_are_named_with_their_places() {
    let world = with_billing().await;
    let form = world.get(EDIT_YAML).await;
    for (text, expected) in [
        (
            "endpoint: { url: 'https://a.example/', timeout: PT2M }",
            "line 1, column 49: <code>",
        ),
        (
            "endpoint: { url: 'https://a.example/' }\nfilters: {}",
            "did you mean `filter`",
        ),
        (
            "endpoint: { url: 'https://a.example/' }\nendpoint: {}",
            "is there twice",
        ),
        (
            "signing: { secrets: [(masked:00000000)] }\nendpoint: { url: 'https://a.example/' }",
            "signing.secrets",
        ),
        (
            "endpoint: { url: 'https://a.example/' }\nexpirationTimeUtc: 2001-01-01T00:00:00Z",
            "not in the future",
        ),
        ("a: &x [1]\nb: [*x", "line "),
    ] {
        let fields = [("version", "x"), ("text", text), ("step", "save")];
        let refused = world.send_form(&form, EDIT, &fields).await;
        assert_eq!(refused.status, 400, "{text:?}");
        assert!(
            refused.html.contains(expected),
            "{expected:?} is missing in {}",
            refused.html
        );
    }
    world.get(PAGE).await.has(&["billing.example.com"]);
}

/// Settings that only the server refuses are shown as a mistake with its line and column.
#[tokio::test]
async fn mistake_that_only_the_server_finds_has_its_place() {
    let world = with_billing().await;
    let form = world.get(EDIT_YAML).await;
    let version = form.field("version");
    let text = "endpoint: { url: 'https://10.0.0.1/' }";
    let fields = [
        ("version", version.as_str()),
        ("text", text),
        ("step", "save"),
    ];
    let refused = world.send_form(&form, EDIT, &fields).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused
            .html
            .contains("line 1, column 18: <code><bdi>endpoint.url"),
        "{}",
        refused.html
    );
}

#[tokio::test]
async fn a_change_meanwhile_is_told_and_not_overwritten() {
    let world = with_billing().await;
    let form = world.get(EDIT_YAML).await;
    let version = form.field("version");
    let text = form.text();
    let other = json!({ "endpoint": { "url": "https://other.example.com/hooks" } });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], other)
        .await;
    for step in ["check", "save"] {
        let fields = [
            ("version", version.as_str()),
            ("text", &text),
            ("step", step),
        ];
        let told = world.send_form(&form, EDIT, &fields).await;
        assert_eq!(told.status, 409, "{step}");
        let difference = "https://other.example.com/hooks → https://billing.example.com/hooks";
        for expected in ["The subscription was changed since you began", difference] {
            assert!(
                told.html.contains(expected),
                "{expected:?} is missing in {}",
                told.html
            );
        }
        world.get(PAGE).await.has(&["other.example.com"]);
    }
    let other = [
        ("version", version.as_str()),
        ("text", &text),
        ("step", "save"),
    ];
    let told = world.send_form(&form, EDIT, &other).await;
    let version = told.field("version");
    let decided = [
        ("version", version.as_str()),
        ("text", &text),
        ("step", "save"),
    ];
    assert_eq!(world.send_form(&told, EDIT, &decided).await.status, 303);
    world.get(PAGE).await.has(&["billing.example.com"]);
}

#[tokio::test]
async fn settings_that_are_long_are_cut_and_not_edited() {
    let world = with_billing().await;
    let types: Vec<_> = (0..1_000)
        .map(|number| format!("{number}-{}", "x".repeat(200)))
        .collect();
    let billing = json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "filter": { "includedEventTypes": types },
    });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    for page in [PAGE, "/console/topics/orders"] {
        let shown = world.get(page).await;
        assert!(
            shown.status == 200 && shown.html.len() < 100_000,
            "{page}: {}",
            shown.html.len()
        );
    }
    let refused = world.get(EDIT_YAML).await;
    assert!(
        refused.status == 413 && refused.html.contains("posthaste apply"),
        "{}",
        refused.html
    );
}
