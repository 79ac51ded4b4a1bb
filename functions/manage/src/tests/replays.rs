use std::time::Duration;

use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::delivery_log::{AttemptOrigin, GapCause, LogGap, LogRecord, LogResult};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::{ReplayRecord, ResolvedLetters, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use serde_json::{Value, json};

use super::events::{another, delivered, refused, write};
use super::memory::MODIFIED_AT;
use super::{Answer, Api};

const REPLAY: &str = "/topics/orders/subscriptions/billing/dead-letters/replay";
const OBJECT: &str = "ORDERS/BILLING/2026/11/21/10/a.json";

fn letter(id: &str, reason: &str) -> Value {
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t", "deadletterreason": reason })
}

/// An API a minute after an object of two dead letters was written.
async fn api() -> Api {
    let api = Api::with_billing().await;
    let letters = json!([
        letter("1", "EndpointGone"),
        letter("2", "TimeToLiveExceeded")
    ]);
    api.dead_letters.write(OBJECT, letters.to_string());
    api.clock.advance(Duration::from_mins(1));
    api
}

async fn ask(api: &Api, request: Value) -> Answer {
    api.call(
        "POST",
        REPLAY,
        &[("content-type", "application/json")],
        request.to_string(),
    )
    .await
}

/// A selection of its own, so that the replay is another one than those of other numbers.
fn nth(number: usize) -> Value {
    json!({ "types": [format!("t{number}")] })
}

fn record(api: &Api, id: &Value) -> ReplayRecord {
    ReplayRecord::parse(
        &api.state
            .read(&layout::replay_record_key(id.as_str().unwrap()))
            .unwrap(),
    )
    .unwrap()
}

#[tokio::test]
async fn a_replay_is_written_down_with_its_marker_and_shown() {
    let api = api().await;
    let answer = ask(
        &api,
        json!({ "reason": "EndpointGone", "ratePerSecond": 5 }),
    )
    .await;
    let view = answer.json();
    let id = view["id"].as_str().unwrap();
    assert_eq!(
        (answer.status, answer.header("location")),
        (202, format!("/replays/{id}").as_str())
    );
    assert_eq!(
        (&view["topic"], &view["subscription"], &view["state"]),
        (&json!("Orders"), &json!("Billing"), &json!("Running"))
    );
    assert_eq!(
        view["request"],
        json!({ "reason": "EndpointGone", "ratePerSecond": 5 })
    );
    assert!(api.state.read(&layout::replaying_mark_key(id)).is_some());
    assert_eq!(api.get(&format!("/replays/{id}")).await.json(), view);
    assert_eq!(
        api.get("/replays").await.json(),
        json!({ "replays": [view] })
    );
    assert_eq!(api.dead_letters.reads(), 0);
}

/// A dead letter as Azure Event Grid writes it, of years before the subscription was made.
fn of_azure(id: &str) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": "/s", "type": "t",
        "deadletterreason": "MaxDeliveryAttemptsExceeded", "deliveryattempts": 30,
        "lastdeliveryoutcome": "NotFound", "publishtime": "2020-08-13T17:18:14.0265758Z",
        "lastdeliveryattempttime": "2020-08-14T17:18:14.0465788Z",
    })
}

#[tokio::test]
async fn dead_letters_of_azure_are_part_of_a_replay() {
    let api = Api::with_billing().await;
    let copied = json!([of_azure("1"), of_azure("2")]).to_string();
    api.dead_letters
        .write("ORDERS/BILLING/2020/8/14/17/x.json", copied);
    api.clock.advance(Duration::from_mins(1));
    let preview = ask(&api, json!({ "dryRun": true })).await.json();
    assert_eq!(
        (&preview["events"], &preview["ids"], preview.get("leftOut")),
        (&json!(2), &json!(["1", "2"]), None)
    );
}

