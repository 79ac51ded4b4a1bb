//! Events that are sent again by their ids, over files that the real writer made.

use bytes::Bytes;
use posthaste_core::api::events::IdInUrl;
use posthaste_core::delivery_log::{
    AttemptOrigin, LogRecord, LogResult, RecordKind, RecordPayload,
};
use posthaste_core::model::{
    DeadLetter, DeadLetterReason, Delivery, EventMarks, EventPayload, Timestamp,
};
use posthaste_core::pressure::{
    PressureSettings, PressureState, ResourceReadings, evaluate_pressure,
};
use posthaste_core::stored::dead_letter::dead_letter_record as dead_letter;
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::{DeadLetterArray, PRESSURE_KEY, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PutCondition};
use posthaste_testkit::records::{delivery, subscription_name, topic_name};
use serde_json::{Value, json};

use super::events::{another, before, delivered, refused};
use super::{Answer, Api};

/// The words of the note about an id that is made of a dead letter's place.
const ID_MADE: &str = "made of the dead letter's place";

const PATH: &str = "/topics/Orders/subscriptions/Billing/events";

fn event(id: &str) -> String {
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "order.paid" }).to_string()
}

/// The record with the payload of its event, as the first one of a delivery has it.
fn with_payload(record: LogRecord) -> LogRecord {
    let payload = RecordPayload::parse(&event(record.event_id.as_deref().unwrap()));
    LogRecord {
        payload,
        schema: Some("CloudEvents".to_owned()),
        ..record
    }
}

/// The record of an event that was given up.
fn dead(id: &str) -> LogRecord {
    LogRecord {
        result: LogResult::DeadLettered,
        next_attempt_at: None,
        ..refused(id, 20)
    }
}

/// Writes records into the log. Their events were accepted since the subscription was created.
fn write(api: &Api, records: &[LogRecord]) {
    let records: Vec<_> = records
        .iter()
        .map(|it| LogRecord {
            accepted_at: before(0),
            ..it.clone()
        })
        .collect();
    super::events::write(api, "a", &records);
}

async fn resend(api: &Api, id: &str, body: Value) -> Answer {
    let headers = [("content-type", "application/json")];
    api.call(
        "POST",
        &format!("{PATH}/{id}/resend"),
        &headers,
        body.to_string(),
    )
    .await
}

/// The delivery that the queue got, if there is one.
fn queued(api: &Api) -> Option<Delivery> {
    let bodies = api.queue.take_bodies();
    assert!(bodies.len() < 2, "{bodies:?}");
    bodies
        .into_iter()
        .next()
        .map(|body| parse_delivery(&body).unwrap())
}

/// Sends the event again. Checks the delivery, and whether the answer says that a copy still waits.
async fn check(records: &[LogRecord], id: &str, webhook_id: &str, still_waits: bool) {
    let api = Api::with_billing().await;
    write(&api, records);
    let answer = resend(&api, id, json!({})).await;
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    assert_eq!(
        answer.header("location"),
        format!("/topics/Orders/events/{id}")
    );
    let body = answer.json();
    assert_eq!(
        (&body["id"], &body["webhookId"]),
        (&json!(id), &json!(webhook_id))
    );
    assert_eq!(
        body["note"].as_str().unwrap().contains("still waits"),
        still_waits,
        "{body}"
    );
    assert_eq!(
        body.get("earlierWaits"),
        still_waits.then_some(&json!(true)),
        "{body}"
    );
    let delivery = queued(&api).expect("a delivery");
    let entry = &delivery.events[0];
    assert_eq!((delivery.attempts, &json!(entry.key)), (0, &body["key"]));
    assert_eq!(entry.payload, EventPayload::Inline(Bytes::from(event(id))));
    let webhook_id = Some(webhook_id.to_owned());
    assert_eq!(
        entry.marks,
        EventMarks {
            replayed: true,
            resent: true,
            webhook_id,
            earlier: entry.marks.earlier,
            ..EventMarks::default()
        }
    );
    // Its first acceptance stays, and by hand nothing is counted.
    let life = entry.marks.earlier.expect("a life before");
    assert!(life.accepted_at <= delivery.published_at);
    assert_eq!(life.recoveries, 0);
}

