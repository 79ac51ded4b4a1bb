//! Turns between groups, and the memory a message takes.

use proptest::prelude::*;

use super::*;

const VISIBILITY: Duration = Duration::from_mins(1);

fn at(ms: u64) -> StoreTime {
    StoreTime {
        wall: Timestamp::from_millis(ms),
        monotonic: Duration::from_millis(ms),
    }
}

/// A message of a hundred bytes.
fn arrived(sequence: u64, group: &str, due: Timestamp) -> ArrivingMessage<'_> {
    ArrivingMessage {
        sequence,
        group,
        due,
        bytes: 100,
        carried: CarriedEvents::one_event(Timestamp::EPOCH),
    }
}

fn fill(index: &mut QueueIndex, group: &str, sequences: std::ops::Range<u64>) {
    for sequence in sequences {
        index.insert(arrived(sequence, group, Timestamp::EPOCH), Timestamp::EPOCH);
    }
}

fn take(index: &mut QueueIndex, max: usize) -> Vec<u64> {
    index
        .take_visible(at(0), max, VISIBILITY)
        .given
        .into_iter()
        .map(|received| received.sequence)
        .collect()
}

#[test]
fn groups_take_turns_however_long_their_backlogs() {
    let mut index = QueueIndex::new(1000, 50);
    fill(&mut index, "a", 0..100);
    fill(&mut index, "b", 100..102);
    fill(&mut index, "c", 200..300);
    assert_eq!(take(&mut index, 8), [0, 100, 200, 1, 101, 201, 2, 202]);
}

#[test]
fn a_clock_that_is_set_back_makes_no_delay_longer() {
    let mut index = QueueIndex::new(1000, 50);
    let moment = |wall: u64, monotonic: u64| StoreTime {
        wall: Timestamp::from_millis(wall * 1000),
        monotonic: Duration::from_secs(monotonic),
    };
    index.counts(moment(100_000, 0));
    for (sequence, secs) in [(1, 10), (2, 600)] {
        let due = Timestamp::from_millis((100_000 + secs) * 1000);
        index.insert(arrived(sequence, "g", due), moment(100_000, 0).wall);
    }
    // Five seconds later the clock is set back by ten hours.
    assert_eq!(
        index.until_next(moment(64_005, 5)),
        Some(Duration::from_secs(5))
    );
    // A moment from before that, which comes late, changes nothing.
    assert_eq!(index.counts(moment(100_004, 4)).visible, 0);
    assert_eq!(index.counts(moment(64_009, 9)).visible, 0);
    assert_eq!(index.counts(moment(64_010, 10)).visible, 1);
    assert_eq!(index.counts(moment(64_599, 599)).visible, 1);
    assert_eq!(index.counts(moment(64_600, 600)).visible, 2);
}

#[test]
fn a_time_further_ahead_than_any_delay_reaches_is_pulled_in() {
    let mut index = QueueIndex::new(1000, 50);
    let due = Timestamp::from_millis(u64::MAX);
    index.insert(arrived(1, "g", due), Timestamp::EPOCH);
    assert_eq!(index.until_next(at(0)), Some(DELAY_MAX));
    assert_eq!(index.counts(at(900_000)).visible, 1);
}

#[test]
fn a_backlog_never_takes_the_last_slots() {
    let mut index = QueueIndex::new(1000, 50);
    fill(&mut index, "busy", 0..100_000);
    // The number in flight equals the number of free slots; the 501st would exceed it.
    assert_eq!(take(&mut index, 2000).len(), 500);
    assert!(!index.has_next());
    // A newcomer gets in at once, and another, each to half of what is free.
    fill(&mut index, "new", 100_000..101_000);
    assert_eq!(take(&mut index, 2000).len(), 250);
    fill(&mut index, "newer", 101_000..102_000);
    assert_eq!(
        take(&mut index, 2000),
        (101_000..101_125).collect::<Vec<_>>()
    );
}

/// One free slot is enough for a group that has nothing in flight.
#[test]
fn group_without_messages_in_flight_needs_one_free_slot() {
    let mut index = QueueIndex::new(1, 50);
    fill(&mut index, "a", 0..2);
    assert_eq!(take(&mut index, 2), [0]);
    assert_eq!(take(&mut index, 2), [0; 0]);
    assert!(index.settle(MessageReceive {
        sequence: 0,
        count: 1
    }));
    assert_eq!(take(&mut index, 2), [1]);
}

#[test]
fn a_message_settled_late_is_skipped_and_its_neighbours_are_not() {
    let mut index = QueueIndex::new(1000, 50);
    fill(&mut index, "a", 0..3);
    take(&mut index, 3);
    let late = at(60_000);
    assert_eq!(index.counts(late).visible, 3);
    assert!(index.settle(MessageReceive {
        sequence: 1,
        count: 1
    }));
    assert!(!index.settle(MessageReceive {
        sequence: 1,
        count: 1
    }));
    assert_eq!(
        index.counts(late),
        QueueCounts {
            visible: 2,
            delayed: 0,
            in_flight: 0
        }
    );
    let again = index.take_visible(late, 10, VISIBILITY).given;
    assert_eq!(
        again,
        [
            MessageReceive {
                sequence: 0,
                count: 2
            },
            MessageReceive {
                sequence: 2,
                count: 2
            }
        ]
    );
}

