//! Handshakes before an endpoint gets events: section 4 (abuse protection) of CNCF "HTTP 1.1 Web
//! Hooks for Event Delivery" 1.0.2, and Azure Event Grid's page "Webhook event delivery" with its
//! validation event. <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#4-abuse-protection>
//! <https://learn.microsoft.com/azure/event-grid/webhook-event-delivery>

use posthaste_tests::api::Topic;
use posthaste_tests::endpoint::{Answer, Received, Reply};
use posthaste_tests::events::{cloud_event, event_grid_event};
use posthaste_tests::signature;
use posthaste_tests_conformance::{HOOK, ORIGIN, PUBLIC_URL, World};
use serde_json::{Value, json};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

type Handler = fn(&Received) -> Reply;

fn by_options() -> Value {
    json!({ "endpoint": { "validation": "CloudEvents" } })
}

fn by_event() -> Value {
    json!({ "endpoint": { "validation": "EventGrid" } })
}

fn with_headers(status: u16, headers: &[(&'static str, &str)]) -> Reply {
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    Reply {
        status,
        headers,
        ..Reply::default()
    }
}

/// Consents with every right header, and takes every event.
fn consenting(request: &Received) -> Reply {
    if request.method != "OPTIONS" {
        return with_headers(204, &[]);
    }
    let origin = request.header("webhook-request-origin").unwrap_or_default();
    let rate = request.header("webhook-request-rate").unwrap_or("*");
    with_headers(
        200,
        &[
            ("Allow", "POST"),
            ("WebHook-Allowed-Origin", origin),
            ("WebHook-Allowed-Rate", rate),
        ],
    )
}

/// Gives the validation code back.
fn giving_back(request: &Received) -> Reply {
    let code = &request.json()[0]["data"]["validationCode"];
    Reply {
        status: 200,
        body: json!({ "validationResponse": code }).to_string(),
        ..Reply::default()
    }
}

/// A world and a topic with a subscription whose endpoint answers so.
fn asked(answer: Handler, more: &Value) -> (World, Topic) {
    let world = World::reachable();
    world.endpoint.script(HOOK, [Answer::Reply(answer)]);
    let topic = world.topic("CloudEvents", more);
    (world, topic)
}

/// The request that asks.
fn question(more: &Value) -> Received {
    let (world, _) = asked(|_| with_headers(405, &[]), more);
    world.endpoint.wait_for_one(HOOK)
}

fn state(world: &World) -> Value {
    world.shown()["status"]["state"].clone()
}

/// The state after an answer to `OPTIONS`.
fn state_after(answer: Handler) -> Value {
    state(&asked(answer, &by_options()).0)
}

/// The path of the URL that the endpoint was given to call.
fn path_of(url: &str) -> String {
    url.strip_prefix(PUBLIC_URL)
        .unwrap_or_else(|| panic!("{url} is not under {PUBLIC_URL}"))
        .to_owned()
}

fn callback_of(world: &World) -> String {
    let request = world.endpoint.wait_for_one(HOOK);
    path_of(
        request
            .header("webhook-request-callback")
            .expect("the endpoint is told where to call"),
    )
}

fn call(world: &World, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    world
        .server
        .api()
        .send(method, path, headers, b"")
        .expect("the server answers")
        .status
}

fn validation_event(world: &World) -> Value {
    world.endpoint.wait_for_one(HOOK).json()[0].clone()
}

#[test]
fn endpoint_without_consent_gets_no_events() {
    let (world, topic) = asked(|_| with_headers(200, &[("Allow", "POST")]), &by_options());
    let other = world.subscription(&json!({ "endpoint": { "url": world.endpoint.url("/other") } }));
    world
        .server
        .api()
        .manage("PUT", "/topics/orders/subscriptions/other", Some(&other))
        .expect(201);
    topic.publish(&cloud_event("1"));
    world.endpoint.wait_for_one("/other");
    let methods: Vec<_> = world
        .endpoint
        .received(HOOK)
        .into_iter()
        .map(|request| request.method)
        .collect();
    assert_eq!(methods, ["OPTIONS"]);
}

#[test]
fn endpoint_without_consent_gets_no_test_event() {
    let (world, _) = asked(|_| with_headers(405, &[]), &by_options());
    let test = "/topics/orders/subscriptions/billing/test";
    world.server.api().manage("POST", test, None).problem(409);
    assert_eq!(world.endpoint.all().len(), 1);
    call(&world, "GET", &callback_of(&world), &[]);
    let shown = world
        .server
        .api()
        .manage("POST", test, None)
        .expect(200)
        .json();
    assert_eq!(shown["response"]["status"], 405);
}

#[test]
fn the_question_is_options_to_the_exact_target() {
    let world = World::reachable();
    let path = "/a%20b?code=x%2By";
    world.endpoint.script(path, [Answer::Reply(consenting)]);
    let more =
        json!({ "endpoint": { "url": world.endpoint.url(path), "validation": "CloudEvents" } });
    world.topic("CloudEvents", &more);
    assert_eq!(world.endpoint.wait_for_one(path).method, "OPTIONS");
}

#[test]
fn the_question_names_the_sending_system_by_a_dns_name() {
    assert_eq!(
        question(&by_options()).header("webhook-request-origin"),
        Some(ORIGIN)
    );
}

#[test]
fn every_delivery_has_the_origin_of_the_handshake() {
    let (world, topic) = asked(consenting, &by_options());
    topic.publish(&cloud_event("1"));
    let requests = world.endpoint.wait_for(HOOK, 2);
    let origins: Vec<_> = requests
        .iter()
        .map(|request| request.header("webhook-request-origin"))
        .collect();
    assert_eq!(origins, [Some(ORIGIN), Some(ORIGIN)]);
}

#[test]
fn sender_without_its_own_name_has_that_of_its_public_url() {
    let home = posthaste_tests::home::Home::new();
    let server = posthaste_tests::server::Server::start(home.path(), &["--public-url", PUBLIC_URL]);
    let world = World {
        home,
        server,
        endpoint: posthaste_tests::endpoint::Endpoint::start(),
    };
    let request = world.deliver(&cloud_event("1"), &json!({}));
    assert_eq!(
        request.header("webhook-request-origin"),
        Some("posthaste.example.com")
    );
}

#[test]
fn the_callback_is_https_and_has_a_key_that_is_hard_to_guess() {
    let request = question(&by_options());
    let url = request
        .header("webhook-request-callback")
        .expect("it is there");
    assert!(
        url.starts_with("https://posthaste.example.com/validate/orders/billing/"),
        "{url}"
    );
    assert!(
        url.rsplit('/').next().is_some_and(|key| key.len() >= 32),
        "{url}"
    );
}

#[test]
fn permission_is_granted_by_get_or_post_of_the_callback() {
    for method in ["GET", "POST"] {
        let (world, topic) = asked(
            |request| {
                with_headers(
                    if request.method == "OPTIONS" {
                        405
                    } else {
                        204
                    },
                    &[],
                )
            },
            &by_options(),
        );
        assert_eq!(state(&world), "Pending");
        assert_eq!(
            call(&world, method, &callback_of(&world), &[]),
            200,
            "{method}"
        );
        assert_eq!(state(&world), "Active");
        topic.publish(&cloud_event("1"));
        assert_eq!(world.endpoint.wait_for(HOOK, 2)[1].ids(), ["1"]);
    }
}

#[test]
fn permission_is_refused_without_the_right_key() {
    let (world, _) = asked(|_| with_headers(405, &[]), &by_options());
    let path = callback_of(&world);
    let (folder, key) = path.rsplit_once('/').expect("a path has parts");
    let other: String = key.chars().rev().collect();
    assert_eq!(call(&world, "GET", &format!("{folder}/{other}"), &[]), 404);
    assert_eq!(state(&world), "Pending");
    assert!(!world.shown().to_string().contains(key));
}

#[test]
fn the_callback_may_carry_an_allowed_rate() {
    let (world, _) = asked(|_| with_headers(405, &[]), &by_options());
    call(
        &world,
        "POST",
        &callback_of(&world),
        &[("WebHook-Allowed-Rate", "90")],
    );
    assert_eq!(
        world.shown()["status"]["consent"]["allowedRequestsPerMinute"],
        90
    );
}

/// A rate that is asked for is a positive whole number of requests a minute.
#[test]
fn requested_rate_is_a_positive_whole_number_a_minute() {
    let mut more = by_options();
    more["endpoint"]["maxRequestsPerSecond"] = json!(2);
    assert_eq!(question(&more).header("webhook-request-rate"), Some("120"));
    assert_eq!(question(&by_options()).header("webhook-request-rate"), None);
}

#[test]
fn consent_is_the_header_and_never_the_status() {
    assert_eq!(
        state_after(|_| with_headers(405, &[("WebHook-Allowed-Origin", "*")])),
        "Active"
    );
    assert_eq!(
        state_after(|_| with_headers(200, &[("Allow", "POST")])),
        "Pending"
    );
}

#[test]
fn the_allowed_origin_is_the_one_that_asked_or_an_asterisk() {
    assert_eq!(state_after(consenting), "Active");
    assert_eq!(
        state_after(|_| with_headers(200, &[("WebHook-Allowed-Origin", "*")])),
        "Active"
    );
    for other in [
        (|_: &Received| with_headers(200, &[("WebHook-Allowed-Origin", "other.example.com")]))
            as Handler,
        |_| with_headers(200, &[("WebHook-Allowed-Origin", "*.example.com")]),
        |_| with_headers(200, &[("WebHook-Allowed-Origin", "")]),
    ] {
        assert_eq!(state_after(other), "Failed");
    }
}

#[test]
fn the_allowed_rate_is_a_positive_number_or_an_asterisk() {
    let consent = |answer: Handler| asked(answer, &by_options()).0.shown()["status"].clone();
    let hundred = consent(|_| {
        with_headers(
            200,
            &[
                ("WebHook-Allowed-Origin", "*"),
                ("WebHook-Allowed-Rate", "100"),
            ],
        )
    });
    assert_eq!(hundred["consent"]["allowedRequestsPerMinute"], 100);
    let any = consent(|_| {
        with_headers(
            200,
            &[
                ("WebHook-Allowed-Origin", "*"),
                ("WebHook-Allowed-Rate", "*"),
            ],
        )
    });
    assert_eq!(
        (
            &any["state"],
            any["consent"].get("allowedRequestsPerMinute")
        ),
        (&json!("Active"), None)
    );
    let none = consent(|_| {
        with_headers(
            200,
            &[
                ("WebHook-Allowed-Origin", "*"),
                ("WebHook-Allowed-Rate", "0"),
            ],
        )
    });
    assert_eq!(none["state"], "Failed");
}

/// The validation event is posted alone in an array when a subscription is made.
#[test]
fn validation_event_is_posted_alone_in_an_array_at_creation() {
    let (world, _) = asked(giving_back, &by_event());
    let request = world.endpoint.wait_for_one(HOOK);
    assert_eq!(
        (
            request.method.as_str(),
            request.json().as_array().map(Vec::len)
        ),
        ("POST", Some(1))
    );
    assert_eq!(
        request.header("aeg-event-type"),
        Some("SubscriptionValidation")
    );
}

#[test]
fn validation_event_is_posted_again_when_the_endpoint_changes() {
    let (world, _) = asked(giving_back, &by_event());
    let path = "/elsewhere";
    world.endpoint.script(path, [Answer::Reply(giving_back)]);
    let mut more = by_event();
    more["endpoint"]["url"] = json!(world.endpoint.url(path));
    let settings = world.subscription(&more);
    world
        .server
        .api()
        .manage(
            "PUT",
            "/topics/orders/subscriptions/billing",
            Some(&settings),
        )
        .expect(200);
    let request = world.endpoint.wait_for_one(path);
    assert_eq!(
        request.header("aeg-event-type"),
        Some("SubscriptionValidation")
    );
}

#[test]
fn the_validation_event_has_the_schema_of_other_events() {
    let (world, _) = asked(giving_back, &by_event());
    let asking = validation_event(&world);
    let body = json!([event_grid_event("1")]).to_string();
    let settings = json!({ "inputSchema": "EventGrid", "subscriptions": {
        "plain": { "endpoint": { "url": world.endpoint.url("/plain") } },
    } });
    let topic = world.server.api().create_topic("plain", &settings);
    topic
        .send("application/json", body.as_bytes())
        .expect("an answer")
        .expect(200);
    let event = world.endpoint.wait_for_one("/plain").json()[0].clone();
    let names = |event: &Value| {
        event
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&asking), names(&event));
    assert_eq!(
        (&asking["topic"], &event["topic"]),
        (&json!("/topics/orders"), &json!("/topics/plain"))
    );
    assert_eq!(
        asking["eventType"],
        "Microsoft.EventGrid.SubscriptionValidationEvent"
    );
}

#[test]
fn the_validation_code_is_random_and_the_url_has_it_too() {
    let data = |world: &World| validation_event(world)["data"].clone();
    let one = data(&asked(giving_back, &by_event()).0);
    let two = data(&asked(giving_back, &by_event()).0);
    let code = one["validationCode"].as_str().expect("there is a code");
    assert!(code.len() >= 32 && one["validationCode"] != two["validationCode"]);
    assert!(
        one["validationUrl"]
            .as_str()
            .is_some_and(|url| path_of(url).ends_with(code)),
        "{one}"
    );
}

#[test]
fn the_code_given_back_with_200_is_consent() {
    let (world, topic) = asked(
        |request| match request.header("aeg-event-type") {
            Some("SubscriptionValidation") => giving_back(request),
            _ => with_headers(200, &[]),
        },
        &by_event(),
    );
    assert_eq!(state(&world), "Active");
    topic.publish(&cloud_event("1"));
    assert_eq!(world.endpoint.wait_for(HOOK, 2)[1].ids(), ["1"]);
}

#[test]
fn a_202_is_no_validation_response() {
    let (world, _) = asked(
        |request| Reply {
            status: 202,
            ..giving_back(request)
        },
        &by_event(),
    );
    assert_eq!(state(&world), "Failed");
}

/// A 200 without the code leads to validation by hand with the URL.
#[test]
fn response_200_without_the_code_leads_to_manual_validation() {
    let (world, _) = asked(|_| with_headers(200, &[]), &by_event());
    assert_eq!(state(&world), "Pending");
    let event = validation_event(&world);
    let url = event["data"]["validationUrl"]
        .as_str()
        .expect("there is a URL");
    assert_eq!(call(&world, "GET", &path_of(url), &[]), 200);
    assert_eq!(state(&world), "Active");
}

/// The validation event is signed and carries the subscription's headers.
#[test]
fn validation_event_is_signed_and_has_the_delivery_headers() {
    let mut more = by_event();
    more["signing"] = json!({ "secrets": [SECRET] });
    more["deliveryHeaders"] = json!([{ "name": "Authorization", "value": "Bearer token" }]);
    let (world, _) = asked(giving_back, &more);
    let request = world.endpoint.wait_for_one(HOOK);
    assert_eq!(
        (
            signature::count_by(SECRET, &request),
            request.header("authorization")
        ),
        (1, Some("Bearer token"))
    );
}