#[tokio::test]
async fn dry_run_says_what_it_left_out_and_why() {
    let api = Api::with_billing().await;
    let former = json!({
        "specversion": "1.0", "id": "4", "source": "/s", "type": "t",
        "deadletterreason": "EndpointGone", "publishtime": "2020-08-13T17:18:14.0260000Z",
    });
    let other_type = json!({
        "specversion": "1.0", "id": "3", "source": "/s", "type": "u",
        "deadletterreason": "EndpointGone",
    });
    let letters = json!([
        letter("1", "EndpointGone"),
        letter("2", "TimeToLiveExceeded"),
        other_type,
        former
    ]);
    api.dead_letters.write(OBJECT, letters.to_string());
    let one = json!([of_azure("5")]).to_string();
    for key in ["2020/8/14/17/x.json", "AZURE/SUB/2020/8/14/17/x.json"] {
        api.dead_letters
            .write(&format!("ORDERS/BILLING/{key}"), one.clone());
    }
    api.clock.advance(Duration::from_mins(1));
    let asked = json!({
        "dryRun": true, "reason": "EndpointGone", "types": ["t"], "from": "2026-11-21T10:00:00Z",
    });
    let preview = ask(&api, asked).await.json();
    let left_out = json!({
        "former": 1, "otherReason": 1, "otherType": 1, "otherTime": 1, "noTime": 1,
    });
    assert_eq!(
        (&preview["events"], &preview["leftOut"]),
        (&json!(1), &left_out)
    );
}

#[tokio::test]
async fn empty_request_replays_everything() {
    let api = api().await;
    let view = api.call("POST", REPLAY, &[], "").await;
    assert_eq!((view.status, &view.json()["request"]), (202, &json!({})));
}

#[tokio::test]
async fn invalid_replay_requests_are_refused_by_member() {
    let api = api().await;
    for (request, member) in [
        (json!({ "Reason": "EndpointGone" }), "Reason"),
        (json!({ "reason": "Bored" }), "reason"),
        (json!({ "from": "tomorrow" }), "from"),
        (json!({ "from": MODIFIED_AT, "to": MODIFIED_AT }), "from"),
        (json!({ "ratePerSecond": 0 }), "ratePerSecond"),
        (json!({ "source": "logs" }), "source"),
        (json!({ "result": "failed" }), "result"),
        (json!({ "status": "5xx" }), "status"),
        (json!({ "source": "log", "status": "5x" }), "status"),
        (json!({ "source": "log", "result": "retry" }), "result"),
        (json!({ "source": "log", "keys": [OBJECT] }), "keys"),
        (json!({ "keys": ["MALFORMED/2026/3/7/4/x"] }), "keys[0]"),
        (json!({ "keys": [OBJECT, "ORDERS/OTHER/x"] }), "keys[1]"),
    ] {
        let problem = ask(&api, request.clone())
            .await
            .problem(400, "bad-settings");
        assert_eq!(problem["member"], member, "{request}");
    }
    ask(&api, json!([])).await.problem(400, "bad-settings");
    let unknown = REPLAY.replace("billing", "biling");
    api.call("POST", &unknown, &[], "")
        .await
        .problem(404, "unknown-subscription");
    api.call("POST", &REPLAY.replace("orders", "order"), &[], "")
        .await
        .problem(404, "unknown-topic");
    assert_eq!(api.get("/replays").await.json(), json!({ "replays": [] }));
}

#[tokio::test]
async fn a_dry_run_counts_and_writes_nothing() {
    let api = api().await;
    api.dead_letters
        .write("ORDERS/BILLING/2026/11/21/10/b.json", "not ours");
    api.dead_letters.write(
        "ORDERS/BILLING/2026/11/21/10/c.json",
        json!([{}, letter("3", "EndpointGone")]).to_string(),
    );
    api.state.fail_puts(ErrorKind::Denied);
    let answer = ask(&api, json!({ "dryRun": true })).await;
    let expected = json!({
        "isComplete": true,
        "objects": 2,
        "events": 3,
        "byReason": { "EndpointGone": 2, "TimeToLiveExceeded": 1 },
        "resolved": 0,
        "failed": 2,
        "failures": [
            { "key": "ORDERS/BILLING/2026/11/21/10/b.json", "detail": "not a JSON array of dead letters" },
            { "key": "ORDERS/BILLING/2026/11/21/10/c.json", "index": 0,
              "detail": "not a dead letter: there is no deadLetterReason in it" },
        ],
        "ids": ["1", "2", "3"],
    });
    assert_eq!((answer.status, answer.json()), (200, expected));
    let check = async |request: Value, events: u64, objects: u64| {
        let preview = ask(&api, request.clone()).await.json();
        assert_eq!(
            (&preview["events"], &preview["objects"]),
            (&json!(events), &json!(objects)),
            "{request}"
        );
    };
    check(json!({ "dryRun": true, "reason": "EndpointGone" }), 2, 2).await;
    check(json!({ "dryRun": true, "types": ["u"] }), 0, 0).await;
    check(json!({ "dryRun": true, "keys": [OBJECT] }), 2, 1).await;
    check(json!({ "dryRun": true, "to": MODIFIED_AT }), 0, 0).await;
}

