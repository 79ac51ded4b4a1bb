//! Work that processes left: who finishes it, in which order, and in how much time.

use std::time::Duration;

use posthaste_core::model::{EventSchema, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{
    LetterEnd, LetterEnding, LetterReceiver, ResolvedLetters, TopicRecord, layout,
};
use posthaste_ports::{Clock, ErrorKind};
use posthaste_services::LeftWork;
use posthaste_testkit::endpoint::answered;
use serde_json::{Value, json};

use super::{Answer, Api, billing};

const PATH: &str = "/topics/Orders/subscriptions/Billing";
const MARK: &str = "validating/orders";
pub(super) const A: &str = "ORDERS/BILLING/2026/11/21/10/a.json";
pub(super) const B: &str = "ORDERS/BILLING/2026/11/21/10/b.json";
pub(super) const C: &str = "ORDERS/BILLING/2026/11/21/10/c.json";
pub(super) const MINUTE: Duration = Duration::from_mins(1);

fn asked() -> Value {
    let mut settings = billing();
    settings["endpoint"]["validation"] = "CloudEvents".into();
    settings
}

fn letter(id: &str) -> Value {
    let reason = "EndpointGone";
    json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t", "deadletterreason": reason })
}

/// The letter of a subscription of the same name that was there before.
fn former_letter() -> Value {
    let mut former = letter("former");
    former["subscriptionidentity"] = "0f0f0f0f0f0f0f0f0f0f0f0f".into();
    former
}

/// An API with three objects of one letter each.
pub(super) async fn api() -> Api {
    let api = Api::with_billing().await;
    for (id, key) in [("1", A), ("2", B), ("3", C)] {
        api.dead_letters.write(key, json!([letter(id)]).to_string());
    }
    api.clock.advance(MINUTE);
    api
}

/// Work on all letters that somebody took up now and did up to `after`.
pub(super) fn work(api: &Api, end: LetterEnd, after: Option<&str>) -> LetterEnding {
    let record = api.state.read("topics/orders.json").unwrap();
    let record = TopicRecord::parse(&record).unwrap();
    let name = SubscriptionName::parse("Billing").unwrap();
    LetterEnding {
        id: "open".to_owned(),
        topic: TopicName::parse("orders").unwrap(),
        receiver: Some(LetterReceiver {
            schema: EventSchema::CloudEvents,
            created: record.identities_of(&name),
        }),
        subscription: name,
        end,
        request: serde_json::from_value(json!({})).unwrap(),
        began_at: api.clock.now(),
        worked_at: api.clock.now(),
        progressed_at: None,
        after: after.map(str::to_owned),
        has_ended: false,
        done: None,
        ended_at: None,
        cancelled_at: None,
    }
}

/// Writes down that somebody works, or did when it died.
pub(super) fn leave(api: &Api, work: &LetterEnding) {
    api.state.write(&work.key(), work.render());
}

pub(super) fn left(api: &Api, work: &LetterEnding) -> Option<LetterEnding> {
    let bytes = api.state.read(&work.key())?;
    Some(LetterEnding::parse(&bytes).unwrap())
}

fn is_resolved(api: &Api, key: &str) -> bool {
    let list = api.dead_letters.read(&layout::resolved_letters_key(key));
    list.is_some_and(|list| !ResolvedLetters::parse(&list).unwrap().places.is_empty())
}

/// Whether the work is done: it is gone, or kept for who comes back.
fn is_done(api: &Api, work: &LetterEnding) -> bool {
    left(api, work).is_none_or(|left| left.ended_at.is_some())
}

pub(super) fn resolved(api: &Api) -> [bool; 3] {
    [A, B, C].map(|key| is_resolved(api, key))
}

pub(super) async fn ask(api: &Api, action: &str, request: Value) -> Answer {
    let path = format!("{PATH}/dead-letters/{action}");
    let json = [("content-type", "application/json")];
    api.call("POST", &path, &json, request.to_string()).await
}

pub(super) fn cursor(key: &str) -> String {
    crate::paging::encode_cursor(key)
}

/// The mark of an endpoint that was asked goes with the request.
#[tokio::test]
async fn request_deletes_its_mark_once_nobody_is_left_to_ask() {
    let api = Api::new();
    api.put("/topics/Orders", json!({})).await;
    let consent = [("webhook-allowed-origin", "*")];
    api.endpoint.answer(move |_| answered(200, &consent, ""));
    let state = api.state.clone();
    let (seen, marks) = std::sync::mpsc::channel();
    api.state
        .when_read(move || seen.send(state.read(MARK).is_some()).unwrap());
    assert_eq!(api.put(PATH, asked()).await.status, 201);
    assert!(marks.try_iter().any(|is_marked| is_marked));
    assert!(api.state.read(MARK).is_none());
}

/// An API on which a process died before it asked an endpoint, which consents.
async fn with_unasked() -> Api {
    let api = Api::new();
    api.put("/topics/Orders", json!({})).await;
    // No answer in time, so that it stays to be asked.
    api.endpoint.hang();
    api.clock.shorten_nights_to(Duration::from_secs(14));
    assert_eq!(api.put(PATH, asked()).await.status, 201);
    assert!(api.state.read(MARK).is_some());
    api.clock.shorten_nights_to(Duration::ZERO);
    api.endpoint.go_on();
    let consent = [("webhook-allowed-origin", "*")];
    api.endpoint.answer(move |_| answered(200, &consent, ""));
    api.clock.advance(MINUTE);
    api
}

#[tokio::test]
async fn left_handshake_is_finished_beside_an_answer() {
    let api = with_unasked().await.then_looking_beside_answers();
    let request = http::Request::builder().uri("/topics/Orders");
    let refused = api
        .send(request.body(axum::body::Body::empty()).unwrap())
        .await;
    assert_eq!(refused.status, 401);
    assert_eq!(api.get("/health").await.status, 200);
    assert!(api.state.read(MARK).is_some());
    assert_eq!(api.get("/topics/Orders").await.status, 200);
    assert!(api.state.read(MARK).is_none());
    assert_eq!(api.get(PATH).await.json()["status"]["state"], "Active");
}

/// Endpoints that hang hold an answer up for two seconds, and not for their own time.
#[tokio::test]
async fn look_beside_an_answer_ends_soon() {
    let api = with_unasked().await.then_looking_beside_answers();
    api.endpoint.hang();
    api.clock.shorten_nights_to(Duration::from_secs(2));
    let begun = api.clock.now();
    assert_eq!(api.get("/topics/Orders").await.status, 200);
    assert_eq!(api.clock.now().since(begun), Duration::from_secs(2));
    assert!(api.state.read(MARK).is_some());
}

/// Two instances find the same mark: one of them asks.
#[tokio::test]
async fn left_handshake_is_taken_up_once() {
    let api = with_unasked().await;
    api.endpoint.take();
    tokio::join!(
        api.manage.finish_left(LeftWork::Old),
        api.manage.finish_left(LeftWork::Old)
    );
    assert_eq!(api.endpoint.take().len(), 1);
    assert!(api.state.read(MARK).is_none());
}

/// More marks lie before it than one look has turns for.
#[tokio::test]
async fn later_mark_has_its_turn_at_the_next_look() {
    let api = with_unasked().await;
    for number in 0..150 {
        // Of topics whose records nothing can be read of.
        api.state.write(&format!("validating/a{number:03}"), "");
        api.state.write(&format!("topics/a{number:03}.json"), "{");
    }
    api.manage.finish_left(LeftWork::Old).await;
    assert!(api.state.read(MARK).is_some());
    api.manage.finish_left(LeftWork::Old).await;
    assert!(api.state.read(MARK).is_none());
}

/// The subscription is deleted after a request of its letters was cut: what it excluded stays.
#[tokio::test]
async fn deletion_meanwhile_changes_no_selection() {
    let api = api().await;
    api.dead_letters
        .write(B, json!([former_letter()]).to_string());
    let open = work(&api, LetterEnd::Delete, None);
    leave(&api, &open);
    assert_eq!(api.delete("/topics/orders").await.status, 204);
    api.clock.advance(MINUTE);
    api.manage.finish_left(LeftWork::Old).await;
    assert!(api.dead_letters.read(A).is_none() && api.dead_letters.read(C).is_none());
    assert!(api.dead_letters.read(B).is_some());
    assert_eq!(left(&api, &open), None);
}

/// The subscription is created again after a request of its letters was cut.
#[tokio::test]
async fn work_of_another_creation_is_no_open_work() {
    let api = api().await;
    let open = work(&api, LetterEnd::Resolve, None);
    leave(&api, &open);
    assert_eq!(api.delete("/topics/orders").await.status, 204);
    assert_eq!(api.put("/topics/Orders", json!({})).await.status, 201);
    assert_eq!(api.put(PATH, billing()).await.status, 201);
    let answer = ask(&api, "resolve", json!({})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_ne!(answer.json()["id"], "open");
    assert!(left(&api, &open).is_some());
}

/// A request with a cursor beside one that is under way leaves that one's mark as it is.
#[tokio::test]
async fn cursor_beside_open_work_leaves_its_mark() {
    for after in [None, Some(C)] {
        let api = api().await;
        let open = work(&api, LetterEnd::Resolve, after);
        leave(&api, &open);
        let answer = ask(&api, "resolve", json!({ "cursor": cursor(A) })).await;
        assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("open")));
        assert_eq!(resolved(&api), [false, true, true]);
        assert_eq!(left(&api, &open), Some(open));
    }
}

