//! The overview.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::pressure::{PressureLevel, PressureState, Resource};
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::Clock;
use serde_json::json;
use url::Url;

use super::World;
use super::logged::{delivered, refused};
use crate::history::{
    HistoryStep, InstallationHistory, PressureGauge, ResourceReading, STEP, StepCounts, StepGauges,
    WaitingGauge,
};

/// The same step, for the last ten minutes.
#[derive(Debug)]
pub(super) struct SteadyHistory {
    pub(super) until: Timestamp,
    pub(super) step: HistoryStep,
}

impl InstallationHistory for SteadyHistory {
    fn for_each_step(&self, time: Range<Timestamp>, show: &mut dyn FnMut(Timestamp, &HistoryStep)) {
        for steps_before in (1..=60).rev() {
            let at = Timestamp::from_millis(
                self.until.as_millis() - STEP.as_secs() * 1_000 * steps_before,
            );
            if time.contains(&at) {
                show(at, &self.step);
            }
        }
    }
}

pub(super) fn step() -> HistoryStep {
    let mut counts = StepCounts {
        delivered: 120,
        failed: 30,
        dead_lettered: 2,
        ..StepCounts::default()
    };
    (0..99).for_each(|_| counts.answers.record_duration(12.0));
    (0..2).for_each(|_| counts.answers.record_duration(900.0));
    let reading = ResourceReading {
        value: 3_900,
        level: PressureLevel::Normal,
    };
    let gauges = StepGauges {
        waiting: Some(WaitingGauge {
            due: 3_900,
            later: 17,
            held: 418,
            is_partial: false,
        }),
        down: Some(1),
        pressure: Some(
            PressureGauge::new(PressureLevel::Medium, 15_000)
                .with_reading(Resource::SubmissionQueue, reading),
        ),
    };
    HistoryStep {
        counts: Some(counts),
        gauges: Some(gauges),
    }
}

/// A world with a history, in which there is a topic.
async fn world() -> World {
    let world = World::new().changed(|console, world| {
        console.with_history(Arc::new(SteadyHistory {
            until: world.clock.now(),
            step: step(),
        }))
    });
    world.sign_in_well().await;
    world.put(&["topics", "orders"], json!({})).await;
    world
}

#[tokio::test]
async fn the_last_hour_is_shown_in_figures_and_charts() {
    let world = world().await;
    let page = world.get("/console").await;
    page.has(&[
        ">7,200</p>",
        "in the last hour; 12/s in the last minute",
        "80 %",
        "1,800 of 9,000 sent events failed in the last hour",
        "4,335",
    ]);
    page.has(&[
        "3,900 due or under way, 17 for a retry, 418 waiting until it recovers",
        ">120</span>",
        "the events of every subscription arrive",
        "data-live",
    ]);
    page.has(&[
        r#"href="/console/dead-letters?from=1h""#,
        r#"href="/console/events?result=retry&amp;from=1h""#,
        r#"href="/console?hours=1" aria-current="true""#,
    ]);
    page.has(&["Events a second, the last hour. delivered: last 12/s, least 12/s, most 12/s"]);
    page.has(&[
        "Pressure, the last hour. last medium",
        "last 15 s, least 15 s, most 15 s",
    ]);
    page.has(&["Failing now", "Nothing fails"]);
    page.has(&["nothing was dropped or skipped; 120 were given up and kept as dead letters."]);
    page.has_not(&["First steps", "CloudWatch", "style="]);
    assert!(page.html.len() < 30_000, "{}", page.html.len());
}

/// Every figure and chart of a day names the day, and leads to its events.
#[tokio::test]
async fn day_is_shown_in_figures_and_charts() {
    let world = world().await;
    let page = world.get("/console?hours=24").await;
    page.has(&[
        "in the last 24 hours",
        "Over the last 24 hours",
        "Events a second, the last 24 hours.",
        r#"href="/console/dead-letters?from=24h""#,
        r#"href="/console?hours=24" aria-current="true""#,
    ]);
    page.has_not(&["in the last hour"]);
    assert_eq!(world.get("/console?hours=2").await.status, 400);
}

