//! An outage over real sockets: ten endpoints, each well or bad in its own way. Once all is at rest,
//! commands, API, metrics and console say the same of every event.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use posthaste_tests::api::Api;
use posthaste_tests::endpoint::{Answer, Endpoint, nobody};
use posthaste_tests::events::{cloud_event, subscription_with};
use posthaste_tests::patience::wait_until;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::Server;

/// Few enough that one invocation has them all.
const EVENTS: usize = 4;

/// The outcome of the events of each kind of endpoint.
const KINDS: [(&str, &str); 10] = [
    ("erring", "dead-lettered"),
    ("flapping", "delivered"),
    ("gone", "dead-lettered"),
    ("hanging", "dead-lettered"),
    ("healthy", "delivered"),
    ("nobody", "dead-lettered"),
    ("redirecting", "dead-lettered"),
    ("refusing", "dead-lettered"),
    ("slow", "delivered"),
    ("untrusted", "dead-lettered"),
];

/// The URL of an endpoint whose certificate nobody trusts.
fn untrusted() -> String {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A client that does not trust the certificate leaves.
            let _ = StreamOwned::new(connection, stream).read(&mut [0; 1024]);
        }
    });
    format!("https://{address}/")
}

/// The settings of all subscriptions. Each has an endpoint of its own, and so a link.
fn subscriptions(endpoints: &BTreeMap<&str, Endpoint>) -> Value {
    let answers: [(&str, &[u16]); 5] = [
        ("healthy", &[204]),
        ("erring", &[500]),
        ("refusing", &[400]),
        ("gone", &[410]),
        ("flapping", &[503, 204, 503, 204, 503, 204]),
    ];
    let mut urls: BTreeMap<&str, String> = answers
        .map(|(name, statuses)| (name, endpoints[name].on("/", statuses)))
        .into();
    let elsewhere = endpoints["healthy"].url("/elsewhere");
    let others = [
        ("slow", Answer::Held(204)),
        ("redirecting", Answer::With(302, "location", elsewhere)),
        ("hanging", Answer::Never),
    ];
    for (name, answer) in others {
        endpoints[name].script("/", [answer]);
        urls.insert(name, endpoints[name].url("/"));
    }
    urls.insert("nobody", nobody());
    urls.insert("untrusted", untrusted());
    let named = urls.into_iter().map(|(name, url)| {
        let timeout = if name == "hanging" { "PT1S" } else { "PT30S" };
        // Where all events of an invocation fail, their link is held for a minute: they end before.
        let attempts = if name == "flapping" { 10 } else { 1 };
        let more = json!({
            "endpoint": { "timeout": timeout },
            "retryPolicy": { "maxDeliveryAttempts": attempts },
        });
        (name.to_owned(), subscription_with(&url, &more))
    });
    Value::Object(named.collect())
}

/// The console's pages, for a visitor who is signed in.
struct Browser<'a> {
    api: &'a Api,
    cookies: String,
}

impl<'a> Browser<'a> {
    fn sign_in(api: &'a Api) -> Self {
        let page = api.send("GET", "/console/sign-in", &[], b"").unwrap();
        let cookies = cookie(&page);
        let html = String::from_utf8(page.body).unwrap();
        let token = between(&html, "name=\"form\" value=\"", "\"");
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("form", token)
            .append_pair("key", api.admin_key())
            .finish();
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("cookie", &cookies),
        ];
        let signed_in = api
            .send("POST", "/console/sign-in", &headers, form.as_bytes())
            .unwrap()
            .expect(303);
        let cookies = format!("{cookies}; {}", cookie(&signed_in));
        Self { api, cookies }
    }

    fn page(&self, path: &str) -> String {
        let headers = [("cookie", self.cookies.as_str())];
        let page = self.api.send("GET", path, &headers, b"").unwrap();
        String::from_utf8(page.expect(200).body).unwrap()
    }
}

fn cookie(answer: &posthaste_tests::api::Answer) -> String {
    let set = answer.header("set-cookie").unwrap();
    set.split(';').next().unwrap().to_owned()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("{before:?} is not in {text}"));
    rest.split(after).next().unwrap_or_default()
}

/// The state of each subscription of an event, as the API and the commands have it.
fn states(event: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let deliveries = event["deliveries"].as_array().unwrap().iter();
    deliveries
        .map(|it| (text(&it["subscription"]), text(&it["state"])))
        .collect()
}

/// The figure of a metric, as text. A sum of no samples is -0.
fn figure(api: &Api, metric: &str) -> String {
    (api.metric(metric) + 0.0).to_string()
}

