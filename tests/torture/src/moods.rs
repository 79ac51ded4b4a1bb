//! Receivers, each of which changes its mood.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::{lay_over, subscription_with};
use posthaste_tests::patience::rest;
use posthaste_tests::seed::Seed;
use serde_json::{Value, json};

use crate::crowd::is_whole;
use crate::ledger::{Arrival, Ledger, hash, is_refused, number};
use crate::swallower::Swallower;

/// The time that subscriptions give an answer: longer than a busy machine takes for one.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// A slow answer takes so long, and a late one so much longer than the subscription waits.
const SLOW: Duration = Duration::from_millis(1500);
const LATE_BY: Duration = Duration::from_secs(1);

/// The host whose name is looked up.
pub(crate) const HOST: &str = "hooks.example.com";

/// Names of the subscriptions, and their settings beside the common ones.
const SUBSCRIPTIONS: [(&str, &str); 5] = [
    ("plain", "{}"),
    ("named", "{}"),
    ("batched", r#"{ "batching": { "maxEventsPerBatch": 20 } }"#),
    (
        "paced",
        r#"{ "endpoint": { "maxRequestsPerSecond": 200 } }"#,
    ),
    (
        "bounded",
        r#"{ "endpoint": { "maxConcurrentRequests": 4 } }"#,
    ),
];

/// The behaviour of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    Slow,
    Late,
    Failing,
    Busy,
    Silent,
    Closing,
    Babbling,
}

/// The moods that are drawn. Half of the time a receiver is well.
const MOODS: [Mood; 14] = [
    Mood::Well,
    Mood::Well,
    Mood::Well,
    Mood::Well,
    Mood::Well,
    Mood::Well,
    Mood::Well,
    Mood::Slow,
    Mood::Late,
    Mood::Failing,
    Mood::Busy,
    Mood::Silent,
    Mood::Closing,
    Mood::Babbling,
];

/// The receivers of all subscriptions.
pub(crate) struct Receivers {
    endpoint: Endpoint,
    _swallower: Swallower,
    moods: Arc<[AtomicU8; SUBSCRIPTIONS.len()]>,
}

/// Names of the subscriptions.
pub(crate) fn subscriptions() -> impl Iterator<Item = &'static str> {
    SUBSCRIPTIONS.into_iter().map(|(name, _)| name)
}

impl Receivers {
    pub(crate) fn start(ledger: &Arc<Ledger>) -> Self {
        let moods = Arc::new([const { AtomicU8::new(0) }; SUBSCRIPTIONS.len()]);
        let ledger = Arc::clone(ledger);
        let shared = Arc::clone(&moods);
        let endpoint = Endpoint::choosing(move |request| {
            let name = request.path.trim_start_matches('/');
            let at = subscriptions().position(|it| it == name);
            let at = at.expect("a request of a subscription");
            let mood = MOODS[usize::from(shared[at].load(Ordering::Relaxed))];
            receive(&ledger, SUBSCRIPTIONS[at].0, mood, request)
        });
        let url = endpoint.url("");
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
        Self {
            _swallower: Swallower::on(port.expect("a URL with a port")),
            endpoint,
            moods,
        }
    }

    /// The settings of the topic with all subscriptions.
    pub(crate) fn topic(&self) -> Value {
        let settings = |(name, more): (&'static str, &str)| {
            let url = self.endpoint.url(&format!("/{name}"));
            let url = if name == "named" {
                url.replace("127.0.0.1", HOST)
            } else {
                url
            };
            let common = json!({
                "endpoint": { "timeout": format!("PT{}S", TIMEOUT.as_secs()) },
                "retryPolicy": { "schedule": ["PT1S", "PT2S", "PT5S"] },
            });
            let mut settings = subscription_with(&url, &common);
            let more: Value = serde_json::from_str(more).expect("settings are JSON");
            lay_over(&mut settings, &more);
            (name.to_owned(), settings)
        };
        let all: serde_json::Map<_, _> = SUBSCRIPTIONS.into_iter().map(settings).collect();
        json!({ "subscriptions": all })
    }

    /// Gives one receiver another mood.
    pub(crate) fn change(&self, seed: &mut Seed) {
        let at = seed.below(SUBSCRIPTIONS.len());
        let mood = seed.below(MOODS.len());
        let mood = u8::try_from(mood).expect("there are few moods");
        self.moods[at].store(mood, Ordering::Relaxed);
    }

    /// All are well, for good.
    pub(crate) fn recover(&self) {
        for mood in &*self.moods {
            mood.store(0, Ordering::Relaxed);
        }
    }
}

fn receive(ledger: &Ledger, subscription: &'static str, mood: Mood, request: &Received) -> Answer {
    let received = request.events();
    let event_number = |event: &Value| number(event["id"].as_str().expect("an id"));
    let events: Vec<_> = received.iter().map(event_number).collect();
    let is_well = matches!(mood, Mood::Well | Mood::Slow | Mood::Late);
    let (status, answer) = match mood {
        _ if is_well && events.iter().any(|event| is_refused(*event)) => (400, Answer::Status(400)),
        Mood::Well | Mood::Slow | Mood::Late => (200, Answer::Status(200)),
        Mood::Failing => (503, Answer::Status(503)),
        Mood::Busy => (429, Answer::With(429, "retry-after", "1".to_owned())),
        Mood::Silent => (0, Answer::Never),
        Mood::Closing => (0, Answer::Close),
        Mood::Babbling => (0, Answer::Garbage),
    };
    let id = request.header("webhook-id").filter(|_| events.len() == 1);
    let attempt = request.header("posthaste-attempt");
    let attempt = attempt.and_then(|text| text.parse().ok());
    let arrivals = events.iter().zip(&received).map(|(event, body)| Arrival {
        event: *event,
        at: request.at,
        status,
        attempt: attempt.unwrap_or_default(),
        was_late: mood == Mood::Late,
        is_whole: is_whole(*event, body),
        id: id.map(hash),
    });
    ledger.arrived(subscription, arrivals.collect());
    match mood {
        Mood::Slow => rest(SLOW),
        Mood::Late => rest(TIMEOUT + LATE_BY),
        _ => {}
    }
    answer
}
