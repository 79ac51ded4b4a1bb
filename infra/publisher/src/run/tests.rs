//! Runs against scripted servers, on plain numbers: no thread, no clock, no file.

use std::collections::BTreeMap;

use super::*;
use crate::batches::{EventBatches, PackingSettings};
use crate::events::{EventPlace, EventReader};

/// Error of a request.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("status {0}")]
    Status(u16),
    #[error("no answer")]
    Unreachable,
}

/// Time of every answer, unless the script says something else.
const LATENCY: Duration = Duration::from_millis(100);

/// Answer of the server to a request.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Ok,
    Held(u64),
    /// Let through at once under the tarpit.
    LetThrough(u64),
    Refused(u64),
    /// To come again after the tarpit's delay.
    SentAway(u64),
    InUse(u64),
    Unavailable,
    /// Published, but the answer is lost.
    Lost,
    /// Neither published nor answered.
    Dropped,
    BadEvent(u64),
    Unauthorized,
}

/// A server that remembers names, as ours does, and answers as a script says: by the number of the
/// request, from 0.
struct Sim<F> {
    run: PublishRun<RequestError>,
    batches: EventBatches<EventReader<&'static [u8]>>,
    script: F,
    now: Duration,
    /// When answers arrive, in the order of that.
    answers: Vec<(Duration, u64, PublishOutcome<RequestError>)>,
    /// Every request: when, first event, count.
    requests: Vec<(Duration, u64, u32)>,
    /// Every batch that was published, by its name.
    published: BTreeMap<u64, u32>,
    in_flight_max: usize,
}

fn input(events: u64) -> &'static [u8] {
    let lines: Vec<_> = (0..events).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    lines.concat().into_bytes().leak()
}

/// Every server of these tests has one subscription, which matches all events but the last of a
/// request.
fn acknowledged(events: u32, pressure: Option<PressureHeader>) -> PublishOutcome<RequestError> {
    let report = PublishReport {
        answers: 1,
        accepted: events.into(),
        unmatched: 1,
        subscriptions_max: 1,
    };
    PublishOutcome::Acknowledged {
        pressure,
        report: Some(report),
    }
}

/// Back pressure.
fn refused(wait_secs: u64, is_delay: bool) -> PublishOutcome<RequestError> {
    PublishOutcome::Again {
        reason: RetryReason::Refused {
            wait: Duration::from_secs(wait_secs),
            pressure: None,
            is_delay,
        },
        error: RequestError::Status(if is_delay { 429 } else { 503 }),
    }
}

impl<F: Fn(usize, u64) -> Answer> Sim<F> {
    fn new(events: u64, from: u64, cap: Option<u32>, script: F) -> Self {
        let packing = PackingSettings {
            events_max: 10,
            from,
            content_type: None,
        };
        Self {
            run: PublishRun::new(PublishPace::new(cap), from, Duration::from_mins(15)),
            batches: EventBatches::new(EventReader::new(input(events)), packing),
            script,
            now: Duration::from_secs(1000),
            answers: Vec::new(),
            requests: Vec::new(),
            published: BTreeMap::new(),
            in_flight_max: 0,
        }
    }

    /// Runs to the end; more steps than this it never needs.
    fn play(mut self) -> Self {
        for _ in 0..100_000 {
            match self.run.next(self.now) {
                RunStep::Over => return self,
                RunStep::Read => {
                    let batch = self.batches.next_batch();
                    self.run.take_batch(batch);
                }
                RunStep::Send(batch) => self.take(&batch),
                RunStep::Wait(until) => self.wait(until),
            }
        }
        panic!("it never ends: {:?}", self.requests.last());
    }

