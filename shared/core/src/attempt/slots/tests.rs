use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest lease of a subscription whose timeout this is, as others see it.
const LEASE: Duration = Duration::from_secs(55);

fn most(requests: u32) -> SlotLimit {
    SlotLimit::new(requests).unwrap()
}

fn after(ms: u64) -> Timestamp {
    NOW + Duration::from_millis(ms)
}

fn secs(secs: u64) -> Timestamp {
    after(secs * 1000)
}

fn claim(holder: &str, wanted: u32) -> SlotClaim<'_> {
    SlotClaim {
        holder,
        begun: 0,
        held: 0,
        wanted,
        timeout: TIMEOUT,
    }
}

fn lease(grant: SlotGrant) -> (SlotLease, SlotState) {
    match grant {
        SlotGrant::Lease(lease, state) => (lease, state),
        SlotGrant::Nothing(state) => panic!("nothing: {state:?}"),
    }
}

/// The slots of each holder, with the ends of their leases.
fn held(state: &SlotState) -> Vec<(&str, u32, Timestamp)> {
    let held = state.leases.iter();
    held.map(|lease| (&*lease.holder, lease.slots, lease.until))
        .collect()
}

#[test]
fn worker_gets_what_it_wants_and_no_more_than_is_free() {
    let (first, state) = lease(most(5).take_slots(None, &claim("a", 3), NOW));
    assert_eq!(first.slots(), 3);
    let (second, state) = lease(most(5).take_slots(Some(&state), &claim("b", 3), NOW));
    assert_eq!(second.slots(), 2);
    assert_eq!(held(&state), [("a", 3, NOW + LEASE), ("b", 2, NOW + LEASE)]);
    let third = most(5).take_slots(Some(&state), &claim("c", 1), NOW);
    assert_eq!(third, SlotGrant::Nothing(None));
}

#[test]
fn worker_that_has_what_there_is_writes_nothing() {
    let (_, state) = lease(most(5).take_slots(None, &claim("a", 5), NOW));
    let more = SlotClaim {
        held: 5,
        ..claim("a", 9)
    };
    assert_eq!(
        most(5).take_slots(Some(&state), &more, NOW),
        SlotGrant::Nothing(None)
    );
}

/// So an etag that names content is another one.
#[test]
fn rewritten_state_differs_in_its_time_alone() {
    let (_, state) = lease(most(5).take_slots(None, &claim("a", 5), NOW));
    let rewritten = SlotState::rewrite_unchanged(Some(&state), NOW);
    assert_eq!(held(&rewritten), held(&state));
    assert_ne!(rewritten, state);
    assert_eq!(held(&SlotState::rewrite_unchanged(None, NOW)), []);
}

#[test]
fn request_begins_only_if_its_timeout_ends_before_the_lease() {
    let (own, _) = lease(most(5).take_slots(None, &claim("a", 1), NOW));
    for (now, expected) in [
        (NOW, true),
        (secs(20), true),
        (after(20_001), false),
        // A clock that was set back.
        (Timestamp::from_millis(NOW.as_millis() - 1), false),
    ] {
        assert_eq!(own.allows_request(most(5), TIMEOUT, now), expected, "{now}");
    }
    assert!(!own.allows_request(most(5), TIMEOUT + Duration::from_secs(21), NOW));
    assert!(
        !own.allows_request(most(4), TIMEOUT, NOW),
        "of another bound"
    );
}

#[test]
fn slots_of_a_worker_that_died_are_free_when_its_lease_is_over() {
    let (_, state) = lease(most(1).take_slots(None, &claim("a", 1), NOW));
    let at = |now| most(1).take_slots(Some(&state), &claim("b", 1), now);
    assert_eq!(at(after(54_999)), SlotGrant::Nothing(None));
    assert_eq!(held(&lease(at(secs(55))).1), [("b", 1, secs(55) + LEASE)]);
}

#[test]
fn slots_that_are_given_back_are_free_at_once() {
    let (_, state) = lease(most(3).take_slots(None, &claim("a", 3), NOW));
    let fewer = state.give_back("a", 1, secs(1)).unwrap();
    assert_eq!(held(&fewer), [("a", 1, NOW + LEASE)]);
    assert_eq!(fewer.give_back("a", 1, secs(1)), None);
    assert_eq!(fewer.give_back("b", 0, secs(1)), None);
    let none = fewer.give_back("a", 0, secs(1)).unwrap();
    assert_eq!(held(&none), []);
    assert_eq!(none.give_back("a", 0, secs(1)), None);
}