/// Links that are down and pressure are named, each with a link to its page.
#[tokio::test]
async fn present_failures_are_named_with_links_to_their_pages() {
    let world = world().await;
    let mut pressure = PressureState::normal(world.clock.now());
    let resource = json!({
        "resource": "drain-time", "level": "medium", "since": 0, "reading": 70, "readAt": 0,
        "thresholds": { "normal": 30, "medium": 60, "high": 300 }, "acts": true, "polls": 40,
        "refusedFrom": "bulk", "tarpits": true,
    });
    pressure.tarpit_ms = 15_000;
    pressure.resources = vec![serde_json::from_value(resource).unwrap()];
    world.state.write(PRESSURE_KEY, pressure.render());
    world.fail_link("https://billing.example.com:443").await;
    let page = world.get("/console").await;
    page.has(&[
        "badge warn",
        "refused: bulk",
        "producers are slowed: they wait 15 s",
    ]);
    page.has(&[
        "Failing now</h2>",
        "https://billing.example.com:443",
        "all on this host",
        "Busy</bdi> (503)",
        r#"href="/console/failing""#,
    ]);
    page.has_not(&["Nothing fails", "rows</a>"]);
    for number in 0..20 {
        world
            .fail_link(&format!("https://crm-{number}.example.com:443"))
            .await;
    }
    let page = world.get("/console").await;
    page.has(&[
        r#"<a href="/console/failing">All 21 rows</a>"#,
        r#"<span class="bad">21</span>"#,
    ]);
    assert!(page.html.len() < 100_000, "{}", page.html.len());
}

#[tokio::test]
async fn without_a_history_the_page_says_what_it_cannot_know() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let page = world.get("/console").await;
    page.has(&[
        "Waiting now",
        "Failing now",
        "Pressure now",
        "Replays",
        "The metrics in CloudWatch have them",
    ]);
    page.has_not(&["<svg", "the last hour", "?hours="]);
    let url = Url::parse(
        "https://eu-central-1.console.aws.amazon.com/cloudwatch/home#dashboards/dashboard/x",
    );
    let url = url.unwrap();
    let world = World::new().changed(|console, _| console.with_dashboard(Some(url)));
    world.sign_in_well().await;
    world
        .get("/console")
        .await
        .has(&[r#"href="https://eu-central-1.console.aws.amazon.com/cloudwatch/home#dash"#]);
}

#[tokio::test]
async fn replays_that_are_under_way_are_counted() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/" } });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    let replay = crate::api::RequestTarget::new(&[
        "topics",
        "orders",
        "subscriptions",
        "billing",
        "dead-letters",
        "replay",
    ]);
    world.api.post::<serde_json::Value>(replay).await.unwrap();
    world
        .get("/console")
        .await
        .has(&[r#"Replays</a></h2><p class="figure">1</p>"#]);
}

#[tokio::test]
async fn before_the_first_topic_the_page_leads_to_it() {
    let world = World::signed_in().await;
    let page = world.get("/console").await;
    page.has(&[
        "First steps",
        r#"href="/console/topics/new""#,
        "/topics/orders/events",
        "aeg-sas-key",
    ]);
    page.has(&["id=\"start\" data-live"])
        .has_not(&["done</span>"]);
}

#[tokio::test]
async fn each_step_is_ticked_off_until_there_is_a_delivery() {
    let world = World::signed_in().await;
    let steps = async |done, texts: &[&str]| {
        let page = world.get("/console").await;
        page.has(texts);
        assert_eq!(
            page.html.matches(">done</span>").count(),
            done,
            "{}",
            page.html
        );
    };
    world.put(&["topics", "Orders"], json!({})).await;
    steps(
        1,
        &[
            r#"href="/console/topics/Orders/subscriptions/new""#,
            "/topics/Orders/events",
        ],
    )
    .await;
    let bank = json!({ "endpoint": { "url": "https://bank.example.com/" } });
    world
        .put(&["topics", "Orders", "subscriptions", "bank"], bank)
        .await;
    steps(2, &["Publish an event.", "/console/topics/Orders#publish"]).await;
    world.log_records(&[refused("order-1", world.ago(60))]);
    steps(3, &["No delivery has succeeded yet."]).await;
    world.log_records(&[delivered("order-2", world.ago(50))]);
    world
        .get("/console")
        .await
        .has(&["id=\"start\""])
        .has_not(&["First steps"]);
}

/// Installations that are a week old, or have many topics, show no first steps.
#[tokio::test]
async fn old_or_large_installation_has_no_first_steps() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    world.clock.advance(Duration::from_hours(7 * 24));
    world.sign_in_well().await;
    world.get("/console").await.has_not(&["First steps"]);
    for name in ["a", "b", "c"] {
        world.put(&["topics", name], json!({})).await;
    }
    world.get("/console").await.has_not(&["First steps"]);
}

#[tokio::test]
async fn a_store_that_fails_leaves_what_is_known_from_memory() {
    let world = world().await;
    world.state.write(PRESSURE_KEY, "not json");
    world
        .get("/console")
        .await
        .has(&["Pressure, the last hour", ">7,200</p>"]);
}

