//! The page of what fails.

use axum::routing::get;
use axum::{Json, Router};
use posthaste_core::health::{HealthBook, SeenTry, SubscriptionTries, TryResult};
use posthaste_core::model::OutcomeName;
use posthaste_core::stored::HEALTH;
use posthaste_ports::Clock;
use serde_json::json;

use super::World;
use crate::console::ConsoleState;

impl World {
    /// Makes subscriptions of `orders`, each with an endpoint at a host of its own, or at one.
    async fn put_subscriptions(&self, names: &[String], host: Option<&str>) {
        let all: serde_json::Map<_, _> = names
            .iter()
            .map(|name| {
                let host = host.map_or_else(|| format!("{name}.example.com"), str::to_owned);
                let url = format!("https://{host}/{name}");
                (name.clone(), json!({ "endpoint": { "url": url } }))
            })
            .collect();
        let topic = json!({ "subscriptions": all });
        self.put(&["topics", "orders"], topic).await;
    }

    /// Writes that tries of these subscriptions of `orders` failed: one in ten arrived.
    fn note_failures(&self, names: &[String]) {
        let at = self.clock.now();
        let mut tries = SubscriptionTries::default();
        for number in 0..100 {
            let failed = TryResult::Failed {
                outcome: Some(OutcomeName::Unauthorized),
                status: Some(401),
                is_last: true,
            };
            tries.add_try(&SeenTry {
                key: &number.to_string(),
                accepted_at: at,
                at,
                is_first: true,
                result: if number < 10 {
                    TryResult::Arrived
                } else {
                    failed
                },
            });
        }
        let of_each = names
            .iter()
            .map(|name| (format!("orders.{name}"), tries.clone()));
        let mut book = HealthBook::default();
        book.add_tries(of_each.collect(), "run");
        self.state.write(HEALTH, book.render());
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number:03}")).collect()
}

