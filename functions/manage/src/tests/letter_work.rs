//! Work that resolves or deletes dead letters: shown while it goes on, found again, and cancelled.

use std::time::Duration;

use posthaste_core::stored::{EndedCounts, LetterEnd, LetterEnding};
use posthaste_ports::{Clock, ErrorKind};
use posthaste_services::LeftWork;
use serde_json::{Value, json};

use super::unfinished::{A, C, MINUTE, api, ask, cursor, leave, left, resolved, work};
use super::{Answer, Api};

const WORK: &str = "/dead-letters/work";
const OPEN: &str = "/dead-letters/work/open";
const SECOND: Duration = Duration::from_secs(1);

const COUNTS: EndedCounts = EndedCounts {
    events: 41,
    objects: 9,
    deleted_objects: 0,
    failed: 1,
    read: 10,
};

/// Work of which something was done, up to the first of three objects.
fn begun(api: &Api) -> LetterEnding {
    LetterEnding {
        done: Some(COUNTS),
        ..work(api, LetterEnd::Resolve, Some(A))
    }
}

/// The entries of the trail about cancelled work, the newest first.
async fn trail(api: &Api) -> Vec<Value> {
    let page = api.get("/audit?limit=1000").await.json();
    let entries = page["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["action"] == "dead-letters.cancel")
        .cloned()
        .collect()
}

/// The cursor with which the work is gone on with.
fn cursor_of(work: &LetterEnding) -> String {
    let after = work.after.as_deref();
    let of = json!({ "after": after, "id": work.id, "beganAt": work.began_at });
    cursor(&of.to_string())
}

fn ids(answer: &Answer) -> Vec<Value> {
    let page = answer.json();
    let work = page["work"].as_array().unwrap().iter();
    work.map(|work| work["id"].clone()).collect()
}

#[tokio::test]
async fn open_work_is_listed_and_shown_with_its_progress() {
    let api = api().await;
    assert_eq!(api.get(WORK).await.json(), json!({ "work": [] }));
    let open = begun(&api);
    leave(&api, &open);
    let shown = api.get(OPEN).await.json();
    let began = open.began_at.to_string();
    let expected = json!({
        "id": "open", "topic": "orders", "subscription": "Billing", "action": "resolve",
        "state": "Running", "request": { "types": [], "keys": [] }, "beganAt": began,
        "workedAt": began, "events": 41, "objects": 9, "deletedObjects": 0, "failed": 1,
        "objectsRead": 10, "objectsLeft": 2,
    });
    for (member, value) in expected.as_object().unwrap() {
        if member != "request" {
            assert_eq!(&shown[member], value, "{member}: {shown}");
        }
    }
    let listed = api.get(WORK).await;
    assert_eq!(listed.json()["work"][0]["events"], 41);
    assert_eq!(listed.json()["work"][0].get("objectsLeft"), None);
    api.clock.advance(MINUTE);
    assert_eq!(api.get(OPEN).await.json()["state"], "Waiting");
    assert_eq!(api.get("/dead-letters/work/else").await.status, 404);
}

/// A request that ended within its time told all in its answer.
#[tokio::test]
async fn work_of_one_request_is_not_kept() {
    let api = api().await;
    let answer = ask(&api, "resolve", json!({})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(ids(&api.get(WORK).await), [""; 0]);
}

#[tokio::test]
async fn long_work_is_found_again_for_a_day_after_its_end() {
    let api = api().await;
    leave(&api, &begun(&api));
    api.clock.advance(MINUTE);
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(resolved(&api), [false, true, true]);
    let shown = api.get(OPEN).await.json();
    assert_eq!(
        (&shown["state"], &shown["events"], &shown["objectsRead"]),
        (&json!("Done"), &json!(43), &json!(12)),
        "{shown}"
    );
    assert_eq!(ids(&api.get(&format!("{WORK}?active=true")).await), [""; 0]);
    api.clock.advance(Duration::from_hours(23));
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(ids(&api.get(WORK).await), ["open"]);
    api.clock.advance(Duration::from_hours(1));
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(ids(&api.get(WORK).await), [""; 0]);
    assert_eq!(api.get(OPEN).await.status, 404);
}

/// The same is asked for while the work before is kept: it is other work.
#[tokio::test]
async fn kept_work_is_no_open_work() {
    let api = api().await;
    let ended = LetterEnding {
        ended_at: Some(api.clock.now()),
        ..begun(&api)
    };
    let cancelled = LetterEnding {
        cancelled_at: Some(api.clock.now()),
        ..begun(&api)
    };
    for kept in [ended, cancelled] {
        leave(&api, &kept);
        let answer = ask(&api, "resolve", json!({})).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_ne!(answer.json()["id"], "open");
        assert_eq!(left(&api, &kept), None);
        // It is found for its day, as it was.
        let shown = api.get(OPEN).await.json();
        assert_eq!(
            (&shown["events"], shown["endedAt"].is_string()),
            (&json!(41), true)
        );
        assert_eq!(ids(&api.get(WORK).await), ["open"]);
        api.clock.advance(Duration::from_hours(24));
        api.manage.finish_left(LeftWork::Old).await;
        assert_eq!(api.get(OPEN).await.status, 404);
    }
}

/// A cursor of work that all is done of, and of work that was cancelled, comes after the same was
/// asked for again.
#[tokio::test]
async fn late_cursor_leaves_ended_work_as_it_is() {
    let api = api().await;
    let ended = LetterEnding {
        ended_at: Some(api.clock.now()),
        ..begun(&api)
    };
    let late = json!({ "cursor": cursor_of(&ended) });
    leave(&api, &ended);
    let answer = ask(&api, "resolve", late.clone()).await;
    assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("open")));
    assert_eq!(left(&api, &ended), Some(ended.clone()));
    assert_eq!(ask(&api, "resolve", json!({})).await.status, 200);
    let answer = ask(&api, "resolve", late.clone()).await;
    assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("open")));
    assert_eq!(api.get(OPEN).await.json()["events"], 41);
    let cancelled = LetterEnding {
        id: "cancelled".to_owned(),
        ended_at: None,
        cancelled_at: Some(api.clock.now()),
        ..begun(&api)
    };
    leave(&api, &cancelled);
    assert_eq!(ask(&api, "resolve", json!({})).await.status, 200);
    let late = json!({ "cursor": cursor_of(&cancelled) });
    let refused = ask(&api, "resolve", late).await;
    refused.problem(409, "incompatible");
    assert_eq!(ids(&api.get(WORK).await), ["cancelled", "open"]);
}