#[tokio::test]
async fn a_topic_after_the_rest_of_a_deleted_one_is_seen() {
    let world = World::signed_in().await;
    world.put(&["topics", "aaa"], json!({})).await;
    world.leave_tombstone("aaa");
    world.put(&["topics", "orders"], json!({})).await;
    world
        .get("/console")
        .await
        .has(&["/console/topics/orders/subscriptions/new"]);
}

/// Commands of the first steps take a server URL with or without a slash at its end.
#[tokio::test]
async fn first_steps_command_takes_a_url_with_or_without_a_slash() {
    let page = World::signed_in().await.get("/console").await;
    page.has(&[
        "${POSTHASTE_URL%/}/topics/orders/events",
        "PublishUrlAuthType=AWS_IAM",
        "--aws-sigv4",
    ]);
}

/// Buttons of a row lead back to the front page, which says what was done.
#[tokio::test]
async fn actions_of_a_row_lead_back_with_their_notice() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/" } });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    world
        .fail_link("https://billing.example.com:443 orders.billing")
        .await;
    world.state.write("held/orders.billing/00000001-x", "{}");
    let page = world.get("/console").await;
    let path = "/console/topics/orders/subscriptions/billing";
    page.has(&[
        r#"<span class="bad">1</span>"#,
        "orders / billing",
        r#"aria-label="Retry now orders / billing""#,
        "/console/dead-letters/send-since?topic=orders&amp;subscription=billing&amp;from=2023-11-14T22%3A13%3A20",
    ]);
    let back = page.field("back");
    assert_eq!(back, "/console?hours=1");
    let fields = [("back", back.as_str())];
    let forced = world
        .post("/console", &format!("{path}/force"), &fields)
        .await;
    assert_eq!(
        forced.page_after(),
        "/console?hours=1&done=hold-ended,forced"
    );
    let page = world.get(forced.location()).await;
    page.has(&["It is tried again now", "little by little", ">recovering<"]);
    let paused = world
        .post("/console", &format!("{path}/pause"), &fields)
        .await;
    assert_eq!(paused.page_after(), "/console?hours=1&done=pause");
    let page = world.get(paused.location()).await;
    page.has(&[
        "The subscription is paused",
        ">paused<",
        ">1 stopped while events wait or are missed<",
    ]);
    let resumed = world
        .post("/console", &format!("{path}/resume"), &fields)
        .await;
    assert_eq!(resumed.page_after(), "/console?hours=1&done=resume");
    let tested = world
        .post("/console", &format!("{path}/test"), &fields)
        .await;
    tested.has(&[r#"href="/console?hours=1">Go back</a>"#]);
}

/// A form that came from elsewhere leads to the page of the subscription.
#[tokio::test]
async fn action_leads_back_to_no_other_site() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/" } });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    let path = "/console/topics/orders/subscriptions/billing";
    let page = world.get(path).await;
    for back in [
        "https://evil.example/",
        "//evil.example",
        "/consolex",
        "/console\\x",
    ] {
        let fields = [("back", back)];
        let done = world
            .send_form(&page, &format!("{path}/pause"), &fields)
            .await;
        assert_eq!(done.page_after(), format!("{path}?done=pause"), "{back}");
        world
            .send_form(&page, &format!("{path}/resume"), &fields)
            .await;
    }
}

/// Links that recover are counted as recovering: neither down nor healthy.
#[tokio::test]
async fn recovering_link_is_not_called_well() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/" } });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    world.fail_link("https://billing.example.com:443").await;
    let force =
        crate::api::RequestTarget::new(&["topics", "orders", "subscriptions", "billing", "force"]);
    world.api.post::<serde_json::Value>(force).await.unwrap();
    let page = world.get("/console").await;
    page.has(&[">1 recovering<", "little by little"])
        .has_not(&["the events of every subscription arrive", "Nothing fails"]);
}

/// Live pages say how often they refresh, and the zone of their times.
#[tokio::test]
async fn live_pages_state_refresh_interval_and_time_zone() {
    let world = World::signed_in().await;
    let page = world.get("/console/failing").await;
    page.has(&[
        r#"data-refresh-seconds="5""#,
        r#"<p class="hint" id="zone">Times are in UTC.</p>"#,
    ]);
    let world = World::new().changed(|console, _| console.with_refresh(Duration::from_secs(30)));
    world.sign_in_well().await;
    world
        .get("/console/failing")
        .await
        .has(&[r#"data-refresh-seconds="30""#]);
}
