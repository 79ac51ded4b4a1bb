//! Tries, states and incidents, on times that the tests name.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::circuit::{RequestFailure, TargetCondition, TargetPhase};
use crate::model::{ArrivalSettings, OutcomeName, SubscriptionStatus, Timestamp};

const START: Timestamp = Timestamp::from_millis(1_700_000_040_000);
const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);
const LINK: &str = "https://a.example:443";

const REFUSED: TryResult = TryResult::Failed {
    outcome: Some(OutcomeName::Unauthorized),
    status: Some(401),
    is_last: true,
};
const BUSY: TryResult = TryResult::Failed {
    outcome: Some(OutcomeName::Busy),
    status: Some(503),
    is_last: false,
};

fn seen(key: &str, at: Timestamp, result: TryResult) -> SeenTry<'_> {
    SeenTry {
        key,
        accepted_at: START,
        at,
        is_first: false,
        result,
    }
}

fn tries(results: impl IntoIterator<Item = (u64, TryResult)>) -> SubscriptionTries {
    let mut tries = SubscriptionTries::default();
    for (second, result) in results {
        tries.add_try(&seen("a", START + Duration::from_secs(second), result));
    }
    tries
}

/// So many tries with this result, all at the start.
fn many(count: u64, result: TryResult) -> SubscriptionTries {
    tries((0..count).map(|_| (0, result)))
}