#[tokio::test]
async fn without_trouble_the_page_says_so() {
    let world = World::signed_in().await;
    let page = world.get("/console/failing").await;
    page.has(&["Nothing fails", r#"aria-current="page""#])
        .has_not(&["<table", "name=\"state\""]);
}

/// An endpoint that refuses its events has no circuit, and is in the table all the same.
#[tokio::test]
async fn row_says_who_why_since_when_and_how_much() {
    let world = World::signed_in().await;
    let one = names(1);
    world.put_subscriptions(&one, None).await;
    world.note_failures(&one);
    world.state.write("held/orders.s000/00000001-x", "{}");
    let page = world.get("/console/failing").await;
    page.has(&[
        "1 failing, 0 recovering, 0 stopped while events wait or are missed.",
        r#"href="/console/topics/orders/subscriptions/s000">orders / s000</a>"#,
        "https://s000.example.com:443",
        "Unauthorized</bdi> (401)",
        "10 %",
        "10 of 100 in 1 min",
        r#"<a href="/console/told">nobody is told</a>"#,
        "1 or more",
        "0 s ago",
        ">Test</button>",
        ">Retry now</button>",
        ">Pause</button>",
        "Send again…",
        r#"name="back" value="/console/failing""#,
    ]);
}

#[tokio::test]
async fn rows_are_selected_by_state_and_name_and_paged() {
    let world = World::signed_in().await;
    let all = names(60);
    world.put_subscriptions(&all, None).await;
    world.note_failures(&all);
    let first = world.get("/console/failing").await;
    first
        .has(&["orders / s000", "orders / s024", "60 failing", "Next page"])
        .has_not(&["orders / s025", "First page"]);
    assert!(first.html.len() < 100_000, "{}", first.html.len());
    let (_, next) = first
        .html
        .split_once("href=\"/console/failing?cursor=")
        .unwrap();
    let next = next.split('"').next().unwrap();
    let second = world.get(&format!("/console/failing?cursor={next}")).await;
    second
        .has(&["orders / s025", "First page", "Next page"])
        .has_not(&["orders / s024<"]);
    let one = world.get("/console/failing?state=failing&name=S007").await;
    one.has(&[
        "orders / s007",
        r#"value="failing" selected"#,
        r#"value="S007""#,
        r#"value="/console/failing?name=S007&amp;state=failing""#,
    ])
    .has_not(&["orders / s008"]);
    let none = world.get("/console/failing?state=paused").await;
    none.has(&["Change the filters"])
        .has_not(&["orders / s007"]);
    for query in ["state=broken", "cursor=x!"] {
        let page = world.get(&format!("/console/failing?{query}")).await;
        assert_eq!(page.status, 400, "{query}");
    }
}

/// The rest of a host is one press away.
#[tokio::test]
async fn host_with_many_subscriptions_has_few_rows() {
    let world = World::signed_in().await;
    let all = names(40);
    world.put_subscriptions(&all, Some("big.example.com")).await;
    world.note_failures(&all);
    let page = world.get("/console/failing").await;
    page.has(&[
        "orders / s004",
        "and 35 more on this host",
        "/console/failing?name=https%3A%2F%2Fbig.example.com%3A443",
    ])
    .has_not(&["orders / s005"]);
    let failing = world.get("/console/failing?state=failing").await;
    failing.has(&["?name=https%3A%2F%2Fbig.example.com%3A443&amp;state=failing"]);
    let host = "/console/failing?name=https%3A%2F%2Fbig.example.com%3A443";
    world
        .get(host)
        .await
        .has(&["orders / s005", "orders / s024"])
        .has_not(&["more on this host"]);
}

/// Parts that could not be read are named, and the others are shown.
#[tokio::test]
async fn part_that_cannot_be_read_is_said() {
    let world = World::signed_in().await;
    world.fail_link("https://billing.example.com:443").await;
    world.state.write(HEALTH, r#"{"v":99}"#);
    for page in ["/console", "/console/failing"] {
        let shown = world.get(page).await;
        shown.has(&[
            "https://billing.example.com:443",
            "This is not all: the tries of the last hour",
        ]);
    }
}

#[tokio::test]
async fn former_address_leads_to_the_page() {
    let world = World::signed_in().await;
    let page = world.get("/console/links").await;
    assert_eq!((page.status, page.location()), (303, "/console/failing"));
}

#[tokio::test]
async fn slow_targets_have_a_table_of_their_own() {
    let world = World::signed_in().await;
    let object = r#"{"v":1,"slowUntil":{"https://b.example.com:443 orders.crm":253402300799000}}"#;
    world.state.write("lanes.json", object);
    let page = world.get("/console/failing").await;
    page.has(&[
        "Answered more slowly",
        "/console/topics/orders/subscriptions/crm",
        "https://b.example.com:443",
    ]);
}

/// The checks of the installation are made when the page is opened.
#[tokio::test]
async fn kept_page_shows_the_checks_and_what_was_given_up() {
    let world = World::signed_in().await;
    let page = world.get("/console/kept").await;
    page.has(&[
        "Is anything lost?",
        "DroppedEventCount",
        "Waiting now",
        "checks",
        "posthaste doctor",
    ])
    .has_not(&["data-live"]);
}

/// Each topic says where its notices go, and whether anybody gets them.
#[tokio::test]
async fn told_page_names_who_gets_the_notices_of_each_topic() {
    let world = World::signed_in().await;
    let to = |topic: &str| json!({ "noticesTopic": topic });
    world.put(&["topics", "ops"], json!({})).await;
    world.put(&["topics", "quiet"], json!({})).await;
    world.put(&["topics", "orders"], to("Ops")).await;
    world.put(&["topics", "parcels"], to("quiet")).await;
    world.put(&["topics", "stock"], to("nowhere")).await;
    let pager = json!({ "endpoint": { "url": "https://pager.example.com/hooks?key=secret" } });
    world
        .put(&["topics", "ops", "subscriptions", "pager"], pager)
        .await;
    let page = world.get("/console/told").await;
    page.has(&[
        "/console/topics/ops/subscriptions/pager",
        "https://pager.example.com:443",
        "nobody: the topic has no active subscription",
        "nobody: there is no such topic",
        r#"<span class="bad">nobody</span>"#,
        "<code>serve --notices-topic</code> sets it",
    ])
    .has_not(&["key=secret"]);
    world.get("/console").await.has(&["/console/told"]);
}

/// The installation's topic is named with those who get what comes there, and so are those of rows.
#[tokio::test]
async fn installation_topic_and_notices_of_rows_are_named() {
    let pressure = json!({
        "level": "normal", "monitored": true, "tarpit": "PT0S", "refusedTiers": [], "resources": [],
        "noticesTopic": "all",
    });
    let world = World::new().changed(|_, world| {
        let answer = get(async move || Json(pressure.clone()));
        let routes = Router::new().route("/pressure", answer);
        ConsoleState::new(routes.fallback_service(world.api_routes.clone()))
    });
    world.sign_in_well().await;
    let pager = json!({ "endpoint": { "url": "https://pager.example.com/" } });
    world.put(&["topics", "all"], json!({})).await;
    world
        .put(&["topics", "all", "subscriptions", "pager"], pager)
        .await;
    world
        .get("/console/told")
        .await
        .has(&[
            r#"<a href="/console/topics/all">all</a>"#,
            "/console/topics/all/subscriptions/pager",
        ])
        .has_not(&["--notices-topic"]);
    let one = names(1);
    let crm = json!({ "endpoint": { "url": "https://crm.example.com/" } });
    let topic = json!({ "noticesTopic": "Ops", "subscriptions": { "s000": crm } });
    world.put(&["topics", "orders"], topic).await;
    world.note_failures(&one);
    for page in ["/console", "/console/failing"] {
        let shown = world.get(page).await;
        shown.has(&[r#"<a href="/console/told">notices go</a> to Ops"#]);
    }
}
