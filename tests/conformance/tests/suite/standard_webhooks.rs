//! Standard Webhooks 1.0.0.
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use posthaste_tests::endpoint::{Answer, Received};
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::signature;
use posthaste_tests_conformance::{HOOK, TOPIC, World};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};

/// The specification's own example of a secret.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_bm90IGEgc2VjcmV0LCBidXQgYSBuZXcgb25lISEh";

fn signed_by(secrets: &[&str]) -> Value {
    json!({ "signing": { "secrets": secrets } })
}

/// The requests of one event whose first attempt is answered so, up to its second.
fn attempts_after(first: Answer) -> Vec<Received> {
    let world = World::new();
    world.endpoint.script(HOOK, [first, Answer::Status(200)]);
    world
        .topic("CloudEvents", &signed_by(&[SECRET]))
        .publish(&cloud_event("1"));
    world.endpoint.wait_for(HOOK, 2)
}

/// The members of a secret that was made for a subscription.
fn made_secret(world: &World, subscription: &str) -> String {
    let path = format!("/topics/{TOPIC}/subscriptions/{subscription}");
    let made = world
        .server
        .api()
        .manage("PUT", &path, Some(&world.subscription(&json!({}))))
        .expect(201);
    made.json()["signing"]["secrets"][0]
        .as_str()
        .expect("a secret is made")
        .to_owned()
}

#[test]
fn the_payload_is_json_in_the_body() {
    assert_eq!(
        World::new().deliver(&cloud_event("1"), &json!({})).json(),
        cloud_event("1")
    );
}

#[test]
fn the_headers_have_these_names() {
    let request = World::new().deliver(&cloud_event("1"), &json!({}));
    let names: BTreeSet<_> = request
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(names.is_superset(&BTreeSet::from([
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature"
    ])));
}

#[test]
fn the_id_is_the_same_for_every_attempt() {
    let requests = attempts_after(Answer::Status(500));
    let [first, second] = [&requests[0], &requests[1]].map(|request| request.header("webhook-id"));
    assert_eq!(
        first.expect("every attempt has an id"),
        second.expect("every attempt has an id")
    );
}

#[test]
fn two_events_have_two_ids() {
    let world = World::new();
    let topic = world.topic("CloudEvents", &json!({}));
    // The same event twice is two events: its publisher meant it so, or got the answer that the
    // first was not written.
    topic.publish(&cloud_event("1"));
    topic.publish(&cloud_event("1"));
    let requests = world.endpoint.wait_for(HOOK, 2);
    assert_ne!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
}

/// Neither the id nor the timestamp is the producer's, or has a full stop.
#[test]
fn id_and_timestamp_are_not_the_producers_and_have_no_full_stop() {
    let request = World::new().deliver(&cloud_event("a.b.c"), &json!({}));
    let [id, timestamp] =
        ["webhook-id", "webhook-timestamp"].map(|name| request.header(name).unwrap_or("."));
    assert!(
        !id.contains('.') && !id.contains("a.b.c") && !timestamp.contains('.'),
        "{id} {timestamp}"
    );
}

#[test]
fn the_timestamp_is_the_attempt_s_in_seconds() {
    let world = World::new();
    let old = json!({ "time": "2001-01-01T00:00:00Z" });
    let mut event = cloud_event("1");
    event["time"] = old["time"].clone();
    let before = posthaste_tests::patience::now().as_secs();
    let request = world.deliver(&event, &json!({}));
    let timestamp: u64 = request
        .header("webhook-timestamp")
        .and_then(|t| t.parse().ok())
        .expect("an integer");
    assert!((before..=request.at.as_secs()).contains(&timestamp));
}

/// The signed text is id, timestamp and payload with full stops between.
#[test]
fn signature_covers_id_timestamp_and_payload_joined_by_stops() {
    let request = World::new().deliver(&cloud_event("1"), &signed_by(&[SECRET]));
    assert_eq!(signature::count_by(SECRET, &request), 1);
}

