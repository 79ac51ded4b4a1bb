//! The checks that an installation makes of itself.

use std::collections::BTreeSet;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posthaste_core::api::doctor::{CheckView, ConnectedEndpoint, DoctorView, EndpointFault};
use posthaste_core::model::{Link, SendFailure, Timestamp};
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ErrorKind, InstallationExaminer, PendingCheck, PendingLook};
use serde_json::json;

use super::memory::FixedClock;
use super::{Api, billing};

/// An examiner with two checks, one of which never ends where that is asked. Links whose host
/// begins with `down` refuse, and those with `hang` never answer.
#[derive(Debug, Default)]
struct Scripted {
    hangs: bool,
    looked_at: Mutex<Vec<String>>,
    clock_at_least: Option<Timestamp>,
    clock: FixedClock,
}

impl InstallationExaminer for Scripted {
    fn checks(&self) -> Vec<PendingCheck> {
        let disk = CheckView::passed("disk", "/data", "61 % used");
        let files: PendingLook<CheckView> = if self.hangs {
            Box::pin(pending())
        } else {
            Box::pin(ready(CheckView::passed("open-files", "process", "57 open")))
        };
        vec![
            PendingCheck {
                name: "disk",
                of: "/data".to_owned(),
                look: Box::pin(ready(disk)),
            },
            PendingCheck {
                name: "open-files",
                of: "process".to_owned(),
                look: files,
            },
        ]
    }

    fn clock_at_least(&self) -> Option<Timestamp> {
        self.clock_at_least
    }

    fn check_link(
        &self,
        link: Link,
        _: Duration,
    ) -> PendingLook<Result<ConnectedEndpoint, EndpointFault>> {
        self.looked_at.lock().unwrap().push(link.to_string());
        if link.host.starts_with("hang") {
            // Whatever waits for the end of the time for all endpoints has it from now on.
            self.clock.shorten_nights_to(Duration::from_secs(20));
            return Box::pin(pending());
        }
        let look = if link.host.starts_with("down") {
            Err(EndpointFault {
                failure: SendFailure::Refused,
                text: None,
                refusal: None,
            })
        } else {
            let address = [192, 0, 2, 1].into();
            Ok(ConnectedEndpoint {
                addresses: vec![address],
                connected: address,
                certificate: None,
            })
        };
        Box::pin(ready(look))
    }
}

fn examined(hangs: bool) -> (Api, Arc<Scripted>) {
    let api = Api::new();
    let examiner = Arc::new(Scripted {
        hangs,
        clock: api.clock.clone(),
        ..Scripted::default()
    });
    let api = api.then_examined_by(Arc::clone(&examiner) as _);
    (api, examiner)
}

async fn checks(api: &Api, path: &str) -> Vec<CheckView> {
    let answer = api.get(path).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let view: DoctorView = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(view.version, env!("CARGO_PKG_VERSION"));
    view.checks
}

/// Result, name and object of each check.
fn brief(checks: &[CheckView]) -> Vec<(&str, &str, &str)> {
    checks
        .iter()
        .map(|it| (it.result.as_str(), it.check.as_str(), it.of.as_str()))
        .collect()
}

fn find<'a>(checks: &'a [CheckView], name: &str, of: &str) -> &'a CheckView {
    let found = checks
        .iter()
        .find(|it| it.check == name && it.of.starts_with(of));
    found.unwrap_or_else(|| panic!("no {name} of {of}: {checks:?}"))
}

async fn subscribe(api: &Api, topic: &str, name: &str, url: &str) {
    let topic = format!("/topics/{topic}");
    assert!(api.put(&topic, json!({})).await.status < 300);
    let path = format!("{topic}/subscriptions/{name}");
    let settings = json!({ "endpoint": { "url": url } });
    assert_eq!(api.put(&path, settings).await.status, 201);
}

#[tokio::test]
async fn installation_that_is_well_has_ok_for_each_check() {
    let (api, _) = examined(false);
    let state = PressureState::normal(api.clock.now());
    api.state.write(PRESSURE_KEY, state.render());
    let before = api.state.keys("");
    let found = checks(&api, "/doctor").await;
    let expected = [
        ("ok", "store", "the state"),
        ("ok", "store", "dead letters"),
        ("ok", "store", "the delivery log"),
        ("ok", "pressure", "what the monitor measures"),
        ("ok", "server-clock", "the clock of what answers"),
        ("ok", "waiting", "events for all subscriptions"),
        ("ok", "disk", "/data"),
        ("ok", "open-files", "process"),
    ];
    assert_eq!(brief(&found), expected);
    assert_eq!(api.state.keys(""), before);
    assert_eq!(api.dead_letters.keys(""), Vec::<String>::new());
}

