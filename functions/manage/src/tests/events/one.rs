use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use posthaste_core::delivery_log::{LogRecord, LogResult, RecordKind, RecordPayload};
use posthaste_core::model::{LOG_LOOK_UP_RECORDS_MAX, Timestamp};
use posthaste_ports::ErrorKind;
use serde_json::{Value, json};

use super::{another, before, delivered, key, refused, write};
use crate::tests::{Answer, Api};

async fn ask(api: &Api, id: &str, query: &str) -> Answer {
    let encoded = id.bytes().fold(String::new(), |encoded, byte| {
        format!("{encoded}%{byte:02X}")
    });
    api.get(&format!("/topics/Orders/events/{encoded}?{query}"))
        .await
}

fn deliveries(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()["deliveries"].as_array().unwrap().clone()
}

#[tokio::test]
async fn an_event_is_shown_with_its_deliveries_and_attempts() {
    let api = Api::with_billing().await;
    let first = LogRecord {
        event_source: Some("/shop".to_owned()),
        endpoint: Some("https://billing.example.com/hooks".to_owned()),
        payload: RecordPayload::parse(r#"{"id":"order-1"}"#),
        ..refused("order-1", 70)
    };
    let second = LogRecord {
        time: before(1),
        ..another(delivered("order-1", 70), 2)
    };
    write(&api, "a", &[first, second, delivered("order-2", 1)]);
    let answer = ask(&api, "order-1", "").await;
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (200, "no-store")
    );
    let attempt = json!({ "at": "2026-11-21T09:59:00.000Z", "durationMs": 12, "number": 2,
        "status": 200, "outcome": "Delivered", "answer": "thanks", "answerType": "text/plain",
        "webhookId": "msg_key-of-order-1", "origin": "retry" });
    let failed = json!({ "at": "2026-11-21T08:50:00.000Z", "durationMs": 12, "number": 1,
        "status": 503, "outcome": "Busy", "answer": "thanks", "answerType": "text/plain",
        "webhookId": "msg_key-of-order-1", "origin": "first",
        "endpoint": "https://billing.example.com/hooks" });
    let delivery = json!({ "key": "key-of-order-1", "subscription": "Billing", "state": "delivered",
        "source": "/shop", "type": "order.paid", "acceptedAt": "2026-11-21T08:50:00.000Z",
        "expiresAt": "2026-11-22T08:50:00.000Z", "resendableUntil": "2026-11-28T08:50:00.000Z",
        "attempts": [failed, attempt] });
    let expected = json!({ "id": "order-1", "state": "delivered", "deliveries": [delivery],
        "completeUntil": "2026-11-21T09:59:55.000Z" });
    assert_eq!(answer.json(), expected);
    let shown = deliveries(&ask(&api, "order-1", "payload=true").await);
    assert_eq!(shown[0]["payload"], json!({ "id": "order-1" }));
}

#[tokio::test]
async fn each_state_is_said() {
    let api = Api::with_billing().await;
    let held = LogRecord {
        kind: RecordKind::Held,
        result: LogResult::Held,
        attempt: 0,
        ..delivered("held", 5)
    };
    let dead = LogRecord {
        result: LogResult::DeadLettered,
        reason: Some("EndpointGone".to_owned()),
        dead_letter_object: Some("ORDERS/BILLING/x.json".to_owned()),
        ..delivered("dead", 5)
    };
    let dropped = LogRecord {
        kind: RecordKind::Expired,
        result: LogResult::Dropped,
        ..delivered("dropped", 5)
    };
    write(&api, "a", &[refused("waiting", 5), held, dead, dropped]);
    let check = async |id: &str, state: &str, member: &str, value: Value, attempts: usize| {
        let shown = deliveries(&ask(&api, id, "").await).remove(0);
        assert_eq!(
            (&shown["state"], shown.get(member)),
            (&json!(state), Some(&value)),
            "{shown}"
        );
        assert_eq!(shown["attempts"].as_array().unwrap().len(), attempts);
    };
    check(
        "waiting",
        "waiting",
        "nextAttemptAt",
        json!("2026-11-21T09:55:10.000Z"),
        1,
    )
    .await;
    check("held", "held", "type", json!("order.paid"), 0).await;
    check(
        "dead",
        "dead-lettered",
        "deadLetterObject",
        json!("ORDERS/BILLING/x.json"),
        1,
    )
    .await;
    check("dead", "dead-lettered", "reason", json!("EndpointGone"), 1).await;
    check("dropped", "dropped", "type", json!("order.paid"), 0).await;
}