fn book(all: impl IntoIterator<Item = (&'static str, SubscriptionTries)>) -> HealthBook {
    let mut book = HealthBook::default();
    let tries = all.into_iter().map(|(key, tries)| (key.to_owned(), tries));
    book.add_tries(tries.collect(), "first");
    book
}

fn facts_on(link: &str, of_link: Option<TargetCondition>) -> HealthFacts {
    HealthFacts {
        standing: RecordedStatus::Active,
        link: link.to_owned(),
        own: None,
        of_link,
    }
}

/// Decides where every subscription is active, and the circuit knows this of its link.
fn decide(book: &mut HealthBook, of_link: Option<&TargetCondition>, now: Timestamp) {
    let keys: Vec<_> = book
        .subscriptions()
        .map(|(key, _)| key.to_owned())
        .collect();
    let facts = keys
        .into_iter()
        .map(|key| (key, facts_on(LINK, of_link.cloned())))
        .collect();
    let links = of_link.map(|condition| (LINK.to_owned(), condition.clone()));
    let links = links.into_iter().collect();
    book.update_incidents(&facts, &links, now, &ArrivalSettings::default());
}

/// The kinds of the notices that are due, which are marked as sent.
fn told(book: &mut HealthBook) -> Vec<String> {
    let due = book.due_notices();
    for notice in &due {
        book.mark_told(notice);
    }
    let word = |notice: &DueNotice| match notice {
        DueNotice::Failing { key, .. } => format!("{key} failing"),
        DueNotice::Recovered { key, .. } => format!("{key} recovered"),
        DueNotice::Delayed { key, .. } => format!("{key} delayed"),
        DueNotice::MissedEnds { key, .. } => format!("{key} skipping"),
        DueNotice::LinkFailing { .. } => "link failing".to_owned(),
        DueNotice::LinkRecovered { .. } => "link recovered".to_owned(),
    };
    due.iter().map(word).collect()
}

fn held(phase: TargetPhase) -> TargetCondition {
    TargetCondition {
        phase,
        since: START,
        failing_since: START,
        hold: 1,
        until: START + MINUTE,
        failures: 10,
        last: RequestFailure {
            outcome: OutcomeName::SocketError,
            status: None,
        },
        probe: None,
        told_down: false,
        asked: false,
        forced: false,
        refused: false,
    }
}

#[test]
fn ten_failures_in_a_row_whatever_their_status_are_failing() {
    let settings = ArrivalSettings::default();
    for result in [REFUSED, BUSY] {
        assert!(!many(9, result).is_failing(START, &settings));
        assert!(many(10, result).is_failing(START, &settings));
    }
    let mut broken = many(9, REFUSED);
    broken.append_later(many(1, TryResult::Arrived));
    broken.append_later(many(9, REFUSED));
    assert_eq!(broken.in_row(), 9);
}

#[test]
fn half_of_twenty_tries_that_failed_are_failing() {
    let settings = ArrivalSettings::default();
    let mixed = |arrived: u64, failed: u64| {
        let results = (0..arrived + failed).map(|n| {
            let is_arrival = n % 2 == 0 && n / 2 < arrived || n >= 2 * failed;
            (0, if is_arrival { TryResult::Arrived } else { BUSY })
        });
        tries(results)
    };
    assert!(!mixed(9, 9).is_failing(START, &settings), "too few");
    assert!(mixed(10, 10).is_failing(START, &settings));
    assert!(!mixed(12, 9).is_failing(START, &settings));
}

#[test]
fn rare_tries_are_measured_over_more_than_the_window() {
    let settings = ArrivalSettings::default();
    let rare =
        tries((0..30).map(|n| (n * 600, if n % 2 == 0 { BUSY } else { TryResult::Arrived })));
    let now = START + 300 * MINUTE;
    let share = rare.measured_share(now, &settings);
    assert_eq!((share.arrived, share.failed), (10, 10));
    assert!(rare.is_failing(now, &settings));
    let often = tries((0..600).map(|n| (n, TryResult::Arrived)));
    let share = often.measured_share(START + 10 * MINUTE, &settings);
    assert_eq!(share.tries(), 300, "five minutes of ten");
}

#[test]
fn failing_subscription_is_told_of_once_and_when_it_is_healthy() {
    let mut book = book([("orders.billing", many(1000, REFUSED))]);
    decide(&mut book, None, START);
    assert_eq!(told(&mut book), ["orders.billing failing"]);
    for minute in 1..60 {
        decide(&mut book, None, START + minute * MINUTE);
        assert_eq!(told(&mut book), [""; 0], "{minute}");
    }
    let arrived = tries([(3600, TryResult::Arrived)]);
    book.add_tries([("orders.billing".to_owned(), arrived)].into(), "second");
    decide(&mut book, None, START + 61 * MINUTE);
    assert_eq!(told(&mut book), ["orders.billing recovered"]);
    decide(&mut book, None, START + 62 * MINUTE);
    assert_eq!(told(&mut book), [""; 0]);
}

/// The endpoint takes every eleventh request, and other events wait.
#[test]
fn single_arrival_among_failures_ends_no_incident() {
    let mut book = book([("orders.a", many(10, BUSY))]);
    decide(&mut book, None, START);
    assert_eq!(told(&mut book), ["orders.a failing"]);
    let arrives = |key, second| {
        let mut tries = SubscriptionTries::default();
        let at = START + Duration::from_secs(second);
        tries.add_try(&seen(key, at, TryResult::Arrived));
        tries
    };
    let mut add = |key, second| {
        let tries = [("orders.a".to_owned(), arrives(key, second))];
        book.add_tries(tries.into(), &second.to_string());
        decide(&mut book, None, START + Duration::from_secs(second));
        told(&mut book)
    };
    assert_eq!(add("b", 300), Vec::<String>::new());
    assert_eq!(add("c", 600), Vec::<String>::new());
    assert_eq!(add("d", 900), ["orders.a recovered"]);
}

/// The endpoint goes down while an event that fails alone is tried.
#[test]
fn arrivals_before_an_incident_do_not_end_it() {
    let at = |second| START + Duration::from_secs(second);
    let arrive = |tries: &mut SubscriptionTries, key: &str, second| {
        tries.add_try(&SeenTry {
            is_first: true,
            ..seen(key, at(second), TryResult::Arrived)
        });
    };
    let mut quiet = tries([(0, BUSY)]);
    for n in 0..9 {
        arrive(&mut quiet, &format!("other{n}"), 1);
    }
    quiet.add_try(&seen("a", at(300), BUSY));
    let mut book = book([("orders.a", quiet)]);
    let decide = |book: &mut HealthBook, second| {
        let held_off = HealthFacts {
            own: Some(held(TargetPhase::Retry)),
            ..facts_on(LINK, None)
        };
        let facts = [("orders.a".to_owned(), held_off)].into();
        let settings = ArrivalSettings::default();
        book.update_incidents(&facts, &BTreeMap::new(), at(second), &settings);
        told(book)
    };
    assert_eq!(decide(&mut book, 360), ["orders.a failing"]);
    assert_eq!(decide(&mut book, 420), [""; 0]);
    let mut arrived = SubscriptionTries::default();
    arrive(&mut arrived, "later", 480);
    book.add_tries([("orders.a".to_owned(), arrived)].into(), "second");
    assert_eq!(decide(&mut book, 480), [""; 0], "one is too few");
}

/// The circuit lags behind: it holds requests back until a few more have arrived.
#[test]
fn recovered_subscription_is_healthy_while_the_circuit_holds() {
    let mut book = book([("orders.a", many(10, BUSY))]);
    decide(&mut book, None, START);
    told(&mut book);
    let mut arrived = SubscriptionTries::default();
    let at = START + MINUTE * 3;
    arrived.add_try(&seen("a", at, TryResult::Arrived));
    book.add_tries([("orders.a".to_owned(), arrived)].into(), "arrived");
    decide(&mut book, None, at);
    assert_eq!(told(&mut book), ["orders.a recovered"]);
    let held = held(TargetPhase::Retry);
    let state = |now| {
        let health = book.subscription("orders.a");
        let settings = ArrivalSettings::default();
        health_state(
            SubscriptionStatus::Active,
            health,
            &[Some(&held)],
            now,
            &settings,
        )
        .to_string()
    };
    assert_eq!(state(at), "healthy");
    assert_eq!(state(at + MINUTE * 10), "down");
}

/// The process dies between the notice and its mark.
#[test]
fn notice_without_a_mark_is_due_again_with_the_same_incident() {
    let mut book = book([("orders.billing", many(10, REFUSED))]);
    decide(&mut book, None, START);
    let first = book.due_notices();
    let mut book = HealthBook::parse(&book.render()).unwrap();
    book.add_tries(
        [("orders.billing".to_owned(), many(5, REFUSED))].into(),
        "x",
    );
    decide(&mut book, None, START + MINUTE);
    assert_eq!(book.due_notices(), first);
}

#[test]
fn link_that_is_the_cause_has_the_only_notices() {
    let names: Vec<_> = (0..100).map(|n| format!("orders.s{n:02}")).collect();
    let mut book = HealthBook::default();
    let all = names.iter().map(|name| (name.clone(), many(1, BUSY)));
    book.add_tries(all.collect(), "first");
    let down = held(TargetPhase::Glitch);
    decide(&mut book, Some(&down), START);
    assert_eq!(told(&mut book), [""; 0], "it may be over in a moment");
    decide(&mut book, Some(&down), START + MINUTE);
    assert_eq!(told(&mut book), ["link failing"]);
    let down = held(TargetPhase::Retry);
    decide(&mut book, Some(&down), START + 5 * MINUTE);
    assert_eq!(told(&mut book), [""; 0]);
    let up = TargetCondition {
        until: START + 10 * MINUTE,
        ..held(TargetPhase::Recovering)
    };
    decide(&mut book, Some(&up), START + 10 * MINUTE);
    assert_eq!(told(&mut book), [""; 0]);
    decide(&mut book, Some(&up), START + 11 * MINUTE);
    assert_eq!(told(&mut book), ["link recovered"]);
    // One of them fails by itself.
    book.add_tries([(names[7].clone(), many(10, REFUSED))].into(), "second");
    decide(&mut book, None, START + 12 * MINUTE);
    assert_eq!(told(&mut book), ["orders.s07 failing"]);
}

/// A gateway answers 503 for all that is behind it.
#[test]
fn subscriptions_of_a_link_that_fail_together_have_its_notices() {
    let names = ["a.a", "a.b", "a.c", "a.d", "a.e", "a.f"];
    let mut book = book(names.map(|name| (name, many(10, BUSY))));
    decide(&mut book, None, START);
    assert_eq!(told(&mut book), ["link failing"]);
    for (at, name) in names.into_iter().enumerate().take(3) {
        let arrived = tries([(180, TryResult::Arrived)]);
        book.add_tries([(name.to_owned(), arrived)].into(), &at.to_string());
    }
    decide(&mut book, None, START + 4 * MINUTE);
    assert_eq!(told(&mut book), ["link recovered"]);
}

/// `force` proves nothing, and the time of the first failure stands.
#[test]
fn force_does_not_restart_the_clock() {
    let forced = TargetCondition {
        forced: true,
        until: START + Duration::from_secs(50),
        since: START + Duration::from_secs(50),
        ..held(TargetPhase::Recovering)
    };
    let mut book = book([("orders.billing", many(3, BUSY))]);
    decide(&mut book, Some(&forced), START + MINUTE);
    assert_eq!(told(&mut book), ["link failing"]);
    decide(&mut book, Some(&forced), START + 10 * MINUTE);
    assert_eq!(told(&mut book), [""; 0]);
}

#[test]
fn pause_that_the_endpoint_asked_for_is_no_failure() {
    let pause = TargetCondition {
        asked: true,
        hold: 0,
        ..held(TargetPhase::Glitch)
    };
    let mut book = book([("orders.billing", many(1, BUSY))]);
    decide(&mut book, Some(&pause), START + 10 * MINUTE);
    assert_eq!(told(&mut book), [""; 0]);
    let known = book.subscription("orders.billing");
    let settings = ArrivalSettings::default();
    let state = health_state(
        SubscriptionStatus::Active,
        known,
        &[Some(&pause)],
        START,
        &settings,
    );
    assert_eq!(state, HealthState::Healthy);
}

#[test]
fn late_event_is_told_of_once_however_often_it_is_tried() {
    let mut book = book([("orders.billing", many(1, BUSY))]);
    let hour = 60 * MINUTE;
    decide(&mut book, None, START + hour.saturating_sub(MINUTE));
    assert_eq!(told(&mut book), [""; 0]);
    decide(&mut book, None, START + hour);
    assert_eq!(told(&mut book), ["orders.billing delayed"]);
    book.add_tries(
        [("orders.billing".to_owned(), tries([(4000, BUSY)]))].into(),
        "b",
    );
    decide(&mut book, None, START + 2 * hour);
    assert_eq!(told(&mut book), [""; 0]);
    // It arrives, and an hour later another one is late.
    let mut arrived = SubscriptionTries::default();
    arrived.add_try(&seen("a", START + 2 * hour, TryResult::Arrived));
    book.add_tries([("orders.billing".to_owned(), arrived)].into(), "c");
    assert_eq!(
        book.subscription("orders.billing")
            .unwrap()
            .tries
            .oldest_undelivered(),
        None
    );
    decide(&mut book, None, START + 4 * hour);
    let mut late = SubscriptionTries::default();
    late.add_try(&SeenTry {
        accepted_at: START + 3 * hour,
        ..seen("b", START + 4 * hour, BUSY)
    });
    book.add_tries([("orders.billing".to_owned(), late)].into(), "d");
    decide(&mut book, None, START + 4 * hour);
    assert_eq!(told(&mut book), ["orders.billing delayed"]);
}

/// Events come no more, so that nothing ever arrives.
#[test]
fn incident_without_traffic_is_over_after_a_day() {
    let mut book = book([("orders.billing", many(10, REFUSED))]);
    decide(&mut book, None, START);
    assert_eq!(told(&mut book), ["orders.billing failing"]);
    decide(&mut book, None, START + (24 * 60 - 1) * MINUTE);
    assert_eq!(told(&mut book), [""; 0]);
    decide(&mut book, None, START + 24 * 60 * MINUTE);
    assert_eq!(told(&mut book), ["orders.billing recovered"]);
    decide(&mut book, None, START + 24 * 60 * MINUTE);
    assert!(book.is_empty());
}

#[test]
fn incident_stays_while_an_event_is_undelivered() {
    let mut waiting = many(9, REFUSED);
    waiting.add_try(&SeenTry {
        accepted_at: START + 2 * MINUTE,
        ..seen("b", START, BUSY)
    });
    let mut book = book([("orders.billing", waiting)]);
    decide(&mut book, None, START);
    assert_eq!(told(&mut book), ["orders.billing failing"]);
    decide(&mut book, None, START + 24 * 60 * MINUTE);
    assert_eq!(told(&mut book), ["orders.billing delayed"]);
    let end = START + (25 * 60 + 2) * MINUTE;
    decide(&mut book, None, end);
    assert_eq!(told(&mut book), [""; 0], "it ended somewhere");
    decide(&mut book, None, end);
    assert_eq!(told(&mut book), ["orders.billing recovered"]);
}

/// An incident of a link without traffic is over unless the circuit holds the link.
#[test]
fn idle_link_incident_ends_unless_the_circuit_holds_the_link() {
    let names = ["a.a", "a.b", "a.c", "a.d", "a.e"];
    let day = 24 * 60 * MINUTE;
    let mut book = book(names.map(|name| (name, many(10, REFUSED))));
    decide(&mut book, None, START);
    assert_eq!(told(&mut book), ["link failing"]);
    decide(&mut book, Some(&held(TargetPhase::Retry)), START + day);
    assert_eq!(told(&mut book), [""; 0]);
    decide(&mut book, None, START + day);
    assert_eq!(told(&mut book), ["link recovered"]);
    decide(&mut book, None, START + day);
    assert!(book.is_empty());
}

/// The notice of the incident may have been sent, and only the mark is missing.
#[test]
fn incident_of_a_link_that_was_opened_keeps_its_time() {
    let names = ["a.a", "a.b", "a.c", "a.d", "a.e"];
    let at = |second| tries((0..10).map(|_| (second, REFUSED)));
    let mut book = book(names.map(|name| (name, at(if name == "a.d" { 50 } else { 55 }))));
    decide(&mut book, None, START + MINUTE);
    let first = book.due_notices();
    let [DueNotice::LinkFailing { incident, .. }] = &*first else {
        panic!("{first:?}")
    };
    let since = incident.since;
    assert_eq!(since, START + Duration::from_secs(50), "the first of them");
    book.add_tries([("a.f".to_owned(), at(5))].into(), "late");
    decide(&mut book, None, START + 2 * MINUTE);
    assert!(book.subscription("a.f").unwrap().incident.is_some());
    assert_eq!(book.due_notices(), first);
}

#[test]
fn book_is_astir_while_time_may_decide_something() {
    let settings = ArrivalSettings::default();
    let hour = 60 * MINUTE;
    let mut book = book([("orders.billing", many(10, REFUSED))]);
    decide(&mut book, None, START);
    assert!(
        book.may_change_soon(START + 2 * hour, &settings),
        "a notice is due"
    );
    told(&mut book);
    assert!(book.may_change_soon(START + 59 * MINUTE, &settings));
    assert!(
        !book.may_change_soon(START + hour, &settings),
        "it fails no more"
    );
    let mut late = SubscriptionTries::default();
    late.add_try(&SeenTry {
        accepted_at: START + 3 * hour,
        ..seen("b", START, BUSY)
    });
    book.add_tries([("orders.billing".to_owned(), late)].into(), "second");
    assert!(
        book.may_change_soon(START + 3 * hour, &settings),
        "it may be late"
    );
    decide(&mut book, None, START + 4 * hour);
    assert_eq!(told(&mut book), ["orders.billing delayed"]);
    assert!(
        !book.may_change_soon(START + 4 * hour, &settings),
        "it is told"
    );
}

#[test]
fn stopped_subscription_leaves_the_book_without_a_notice() {
    let mut book = book([("orders.billing", many(10, REFUSED))]);
    decide(&mut book, None, START);
    told(&mut book);
    let facts = HealthFacts {
        standing: RecordedStatus::Stopped,
        ..facts_on(LINK, None)
    };
    let facts = [("orders.billing".to_owned(), facts)].into();
    let settings = ArrivalSettings::default();
    book.update_incidents(&facts, &BTreeMap::new(), START, &settings);
    assert!(book.is_empty() && book.due_notices().is_empty());
}

#[test]
fn healthy_subscription_is_forgotten_after_an_hour() {
    let mut one = many(1, REFUSED);
    one.add_try(&seen("b", START, TryResult::Arrived));
    let mut book = book([("orders.billing", one)]);
    decide(&mut book, None, START + 59 * MINUTE);
    assert!(!book.is_empty());
    decide(&mut book, None, START + 60 * MINUTE);
    assert!(book.is_empty());
}

#[test]
fn write_that_is_repeated_counts_once() {
    let mut book = HealthBook::default();
    let nine = || [("orders.billing".to_owned(), many(9, REFUSED))].into();
    assert!(book.add_tries(nine(), "run"));
    assert!(!book.add_tries(nine(), "run"));
    let failed = |book: &HealthBook| book.subscription("orders.billing").unwrap().tries.in_row();
    assert_eq!(failed(&book), 9);
    assert!(book.add_tries(nine(), "another run"));
    assert_eq!(failed(&book), 18);
}

#[test]
fn arrivals_alone_are_not_in_the_book_and_it_is_bounded() {
    let mut book = HealthBook::default();
    let mut arrived = SubscriptionTries::default();
    arrived.add_try(&SeenTry {
        is_first: true,
        ..seen("a", START, TryResult::Arrived)
    });
    assert!(!book.add_tries([("a.b".to_owned(), arrived)].into(), "a"));
    let many_keys = (0..=SUBSCRIPTIONS_IN_BOOK_MAX).map(|n| (format!("a.s{n}"), many(1, BUSY)));
    book.add_tries(many_keys.collect(), "b");
    assert_eq!(book.subscriptions().count(), SUBSCRIPTIONS_IN_BOOK_MAX);
}

#[test]
fn states_have_the_words_of_all_surfaces() {
    let settings = ArrivalSettings::default();
    let of = |status, tries: Option<SubscriptionTries>, condition: Option<&TargetCondition>| {
        let health = tries.map(|tries| SubscriptionHealth {
            tries,
            ..SubscriptionHealth::default()
        });
        health_state(status, health.as_ref(), &[condition], START, &settings).to_string()
    };
    let mut some = many(20, BUSY);
    some.append_later(many(1, TryResult::Arrived));
    some.append_later(many(10, BUSY));
    assert_eq!(of(SubscriptionStatus::Active, None, None), "healthy");
    assert_eq!(
        of(SubscriptionStatus::Active, Some(some.clone()), None),
        "failing"
    );
    assert_eq!(
        of(SubscriptionStatus::Active, Some(many(10, REFUSED)), None),
        "down"
    );
    assert_eq!(
        of(
            SubscriptionStatus::Active,
            None,
            Some(&held(TargetPhase::Retry))
        ),
        "down"
    );
    assert_eq!(of(SubscriptionStatus::Paused, Some(some), None), "paused");
    assert_eq!(of(SubscriptionStatus::Pending, None, None), "pending");
    assert_eq!(of(SubscriptionStatus::Failed, None, None), "refused");
    assert_eq!(of(SubscriptionStatus::Disabled, None, None), "disabled");
    let read = |word: &str| serde_json::from_str::<HealthState>(word).unwrap();
    assert_eq!(read("\"retry\""), HealthState::Unknown, "of release 0.1");
}

/// As a program wrote it that knew nothing of single events.
#[test]
fn book_without_events_is_read_and_stays_as_it_is() {
    const FIXTURE: &str = include_str!("../stored/fixtures/health-book-v1.json");
    let book = HealthBook::parse(FIXTURE.as_bytes()).unwrap();
    assert_eq!(book.subscriptions().count(), 2);
    assert_eq!(book.render(), FIXTURE.trim_end());
}

#[test]
fn book_is_stored_like_this() {
    const FIXTURE: &str = include_str!("../stored/fixtures/health-book-v1-events.json");
    let mut book = book([("orders.billing", tries([(0, BUSY), (60, REFUSED)]))]);
    book.add_tries([("orders.crm".to_owned(), many(10, BUSY))].into(), "second");
    decide(&mut book, Some(&held(TargetPhase::Retry)), START + MINUTE);
    assert_eq!(book.render(), FIXTURE.trim_end());
    assert_eq!(HealthBook::parse(FIXTURE.as_bytes()).unwrap(), book);
}

proptest! {
    /// However tries are cut into parts, their sums are those of all, and so is the row.
    #[test]
    fn parts_of_tries_add_up(
        results in proptest::collection::vec((0..3_u8, 0..600_u64), 0..200),
        cuts in proptest::collection::vec(0..200_usize, 0..5),
    ) {
        let result = |n| match n {
            0 => TryResult::Arrived,
            1 => BUSY,
            _ => REFUSED,
        };
        let results: Vec<_> = results.into_iter().map(|(n, at)| (at, result(n))).collect();
        let whole = tries(results.iter().copied());
        let mut sum = SubscriptionTries::default();
        let mut cuts = cuts;
        cuts.push(results.len());
        cuts.sort_unstable();
        let mut from = 0;
        for cut in cuts {
            let to = cut.min(results.len()).max(from);
            sum.append_later(tries(results[from..to].iter().copied()));
            from = to;
        }
        let settings = ArrivalSettings::default();
        let now = START + 20 * MINUTE;
        prop_assert_eq!(sum.measured_share(now, &settings), whole.measured_share(now, &settings));
        prop_assert_eq!(sum.in_row(), whole.in_row());
        prop_assert_eq!(sum.row_since(), whole.row_since());
        prop_assert_eq!(sum.last_failure(), whole.last_failure());
    }
}

/// The last hour is shown, however short the window is that decides.
#[test]
fn share_of_the_last_hour_is_kept_beside_the_window() {
    let settings = ArrivalSettings::default();
    let mut often =
        tries((0..7_200).map(|n| (n, if n % 4 == 0 { TryResult::Arrived } else { BUSY })));
    let now = START + 120 * MINUTE;
    often.forget_outdated(now, &settings);
    let measured = often.measured_share(now, &settings);
    assert_eq!(measured.tries(), 300, "five minutes");
    let hour = often.share_since(START + 60 * MINUTE);
    assert_eq!((hour.arrived, hour.failed), (900, 2_700));
    assert_eq!(hour.from, Some(START + 60 * MINUTE));
    assert_eq!(often.share_since(START), hour, "older ones are forgotten");
    assert_eq!(often.share_since(now + MINUTE).tries(), 0);
}

/// Parts are written in any order: what is known of the last failure does not go back.
#[test]
fn last_failure_is_that_of_the_latest_time() {
    let late = many(40, REFUSED);
    for early in [tries([(1, BUSY)]), many(40, BUSY)] {
        let mut all = tries([(5, REFUSED), (3, BUSY)]);
        assert_eq!(all.last_failure().unwrap().at, START + 5 * SECOND);
        all.append_later(late.clone());
        all.append_later(early);
        let last = all.last_failure().unwrap();
        assert_eq!((last.at, last.status), (START + 5 * SECOND, Some(401)));
    }
}

/// A clock was a week ahead for a moment: what it noted is not the latest until then.
#[test]
fn tries_of_a_clock_that_was_ahead_are_forgotten() {
    const WEEK: u64 = 7 * 86_400;
    let settings = ArrivalSettings::default();
    let mut all = tries([(WEEK, TryResult::Arrived), (WEEK, REFUSED), (3, BUSY)]);
    all.forget_outdated(START + 5 * SECOND, &settings);
    assert_eq!((all.last_failure(), all.last_arrived_at()), (None, None));
    let share = all.share_since(START);
    assert_eq!((share.arrived, share.failed), (0, 1));
    all.append_later(tries([(6, BUSY), (7, TryResult::Arrived)]));
    all.forget_outdated(START + 5 * SECOND, &settings);
    assert_eq!(all.last_failure().unwrap().at, START + 6 * SECOND);
    assert_eq!(all.last_arrived_at(), Some(START + 7 * SECOND));
}