/// Each request fixes its times; the cursor says when the first one did.
#[tokio::test]
async fn cursor_means_its_work_whenever_it_comes() {
    let api = api().await;
    // Time for one object of each request.
    api.dead_letters
        .slow_reads(&api.clock, Duration::from_secs(15));
    let first = ask(&api, "resolve", json!({ "from": "9000d" })).await;
    assert_eq!(first.status, 200, "{:?}", first.body);
    let first = first.json();
    assert_eq!(resolved(&api), [true, false, false]);
    api.clock.advance(MINUTE);
    let next = json!({ "from": "9000d", "cursor": first["cursor"] });
    let second = ask(&api, "resolve", next).await.json();
    assert_eq!(second["id"], first["id"], "{second}");
    assert_eq!(resolved(&api), [true, true, false]);
    let listed = api.get(WORK).await.json();
    assert_eq!(
        (
            listed["work"].as_array().unwrap().len(),
            &listed["work"][0]["events"]
        ),
        (1, &json!(2)),
        "{listed}"
    );
    let one = format!("{WORK}/{}", first["id"].as_str().unwrap());
    assert_eq!(api.delete(&one).await.status, 200);
    api.clock.advance(MINUTE);
    let next = json!({ "from": "9000d", "cursor": second["cursor"] });
    let refused = ask(&api, "resolve", next).await;
    refused.problem(409, "incompatible");
    assert_eq!(resolved(&api), [true, true, false]);
}