/// Whoever goes on from where the work came takes it over, and ends it.
#[tokio::test]
async fn cursor_of_the_work_itself_takes_it_over() {
    let api = api().await;
    let open = work(&api, LetterEnd::Resolve, Some(A));
    leave(&api, &open);
    let answer = ask(&api, "resolve", json!({ "cursor": cursor(A) })).await;
    assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("open")));
    assert_eq!(left(&api, &open), None);
}

/// Somebody else takes the work over while this one works: its mark is not overwritten or deleted.
#[tokio::test]
async fn work_that_was_taken_over_is_left_to_who_has_it() {
    let api = api().await;
    let open = work(&api, LetterEnd::Resolve, None);
    leave(&api, &open);
    api.clock.advance(MINUTE);
    let other = LetterEnding {
        id: "other".to_owned(),
        ..work(&api, LetterEnd::Resolve, None)
    };
    let state = api.state.clone();
    let key = other.key();
    let bytes = other.render();
    api.dead_letters
        .when_read(move || state.write(&key, bytes.clone()));
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(left(&api, &open), Some(other));
}

/// The same is asked for again after a cut: letters came since, also before what was done.
#[tokio::test]
async fn repetition_after_a_cut_begins_anew() {
    let api = api().await;
    let open = work(&api, LetterEnd::Resolve, Some(C));
    leave(&api, &open);
    api.clock.advance(MINUTE);
    let answer = ask(&api, "resolve", json!({})).await;
    assert_eq!((answer.status, &answer.json()["id"]), (200, &json!("open")));
    assert_eq!(resolved(&api), [true; 3]);
    assert_eq!(left(&api, &open), None);
}

