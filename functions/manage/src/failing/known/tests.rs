use posthaste_core::circuit::{HealthSettings, Observation, RequestFailure};
use posthaste_core::health::{SeenTry, SubscriptionTries, TryResult};
use posthaste_core::model::OutcomeName;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn tries(arrived: u32, failed: u32) -> SubscriptionTries {
    let mut tries = SubscriptionTries::default();
    let arrivals = (0..arrived).map(|_| TryResult::Arrived);
    let failure = TryResult::Failed {
        outcome: Some(OutcomeName::Busy),
        status: Some(503),
        is_last: true,
    };
    let failures = (0..failed).map(|_| failure);
    for (number, result) in arrivals.chain(failures).enumerate() {
        tries.add_try(&SeenTry {
            key: &number.to_string(),
            accepted_at: NOW,
            at: NOW,
            is_first: true,
            result,
        });
    }
    tries
}

fn book(all: impl IntoIterator<Item = (String, SubscriptionTries)>) -> HealthBook {
    let mut book = HealthBook::default();
    book.add_tries(all.into_iter().collect(), "run");
    book
}

fn failing_circuit(target: &str) -> Vec<(usize, Arc<LinkShard>)> {
    let mut shard = LinkShard::default();
    let failing = Observation::Failing {
        failures: 10,
        last: RequestFailure {
            outcome: OutcomeName::Busy,
            status: Some(503),
        },
        began: NOW,
    };
    let target = DeliveryTarget::parse(target).unwrap();
    shard.apply_observation(&target, &failing, NOW, &HealthSettings::default());
    vec![(0, Arc::new(shard))]
}

fn waiting(counts: &[(&str, WaitingCount)]) -> AllWaiting {
    let mut all = AllWaiting::default();
    let counts = counts
        .iter()
        .map(|(group, count)| ((*group).to_owned(), *count));
    all.by_group.extend(counts);
    all
}

fn keys(known: &KnownFailures) -> Vec<String> {
    let found = known.candidates(NOW, &ArrivalSettings::default());
    assert!(!found.is_cut);
    found.by_key.into_keys().collect()
}

fn held(events: u64) -> WaitingCount {
    WaitingCount {
        held: events,
        ..WaitingCount::default()
    }
}

/// A book that is full of what failed does not hide what the circuit holds, by its name.
#[test]
fn certain_candidates_are_never_those_that_are_cut() {
    let failing = (0..1_500).map(|number| (format!("a.s{number:04}"), tries(0, 30)));
    let known = KnownFailures {
        shards: Some(failing_circuit("https://z.example.com:443 z.refused")),
        book: book(failing),
        waiting: Some(waiting(&[("z.held", held(1))])),
    };
    let found = known.candidates(NOW, &ArrivalSettings::default());
    assert!(found.is_cut);
    assert_eq!(found.by_key.len(), CANDIDATES_MAX);
    for key in ["z.held", "z.refused"] {
        assert!(found.by_key[key].is_certain, "{key}");
    }
    let link = found.by_key["z.refused"].link.as_ref().unwrap();
    assert_eq!(link.to_string(), "https://z.example.com:443");
}

/// Any subscription that the book knows may be on a link that fails.
#[test]
fn entry_that_is_well_counts_only_beside_a_failing_link() {
    let entries = [("a.down", tries(0, 30)), ("a.well", tries(20, 1))];
    let book = book(entries.map(|(key, tries)| (key.to_owned(), tries)));
    let mut known = KnownFailures {
        book,
        ..KnownFailures::default()
    };
    assert_eq!(keys(&known), ["a.down"]);
    known.shards = Some(failing_circuit("https://a.example.com:443"));
    assert_eq!(keys(&known), ["a.down", "a.well"]);
}

/// Due events of a stopped subscription are held at once.
#[test]
fn what_waits_for_its_time_may_be_of_a_stopped_one() {
    let nothing = WaitingCount::default();
    let due = WaitingCount { due: 5, ..nothing };
    let delayed = WaitingCount {
        delayed: 5,
        ..nothing
    };
    let parked = WaitingCount {
        parked: 5,
        ..nothing
    };
    let known = KnownFailures {
        waiting: Some(waiting(&[
            ("a.due", due),
            ("a.later", delayed),
            ("a.parked", parked),
        ])),
        ..KnownFailures::default()
    };
    assert_eq!(keys(&known), ["a.later", "a.parked"]);
}

/// On AWS every busy subscription has such events though all is well: their topics are not read.
#[test]
fn recorded_and_scheduled_events_show_no_failure() {
    let nothing = WaitingCount::default();
    let busy = WaitingCount {
        recorded: Some(9),
        ..nothing
    };
    let scheduled = WaitingCount {
        parked: 5,
        scheduled: 5,
        ..nothing
    };
    let both = WaitingCount {
        parked: 6,
        ..scheduled
    };
    let mut known = KnownFailures {
        waiting: Some(waiting(&[
            ("a.both", both),
            ("a.busy", busy),
            ("a.scheduled", scheduled),
        ])),
        ..KnownFailures::default()
    };
    assert_eq!(keys(&known), ["a.both"]);
    known.shards = Some(failing_circuit("https://a.example.com:443"));
    assert_eq!(keys(&known), ["a.both"]);
}
