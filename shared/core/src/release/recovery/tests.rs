use std::collections::BTreeMap;

use bytes::Bytes;

use super::*;
use crate::api::{ReplayReason, ReplayState};
use crate::model::{
    Delivery, EarlierLife, EventSchema, Hops, Identity, LastAttempt, OutcomeName, RecoveryPolicy,
    SubscriptionCreation, SubscriptionName, TopicName,
};
use crate::stored::dead_letter::restore_letter;
use crate::stored::{ENDED_STANDS, LetterProbe, RecoveryJob, RecoveryMark, ReplayRecord};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// 2026-11-21T10:15:00Z.
const START: Timestamp = Timestamp::from_millis(1_795_256_100_000);

/// The beginning of its hour.
const START_HOUR: Timestamp = Timestamp::from_millis(1_795_255_200_000);

const POLICY: RecoveryPolicy = RecoveryPolicy {
    enabled: true,
    within: Duration::from_hours(14 * 24),
    rate_per_second: 50,
};

fn dead(reason: DeadLetterReason, status: Option<u16>, name_was_unknown: bool) -> DeadLetter {
    let delivery = Delivery {
        topic: TopicName::parse("orders").unwrap(),
        subscription: SubscriptionName::parse("billing").unwrap(),
        schema: EventSchema::CloudEvents,
        published_at: START,
        not_before: START,
        attempts: 1,
        last: Some(LastAttempt {
            outcome: OutcomeName::GenericError,
            status,
            at: START,
            name_was_unknown,
            was_unconnected: false,
            was_connected: false,
            was_kept: false,
        }),
        timed_out: false,
        identity: None,
        hops: Hops::default(),
        events: Vec::new(),
    };
    DeadLetter::new(reason, delivery)
}

#[test]
fn refusals_of_an_event_are_of_no_outage() {
    let check = |reason, status, expected| {
        let letter = dead(reason, status, false);
        assert_eq!(may_be_of_outage(&letter), expected, "{reason:?} {status:?}");
    };
    let used_up = DeadLetterReason::MaxDeliveryAttemptsExceeded;
    for status in [None, Some(408), Some(429), Some(500), Some(503), Some(599)] {
        check(used_up, status, true);
    }
    for status in [Some(200), Some(302), Some(400), Some(409), Some(422)] {
        check(used_up, status, false);
    }
    check(DeadLetterReason::TimeToLiveExceeded, Some(409), true);
    for reason in DeadLetterReason::ALL {
        let is_explained = [used_up, DeadLetterReason::TimeToLiveExceeded].contains(&reason);
        check(reason, Some(503), is_explained);
    }
    let unknown = DeadLetterReason::UndeliverableDueToClientError;
    assert!(may_be_of_outage(&dead(unknown, None, true)));
}

#[test]
fn rate_doubles_each_minute_up_to_its_own() {
    let at = |minutes| ramped_rate(50, START, START + MINUTE * minutes);
    assert_eq!([0, 1, 2, 5, 6, 7, 600].map(at), [1, 2, 4, 32, 50, 50, 50]);
    assert_eq!(ramped_rate(50, START + HOUR, START), 1);
}

fn letters(outage_since: Timestamp, written_at: Timestamp) -> OutageLetters {
    OutageLetters {
        topic: TopicName::parse("orders").unwrap(),
        subscription: SubscriptionName::parse("billing").unwrap(),
        identity: None,
        accepted_at: outage_since,
        outages: BTreeMap::from([(outage_since, 3)]),
        written_at,
    }
}

fn mark() -> RecoveryMark {
    letters(START, START + DAY)
        .updated_mark(None)
        .unwrap()
        .unwrap()
}

#[test]
fn mark_begins_with_the_outage_and_is_widened_by_letters() {
    let first = mark();
    assert_eq!(
        (first.from, first.last_at, first.letters),
        (START_HOUR, START + DAY, 3)
    );
    let more = letters(START + HOUR, START + DAY * 2);
    let widened = more.updated_mark(Some(first)).unwrap().unwrap();
    assert_eq!(
        (widened.outage_since, widened.from, widened.last_at),
        (START, START_HOUR, START + DAY * 2)
    );
    assert_eq!(widened.letters, 6);
}