    fn take(&mut self, batch: &EventBatch) {
        let first = batch.first;
        let answer = (self.script)(self.requests.len(), first);
        self.requests.push((self.now, first, batch.event_count()));
        let secs = Duration::from_secs;
        let mut latency = LATENCY;
        let outcome = match answer {
            Answer::Ok => acknowledged(batch.event_count(), None),
            Answer::Held(delay) => {
                latency += secs(delay);
                acknowledged(
                    batch.event_count(),
                    Some(PressureHeader::parse(&format!("medium; delay={delay}"))),
                )
            }
            Answer::LetThrough(delay) => acknowledged(
                batch.event_count(),
                Some(PressureHeader::parse(&format!("medium; delay={delay}"))),
            ),
            Answer::Refused(wait) => refused(wait, false),
            Answer::SentAway(wait) => refused(wait, true),
            Answer::InUse(wait) => PublishOutcome::Again {
                reason: RetryReason::InUse(secs(wait)),
                error: RequestError::Status(409),
            },
            Answer::Unavailable => PublishOutcome::Again {
                reason: RetryReason::Unclear(Some(secs(5))),
                error: RequestError::Status(503),
            },
            Answer::Lost | Answer::Dropped => PublishOutcome::Again {
                reason: RetryReason::Unanswered,
                error: RequestError::Unreachable,
            },
            Answer::BadEvent(index) => PublishOutcome::Final {
                index: Some(index),
                error: RequestError::Status(400),
            },
            Answer::Unauthorized => PublishOutcome::Final {
                index: None,
                error: RequestError::Status(401),
            },
        };
        if matches!(
            answer,
            Answer::Ok | Answer::Held(_) | Answer::LetThrough(_) | Answer::Lost
        ) {
            self.published.insert(first, batch.event_count());
        }
        self.answers.push((self.now + latency, first, outcome));
        self.in_flight_max = self.in_flight_max.max(self.run.in_flight.len());
    }

    fn wait(&mut self, until: Option<Duration>) {
        let next = self
            .answers
            .iter()
            .enumerate()
            .min_by_key(|(_, (at, ..))| *at)
            .map(|(n, (at, ..))| (n, *at));
        match (next, until) {
            (Some((n, at)), until) if until.is_none_or(|until| at <= until) => {
                let (at, first, outcome) = self.answers.remove(n);
                self.now = at;
                self.run.take_outcome(at, first, outcome, 0.0);
            }
            (_, Some(until)) => self.now = until,
            (_, None) => panic!("nothing to wait for"),
        }
    }

    fn seconds(&self) -> u64 {
        self.now.saturating_sub(Duration::from_secs(1000)).as_secs()
    }
}

fn play(events: u64, script: impl Fn(usize, u64) -> Answer) -> Sim<impl Fn(usize, u64) -> Answer> {
    Sim::new(events, 0, None, script).play()
}

/// Every event of the first `event_count` is published, in whole batches, and counted.
fn assert_all<F>(sim: Sim<F>, events: u64) {
    let firsts: Vec<_> = sim.published.keys().copied().collect();
    assert_eq!(
        firsts,
        (0..events.div_ceil(10)).map(|n| n * 10).collect::<Vec<_>>()
    );
    assert_eq!(
        sim.published
            .values()
            .map(|count| u64::from(*count))
            .sum::<u64>(),
        events
    );
    assert_eq!(
        (sim.run.counts().events, sim.run.resume_at()),
        (events, events)
    );
    assert!(sim.run.into_ending().is_none());
}

/// Requests begin in the order of the file, and up to 16 are under way at once.
#[test]
fn willing_server_gets_all_events_in_order_ever_faster() {
    let sim = play(5005, |_, _| Answer::Ok);
    assert_eq!(sim.in_flight_max, 16);
    assert!(sim.requests.is_sorted_by_key(|(_, first, _)| *first));
    let report = PublishReport {
        answers: 501,
        accepted: 5005,
        unmatched: 501,
        subscriptions_max: 1,
    };
    let counts = RunCounts {
        events: 5005,
        requests: 501,
        report: Some(report),
        ..RunCounts::default()
    };
    assert_eq!(sim.run.counts(), counts);
    assert_all(sim, 5005);
}