#[test]
fn sent_payload_is_the_signed_one_to_the_byte() {
    let world = World::new();
    let topic = world.topic("CloudEvents", &signed_by(&[SECRET]));
    let text = r#"{ "specversion":"1.0","id":"1", "source":"/s","type":"t","data":{"n":1.50,"u":"\u00e9\/"} }"#;
    topic
        .send("application/cloudevents+json", text.as_bytes())
        .expect("an answer")
        .expect(200);
    let request = world.endpoint.wait_for_one(HOOK);
    assert_eq!(String::from_utf8_lossy(&request.body), text);
    assert_eq!(signature::count_by(SECRET, &request), 1);
}

#[test]
fn a_symmetric_signature_is_v1_a_comma_and_base64_of_sha256() {
    let request = World::new().deliver(&cloud_event("1"), &signed_by(&[SECRET]));
    let signature = request
        .header("webhook-signature")
        .and_then(|value| value.strip_prefix("v1,"));
    let bytes = STANDARD
        .decode(signature.expect("it begins with v1,"))
        .expect("it is base64");
    assert_eq!(bytes.len(), 32);
}

#[test]
fn a_secret_is_whsec_and_base64_of_24_to_64_random_bytes() {
    let world = World::new();
    world.topic("CloudEvents", &json!({}));
    let secret = made_secret(&world, "made");
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").expect("its prefix"))
        .expect("it is base64");
    assert!((24..=64).contains(&key.len()), "{} bytes", key.len());
}

#[test]
fn a_secret_of_another_size_is_refused() {
    let world = World::new();
    for bytes in [23, 65] {
        let secret = format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        assert_eq!(
            world.refusal(&signed_by(&[&secret]))["member"],
            "subscriptions.billing.signing.secrets[0]"
        );
    }
}

#[test]
fn every_endpoint_has_a_secret_of_its_own() {
    let world = World::new();
    world.topic("CloudEvents", &json!({}));
    assert_ne!(made_secret(&world, "one"), made_secret(&world, "two"));
}

/// During a rotation the old secret and the new one sign, with a space between.
#[test]
fn old_and_new_secret_both_sign_during_a_rotation() {
    let request = World::new().deliver(&cloud_event("1"), &signed_by(&[OTHER, SECRET]));
    assert_eq!(
        (
            signature::count_by(SECRET, &request),
            signature::count_by(OTHER, &request)
        ),
        (1, 1)
    );
    assert_eq!(
        request
            .header("webhook-signature")
            .map(|value| value.split(' ').count()),
        Some(2)
    );
}

/// A subscription's new key of `v1a`, the `whpk_` half of it, and the next request. Its `v1` secret
/// goes on signing.
fn asymmetric(world: &World) -> (Value, Received) {
    let topic = world.topic("CloudEvents", &signed_by(&[SECRET]));
    let path = format!("/topics/{TOPIC}/subscriptions/billing/rotate-secret");
    let made = world
        .server
        .api()
        .manage("POST", &path, Some(&json!({ "kind": "v1a" })))
        .expect(200)
        .json();
    topic.publish(&cloud_event("1"));
    (made, world.endpoint.wait_for_one(HOOK))
}

