use proptest::prelude::*;

use super::super::{Kind, LogResult, Wait};
use super::*;
use crate::stored::FormatError;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The document as it was first written. Never edited.
const WAITING_PART_V1: &str = include_str!("../../stored/fixtures/waiting-part-v1.json");
const WAITING_LOOK_V1: &str = include_str!("../../stored/fixtures/waiting-look-v1.json");

fn record(subscription: &str, wait: Wait) -> Record {
    Record {
        topic: "orders".to_owned(),
        subscription: subscription.to_owned(),
        kind: Kind::Attempt,
        result: LogResult::Retry,
        wait,
        ..Record::default()
    }
}

fn changes(message: &str, records: &[Record]) -> Vec<(usize, (String, PartChanges))> {
    WaitChanges::of(message, records.iter())
        .into_parts()
        .collect()
}

/// The parts of these messages, added in their order.
fn added(messages: &[(&str, Vec<Record>)]) -> Vec<WaitingPart> {
    let mut parts = vec![WaitingPart::default(); WAITING_PARTS];
    for (message, records) in messages {
        for (part, changes) in changes(message, records) {
            parts[part].add([&changes], NOW);
        }
    }
    parts
}

fn waiting(parts: &[WaitingPart], subscription: &str) -> u64 {
    let key = key("orders", subscription);
    parts[waiting_part(&key)].waiting(&key).unwrap_or_default()
}

#[test]
fn changes_of_a_message_add_up() {
    let parts = added(&[
        (
            "m-1",
            vec![record("a", Wait::Begins), record("a", Wait::Begins)],
        ),
        (
            "m-2",
            vec![record("a", Wait::Lasts), record("b", Wait::None)],
        ),
        ("m-3", vec![record("a", Wait::Ends)]),
    ]);
    assert_eq!((waiting(&parts, "a"), waiting(&parts, "b")), (1, 0));
    assert!(parts.iter().all(|part| !part.is_doubtful()));
}

#[test]
fn message_without_a_change_has_no_part() {
    let records = [
        record("a", Wait::None),
        record("a", Wait::Lasts),
        record("b", Wait::Begins),
        record("b", Wait::Ends),
        record("", Wait::Unknown),
    ];
    assert!(WaitChanges::of("m-1", records.iter()).is_empty());
}

#[test]
fn message_that_comes_again_counts_once() {
    let begins = || vec![record("a", Wait::Begins)];
    let parts = added(&[("m-1", begins()), ("m-1", begins()), ("m-2", begins())]);
    assert_eq!(waiting(&parts, "a"), 2);
}

#[test]
fn end_that_comes_before_its_beginning_leaves_nothing() {
    let end = ("m-2", vec![record("a", Wait::Ends)]);
    let parts = added(std::slice::from_ref(&end));
    assert_eq!(waiting(&parts, "a"), 0);
    let parts = added(&[end, ("m-1", vec![record("a", Wait::Begins)])]);
    assert!(parts.iter().all(|part| part.waiting.is_empty()));
}

#[test]
fn record_that_does_not_say_its_wait_makes_its_part_doubtful() {
    let parts = added(&[("m-1", vec![record("a", Wait::Unknown)])]);
    let part = waiting_part("orders.a");
    for (index, it) in parts.iter().enumerate() {
        assert_eq!(it.is_doubtful(), index == part);
    }
    let mut corrected = parts[part].clone();
    assert!(corrected.correct(&BTreeMap::new()));
    assert!(!corrected.is_doubtful() && !corrected.correct(&BTreeMap::new()));
}

#[test]
fn part_has_bounds() {
    let mut part = WaitingPart::default();
    let digest = |n: usize| format!("{n:012x}");
    for n in 0..COUNTED_MESSAGES_MAX + 5 {
        let name = format!("{:0>64}", n % (WAITING_SUBSCRIPTIONS_MAX + 1));
        let events = BTreeMap::from([(key(&"t".repeat(64), &name), 1_000_000)]);
        let changes = PartChanges {
            events,
            is_doubtful: false,
        };
        part.add([&(digest(n), changes)], NOW);
    }
    assert_eq!(part.waiting.len(), WAITING_SUBSCRIPTIONS_MAX);
    assert!(part.is_doubtful());
    assert_eq!(part.counted.len(), COUNTED_MESSAGES_MAX * 12);
    assert!(!part.has_counted(&digest(4)) && part.has_counted(&digest(5)));
    assert!(part.render().len() < 350_000, "{}", part.render().len());
}

#[test]
fn digest_is_found_at_its_own_place_only() {
    let mut part = WaitingPart::default();
    let changes = PartChanges {
        events: BTreeMap::from([("a.b".to_owned(), 1)]),
        is_doubtful: false,
    };
    part.add([&("000000000001".to_owned(), changes.clone())], NOW);
    part.add([&("000000000002".to_owned(), changes)], NOW);
    assert!(!part.has_counted("000001000000"));
}

#[test]
fn part_is_quiet_some_minutes_after_its_last_change() {
    let parts = added(&[("m-1", vec![record("a", Wait::Begins)])]);
    let part = &parts[waiting_part("orders.a")];
    assert!(!part.is_quiet(NOW + Duration::from_secs(299)));
    assert!(part.is_quiet(NOW + Duration::from_mins(5)));
}

#[test]
fn look_is_exact_from_the_first_rest_to_a_gap() {
    let after = |secs| NOW + Duration::from_secs(secs);
    let first = WaitingLook::default().next(NOW, false);
    assert!(!first.is_exact());
    let rest = first.next(after(600), true);
    assert!(rest.is_exact() && rest.next(after(1200), false).is_exact());
    assert!(first.is_due(after(1)) && !rest.is_due(after(600 + 54 * 60)));
    assert!(rest.is_due(after(600 + 55 * 60)));
    let late = after(600) + LOOKS_APART_MAX + Duration::from_secs(1);
    assert!(!rest.next(late, false).is_exact());
    assert!(rest.next(late, true).is_exact());
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
    part.add([&("0123456789ab".to_owned(), changes)], NOW);
    assert_eq!(part.render(), WAITING_PART_V1.trim_end());
    assert_eq!(
        WaitingPart::parse(WAITING_PART_V1.as_bytes()).unwrap(),
        part
    );
    let look = WaitingLook::default().next(NOW, true);
    assert_eq!(look.render(), WAITING_LOOK_V1.trim_end());
    assert_eq!(
        WaitingLook::parse(WAITING_LOOK_V1.as_bytes()).unwrap(),
        look
    );
    let newer = WAITING_PART_V1.replace("\"v\":1", "\"v\":2");
    let newer = WaitingPart::parse(newer.as_bytes());
    assert!(matches!(newer, Err(FormatError::Newer(2))));
}

/// The life of a delivery: before each of its records it waits if the record before left it so.
fn life(steps: &[bool]) -> Vec<Wait> {
    let before = std::iter::once(false).chain(steps.iter().copied());
    let after = steps.iter().copied();
    before
        .zip(after)
        .map(|(before, after)| Wait::of(before, after))
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