#[test]
fn mark_that_has_just_ended_is_not_written_anew() {
    let mut ended = mark();
    ended.ended_at = Some(START + DAY);
    let late = letters(START, before(START + DAY + ENDED_STANDS, 1));
    assert_eq!(late.updated_mark(Some(ended.clone())), Err(MarkIsGoing));
    let later = letters(START + HOUR, START + DAY + ENDED_STANDS);
    let anew = later.updated_mark(Some(ended)).unwrap().unwrap();
    assert_eq!((anew.letters, anew.ended_at), (3, None));
    assert_eq!(anew.outage_since, START + HOUR);
}

fn facts(now: Timestamp, is_well: bool) -> RecoveryFacts<'static> {
    RecoveryFacts {
        policy: Some(POLICY),
        is_well,
        is_unprobed: false,
        job: None,
        recover_after: 5 * MINUTE,
        now,
    }
}

/// The mark after its step at this time, and the step.
fn step(mark: &RecoveryMark, minutes: u32, is_well: bool) -> (RecoveryMark, RecoveryStep) {
    let now = START + DAY + MINUTE * minutes;
    mark.clone().next_step(&facts(now, is_well))
}

#[test]
fn replay_begins_after_some_minutes_of_health() {
    let (mark, waits) = step(&mark(), 10, true);
    assert_eq!(waits, RecoveryStep::Waits);
    assert_eq!(mark.well_since, Some(START + DAY + 10 * MINUTE));
    assert_eq!(step(&mark, 14, true).1, RecoveryStep::Waits);
    assert_eq!(step(&mark, 15, true).1, RecoveryStep::Begins);
    // A relapse begins the minutes anew.
    let (relapsed, _) = step(&mark, 14, false);
    assert_eq!(relapsed.well_since, None);
    let (relapsed, _) = step(&relapsed, 15, true);
    assert_eq!(step(&relapsed, 19, true).1, RecoveryStep::Waits);
    assert_eq!(step(&relapsed, 20, true).1, RecoveryStep::Begins);
}

/// Letters are written minutes after they were given up. One replay is to have all of them.
#[test]
fn replay_waits_for_the_last_letters_but_not_forever() {
    let (mut mark, _) = step(&mark(), 10, true);
    mark.last_at = START + DAY + 14 * MINUTE;
    assert_eq!(step(&mark, 15, true).1, RecoveryStep::Waits);
    assert_eq!(step(&mark, 16, true).1, RecoveryStep::Begins);
    mark.last_at = START + DAY + 45 * MINUTE;
    assert_eq!(step(&mark, 44, true).1, RecoveryStep::Waits);
    assert_eq!(step(&mark, 45, true).1, RecoveryStep::Begins);
}

#[test]
fn letter_probes_where_nothing_else_does_and_not_again_at_once() {
    let mut unprobed = facts(START + 2 * DAY, false);
    assert_eq!(mark().next_step(&unprobed).1, RecoveryStep::Waits);
    unprobed.is_unprobed = true;
    let (probing, step) = mark().next_step(&unprobed);
    assert_eq!(step, RecoveryStep::Probes);
    let probing = probing.with_probe(LetterProbe {
        letter: place(0),
        sent_at: START + 2 * DAY,
    });
    for (minutes, expected) in [(29, RecoveryStep::Waits), (30, RecoveryStep::Probes)] {
        unprobed.now = START + 2 * DAY + MINUTE * minutes;
        assert_eq!(probing.clone().next_step(&unprobed).1, expected);
    }
    // Each probe waits for its next attempt for hours.
    let twice = probing.with_probe(LetterProbe {
        letter: place(1),
        sent_at: START + 2 * DAY + HOUR,
    });
    let under_way = |after| twice.letters_on_their_way(START + 2 * DAY + after);
    assert_eq!(under_way(DAY + 12 * HOUR), [place(0), place(1)]);
    assert_eq!(under_way(DAY + 13 * HOUR), [place(1)]);
    assert_eq!(under_way(DAY + 14 * HOUR), []);
}

