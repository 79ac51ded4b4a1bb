//! wake's lease, and what a run does under it: objects are sent and then deleted, and the checkpoint
//! goes from one run to the next.
//!
//! From `functions/wake/src/lib.rs` (`run_within`), `shared/services/src/lease.rs` and
//! `functions/wake/src/objects.rs`. Time is in ticks of ten seconds. The clock of each run is ahead
//! of the true time by a number of ticks that stays as it is.

use stateright::{Model, Property};

use crate::step::{Actor, Call, Condition, Fate, Step, Version};
use crate::stored::{Stored, Written};

/// The length of a lease: 90 s (`LEASE` in `functions/wake/src/lib.rs`).
pub const LEASE_TICKS: u8 = 9;

/// The longest time of a run: 55 s (`RUN_MAX`, there), and five more.
pub const RUN_TICKS: u8 = 6;

/// The runs.
pub const RUNS: usize = 2;

/// An object that runs read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// `leases/wake.json`.
    Lease,
    /// An object under `parked/` that is due.
    Parked,
    /// The deliveries queue.
    Deliveries,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A tick passes.
    Passes,
    /// A run begins.
    Begins(Actor),
    /// A run finds that another one has the lease, or that its own time is over.
    Stops(Actor),
}

/// A step.
pub type Action = Step<Key, Event>;

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// The lease is put without a condition.
    PutWithoutMatch,
    /// An object is deleted before its messages are sent.
    DeletesBeforeSend,
    /// A lease that ends later than one of now would counts as lapsed, however little later.
    NoMargin,
}

/// The model.
#[derive(Debug, Clone)]
pub struct WakeLease {
    /// The protocol.
    pub variant: Variant,
    /// The ticks by which the clock of each run is ahead.
    pub ahead: [u8; RUNS],
    /// The ticks by which a lease may end later than one of now, and not count as lapsed
    /// (`CLOCKS_APART_MAX` in `shared/services/src/lease.rs`).
    pub margin: u8,
    /// The lease that is there at first: the time at which it lapses.
    pub found: Option<u8>,
    /// The calls that may fail.
    pub faults: u8,
    /// The runs that may die.
    pub deaths: u8,
    /// The ticks that pass.
    pub ticks: u8,
    /// The times that each run may begin.
    pub begins: [u8; RUNS],
}

/// A lease as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The time at which it lapses, by the clock of its holder.
    pub lapses_at: u8,
    /// Whether the checkpoint says that what was parked is done.
    pub is_done: bool,
}

/// A run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    /// The run has not begun, or has ended.
    Ended,
    /// The run reads the lease.
    Finds,
    /// The run has read the lease.
    Found {
        condition: Condition,
        lapses_at: u8,
        is_done: bool,
    },
    /// The run works under the lease.
    Works {
        version: Version,
        deadline: u8,
        work: Work,
    },
    /// The run gives the lease back.
    GivesBack { version: Version, is_done: bool },
}

/// The work on what is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    Lists,
    Opens,
    Sends,
    Closes,
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The true time.
    pub now: u8,
    /// The lease.
    pub lease: Stored<Lease>,
    /// Whether the object is there.
    pub parked: bool,
    /// The number of times that its messages were sent.
    pub sent: u8,
    /// The runs.
    pub runs: [Run; RUNS],
    begun: [u8; RUNS],
    begun_at: [u8; RUNS],
    faults: u8,
    deaths: u8,
    /// Calls that failed, runs that died, and runs whose time was over.
    pub harm: u8,
    /// Runs that found another one at work.
    pub busy: u8,
    /// Leases that were taken while they said that they were held.
    pub taken_over: u8,
}

impl WakeLease {
    /// The model of the code, with clocks that are this far apart.
    pub fn of_the_code(ahead: [u8; RUNS]) -> Self {
        Self {
            variant: Variant::Code,
            ahead,
            margin: 3,
            found: None,
            faults: 1,
            deaths: 1,
            ticks: LEASE_TICKS + 1,
            begins: [1, 1],
        }
    }

    fn clock(&self, state: &State, run: Actor) -> u8 {
        state.now + self.ahead[run]
    }

