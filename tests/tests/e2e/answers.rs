//! The answer table of the specification, row by row: what each status makes of an event.

use posthaste_tests::api::Topic;
use posthaste_tests::endpoint::{Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::server::Server;
use serde_json::{Map, Value, json};

/// A topic with a subscription `s{status}` at the path `/{status}` for each status, which gets one
/// event.
fn publish_to_all(
    server: &Server,
    endpoint: &Endpoint,
    statuses: &[(u16, &[u16])],
    more: &Value,
) -> Topic {
    let subscribe = |(status, script): &(u16, &[u16])| {
        let url = endpoint.on(&format!("/{status}"), script);
        (format!("s{status}"), subscription_with(&url, more))
    };
    let subscriptions: Map<String, Value> = statuses.iter().map(subscribe).collect();
    let topic = server
        .api()
        .create_topic("answers", &json!({ "subscriptions": subscriptions }));
    topic.publish(&cloud_event("1"));
    topic
}

#[test]
fn success_is_200_to_204_and_nothing_else() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let good: [(u16, &[u16]); 5] = [
        (200, &[200]),
        (201, &[201]),
        (202, &[202]),
        (203, &[203]),
        (204, &[204]),
    ];
    let topic = publish_to_all(&server, &endpoint, &good, &json!({}));
    // A second event is delivered after the first, so whatever would be tried again had its chance
    // to be.
    topic.publish(&cloud_event("2"));
    for (status, _) in good {
        let ids: Vec<_> = endpoint
            .wait_for(&format!("/{status}"), 2)
            .iter()
            .flat_map(Received::ids)
            .collect();
        assert_eq!(ids.len(), 2, "{status}");
        assert!(
            ids.contains(&"1".to_owned()) && ids.contains(&"2".to_owned()),
            "{status}: {ids:?}"
        );
        assert!(
            home.dead_letter_files("answers", &format!("s{status}"))
                .is_empty()
        );
    }
}

#[test]
fn a_permanent_answer_is_a_dead_letter_at_once() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let permanent: [(u16, &[u16]); 5] = [
        (400, &[400]),
        (401, &[401]),
        (403, &[403]),
        (404, &[404]),
        (413, &[413]),
    ];
    let names = [
        "BadRequest",
        "Unauthorized",
        "Forbidden",
        "NotFound",
        "PayloadTooLarge",
    ];
    publish_to_all(&server, &endpoint, &permanent, &json!({}));
    for ((status, _), name) in permanent.into_iter().zip(names) {
        let letter = home.wait_for_dead_letter("answers", &format!("s{status}"));
        assert_eq!(letter["id"], "1");
        assert_eq!(letter["deadletterreason"], "UndeliverableDueToClientError");
        assert_eq!(letter["lastdeliveryoutcome"], name);
        assert_eq!(letter["lasthttpstatuscode"], status);
        assert_eq!(letter["deliveryattempts"], 1);
        assert_eq!(endpoint.received(&format!("/{status}")).len(), 1);
    }
}

#[test]
fn every_other_answer_is_tried_again() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let again: [(u16, &[u16]); 14] = [
        (205, &[205, 200]),
        (206, &[206, 200]),
        (299, &[299, 200]),
        (301, &[301, 200]),
        (304, &[304, 200]),
        (307, &[307, 200]),
        (402, &[402, 200]),
        (408, &[408, 200]),
        (422, &[422, 200]),
        (429, &[429, 200]),
        (500, &[500, 200]),
        (502, &[502, 200]),
        (503, &[503, 200]),
        (599, &[599, 200]),
    ];
    publish_to_all(&server, &endpoint, &again, &json!({}));
    for (status, _) in again {
        let requests = endpoint.wait_for(&format!("/{status}"), 2);
        let counts: Vec<_> = requests
            .iter()
            .filter_map(|request| request.header("aeg-delivery-count"))
            .collect();
        assert_eq!(counts, ["0", "1"], "{status}");
        assert!(
            home.dead_letter_files("answers", &format!("s{status}"))
                .is_empty(),
            "{status}"
        );
    }
}