/// A letter that came after the first request is no part of the work.
#[tokio::test]
async fn letter_written_meanwhile_is_no_part_of_the_work() {
    let api = api().await;
    let open = begun(&api);
    leave(&api, &open);
    api.clock.advance(Duration::from_hours(2));
    let late = "ORDERS/BILLING/2026/11/21/11/d.json";
    let letter = json!([{ "specversion": "1.0", "id": "4", "source": "/s", "type": "t" }]);
    api.dead_letters.write(late, letter.to_string());
    let next = json!({ "cursor": cursor_of(&open) });
    let answer = ask(&api, "resolve", next).await.json();
    assert_eq!(
        (&answer["events"], &answer["leftOut"]["otherTime"]),
        (&json!(2), &json!(1)),
        "{answer}"
    );
}

#[tokio::test]
async fn work_cancelled_between_two_turns_is_not_taken_up() {
    let api = api().await;
    let open = begun(&api);
    leave(&api, &open);
    api.clock.advance(SECOND);
    let cancelled = api.delete(OPEN).await;
    assert_eq!(cancelled.status, 200, "{:?}", cancelled.body);
    let shown = cancelled.json();
    assert_eq!(
        (&shown["state"], &shown["events"]),
        (&json!("Cancelled"), &json!(41))
    );
    api.clock.advance(MINUTE);
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(resolved(&api), [false; 3]);
    assert_eq!(api.get(OPEN).await.json()["state"], "Cancelled");
    let entries = trail(&api).await;
    assert_eq!(
        (entries.len(), &entries[0]["target"], &entries[0]["outcome"]),
        (1, &json!("open"), &json!("done")),
        "{entries:?}"
    );
    assert!(
        entries[0]["detail"]
            .as_str()
            .unwrap()
            .starts_with("41 events")
    );
}

/// A request with the cursor of cancelled work learns of it. A request that asks anew begins anew.
#[tokio::test]
async fn cursor_of_cancelled_work_is_refused() {
    let api = api().await;
    leave(&api, &begun(&api));
    assert_eq!(api.delete(OPEN).await.status, 200);
    let refused = ask(&api, "resolve", json!({ "cursor": cursor(A) })).await;
    refused.problem(409, "incompatible");
    assert_eq!(resolved(&api), [false; 3]);
    assert_eq!(ask(&api, "resolve", json!({})).await.status, 200);
    assert_eq!(resolved(&api), [true; 3]);
}

/// A process is in the midst of its turn: what it does in it is counted, and it is its last one.
#[tokio::test]
async fn turn_under_way_is_counted_with_cancelled_work() {
    let api = api().await;
    let open = begun(&api);
    leave(&api, &open);
    api.clock.advance(MINUTE);
    let cancelled = LetterEnding {
        cancelled_at: Some(api.clock.now()),
        ..open.clone()
    };
    let state = api.state.clone();
    let key = open.key();
    // Time for one object of the turn.
    let clock = api.clock.clone();
    api.dead_letters.when_read(move || {
        state.write(&key, cancelled.render());
        clock.advance(Duration::from_mins(10));
    });
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(resolved(&api), [false, true, false]);
    let shown = api.get(OPEN).await.json();
    assert_eq!(
        (&shown["state"], &shown["events"]),
        (&json!("Cancelled"), &json!(42)),
        "{shown}"
    );
}

/// All was done before anybody saw that it was cancelled.
#[tokio::test]
async fn work_that_ends_in_its_last_turn_is_done() {
    let api = api().await;
    let open = begun(&api);
    leave(&api, &open);
    api.clock.advance(MINUTE);
    let cancelled = LetterEnding {
        cancelled_at: Some(api.clock.now()),
        ..open.clone()
    };
    let state = api.state.clone();
    let key = open.key();
    api.dead_letters
        .when_read(move || state.write(&key, cancelled.render()));
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(resolved(&api), [false, true, true]);
    let shown = api.get(OPEN).await.json();
    assert_eq!(
        (&shown["state"], &shown["events"]),
        (&json!("Done"), &json!(43)),
        "{shown}"
    );
}