    /// Whether another run has the lease, as this run reads it.
    fn is_held(&self, state: &State, run: Actor, lapses_at: u8) -> bool {
        let now = self.clock(state, run);
        let margin = match self.variant {
            Variant::NoMargin => 0,
            _ => self.margin,
        };
        lapses_at > now && lapses_at <= now + LEASE_TICKS + margin
    }

    /// The next call of a run.
    fn next_call(&self, state: &State, run: Actor) -> Option<Call<Key>> {
        match state.runs[run] {
            Run::Ended => None,
            Run::Finds => Some(Call::Get(Key::Lease)),
            Run::Found {
                condition,
                lapses_at,
                ..
            } => (!self.is_held(state, run, lapses_at))
                .then(|| Call::put(Key::Lease, self.condition(condition))),
            Run::Works { deadline, work, .. } => (state.now < deadline).then_some(match work {
                Work::Lists => Call::List(Key::Parked),
                Work::Opens => Call::Get(Key::Parked),
                Work::Sends => Call::Send(Key::Deliveries),
                Work::Closes => Call::Delete(Key::Parked),
            }),
            Run::GivesBack { version, .. } => Some(Call::put(
                Key::Lease,
                self.condition(Condition::IfMatch(version)),
            )),
        }
    }

    fn condition(&self, condition: Condition) -> Condition {
        match self.variant {
            Variant::PutWithoutMatch => Condition::Always,
            _ => condition,
        }
    }

    fn calls(&self, state: &mut State, run: Actor, call: Call<Key>, fate: Fate) {
        let is_answered = fate == Fate::Answered;
        let next = match (state.runs[run], call) {
            (Run::Finds, _) if is_answered => {
                let lease = state.lease.content().copied();
                Run::Found {
                    condition: state.lease.unchanged(),
                    lapses_at: lease.map_or(0, |lease| lease.lapses_at),
                    is_done: lease.is_some_and(|lease| lease.is_done),
                }
            }
            (
                Run::Found {
                    condition,
                    lapses_at,
                    is_done,
                },
                _,
            ) => {
                let clock = self.clock(state, run);
                let lease = Lease {
                    lapses_at: clock + LEASE_TICKS,
                    is_done,
                };
                let condition = self.condition(condition);
                match state.lease.put(lease, condition, fate) {
                    Written::As(version) => {
                        state.taken_over |= u8::from(lapses_at > 0);
                        Run::Works {
                            version,
                            deadline: state.begun_at[run] + RUN_TICKS,
                            work: Work::Lists,
                        }
                    }
                    Written::Refused | Written::Unknown => Run::Ended,
                }
            }
            (
                Run::Works {
                    version,
                    deadline,
                    work,
                },
                _,
            ) => self.works(state, (version, deadline), work, fate),
            (Run::GivesBack { version, is_done }, _) => {
                let lapsed = Lease {
                    lapses_at: 0,
                    is_done,
                };
                let condition = self.condition(Condition::IfMatch(version));
                state.lease.put(lapsed, condition, fate);
                Run::Ended
            }
            (Run::Finds | Run::Ended, _) => Run::Ended,
        };
        state.runs[run] = next;
    }

    /// One call of the work. What fails is left to the next run.
    fn works(
        &self,
        state: &mut State,
        (version, deadline): (Version, u8),
        work: Work,
        fate: Fate,
    ) -> Run {
        let is_made = fate != Fate::NotMade;
        let is_answered = fate == Fate::Answered;
        let ends = |is_done| Run::GivesBack { version, is_done };
        let goes_on = |work| Run::Works {
            version,
            deadline,
            work,
        };
        let deletes_first = self.variant == Variant::DeletesBeforeSend;
        let next = match work {
            Work::Lists | Work::Opens if is_answered && !state.parked => return ends(true),
            Work::Lists => goes_on(Work::Opens),
            Work::Opens if deletes_first => goes_on(Work::Closes),
            Work::Opens => goes_on(Work::Sends),
            Work::Sends => {
                state.sent += u8::from(is_made);
                if deletes_first {
                    return ends(is_answered);
                }
                goes_on(Work::Closes)
            }
            Work::Closes => {
                state.parked &= !is_made;
                if deletes_first {
                    goes_on(Work::Sends)
                } else {
                    return ends(is_answered);
                }
            }
        };
        if is_answered { next } else { ends(false) }
    }