/// The state of the event, and those of its subscriptions.
async fn states(api: &Api, query: &str) -> String {
    let event = ask(api, "order-1", query).await.json();
    let deliveries = event["deliveries"].as_array().unwrap().iter();
    let of_each = deliveries.map(|one| format!(" {}={}", one["subscription"], one["state"]));
    let text = format!("{}:{}", event["state"], of_each.collect::<String>());
    text.replace('"', "")
}

#[tokio::test]
async fn subscription_without_a_record_is_pending() {
    let api = Api::with_billing().await;
    let first = LogRecord {
        matched: Some("audit,billing".to_owned()),
        ..delivered("order-1", 70)
    };
    let accepted = first.accepted_at;
    let second = LogRecord {
        record_id: "second".to_owned(),
        time: before(5),
        subscription: "audit".to_owned(),
        ..first.clone()
    };
    write(&api, "a", &[first]);
    assert_eq!(
        states(&api, "").await,
        "pending: audit=pending Billing=delivered"
    );
    write(&api, "b", &[second]);
    assert_eq!(
        states(&api, "").await,
        "delivered: audit=delivered Billing=delivered"
    );
    // What is outside of the time that is asked for is not missing.
    let after = accepted + Duration::from_secs(1);
    assert_eq!(
        states(&api, &format!("from={after}")).await,
        "delivered: audit=delivered"
    );
    let until = format!("from={accepted}&to={after}");
    assert_eq!(
        states(&api, &until).await,
        "pending: audit=pending Billing=delivered"
    );
}

/// A delivery is unknown only where a day passed without a record of it. A period that ends before
/// says nothing of what came later.
#[tokio::test]
async fn delivery_without_a_record_is_pending_until_the_period_ends() {
    let api = Api::with_billing().await;
    let first = LogRecord {
        matched: Some("audit,billing".to_owned()),
        ..delivered("order-1", 70)
    };
    let accepted = first.accepted_at;
    write(&api, "a", &[first]);
    api.clock.advance(Duration::from_hours(48));
    let unknown = "unknown: audit=unknown Billing=delivered";
    assert_eq!(states(&api, "").await, unknown);
    let until = format!("to={}", accepted + Duration::from_hours(1));
    assert_eq!(
        states(&api, &until).await,
        "pending: audit=pending Billing=delivered"
    );
}

#[tokio::test]
async fn accepted_event_is_no_delivery_but_those_of_its_subscriptions() {
    let api = Api::with_billing().await;
    let accepted = LogRecord {
        kind: RecordKind::Accepted,
        result: LogResult::Pending,
        subscription: String::new(),
        attempt: 0,
        matched: Some("billing".to_owned()),
        ..delivered("order-1", 5)
    };
    let unmatched = LogRecord {
        result: LogResult::Unmatched,
        matched: None,
        ..accepted.clone()
    };
    write(&api, "a", &[accepted]);
    assert_eq!(states(&api, "").await, "pending: Billing=pending");
    let api = Api::with_billing().await;
    write(&api, "a", &[unmatched]);
    assert_eq!(states(&api, "").await, "unmatched:");
    let answer = ask(&api, "order-1", "").await;
    assert_eq!(answer.json().get("note"), None);
}