/// Compares what is said of each subscription.
fn compare_subscriptions(server: &Server, api: &Api, browser: &Browser<'_>) {
    let listed = api.show("/topics/orders/subscriptions");
    let told = server.json(&["subscriptions", "list", "orders"], "");
    assert_eq!(told["subscriptions"], listed["subscriptions"]);
    let page = browser.page("/console/topics/orders");
    for (one, (name, end)) in listed["subscriptions"]
        .as_array()
        .unwrap()
        .iter()
        .zip(KINDS)
    {
        assert_eq!(one["name"], name);
        assert_eq!(one["waiting"]["count"], 0, "{one}");
        let shown = server.json(&["subscriptions", "show", "orders", name], "");
        assert_eq!(shown["waiting"], one["waiting"], "{name}");
        assert_eq!(shown["health"], one["health"], "{name}");
        let health = one["health"]["state"].as_str().unwrap();
        let row = between(&page, &format!("/subscriptions/{name}\""), "</tr>");
        assert!(row.contains(&format!(">{health}</span>")), "{name}: {row}");
        assert!(
            row.contains("data-label=\"Waiting\">0</td>"),
            "{name}: {row}"
        );
        let of = |metric: &str| {
            let metric = format!("{metric}{{subscription=\"{name}\"}}");
            figure(api, &metric)
        };
        assert_eq!(of("posthaste_waiting"), "0", "{name}");
        assert_eq!(of("posthaste_oldest_waiting_seconds"), "0", "{name}");
        let is_up = u8::from(health == "healthy").to_string();
        let shown_up = of("posthaste_subscription_up");
        assert_eq!(shown_up, is_up, "{name}: {health}");
        let path = format!("/topics/orders/subscriptions/{name}/dead-letters");
        let letters = api.show(&path)["deadLetters"].as_array().unwrap().len();
        let expected = if end == "delivered" { 0 } else { EVENTS };
        assert_eq!(letters, expected, "{name}");
        let counted = of("posthaste_dead_letters_total");
        assert_eq!(counted, letters.to_string(), "{name}");
    }
}

/// Compares what is said of an event.
fn compare_event(server: &Server, api: &Api, browser: &Browser<'_>, id: &str) {
    let expected: BTreeMap<String, String> = KINDS
        .map(|(name, end)| (name.to_owned(), end.to_owned()))
        .into();
    let event = api.show(&format!("/topics/orders/events/{id}"));
    assert_eq!(states(&event), expected, "{id}");
    let told = server.json(&["events", "show", "orders", id], "");
    assert_eq!(told["deliveries"], event["deliveries"], "{id}");
    assert_eq!(told["state"], event["state"], "{id}");
    assert_ne!(event["state"], "delivered", "{id}");
    let page = browser.page(&format!("/console/topics/orders/events/{id}"));
    for (name, end) in KINDS {
        let delivery = between(&page, &format!("/subscriptions/{name}\""), "</tr>");
        assert!(
            delivery.contains(&format!(">{end}</span>")),
            "{name}: {delivery}"
        );
    }
}

#[test]
fn all_surfaces_agree_after_an_outage_over_real_sockets() {
    let folder = TempDir::new().unwrap();
    let options = [
        "--allow-endpoints",
        "127.0.0.0/8",
        "--metrics-by",
        "subscription",
    ];
    let server = Server::start(folder.path(), &options);
    let key = fs::read_to_string(folder.path().join("admin.key")).unwrap();
    let api = Api::new(server.url.trim_end_matches('/').to_owned(), key.trim());
    let endpoints: BTreeMap<_, _> = KINDS.map(|(name, _)| (name, Endpoint::start())).into();
    let topic = json!({ "subscriptions": subscriptions(&endpoints) });
    let topic = api.create_topic("orders", &topic);
    let ids: Vec<_> = (0..EVENTS).map(|n| format!("e{n}")).collect();
    let events: Vec<_> = ids.iter().map(|id| cloud_event(id)).collect();
    topic.publish_batch(&events);
    endpoints["slow"].wait_for("/", EVENTS);
    // While one request is under way, no event is delivered.
    for id in &ids {
        let state = api.show(&format!("/topics/orders/events/{id}"))["state"].take();
        assert_ne!(state, "delivered", "{id}");
    }
    endpoints["slow"].open();
    let letters = KINDS
        .iter()
        .filter(|(_, end)| *end == "dead-lettered")
        .count()
        * EVENTS;
    wait_until("the end of all deliveries", || {
        let delivered = KINDS.len() * EVENTS - letters;
        let written = figure(&api, "posthaste_dead_letters_total");
        let is_delivered = api.delivered().to_string() == delivered.to_string();
        (written == letters.to_string() && is_delivered).then_some(())
    });
    wait_until("all records in the log", || {
        let of_event = |id: &String| states(&api.show(&format!("/topics/orders/events/{id}")));
        let all = ids.iter().flat_map(|id| of_event(id).into_values());
        let ended = all.filter(|state| ["delivered", "dead-lettered"].contains(&&**state));
        (ended.count() == KINDS.len() * EVENTS).then_some(())
    });
    wait_until("the rest of the queues", || {
        let left = ["waiting", "dead_letters_waiting", "records_waiting"];
        let left = left.map(|name| figure(&api, &format!("posthaste_{name}")));
        left.iter().all(|left| left == "0").then_some(())
    });
    let browser = Browser::sign_in(&api);
    compare_subscriptions(&server, &api, &browser);
    for id in &ids {
        compare_event(&server, &api, &browser, id);
    }
    let links = server.json(&["links"], "");
    assert_eq!(links, api.show("/links"));
    for row in links["links"].as_array().unwrap() {
        assert_eq!(row["waiting"]["count"], 0, "{row}");
    }
    assert_eq!(figure(&api, "posthaste_waiting"), "0");
    let accepted = figure(&api, "posthaste_events_accepted_total");
    assert_eq!(accepted, EVENTS.to_string());
}
