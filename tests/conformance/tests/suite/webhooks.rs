//! CNCF "HTTP 1.1 Web Hooks for Event Delivery" 1.0.2, sections 2 and 3: the delivery and its
//! authorization. <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md>

use std::time::Duration;

use posthaste_tests::endpoint::{Answer, Received, Reply};
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests_conformance::{HOOK, World};
use serde_json::{Value, json};

fn once() -> Value {
    json!({ "retryPolicy": { "maxDeliveryAttempts": 1 } })
}

#[test]
fn plain_http_is_for_addresses_the_operator_opened_only() {
    let problem = World::new().refusal(&json!({ "endpoint": { "url": "http://8.8.8.8/hook" } }));
    assert_eq!(problem["member"], "subscriptions.billing.endpoint.url");
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("plain http")),
        "{problem}"
    );
}

#[test]
fn a_delivery_is_a_post() {
    let world = World::new();
    assert_eq!(world.deliver(&cloud_event("1"), &json!({})).method, "POST");
}

#[test]
fn the_target_is_the_endpoint_s_url_as_it_was_written() {
    let world = World::new();
    let url = world.endpoint.url("/a%20b/c?code=x%2By&empty=");
    world
        .topic("CloudEvents", &json!({ "endpoint": { "url": url } }))
        .publish(&cloud_event("1"));
    world.endpoint.wait_for_one("/a%20b/c?code=x%2By&empty=");
}

#[test]
fn every_delivery_carries_a_content_type_and_a_payload() {
    let world = World::new();
    let mut bare = cloud_event("bare");
    bare.as_object_mut()
        .expect("an event is an object")
        .remove("data");
    let mut empty = cloud_event("empty");
    empty["data"] = json!("");
    empty["datacontenttype"] = json!("text/plain");
    let mut bytes = bare.clone();
    bytes["id"] = json!("bytes");
    bytes["data_base64"] = json!("AP8=");
    let topic = world.topic("CloudEvents", &json!({ "contentMode": "binary" }));
    for event in [&bare, &empty, &bytes] {
        topic.publish(event);
    }
    for request in world.endpoint.wait_for(HOOK, 3) {
        assert!(request.header("content-type").is_some(), "{request:?}");
        assert!(!request.body.is_empty(), "{request:?}");
    }
}

#[test]
fn every_delivery_names_the_sending_system() {
    let world = World::new();
    let request = world.deliver(&cloud_event("1"), &json!({}));
    let origin = request
        .header("webhook-request-origin")
        .expect("a delivery has an origin");
    assert!(
        !origin.is_empty()
            && origin
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b))
    );
}

#[test]
fn an_error_may_carry_a_payload() {
    fn with_details(_: &Received) -> Reply {
        let headers = vec![("content-type", "application/problem+json".to_owned())];
        Reply {
            status: 400,
            headers,
            body: r#"{"title":"no"}"#.to_owned(),
        }
    }
    let world = World::new();
    world.endpoint.script(HOOK, [Answer::Reply(with_details)]);
    world
        .topic("CloudEvents", &json!({}))
        .publish(&cloud_event("1"));
    assert_eq!(world.dead_letter()["lastdeliveryoutcome"], "BadRequest");
}

#[test]
fn a_redirect_is_not_followed() {
    fn elsewhere(request: &Received) -> Reply {
        let host = request.header("host").unwrap_or_default();
        Reply {
            status: 308,
            headers: vec![("location", format!("http://{host}/elsewhere"))],
            ..Reply::default()
        }
    }
    let world = World::new();
    world.endpoint.script(HOOK, [Answer::Reply(elsewhere)]);
    world
        .topic("CloudEvents", &once())
        .publish(&cloud_event("1"));
    assert_eq!(world.dead_letter()["lastdeliveryoutcome"], "Redirected");
    assert_eq!(world.endpoint.all().len(), 1);
}

/// Publishes three events and wants each of them once, whatever the answer's body is.
fn delivered_by(answer: fn(&Received) -> Reply) {
    let world = World::new();
    world.endpoint.script(HOOK, [Answer::Reply(answer)]);
    let topic = world.topic("CloudEvents", &once());
    for id in ["1", "2", "3"] {
        topic.publish(&cloud_event(id));
    }
    let mut ids: Vec<_> = world
        .endpoint
        .wait_for(HOOK, 3)
        .iter()
        .flat_map(Received::ids)
        .collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "3"]);
    world.wait_for_successes(3);
}

fn details(status: u16) -> Reply {
    let headers = vec![("content-type", "application/json".to_owned())];
    Reply {
        status,
        headers,
        body: r#"{"done":true}"#.to_owned(),
    }
}

