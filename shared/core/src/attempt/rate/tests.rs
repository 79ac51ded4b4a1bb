use proptest::prelude::*;

use super::*;
use crate::model::FormatError;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn rate(per_minute: u32) -> RequestRate {
    RequestRate::per_minute(per_minute).unwrap()
}

fn after(ms: u64) -> Timestamp {
    NOW + Duration::from_millis(ms)
}

fn lease(grant: RateGrant) -> (RateLease, RateState) {
    match grant {
        RateGrant::Lease(lease, state) => (lease, state),
        RateGrant::NothingBefore(time) => panic!("nothing before {time}"),
    }
}

#[test]
fn a_rate_a_second_is_whole_requests_a_minute_rounded_down() {
    let check = |per_second: f64, per_minute: Option<u32>| {
        let rate = RequestRate::per_second(per_second).map(RequestRate::requests_per_minute);
        assert_eq!(rate, per_minute, "{per_second}");
    };
    check(1.0, Some(60));
    check(0.5, Some(30));
    check(0.02, Some(1));
    check(2.349, Some(140));
    check(0.016, None);
    check(0.0, None);
    check(-1.0, None);
    check(f64::NAN, None);
    check(f64::INFINITY, None);
    check(1e9, None);
}

#[test]
fn lease_has_the_wanted_requests_up_to_one_second_of_them() {
    let check = |per_minute: u32, wanted: u32, requests: u32| {
        let (lease, _) = lease(rate(per_minute).take_lease(None, wanted, NOW));
        assert_eq!(lease.requests, requests, "{wanted} at {per_minute}");
    };
    check(600, 3, 3);
    check(600, 0, 1);
    check(600, 50, 10);
    check(1, 50, 1);
    check(u32::MAX, u32::MAX, 71_582_788);
}

/// Each request of a lease has its own moment and is lost a second after it.
#[test]
fn lease_requests_have_own_moments_and_lapse_a_second_later() {
    let (mut lease, state) = lease(rate(600).take_lease(None, 3, NOW));
    assert_eq!(state.taken_until, after(300));
    let first = lease.next_token(NOW).unwrap();
    assert_eq!(first.from, NOW);
    assert!(first.is_valid_at(after(999)) && !first.is_valid_at(after(1000)));
    // The second one is lost because it was not taken in time.
    let third = lease.next_token(after(1100)).unwrap();
    assert_eq!(third.from, after(200));
    assert!(!third.is_valid_at(after(199)));
    assert_eq!(lease.next_token(NOW), None);
}

#[test]
fn a_clock_that_is_set_back_ends_a_lease() {
    let (mut lease, _) = lease(rate(600).take_lease(None, 3, after(7_200_000)));
    assert_eq!(lease.next_token(NOW), None);
    assert!(lease.next_token(after(7_199_000)).is_some());
}

#[test]
fn the_next_lease_begins_where_the_last_one_ends() {
    let (_, state) = lease(rate(60).take_lease(None, 1, NOW));
    let (next, state) = lease(rate(60).take_lease(Some(state), 1, NOW));
    assert_eq!(next.start, after(1000));
    assert_eq!(state.gives_nothing(NOW), Some(after(2000)));
    assert_eq!(
        rate(60).take_lease(Some(state), 1, NOW),
        RateGrant::NothingBefore(after(2000))
    );
    let (later, _) = lease(rate(60).take_lease(Some(state), 1, after(10_000)));
    assert_eq!(later.start, after(10_000), "what nobody took is lost");
}

#[test]
fn time_that_a_wrong_clock_took_does_not_stop_a_subscription() {
    let state = RateState {
        taken_until: after(65_001),
    };
    assert_eq!(state.gives_nothing(NOW), None);
    assert_eq!(lease(rate(60).take_lease(Some(state), 1, NOW)).0.start, NOW);
}

#[test]
fn request_that_finds_nothing_lines_up() {
    let check = |per_minute: u32,
                 last_ms: Option<u64>,
                 nothing_before: Timestamp,
                 due_ms: u64,
                 why: &str| {
        let last = last_ms.map(|ms| LinePlace {
            due: after(ms),
            given_at: NOW,
        });
        let place = rate(per_minute).line_up(last, nothing_before, NOW);
        assert_eq!(
            place,
            LinePlace {
                due: after(due_ms),
                given_at: NOW
            },
            "{why}"
        );
    };
    check(60, None, after(2000), 2000, "the first");
    check(60, Some(2000), after(2000), 3000, "the second");
    check(60, Some(0), after(2000), 2000, "the line is gone");
    check(
        1,
        Some(890_000),
        NOW,
        950_000,
        "past what a queue can delay",
    );
    check(1, Some(7_140_000), NOW, 7_200_000, "the longest line");
    check(1, Some(7_200_000), NOW, 901_000, "the line restarts");
}

#[test]
fn a_line_of_a_clock_that_was_set_back_is_not_there_any_more() {
    let check = |set_back_ms: u64, due_ms: u64| {
        let last = rate(1).line_up(None, after(3_660_000), after(3_600_000));
        let place = rate(1).line_up(
            Some(last),
            after(3_660_000 - set_back_ms),
            after(3_600_000 - set_back_ms),
        );
        assert_eq!(place.due, after(due_ms), "{set_back_ms}");
    };
    check(0, 3_720_000);
    // By so little a clock is not set back, and the wait is no longer for it.
    check(65_000, 3_720_000);
    check(65_001, 3_594_999);
    check(3_600_000, 60_000);
}