/// True if a `whpk_` key verifies the request's `v1a` signature.
fn is_verified_by(public_key: &str, request: &Received) -> bool {
    let key = STANDARD
        .decode(public_key.strip_prefix("whpk_").expect("its prefix"))
        .expect("it is base64");
    let [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map(|name| request.header(name).expect("a request is signed"));
    let signature = signatures
        .split(' ')
        .find_map(|one| one.strip_prefix("v1a,"))
        .expect("there is one");
    let signature = STANDARD.decode(signature).expect("it is base64");
    let content = [format!("{id}.{timestamp}.").as_bytes(), &request.body].concat();
    UnparsedPublicKey::new(&ED25519, key)
        .verify(&content, &signature)
        .is_ok()
}

#[test]
fn an_asymmetric_signature_is_v1a_a_comma_and_base64_of_ed25519() {
    let (made, request) = asymmetric(&World::new());
    let public_key = made["publicKey"]
        .as_str()
        .expect("the public half is shown");
    assert!(is_verified_by(public_key, &request));
    let other = format!("whpk_{}", STANDARD.encode([7; 32]));
    assert!(!is_verified_by(&other, &request));
}

#[test]
fn an_asymmetric_key_is_whsk_and_its_public_half_whpk() {
    let (made, _) = asymmetric(&World::new());
    let key = made["secret"]
        .as_str()
        .and_then(|text| text.strip_prefix("whsk_"))
        .expect("its prefix");
    assert!(
        STANDARD
            .decode(key)
            .is_ok_and(|bytes| [32, 64].contains(&bytes.len())),
        "{} bytes",
        key.len()
    );
    assert!(
        made["publicKey"]
            .as_str()
            .is_some_and(|text| text.starts_with("whpk_"))
    );
}

#[test]
fn symmetric_and_asymmetric_signatures_stand_side_by_side() {
    let (_, request) = asymmetric(&World::new());
    let signatures = request
        .header("webhook-signature")
        .expect("a request is signed");
    let versions: BTreeSet<_> = signatures
        .split(' ')
        .filter_map(|one| one.split(',').next())
        .collect();
    assert_eq!(versions, BTreeSet::from(["v1", "v1a"]));
    assert_eq!(signature::count_by(SECRET, &request), 1);
}

/// Receivers fetch public keys from the sender and not from the request.
#[test]
fn receivers_fetch_public_keys_from_the_sender() {
    let world = World::new();
    let (made, request) = asymmetric(&world);
    let path = format!("/.well-known/webhook-keys?topic={TOPIC}&subscription=billing");
    let answer = world
        .server
        .api()
        .send("GET", &path, &[], b"")
        .expect("an answer")
        .expect(200);
    let keys = answer.json();
    let x = keys["keys"][0]["x"]
        .as_str()
        .expect("a key has its coordinate");
    let x = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(x)
        .expect("it is base64url");
    assert_eq!(made["publicKey"], format!("whpk_{}", STANDARD.encode(&x)));
    assert_eq!(
        (&keys["keys"][0]["kty"], &keys["keys"][0]["crv"]),
        (&json!("OKP"), &json!("Ed25519"))
    );
    assert!(
        !request
            .headers
            .iter()
            .any(|(_, value)| value.contains("whpk_"))
    );
}

/// A secret is rotated without a moment in which nobody can verify.
#[test]
fn secret_rotation_leaves_no_moment_without_verification() {
    let world = World::new();
    let topic = world.topic("CloudEvents", &signed_by(&[SECRET]));
    let path = format!("/topics/{TOPIC}/subscriptions/billing/rotate-secret");
    let made = world
        .server
        .api()
        .manage("POST", &path, None)
        .expect(200)
        .json();
    topic.publish(&cloud_event("1"));
    let request = world.endpoint.wait_for_one(HOOK);
    let new = made["secret"].as_str().expect("the new one is shown");
    assert_eq!(
        (
            signature::count_by(SECRET, &request),
            signature::count_by(new, &request)
        ),
        (1, 1)
    );
}

#[test]
fn a_receiver_chooses_its_event_types() {
    let world = World::new();
    let topic = world.topic(
        "CloudEvents",
        &json!({ "filter": { "includedEventTypes": ["order.paid"] } }),
    );
    let mut paid = cloud_event("paid");
    paid["type"] = json!("order.paid");
    topic.publish(&cloud_event("other"));
    topic.publish(&paid);
    assert_eq!(world.endpoint.wait_for_one(HOOK).ids(), ["paid"]);
}

#[test]
fn an_attempt_that_failed_is_made_again_until_it_succeeds() {
    let world = World::new();
    world.endpoint.on(HOOK, &[500, 404, 502, 504, 200]);
    // 404 is permanent unless a subscription says that for it nothing is.
    let more = json!({ "retryPolicy": { "permanentStatuses": [] } });
    let topic = world.topic("CloudEvents", &more);
    topic.publish(&cloud_event("1"));
    let requests = world.endpoint.wait_for(HOOK, 5);
    let counts: Vec<_> = requests
        .iter()
        .filter_map(|request| request.header("aeg-delivery-count"))
        .collect();
    assert_eq!(counts, ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_reset_connection_is_a_failure() {
    attempts_after(Answer::Close);
}

#[test]
fn a_timeout_is_a_failure() {
    let world = World::new();
    world
        .endpoint
        .script(HOOK, [Answer::Never, Answer::Status(200)]);
    let more = json!({ "endpoint": { "timeout": "PT1S" } });
    world.topic("CloudEvents", &more).publish(&cloud_event("1"));
    world.endpoint.wait_for(HOOK, 2);
}

#[test]
fn a_redirect_is_a_failure() {
    let requests = attempts_after(Answer::With(302, "location", "/elsewhere".to_owned()));
    assert_eq!(requests[1].header("aeg-delivery-count"), Some("1"));
}

#[test]
fn a_410_disables_the_endpoint() {
    let world = World::new();
    world.endpoint.on(HOOK, &[410]);
    world
        .topic("CloudEvents", &json!({}))
        .publish(&cloud_event("1"));
    world.dead_letter();
    assert_eq!(world.shown()["status"]["state"], "Disabled");
}

#[test]
fn retry_after_is_taken_into_account() {
    let requests = {
        let world = World::new();
        let later = Answer::With(503, "retry-after", "1".to_owned());
        world.endpoint.script(HOOK, [later, Answer::Status(200)]);
        let more = json!({ "retryPolicy": { "schedule": ["PT0S", "PT2S"] } });
        world.topic("CloudEvents", &more).publish(&cloud_event("1"));
        world.endpoint.wait_for(HOOK, 2)
    };
    assert!(requests[1].at >= requests[0].at + Duration::from_secs(1));
}

#[test]
fn private_and_internal_addresses_are_refused() {
    let world = World::new();
    for host in [
        "169.254.169.254",
        "10.0.0.1",
        "[::1]",
        "[::ffff:192.168.0.1]",
    ] {
        let problem = world.refusal(&json!({ "endpoint": { "url": format!("https://{host}/") } }));
        assert_eq!(
            problem["member"], "subscriptions.billing.endpoint.url",
            "{host}"
        );
    }
}

#[test]
fn an_event_goes_to_every_endpoint_that_wants_it() {
    let world = World::new();
    let paths = ["/one", "/two", "/three"];
    let subscriptions: serde_json::Map<_, _> = paths
        .iter()
        .map(|path| {
            (
                path[1..].to_owned(),
                subscription(&world.endpoint.url(path)),
            )
        })
        .collect();
    let topic = world
        .server
        .api()
        .create_topic(TOPIC, &json!({ "subscriptions": subscriptions }));
    topic.publish(&cloud_event("1"));
    for path in paths {
        assert_eq!(world.endpoint.wait_for_one(path).ids(), ["1"]);
    }
}

#[test]
fn failed_events_can_be_listed_with_the_reason() {
    let world = World::new();
    world.endpoint.on(HOOK, &[403]);
    world
        .topic("CloudEvents", &json!({}))
        .publish(&cloud_event("1"));
    world.dead_letter();
    let path = format!("/topics/{TOPIC}/subscriptions/billing/dead-letters");
    let listed = world.server.api().show(&path);
    let key = listed["deadLetters"][0]["object"]
        .as_str()
        .expect("there is one");
    let letters = world.server.api().show(&format!("/dead-letters/{key}"));
    assert_eq!(
        (&letters[0]["id"], &letters[0]["lastdeliveryoutcome"]),
        (&json!("1"), &json!("Forbidden"))
    );
}

#[test]
fn endpoints_are_added_listed_and_removed_by_an_api() {
    let world = World::new();
    world.topic("CloudEvents", &json!({}));
    let api = world.server.api();
    let list = "/topics/orders/subscriptions";
    let one = "/topics/orders/subscriptions/more";
    api.manage("PUT", one, Some(&world.subscription(&json!({}))))
        .expect(201);
    assert!(api.show(list).to_string().contains("\"more\""));
    api.manage("DELETE", one, None).expect(204);
    assert!(!api.show(list).to_string().contains("\"more\""));
}