#[tokio::test]
async fn an_event_is_sent_again_whatever_became_of_it() {
    check(
        &[with_payload(delivered("1", 30))],
        "1",
        "msg_key-of-1",
        false,
    )
    .await;
    check(&[with_payload(refused("2", 30))], "2", "msg_key-of-2", true).await;
    let held = LogRecord {
        kind: RecordKind::Held,
        result: LogResult::Held,
        ..refused("3", 20)
    };
    check(
        &[with_payload(refused("3", 30)), another(held, 1)],
        "3",
        "msg_key-of-3",
        true,
    )
    .await;
    check(
        &[with_payload(refused("4", 30)), another(dead("4"), 2)],
        "4",
        "msg_key-of-4",
        false,
    )
    .await;
}

/// An event of another schema, and one whose id has slashes, can be sent again.
#[tokio::test]
async fn event_of_another_schema_or_with_slashes_is_resent() {
    let api = Api::with_billing().await;
    let id = "a/b c";
    write(&api, &[with_payload(delivered(id, 30))]);
    let answer = resend(&api, "a%2Fb%20c", json!({})).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (202, "/topics/Orders/events/-?id=a%2Fb+c")
    );
    assert_eq!(
        queued(&api).unwrap().events[0].payload,
        EventPayload::Inline(Bytes::from(event(id)))
    );
}

/// The path is decoded once: an id that looks like an escape is not the one that it stands for.
#[tokio::test]
async fn id_that_looks_like_an_escape_is_sent_again_as_it_is() {
    let api = Api::with_billing().await;
    let other = with_payload(another(delivered("aA", 30), 1));
    write(&api, &[with_payload(delivered("a%41", 30)), other]);
    let answer = resend(&api, "a%2541", json!({})).await;
    assert_eq!((answer.status, &answer.json()["id"]), (202, &json!("a%41")));
    assert_eq!(
        queued(&api).unwrap().events[0].payload,
        EventPayload::Inline(Bytes::from(event("a%41")))
    );
}

#[tokio::test]
async fn an_id_of_dots_has_a_path_that_is_no_step() {
    let api = Api::with_billing().await;
    let location = "/topics/Orders/events/-?id=a%2F..%2Fb+c";
    write(&api, &[with_payload(delivered("a/../b c", 30))]);
    let path = format!("{PATH}/-/resend?id=a/../b%20c");
    let answer = api.call("POST", &path, &[], String::new()).await;
    assert_eq!((answer.status, answer.header("location")), (202, location));
    let shown = api.get(location).await;
    assert_eq!(shown.json()["id"], "a/../b c");
}

/// A long id leads to its event by `Location`, and to its dead letter where the log has none.
#[tokio::test]
async fn event_with_a_long_id_is_resent_from_log_and_dead_letter() {
    for is_in_log in [true, false] {
        let api = Api::with_billing().await;
        let whole = "日%".repeat(1_000);
        let kept: String = whole.chars().take(1_024).collect();
        bury_all(&api, "1", &[event(&whole)]);
        if is_in_log {
            write(&api, &[with_payload(delivered(&kept, 30))]);
        }
        let in_url = IdInUrl::for_id(&whole);
        let (name, value) = in_url.query_parameter().unwrap();
        let path = format!("{PATH}/-/resend?{name}={value}");
        let answer = api.call("POST", &path, &[], String::new()).await;
        let location = format!("/topics/Orders/events/-?{name}={value}");
        assert_eq!(
            (answer.status, answer.header("location")),
            (202, &*location)
        );
        let shown = api.get(&location).await;
        assert_eq!(shown.json()["id"], *kept);
    }
}

