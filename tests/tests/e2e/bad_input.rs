//! Bad requests over real HTTP: the answer says what is wrong, and nothing of the request is
//! accepted.

use posthaste_tests::api::{Answer, CLOUD_EVENT, CLOUD_EVENTS_BATCH, Topic};
use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, event_grid_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

const EVENT_BYTES_MAX: usize = 1_000_000;

struct World {
    _home: Home,
    server: Server,
    endpoint: Endpoint,
    topic: Topic,
}

fn world(schema: &str) -> World {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let subscriptions = json!({ "billing": subscription(&endpoint.url("/a")) });
    let settings = json!({ "inputSchema": schema, "subscriptions": subscriptions });
    let topic = server.api().create_topic("orders", &settings);
    World {
        _home: home,
        server,
        endpoint,
        topic,
    }
}

impl World {
    fn publish(&self, content_type: &str, body: impl AsRef<[u8]>) -> Answer {
        self.topic
            .send(content_type, body.as_ref())
            .expect("the server answers")
    }

    /// Publishes a good event last: everything before it that was accepted by mistake would have
    /// come first.
    fn assert_nothing_was_accepted(&self, content_type: &str, good: &Value) {
        self.publish(content_type, good.to_string()).expect(200);
        let requests = self.endpoint.wait_for("/a", 1);
        assert_eq!(
            requests
                .iter()
                .map(posthaste_tests::endpoint::Received::ids)
                .collect::<Vec<_>>(),
            [["good"]]
        );
        assert_eq!(self.endpoint.all().len(), 1);
    }
}

fn with(member: &str, value: &Value) -> Value {
    let mut event = cloud_event("bad");
    event[member] = value.clone();
    event
}

fn without(mut event: Value, member: &str) -> String {
    event
        .as_object_mut()
        .expect("an event is an object")
        .remove(member);
    event.to_string()
}

#[test]
fn malformed_cloud_events_are_refused_by_member() {
    let world = world("CloudEvents");
    let cases = [
        (without(cloud_event("bad"), "id"), "id"),
        (without(cloud_event("bad"), "source"), "source"),
        (without(cloud_event("bad"), "type"), "type"),
        (without(cloud_event("bad"), "specversion"), "specversion"),
        (
            with("specversion", &json!("0.3")).to_string(),
            "specversion",
        ),
        (with("id", &json!("")).to_string(), "id"),
        (with("id", &json!(7)).to_string(), "id"),
        (with("time", &json!("yesterday")).to_string(), "time"),
        (with("expirytime", &json!("soon")).to_string(), "expirytime"),
        (
            with("data_base64", &json!("%%%")).to_string(),
            "data_base64",
        ),
    ];
    for (body, member) in cases {
        let problem = world.publish(CLOUD_EVENT, &body).problem(400);
        assert_eq!(
            (&problem["member"], &problem["index"]),
            (&json!(member), &json!(0)),
            "{body}"
        );
        assert_eq!(problem["type"], "urn:posthaste:problem:bad-event");
    }
    world.assert_nothing_was_accepted(CLOUD_EVENT, &cloud_event("good"));
}

#[test]
fn bad_event_refuses_its_whole_batch() {
    let world = world("CloudEvents");
    let mut events: Vec<Value> = (0..10).map(|n| cloud_event(&format!("b{n}"))).collect();
    events[6]["type"] = json!(null);
    let problem = world
        .publish(CLOUD_EVENTS_BATCH, Value::from(events).to_string())
        .problem(400);
    assert_eq!(
        (&problem["index"], &problem["member"]),
        (&json!(6), &json!("type"))
    );
    world.assert_nothing_was_accepted(CLOUD_EVENT, &cloud_event("good"));
}

#[test]
fn malformed_event_grid_events_are_refused_by_member() {
    let world = world("EventGrid");
    for member in ["id", "eventType", "subject", "eventTime"] {
        let body = format!(
            "[{},{}]",
            event_grid_event("first"),
            without(event_grid_event("bad"), member)
        );
        let problem = world.publish("application/json", &body).problem(400);
        assert_eq!(
            (&problem["index"], &problem["member"]),
            (&json!(1), &json!(member)),
            "{body}"
        );
    }
    world.publish("application/json", "[]").problem(400);
    world.assert_nothing_was_accepted("application/json", &event_grid_event("good"));
}

