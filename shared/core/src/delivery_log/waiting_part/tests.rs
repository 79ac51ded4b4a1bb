use proptest::prelude::*;

use super::super::{LogResult, RecordKind, WaitTransition};
use super::*;
use crate::model::FormatError;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The document as it was first written. Never edited.
const WAITING_PART_V1: &str = include_str!("../../stored/fixtures/waiting-part-v1.json");
const WAITING_LOOK_V1: &str = include_str!("../../stored/fixtures/waiting-look-v1.json");
const WAITING_LOOK_V1_REST: &str = include_str!("../../stored/fixtures/waiting-look-v1-rest.json");

fn record(subscription: &str, wait: WaitTransition) -> LogRecord {
    LogRecord {
        topic: "orders".to_owned(),
        subscription: subscription.to_owned(),
        kind: RecordKind::Attempt,
        result: LogResult::Retry,
        wait,
        ..LogRecord::default()
    }
}

fn changes(message: &str, records: &[LogRecord]) -> Vec<(usize, (String, PartChanges))> {
    WaitChanges::from_records(message, records.iter())
        .into_parts()
        .collect()
}

/// The parts of these messages, added in their order.
fn added(messages: &[(&str, Vec<LogRecord>)]) -> Vec<WaitingPart> {
    let mut parts = vec![WaitingPart::default(); WAITING_PARTS];
    for (message, records) in messages {
        for (part, changes) in changes(message, records) {
            parts[part].add_messages([&changes], NOW);
        }
    }
    parts
}

fn waiting(parts: &[WaitingPart], subscription: &str) -> u64 {
    let key = subscription_key("orders", subscription);
    parts[waiting_part(&key)]
        .waiting_events(&key)
        .unwrap_or_default()
}

#[test]
fn changes_of_a_message_add_up() {
    let parts = added(&[
        (
            "m-1",
            vec![
                record("a", WaitTransition::Begins),
                record("a", WaitTransition::Begins),
            ],
        ),
        (
            "m-2",
            vec![
                record("a", WaitTransition::Lasts),
                record("b", WaitTransition::None),
            ],
        ),
        ("m-3", vec![record("a", WaitTransition::Ends)]),
    ]);
    assert_eq!((waiting(&parts, "a"), waiting(&parts, "b")), (1, 0));
    assert!(parts.iter().all(|part| !part.is_doubtful()));
}

#[test]
fn message_without_a_change_has_no_part() {
    let records = [
        record("a", WaitTransition::None),
        record("a", WaitTransition::Lasts),
        record("b", WaitTransition::Begins),
        record("b", WaitTransition::Ends),
        record("", WaitTransition::Unknown),
    ];
    assert!(WaitChanges::from_records("m-1", records.iter()).is_empty());
}

#[test]
fn message_that_comes_again_counts_once() {
    let begins = || vec![record("a", WaitTransition::Begins)];
    let parts = added(&[("m-1", begins()), ("m-1", begins()), ("m-2", begins())]);
    assert_eq!(waiting(&parts, "a"), 2);
}

#[test]
fn end_that_comes_before_its_beginning_leaves_nothing() {
    let end = ("m-2", vec![record("a", WaitTransition::Ends)]);
    let parts = added(std::slice::from_ref(&end));
    assert_eq!(waiting(&parts, "a"), 0);
    let parts = added(&[end, ("m-1", vec![record("a", WaitTransition::Begins)])]);
    assert!(parts.iter().all(|part| part.waiting.is_empty()));
}

#[test]
fn record_that_does_not_say_its_wait_makes_its_part_doubtful() {
    let parts = added(&[("m-1", vec![record("a", WaitTransition::Unknown)])]);
    let part = waiting_part("orders.a");
    for (index, it) in parts.iter().enumerate() {
        assert_eq!(it.is_doubtful(), index == part);
    }
    let corrected = parts[part].with_exact_counts(&BTreeMap::new());
    assert!(!corrected.is_doubtful() && corrected.with_exact_counts(&BTreeMap::new()) == corrected);
}

#[test]
fn number_below_zero_makes_its_part_doubtful() {
    let end = ("m-2", vec![record("a", WaitTransition::Ends)]);
    let part = waiting_part("orders.a");
    assert!(added(std::slice::from_ref(&end))[part].is_doubtful());
    let parts = added(&[end, ("m-1", vec![record("a", WaitTransition::Begins)])]);
    assert!(!parts[part].is_doubtful());
}