#[test]
fn empty_input_sends_no_requests() {
    assert_all(play(0, |_, _| Answer::Ok), 0);
}

#[test]
fn refusals_of_every_kind_lose_nothing() {
    let sim = play(2000, |n, _| match n % 7 {
        1 => Answer::Refused(3),
        2 => Answer::Lost,
        3 => Answer::Dropped,
        4 => Answer::InUse(2),
        5 => Answer::Unavailable,
        _ => Answer::Ok,
    });
    let counts = sim.run.counts();
    assert_eq!(counts.requests, 200);
    assert_eq!(counts.retried, sim.requests.len() as u64 - 200);
    assert!(counts.refused > 0);
    assert_all(sim, 2000);
}

#[test]
fn a_wait_that_the_server_names_is_kept_by_every_request() {
    let sim = play(1000, |n, _| {
        if n == 20 {
            Answer::Refused(30)
        } else {
            Answer::Ok
        }
    });
    let refused_at = sim.requests[20].0 + LATENCY;
    let within = |at: Duration| at > refused_at && at < refused_at + Duration::from_secs(30);
    assert!(!sim.requests.iter().any(|(at, ..)| within(*at)));
    let (at, first, _) = sim
        .requests
        .iter()
        .find(|(at, ..)| *at >= refused_at + Duration::from_secs(30))
        .unwrap();
    assert_eq!(
        (*at, *first),
        (refused_at + Duration::from_secs(30), sim.requests[20].1)
    );
    assert_eq!(sim.run.counts().refused, 1);
    assert_all(sim, 1000);
}

#[test]
fn under_the_tarpit_one_request_waits_at_once() {
    let sim = play(200, |_, _| Answer::Held(15));
    assert_eq!((sim.in_flight_max, sim.run.counts().delayed), (1, 20));
    assert_eq!(sim.seconds(), 20 * 15 + 2);
    assert_all(sim, 200);
}

/// Tarpit that lets one request per delay through gets exactly one per delay.
#[test]
fn advised_delays_are_kept_without_wasted_requests() {
    let sim = play(200, |_, _| Answer::LetThrough(15));
    assert_eq!(
        (
            sim.requests.len(),
            sim.in_flight_max,
            sim.run.counts().delayed
        ),
        (20, 1, 0)
    );
    assert_eq!(sim.seconds(), 19 * 15 + 2);
    assert_all(sim, 200);
}

#[test]
fn a_wanted_pace_is_kept() {
    let sim = Sim::new(1000, 0, Some(50), |_, _| Answer::Ok).play();
    assert_eq!(sim.seconds(), (1000 - 10) / 50);
    assert_all(sim, 1000);
}

#[test]
fn a_request_in_use_waits_alone() {
    let sim = play(500, |n, _| {
        if n == 5 {
            Answer::InUse(90)
        } else {
            Answer::Ok
        }
    });
    let first = sim.requests[5].1;
    let others = sim.requests[6..]
        .iter()
        .filter(|(_, other, _)| *other != first);
    assert!(
        others.clone().count() == 44
            && others.map(|(at, ..)| *at).max().unwrap() < Duration::from_secs(1010)
    );
    assert_eq!(sim.requests.last().unwrap().1, first);
    assert_all(sim, 500);
}

#[test]
fn bad_event_stops_the_run_and_resume_is_at_its_batch() {
    let sim = play(1000, |_, first| {
        if first == 300 {
            Answer::BadEvent(7)
        } else {
            Answer::Ok
        }
    });
    let resume_at = sim.run.resume_at();
    assert_eq!(resume_at, 300);
    let sent_after = sim
        .requests
        .iter()
        .filter(|(_, first, _)| *first > 300)
        .count();
    assert!(sent_after <= 16, "{sent_after}");
    // What was on its way was waited for and counted.
    let published: u64 = sim.published.values().map(|count| u64::from(*count)).sum();
    assert_eq!(sim.run.counts().events, published);
    let ending = sim.run.into_ending().unwrap();
    assert_eq!(
        ending.to_string(),
        "event 307 (the first is 0), which begins in line 308, was refused"
    );
}