#[test]
fn a_message_held_late_and_released_is_given_once() {
    let mut index = QueueIndex::new(1000, 50);
    fill(&mut index, "a", 0..1);
    take(&mut index, 1);
    let late = at(60_000);
    let received = MessageReceive {
        sequence: 0,
        count: 1,
    };
    assert_eq!(index.counts(late).visible, 1);
    for _ in 0..2 {
        assert!(index.hold_message(late, received));
        assert!(!index.hold_message(late, received) && !index.settle(received));
        assert_eq!(
            index.counts(late),
            QueueCounts {
                visible: 0,
                delayed: 0,
                in_flight: 1
            }
        );
        index.release_held(0);
        assert_eq!(
            index.counts(late),
            QueueCounts {
                visible: 1,
                delayed: 0,
                in_flight: 0
            }
        );
    }
    assert_eq!(
        index.take_visible(late, 10, VISIBILITY).given,
        [MessageReceive {
            sequence: 0,
            count: 2
        }]
    );
    assert_eq!(
        index.counts(late),
        QueueCounts {
            visible: 0,
            delayed: 0,
            in_flight: 1
        }
    );
}

#[test]
fn finished_groups_leave_nothing_behind() {
    let mut index = QueueIndex::new(20_000, 50);
    for round in 0..3 {
        for group in 0..10_000 {
            fill(
                &mut index,
                &format!("group {round} {group}"),
                group..group + 1,
            );
        }
        for sequence in take(&mut index, 20_000) {
            assert!(index.settle(MessageReceive { sequence, count: 1 }));
        }
        assert_eq!(index.groups.known(), (0, 10_000));
    }
}

proptest! {
    /// Max-min fairness: with all messages in flight at once, no group has more than one slot more
    /// than a group that still waits.
    #[test]
    fn no_group_is_more_than_one_ahead_of_one_that_waits(
        backlogs in prop::collection::vec(1_u64..40, 1..20),
        slots in 1_usize..200,
    ) {
        let mut index = QueueIndex::new(slots, 50);
        for (group, backlog) in backlogs.iter().enumerate() {
            let first = group as u64 * 100;
            fill(&mut index, &group.to_string(), first..first + backlog);
        }
        let mut in_flight = vec![0; backlogs.len()];
        for sequence in take(&mut index, slots) {
            in_flight[usize::try_from(sequence / 100).unwrap()] += 1;
        }
        let waiting = backlogs.iter().zip(&in_flight).filter(|(backlog, in_flight)| in_flight < backlog);
        if let Some(fewest) = waiting.map(|(_, in_flight)| in_flight).min() {
            prop_assert!(in_flight.iter().all(|in_flight| *in_flight <= fewest + 1));
        }
    }
}

/// Due messages and bytes of each group, seen two places at a time.
fn due(index: &mut QueueIndex, now: StoreTime) -> Vec<(String, u64, u64)> {
    let mut all = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let (some, rest) = index.due_from(now, from, 2);
        all.extend(some);
        next = rest;
    }
    let mut all: Vec<_> = all
        .into_iter()
        .map(|of| (of.group.to_string(), of.due, of.bytes))
        .collect();
    all.sort();
    all
}

fn of(group: &str, due: u64, bytes: u64) -> (String, u64, u64) {
    (group.to_owned(), due, bytes)
}

#[test]
fn due_messages_and_bytes_are_counted_by_group() {
    let mut index = QueueIndex::new(1000, 50);
    fill(&mut index, "a", 0..100);
    fill(&mut index, "b", 100..102);
    fill(&mut index, "c", 200..203);
    let later = Timestamp::from_millis(5000);
    index.insert(arrived(300, "b", later), Timestamp::EPOCH);
    index.insert(arrived(301, "d", later), Timestamp::EPOCH);
    let all = [of("a", 100, 10_000), of("b", 2, 300), of("c", 3, 300)];
    assert_eq!(due(&mut index, at(0)), all);
    let given = index.take_visible(at(0), 6, VISIBILITY).given;
    let taken = [of("a", 98, 10_000), of("c", 1, 300)];
    assert_eq!(due(&mut index, at(0)), taken);
    for received in given {
        assert!(index.settle(received));
    }
    let settled = [of("a", 98, 9800), of("c", 1, 100)];
    assert_eq!(due(&mut index, at(0)), settled);
    let waited = [
        of("a", 98, 9800),
        of("b", 1, 100),
        of("c", 1, 100),
        of("d", 1, 100),
    ];
    assert_eq!(due(&mut index, at(5000)), waited);
    assert_eq!(
        ["a", "d", "e"].map(|group| index.due_count(at(5000), group)),
        [98, 1, 0]
    );
}

#[test]
fn message_that_was_settled_late_is_not_due() {
    let mut index = QueueIndex::new(1000, 50);
    fill(&mut index, "a", 0..2);
    let given = index.take_visible(at(0), 2, VISIBILITY).given;
    let after = 60_000;
    assert_eq!(due(&mut index, at(after)), [of("a", 2, 200)]);
    assert!(index.settle(given[0]));
    assert_eq!(due(&mut index, at(after)), [of("a", 1, 100)]);
    assert_eq!(index.take_visible(at(after), 10, VISIBILITY).given.len(), 1);
    assert_eq!(due(&mut index, at(after)), []);
    assert!(!index.settle(given[0]));
}

/// The counts are kept up to date, so that a look does not walk through what waits.
#[test]
fn groups_with_nothing_due_make_no_entry() {
    let mut index = QueueIndex::new(1000, 50);
    for (at, group) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        fill(&mut index, group, at as u64..at as u64 + 1);
    }
    for received in index.take_visible(at(0), 5, VISIBILITY).given {
        index.settle(received);
    }
    assert_eq!(due(&mut index, at(0)), []);
}
