//! The form with the settings of a topic or a subscription.

use posthaste_core::api::SubscriptionSettings;
use serde_json::json;

use super::logged::HOSTILE;
use super::{ShownPage, World};
use crate::api::RequestTarget;

const NEW: &str = "/console/topics/orders/subscriptions/new";
const PAGE: &str = "/console/topics/orders/subscriptions/billing";
const EDIT: &str = "/console/topics/orders/subscriptions/billing/edit";

async fn with_billing() -> World {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "retryPolicy": { "maxDeliveryAttempts": 7, "waitFloors": { "404": "PT1M" } },
        "deliveryHeaders": [{ "name": "X-Key", "value": "s3cret", "isSecret": true }],
    });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    world
}

/// Sends the form of a page with these fields.
async fn send(
    world: &World,
    page: &ShownPage,
    action: &str,
    step: &str,
    fields: &[(&str, &str)],
) -> ShownPage {
    let [version, base] = ["version", "base"].map(|name| page.field(name));
    let own = [
        ("version", version.as_str()),
        ("base", base.as_str()),
        ("tab", "form"),
        ("step", step),
    ];
    world
        .send_form(page, action, &[&own[..], fields].concat())
        .await
}

/// Takes the step of a page that shows what saving would change.
async fn decide(world: &World, page: &ShownPage, action: &str, step: &str) -> ShownPage {
    let hidden = ["version", "name", "text", "tab"];
    let values = hidden.map(|name| page.field(name));
    let fields: Vec<_> = hidden
        .into_iter()
        .zip(values.iter().map(String::as_str))
        .chain([("step", step)])
        .collect();
    world.send_form(page, action, &fields).await
}

#[tokio::test]
async fn form_has_values_help_defaults_and_what_only_yaml_has() {
    let world = with_billing().await;
    world
        .get(EDIT)
        .await
        .has(&[
            "<legend>Retries</legend>",
            r#"<label for="retryPolicy.maxDeliveryAttempts">Most attempts</label>"#,
            r#"name="retryPolicy.maxDeliveryAttempts" value="7""#,
            "The most attempts of an event, 1 to 30. 30 when left out.",
            r#"placeholder="PT30S""#,
            "(default: structured)",
            r#"<option value="structured" selected>"#,
            "(default: yes)",
            "<code>retryPolicy.waitFloors</code> (set)",
            "<code>filter.advancedFilters</code>: ",
            r#"aria-current="page">Settings"#,
        ])
        .has_not(&["s3cret", "Settings as YAML"]);
}

