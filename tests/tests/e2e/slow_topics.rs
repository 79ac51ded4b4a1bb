//! Endpoints that answer well but slowly: they slow the producers of their own topic, and of no
//! other.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use posthaste_tests::api::{Answer as Heard, CLOUD_EVENT, Topic};
use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::{rest, wait_until};
use posthaste_tests::server::Server;
use serde_json::{Map, Value, json};

/// The time of a slow endpoint for each answer: with ten requests at once and some more, a few in a
/// second.
const SLOW: Duration = Duration::from_secs(5);

/// Events that each slow topic gets, one in a request, so that each is a message: some minutes'
/// work. Those of one request share messages, and messages count.
const EVENTS: usize = 1000;
const PUBLISHERS: usize = 8;

/// Events of the healthy topic that arrive while others are slowed, at least, and at most: a test
/// that fails ends too.
const PROBES: usize = 50;
const PROBES_MAX: usize = 3000;
const BETWEEN_PROBES: Duration = Duration::from_millis(50);

/// One probe in so many goes to the topic with many subscriptions too.
const MANY_ONE_IN: usize = 10;

/// A poll a second, short tarpits, and refusals after five polls.
const SETTINGS: &str = "\
ResourceMonitoringInterval: 00:00:01
SMTPStartThrottlingDelayInterval: 00:00:01
SMTPStepThrottlingDelayInterval: 00:00:01
SMTPMaxThrottlingDelayInterval: 00:00:02
DrainTimeHistoryDepth: 5
";

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn slow(_: &Received) -> u16 {
    for _ in 0..SLOW.as_millis() / 50 {
        if IS_OVER.load(Ordering::Relaxed) {
            break;
        }
        rest(Duration::from_millis(50));
    }
    200
}

fn settings_file(folder: &Path) -> PathBuf {
    let file = folder.join("pressure.yaml");
    fs::write(&file, SETTINGS).expect("the folder is writable");
    file
}

/// Publishes all events to a slow topic, some at once.
fn flood(topic: &Topic) {
    thread::scope(|scope| {
        for publisher in 0..PUBLISHERS {
            scope.spawn(move || {
                for index in 0..EVENTS / PUBLISHERS {
                    publish_one(topic, &format!("{publisher}-{index}"));
                }
            });
        }
    });
}

fn publish_one(topic: &Topic, id: &str) -> Heard {
    let event = cloud_event(id).to_string();
    let answer = topic.send(CLOUD_EVENT, event.as_bytes());
    answer.expect("the server answers")
}

/// Publishes to a slow topic until it is refused, and answers the refusal.
fn refusal(topic: &Topic) -> Value {
    let count = AtomicUsize::new(0);
    wait_until("a refusal of the slow topic's producers", || {
        let id = format!("more-{}", count.fetch_add(1, Ordering::Relaxed));
        let heard = publish_one(topic, &id);
        (heard.status == 503).then(|| heard.json())
    })
}

#[test]
fn slow_endpoints_slow_their_own_topics_alone() {
    let home = Home::new();
    let beside = tempfile::tempdir().unwrap();
    let [slow_one, slow_two, healthy] = [(); 3].map(|()| Endpoint::start());
    for endpoint in [&slow_one, &slow_two] {
        endpoint.script("/slow", [Answer::Judge(slow)]);
    }
    let file = settings_file(beside.path());
    let file = file.to_str().expect("a path is text");
    let server = Server::start(home.path(), &["--pressure-settings", file]);
    let api = server.api();
    let one = api.create_topic_with("one", "billing", &subscription(&slow_one.url("/slow")));
    let two = api.create_topic_with("two", "billing", &subscription(&slow_two.url("/slow")));
    let quick = api.create_topic_with("quick", "own", &subscription(&healthy.url("/")));
    // A hundred customers, one of which is slow.
    let mut many: Map<String, Value> = (0..100)
        .map(|index| (format!("s{index}"), subscription(&healthy.url("/many"))))
        .collect();
    many.insert("s0".to_owned(), subscription(&slow_two.url("/slow")));
    let many = api.create_topic("many", &json!({ "subscriptions": many }));

    thread::scope(|scope| {
        let probing = scope.spawn(|| {
            let mut heard = Vec::new();
            while !IS_OVER.load(Ordering::Relaxed) && heard.len() < PROBES_MAX {
                let id = format!("probe-{}", heard.len());
                if heard.len() % MANY_ONE_IN == 0 {
                    let of_many = publish_one(&many, &id);
                    assert_eq!(
                        (of_many.status, of_many.header("posthaste-pressure")),
                        (200, None)
                    );
                }
                heard.push(publish_one(&quick, &id));
                rest(BETWEEN_PROBES);
            }
            heard
        });
        flood(&one);
        flood(&two);
        for problem in [refusal(&one), refusal(&two)] {
            assert_eq!(problem["resource"], "drain-time");
            let detail = problem["detail"].as_str().expect("a detail");
            assert!(detail.contains("the subscription billing"), "{detail}");
        }
        let shown = api.show("/pressure");
        let topics: Vec<_> = shown["topics"].as_array().into_iter().flatten().collect();
        let names: Vec<_> = topics.iter().map(|it| &it["topic"]).collect();
        assert_eq!(names, ["one", "two"], "{shown}");
        assert_eq!(shown["level"], "normal", "{shown}");
        wait_until("probes", || {
            (healthy.received("/").len() >= PROBES).then_some(())
        });
        IS_OVER.store(true, Ordering::Relaxed);
        let heard = probing.join().expect("every probe is answered");
        for heard in &heard {
            assert_eq!(heard.status, 200);
            assert_eq!(heard.header("posthaste-pressure"), None);
        }
        healthy.wait_for("/", heard.len());
    });
    wait_until("the slow topics to be as before", || {
        let shown = api.show("/pressure");
        shown["topics"].is_null().then_some(())
    });
    // publish looks at the pressure every two seconds.
    wait_until("an answer at once", || {
        let heard = publish_one(&one, "last");
        (heard.status == 200 && heard.header("posthaste-pressure").is_none()).then_some(())
    });
    server.stop();
}