#[tokio::test]
async fn an_event_that_is_not_in_the_log_may_be_waiting() {
    let api = Api::with_billing().await;
    for files in [false, true] {
        if files {
            write(&api, "a", &[delivered("order-1", 5)]);
        }
        let answer = ask(&api, "order-2", "").await;
        assert_eq!(deliveries(&answer), Vec::<Value>::new());
        let note = answer.json()["note"].as_str().unwrap().to_owned();
        assert!(
            note.contains("may be waiting") && !note.contains("not accepted"),
            "{note}"
        );
    }
}

/// A topic that was deleted still has its log, and a misspelled one is answered with 404.
#[tokio::test]
async fn deleted_topic_keeps_its_log_and_a_misspelled_one_is_404() {
    let api = Api::new();
    write(&api, "a", &[delivered("order-1", 5)]);
    assert_eq!(
        deliveries(&ask(&api, "order-1", "").await)[0]["subscription"],
        "billing"
    );
    ask(&api, "order-2", "").await.problem(404, "unknown-topic");
    api.get("/topics/order/events/order-1")
        .await
        .problem(404, "unknown-topic");
}

#[tokio::test]
async fn a_log_that_is_off_says_so() {
    let api = Api::with_billing().await;
    write(&api, "a", &[delivered("order-1", 5)]);
    let note = async |mode: &str| {
        assert_eq!(
            api.put("/topics/orders", json!({ "deliveryLog": mode }))
                .await
                .status,
            200
        );
        let notes = [
            ask(&api, "order-1", "").await,
            api.get("/topics/orders/events").await,
        ];
        notes.map(|answer| {
            answer
                .json()
                .get("note")
                .and_then(Value::as_str)
                .map(str::to_owned)
        })
    };
    assert_eq!(note("attempts").await, [None, None]);
    let off = note("off").await.map(Option::unwrap);
    assert!(off.iter().all(|note| note.contains("is off")), "{off:?}");
}

#[tokio::test]
async fn any_id_can_be_asked_for() {
    let api = Api::with_billing().await;
    let long = "ü".repeat(300);
    let ids = [
        "a/b",
        "a b",
        "a?b=c&d#e",
        "100%",
        "..",
        "ünï",
        "\u{0}\n\"",
        "%2F",
        "+",
        &long,
    ];
    let records: Vec<_> = ids.iter().map(|id| delivered(id, 5)).collect();
    write(&api, "a", &records);
    for id in ids {
        let answer = ask(&api, id, "").await;
        assert_eq!(
            (answer.json()["id"].as_str(), deliveries(&answer).len()),
            (Some(id), 1),
            "{id}"
        );
    }
    api.get("/topics/orders/events/%FF")
        .await
        .problem(400, "about:blank");
}