#[tokio::test]
async fn change_in_the_form_is_shown_before_it_is_saved() {
    let world = with_billing().await;
    let form = world.get(EDIT).await;
    let typed = [("retryPolicy.maxDeliveryAttempts", "9")];
    let review = send(&world, &form, EDIT, "check", &typed).await;
    review.has(&["retryPolicy.maxDeliveryAttempts: 7 → 9", "Go on editing"]);
    let again = decide(&world, &review, EDIT, "edit").await;
    again.has(&[r#"name="retryPolicy.maxDeliveryAttempts" value="9""#]);
    let saved = decide(&world, &review, EDIT, "save").await;
    assert_eq!(
        (saved.status, saved.page_after()),
        (303, format!("{PAGE}?done=saved").as_str())
    );
    world
        .get(EDIT)
        .await
        .has(&[r#"name="retryPolicy.maxDeliveryAttempts" value="9""#]);
    // What only YAML has stays, and so does the secret.
    let target = RequestTarget::new(&["topics", "orders", "subscriptions", "billing"]);
    let present: SubscriptionSettings = world.api.get(target).await.unwrap();
    assert_eq!(present.retry_policy.wait_floors.len(), 1);
    world.post(PAGE, &format!("{PAGE}/test"), &[]).await;
    let request = world.endpoint.take().pop().unwrap();
    assert_eq!(request.headers["x-key"], "s3cret");
}

#[tokio::test]
async fn nothing_typed_is_no_change() {
    let world = with_billing().await;
    let form = world.get(EDIT).await;
    send(&world, &form, EDIT, "check", &[])
        .await
        .has(&["No visible change."]);
}

#[tokio::test]
async fn mistakes_stand_beside_their_fields() {
    let world = with_billing().await;
    let form = world.get(EDIT).await;
    let typed = [
        ("endpoint.timeout", "PT2M"),
        ("retryPolicy.maxDeliveryAttempts", "many"),
        ("retryPolicy.schedule", "PT1M, soon"),
    ];
    for step in ["check", "save"] {
        let refused = send(&world, &form, EDIT, step, &typed).await;
        assert_eq!(refused.status, 400, "{}", refused.html);
        for expected in [
            "<title>Mistake: Edit",
            r##"<a href="#retryPolicy.maxDeliveryAttempts">Most attempts</a>"##,
            r#"<div id="retryPolicy.maxDeliveryAttempts-mistake">"#,
            r#"aria-invalid="true""#,
            r#"value="many""#,
            r#"value="PT1M, soon""#,
            r#"value="PT2M""#,
        ] {
            assert!(
                refused.html.contains(expected),
                "{expected:?} is missing in {}",
                refused.html
            );
        }
    }
    // A mistake that only the server finds.
    let typed = [("endpoint.url", "https://10.0.0.1/")];
    let refused = send(&world, &form, EDIT, "save", &typed).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.html.contains(r#"<div id="endpoint.url-mistake">"#),
        "{}",
        refused.html
    );
}

#[tokio::test]
async fn typed_text_stays_when_the_tab_changes() {
    let world = with_billing().await;
    let form = world.get(EDIT).await;
    let typed = [("endpoint.timeout", "PT7S")];
    let yaml = send(&world, &form, EDIT, "yaml", &typed).await;
    yaml.has(&[r#"aria-current="page">YAML"#]);
    let text = yaml.text();
    assert!(text.contains("  timeout: PT7S\n"), "{text}");
    assert!(text.contains("value: (masked)"), "{text}");
    let version = yaml.field("version");
    let text = format!("{text}autoDeleteOnIdle: P9D\n");
    let fields = [
        ("version", version.as_str()),
        ("text", &text),
        ("step", "form"),
    ];
    let form = world.send_form(&yaml, EDIT, &fields).await;
    form.has(&[
        r#"name="endpoint.timeout" value="PT7S""#,
        r#"name="autoDeleteOnIdle" value="P9D""#,
    ]);
    send(&world, &form, EDIT, "check", &[])
        .await
        .has(&["endpoint.timeout: (default) → PT7S", "autoDeleteOnIdle"]);
}

#[tokio::test]
async fn yaml_with_a_mistake_stays_in_its_tab() {
    let world = with_billing().await;
    let yaml = world.get(&format!("{EDIT}?tab=yaml")).await;
    for text in ["endpoint: [\n", "endpoint: { url: x, timeut: PT1S }\n"] {
        let fields = [("version", "x"), ("text", text), ("step", "form")];
        let refused = world.send_form(&yaml, EDIT, &fields).await;
        assert_eq!(refused.status, 400);
        assert!(refused.html.contains("once that is mended"), "{text}");
        assert_eq!(refused.text(), text);
    }
}

#[tokio::test]
async fn change_meanwhile_is_not_overwritten_by_the_form() {
    let world = with_billing().await;
    let form = world.get(EDIT).await;
    let other = json!({
        "endpoint": { "url": "https://other.example.com/hooks" },
        "deliveryHeaders": [{ "name": "X-Key", "value": "other", "isSecret": true }],
    });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], other)
        .await;
    for step in ["check", "save"] {
        let told = send(&world, &form, EDIT, step, &[("endpoint.timeout", "PT7S")]).await;
        assert_eq!(told.status, 409, "{step}");
        assert!(told.html.contains("was changed since you began"), "{step}");
        world
            .get(EDIT)
            .await
            .has(&["https://other.example.com/hooks"]);
    }
}

#[tokio::test]
async fn hostile_values_are_text_in_the_form() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "filter": { "includedEventTypes": HOSTILE, "subjectBeginsWith": HOSTILE[1] },
    });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    let form = world.get(EDIT).await;
    form.has(&["a value that only YAML shows"])
        .has_not(&["<script>alert", "<img"]);
    let typed = [
        ("filter.subjectEndsWith", HOSTILE[0]),
        ("contentMode", HOSTILE[1]),
    ];
    let refused = send(&world, &form, EDIT, "check", &typed).await;
    assert_eq!(refused.status, 400);
    refused.has_not(&["<script>alert", "<img"]);
    let typed = [("filter.subjectEndsWith", HOSTILE[0])];
    let review = send(&world, &form, EDIT, "check", &typed).await;
    review.has(&["filter.subjectEndsWith"]).has_not(&[
        "<script>alert",
        "<img",
        "\u{202e}gnp.exe</bdi>",
    ]);
}

#[tokio::test]
async fn new_subscription_is_made_by_the_form_alone() {
    let world = with_billing().await;
    let form = world.get(NEW).await;
    form.has(&[r#"name="endpoint.url" value="" "#, "such as https://"]);
    let nothing = [("name", "crm"), ("endpoint.url", "")];
    let refused = send(&world, &form, NEW, "check", &nothing).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.html.contains(r#"<div id="endpoint.url-mistake">"#),
        "{}",
        refused.html
    );
    let typed = [
        ("name", "crm"),
        ("endpoint.url", "https://crm.example.com/"),
    ];
    let review = send(&world, &form, NEW, "check", &typed).await;
    review.has(&[
        "Saving makes the subscription",
        "url: https://crm.example.com/",
        "A signing secret is made",
    ]);
    decide(&world, &review, NEW, "save").await.has(&["whsec_"]);
    // The template of the other tab is still whole.
    let yaml = send(
        &world,
        &form,
        NEW,
        "yaml",
        &[("name", "x"), ("endpoint.url", "")],
    )
    .await;
    assert!(yaml.text().contains("# Where the events go."));
}

#[tokio::test]
async fn topic_is_made_and_edited_by_the_form_alone() {
    let world = World::signed_in().await;
    let form = world.get("/console/topics/new").await;
    let typed = [
        ("name", "orders"),
        ("inputSchema", "EventGrid"),
        ("deliveryLog", "off"),
    ];
    let made = send(&world, &form, "/console/topics/new", "save", &typed).await;
    assert_eq!(made.page_after(), "/console/topics/orders?done=created");
    let edit = "/console/topics/orders/edit";
    let form = world.get(edit).await;
    form.has(&[
        r#"<option value="EventGrid" selected>"#,
        r#"<option value="off" selected>"#,
    ]);
    let review = send(&world, &form, edit, "check", &[("deliveryLog", "")]).await;
    review.has(&["deliveryLog: off → (default)"]);
    let saved = decide(&world, &review, edit, "save").await;
    assert_eq!(saved.page_after(), "/console/topics/orders?done=saved");
}

/// The other tabs have pages of their own: what was typed is not lost without a question.
#[tokio::test]
async fn tab_that_leaves_the_form_asks_about_a_draft() {
    let world = with_billing().await;
    let form = world.get(EDIT).await;
    form.has(&[
        r#"name="step" value="now""#,
        r#"name="step" value="danger""#,
    ]);
    for (step, page) in [
        ("now", PAGE.to_owned()),
        ("danger", format!("{PAGE}?tab=danger")),
    ] {
        let left = send(&world, &form, EDIT, step, &[]).await;
        assert_eq!((left.status, left.location()), (303, page.as_str()));
        let typed = [("endpoint.timeout", "PT9S")];
        let asked = send(&world, &form, EDIT, step, &typed).await;
        asked.has(&[
            "What you typed is not saved.",
            &format!("<a class=\"button\" href=\"{page}\">Leave without saving</a>"),
        ]);
        let again = decide(&world, &asked, EDIT, "edit").await;
        again.has(&[r#"name="endpoint.timeout" value="PT9S""#]);
    }
    let yaml = world.get(&format!("{EDIT}?tab=yaml")).await;
    let text = yaml.text();
    let fields = [("text", text.as_str()), ("step", "now")];
    let left = world.send_form(&yaml, EDIT, &fields).await;
    assert_eq!((left.status, left.location()), (303, PAGE));
    let topic = "/console/topics/orders/edit";
    let form = world.get(topic).await;
    form.has(&[r#"value="now""#])
        .has_not(&[r#"value="danger""#]);
    let asked = send(&world, &form, topic, "now", &[("deliveryLog", "off")]).await;
    asked.has(&["What you typed is not saved."]);
    world.get(NEW).await.has_not(&[r#"value="now""#]);
}

/// The template's URL is an example: no event goes there because somebody left it.
#[tokio::test]
async fn example_of_the_template_is_no_endpoint() {
    let world = with_billing().await;
    let yaml = world.get(&format!("{NEW}?tab=yaml")).await;
    let template = yaml.text();
    for step in ["check", "save"] {
        for name in ["crm", "a b"] {
            let fields = [("name", name), ("text", &template), ("step", step)];
            let refused = world.send_form(&yaml, NEW, &fields).await;
            assert_eq!(refused.status, 400);
            let expected = "this is the example of the template";
            assert!(refused.html.contains(expected), "{}", refused.html);
        }
    }
}

#[tokio::test]
async fn mistake_in_the_name_stands_beside_its_field() {
    let world = with_billing().await;
    let form = world.get(NEW).await;
    form.has(&[r#"aria-describedby="name-hint""#]);
    let typed = [("name", "<b>"), ("endpoint.url", "https://a.example/")];
    let refused = send(&world, &form, NEW, "check", &typed).await;
    assert_eq!(refused.status, 400);
    for expected in [
        "<a href=\"#name\">Name</a>: ",
        r#"aria-invalid="true" aria-describedby="name-mistake name-hint""#,
        r#"<div id="name-mistake">"#,
    ] {
        assert!(
            refused.html.contains(expected),
            "{expected}: {}",
            refused.html
        );
    }
    assert!(!refused.html.contains("<b>"), "{}", refused.html);
    let taken = [("name", "billing"), ("endpoint.url", "https://a.example/")];
    let refused = send(&world, &form, NEW, "check", &taken).await;
    assert!(refused.html.contains("name-mistake"), "{}", refused.html);
}

#[tokio::test]
async fn typed_blank_is_named_as_a_mistake() {
    let world = with_billing().await;
    let form = world.get(EDIT).await;
    for member in ["endpoint.timeout", "retryPolicy.maxDeliveryAttempts"] {
        let refused = send(&world, &form, EDIT, "check", &[(member, "  ")]).await;
        assert_eq!(refused.status, 400, "{member}");
        let expected = format!("<div id=\"{member}-mistake\">");
        assert!(refused.html.contains(&expected), "{}", refused.html);
    }
}

/// Settings that the form would make a long page of are shown as YAML.
#[tokio::test]
async fn long_settings_are_shown_as_yaml() {
    let world = with_billing().await;
    let types: Vec<_> = (0..200)
        .map(|number| format!("{number}-{}", "x".repeat(200)))
        .collect();
    let billing = json!({
        "endpoint": { "url": "https://billing.example.com/hooks" },
        "filter": { "includedEventTypes": types },
    });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    let page = world.get(EDIT).await;
    page.has(&["Settings as YAML"]);
    assert!(page.html.len() < 100_000, "{}", page.html.len());
}
