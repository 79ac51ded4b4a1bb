//! Changes of several steps that are killed: a topic of many subscriptions is deleted, an endpoint
//! is to be asked, a paused subscription resumed, a replay asked for three times, many dead letters
//! resolved, all at once. The next process ends each, soon after its start and without being asked
//! again, or the change never began.

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::Duration;

use posthaste_tests::api::Api;
use posthaste_tests::endpoint::{Answer, Endpoint, Received, Reply};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::{now, rest, wait_until};
use posthaste_tests::seed::Seed;
use posthaste_tests::seen::Seen;
use posthaste_tests::server::Server;
use serde_json::{Map, Value, json};

const CUTS: usize = 6;

/// Subscriptions of the topic that is deleted.
const WIDE: usize = 150;

/// Events that a paused subscription holds.
const HELD: usize = 5;

/// Dead letters that are replayed.
const REPLAYED: usize = 30;

/// Dead letters that are resolved, an object each.
const RESOLVED: usize = 300;

/// The replay is asked for so often at once.
const ASKED: usize = 3;

/// Requests at once: the others are one of each kind.
const REQUESTS: usize = 4 + ASKED;

/// Longest pause between an answer and the kill.
const PAUSE_MICROS_MAX: usize = 20_000;

/// Time after a start within which all that was cut is finished. It is less than the age at which
/// work counts as left where other processes may be at it.
const SOON: Duration = Duration::from_secs(30);

/// An answer to one of the requests.
#[derive(Debug, Clone)]
struct Answered {
    path: String,
    status: u16,
    body: Value,
}

/// One cut: its own topics, and what was answered before.
struct Cut {
    number: usize,
    answers: Seen<Answered>,
}

/// Consents to a handshake, and takes every event.
fn consents(request: &Received) -> Reply {
    let origin = request.header("webhook-request-origin");
    let headers = origin
        .map(|origin| ("WebHook-Allowed-Origin", origin.to_owned()))
        .into_iter();
    Reply {
        status: 200,
        headers: headers.collect(),
        body: String::new(),
    }
}

#[test]
fn changes_that_are_killed_end_after_the_start_or_never_began() {
    let mut seed = Seed::of_this_run();
    let home = Home::new();
    let endpoint = Endpoint::start();
    let mut server = home.serve();
    let cuts: Vec<_> = (0..CUTS).map(Cut::new).collect();
    for cut in &cuts {
        cut.prepare(&home, &server, &endpoint);
        cut.ask_all(server.api());
        let answers = seed.below(REQUESTS);
        let pause = Duration::from_micros(seed.below(PAUSE_MICROS_MAX) as u64);
        if cut.is_silent_first() {
            endpoint.wait_for_one(&format!("/asks-{}", cut.number));
        }
        cut.wait_for_answers(answers);
        // Somewhere between this answer and the next ones.
        rest(pause);
        server.kill();
        let killed_at = now();
        server = home.serve();
        cut.check(server.api(), &endpoint);
        let took = now().saturating_sub(killed_at);
        assert!(took < SOON, "cut {}: {took:?}", cut.number);
    }
    // wake begins replays as a server starts, and else once a minute.
    server.stop();
    let server = home.serve();
    for cut in &cuts {
        cut.check_replay(server.api(), &endpoint);
    }
    server.stop();
}

impl Cut {
    fn new(number: usize) -> Self {
        Self {
            number,
            answers: Seen::default(),
        }
    }

    /// Whether the endpoint leaves the first request unanswered, which is cut there.
    fn is_silent_first(&self) -> bool {
        self.number.is_multiple_of(2)
    }

    fn path(&self, rest: &str) -> String {
        format!("/topics/{rest}").replace('#', &self.number.to_string())
    }