#[test]
fn a_wrong_key_stops_it_at_once() {
    let sim = play(1000, |_, _| Answer::Unauthorized);
    assert_eq!((sim.requests.len(), sim.run.resume_at()), (1, 0));
    assert_eq!(
        sim.run.into_ending().unwrap().to_string(),
        "the request with the events 0 to 9 (the first is 0) was refused"
    );
}

#[test]
fn a_server_that_is_gone_is_waited_for_and_then_given_up() {
    let sim = play(
        1000,
        |n, _| if n < 30 { Answer::Ok } else { Answer::Dropped },
    );
    assert_eq!(sim.seconds() / 60, 15);
    assert!(sim.requests.len() < 100, "{}", sim.requests.len());
    assert_eq!(sim.run.counts().events, 300);
    assert_eq!(sim.run.resume_at(), 300);
    let ending = sim.run.into_ending().unwrap();
    assert_eq!(ending.to_string(), "nothing was acknowledged for PT15M");
}

#[test]
fn a_server_that_never_answered_is_given_up_soon() {
    let sim = play(1000, |_, _| Answer::Dropped);
    assert_eq!((sim.seconds(), sim.run.resume_at()), (30, 0));
    assert_eq!(
        sim.run.into_ending().unwrap().to_string(),
        "nothing was acknowledged for PT30S"
    );
    // One that answers, whatever it is, is there.
    let sim = play(100, |n, _| {
        if n == 0 {
            Answer::Unavailable
        } else {
            Answer::Dropped
        }
    });
    assert_eq!(sim.seconds() / 60, 15);
}

/// Refusal by the tarpit (429) is counted as a delay, every other one as a refusal.
#[test]
fn request_sent_away_by_the_tarpit_counts_as_delayed() {
    let sim = play(100, |n, _| match n {
        2 => Answer::SentAway(15),
        5 => Answer::Refused(30),
        _ => Answer::Ok,
    });
    let counts = sim.run.counts();
    assert_eq!((counts.delayed, counts.refused, counts.retried), (1, 1, 2));
    assert_all(sim, 100);
}

#[test]
fn back_pressure_that_does_not_end_is_given_up() {
    let sim = play(100, |_, _| Answer::Refused(30));
    assert_eq!((sim.seconds(), sim.requests.len()), (15 * 60, 30));
    assert!(matches!(
        sim.run.into_ending(),
        Some(RunEnding::GaveUp { .. })
    ));
}

/// Batches that the first run published beyond the point to resume at have the same names again.
#[test]
fn resumed_run_gives_the_same_names_to_the_same_requests() {
    // The fortieth request is refused for good, in the middle of others.
    let first_run = play(1000, |n, _| {
        if n == 40 {
            Answer::BadEvent(0)
        } else {
            Answer::Ok
        }
    });
    let resume_at = first_run.run.resume_at();
    assert!(first_run.published.keys().any(|first| *first > resume_at));
    let mut second_run = Sim::new(1000, resume_at, None, |_, _| Answer::Ok).play();
    for (first, count) in &first_run.published {
        let again = second_run.published.insert(*first, *count);
        assert!(
            again.is_none_or(|again| again == *count),
            "another batch under the name {first}"
        );
    }
    assert_eq!(
        second_run
            .published
            .values()
            .map(|count| u64::from(*count))
            .sum::<u64>(),
        1000
    );
}