    fn is_over(run: &Run, now: u8) -> bool {
        matches!(run, Run::Works { deadline, .. } if now >= *deadline)
    }

    fn works_now(state: &State, run: Actor) -> bool {
        matches!(state.runs[run], Run::Works { deadline, .. } if state.now < deadline)
    }
}

impl Model for WakeLease {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let found = |lapses_at| {
            Stored::of(Lease {
                lapses_at,
                is_done: false,
            })
        };
        vec![State {
            now: 0,
            lease: self.found.map_or_else(Stored::default, found),
            parked: true,
            sent: 0,
            runs: [Run::Ended; RUNS],
            begun: [0; RUNS],
            begun_at: [0; RUNS],
            faults: self.faults,
            deaths: self.deaths,
            harm: 0,
            busy: 0,
            taken_over: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for run in 0..RUNS {
            if state.runs[run] == Run::Ended {
                if state.begun[run] < self.begins[run] {
                    actions.push(Step::Other(Event::Begins(run)));
                }
                continue;
            }
            match self.next_call(state, run) {
                Some(call) => {
                    let fates = call.fates(state.faults > 0);
                    actions.extend(fates.iter().map(|fate| Step::Calls(run, call, *fate)));
                }
                None => actions.push(Step::Other(Event::Stops(run))),
            }
            if state.deaths > 0 {
                actions.push(Step::Dies(run));
            }
        }
        // A run ends when its time is over.
        let mut runs = state.runs.iter();
        if state.now < self.ticks && !runs.any(|run| Self::is_over(run, state.now)) {
            actions.push(Step::Other(Event::Passes));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Step::Calls(run, call, fate) => {
                if fate != Fate::Answered {
                    state.faults -= 1;
                    state.harm += 1;
                }
                self.calls(&mut state, run, call, fate);
            }
            Step::Dies(run) => {
                state.deaths -= 1;
                state.harm += 1;
                state.runs[run] = Run::Ended;
            }
            Step::Other(Event::Passes) => state.now += 1,
            Step::Other(Event::Begins(run)) => {
                state.begun[run] += 1;
                state.begun_at[run] = state.now;
                state.runs[run] = Run::Finds;
            }
            Step::Other(Event::Stops(run)) => {
                state.runs[run] = if let Run::Works { version, .. } = state.runs[run] {
                    // What was sent last may not be deleted.
                    state.harm += 1;
                    Run::GivesBack {
                        version,
                        is_done: false,
                    }
                } else {
                    state.busy = 1;
                    Run::Ended
                };
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one run works at a time", |_, state: &State| {
                (0..RUNS).filter(|run| Self::works_now(state, *run)).count() <= 1
            }),
            Property::always(
                "nothing is deleted that was not sent",
                |_, state: &State| state.parked || state.sent > 0,
            ),
            Property::always(
                "nothing is sent twice without a fault or a death",
                |_, state: &State| {
                    let runs = state.runs.iter();
                    let overdue = runs.filter(|run| Self::is_over(run, state.now)).count();
                    usize::from(state.sent) <= 1 + usize::from(state.harm) + overdue
                },
            ),
            Property::always(
                "the checkpoint says done of what was sent alone",
                |_, state: &State| {
                    state.lease.content().is_none_or(|it| !it.is_done) || state.sent > 0
                },
            ),
            Property::sometimes("a run finds another one at work", |_, state: &State| {
                state.busy > 0
            }),
            Property::sometimes("the lease of a dead run is taken", |_, state: &State| {
                state.taken_over > 0
            }),
            Property::sometimes("what is parked is sent and deleted", |_, state: &State| {
                !state.parked && state.sent == 1
            }),
            Property::sometimes("a death after the send makes a copy", |_, state: &State| {
                state.sent == 2
            }),
        ]
    }
}