    /// Creates the topics, pauses a subscription, and puts dead letters into the folder.
    fn prepare(&self, home: &Home, server: &Server, endpoint: &Endpoint) {
        let api = server.api();
        let number = self.number;
        let url = |name: &str| endpoint.url(&format!("/{name}-{number}"));
        let many: Map<_, _> = (0..WIDE)
            .map(|n| (format!("s{n}"), subscription(&url("wide"))))
            .collect();
        let wide = format!("wide-{number}");
        api.create_topic(&wide, &json!({ "subscriptions": many }));
        api.create_topic(&format!("asks-{number}"), &json!({}));
        let consent = Answer::Reply(consents);
        let silent = self.is_silent_first().then_some(Answer::Never);
        let path = format!("/asks-{number}");
        endpoint.script(&path, silent.into_iter().chain([consent]));
        for topic in ["replayed", "resolved"] {
            let name = format!("{topic}-{number}");
            api.create_topic_with(&name, "a", &subscription(&url(topic)));
        }
        bury(home, &format!("replayed-{number}"), REPLAYED);
        bury(home, &format!("resolved-{number}"), RESOLVED);
        let name = format!("held-{number}");
        let topic = api.create_topic_with(&name, "a", &subscription(&url("held")));
        let pause = self.path("held-#/subscriptions/a/pause");
        api.manage("POST", &pause, None).expect(200);
        let events: Vec<_> = (0..HELD).map(|n| cloud_event(&n.to_string())).collect();
        topic.publish_batch(&events);
        let path = self.path("held-#/subscriptions/a");
        wait_until("the events to be held", || {
            let shown = api.show(&path);
            (shown["waiting"]["held"] == json!(HELD)).then_some(())
        });
    }

    /// Sends all requests, each by a thread of its own.
    fn ask_all(&self, api: &Api) {
        let asks = json!({ "endpoint": { "validation": "CloudEvents" } });
        let url = self.endpoint_url(api, "asks");
        let all = json!({ "includeFormer": true });
        let letters = |topic: &str| format!("{topic}-#/subscriptions/a/dead-letters");
        let mut requests = vec![
            ("DELETE", "wide-#".to_owned(), None),
            (
                "PUT",
                "asks-#/subscriptions/a".to_owned(),
                Some(subscription_with(&url, &asks)),
            ),
            ("POST", "held-#/subscriptions/a/resume".to_owned(), None),
            (
                "POST",
                format!("{}/resolve", letters("resolved")),
                Some(all.clone()),
            ),
        ];
        let replay = format!("{}/replay", letters("replayed"));
        requests.extend(vec![("POST", replay, Some(all)); ASKED]);
        for (method, path, body) in requests {
            let api = api.clone();
            let answers = self.answers.clone();
            let path = self.path(&path);
            thread::spawn(move || {
                let body = body.map(|body| body.to_string()).unwrap_or_default();
                let key = format!("Bearer {}", api.admin_key());
                let headers = [
                    ("authorization", key.as_str()),
                    ("content-type", "application/json"),
                ];
                // A request that is cut has no answer.
                if let Ok(answer) = api.send(method, &path, &headers, body.as_bytes()) {
                    let body = serde_json::from_slice(&answer.body).unwrap_or_default();
                    answers.push(Answered {
                        path,
                        status: answer.status,
                        body,
                    });
                }
            });
        }
    }

    /// The URL of the endpoint of this name, which lies beside that of another topic.
    fn endpoint_url(&self, api: &Api, name: &str) -> String {
        let shown = api.show(&self.path("held-#/subscriptions/a"));
        let url = shown["endpoint"]["url"].as_str().expect("it has a URL");
        url.replace("held", name)
    }

    /// Waits for so many answers, fewer where one never comes.
    fn wait_for_answers(&self, count: usize) {
        let possible = REQUESTS - usize::from(self.is_silent_first());
        self.answers.wait_for("answers", |all| {
            (all.len() >= count.min(possible)).then_some(())
        });
    }

    /// The statuses that requests of this path were answered with before the kill.
    fn answered(&self, part: &str) -> Vec<Answered> {
        let mut all = self.answers.all();
        all.retain(|answer| answer.path.contains(part));
        all
    }

    fn has_succeeded(&self, part: &str) -> bool {
        let answered = self.answered(part);
        for answer in &answered {
            assert!((200..300).contains(&answer.status), "{answer:?}");
        }
        !answered.is_empty()
    }

    /// Looks at everything but the replay.
    fn check(&self, api: &Api, endpoint: &Endpoint) {
        self.check_name(api);
        self.check_consent(api);
        self.check_resumed(api, endpoint);
        self.check_resolved(api);
    }