/// A letter that is on its way as a probe is remembered for as long as it may be: it may begin the
/// mark anew.
#[test]
fn mark_whose_replay_has_ended_remembers_what_is_on_its_way() {
    let object = "ORDERS/BILLING/2026/11/22/10/x.json".to_owned();
    let letter = LetterPlace { object, index: 2 };
    let sent_at = START + DAY;
    let probe = LetterProbe {
        letter: letter.clone(),
        sent_at,
    };
    let created_at = START + DAY * 2;
    let job = RecoveryJob {
        id: "r".to_owned(),
        created_at,
    };
    let marked = RecoveryMark {
        job: Some(job.clone()),
        told_of: Some(START),
        ..mark().with_probe(probe)
    };
    let record = marked.replay_record(&job, &SubscriptionCreation::UNKNOWN, POLICY);
    let done = record.with_state(ReplayState::Done, None, created_at + MINUTE);
    let facts = |now, job| RecoveryFacts {
        job,
        ..facts(now, true)
    };
    let now = created_at + HOUR;
    let (left, step) = marked.next_step(&facts(now, Some(&done)));
    assert_eq!(
        (step, left.is_empty(), left.job.is_none()),
        (RecoveryStep::Idle, true, true)
    );
    assert_eq!(
        left.letters_on_their_way(now),
        std::slice::from_ref(&letter)
    );
    let more = letters(START, now)
        .updated_mark(Some(left.clone()))
        .unwrap()
        .unwrap();
    assert_eq!((more.letters, more.told_of), (3, Some(START)));
    assert_eq!(more.letters_on_their_way(now), [letter]);
    let later = |at| left.clone().next_step(&facts(at, None)).1;
    assert_eq!(later(now + HOUR * 36), RecoveryStep::Idle);
    assert_eq!(later(now + HOUR * 37), RecoveryStep::Ends);
}

/// In a second outage everything that was on its way may be given up.
#[test]
fn letter_probes_too_where_a_replay_rests() {
    let begun = START + DAY + HOUR;
    let (mark, record) = with_job(mark(), begun);
    let mut resting = RecoveryFacts {
        job: Some(&record),
        ..facts(begun + DAY, false)
    };
    assert_eq!(mark.clone().next_step(&resting).1, RecoveryStep::Rests);
    resting.is_unprobed = true;
    let (probing, step) = mark.next_step(&resting);
    assert_eq!(step, RecoveryStep::Probes);
    let probed = probing.with_probe(LetterProbe {
        letter: place(0),
        sent_at: begun + DAY,
    });
    assert_eq!(probed.next_step(&resting).1, RecoveryStep::Rests);
}

fn place(index: usize) -> LetterPlace {
    LetterPlace {
        object: "ORDERS/BILLING/2026/11/21/10/x.json".to_owned(),
        index,
    }
}

fn with_job(mut mark: RecoveryMark, created_at: Timestamp) -> (RecoveryMark, ReplayRecord) {
    let job = RecoveryJob {
        id: "20261121T101500Z-x".to_owned(),
        created_at,
    };
    let record = mark.replay_record(&job, &SubscriptionCreation::UNKNOWN, POLICY);
    mark.job = Some(job);
    (mark, record)
}

fn step_with(
    mark: &RecoveryMark,
    record: Option<&ReplayRecord>,
    now: Timestamp,
    is_well: bool,
) -> (RecoveryMark, RecoveryStep) {
    mark.clone().next_step(&RecoveryFacts {
        job: record,
        ..facts(now, is_well)
    })
}

#[test]
fn replay_of_a_mark_is_written_runs_rests_and_ends_it() {
    let begun = START + DAY + HOUR;
    let (mut mark, record) = with_job(mark(), begun);
    mark.well_since = Some(before(begun, 5));
    let check = |mark: &RecoveryMark, record, is_well, expected| {
        assert_eq!(step_with(mark, record, begun + MINUTE, is_well).1, expected);
    };
    check(&mark, None, true, RecoveryStep::Opens);
    mark.well_since = Some(begun);
    check(&mark, Some(&record), true, RecoveryStep::Rests);
    mark.well_since = Some(START + DAY);
    check(&mark, Some(&record), true, RecoveryStep::Runs);
    check(&mark, Some(&record), false, RecoveryStep::Rests);
    let done = record.with_state(ReplayState::Done, None, begun + MINUTE);
    let (rests, idle) = step_with(&mark, Some(&done), begun + HOUR, true);
    assert_eq!((idle, rests.is_empty()), (RecoveryStep::Idle, true));
    let on_its_way = 36 * HOUR + MINUTE * 30;
    let later = |after| rests.clone().next_step(&facts(begun + HOUR + after, true));
    let (kept, idle) = later(on_its_way.saturating_sub(MINUTE));
    assert_eq!((idle, &kept), (RecoveryStep::Idle, &rests));
    let (ended, ends) = later(on_its_way);
    let ended_at = begun + HOUR + on_its_way;
    assert_eq!((ends, ended.ended_at), (RecoveryStep::Ends, Some(ended_at)));
    // The run that was to delete it was cut.
    let again = |after| ended.clone().next_step(&facts(ended_at + after, true)).1;
    assert_eq!(again(MINUTE / 2), RecoveryStep::Idle);
    assert_eq!(again(MINUTE), RecoveryStep::Ends);
}