/// The object of work that has ended is about to be deleted: a request does not claim it.
#[tokio::test]
async fn ended_work_is_not_claimed_before_it_is_gone() {
    let api = api().await;
    let ended = LetterEnding {
        has_ended: true,
        ..work(&api, LetterEnd::Resolve, Some(C))
    };
    leave(&api, &ended);
    let answer = ask(&api, "resolve", json!({})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(resolved(&api), [true; 3]);
    assert_eq!(left(&api, &ended), Some(ended.clone()));
    api.clock.advance(MINUTE);
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(left(&api, &ended), None);
}

/// An object that cannot be read keeps no other from its end.
#[tokio::test]
async fn poison_object_is_counted_and_passed_over() {
    let api = api().await;
    api.dead_letters.damage(B);
    let answer = ask(&api, "resolve", json!({})).await;
    let shown = answer.json();
    assert_eq!(
        (answer.status, &shown["objects"], &shown["failed"]),
        (200, &json!(2), &json!(1)),
        "{shown}"
    );
    assert_eq!(shown["failures"][0]["key"], B);
    assert_eq!(resolved(&api), [true, false, true]);
    let open = work(&api, LetterEnd::Resolve, None);
    assert_eq!(left(&api, &open), None);
}

/// A store that fails stops the work, which goes on from there.
#[tokio::test]
async fn failing_store_keeps_the_place_of_the_work() {
    let api = api().await;
    for number in 0..5 {
        let key = format!("ORDERS/BILLING/2026/11/21/10/x{number}.json");
        api.dead_letters
            .write(&key, json!([letter("x")]).to_string());
    }
    let store = api.dead_letters.clone();
    api.dead_letters.when_read(move || {
        if is_list(&store, C) {
            store.fail_puts(ErrorKind::TimedOut);
        }
    });
    let answer = ask(&api, "resolve", json!({})).await;
    answer.problem(503, "unavailable");
    let open = work(&api, LetterEnd::Resolve, None);
    let stopped = left(&api, &open).unwrap();
    assert_eq!(stopped.after.as_deref(), Some(C));
    // The objects behind are looked at again, and counted then.
    let counts = stopped.done.unwrap();
    assert_eq!((counts.events, counts.failed, counts.read), (3, 0, 3));
    api.dead_letters.when_read(|| {});
    api.dead_letters.mend_puts();
    api.clock.advance(MINUTE);
    api.manage.finish_left(LeftWork::Old).await;
    assert!(is_resolved(&api, "ORDERS/BILLING/2026/11/21/10/x4.json"));
    assert!(is_done(&api, &open));
}

fn is_open(state: &super::memory::Memory, key: &str) -> bool {
    state
        .read(key)
        .is_some_and(|work| LetterEnding::parse(&work).unwrap().is_open())
}

fn is_list(store: &super::memory::Memory, key: &str) -> bool {
    store.read(&layout::resolved_letters_key(key)).is_some()
}

/// Work that fails for a day is given up.
#[tokio::test]
async fn work_that_fails_for_a_day_is_dropped() {
    let api = api().await;
    let open = work(&api, LetterEnd::Resolve, None);
    leave(&api, &open);
    api.dead_letters.fail_puts(ErrorKind::TimedOut);
    let is_left = async |age| {
        api.clock.advance(age);
        api.manage.finish_left(LeftWork::Old).await;
        left(&api, &open).is_some()
    };
    assert!(is_left(Duration::from_hours(23)).await);
    assert!(!is_left(Duration::from_hours(1)).await);
}

/// Work that is older than a day and gets on is not given up for one failure.
#[tokio::test]
async fn old_work_that_gets_on_is_not_given_up() {
    let api = api().await;
    let open = work(&api, LetterEnd::Resolve, None);
    leave(&api, &open);
    api.clock.advance(Duration::from_hours(24));
    // Time for one object of each look.
    api.dead_letters
        .slow_reads(&api.clock, Duration::from_secs(15));
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(resolved(&api), [true, false, false]);
    api.dead_letters.fail(ErrorKind::TimedOut);
    let is_left = async |age| {
        api.clock.advance(age);
        api.manage.finish_left(LeftWork::Old).await;
        left(&api, &open).is_some()
    };
    assert!(is_left(Duration::from_hours(23)).await);
    assert!(!is_left(Duration::from_hours(1)).await);
}

/// One look goes on with the same work for as long as it has time.
#[tokio::test]
async fn large_selection_is_finished_in_one_look() {
    let api = api().await;
    let key = |number| format!("ORDERS/BILLING/2026/11/21/09/{number:04}.json");
    for number in 0..3_500 {
        api.dead_letters
            .write(&key(number), json!([letter("x")]).to_string());
    }
    let open = work(&api, LetterEnd::Delete, None);
    leave(&api, &open);
    api.clock.advance(MINUTE);
    api.manage.finish_left(LeftWork::Old).await;
    assert!(api.dead_letters.read(&key(3_499)).is_none());
    assert!(is_done(&api, &open));
}

/// Work that a look has no time for is continued by the next one, half a minute later.
#[tokio::test]
async fn work_that_a_look_had_no_time_for_is_given_back() {
    let api = api().await;
    let open = work(&api, LetterEnd::Resolve, None);
    leave(&api, &open);
    api.clock.advance(MINUTE);
    // Two reads of each object, so that there is time for one of them.
    api.dead_letters
        .slow_reads(&api.clock, Duration::from_secs(15));
    let is_all = async || {
        api.manage.finish_left(LeftWork::Old).await;
        resolved(&api)
    };
    assert_eq!(is_all().await, [true, false, false]);
    let after = left(&api, &open).unwrap();
    assert_eq!(
        (after.after.as_deref(), after.worked_at),
        (Some(A), open.worked_at)
    );
    assert_eq!(is_all().await, [true, true, false]);
    assert_eq!(is_all().await, [true, true, true]);
    assert!(is_done(&api, &open));
}

/// Selections have turns: a large one of one customer does not hold up another's.
#[tokio::test]
async fn large_selections_leave_turns_to_others() {
    let api = api().await;
    let small = work(&api, LetterEnd::Resolve, None);
    let mut others = Vec::new();
    for number in 0..8 {
        let name = format!("big{number}");
        let other = LetterEnding {
            subscription: SubscriptionName::parse(&name).unwrap(),
            ..small.clone()
        };
        let folder = format!("ORDERS/{}/2026/11/21/10", name.to_ascii_uppercase());
        for object in 0..1_500 {
            let key = format!("{folder}/{object:04}.json");
            api.dead_letters
                .write(&key, json!([letter("x")]).to_string());
        }
        leave(&api, &other);
        others.push(other);
    }
    leave(&api, &small);
    api.clock.advance(MINUTE);
    let state = api.state.clone();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let keys: Vec<_> = others.iter().map(LetterEnding::key).collect();
    let dead = api.dead_letters.clone();
    let at_end = std::sync::Arc::clone(&seen);
    api.dead_letters.when_read(move || {
        let is_done = is_list(&dead, C);
        let mut at_end = at_end.lock().unwrap();
        if is_done && at_end.is_none() {
            *at_end = Some(keys.iter().filter(|key| is_open(&state, key)).count());
        }
    });
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(*seen.lock().unwrap(), Some(8));
    assert!(others.iter().all(|other| is_done(&api, other)));
}

/// A mark of this kind is as old as the last time somebody worked on it.
#[tokio::test]
async fn work_that_is_under_way_is_not_taken_up() {
    let api = api().await;
    let open = work(&api, LetterEnd::Resolve, None);
    leave(&api, &open);
    api.clock.advance(Duration::from_secs(44));
    api.manage.finish_left(LeftWork::Old).await;
    assert_eq!(left(&api, &open), Some(open.clone()));
    assert_ne!(open.began_at, Timestamp::EPOCH);
}