#[test]
fn a_200_or_201_with_details_is_an_acknowledgement() {
    delivered_by(|_| details(200));
    delivered_by(|_| details(201));
}

#[test]
fn a_201_or_204_without_a_payload_is_an_acknowledgement() {
    delivered_by(|_| Reply {
        status: 201,
        ..Reply::default()
    });
    let world = World::new();
    world.endpoint.on(HOOK, &[204]);
    let topic = world.topic("CloudEvents", &once());
    topic.publish(&cloud_event("1"));
    topic.publish(&cloud_event("2"));
    world.wait_for_successes(2);
    assert_eq!(world.endpoint.received(HOOK).len(), 2);
}

#[test]
fn a_202_is_an_acknowledgement() {
    delivered_by(|_| Reply {
        status: 202,
        ..Reply::default()
    });
}

#[test]
fn after_a_410_nothing_further_is_sent() {
    let world = World::new();
    world.endpoint.on(HOOK, &[410, 200]);
    let other = subscription(&world.endpoint.url("/other"));
    let topic = world.topic("CloudEvents", &json!({}));
    world
        .server
        .api()
        .manage("PUT", "/topics/orders/subscriptions/other", Some(&other))
        .expect(201);
    topic.publish(&cloud_event("1"));
    world.dead_letter();
    topic.publish(&cloud_event("2"));
    world.endpoint.wait_for("/other", 2);
    assert_eq!(world.endpoint.received(HOOK).len(), 1);
    assert_eq!(world.shown()["status"]["state"], "Disabled");
}

#[test]
fn the_retry_after_of_a_429_is_observed() {
    let world = World::new();
    let later = Answer::With(429, "retry-after", "1".to_owned());
    world.endpoint.script(HOOK, [later, Answer::Status(200)]);
    // The subscription's own schedule would try again at once.
    let more = json!({ "retryPolicy": { "schedule": ["PT0S"] } });
    world.topic("CloudEvents", &more).publish(&cloud_event("1"));
    let requests = world.endpoint.wait_for(HOOK, 2);
    assert!(requests[1].at >= requests[0].at + Duration::from_secs(1));
}

#[test]
fn a_challenge_is_not_answered() {
    let world = World::new();
    let challenge = Answer::With(401, "www-authenticate", "Basic realm=\"hooks\"".to_owned());
    world
        .endpoint
        .script(HOOK, [challenge, Answer::Status(200)]);
    world
        .topic("CloudEvents", &json!({}))
        .publish(&cloud_event("1"));
    assert_eq!(world.dead_letter()["lastdeliveryoutcome"], "Unauthorized");
    assert_eq!(world.endpoint.all().len(), 1);
}

#[test]
fn a_token_is_sent_in_the_authorization_header() {
    let token = "Bearer mF_9.B5f-4.1JqM";
    let more = json!({ "deliveryHeaders": [{ "name": "Authorization", "value": token, "isSecret": true }] });
    let request = World::new().deliver(&cloud_event("1"), &more);
    assert_eq!(request.header("authorization"), Some(token));
}

#[test]
fn an_access_token_may_be_in_the_query_beside_other_parameters() {
    let world = World::new();
    let path = "/resource?access_token=mF_9.B5f-4.1JqM&p=q";
    let more = json!({ "endpoint": { "url": world.endpoint.url(path) } });
    world.topic("CloudEvents", &more).publish(&cloud_event("1"));
    world.endpoint.wait_for_one(path);
}

/// A request with an access token in its query says that it must not be stored.
#[test]
fn request_with_an_access_token_in_the_query_is_not_stored() {
    let world = World::new();
    let path = "/resource?p=q&access_token=mF_9.B5f-4.1JqM";
    let more = json!({ "endpoint": { "url": world.endpoint.url(path) } });
    world.topic("CloudEvents", &more).publish(&cloud_event("1"));
    assert_eq!(
        world.endpoint.wait_for_one(path).header("cache-control"),
        Some("no-store")
    );
}

#[test]
fn an_access_token_in_the_query_is_never_logged() {
    let world = World::new();
    let path = "/resource?access_token=mF_9.B5f-4.1JqM";
    world.endpoint.on(path, &[503, 400]);
    let more = json!({ "endpoint": { "url": world.endpoint.url(path) } });
    world.topic("CloudEvents", &more).publish(&cloud_event("1"));
    world.dead_letter();
    assert!(!world.server.log().join("\n").contains("mF_9.B5f-4.1JqM"));
}
