//! The cursors of work that resolves or deletes dead letters: each belongs to its work.

use std::time::Duration;

use posthaste_core::stored::LetterEnding;
use posthaste_ports::{Clock, ErrorKind};
use posthaste_services::LeftWork;
use serde_json::json;

use super::{OPEN, WORK, begun, ids};
use crate::tests::unfinished::{A, MINUTE, api, ask, cursor, leave, left, resolved};

/// The cursor with which the work is gone on with.
fn cursor_of(work: &LetterEnding) -> String {
    let after = work.after.as_deref();
    let of = json!({ "after": after, "id": work.id, "beganAt": work.began_at });
    cursor(&of.to_string())
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

/// The same was asked for again, and is done: its mark is about to go, was left, or is damaged.
#[tokio::test]
async fn late_cursor_of_cancelled_work_is_refused_beside_any_mark() {
    let zero = Duration::ZERO;
    for (age, is_damaged) in [(zero, false), (MINUTE, false), (zero, true)] {
        let api = api().await;
        let cancelled = LetterEnding {
            cancelled_at: Some(api.clock.now()),
            ..begun(&api)
        };
        api.state.write(&cancelled.kept_key(), cancelled.render());
        let again = LetterEnding {
            id: "again".to_owned(),
            has_ended: true,
            ..begun(&api)
        };
        leave(&api, &again);
        if is_damaged {
            api.state.write(&again.key(), "{");
        }
        let mark = api.state.read(&again.key());
        api.clock.advance(age);
        let late = json!({ "cursor": cursor_of(&cancelled) });
        let refused = ask(&api, "resolve", late).await;
        refused.problem(409, "incompatible");
        assert_eq!(resolved(&api), [false; 3]);
        assert_eq!(api.state.read(&again.key()), mark);
    }
}

/// Another request, another end, and a subscription that is gone by now: its former letters are not
/// what was asked for.
#[tokio::test]
async fn cursor_of_another_selection_is_refused() {
    let api = api().await;
    // Time for one object of a request.
    api.dead_letters
        .slow_reads(&api.clock, Duration::from_secs(15));
    let first = ask(&api, "resolve", json!({})).await.json();
    let next = json!({ "cursor": first["cursor"] });
    let types = json!({ "types": ["t"], "cursor": first["cursor"] });
    for (action, request) in [("delete", &next), ("resolve", &types)] {
        let refused = ask(&api, action, request.clone()).await;
        refused.problem(409, "incompatible");
    }
    let same = json!({ "types": [], "cursor": first["cursor"] });
    assert_eq!(ask(&api, "resolve", same).await.json()["id"], first["id"]);
    assert_eq!(api.delete("/topics/orders").await.status, 204);
    let refused = ask(&api, "resolve", next).await;
    refused.problem(409, "incompatible");
    assert_eq!(resolved(&api), [true, true, false]);
    assert_eq!(api.state.keys("ending/").len(), 1);
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

/// The work was given up; its cursor comes after more than a day, while the store fails.
#[tokio::test]
async fn old_work_that_is_asked_for_now_is_not_given_up() {
    let api = api().await;
    let open = begun(&api);
    api.clock.advance(Duration::from_hours(25));
    api.dead_letters.fail(ErrorKind::TimedOut);
    let late = json!({ "cursor": cursor_of(&open) });
    let failed = ask(&api, "resolve", late).await;
    failed.problem(503, "unavailable");
    api.clock.advance(MINUTE);
    api.manage.finish_left(LeftWork::Old).await;
    assert!(left(&api, &open).is_some());
    api.clock.advance(Duration::from_hours(24));
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(left(&api, &open), None);
}

/// A list of letters outside of the selection may be long: a turn ends between its pages.
#[tokio::test]
async fn turn_ends_between_pages_without_a_selected_letter() {
    let api = api().await;
    for number in 0..2_500 {
        let key = format!("ORDERS/BILLING/2026/11/21/11/{number:04}.json");
        api.dead_letters.write(&key, "[]");
    }
    // Longer than a request works.
    api.dead_letters
        .slow_lists(&api.clock, Duration::from_secs(9));
    let mut request = json!({ "to": "2026-11-21T10:59:00Z" });
    let mut ids = Vec::new();
    let mut turns = Vec::new();
    loop {
        let answer = ask(&api, "resolve", request.clone()).await.json();
        ids.push(answer["id"].clone());
        turns.push(answer["events"].as_u64().unwrap());
        if answer["cursor"].is_null() {
            break;
        }
        request["cursor"] = answer["cursor"].clone();
    }
    // One object of the first page, and then a page of a thousand keys each.
    assert_eq!(turns, [1, 1, 1, 0, 0]);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(resolved(&api), [true; 3]);
}

/// The first request was to a process whose clock is ahead of this one's.
#[tokio::test]
async fn cursor_of_a_process_whose_clock_is_ahead_is_of_the_same_work() {
    let api = api().await;
    api.dead_letters
        .slow_reads(&api.clock, Duration::from_secs(15));
    let first = ask(&api, "resolve", json!({ "from": "9000d" }))
        .await
        .json();
    let ahead = api.clock.now();
    api.clock.set_back(Duration::from_secs(25));
    assert!(api.clock.now() < ahead);
    let next = json!({ "from": "9000d", "cursor": first["cursor"] });
    let second = ask(&api, "resolve", next).await;
    assert_eq!(second.status, 200, "{:?}", second.body);
    assert_eq!(second.json()["id"], first["id"]);
}