/// Another subscription has more records of the id than a look-up answers, all of them newer.
#[tokio::test]
async fn records_of_other_subscriptions_hide_none() {
    let api = Api::with_billing().await;
    let of_audit = |attempt| LogRecord {
        subscription: "audit".to_owned(),
        ..another(refused("1", 20), attempt)
    };
    let records: Vec<_> = (1..=1_001)
        .map(of_audit)
        .chain([with_payload(delivered("1", 30))])
        .collect();
    write(&api, &records);
    assert_eq!(resend(&api, "1", json!({})).await.status, 202);
}

/// A log of forty hours of event 1, of which each read takes longer than a search has.
async fn slow_log() -> Api {
    let api = Api::with_billing().await;
    let hours: Vec<_> = (0..40)
        .map(|hour| with_payload(delivered("1", hour * 60)))
        .collect();
    write(&api, &hours);
    api.log
        .slow_reads(&api.clock, std::time::Duration::from_secs(11));
    api
}

#[tokio::test]
async fn a_search_that_did_not_end_is_told_from_an_id_that_is_nowhere() {
    for body in [json!({}), json!({ "key": "x" })] {
        let problem = resend(&slow_log().await, "2", body)
            .await
            .problem(404, "about:blank");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("only searched back to 2026-11-2"),
            "{detail}"
        );
    }
}

/// An event found by a search that did not end is sent, and the note says how far it searched.
#[tokio::test]
async fn event_found_by_an_unfinished_search_is_sent_with_a_note() {
    let api = slow_log().await;
    bury(&api, "2");
    for (id, is_new) in [("2", true), ("1", false)] {
        let answer = resend(&api, id, json!({})).await;
        assert_eq!(answer.status, 202, "{:?}", answer.body);
        let note = answer.json()["note"].as_str().unwrap().to_owned();
        assert!(note.contains("only searched back to 2026-11-2"), "{note}");
        assert!(
            answer.json()["searchedFrom"]
                .as_str()
                .unwrap()
                .starts_with("2026-11-2"),
            "{note}"
        );
        assert_eq!(note.contains(ID_MADE), is_new, "{note}");
        assert!(!note.contains("does not have the event"), "{note}");
    }
}

/// The table refuses `bulk` at Medium, and a replay of one is one of that tier.
#[tokio::test]
async fn event_that_is_sent_again_waits_as_a_replay_does() {
    let api = Api::with_billing().await;
    write(&api, &[with_payload(delivered("1", 30))]);
    let at_level = async |visible, drain_secs| {
        let now = api.clock.now();
        let readings = ResourceReadings {
            visible: Some(visible),
            drain_secs: Some(drain_secs),
            ..ResourceReadings::default()
        };
        let settings = PressureSettings::default();
        let (state, _) = evaluate_pressure(&PressureState::normal(now), &readings, &settings, now);
        let put = api
            .state
            .put(PRESSURE_KEY, state.render().into(), PutCondition::Always);
        put.await.unwrap();
        resend(&api, "1", json!({})).await
    };
    let refused = at_level(10, 60).await;
    let problem = refused.json();
    assert_eq!(
        (refused.status, &problem["resource"]),
        (503, &json!("drain-time"))
    );
    assert_eq!(refused.headers["retry-after"], "10");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.ends_with("nothing was sent; send the event again after the wait"),
        "{detail}"
    );
    assert_eq!(queued(&api), None);
    assert_eq!(at_level(10, 0).await.status, 202);
    assert!(queued(&api).is_some());
}

#[tokio::test]
async fn two_requests_make_two_deliveries_under_one_webhook_id() {
    let api = Api::with_billing().await;
    write(&api, &[with_payload(delivered("1", 30))]);
    let keys = [
        resend(&api, "1", json!({})).await,
        resend(&api, "1", json!({})).await,
    ]
    .map(|answer| {
        (
            answer.json()["key"].clone(),
            answer.json()["webhookId"].clone(),
        )
    });
    assert_ne!(keys[0].0, keys[1].0);
    assert_eq!(keys[0].1, keys[1].1);
    assert_eq!(api.queue.take_bodies().len(), 2);
}

