//! The bounds of a search: in time, and in the length of its page.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use posthaste_core::api::events::ListTime;
use posthaste_core::delivery_log::{LogRecord, LogResult};
use serde_json::json;
use tower::ServiceExt;

use super::super::World;
use super::super::logged::delivered;
use super::{OBJECT, search};
use crate::ConsoleState;

impl World {
    /// The same console, whose searches for events are answered like this.
    fn with_event_search<F>(
        self,
        answer: impl Fn(Request) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response> + Send,
    {
        let routes = self.api_routes.clone();
        let answer = move |request: Request| {
            let routes = routes.clone();
            let answer = answer.clone();
            async move {
                if request.uri().path().starts_with("/events/") {
                    answer(request).await
                } else {
                    routes.oneshot(request).await.into_response()
                }
            }
        };
        self.changed(|_, _| ConsoleState::new(Router::new().fallback(answer)))
    }
}

/// Nothing was found in the log, which was not searched to its end.
fn cut_short() -> Response {
    let found = json!({ "id": "x", "events": [], "isCutShort": true,
        "completeUntil": "2026-11-21T10:00:00Z" });
    axum::Json(found).into_response()
}

/// An operator who looks for a subscription does not wait for the whole log.
#[tokio::test]
async fn search_for_a_name_gives_the_log_two_seconds() {
    let world = World::with_billing().await;
    let (seen, times) = std::sync::mpsc::channel();
    let world = world.with_event_search(move |request| {
        let time = request.extensions().get::<ListTime>().copied();
        seen.send(time).unwrap();
        async { cut_short() }
    });
    let longer = "/console/search?q=none&amp;from=2h&amp;long=true";
    let page = world.get("/console/search?q=none&from=2h").await;
    page.has(&["Search the log for longer", longer]);
    let page = world.get("/console/search?q=none&from=2h&long=true").await;
    page.has_not(&["Search the log for longer"]);
    world
        .get("/console/search?q=no+name")
        .await
        .has_not(&["Search the log for longer"]);
    let two_seconds = Some(ListTime(Duration::from_secs(2)));
    let times: Vec<_> = times.try_iter().collect();
    // The text, trimmed and as it is, is the same.
    assert_eq!(times, [two_seconds, None, None]);
}

/// Each of the two searches waits for the other to have begun.
#[tokio::test]
async fn text_and_trimmed_text_are_searched_side_by_side() {
    let world = World::with_billing().await;
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let world = world.with_event_search(move |_| {
        let both = Arc::clone(&both);
        async move {
            both.wait().await;
            cut_short()
        }
    });
    let page = world.get("/console/search?q=+no+name+").await;
    page.has(&[
        "Nothing was found so far.",
        "There was time for a part of the log",
    ]);
}

/// Ids are as long as the log has them, and each event has dead letters.
#[tokio::test]
async fn page_of_events_with_long_ids_stays_short() {
    let world = World::with_billing().await;
    let id = "ü".repeat(1_024);
    let events = 30;
    for at in 0..events {
        let record = LogRecord {
            topic: format!("topic-{at:02}"),
            result: LogResult::DeadLettered,
            reason: Some("EndpointGone".to_owned()),
            dead_letter_object: Some(format!("TOPIC-{at:02}/BILLING/2023/11/14/22/a.json")),
            ..delivered(&id, world.ago(60 + at))
        };
        world.log_records(&[record]);
    }
    let mut shown = 0;
    let mut address = search(&id);
    for _ in 0..events {
        let page = world.get(&address).await;
        assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
        shown += page.html.matches("<tr role=\"row\"><td").count();
        let Some((_, next)) = page.html.split_once("&amp;skip=") else {
            break;
        };
        let skip = next.split('"').next().unwrap();
        address = format!("{}&skip={skip}", search(&id));
    }
    assert_eq!(shown, 30);
}

/// The next one leads to those behind it.
#[tokio::test]
async fn page_of_letters_with_long_ids_stays_short() {
    let world = World::with_billing().await;
    let letters: Vec<_> = (0..60)
        .map(|at| json!({ "id": format!("{at}{}", "<".repeat(900)), "deadletterreason": "<".repeat(900) }))
        .collect();
    world.write_letters("a", &json!(letters));
    let page = world.get(&search(OBJECT)).await;
    page.has(&["There are more of this key.", "Show the next one"]);
    assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
}