    /// The topic is whole, or its name is free.
    fn check_name(&self, api: &Api) {
        let path = self.path("wide-#");
        let shown = api.manage("GET", &path, None);
        let is_there = shown.status == 200;
        assert!(
            !(is_there && self.has_succeeded("wide")),
            "a topic is back whose deletion was answered"
        );
        let expected = if is_there {
            let subscriptions = shown.json()["subscriptions"].as_object().map(Map::len);
            assert_eq!(subscriptions, Some(WIDE), "the topic is whole");
            200
        } else {
            201
        };
        wait_until("the name to be free", || {
            let put = api.manage("PUT", &path, Some(&json!({})));
            (put.status != 409).then(|| put.expect(expected))
        });
    }

    /// The subscription is not there, or its endpoint has consented.
    fn check_consent(&self, api: &Api) {
        let path = self.path("asks-#/subscriptions/a");
        if api.manage("GET", &path, None).status == 404 {
            assert!(!self.has_succeeded("asks"), "a subscription is lost");
            return;
        }
        wait_until("the endpoint's consent", || {
            let status = &api.show(&path)["status"];
            (status["state"] == "Active").then_some(())
        });
    }

    /// The subscription is paused and holds its events, or they are delivered.
    fn check_resumed(&self, api: &Api, endpoint: &Endpoint) {
        let path = self.path("held-#/subscriptions/a");
        let received = format!("/held-{}", self.number);
        if api.show(&path)["status"]["state"] == "Paused" {
            assert!(!self.has_succeeded("held"), "a resumed one is paused");
            assert_eq!(endpoint.received(&received).len(), 0);
            return;
        }
        let ids = wait_until("what was held", || {
            let all = endpoint.received(&received);
            let ids: HashSet<_> = all.iter().flat_map(Received::ids).collect();
            (ids.len() == HELD).then_some(ids)
        });
        assert_eq!(ids.len(), HELD);
    }

    /// All letters are resolved, or none.
    fn check_resolved(&self, api: &Api) {
        let path = self.path("resolved-#/subscriptions/a/dead-letters?limit=1000");
        let open = || {
            let page = api.show(&path);
            page["deadLetters"].as_array().map_or(0, Vec::len)
        };
        let has_begun = self.has_succeeded("resolved");
        let at_first = open();
        if !has_begun && at_first == RESOLVED {
            // Whoever asks again finishes it, whether it had begun or not.
            let resolve = self.path("resolved-#/subscriptions/a/dead-letters/resolve");
            let all = json!({ "includeFormer": true });
            let again = api.manage("POST", &resolve, Some(&all));
            assert!(matches!(again.status, 200 | 202), "{again:?}");
        }
        wait_until("all letters to be resolved", || (open() == 0).then_some(()));
    }

    /// There is one replay, and each of its letters is delivered: three replays would send each
    /// three times.
    fn check_replay(&self, api: &Api, endpoint: &Endpoint) {
        let answered = self.answered("replayed");
        let ids: HashSet<_> = answered.iter().map(|it| it.body["id"].clone()).collect();
        assert!(ids.len() <= 1, "{answered:?}");
        let list = format!("/replays?topic=replayed-{}", self.number);
        let page = api.show(&list);
        let replays = page["replays"].as_array().expect("a page of replays");
        assert!(replays.len() <= 1, "{page}");
        let received = format!("/replayed-{}", self.number);
        if replays.is_empty() {
            assert!(answered.is_empty(), "a replay is lost: {answered:?}");
            assert_eq!(endpoint.received(&received).len(), 0);
            return;
        }
        let all = wait_until("the replayed events", || {
            let all = endpoint.received(&received);
            let ids: HashSet<_> = all.iter().flat_map(Received::ids).collect();
            (ids.len() == REPLAYED).then_some(all)
        });
        // A kill may repeat what was under way.
        assert!(all.len() < 2 * REPLAYED, "{} requests", all.len());
    }
}

/// Writes so many dead letters of the topic's subscription, an object each.
fn bury(home: &Home, topic: &str, count: usize) {
    let folder = home.path().join("dead-letters").join(topic.to_uppercase());
    let folder = folder.join("A/2020/1/1/1");
    fs::create_dir_all(&folder).expect("the data folder takes files");
    for number in 0..count {
        let mut letter = cloud_event(&number.to_string());
        letter["deadletterreason"] = json!("EndpointGone");
        let text = json!([letter]).to_string();
        fs::write(folder.join(format!("{number}.json")), text).expect("there is room");
    }
}