#[tokio::test]
async fn repeated_id_needs_a_key_to_name_its_event() {
    let api = Api::with_billing().await;
    let other = LogRecord {
        delivery_key: "other".to_owned(),
        ..with_payload(delivered("1", 10))
    };
    write(
        &api,
        &[with_payload(delivered("1", 30)), another(other, 1)].map(|record| LogRecord {
            origin: AttemptOrigin::First,
            ..record
        }),
    );
    let problem = resend(&api, "1", json!({}))
        .await
        .problem(409, "several-deliveries");
    let detail = "2 events have this id; name one of their keys: key-of-1, other";
    assert_eq!(
        (&problem["detail"], &problem["member"]),
        (&json!(detail), &json!("key"))
    );
    let answer = resend(&api, "1", json!({ "key": "other" })).await;
    assert_eq!(
        (answer.status, &answer.json()["webhookId"]),
        (202, &json!("msg_other"))
    );
    assert_eq!(
        resend(&api, "1", json!({ "key": "none" })).await.status,
        404
    );
    assert_eq!(api.queue.take_bodies().len(), 1);
}

#[tokio::test]
async fn a_copy_that_was_sent_again_is_no_second_event() {
    let api = Api::with_billing().await;
    let copy = LogRecord {
        delivery_key: "copy".to_owned(),
        ..with_payload(refused("1", 10))
    };
    write(
        &api,
        &[
            with_payload(delivered("1", 30)),
            LogRecord {
                origin: AttemptOrigin::Resend,
                ..another(copy, 1)
            },
        ],
    );
    let answer = resend(&api, "1", json!({})).await;
    assert_eq!(
        (answer.status, &answer.json()["webhookId"]),
        (202, &json!("msg_key-of-1"))
    );
    assert!(
        answer.json()["note"]
            .as_str()
            .unwrap()
            .contains("still waits")
    );
}

#[tokio::test]
async fn a_large_event_is_sent_again_while_its_stored_payload_lasts() {
    let api = Api::with_billing().await;
    let reference = Some("payloads/20261120/x".to_owned());
    let large = LogRecord {
        payload: None,
        payload_reference: reference,
        ..with_payload(delivered("1", 30))
    };
    write(&api, &[large]);
    let problem = resend(&api, "1", json!({}))
        .await
        .problem(410, "payload-gone");
    assert_eq!(
        problem["detail"],
        "its payload was kept until 2026-12-05T00:00:00.000Z"
    );
    api.state.write("payloads/20261120/x", event("1"));
    assert_eq!(resend(&api, "1", json!({})).await.status, 202);
    assert_eq!(
        queued(&api).unwrap().events[0].payload,
        EventPayload::Inline(Bytes::from(event("1")))
    );
}

/// Writes the dead letter of an event. Answers its object's key.
fn bury(api: &Api, id: &str) -> String {
    bury_all(api, id, &[event(id)])
}

/// Writes the dead letters of events into one object. Answers its key.
fn bury_all(api: &Api, name: &str, events: &[String]) -> String {
    bury_at(api, name, events, before(0))
}

/// The same of events that were accepted at this time.
fn bury_at(api: &Api, name: &str, events: &[String], at: Timestamp) -> String {
    let topic = topic_name("Orders");
    let subscription = subscription_name("Billing");
    let mut gathered = DeadLetterArray::default();
    for event in events {
        let payload = Bytes::from(event.clone());
        let delivery = delivery(
            (topic.clone(), subscription.clone()),
            "k",
            [EventPayload::Inline(payload.clone())],
            at,
        );
        let reason = DeadLetterReason::MaxDeliveryAttemptsExceeded;
        let letter = DeadLetter::new(reason, delivery);
        let written = dead_letter(&letter, &letter.delivery.events[0], &payload);
        gathered.push(&as_of_0_1_0(&written));
    }
    let key = layout::dead_letter_key(&topic, &subscription, at, name);
    api.dead_letters.write(&key, gathered.into_object());
    key
}

