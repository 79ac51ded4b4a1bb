//! Work that resolves or deletes dead letters: shown while it goes on, found again, and cancelled.

mod cursors;

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

/// The same was asked for again before the turn of the cancelled work was over.
#[tokio::test]
async fn turn_of_cancelled_work_is_counted_beside_the_same_again() {
    let api = api().await;
    let open = begun(&api);
    leave(&api, &open);
    api.clock.advance(MINUTE);
    let cancelled = LetterEnding {
        cancelled_at: Some(api.clock.now()),
        ..open.clone()
    };
    let again = LetterEnding {
        id: "again".to_owned(),
        ..work(&api, LetterEnd::Resolve, None)
    };
    let state = api.state.clone();
    let clock = api.clock.clone();
    let marks = [
        (cancelled.kept_key(), cancelled.render()),
        (again.key(), again.render()),
    ];
    api.dead_letters.when_read(move || {
        for (key, mark) in &marks {
            state.write(key, mark.clone());
        }
        clock.advance(Duration::from_mins(10));
    });
    api.manage.finish_left(LeftWork::Old).await;
    let shown = api.get(OPEN).await.json();
    assert_eq!(
        (&shown["state"], &shown["events"]),
        (&json!("Cancelled"), &json!(42)),
        "{shown}"
    );
    assert_eq!(left(&api, &open), Some(again));
}

/// A process died after it wrote the copy; the last turn was counted since.
#[tokio::test]
async fn kept_copy_has_the_last_turn_of_its_work() {
    let api = api().await;
    let copy = LetterEnding {
        cancelled_at: Some(api.clock.now()),
        ..begun(&api)
    };
    api.state.write(&copy.kept_key(), copy.render());
    let settled = LetterEnding {
        done: Some(EndedCounts {
            events: 43,
            read: 12,
            ..COUNTS
        }),
        ..copy
    };
    leave(&api, &settled);
    assert_eq!(ask(&api, "resolve", json!({})).await.status, 200);
    assert_eq!(left(&api, &settled), None);
    assert_eq!(api.get(OPEN).await.json()["events"], 43);
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

/// Closed work, before the same is asked for again.
fn closed(api: &Api, id: &str) -> LetterEnding {
    LetterEnding {
        id: id.to_owned(),
        cancelled_at: Some(api.clock.now()),
        ..begun(api)
    }
}

/// Between two writes, or where a process died between them.
#[tokio::test]
async fn work_under_two_keys_is_listed_once() {
    let api = api().await;
    let twice = closed(&api, "b");
    leave(&api, &twice);
    for kept in [closed(&api, "a"), twice] {
        api.state.write(&kept.kept_key(), kept.render());
    }
    assert_eq!(ids(&api.get(WORK).await), ["a", "b"]);
    let mut found = Vec::new();
    let mut path = format!("{WORK}?limit=1");
    loop {
        let answer = api.get(&path).await;
        found.extend(ids(&answer));
        let Some(cursor) = answer.json()["cursor"].as_str().map(str::to_owned) else {
            break;
        };
        path = format!("{WORK}?limit=1&cursor={cursor}");
    }
    assert_eq!(found, ["b", "a"]);
}

#[tokio::test]
async fn closed_work_of_one_selection_is_bounded() {
    let api = api().await;
    for number in 0..25 {
        leave(&api, &closed(&api, &format!("n{number:02}")));
        assert_eq!(ask(&api, "resolve", json!({})).await.status, 200);
    }
    let kept = api.state.keys("ending/");
    assert_eq!(kept.len(), 20, "{kept:?}");
    assert_eq!(kept.last(), Some(&closed(&api, "n24").kept_key()));
}