/// Letters that the first replay has sent wait for their next attempt for hours, and are not sent
/// beside that.
#[test]
fn late_letters_of_an_outage_begin_behind_its_replay() {
    let begun = START + DAY + HOUR;
    let (mark, record) = with_job(mark(), begun);
    let told = RecoveryMark {
        told_of: Some(START),
        ..mark.with_probe(LetterProbe {
            letter: place(0),
            sent_at: begun,
        })
    };
    let done = record.with_state(ReplayState::Done, None, begun + MINUTE);
    let (rests, _) = step_with(&told, Some(&done), begun + HOUR, true);
    let late = letters(START, begun + 5 * HOUR);
    let anew = late.updated_mark(Some(rests)).unwrap().unwrap();
    assert_eq!((anew.from, anew.letters), (before(begun, 120), 3));
    assert_eq!(anew.letters_on_their_way(begun + HOUR), [place(0)]);
    // It is the outage that was told of.
    assert_eq!((anew.outage_since, anew.told_of), (START, Some(START)));
    // One that comes between two replays, in the hour of the first.
    let (mut between, _) = step_with(&anew, None, begun + 5 * HOUR, true);
    between.last_at = begun + 5 * HOUR;
    let more = letters(START, begun + MINUTE);
    let more = more.updated_mark(Some(between)).unwrap().unwrap();
    assert_eq!((more.from, more.letters), (before(begun, 120), 6));
}

#[test]
fn replay_whose_record_never_came_is_begun_anew() {
    let begun = START + DAY + HOUR;
    let (mark, _) = with_job(mark(), begun);
    let check = |after, job, expected| {
        let (stepped, step) = step_with(&mark, None, begun + after, true);
        assert_eq!((stepped.job, step), (job, expected));
        let kept = (stepped.from, stepped.letters, stepped.passed);
        assert_eq!(kept, (START_HOUR, 3, None));
    };
    check(MINUTE * 59, mark.job.clone(), RecoveryStep::Opens);
    check(HOUR, None, RecoveryStep::Waits);
}

/// The topic's record was read as it was before the subscription was there.
#[test]
fn replay_that_nobody_cancelled_is_begun_anew() {
    let begun = START + DAY + HOUR;
    let (mark, record) = with_job(mark(), begun);
    for reason in [Some(ReplayReason::SubscriptionDeleted), None] {
        let cancelled = record.clone();
        let cancelled = cancelled.with_state(ReplayState::Cancelled, reason, begun + MINUTE);
        let (anew, step) = step_with(&mark, Some(&cancelled), begun + HOUR, true);
        assert_eq!((step, anew.job), (RecoveryStep::Waits, None));
        assert_eq!((anew.from, anew.letters), (START_HOUR, 3));
    }
}

#[test]
fn replay_that_is_opened_late_runs_only_after_minutes_of_health() {
    let begun = START + DAY + HOUR;
    let (mut mark, _) = with_job(mark(), begun);
    for (well_since, expected) in [(None, false), (Some(before(begun, 300)), true)] {
        mark.well_since = well_since;
        let facts = facts(begun, true);
        let (opens, step) = mark.clone().next_step(&facts);
        assert_eq!(
            (step, opens.may_run(&facts)),
            (RecoveryStep::Opens, expected)
        );
    }
}

#[test]
fn letters_since_a_replay_began_have_another_replay() {
    let begun = START + DAY + HOUR;
    let (mut mark, record) = with_job(mark(), begun);
    mark.last_at = begun + MINUTE;
    let mut done = record.with_state(ReplayState::Done, None, begun + HOUR);
    done.progress.queued = 2;
    let (after, waits) = step_with(&mark, Some(&done), begun + HOUR, true);
    assert_eq!((waits, after.job.clone()), (RecoveryStep::Waits, None));
    assert_eq!((after.from, after.queued), (before(begun, 120), 2));
    // A letter that counts in the hour of the replay leaves what that has passed alone.
    let more = letters(START, begun + 2 * MINUTE);
    let more = more.updated_mark(Some(after)).unwrap().unwrap();
    assert_eq!((more.from, more.letters), (before(begun, 120), 6));
}