#[test]
fn corrected_part_without_room_stays_doubtful() {
    let exact = |count: usize| (0..count).map(|n| (format!("t.{n}"), 1)).collect();
    let full = WaitingPart::default().with_exact_counts(&exact(WAITING_SUBSCRIPTIONS_MAX));
    assert!(!full.is_doubtful());
    let more = full.with_exact_counts(&exact(WAITING_SUBSCRIPTIONS_MAX + 1));
    assert!(more.is_doubtful() && more.waiting.len() == WAITING_SUBSCRIPTIONS_MAX);
}

#[test]
fn folded_changes_are_a_doubtful_sum() {
    let of = |message: &str, wait| changes(message, &[record("a", wait)]).remove(0).1;
    let messages = [
        of("m-1", WaitTransition::Begins),
        of("m-2", WaitTransition::Begins),
        of("m-3", WaitTransition::Ends),
    ];
    let folded = PartChanges::fold_messages(&messages);
    let mut part = WaitingPart::default();
    part.add_messages([&folded], NOW);
    assert_eq!(part.waiting_events("orders.a"), Some(1));
    assert!(part.is_doubtful());
    assert_eq!(
        PartChanges::fold_messages(&messages[1..]).1.events,
        [].into()
    );
}

#[test]
fn part_has_bounds() {
    let mut part = WaitingPart::default();
    let digest = |n: usize| format!("{n:012x}");
    for n in 0..COUNTED_MESSAGES_MAX + 5 {
        let name = format!("{:0>64}", n % (WAITING_SUBSCRIPTIONS_MAX + 1));
        let events = BTreeMap::from([(subscription_key(&"t".repeat(64), &name), 1_000_000)]);
        let changes = PartChanges {
            events,
            is_doubtful: false,
        };
        part.add_messages([&(digest(n), changes)], NOW);
    }
    assert_eq!(part.waiting.len(), WAITING_SUBSCRIPTIONS_MAX);
    assert!(part.is_doubtful());
    assert_eq!(part.counted.len(), COUNTED_MESSAGES_MAX * 12);
    let has_counted = |n| part.message_digests().any(|it| it == digest(n).as_bytes());
    assert!(!has_counted(4) && has_counted(5));
    assert!(part.render().len() < 350_000, "{}", part.render().len());
}

#[test]
fn digest_is_found_at_its_own_place_only() {
    let mut part = WaitingPart::default();
    let changes = PartChanges {
        events: BTreeMap::from([("a.b".to_owned(), 1)]),
        is_doubtful: false,
    };
    part.add_messages([&("000000000001".to_owned(), changes.clone())], NOW);
    part.add_messages([&("000000000002".to_owned(), changes.clone())], NOW);
    part.add_messages([&("000001000000".to_owned(), changes)], NOW);
    assert_eq!(part.waiting_events("a.b"), Some(3));
}

#[test]
fn part_is_quiet_some_minutes_after_its_last_change() {
    let parts = added(&[("m-1", vec![record("a", WaitTransition::Begins)])]);
    let part = &parts[waiting_part("orders.a")];
    assert!(!part.is_quiet(NOW + Duration::from_secs(299)));
    assert!(part.is_quiet(NOW + Duration::from_mins(5)));
}

#[test]
fn look_is_exact_from_the_first_rest_to_a_gap() {
    let after = |mins| NOW + Duration::from_mins(mins);
    let first = WaitingLook::default().next(NOW, LookOutcome::Busy);
    assert!(!first.is_exact(NOW) && first.is_comparison_due(after(10)));
    let rest = first.next(after(10), LookOutcome::Exact);
    assert!(rest.is_exact(after(35)) && !rest.is_exact(after(36)));
    let busy = rest.next(after(20), LookOutcome::Busy);
    assert!(busy.is_exact(after(20)));
    let late = rest.next(after(36), LookOutcome::NotCompared);
    assert!(!late.is_exact(after(36)) && late.is_comparison_due(after(46)));
    assert!(rest.next(after(36), LookOutcome::Exact).is_exact(after(36)));
}

#[test]
fn looks_are_due_each_ten_minutes_and_comparisons_each_hour() {
    let after = |mins| NOW + Duration::from_mins(mins);
    let mut look = WaitingLook::default().next(NOW, LookOutcome::Exact);
    assert!(!look.is_due(after(8)) && look.is_due(after(9)));
    for mins in [10, 20, 30, 40, 50] {
        assert!(!look.is_comparison_due(after(mins)));
        look = look.next(after(mins), LookOutcome::NotCompared);
    }
    assert!(look.is_comparison_due(after(60)));
    // What is busy is compared at the next look.
    let busy = look.next(after(60), LookOutcome::Busy);
    assert!(busy.is_comparison_due(after(70)));
    let exact = look.next(after(60), LookOutcome::Exact);
    assert!(!exact.is_comparison_due(after(70)));
}