#[tokio::test]
async fn checks_need_the_admin_key() {
    let api = Api::opened_by("another-admin-key-of-these-tests");
    api.get("/doctor").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn clock_that_was_set_back_fails_though_the_monitor_goes_by_it() {
    let api = Api::new();
    let now = api.clock.now();
    let examiner = Scripted {
        clock_at_least: Some(now + Duration::from_hours(1)),
        ..Scripted::default()
    };
    let api = api.then_examined_by(Arc::new(examiner));
    let state = PressureState::normal(now);
    api.state.write(PRESSURE_KEY, state.render());
    let found = checks(&api, "/doctor").await;
    let clock = find(&found, "server-clock", "the clock of what answers");
    assert_eq!(clock.result.as_str(), "failed");
    assert!(clock.found.contains(" 3600 s behind"), "{clock:?}");
}

#[tokio::test]
async fn store_that_denies_writes_is_a_failed_check_and_no_500() {
    let (api, _) = examined(false);
    api.state.fail_puts(ErrorKind::Denied);
    api.dead_letters.fail(ErrorKind::Other);
    let found = checks(&api, "/doctor").await;
    let state = find(&found, "store", "the state");
    assert_eq!(state.result.as_str(), "failed");
    assert!(state.found.contains("Denied"), "{state:?}");
    assert!(
        state
            .advice
            .as_deref()
            .unwrap()
            .starts_with("give the right back")
    );
    let dead_letters = find(&found, "store", "dead letters");
    assert_eq!(dead_letters.result.as_str(), "failed");
    assert_eq!(
        find(&found, "store", "the delivery log").result.as_str(),
        "ok"
    );
}

#[tokio::test]
async fn check_that_hangs_has_failed_and_holds_up_no_other() {
    let (api, _) = examined(true);
    api.clock.shorten_nights_to(Duration::from_secs(10));
    let found = checks(&api, "/doctor").await;
    let files = find(&found, "open-files", "process");
    assert_eq!(
        (files.result.as_str(), &*files.found),
        ("failed", "no answer within 10 s")
    );
    assert_eq!(find(&found, "disk", "/data").result.as_str(), "ok");
}

#[tokio::test]
async fn state_that_hangs_is_a_failed_check() {
    let (api, _) = examined(false);
    api.clock.shorten_nights_to(Duration::from_secs(10));
    api.state.hang();
    let found = checks(&api, "/doctor").await;
    assert_eq!(
        find(&found, "store", "the state").found,
        "no answer within 10 s"
    );
    assert_eq!(find(&found, "pressure", "what").result.as_str(), "unknown");
}

#[tokio::test]
async fn pressure_that_was_never_measured_is_unknown() {
    let (api, _) = examined(false);
    let found = checks(&api, "/doctor").await;
    assert_eq!(find(&found, "pressure", "what").result.as_str(), "unknown");
}

#[tokio::test]
async fn endpoints_are_looked_at_on_request_once_a_host() {
    let (api, examiner) = examined(false);
    subscribe(&api, "orders", "a", "https://up.example/hooks").await;
    subscribe(&api, "orders", "b", "https://up.example/other").await;
    subscribe(&api, "stock", "c", "https://down.example/hooks").await;
    checks(&api, "/doctor").await;
    assert_eq!(*examiner.looked_at.lock().unwrap(), Vec::<String>::new());
    let found = checks(&api, "/doctor?endpoints=true").await;
    let endpoints: Vec<_> = found
        .iter()
        .filter(|it| it.check == "endpoint")
        .cloned()
        .collect();
    let expected = [
        ("failed", "endpoint", "https://down.example:443 (stock/c)"),
        (
            "ok",
            "endpoint",
            "https://up.example:443 (orders/a, orders/b)",
        ),
    ];
    assert_eq!(brief(&endpoints), expected);
    assert_eq!(endpoints[0].found, "connection refused");
    assert_eq!(
        *examiner.looked_at.lock().unwrap(),
        ["https://down.example:443", "https://up.example:443"]
    );
}

#[tokio::test]
async fn fallback_endpoint_is_looked_at_too() {
    let (api, examiner) = examined(false);
    assert_eq!(api.put("/topics/orders", json!({})).await.status, 201);
    let mut settings = billing();
    settings["endpoint"]["fallbackUrl"] = json!("https://second.example/hooks");
    let path = "/topics/orders/subscriptions/billing";
    assert_eq!(api.put(path, settings).await.status, 201);
    checks(&api, "/doctor?endpoints=true").await;
    assert_eq!(
        *examiner.looked_at.lock().unwrap(),
        [
            "https://billing.example.com:443",
            "https://second.example:443"
        ]
    );
}

#[tokio::test]
async fn endpoints_that_are_not_reached_in_time_are_counted() {
    let (api, _) = examined(false);
    for number in 1..=9 {
        let url = format!("https://hang{number}.example/");
        subscribe(&api, "orders", &format!("s{number}"), &url).await;
    }
    subscribe(&api, "orders", "first", "https://a.example/").await;
    let found = checks(&api, "/doctor?endpoints=true").await;
    assert_eq!(
        find(&found, "endpoint", "https://a.example")
            .result
            .as_str(),
        "ok"
    );
    let rest = find(&found, "endpoint", "the others");
    assert_eq!(
        (rest.result.as_str(), &*rest.found),
        (
            "unknown",
            "9 or more endpoints were not looked at within 20 s"
        )
    );
}

#[tokio::test]
async fn topic_that_cannot_be_read_does_not_hide_the_others() {
    let (api, _) = examined(false);
    subscribe(&api, "orders", "a", "https://up.example/hooks").await;
    api.state.write("topics/stock.json", b"{".to_vec());
    let found = checks(&api, "/doctor?endpoints=true").await;
    let names: BTreeSet<_> = brief(&found)
        .into_iter()
        .filter(|it| it.1 == "endpoint")
        .collect();
    let expected = [
        ("ok", "endpoint", "https://up.example:443 (orders/a)"),
        ("unknown", "endpoint", "topic stock"),
    ];
    assert_eq!(names, BTreeSet::from(expected));
}

#[tokio::test]
async fn without_subscriptions_that_is_said() {
    let (api, _) = examined(false);
    let found = checks(&api, "/doctor?endpoints=true").await;
    assert_eq!(
        find(&found, "endpoint", "all").found,
        "there are no subscriptions"
    );
    let answer = api.get("/doctor?endpoint=true").await;
    answer.problem(400, "about:blank");
}
