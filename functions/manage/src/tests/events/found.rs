//! Events that are found by what a user has, in any topic.

use std::time::Duration;

use posthaste_core::delivery_log::{LogDay, LogHour, LogRecord, LogResult};
use posthaste_delivery_log::DaySummary;
use posthaste_ports::ErrorKind;
use serde_json::{Value, json};

use super::{another, before, delivered, refused, write};
use crate::tests::memory::Memory;
use crate::tests::{Answer, Api};

/// The key of the summary of the day, in a store of its own.
const SUMMARY: &str = "2026-11-21";

const OBJECT: &str = "ORDERS/BILLING/2026/11/21/9/a.json";

async fn find(api: &Api, id: &str) -> Value {
    let answer = ask(api, id, "").await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

async fn ask(api: &Api, id: &str, query: &str) -> Answer {
    let encoded = id.bytes().fold(String::new(), |encoded, byte| {
        format!("{encoded}%{byte:02X}")
    });
    api.get(&format!("/events/-?id={encoded}{query}")).await
}

/// The topic, the id and the subscriptions of each event.
fn events(found: &Value) -> Vec<(String, String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let events = found["events"].as_array().unwrap().iter();
    events
        .map(|event| {
            let deliveries = event["deliveries"].as_array().unwrap().iter();
            let subscriptions = deliveries.map(|it| text(&it["subscription"])).collect();
            (text(&event["topic"]), text(&event["id"]), subscriptions)
        })
        .collect()
}

fn event(topic: &str, id: &str, subscriptions: &[&str]) -> (String, String, Vec<String>) {
    let subscriptions = subscriptions.iter().map(|name| (*name).to_owned());
    (topic.to_owned(), id.to_owned(), subscriptions.collect())
}

/// The same record in another topic.
fn in_topic(record: LogRecord, topic: &str) -> LogRecord {
    LogRecord {
        topic: topic.to_owned(),
        record_id: record.record_id.chars().rev().collect(),
        ..record
    }
}

#[tokio::test]
async fn event_is_found_without_its_topic() {
    let api = Api::with_billing().await;
    write(
        &api,
        "a",
        &[delivered("order-1", 70), delivered("order-2", 5)],
    );
    let found = find(&api, "order-1").await;
    assert_eq!(events(&found), [event("Orders", "order-1", &["Billing"])]);
    assert_eq!(found["id"], "order-1");
    assert_eq!(found["searchedFrom"], "2026-11-21T08:00:00.000Z");
    assert_eq!(found["completeUntil"], "2026-11-21T09:59:55.000Z");
    assert_eq!((found.get("note"), found.get("deadLetters")), (None, None));
    let plain = api.get("/events/order-1").await;
    assert_eq!(plain.json(), found);
}

#[tokio::test]
async fn id_of_several_topics_is_listed_for_all() {
    let api = Api::with_billing().await;
    let other = in_topic(delivered("order-1", 20), "invoices");
    write(&api, "a", &[delivered("order-1", 70), other]);
    let found = find(&api, "order-1").await;
    let expected = [
        event("invoices", "order-1", &["billing"]),
        event("Orders", "order-1", &["Billing"]),
    ];
    assert_eq!(events(&found), expected);
}

/// The attempts of one request lead to the event, and so to what other requests had it.
#[tokio::test]
async fn webhook_id_leads_to_the_whole_event() {
    let api = Api::with_billing().await;
    let to_audit = LogRecord {
        subscription: "audit".to_owned(),
        delivery_key: "other-0".to_owned(),
        webhook_id: Some("msg_d696566cadfa433ea894554ff54dd785".to_owned()),
        ..another(delivered("order-1", 30), 1)
    };
    write(
        &api,
        "a",
        &[refused("order-1", 70), to_audit, delivered("order-2", 5)],
    );
    for id in [
        "msg_d696566cadfa433ea894554ff54dd785",
        " msg_key-of-order-1\n",
    ] {
        let found = find(&api, id).await;
        let expected = [event("Orders", "order-1", &["audit", "Billing"])];
        assert_eq!(events(&found), expected, "{id}");
    }
}

/// A producer that forwards webhooks may use their ids for its events.
#[tokio::test]
async fn webhook_id_that_is_an_event_s_id_too_leads_to_both() {
    let api = Api::with_billing().await;
    let forwarded = in_topic(delivered("msg_key-of-order-1", 10), "forwarded");
    write(&api, "a", &[delivered("order-1", 70), forwarded]);
    let found = find(&api, "msg_key-of-order-1").await;
    let expected = [
        event("forwarded", "msg_key-of-order-1", &["billing"]),
        event("Orders", "order-1", &["Billing"]),
    ];
    assert_eq!(events(&found), expected);
}

#[tokio::test]
async fn key_of_a_dead_letter_leads_to_its_events() {
    let api = Api::with_billing().await;
    let letter = |id| json!({ "id": id, "type": "t", "deadletterreason": "EndpointGone" });
    let object = json!([letter("order-1"), letter("order-9")]).to_string();
    api.dead_letters.write(OBJECT, object);
    let dead = LogRecord {
        result: LogResult::DeadLettered,
        dead_letter_object: Some(OBJECT.to_owned()),
        ..delivered("order-1", 70)
    };
    // The same id in another topic is another event.
    let other = in_topic(delivered("order-1", 20), "invoices");
    write(&api, "a", &[dead, other]);
    let found = find(&api, OBJECT).await;
    assert_eq!(events(&found), [event("Orders", "order-1", &["Billing"])]);
    assert_eq!(
        found["events"][0]["deliveries"][0]["deadLetterObject"],
        OBJECT
    );
    let letters = found["deadLetters"].as_array().unwrap();
    let shown: Vec<_> = letters.iter().map(|it| (&it["id"], &it["index"])).collect();
    let ids = (json!("order-1"), json!("order-9"));
    assert_eq!(shown, [(&ids.0, &json!(0)), (&ids.1, &json!(1))]);
    assert_eq!(letters[0]["topic"], "Orders");
}

/// Dead letters stay longer than records.
#[tokio::test]
async fn dead_letter_without_records_is_shown() {
    let api = Api::with_billing().await;
    api.dead_letters.write(
        OBJECT,
        json!([{ "id": "order-1", "deadletterreason": "EndpointGone" }]).to_string(),
    );
    let found = find(&api, OBJECT).await;
    assert_eq!(
        (found["events"].clone(), found.get("searchedFrom")),
        (json!([]), None)
    );
    assert_eq!(found["deadLetters"][0]["reason"], "EndpointGone");
    api.dead_letters.write(OBJECT, "no JSON");
    let found = find(&api, OBJECT).await;
    let note = found["note"].as_str().unwrap();
    assert!(note.contains("The object cannot be read"), "{note}");
}

#[tokio::test]
async fn object_with_many_letters_is_shown_as_far_as_there_is_room() {
    let api = Api::with_billing().await;
    let letters: Vec<_> = (0..250)
        .map(|n| json!({ "id": format!("order-{n}"), "deadletterreason": "EndpointGone" }))
        .collect();
    api.dead_letters.write(OBJECT, json!(letters).to_string());
    write(&api, "a", &[delivered("order-1", 70)]);
    let found = find(&api, OBJECT).await;
    assert_eq!(found["deadLetters"].as_array().unwrap().len(), 100);
    let note = found["note"].as_str().unwrap();
    assert!(
        note.contains("250 dead letters, of which the first 100"),
        "{note}"
    );
}

#[tokio::test]
async fn unknown_text_finds_nothing_and_the_note_says_so() {
    let api = Api::with_billing().await;
    write(&api, "a", &[delivered("order-1", 70)]);
    for id in [
        "none",
        "msg_none-0",
        "ORDERS/BILLING/2026/11/21/9/none.json",
    ] {
        let found = find(&api, id).await;
        assert_eq!(found["events"], json!([]), "{id}");
        let note = found["note"].as_str().unwrap();
        assert!(note.contains("may be waiting"), "{note}");
        assert_eq!(found["searchedFrom"], "2026-11-21T08:00:00.000Z");
    }
    assert_eq!(api.get("/events/a/b").await.status, 404);
    let bad = ask(&api, "x", "&from=never").await;
    assert_eq!(bad.problem(400, "about:blank")["member"], "from");
}

#[tokio::test]
async fn ids_of_any_characters_are_found() {
    let api = Api::with_billing().await;
    for (ago, id) in (1..).zip([
        "a/b",
        "%41",
        "ü ?#",
        "..",
        "",
        " order-1",
        "\u{0}\n\"",
        "a+b",
    ]) {
        write(&api, &ago.to_string(), &[delivered(id, ago)]);
        let found = find(&api, id).await;
        assert_eq!(
            events(&found),
            [event("Orders", id, &["Billing"])],
            "{id:?}"
        );
    }
    let long = "👋".repeat(2_000);
    let kept: String = long.chars().take(1_024).collect();
    write(&api, "long", &[delivered(&kept, 50)]);
    assert_eq!(events(&find(&api, &long).await)[0].1, kept);
}

#[tokio::test]
async fn search_that_ends_early_says_how_far_it_came() {
    let api = Api::with_billing().await;
    for hours in 0..60 {
        write(
            &api,
            &hours.to_string(),
            &[delivered(&format!("order-{hours}"), hours * 60)],
        );
    }
    api.log.slow_reads(&api.clock, Duration::from_millis(500));
    let found = find(&api, "order-59").await;
    assert_eq!(found["events"], json!([]));
    assert_eq!(found["searchedFrom"], "2026-11-20T03:00:00.000Z");
    assert_eq!(found["isCutShort"], true);
    let note = found["note"].as_str().unwrap();
    assert!(
        note.contains("`to=2026-11-20T03:00:00.000Z` it goes on"),
        "{note}"
    );
    let next = ask(&api, "order-59", "&to=2026-11-20T03:00:00.000Z")
        .await
        .json();
    assert_eq!(events(&next), [event("Orders", "order-59", &["Billing"])]);
}

/// A summary that says that no hour has any id, made of other files than there are.
#[tokio::test]
async fn stale_summary_hides_nothing() {
    let api = Api::with_billing().await;
    write(
        &api,
        "a",
        &[delivered("order-1", 70), delivered("order-2", 5)],
    );
    let day = LogDay::containing(LogHour::containing(before(70)));
    let mut summary = DaySummary::new(day);
    summary.set_hour(LogHour::containing(before(70)), 77, Some(&[]));
    api.log.write("_summary/2026-11-21", summary.render());
    assert_eq!(events(&find(&api, "order-1").await).len(), 1);
}

/// A summary only saves reads. One that is cut off, cannot be read, or lies in a folder that does
/// not answer hides no event, and the answer says how far back it looked.
#[tokio::test]
async fn search_passes_over_summaries_that_cannot_be_read() {
    let hour = LogHour::containing(before(70));
    let mut summary = DaySummary::new(LogDay::containing(hour));
    summary.set_hour(hour, 77, Some(&[]));
    let summary = summary.render();
    let check = async |what: &str, change: fn(&Memory, Vec<u8>)| {
        let summaries = Memory::default();
        let api = Api::with_billing()
            .await
            .then_with_summaries_in(summaries.clone());
        write(
            &api,
            "a",
            &[delivered("order-1", 70), delivered("order-2", 5)],
        );
        change(&summaries, summary.to_vec());
        let found = find(&api, "order-1").await;
        let expected = [event("Orders", "order-1", &["Billing"])];
        assert_eq!(events(&found), expected, "{what}");
        assert_eq!(found["searchedFrom"], "2026-11-21T08:00:00.000Z", "{what}");
        assert_eq!(found.get("note"), None, "{what}");
    };
    check("cut off", |store, mut summary| {
        summary.pop();
        store.write(SUMMARY, summary);
    })
    .await;
    check("other bytes", |store, mut summary| {
        summary.fill(b'x');
        store.write(SUMMARY, summary);
    })
    .await;
    check("damaged on the disk", |store, summary| {
        store.write(SUMMARY, summary);
        store.damage(SUMMARY);
    })
    .await;
    check("denied", |store, summary| {
        store.write(SUMMARY, summary);
        store.fail(ErrorKind::Denied);
    })
    .await;
}

#[tokio::test]
async fn store_that_fails_is_a_problem() {
    let api = Api::with_billing().await;
    write(
        &api,
        "a",
        &[delivered("order-1", 70), delivered("order-2", 5)],
    );
    api.log.fail(ErrorKind::Other);
    assert_eq!(ask(&api, "order-1", "").await.status, 503);
}