#[test]
fn lowered_bound_gives_nothing_until_enough_slots_are_free() {
    let (_, state) = lease(most(5).take_slots(None, &claim("a", 3), NOW));
    let (_, state) = lease(most(5).take_slots(Some(&state), &claim("b", 2), NOW));
    let own = SlotClaim {
        begun: 3,
        ..claim("a", 3)
    };
    let at = |limit, state: &SlotState| most(limit).take_slots(Some(state), &own, secs(1));
    assert_eq!(at(2, &state), SlotGrant::Nothing(None));
    // The others have given theirs back. What is open counts until it has ended.
    let alone = state.give_back("b", 0, secs(1)).unwrap();
    let (lowered, state) = lease(at(2, &alone));
    assert_eq!(lowered.slots(), 2);
    assert_eq!(held(&state), [("a", 3, secs(1) + LEASE)]);
}

/// A request of the longer lease may still be open.
#[test]
fn lease_that_is_renewed_ends_no_sooner_than_before() {
    let longer = SlotClaim {
        timeout: Duration::from_mins(1),
        ..claim("a", 1)
    };
    let (_, state) = lease(most(5).take_slots(None, &longer, NOW));
    let (renewed, state) = lease(most(5).take_slots(Some(&state), &claim("a", 2), secs(1)));
    assert_eq!(renewed.end, secs(51));
    assert_eq!(held(&state), [("a", 2, secs(85))]);
}

#[test]
fn lease_of_a_wrong_clock_ends_after_the_longest_lease() {
    let (_, state) = lease(most(1).take_slots(None, &claim("a", 1), secs(3600)));
    let SlotGrant::Nothing(Some(shortened)) = most(1).take_slots(Some(&state), &claim("b", 1), NOW)
    else {
        panic!("expected a state to write")
    };
    assert_eq!(held(&shortened), [("a", 1, secs(85))]);
    // From then on it is as good as any.
    let at = |now| most(1).take_slots(Some(&shortened), &claim("b", 1), now);
    assert_eq!(at(after(84_999)), SlotGrant::Nothing(None));
    assert_eq!(lease(at(secs(85))).0.slots(), 1);
}

#[test]
fn clock_that_is_a_little_ahead_is_not_wrong() {
    let longest = SlotClaim {
        timeout: ATTEMPT_TIMEOUT_MAX,
        ..claim("a", 1)
    };
    let (_, state) = lease(most(1).take_slots(None, &longest, secs(5)));
    let nothing = most(1).take_slots(Some(&state), &claim("b", 1), NOW);
    assert_eq!(nothing, SlotGrant::Nothing(None));
}

#[test]
fn object_that_cannot_be_read_keeps_all_slots_for_one_lease() {
    let SlotGrant::Nothing(Some(written)) =
        most(1000).take_slots(Some(&SlotState::for_unreadable()), &claim("a", 1), NOW)
    else {
        panic!("expected a state to write")
    };
    let (free, _) = lease(most(1000).take_slots(Some(&written), &claim("a", 7), secs(85)));
    assert_eq!(free.slots(), 7);
}

#[test]
fn states_are_never_alike() {
    let (_, first) = lease(most(5).take_slots(None, &claim("a", 1), NOW));
    let second = first.give_back("a", 0, NOW).unwrap();
    let (_, third) = lease(most(5).take_slots(Some(&second), &claim("a", 1), NOW));
    let fourth = third.give_back("a", 0, NOW).unwrap();
    assert_eq!(
        [&first, &second, &third, &fourth].map(|state| state.at),
        [0, 1, 2, 3].map(after)
    );
}

#[test]
fn line_is_empty_when_no_worker_had_a_slot_for_three_minutes() {
    let (_, state) = lease(most(5).take_slots(None, &claim("a", 1), NOW));
    assert!(!state.is_idle(secs(180)) && state.is_idle(after(180_001)));
}

#[test]
fn requests_come_back_as_fast_as_the_slots_become_free() {
    let pace = |slots, ms| most(slots).return_rate(Duration::from_millis(ms));
    for (slots, ms, per_minute) in [
        (5, 1000, 300),
        (1, 30_000, 2),
        (1, 90_000, 1),
        (1000, 0, 60_000_000),
    ] {
        assert_eq!(
            pace(slots, ms).requests_per_minute(),
            per_minute,
            "{slots} {ms}"
        );
    }
}

/// A worker as deliver is one: it reads, may be overtaken before it writes, may never learn whether
/// it has written, and may die.
#[derive(Debug, Default)]
struct Worker {
    read: Option<(Option<SlotState>, u32)>,
    lease: Option<SlotLease>,
    /// The ends of its open requests, by the true time.
    open: Vec<u64>,
    /// The difference of its clock from the true time.
    ahead_ms: u64,
    /// The number of workers before it in its place that died.
    died: u32,
}

#[derive(Debug, Default)]
struct Model {
    state: Option<SlotState>,
    version: u32,
    now: u64,
    /// The ends of open requests of workers that died: their endpoints go on with them.
    orphans: Vec<u64>,
}