/// A text of the query, percent-encoded.
fn escaped(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The log keeps the beginning of a long id. The whole id finds it too, and so does base64url.
#[tokio::test]
async fn long_id_is_found_by_the_query_as_it_is_and_in_base64() {
    let api = Api::with_billing().await;
    for (n, character) in ["x", "ü", "日", "👋", "%41", "/../"]
        .into_iter()
        .enumerate()
    {
        let whole = character.repeat(2_000);
        let kept: String = whole.chars().take(1_024).collect();
        write(&api, &n.to_string(), &[delivered(&kept, 5)]);
        let [whole_64, kept_64] = [&whole, &kept].map(|id| URL_SAFE_NO_PAD.encode(id));
        for (name, value, id) in [
            ("id", &escaped(&whole), &whole),
            ("id", &escaped(&kept), &kept),
            ("id64", &whole_64, &whole),
            ("id64", &kept_64, &kept),
        ] {
            let answer = api
                .get(&format!("/topics/orders/events/-?{name}={value}"))
                .await;
            assert_eq!(deliveries(&answer).len(), 1, "{character} {name}");
            assert_eq!(answer.json()["id"], **id, "{character} {name}");
        }
    }
    let problem = api.get("/topics/orders/events/-?id64=a+b").await;
    let problem = problem.problem(400, "about:blank");
    assert_eq!(problem["member"], "id64");
    assert!(
        problem["detail"].as_str().unwrap().contains("base64url"),
        "{problem}"
    );
}

#[tokio::test]
async fn ids_that_repeat_are_told_apart() {
    let api = Api::with_billing().await;
    api.put("/topics/Invoices", json!({})).await;
    let again = LogRecord {
        delivery_key: "another".to_owned(),
        ..another(delivered("order-1", 3), 1)
    };
    let audit = LogRecord {
        subscription: "audit".to_owned(),
        ..another(delivered("order-1", 5), 2)
    };
    let elsewhere = LogRecord {
        topic: "invoices".to_owned(),
        ..another(delivered("order-1", 4), 3)
    };
    write(
        &api,
        "a",
        &[delivered("order-1", 5), again, audit, elsewhere],
    );
    let shown = deliveries(&ask(&api, "order-1", "").await);
    let names: Vec<_> = shown
        .iter()
        .map(|it| format!("{} {}", it["subscription"], it["key"]))
        .collect();
    let expected = [
        r#""Billing" "another""#,
        r#""audit" "key-of-order-1""#,
        r#""Billing" "key-of-order-1""#,
    ];
    assert_eq!(names, expected);
    let other = api.get("/topics/invoices/events/order-1").await;
    assert_eq!(deliveries(&other).len(), 1);
}

#[tokio::test]
async fn an_id_that_repeats_too_often_says_so() {
    let api = Api::with_billing().await;
    let count = u16::try_from(LOG_LOOK_UP_RECORDS_MAX + 1).unwrap();
    let many: Vec<_> = (1..=count)
        .map(|attempt| another(refused("order-1", 5), attempt))
        .collect();
    write(&api, "a", &many);
    let note = ask(&api, "order-1", "").await.json()["note"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(note.contains("more records than are shown"), "{note}");
}

#[tokio::test]
async fn a_look_up_is_narrowed_by_time() {
    let api = Api::with_billing().await;
    write(&api, "a", &[delivered("order-1", 200)]);
    let found = async |query: &str| deliveries(&ask(&api, "order-1", query).await).len();
    assert_eq!(
        found("from=2026-11-21T06:40:00Z&to=2026-11-21T06:40:00.001Z").await,
        1
    );
    assert_eq!(found("from=2026-11-21T06:40:00.001Z").await, 0);
    assert_eq!(found("to=2026-11-21T06:40:00Z").await, 0);
    for (query, member) in [
        ("from=soon", "from"),
        ("to=1", "to"),
        ("payload=1", "payload"),
    ] {
        assert_eq!(
            ask(&api, "order-1", query)
                .await
                .problem(400, "about:blank")["member"],
            member
        );
    }
    ask(&api, "order-1", "colour=red")
        .await
        .problem(400, "about:blank");
}

/// A log of forty hours, of which each read takes longer than a look-up has.
async fn slow_log() -> Api {
    let api = Api::with_billing().await;
    let hours: Vec<_> = (0..40_u16)
        .map(|n| another(delivered("order-1", u64::from(n) * 60), n + 1))
        .collect();
    write(&api, "a", &hours);
    api.log.slow_reads(&api.clock, Duration::from_secs(11));
    api
}

#[tokio::test]
async fn a_look_up_whose_time_is_over_says_how_far_it_came() {
    let api = slow_log().await;
    let found = ask(&api, "order-1", "").await.json();
    let note = found["note"].as_str().unwrap();
    assert!(
        note.starts_with("The search reached its time limit"),
        "{note}"
    );
    let (_, since) = note.split_once("`to=").unwrap();
    let older = ask(&api, "order-1", &format!("to={}", &since[..24]))
        .await
        .json();
    let attempts = |answer: &Value| {
        answer["deliveries"][0]["attempts"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        (attempts(&found) + attempts(&older), older.get("note")),
        (40, None)
    );
}

/// A search that ran out of time says that the event was not found so far.
#[tokio::test]
async fn events_not_found_in_time_may_still_exist() {
    for path in [
        "/topics/orders/events/order-2",
        "/topics/order/events/order-1",
    ] {
        let answer = slow_log().await.get(path).await;
        assert_eq!(deliveries(&answer), Vec::<Value>::new());
        let note = answer.json()["note"].as_str().unwrap().to_owned();
        assert!(
            note.starts_with("No record of this event was found so far."),
            "{note}"
        );
    }
}

fn uuid_of(time: Timestamp) -> String {
    let digits = format!("{:012x}", time.as_millis());
    format!("{}-{}-7abc-8def-0123456789ab", &digits[..8], &digits[8..])
}

/// The time in an id saves reads, and an id from a clock that is ahead is found all the same.
#[tokio::test]
async fn time_in_an_id_saves_reads_and_a_fast_clock_hides_nothing() {
    let api = Api::with_billing().await;
    let recent = uuid_of(before(5));
    let ahead = uuid_of(before(0) + Duration::from_hours(5));
    let old: Vec<_> = (1..20)
        .map(|n| delivered(&format!("order-{n}"), n * 60 + 120))
        .collect();
    write(&api, "old", &old);
    write(&api, "a", &[delivered(&recent, 5), delivered(&ahead, 130)]);
    assert_eq!(deliveries(&ask(&api, &recent, "").await).len(), 1);
    let reads = api.log.reads();
    assert_eq!(deliveries(&ask(&api, &ahead, "").await).len(), 1);
    assert!(api.log.reads() - reads > reads, "{reads} reads before");
}

#[tokio::test]
async fn a_damaged_file_hides_no_other_and_is_named() {
    let api = Api::with_billing().await;
    write(&api, "a", &[delivered("order-1", 5)]);
    let [file] = write(&api, "b", &[delivered("order-2", 5)])
        .try_into()
        .unwrap();
    api.log.write(&file, b"no file of the log".as_slice());
    let answer = ask(&api, "order-1", "").await;
    assert_eq!(deliveries(&answer).len(), 1);
    let note = answer.json()["note"].as_str().unwrap().to_owned();
    assert!(note.contains("damaged") && note.contains(&file), "{note}");
}

#[tokio::test]
async fn files_of_others_are_passed_over() {
    let api = Api::with_billing().await;
    write(&api, "a", &[delivered("order-1", 5)]);
    for foreign in [
        "_SUCCESS",
        "date=2026-11-21/hour=09/notes.txt",
        "date=x/y.parquet",
    ] {
        api.log.write(foreign, b"?".as_slice());
    }
    assert_eq!(ask(&api, "order-1", "").await.json().get("note"), None);
}

#[tokio::test]
async fn a_file_that_was_merged_in_between_is_found_again() {
    let api = Api::with_billing().await;
    let [file] = write(&api, "a", &[delivered("order-1", 5)])
        .try_into()
        .unwrap();
    let hour = posthaste_core::delivery_log::LogHour::containing(before(5));
    api.log
        .move_when_read(&file, &[&key(hour, "b"), &key(hour, "c")]);
    assert_eq!(deliveries(&ask(&api, "order-1", "").await).len(), 1);
    let moves = [&*key(hour, "d"), &key(hour, "e"), &key(hour, "f")];
    api.log.move_when_read(&key(hour, "c"), &moves);
    ask(&api, "order-1", "").await.problem(503, "unavailable");
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_unavailable() {
    let api = Api::with_billing().await;
    write(&api, "a", &[delivered("order-1", 5)]);
    api.log.fail(ErrorKind::TimedOut);
    ask(&api, "order-1", "").await.problem(503, "unavailable");
}