#[test]
fn whole_batches_before_a_broken_event_are_published() {
    let mut sim = Sim::new(0, 0, None, |_, _| Answer::Ok);
    let mut text = input(25).to_vec();
    text.extend_from_slice(b"{broken\n{}\n");
    let packing = PackingSettings {
        events_max: 10,
        from: 0,
        content_type: None,
    };
    sim.batches = EventBatches::new(EventReader::new(text.leak()), packing);
    let sim = sim.play();
    assert_eq!((sim.run.counts().events, sim.run.resume_at()), (20, 20));
    assert!(matches!(
        sim.run.into_ending(),
        Some(RunEnding::Input(EventsError::Syntax(
            EventPlace {
                index: 25,
                line: 26
            },
            _
        )))
    ));
}

#[test]
fn the_first_signal_waits_for_answers_and_the_second_does_not() {
    let now = Duration::from_secs(1);
    let start = || {
        let mut sim = Sim::new(100, 0, None, |_, _| Answer::Ok);
        assert_eq!(sim.run.next(now), RunStep::Read);
        let batch = sim.batches.next_batch();
        sim.run.take_batch(batch);
        // One is read ahead only when the one before is on its way.
        assert!(matches!(sim.run.next(now), RunStep::Send(_)));
        sim.run.take_signal(130);
        assert_eq!(sim.run.next(now), RunStep::Wait(None));
        sim
    };
    let mut patient = start();
    patient
        .run
        .take_outcome(now, 0, acknowledged(10, None), 0.0);
    assert_eq!(
        (patient.run.next(now), patient.run.resume_at()),
        (RunStep::Over, 10)
    );
    let mut hasty = start();
    assert_eq!(
        hasty.run.waits_for(),
        Some("waiting for the answers to what was sent")
    );
    hasty.run.take_signal(130);
    assert_eq!(
        (hasty.run.next(now), hasty.run.resume_at()),
        (RunStep::Over, 0)
    );
    assert_eq!(hasty.run.waits_for(), None);
    assert!(matches!(
        hasty.run.into_ending(),
        Some(RunEnding::Interrupted { exit_code: 130 })
    ));
}

/// First signal publishes what was taken from a pipe; the second one waits for nothing.
#[test]
fn first_signal_publishes_taken_events_and_second_does_not() {
    let start = || {
        let mut sim = Sim::new(25, 0, None, |_, _| Answer::Ok);
        sim.run = sim.run.of_pipe(true);
        assert_eq!(
            (sim.run.next(sim.now), sim.run.waits_for()),
            (RunStep::Read, None)
        );
        sim.run.take_signal(143);
        assert_eq!(
            sim.run.waits_for(),
            Some("publishing what was taken from the pipe")
        );
        let batch = sim.batches.next_batch();
        sim.run.take_batch(batch);
        sim
    };
    let patient = start().play();
    assert_eq!(
        (patient.run.counts().events, patient.run.resume_at()),
        (25, 25)
    );
    assert!(matches!(
        patient.run.into_ending(),
        Some(RunEnding::Interrupted { exit_code: 143 })
    ));
    let mut hasty = start();
    hasty.run.take_signal(130);
    assert_eq!(
        (hasty.run.next(hasty.now), hasty.run.waits_for()),
        (RunStep::Over, None)
    );
    assert_eq!(hasty.run.resume_at(), 0);
}

#[test]
fn broken_event_of_a_pipe_is_named_even_after_a_signal() {
    let signals_before_and_after_it = [(1, 0), (0, 1)];
    for (before, after) in signals_before_and_after_it {
        let mut sim = Sim::new(0, 0, None, |_, _| Answer::Ok);
        sim.run = sim.run.of_pipe(true);
        assert_eq!(sim.run.next(sim.now), RunStep::Read);
        for _ in 0..before {
            sim.run.take_signal(130);
        }
        let error = EventsError::Utf8(EventPlace { index: 0, line: 1 });
        sim.run.take_batch(Err(error));
        for _ in 0..after {
            sim.run.take_signal(130);
        }
        assert_eq!(sim.run.next(sim.now), RunStep::Over);
        assert!(matches!(
            sim.run.into_ending(),
            Some(RunEnding::Input(EventsError::Utf8(_)))
        ));
    }
}