#[test]
fn a_line_in_which_nobody_took_his_place_is_not_there_any_more() {
    let state = RateState { taken_until: NOW };
    assert!(!state.is_idle(after(180_000)) && state.is_idle(after(180_001)));
}

#[test]
fn the_rarer_the_requests_the_longer_each_may_wait_for_its_lane() {
    let check = |per_minute: u32, kept_ms: u64| {
        let token = lease(rate(per_minute).take_lease(None, 1, NOW))
            .0
            .next_token(NOW)
            .unwrap();
        assert!(
            token.is_valid_at(after(kept_ms - 1)) && !token.is_valid_at(after(kept_ms)),
            "{per_minute}"
        );
    };
    check(1, 60_000);
    check(12, 5000);
    check(60, 1000);
    check(600, 1000);
}

#[test]
fn state_is_read_as_written_and_never_as_something_else() {
    let text = r#"{"v":1,"taken_until":1700000000000}"#;
    let state = RateState::parse(text.as_bytes()).unwrap();
    assert_eq!(state.render(), text);
    assert!(matches!(
        RateState::parse(b"{}"),
        Err(FormatError::Malformed(..))
    ));
    let newer = text.replace(":1,", ":2,");
    assert!(matches!(
        RateState::parse(newer.as_bytes()),
        Err(FormatError::Newer(2))
    ));
}

/// A worker as deliver is one: it reads, may be overtaken before it writes, and uses its tokens
/// late or never.
#[derive(Debug, Default)]
struct Worker {
    read: Option<(Option<RateState>, u32)>,
    lease: Option<RateLease>,
}

/// The store, the time, and when requests were begun.
#[derive(Debug, Default)]
struct Model {
    state: Option<RateState>,
    version: u32,
    now: u64,
    begun: Vec<u64>,
}

/// The next step of one worker.
#[derive(Debug, Clone)]
enum Step {
    Read,
    Write { wanted: u32 },
    Begin { late_ms: u64 },
    Sleep { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Read),
        3 => (0_u32..30).prop_map(|wanted| Step::Write { wanted }),
        6 => prop_oneof![Just(0), 0_u64..1500, 0_u64..61_000].prop_map(|late_ms| Step::Begin { late_ms }),
        1 => (0_u64..3000).prop_map(|ms| Step::Sleep { ms }),
    ]
}

impl Model {
    fn step(&mut self, rate: RequestRate, worker: &mut Worker, step: &Step) {
        let now = after(self.now);
        match *step {
            Step::Read => worker.read = Some((self.state, self.version)),
            Step::Write { wanted } => {
                let Some((state, version)) = worker.read.take() else {
                    return;
                };
                if let (RateGrant::Lease(lease, next), true) =
                    (rate.take_lease(state, wanted, now), version == self.version)
                {
                    self.state = Some(next);
                    self.version = version + 1;
                    worker.lease = Some(lease);
                }
            }
            Step::Begin { late_ms } => {
                let Some(token) = worker
                    .lease
                    .as_mut()
                    .and_then(|lease| lease.next_token(now))
                else {
                    return;
                };
                let begun = token.from.max(now) + Duration::from_millis(late_ms);
                if token.is_valid_at(begun) {
                    self.begun.push(begun.as_millis());
                }
            }
            Step::Sleep { ms } => self.now += ms,
        }
    }
}

proptest! {
    /// In every stretch of time, over all workers: never more than the rate allows and one lease.
    #[test]
    fn no_interleaving_of_workers_exceeds_the_rate_by_more_than_one_lease(
        per_minute in prop_oneof![1_u32..200, 200_u32..20_000],
        steps in prop::collection::vec((0_usize..4, step()), 1..400),
    ) {
        let (rate, mut model) = (rate(per_minute), Model::default());
        let mut workers: [Worker; 4] = Default::default();
        for (worker, step) in &steps {
            model.step(rate, &mut workers[*worker], step);
        }
        model.begun.sort_unstable();
        for (i, from) in model.begun.iter().enumerate() {
            for (j, to) in model.begun.iter().enumerate().skip(i) {
                // A stretch that holds both ends holds one more, and moments are rounded to the millisecond.
                let by_rate = (u128::from(to - from) + 1) * u128::from(per_minute) / 60_000 + 1;
                let allowed = by_rate + u128::from(rate.lease_max());
                let requests = (j - i + 1) as u128;
                prop_assert!(requests <= allowed, "{requests} from {from} to {to}");
            }
        }
    }

    /// One worker alone that always has something to send gets the whole rate, but for what rounding to
    /// milliseconds takes.
    #[test]
    fn nothing_of_the_rate_is_lost_while_there_is_enough_to_send(per_minute in 1_u32..5_000) {
        let rate = rate(per_minute);
        let (mut state, mut now, mut requests) = (None, NOW, 0_u32);
        while now < NOW + Duration::from_mins(2) {
            match rate.take_lease(state, 1000, now) {
                RateGrant::Lease(mut lease, next) => {
                    state = Some(next);
                    while lease.next_token(now).is_some() {
                        requests += 1;
                    }
                }
                RateGrant::NothingBefore(time) => now = time,
            }
        }
        prop_assert!(requests * 100 >= 2 * per_minute * 99, "{requests}");
    }
}