#[test]
fn cancel_holds_for_the_outage_and_for_no_other() {
    let begun = START + DAY + HOUR;
    let (mark, record) = with_job(mark(), begun);
    let cancelled_at = begun + MINUTE;
    let requested = Some(ReplayReason::Requested);
    let cancelled = record.with_state(ReplayState::Cancelled, requested, cancelled_at);
    let (mark, idle) = step_with(&mark, Some(&cancelled), begun + HOUR, true);
    assert_eq!((idle, mark.is_empty()), (RecoveryStep::Idle, true));
    assert_eq!(mark.cancelled_at, Some(cancelled_at));
    let same = letters(START, begun + HOUR);
    assert_eq!(same.updated_mark(Some(mark.clone())), Ok(None));
    let other = letters(cancelled_at + MINUTE, begun + DAY);
    let anew = other.updated_mark(Some(mark.clone())).unwrap().unwrap();
    assert_eq!((anew.letters, anew.cancelled_at), (3, Some(cancelled_at)));
    assert_eq!(anew.outage_since, cancelled_at + MINUTE);
    let later = |after: Duration| step_with(&mark, None, cancelled_at + after, true).1;
    assert_eq!(
        later(POLICY.within.saturating_sub(MINUTE)),
        RecoveryStep::Idle
    );
    assert_eq!(later(POLICY.within), RecoveryStep::Ends);
}

/// deadletter gathers letters of several outages into one object.
#[test]
fn letters_of_a_cancelled_outage_hide_none_of_another() {
    let cancelled_at = START + HOUR;
    let cancelled = RecoveryMark {
        cancelled_at: Some(cancelled_at),
        letters: 0,
        ..mark()
    };
    let both = OutageLetters {
        outages: BTreeMap::from([(START, 1), (cancelled_at + MINUTE, 20)]),
        ..letters(START, START + DAY)
    };
    assert_eq!(both.count_uncancelled(Some(cancelled_at)), 20);
    let marked = both.updated_mark(Some(cancelled.clone())).unwrap().unwrap();
    assert_eq!(marked.letters, 20);
    assert_eq!(marked.outage_since, cancelled_at + MINUTE);
    // Counted into a mark that has some, too.
    let more = both.updated_mark(Some(marked)).unwrap().unwrap();
    assert_eq!(
        (more.letters, more.outage_since),
        (40, cancelled_at + MINUTE)
    );
    let old = letters(START, START + DAY);
    assert_eq!(old.updated_mark(Some(cancelled)), Ok(None));
}

/// They were counted before wake saw the cancel.
#[test]
fn cancel_keeps_letters_of_an_outage_that_began_after_it() {
    let begun = START + DAY + HOUR;
    let (mark, record) = with_job(mark(), begun);
    let cancelled_at = begun + MINUTE;
    let requested = Some(ReplayReason::Requested);
    let cancelled = record.with_state(ReplayState::Cancelled, requested, cancelled_at);
    let later = cancelled_at + SECOND;
    let counted = letters(later, later + SECOND)
        .updated_mark(Some(mark))
        .unwrap();
    let counted = counted.unwrap();
    assert_eq!(counted.letters, 6);
    let (kept, step) = step_with(&counted, Some(&cancelled), later + MINUTE, true);
    assert_eq!((step, kept.letters), (RecoveryStep::Waits, 3));
    assert_eq!((kept.outage_since, kept.job), (later, None));
    assert_eq!(kept.cancelled_at, Some(cancelled_at));
}

fn of(identity: &str, outage_since: Timestamp, written_at: Timestamp) -> OutageLetters {
    OutageLetters {
        identity: Identity::parse(identity),
        ..letters(outage_since, written_at)
    }
}

const FORMER: &str = "a1b2c3d4e5f6010203040506";
const NEWER: &str = "a1b2c3d4e5f6060504030201";

#[test]
fn letter_of_a_former_creation_replaces_no_mark_of_a_newer_one() {
    let newer = of(NEWER, START + HOUR, START + DAY);
    let mark = newer.updated_mark(None).unwrap().unwrap();
    let late = of(FORMER, START, START + 2 * DAY);
    assert_eq!(late.updated_mark(Some(mark)), Ok(None));
    let former = late.updated_mark(None).unwrap().unwrap();
    let replaced = newer.updated_mark(Some(former)).unwrap().unwrap();
    assert_eq!(replaced.identity, Identity::parse(NEWER));
    assert_eq!((replaced.letters, replaced.outage_since), (3, START + HOUR));
}