#[derive(Debug, Clone)]
enum Step {
    Read,
    Take { wanted: u32, is_answer_lost: bool },
    Begin,
    End,
    GiveBack,
    Die,
    Sleep { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let is_lost = || prop::bool::weighted(0.2);
    prop_oneof![
        4 => Just(Step::Read),
        4 => (1_u32..5, is_lost()).prop_map(|(wanted, is_answer_lost)| Step::Take { wanted, is_answer_lost }),
        6 => Just(Step::Begin),
        3 => Just(Step::End),
        2 => Just(Step::GiveBack),
        1 => Just(Step::Die),
        2 => (0_u64..30_000).prop_map(|ms| Step::Sleep { ms }),
    ]
}

impl Worker {
    fn open(&self) -> u32 {
        u32::try_from(self.open.len()).unwrap()
    }

    fn now(&self, model: &Model) -> Timestamp {
        after(model.now + self.ahead_ms)
    }
}

impl Model {
    fn step(&mut self, limit: SlotLimit, index: usize, worker: &mut Worker, step: &Step) {
        let holder = format!("{index} {}", worker.died);
        let now = worker.now(self);
        match *step {
            Step::Read => worker.read = Some((self.state.clone(), self.version)),
            Step::Take {
                wanted,
                is_answer_lost,
            } => {
                let Some((state, version)) = worker.read.take() else {
                    return;
                };
                let serves = |own: &SlotLease| own.allows_request(limit, TIMEOUT, now);
                let claim = SlotClaim {
                    holder: &holder,
                    begun: worker.open(),
                    held: worker.lease.filter(serves).map_or(0, |own| own.slots()),
                    wanted: wanted + worker.open(),
                    timeout: TIMEOUT,
                };
                let SlotGrant::Lease(own, next) = limit.take_slots(state.as_ref(), &claim, now)
                else {
                    return;
                };
                // The state may say fewer slots than the former lease.
                let stored = own.slots().max(worker.open());
                worker.lease = worker.lease.map(|former| former.capped_at(stored));
                if self.write(version, next) && !is_answer_lost {
                    worker.lease = Some(own);
                }
            }
            Step::Begin => {
                let allows = worker.lease.is_some_and(|own| {
                    own.allows_request(limit, TIMEOUT, now) && worker.open() < own.slots()
                });
                if allows {
                    let timeout_ms = u64::try_from(TIMEOUT.as_millis()).unwrap();
                    worker.open.push(self.now + timeout_ms);
                }
            }
            Step::End => drop(worker.open.pop()),
            Step::GiveBack => {
                let keep = worker.open();
                worker.lease = worker.lease.map(|own| own.capped_at(keep));
                let Some((Some(state), version)) = worker.read.take() else {
                    return;
                };
                if let Some(next) = state.give_back(&holder, keep, now) {
                    self.write(version, next);
                }
            }
            Step::Die => {
                self.orphans.append(&mut worker.open);
                worker.lease = None;
                worker.read = None;
                worker.died += 1;
            }
            Step::Sleep { ms } => self.now += ms,
        }
    }

    /// Writes on the condition that the version still stands.
    fn write(&mut self, version: u32, next: SlotState) -> bool {
        let is_current = self.version == version;
        if is_current {
            self.state = Some(next);
            self.version += 1;
        }
        is_current
    }

    /// The requests that are open.
    fn open(&mut self, workers: &mut [Worker; 4]) -> usize {
        let now = self.now;
        self.orphans.retain(|end| *end > now);
        for worker in workers.iter_mut() {
            worker.open.retain(|end| *end > now);
        }
        let open = workers.iter().map(|worker| worker.open.len());
        open.sum::<usize>() + self.orphans.len()
    }
}

proptest! {
    /// Over all workers, whose clocks differ by less than is made up for, and of which some die.
    #[test]
    fn no_interleaving_of_workers_has_more_requests_open_than_the_bound(
        requests in 1_u32..6,
        ahead_ms in prop::array::uniform4(0_u64..=5000),
        steps in prop::collection::vec((0_usize..4, step()), 1..400),
    ) {
        let (limit, mut model) = (most(requests), Model::default());
        let mut workers = ahead_ms.map(|ahead_ms| Worker { ahead_ms, ..Worker::default() });
        for (index, step) in &steps {
            let open_before = model.open(&mut workers);
            prop_assert!(open_before <= requests as usize);
            model.step(limit, *index, &mut workers[*index], step);
            let open = model.open(&mut workers);
            prop_assert!(open <= requests as usize, "{open} open of {requests} after {step:?}");
        }
    }

    /// The bound is used: one worker alone gets all of it.
    #[test]
    fn worker_alone_gets_every_slot(requests in 1_u32..=CONCURRENT_REQUESTS_MAX) {
        let (own, _) = lease(most(requests).take_slots(None, &claim("a", u32::MAX), NOW));
        prop_assert_eq!(own.slots(), requests);
    }
}