#[tokio::test]
async fn a_dry_run_leaves_out_what_is_resolved_unless_asked() {
    let api = api().await;
    api.dead_letters.write(
        &layout::resolved_letters_key(OBJECT),
        ResolvedLetters::from_places([1]).render(),
    );
    let counted = async |request| {
        let preview = ask(&api, request).await.json();
        [
            preview["events"].as_u64().unwrap(),
            preview["resolved"].as_u64().unwrap(),
        ]
    };
    assert_eq!(counted(json!({ "dryRun": true })).await, [1, 1]);
    assert_eq!(
        counted(json!({ "dryRun": true, "includeResolved": true })).await,
        [2, 0]
    );
}

#[tokio::test]
async fn a_dry_run_from_the_log_counts_deliveries_that_ended() {
    let api = api().await;
    write(
        &api,
        "a",
        &[
            delivered("1", 30),
            refused("2", 30),
            another(delivered("2", 20), 2),
        ],
    );
    write(&api, "b", &[refused("3", 30)]);
    let dead = LogRecord {
        result: LogResult::DeadLettered,
        ..refused("4", 10)
    };
    let replayed = LogRecord {
        origin: AttemptOrigin::Replay,
        ..delivered("5", 10)
    };
    write(&api, "c", &[dead, replayed]);
    let counted = async |more: Value| {
        let mut request = json!({ "source": "log", "dryRun": true });
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let preview = ask(&api, request).await.json();
        let mut ids: Vec<_> = preview["ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        ids.sort();
        assert_eq!(preview["events"], ids.len());
        ids.concat().replace('"', "")
    };
    // They were accepted before the subscription was created.
    assert_eq!(counted(json!({})).await, "");
    let former = |result: &str| json!({ "includeFormer": true, "result": result });
    assert_eq!(counted(json!({ "includeFormer": true })).await, "124");
    assert_eq!(counted(former("delivered")).await, "12");
    assert_eq!(counted(former("failed")).await, "4");
}

#[tokio::test]
async fn there_is_no_replay_from_a_log_that_is_off() {
    let api = Api::new();
    let topic = json!({ "deliveryLog": "off", "subscriptions": { "billing": {
        "endpoint": { "url": "https://billing.example.com/hooks" } } } });
    assert_eq!(api.put("/topics/orders", topic).await.status, 201);
    let problem = ask(&api, json!({ "source": "log" }))
        .await
        .problem(400, "bad-settings");
    assert_eq!(problem["member"], "source");
}

#[tokio::test]
async fn a_dry_run_ends_in_time_and_says_that_there_is_more() {
    let api = api().await;
    for number in 0..10_001 {
        api.dead_letters.write(
            &format!("ORDERS/BILLING/2026/11/21/10/{number:05}.json"),
            "[]",
        );
    }
    let preview = ask(&api, json!({ "dryRun": true })).await.json();
    assert_eq!(
        (&preview["isComplete"], api.dead_letters.reads()),
        (&json!(false), 2 * 10_000)
    );
}

#[tokio::test]
async fn a_replay_is_cancelled_once_and_what_has_ended_stays() {
    let api = api().await;
    let id = ask(&api, json!({})).await.json()["id"].clone();
    let path = format!("/replays/{}", id.as_str().unwrap());
    let cancelled = api.delete(&path).await;
    let view = cancelled.json();
    assert_eq!(
        (cancelled.status, &view["state"], &view["reason"]),
        (200, &json!("Cancelled"), &json!("Requested"))
    );
    assert_eq!(api.delete(&path).await.json(), view);
    let done = record(&api, &id).with_state(ReplayState::Done, None, api.clock.now());
    api.state.write(
        &layout::replay_record_key(id.as_str().unwrap()),
        done.render(),
    );
    assert_eq!(api.delete(&path).await.json()["state"], "Done");
}

#[tokio::test]
async fn the_newest_come_first_where_that_is_asked_for() {
    let api = api().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        api.clock.advance(Duration::from_secs(1));
        ids.push(
            ask(&api, nth(number)).await.json()["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    ids.reverse();
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api
            .get(&format!("/replays?newestFirst=true&limit=2{cursor}"))
            .await
            .json();
        let replays = page["replays"].as_array().unwrap().iter();
        pages.push(
            replays
                .map(|it| it["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>(),
        );
        let Some(next) = page["cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    let expected: Vec<_> = ids.chunks(2).map(<[String]>::to_vec).collect();
    assert_eq!(pages, expected);
}

#[tokio::test]
async fn those_that_have_ended_are_left_out_where_that_is_asked_for() {
    let api = api().await;
    let mut ids = Vec::new();
    for number in 0..3 {
        api.clock.advance(Duration::from_secs(1));
        ids.push(
            ask(&api, nth(number)).await.json()["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let shown = async |query: &str| {
        let page = api
            .get(&format!("/replays?active=true{query}"))
            .await
            .json();
        let replays = page["replays"].as_array().unwrap().iter();
        replays
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(shown("").await, ids);
    // Its marker is deleted by wake, later.
    api.delete(&format!("/replays/{}", ids[1])).await;
    assert_eq!(shown("").await, [&*ids[0], &*ids[2]]);
    assert_eq!(shown("&newestFirst=true&limit=1").await, [&*ids[2]]);
    api.state
        .delete(&layout::replaying_mark_key(&ids[2]))
        .await
        .unwrap();
    assert_eq!(shown("").await, [&*ids[0]]);
}

#[tokio::test]
async fn replay_ids_cannot_leave_their_folder() {
    let api = api().await;
    for id in ["x", "..%2Ftopics%2Forders", "x.json", "%2E%2E", "a%2Fb"] {
        api.get(&format!("/replays/{id}"))
            .await
            .problem(404, "about:blank");
        api.delete(&format!("/replays/{id}"))
            .await
            .problem(404, "about:blank");
    }
}

#[tokio::test]
async fn a_disabled_subscription_s_replay_waits_from_the_beginning() {
    let api = api().await;
    let text = String::from_utf8(api.state.read("topics/orders.json").unwrap().to_vec()).unwrap();
    api.state.write(
        "topics/orders.json",
        text.replace("\"Active\"", "\"Disabled\""),
    );
    let id = ask(&api, json!({})).await.json()["id"].clone();
    let record = record(&api, &id);
    assert_eq!(
        (record.state, record.reason),
        (
            ReplayState::Waiting,
            Some(ReplayReason::SubscriptionNotActive)
        )
    );
}

/// A replay that has queued this many events, with these records in the log.
async fn replay_with(api: &Api, queued: u64, records: &[LogRecord]) -> String {
    let number = usize::try_from(queued).unwrap();
    let id = ask(api, nth(number)).await.json()["id"].clone();
    let mut replay = record(api, &id);
    replay.progress.queued = queued;
    let id = id.as_str().unwrap().to_owned();
    api.state
        .write(&layout::replay_record_key(&id), replay.render());
    let of_run = |record: &LogRecord| LogRecord {
        time: api.clock.now(),
        run_id: record.run_id.clone().or_else(|| Some(id.clone())),
        ..record.clone()
    };
    write(api, "a", &records.iter().map(of_run).collect::<Vec<_>>());
    id
}

fn gave_up(id: &str, result: LogResult) -> LogRecord {
    LogRecord {
        result,
        ..delivered(id, 0)
    }
}

/// Outcomes of the events of a replay are counted from the delivery log.
#[tokio::test]
async fn outcomes_of_a_replay_are_counted_from_the_log() {
    let api = api().await;
    let another_run = LogRecord {
        run_id: Some("20261121T101500Z-another".to_owned()),
        ..delivered("6", 0)
    };
    let records = [
        refused("1", 0),
        another(delivered("1", 0), 2),
        refused("2", 0),
        gave_up("3", LogResult::DeadLettered),
        gave_up("4", LogResult::Dropped),
        another_run,
    ];
    let id = replay_with(&api, 5, &records).await;
    let view = api.get(&format!("/replays/{id}")).await.json();
    let expected = json!({
        "delivered": 1, "failedAgain": 2, "waiting": 2,
        "completeUntil": "2026-11-21T10:00:55.000Z",
    });
    assert_eq!(view["outcomes"], expected);
    assert_eq!(
        api.get("/replays").await.json()["replays"][0].get("outcomes"),
        None
    );
}

/// A list says what became of the events only where it is asked, and remembers what is final.
#[tokio::test]
async fn list_that_is_asked_has_outcomes_and_its_failed_replays() {
    let api = api().await;
    let id = replay_with(&api, 1, &[gave_up("1", LogResult::DeadLettered)]).await;
    let key = layout::replay_record_key(&id);
    let record = ReplayRecord::parse(&api.state.read(&key).unwrap()).unwrap();
    let record = record.with_state(ReplayState::Done, None, api.clock.now());
    api.state.write(&key, record.render());
    let replay = api.get("/replays?outcomes=true").await.json()["replays"][0].clone();
    assert_eq!(replay["state"], "Failed");
    assert_eq!(replay["outcomes"]["failedAgain"], 1);
    let without = api.get("/replays").await.json()["replays"][0].clone();
    assert_eq!(
        (&without["state"], without.get("outcomes")),
        (&json!("Done"), None)
    );
    let reads = api.log.reads();
    let again = api.get("/replays?outcomes=true").await.json()["replays"][0].clone();
    assert_eq!((again, api.log.reads()), (replay, reads));
}

/// A log that was restored may lack the end of what a replay sent, and what one would send.
#[tokio::test]
async fn replay_in_a_gap_of_the_log_is_partial() {
    let api = api().await;
    write(&api, "b", &[delivered("1", 30)]);
    let id = replay_with(&api, 2, &[delivered("1", 0)]).await;
    let dry_run = json!({ "source": "log", "dryRun": true, "includeFormer": true });
    assert_eq!(ask(&api, dry_run.clone()).await.json()["isComplete"], true);
    let now = api.clock.now();
    let gap = LogGap {
        from: now,
        to: now,
        cause: GapCause::Copy,
        attempts_max: None,
    };
    let earlier = LogGap {
        to: Timestamp::from_millis(now.as_millis() - 1_800_000),
        from: Timestamp::from_millis(now.as_millis() - 3_600_000),
        ..gap.clone()
    };
    let api = api.then_with_gaps(vec![earlier, gap]);
    let view = api.get(&format!("/replays/{id}")).await.json();
    assert_eq!(view["outcomes"]["isPartial"], true);
    assert_eq!(ask(&api, dry_run).await.json()["isComplete"], false);
}

/// Attempts that a killed process had not recorded are made again, and recorded then.
#[tokio::test]
async fn replay_in_which_the_process_was_killed_is_not_partial() {
    let api = api().await;
    let id = replay_with(&api, 2, &[delivered("1", 0)]).await;
    let now = api.clock.now();
    let killed = LogGap {
        from: now,
        to: now,
        cause: GapCause::Killed,
        attempts_max: Some(3),
    };
    let api = api.then_with_gaps(vec![killed]);
    let view = api.get(&format!("/replays/{id}")).await.json();
    assert_eq!(view["outcomes"]["waiting"], 1);
    assert_eq!(view["outcomes"].get("isPartial"), None);
}

#[tokio::test]
async fn outcomes_are_left_out_where_the_log_cannot_say() {
    let api = api().await;
    let nothing_queued = replay_with(&api, 0, &[]).await;
    let id = replay_with(&api, 1, &[delivered("1", 0)]).await;
    let shown = async |id: &str| {
        api.get(&format!("/replays/{id}"))
            .await
            .json()
            .get("outcomes")
            .is_some()
    };
    assert!(shown(&id).await && !shown(&nothing_queued).await);
    assert_eq!(
        api.put("/topics/orders", json!({ "deliveryLog": "off" }))
            .await
            .status,
        200
    );
    assert!(!shown(&id).await);
    assert_eq!(api.put("/topics/orders", json!({})).await.status, 200);
    assert!(shown(&id).await);
    api.log.fail(ErrorKind::TimedOut);
    assert!(!shown(&id).await);
}

#[tokio::test]
async fn pages_of_replays_follow_each_other() {
    let api = api().await;
    for number in 0..3 {
        assert_eq!(ask(&api, nth(number)).await.status, 202);
        api.clock.advance(Duration::from_secs(1));
    }
    let first = api.get("/replays?limit=2").await.json();
    let cursor = first["cursor"].as_str().unwrap();
    let second = api
        .get(&format!("/replays?limit=2&cursor={cursor}"))
        .await
        .json();
    let count = |page: &Value| page["replays"].as_array().unwrap().len();
    assert_eq!(
        (count(&first), count(&second), second.get("cursor")),
        (2, 1, None)
    );
}

#[tokio::test]
async fn a_store_that_fails_is_unavailable() {
    let api = api().await;
    let id = ask(&api, json!({})).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    api.dead_letters.fail(ErrorKind::TimedOut);
    ask(&api, json!({ "dryRun": true }))
        .await
        .problem(503, "unavailable");
    api.state.fail_puts(ErrorKind::PreconditionFailed);
    api.delete(&format!("/replays/{id}"))
        .await
        .problem(409, "conflict");
    api.state.fail(ErrorKind::Other);
    ask(&api, json!({})).await.problem(503, "unavailable");
    api.get("/replays").await.problem(503, "unavailable");
    api.get(&format!("/replays/{id}"))
        .await
        .problem(503, "unavailable");
}

/// Replays are selected by topic and subscription over all pages.
#[tokio::test]
async fn replays_are_selected_by_subscription_over_all_pages() {
    let api = api().await;
    assert_eq!(
        api.put("/topics/orders/subscriptions/audit", super::billing())
            .await
            .status,
        201
    );
    let of_audit = "/topics/orders/subscriptions/audit/dead-letters/replay";
    let paths = [REPLAY, of_audit, of_audit, REPLAY];
    for (number, path) in paths.into_iter().enumerate() {
        let json = [("content-type", "application/json")];
        let asked = api.call("POST", path, &json, nth(number).to_string());
        assert_eq!(asked.await.status, 202);
        api.clock.advance(Duration::from_secs(1));
    }
    let names = async |query: &str| {
        let page = api.get(&format!("/replays?{query}")).await.json();
        let replays = page["replays"].as_array().unwrap().iter();
        let names: Vec<_> = replays
            .map(|it| it["subscription"].as_str().unwrap().to_owned())
            .collect();
        (names, page["cursor"].as_str().map(str::to_owned))
    };
    assert_eq!(
        names("topic=ORDERS&subscription=AUDIT").await.0,
        ["audit", "audit"]
    );
    for order in ["", "&newestFirst=true"] {
        let (first, cursor) = names(&format!("subscription=billing&limit=1{order}")).await;
        let next = format!(
            "subscription=billing&limit=1{order}&cursor={}",
            cursor.unwrap()
        );
        assert_eq!(
            (first, names(&next).await),
            (
                vec!["Billing".to_owned()],
                (vec!["Billing".to_owned()], None)
            )
        );
    }
    assert!(names("topic=other").await.0.is_empty());
    for member in ["topic", "subscription"] {
        let problem = api
            .get(&format!("/replays?{member}=a%2Fb"))
            .await
            .problem(400, "about:blank");
        assert_eq!(problem["member"], member);
    }
}

#[tokio::test]
async fn a_cursor_of_active_replays_is_none_of_all_replays() {
    let api = api().await;
    for number in 0..2 {
        assert_eq!(ask(&api, nth(number)).await.status, 202);
        api.clock.advance(Duration::from_secs(1));
    }
    for (of, other) in [
        ("active=true", "active=false"),
        ("newestFirst=true", "newestFirst=true&active=true"),
    ] {
        let cursor = api.get(&format!("/replays?{of}&limit=1")).await.json()["cursor"].clone();
        let url = format!("/replays?{other}&cursor={}", cursor.as_str().unwrap());
        assert_eq!(
            api.get(&url).await.problem(400, "about:blank")["member"],
            "cursor"
        );
    }
}