#[test]
fn rest_is_remembered_until_the_next_look() {
    let after = |mins| NOW + Duration::from_mins(mins);
    let exact = WaitingLook::default().next(NOW, LookOutcome::Exact);
    let rest = exact.next(after(10), LookOutcome::Rest("a".to_owned()));
    assert!(rest.is_comparison_due(after(20)));
    assert!(rest.has_seen("a", after(20)) && !rest.has_seen("b", after(20)));
    assert!(!rest.has_seen("a", after(36)));
    assert!(
        !rest
            .next(after(20), LookOutcome::Busy)
            .has_seen("a", after(20))
    );
}

#[test]
fn digest_of_a_rest_is_of_all_that_was_seen() {
    let parts = added(&[("m-1", vec![record("a", WaitTransition::Begins)])]);
    let listed = |events| BTreeMap::from([("orders.a".to_owned(), events)]);
    let digest = rest_digest(&listed(1), parts.iter());
    assert_eq!(digest, rest_digest(&listed(1), parts.iter()));
    assert_ne!(digest, rest_digest(&listed(2), parts.iter()));
    let empty = added(&[]);
    assert_ne!(digest, rest_digest(&listed(1), empty.iter()));
}

#[test]
fn documents_are_written_as_their_fixtures_and_read_back() {
    let mut part = WaitingPart {
        doubtful: true,
        ..WaitingPart::default()
    };
    let changes = PartChanges {
        events: BTreeMap::from([
            ("orders.billing".to_owned(), 12),
            ("orders.crm".to_owned(), -1),
        ]),
        is_doubtful: false,
    };
    part.add_messages([&("0123456789ab".to_owned(), changes)], NOW);
    assert_eq!(part.render(), WAITING_PART_V1.trim_end());
    assert_eq!(
        WaitingPart::parse(WAITING_PART_V1.as_bytes()).unwrap(),
        part
    );
    let look = WaitingLook {
        looked_at: NOW,
        exact_since: Some(NOW),
        ..WaitingLook::default()
    };
    let at_rest = WaitingLook {
        compared_at: Some(NOW),
        rest: Some("0123abcd".to_owned()),
        ..look.clone()
    };
    for (fixture, look) in [(WAITING_LOOK_V1, look), (WAITING_LOOK_V1_REST, at_rest)] {
        assert_eq!(look.render(), fixture.trim_end());
        assert_eq!(WaitingLook::parse(fixture.as_bytes()).unwrap(), look);
    }
    let newer = WAITING_PART_V1.replace("\"v\":1", "\"v\":2");
    let newer = WaitingPart::parse(newer.as_bytes());
    assert!(matches!(newer, Err(FormatError::Newer(2))));
}

/// The life of a delivery: before each of its records it waits if the record before left it so.
fn life(steps: &[bool]) -> Vec<WaitTransition> {
    let before = std::iter::once(false).chain(steps.iter().copied());
    let after = steps.iter().copied();
    before
        .zip(after)
        .map(|(before, after)| WaitTransition::between(before, after))
        .collect()
}

proptest! {
    /// Whatever the order of messages and however often each comes, the sum is the number of
    /// deliveries whose last record left them waiting.
    #[test]
    fn sum_of_changes_is_the_number_that_waits(
        lives in prop::collection::vec((0_usize..5, prop::collection::vec(any::<bool>(), 1..6)), 0..30),
        order in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..4), 200),
    ) {
        let mut messages = Vec::new();
        for (number, (subscription, steps)) in lives.iter().enumerate() {
            for (step, wait) in life(steps).into_iter().enumerate() {
                let record = record(&format!("s{subscription}"), wait);
                messages.push((format!("m-{number}-{step}"), vec![record]));
            }
        }
        let mut shuffled = Vec::new();
        for (index, times) in &order {
            if messages.is_empty() {
                break;
            }
            let message = messages.swap_remove(index.index(messages.len()));
            shuffled.extend(std::iter::repeat_n(message, *times));
        }
        shuffled.extend(messages);
        let shuffled: Vec<_> = shuffled
            .iter()
            .map(|(message, records)| (message.as_str(), records.clone()))
            .collect();
        let parts = added(&shuffled);
        for subscription in 0..5 {
            let of_it = lives.iter().filter(|(it, _)| *it == subscription);
            let waits = of_it.filter(|(_, steps)| steps.last() == Some(&true)).count() as u64;
            prop_assert_eq!(waiting(&parts, &format!("s{subscription}")), waits);
        }
    }
}