#[tokio::test]
async fn done_work_is_not_cancelled() {
    let api = api().await;
    let ended = LetterEnding {
        ended_at: Some(api.clock.now()),
        ..begun(&api)
    };
    leave(&api, &ended);
    let answer = api.delete(OPEN).await;
    assert_eq!(
        (answer.status, &answer.json()["state"]),
        (200, &json!("Done"))
    );
    assert_eq!(left(&api, &ended), Some(ended));
    assert_eq!(trail(&api).await.len(), 0);
}

#[tokio::test]
async fn second_cancel_changes_nothing() {
    let api = api().await;
    let open = begun(&api);
    leave(&api, &open);
    assert_eq!(api.delete(OPEN).await.status, 200);
    let first = left(&api, &open);
    api.clock.advance(SECOND);
    assert_eq!(api.delete(OPEN).await.json()["state"], "Cancelled");
    assert_eq!(left(&api, &open), first);
    assert_eq!(trail(&api).await.len(), 1);
}

#[tokio::test]
async fn store_that_fails_cancels_nothing() {
    let api = api().await;
    let open = begun(&api);
    leave(&api, &open);
    api.state.fail_puts(ErrorKind::TimedOut);
    api.delete(OPEN).await.problem(503, "unavailable");
    assert_eq!(left(&api, &open), Some(open));
    api.state.fail(ErrorKind::TimedOut);
    for path in [WORK, OPEN] {
        api.get(path).await.problem(503, "unavailable");
    }
}

/// The letters that are left cannot be listed: the work is shown without them.
#[tokio::test]
async fn work_is_shown_where_its_letters_cannot_be_listed() {
    let api = api().await;
    leave(&api, &begun(&api));
    api.dead_letters.fail(ErrorKind::TimedOut);
    let shown = api.get(OPEN).await.json();
    assert_eq!(
        (&shown["events"], shown.get("objectsLeft")),
        (&json!(41), None)
    );
}

/// A mark that an older program wrote has no numbers. One that is damaged, or of a newer program,
/// hides no other.
#[tokio::test]
async fn marks_of_other_programs_are_listed_or_passed_over() {
    let api = api().await;
    let old = json!({ "v": 1, "id": "old", "topic": "orders", "subscription": "billing",
        "end": "delete", "request": {}, "beganAt": 0, "workedAt": 0 });
    api.state.write("ending/0a", old.to_string());
    api.state.write("ending/0b", "{");
    api.state.write("ending/0c", r#"{"v":99}"#);
    leave(&api, &begun(&api));
    assert_eq!(ids(&api.get(WORK).await), ["open", "old"]);
    let shown = api.get("/dead-letters/work/old").await.json();
    assert_eq!(
        (&shown["state"], &shown["action"], &shown["events"]),
        (&json!("Waiting"), &json!("delete"), &json!(0)),
        "{shown}"
    );
    let cancelled = api.delete("/dead-letters/work/old").await.json();
    assert_eq!(cancelled["state"], "Cancelled");
}

#[tokio::test]
async fn list_of_work_has_pages() {
    let api = api().await;
    for number in 0..5 {
        let one = json!({ "v": 1, "id": number.to_string(), "topic": "orders",
            "subscription": "billing", "end": "delete", "request": {}, "beganAt": number,
            "workedAt": 0 });
        api.state
            .write(&format!("ending/{number}"), one.to_string());
    }
    let mut found = Vec::new();
    let mut path = format!("{WORK}?limit=2");
    loop {
        let answer = api.get(&path).await;
        found.push(ids(&answer));
        let Some(cursor) = answer.json()["cursor"].as_str().map(str::to_owned) else {
            break;
        };
        path = format!("{WORK}?limit=2&cursor={cursor}");
    }
    assert_eq!(found, [vec!["1", "0"], vec!["3", "2"], vec!["4"]]);
    // A cursor of another list.
    let other = api.get(&format!("{WORK}?cursor={}", cursor(C))).await;
    assert_eq!(other.status, 400, "{:?}", other.body);
}