#[test]
fn a_dead_letter_says_how_its_last_attempt_ended() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let failing: [(u16, &[u16]); 7] = [
        (302, &[302]),
        (308, &[308]),
        (408, &[408]),
        (429, &[429]),
        (503, &[503]),
        (500, &[500]),
        (418, &[418]),
    ];
    let names = [
        "Redirected",
        "Redirected",
        "TimedOut",
        "Busy",
        "Busy",
        "GenericError",
        "GenericError",
    ];
    publish_to_all(
        &server,
        &endpoint,
        &failing,
        &json!({ "retryPolicy": { "maxDeliveryAttempts": 1 } }),
    );
    for ((status, _), name) in failing.into_iter().zip(names) {
        let letter = home.wait_for_dead_letter("answers", &format!("s{status}"));
        assert_eq!(
            letter["deadletterreason"], "MaxDeliveryAttemptsExceeded",
            "{status}"
        );
        assert_eq!(letter["lastdeliveryoutcome"], name, "{status}");
        assert_eq!(letter["lasthttpstatuscode"], status);
        assert_eq!(letter["deliveryattempts"], 1);
    }
}

#[test]
fn gone_disables_the_subscription_and_ends_what_waits() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let url = endpoint.on("/a", &[503, 410]);
    let both =
        json!({ "gone": subscription(&url), "other": subscription(&endpoint.url("/other")) });
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": both }));
    // The first waits for its second attempt when the next one meets the 410.
    topic.publish(&cloud_event("waiting"));
    endpoint.wait_for("/a", 1);
    topic.publish(&cloud_event("meets"));
    let mut letters = home.wait_for_dead_letters("orders", "gone", 2);
    letters.sort_by_key(|letter| letter["id"].to_string());
    for (letter, id) in letters.iter().zip(["meets", "waiting"]) {
        assert_eq!(
            (&letter["id"], &letter["deadletterreason"]),
            (&json!(id), &json!("EndpointGone"))
        );
    }
    assert_eq!(letters[0]["lastdeliveryoutcome"], "Gone");
    assert_eq!(letters[0]["lasthttpstatuscode"], 410);
    let shown = server.api().show("/topics/orders/subscriptions/gone");
    assert_eq!(shown["status"]["state"], "Disabled");
    topic.publish(&cloud_event("passes by"));
    endpoint.wait_for("/other", 3);
    assert_eq!(endpoint.received("/a").len(), 2);
    assert_eq!(home.dead_letters("orders", "gone").len(), 2);
}

#[test]
fn disabled_subscription_with_another_url_becomes_active() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[410]));
    let topic = server.api().create_topic_with("orders", "gone", &settings);
    topic.publish(&cloud_event("1"));
    home.wait_for_dead_letter("orders", "gone");
    let moved = subscription(&endpoint.on("/b", &[200]));
    for (settings, state) in [(&settings, "Disabled"), (&moved, "Active")] {
        let written = server
            .api()
            .manage("PUT", "/topics/orders/subscriptions/gone", Some(settings))
            .expect(200);
        assert_eq!(written.json()["status"]["state"], state);
    }
    topic.publish(&cloud_event("2"));
    assert_eq!(endpoint.wait_for("/b", 1)[0].ids(), ["2"]);
}

#[test]
fn the_statuses_that_are_permanent_are_a_setting() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let mixed: [(u16, &[u16]); 3] = [(400, &[400, 200]), (422, &[422]), (410, &[410, 200])];
    let policy = json!({ "retryPolicy": { "permanentStatuses": [422], "disableOnGone": false } });
    publish_to_all(&server, &endpoint, &mixed, &policy);
    let letter = home.wait_for_dead_letter("answers", "s422");
    assert_eq!(letter["lastdeliveryoutcome"], "GenericError");
    assert_eq!(endpoint.received("/422").len(), 1);
    endpoint.wait_for("/400", 2);
    let gone = home.wait_for_dead_letter("answers", "s410");
    assert_eq!(gone["lasthttpstatuscode"], 410);
    let shown = server.api().show("/topics/answers/subscriptions/s410");
    assert_eq!(shown["status"]["state"], "Active");
}