/// A dead letter without what release 0.1 did not write.
fn as_of_0_1_0(letter: &Bytes) -> Bytes {
    let text = std::str::from_utf8(letter).unwrap();
    let former = text.replace(r#","deliverykey":"k-0","webhookid":"msg_k-0""#, "");
    assert_ne!(former, text);
    former.into()
}

/// Has the one dead letter of an object say its delivery and its id, as this release does.
async fn name_letter(api: &Api, object: &str, key: &str, webhook_id: &str) {
    let letters = api.dead_letters.get(object).await.unwrap().unwrap();
    let letters = String::from_utf8(letters.bytes.to_vec()).unwrap();
    let open = letters.strip_suffix("}]").unwrap();
    let named = format!(r#"{open},"deliverykey":"{key}","webhookid":"{webhook_id}"}}]"#);
    api.dead_letters.write(object, named);
}

#[tokio::test]
async fn a_dead_letter_has_the_payload_where_the_log_has_none() {
    let api = Api::with_billing().await;
    let key = bury(&api, "1");
    let written = LogRecord {
        kind: RecordKind::DeadLettered,
        dead_letter_object: Some(key.clone()),
        ..dead("1")
    };
    write(&api, &[refused("1", 30), another(written, 1)]);
    let answer = resend(&api, "1", json!({})).await;
    assert_eq!(
        (answer.status, &answer.json()["webhookId"]),
        (202, &json!("msg_key-of-1"))
    );
    assert_eq!(
        queued(&api).unwrap().events[0].payload,
        EventPayload::Inline(Bytes::from(event("1")))
    );
    api.dead_letters.delete(&key).await.unwrap();
    let problem = resend(&api, "1", json!({}))
        .await
        .problem(410, "payload-gone");
    assert_eq!(
        problem["detail"],
        format!(
            "its payload was in the dead letter {key}, which is gone or does not tell it from others"
        )
    );
}

/// Ids that begin alike are one in the log.
#[tokio::test]
async fn letter_that_may_be_of_another_event_is_not_sent() {
    let sent = async |sources: &[&str], accepted_at: Timestamp| {
        let api = Api::with_billing().await;
        let events: Vec<_> = sources.iter().map(|source| event_from(source)).collect();
        let key = bury_at(&api, "x", &events, accepted_at);
        let written = LogRecord {
            kind: RecordKind::DeadLettered,
            dead_letter_object: Some(key),
            ..dead("1")
        };
        write(&api, &[refused("1", 30), another(written, 1)]);
        resend(&api, "1", json!({})).await.status
    };
    let later = Timestamp::from_millis(before(0).as_millis() + 1);
    assert_eq!(sent(&["/a"], before(0)).await, 202);
    assert_eq!(sent(&["/a", "/a"], before(0)).await, 202);
    assert_eq!(sent(&["/a", "/b"], before(0)).await, 410);
    assert_eq!(sent(&["/a"], later).await, 410);
}

#[tokio::test]
async fn without_a_log_the_dead_letters_are_searched() {
    let api = Api::with_billing().await;
    for id in ["1", "2"] {
        bury(&api, id);
    }
    let answer = resend(&api, "2", json!({})).await;
    let entry = queued(&api).unwrap().events.remove(0);
    let body = answer.json();
    assert_eq!(
        (answer.status, body["webhookId"].as_str()),
        (202, entry.marks.webhook_id.as_deref())
    );
    assert!(body["note"].as_str().unwrap().contains(ID_MADE), "{body}");
    // The same each time.
    let again = resend(&api, "2", json!({})).await;
    assert_eq!(again.json()["webhookId"], body["webhookId"]);
}

#[tokio::test]
async fn dead_letter_that_says_its_delivery_and_its_id_keeps_it() {
    let api = Api::with_billing().await;
    let object = bury(&api, "1");
    name_letter(&api, &object, "k-7", "msg_first-3").await;
    let place = json!({ "object": object, "index": 0 });
    for body in [
        json!({}),
        json!({ "key": "k-7" }),
        json!({ "deadLetter": place }),
    ] {
        let answer = resend(&api, "1", body.clone()).await;
        assert_eq!(
            (answer.status, &answer.json()["webhookId"]),
            (202, &json!("msg_first-3")),
            "{body}"
        );
        let note = answer.json()["note"].as_str().unwrap().to_owned();
        assert!(!note.contains(ID_MADE), "{note}");
    }
    let other = resend(&api, "1", json!({ "key": "k-8" })).await;
    assert_eq!(other.status, 404);
}

#[tokio::test]
async fn event_gets_a_new_webhook_id_where_it_is_asked_for() {
    let api = Api::with_billing().await;
    let object = bury(&api, "1");
    name_letter(&api, &object, "k-7", "msg_first-3").await;
    let answer = resend(&api, "1", json!({ "newId": true })).await;
    let entry = queued(&api).unwrap().events.remove(0);
    assert_eq!(
        answer.json()["webhookId"],
        json!(format!("msg_{}", entry.key))
    );
    assert_eq!(entry.marks.webhook_id, None);
}

/// A key that the log does not have sends no dead letter of the same event id.
#[tokio::test]
async fn key_missing_in_the_log_sends_no_dead_letter() {
    let api = Api::with_billing().await;
    bury(&api, "1");
    assert_eq!(
        resend(&api, "1", json!({ "key": "none" })).await.status,
        404
    );
    assert!(queued(&api).is_none());
}

#[tokio::test]
async fn refused_resends_say_why() {
    let api = Api::with_billing().await;
    resend(&api, "1", json!({}))
        .await
        .problem(404, "about:blank");
    write(&api, &[delivered("2", 30)]);
    resend(&api, "2", json!({}))
        .await
        .problem(410, "payload-gone");
    resend(&api, "2", json!({ "kye": "x" }))
        .await
        .problem(400, "bad-settings");
    let nowhere = api
        .call(
            "POST",
            "/topics/Orders/subscriptions/none/events/1/resend",
            &[],
            "",
        )
        .await;
    nowhere.problem(404, "unknown-subscription");
    assert_eq!(queued(&api), None);
}

#[tokio::test]
async fn a_disabled_subscription_gets_nothing_again() {
    let api = Api::with_billing().await;
    write(&api, &[with_payload(delivered("1", 30))]);
    let path = "/topics/Orders/subscriptions/Billing/disable";
    assert_eq!(api.call("POST", path, &[], "").await.status, 200);
    resend(&api, "1", json!({}))
        .await
        .problem(409, "wrong-state");
}

#[tokio::test]
async fn a_store_that_fails_is_a_problem_and_nothing_is_queued() {
    let api = Api::with_billing().await;
    write(&api, &[with_payload(delivered("1", 30))]);
    api.log.fail(ErrorKind::TimedOut);
    resend(&api, "1", json!({}))
        .await
        .problem(503, "unavailable");
    assert_eq!(queued(&api), None);
}

/// Event 1 from this source.
fn event_from(source: &str) -> String {
    json!({ "specversion": "1.0", "id": "1", "source": source, "type": "order.paid" }).to_string()
}

#[tokio::test]
async fn a_dead_letter_is_sent_by_its_place_although_its_id_repeats() {
    let api = Api::with_billing().await;
    let events = ["/a", "/b"].map(event_from);
    let object = bury_all(&api, "x", &events);
    write(&api, &[with_payload(delivered("1", 5))]);
    for (index, event) in events.into_iter().enumerate() {
        let answer = resend(
            &api,
            "1",
            json!({ "deadLetter": { "object": object, "index": index } }),
        )
        .await;
        assert_eq!(answer.status, 202, "{:?}", answer.body);
        let note = answer.json()["note"].as_str().unwrap().to_owned();
        assert!(note.contains(ID_MADE), "{note}");
        let entry = queued(&api).unwrap().events.remove(0);
        assert_eq!(entry.payload, EventPayload::Inline(Bytes::from(event)));
        let letter = entry.marks.letter.unwrap();
        assert_eq!((letter.object, letter.index), (object.clone(), index));
    }
}

#[tokio::test]
async fn a_dead_letter_keeps_the_webhook_id_of_its_delivery() {
    let api = Api::with_billing().await;
    let object = bury(&api, "1");
    let written = LogRecord {
        kind: RecordKind::DeadLettered,
        dead_letter_object: Some(object.clone()),
        ..dead("1")
    };
    let newer = LogRecord {
        delivery_key: "newer".to_owned(),
        ..with_payload(delivered("1", 5))
    };
    write(
        &api,
        &[
            refused("1", 30),
            another(written, 1),
            LogRecord {
                origin: AttemptOrigin::First,
                ..another(newer, 2)
            },
        ],
    );
    let answer = resend(
        &api,
        "1",
        json!({ "deadLetter": { "object": object, "index": 0 } }),
    )
    .await;
    assert_eq!(
        (answer.status, &answer.json()["webhookId"]),
        (202, &json!("msg_key-of-1"))
    );
    assert_eq!(
        queued(&api).unwrap().events[0].payload,
        EventPayload::Inline(Bytes::from(event("1")))
    );
}

#[tokio::test]
async fn a_place_without_the_dead_letter_sends_nothing() {
    let api = Api::with_billing().await;
    let object = bury(&api, "1");
    let check = async |id: &str, place: Value, status: u16| {
        let answer = resend(&api, id, json!({ "deadLetter": place })).await;
        assert_eq!(answer.status, status, "{place}: {:?}", answer.body);
    };
    check("1", json!({ "object": object, "index": 1 }), 404).await;
    check("2", json!({ "object": object, "index": 0 }), 404).await;
    check(
        "1",
        json!({ "object": "ORDERS/BILLING/x", "index": 0 }),
        404,
    )
    .await;
    check("1", json!({ "object": "ORDERS/OTHER/x", "index": 0 }), 400).await;
    check("1", json!({ "object": object }), 400).await;
    let both = json!({ "key": "k", "deadLetter": { "object": object, "index": 0 } });
    assert_eq!(
        resend(&api, "1", both).await.problem(400, "bad-settings")["member"],
        "key"
    );
    assert!(queued(&api).is_none());
}

/// The search for the event takes seconds: what is true after it decides.
#[tokio::test]
async fn subscription_that_changed_during_the_search_gets_nothing() {
    for (change, status, kind) in [
        ("disable", 409, "wrong-state"),
        ("delete", 404, "unknown-subscription"),
        ("again", 404, "unknown-subscription"),
    ] {
        let api = Api::with_billing().await;
        write(&api, &[with_payload(delivered("order-1", 20))]);
        let text = api.state.read("topics/orders.json").unwrap();
        let mut record: Value = serde_json::from_slice(&text).unwrap();
        let subscriptions = &mut record["settings"]["subscriptions"];
        match change {
            "disable" => subscriptions["Billing"]["status"]["state"] = "Disabled".into(),
            "delete" => *subscriptions = json!({}),
            _ => record["creations"]["subscriptions"]["Billing"]["id"] = "ffffffffffff".into(),
        }
        let state = api.state.clone();
        let changed = record.to_string();
        api.log
            .when_read(move || state.write("topics/orders.json", changed.clone()));
        resend(&api, "order-1", json!({}))
            .await
            .problem(status, kind);
        assert_eq!(queued(&api), None, "{change}");
    }
}