#[test]
fn body_that_is_not_json_is_refused() {
    let world = world("CloudEvents");
    let bodies: [&[u8]; 9] = [
        b"",
        b"{",
        b"[1,2",
        b"null",
        b"\"text\"",
        b"{\"id\":\"\xff\"}",
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b"{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/s\",\"type\":\"t\",}",
    ];
    for body in bodies {
        world.publish(CLOUD_EVENT, body).problem(400);
    }
    let deep = format!("{{\"data\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    world.publish(CLOUD_EVENT, deep).problem(400);
    world
        .publish(CLOUD_EVENTS_BATCH, cloud_event("bad").to_string())
        .problem(400);
    world
        .publish(CLOUD_EVENT, json!([cloud_event("bad")]).to_string())
        .problem(400);
    world.assert_nothing_was_accepted(CLOUD_EVENT, &cloud_event("good"));
}

#[test]
fn content_that_is_not_taken_is_refused() {
    let world = world("CloudEvents");
    let event = cloud_event("bad").to_string();
    for content_type in [
        "text/xml",
        "application/cloudevents+avro",
        "application/json; charset=utf-16",
    ] {
        world.publish(content_type, &event).problem(415);
    }
    let key = world.topic.keys[0].as_str();
    let headers = [
        ("aeg-sas-key", key),
        ("content-type", CLOUD_EVENT),
        ("content-encoding", "br"),
    ];
    world
        .topic
        .send_with(&headers, event.as_bytes())
        .problem(415);
    world.assert_nothing_was_accepted(CLOUD_EVENT, &cloud_event("good"));
}

#[test]
fn an_event_or_request_past_a_megabyte_is_refused() {
    let world = world("CloudEvents");
    let overhead = with("data", &json!("")).to_string().len();
    let of_size = |bytes: usize| with("data", &json!("x".repeat(bytes - overhead))).to_string();
    world
        .publish(CLOUD_EVENT, of_size(EVENT_BYTES_MAX + 1))
        .problem(413);
    let half = of_size(EVENT_BYTES_MAX / 2);
    world
        .publish(CLOUD_EVENTS_BATCH, format!("[{half},{half}]"))
        .problem(413);
    // Far past it, and sent whole before the answer is read.
    world
        .publish(CLOUD_EVENT, vec![b' '; 20 * EVENT_BYTES_MAX])
        .problem(413);
    world.assert_nothing_was_accepted(CLOUD_EVENT, &cloud_event("good"));
}

#[test]
fn an_event_of_exactly_a_megabyte_is_delivered() {
    let world = world("CloudEvents");
    let overhead = with("data", &json!("")).to_string().len();
    let event = with("data", &json!("x".repeat(EVENT_BYTES_MAX - overhead)));
    world.publish(CLOUD_EVENT, event.to_string()).expect(200);
    let request = world.endpoint.wait_for_one("/a");
    assert_eq!(request.body.len(), EVENT_BYTES_MAX);
    assert_eq!(request.json(), event);
}

#[test]
fn a_wrong_key_or_none_is_refused() {
    let world = world("CloudEvents");
    let event = cloud_event("bad").to_string();
    let kind = ("content-type", CLOUD_EVENT);
    let other = world.server.api().create_topic("other", &json!({}));
    let bearer = format!("Bearer {}", other.keys[0]);
    let cases: [&[(&str, &str)]; 6] = [
        &[kind],
        &[kind, ("aeg-sas-key", "")],
        &[kind, ("aeg-sas-key", "wrong")],
        &[kind, ("aeg-sas-key", &other.keys[0])],
        &[kind, ("authorization", &bearer)],
        &[kind, ("authorization", "Basic d3Jvbmc6d3Jvbmc=")],
    ];
    for headers in cases {
        let problem = world
            .topic
            .send_with(headers, event.as_bytes())
            .problem(401);
        assert_eq!(problem["type"], "urn:posthaste:problem:unauthorized");
    }
    world.assert_nothing_was_accepted(CLOUD_EVENT, &cloud_event("good"));
}

#[test]
fn an_unknown_topic_or_path_is_refused() {
    let world = world("CloudEvents");
    let event = cloud_event("bad").to_string();
    let headers = [
        ("aeg-sas-key", world.topic.keys[0].as_str()),
        ("content-type", CLOUD_EVENT),
    ];
    let send = |method, path| {
        world
            .server
            .api()
            .send(method, path, &headers, event.as_bytes())
            .unwrap()
    };
    // Like a wrong key, so that nobody learns which topics there are.
    let problem = send("POST", "/topics/nowhere/events").problem(401);
    assert_eq!(problem["type"], "urn:posthaste:problem:unauthorized");
    send("POST", "/nowhere").problem(404);
    send("PUT", "/topics/orders/events").problem(405);
    let name = format!("/topics/{}/events", "x".repeat(65));
    assert_eq!(send("POST", &name).status, 401);
    assert_eq!(send("POST", "/topics/a%2Fb/events").status, 401);
}

#[test]
fn the_management_api_needs_its_own_key() {
    let world = world("CloudEvents");
    let bearer = format!("Bearer {}", world.topic.keys[0]);
    let cases: [&[(&str, &str)]; 3] = [
        &[],
        &[("authorization", "Bearer wrong")],
        &[("authorization", &bearer)],
    ];
    for headers in cases {
        for (method, path) in [
            ("GET", "/topics"),
            ("DELETE", "/topics/orders"),
            ("GET", "/topics/orders/keys"),
        ] {
            world
                .server
                .api()
                .send(method, path, headers, b"")
                .unwrap()
                .problem(401);
        }
    }
    assert_eq!(world.server.api().show("/topics/orders")["name"], "orders");
}

#[test]
fn settings_that_cannot_be_accepted_are_refused_by_member() {
    let world = world("CloudEvents");
    let url = world.endpoint.url("/a");
    let cases = [
        (
            json!({ "endpoint": { "url": "http://10.0.0.1/" } }),
            "endpoint.url",
        ),
        (
            json!({ "endpoint": { "url": "https://169.254.169.254/latest" } }),
            "endpoint.url",
        ),
        (
            json!({ "endpoint": { "url": "ftp://example.com/" } }),
            "endpoint.url",
        ),
        (
            json!({ "endpoint": { "url": url, "timeout": "PT0S" } }),
            "endpoint.timeout",
        ),
        (
            json!({ "endpoint": { "url": url, "timeout": "PT61S" } }),
            "endpoint.timeout",
        ),
        (
            json!({ "endpoint": { "url": url }, "retryPolicy": { "maxDeliveryAttempts": 31 } }),
            "retryPolicy.maxDeliveryAttempts",
        ),
        (
            json!({ "endpoint": { "url": url }, "deadLetter": { "delay": "PT16M" } }),
            "deadLetter.delay",
        ),
        (
            json!({ "endpoint": { "url": url }, "batching": { "maxEventsPerBatch": 5001 } }),
            "batching.maxEventsPerBatch",
        ),
        (
            json!({ "endpoint": { "url": url }, "colour": "red" }),
            "colour",
        ),
        (
            json!({ "endpoint": { "url": url, "retries": 3 } }),
            "retries",
        ),
    ];
    for (settings, member) in cases {
        let path = "/topics/orders/subscriptions/another";
        let problem = world
            .server
            .api()
            .manage("PUT", path, Some(&settings))
            .problem(400);
        assert!(
            problem.to_string().contains(member),
            "{settings} answered {problem}"
        );
    }
    world
        .server
        .api()
        .manage("GET", "/topics/orders/subscriptions/another", None)
        .problem(404);
    world
        .server
        .api()
        .manage("PUT", "/topics/malformed", Some(&json!({})))
        .problem(400);
    world
        .server
        .api()
        .manage("PUT", "/topics/-x", Some(&json!({})))
        .problem(400);
}