/// Programs of release 0.1 say no creation.
#[test]
fn unknown_creation_is_that_of_the_mark() {
    let begun = RecoveryMark {
        cancelled_at: Some(START),
        ..of("", START + HOUR, START + DAY)
            .updated_mark(None)
            .unwrap()
            .unwrap()
    };
    assert_eq!(begun.identity, None);
    let (mark, _) = with_job(begun, START + DAY + HOUR);
    let known = of(NEWER, START + HOUR, START + 2 * DAY);
    let known = known.updated_mark(Some(mark.clone())).unwrap().unwrap();
    assert_eq!(known.identity, Identity::parse(NEWER));
    let unknown = of("", START + HOUR, START + 2 * DAY);
    let unknown = unknown.updated_mark(Some(known)).unwrap().unwrap();
    assert_eq!(unknown.identity, Identity::parse(NEWER));
    assert_eq!((unknown.letters, unknown.job), (9, mark.job));
    assert_eq!(unknown.cancelled_at, Some(START));
}

/// A mark of a former creation that has just ended is not written anew.
#[test]
fn ended_mark_of_a_former_creation_is_not_written_anew() {
    let mut ended = of(FORMER, START, START + DAY)
        .updated_mark(None)
        .unwrap()
        .unwrap();
    ended.ended_at = Some(START + DAY);
    let newer = of(NEWER, START + DAY, START + DAY);
    assert_eq!(newer.updated_mark(Some(ended)), Err(MarkIsGoing));
}

#[test]
fn mark_ends_with_its_policy_and_with_the_time_of_its_letters() {
    let now = START + DAY + MINUTE;
    for policy in [None, Some(RecoveryPolicy::OFF)] {
        let facts = RecoveryFacts {
            policy,
            ..facts(now, true)
        };
        assert_eq!(mark().next_step(&facts).1, RecoveryStep::Ends);
    }
    let last = START + DAY + POLICY.within;
    assert_eq!(
        mark().next_step(&facts(before(last, 60), false)).1,
        RecoveryStep::Waits
    );
    assert_eq!(mark().next_step(&facts(last, false)).1, RecoveryStep::Ends);
}

/// So many seconds earlier.
fn before(at: Timestamp, seconds: u64) -> Timestamp {
    Timestamp::from_millis(at.as_millis() - seconds * 1000)
}

#[test]
fn letters_are_left_out_for_their_reasons() {
    let letter = |outage: Option<Timestamp>, earlier: Option<EarlierLife>| {
        let time = |at: Timestamp| at.to_event_grid();
        let mut members = vec![
            r#"{"specversion":"1.0","id":"1","source":"/s","type":"t""#.to_owned(),
            r#""deadletterreason":"TimeToLiveExceeded""#.to_owned(),
            format!(r#""publishtime":"{}""#, time(START)),
        ];
        members.extend(outage.map(|since| format!(r#""outagesince":"{}""#, time(since))));
        members.extend(earlier.map(|life| {
            let first = time(life.accepted_at);
            let recoveries = life.recoveries;
            format!(r#""firstpublishtime":"{first}","recoveries":{recoveries}"#)
        }));
        let text = members.join(",") + "}";
        restore_letter(&Bytes::from(text), EventSchema::CloudEvents).unwrap()
    };
    let rules = RecoveryRules {
        within: DAY * 14,
        cancelled_at: Some(START),
        on_its_way: vec![place(3), place(7)],
        now: START + DAY,
    };
    let check = |outage, earlier, index, expected| {
        let letter = letter(outage, earlier);
        let reason = rules.leaves_out(&letter, &place(0).object, index);
        assert_eq!(reason, expected);
    };
    let since = Some(START + MINUTE);
    let life = |accepted_at, recoveries| {
        Some(EarlierLife {
            accepted_at,
            recoveries,
        })
    };
    check(since, None, 0, None);
    check(None, None, 0, Some(LeftOutReason::NoOutage));
    check(Some(START), None, 0, Some(LeftOutReason::NoOutage));
    check(since, None, 7, Some(LeftOutReason::SentAgain));
    check(since, life(START, 2), 0, None);
    check(
        since,
        life(START, 3),
        0,
        Some(LeftOutReason::RecoveredOften),
    );
    let long_ago = before(START, 13 * 24 * 3600);
    check(since, life(long_ago, 1), 0, Some(LeftOutReason::TooOld));
    check(since, life(long_ago + MINUTE, 1), 0, None);
}
