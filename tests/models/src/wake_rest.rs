//! wake's rest, and the signals that end it: two workers make work, each after a signal, and wake
//! looks once a minute unless it may rest.
//!
//! From `functions/wake/src/lib.rs` (`run_within`, `may_rest`), `shared/services/src/wake_signal.rs`
//! and `functions/deliver` (held deliveries, which are written after `WakeSignaller::signal_if_due`). The
//! rules are those of the code itself: `core::release::rest` and `core::stored::WakeSignal`. Time is
//! in minutes.

use posthaste_core::model::Timestamp;
use posthaste_core::release::rest;
use posthaste_core::stored::{WakeCheckpoint, WakeSignal};
use stateright::{Model, Property};

use crate::step::{Actor, Call, Condition, Fate, Step};
use crate::stored::Stored;

/// The workers that make work.
pub const MAKERS: usize = 2;

/// The longest rest, in minutes.
pub const REST_MAX: u8 = (rest::REST_MAX.as_secs() / 60) as u8;

const MINUTE_MS: u64 = 60_000;

/// An object that they read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// `leases/wake.json`.
    Lease,
    /// `signals/wake.json`.
    Signal,
    /// Objects under `held/`.
    Held,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A minute passes.
    Passes,
    /// A run of wake begins.
    Begins,
    /// A worker has work to make.
    HasWork(Actor),
}

/// A step. wake is the actor after the workers.
pub type Action = Step<Key, Event>;

/// The actor that wake is.
pub const WAKE: Actor = MAKERS;

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// Work is made before its signal is sent.
    WorkBeforeSignal,
    /// A run that found nothing rests without a look at the signal.
    RestsWithoutLook,
}

/// The model.
#[derive(Debug, Clone)]
pub struct WakeRest {
    /// The protocol.
    pub variant: Variant,
    /// The minutes by which the clock of each worker is behind that of wake.
    pub behind: [u8; MAKERS],
    /// The most minutes between a signal, or the look that shows that none is needed, and its work.
    pub making: u8,
    /// The work that each worker makes.
    pub work: [u8; MAKERS],
    /// The calls that may fail.
    pub faults: u8,
    /// The minutes that pass.
    pub minutes: u8,
}

/// A worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Maker {
    /// The worker has nothing to do.
    Rests,
    /// The worker sends a signal.
    Signals,
    /// The worker makes work, by this time at the latest.
    Makes { by: u8, is_announced: bool },
}

/// wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    Ended,
    Finds,
    /// The run may rest, if the signal does not say otherwise.
    MayRest,
    Takes,
    Lists,
    GivesBack {
        has_worked: bool,
    },
}

/// The checkpoint, in minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rested {
    began: Option<u8>,
    until: Option<u8>,
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The time of wake's clock.
    pub now: u8,
    lease: Stored<Rested>,
    signal: Stored<u8>,
    /// The work that waits: since when, and whether its signal was sent.
    pub waits: Vec<(u8, bool)>,
    makers: [Maker; MAKERS],
    sent_until: [Option<u8>; MAKERS],
    left: [u8; MAKERS],
    run: Run,
    began: u8,
    faults: u8,
    has_rested: bool,
    was_woken: bool,
}

fn at(minute: u8) -> Timestamp {
    Timestamp::from_millis(u64::from(minute) * MINUTE_MS)
}

/// The minute of a time that is one of the model.
fn minute(at: Timestamp) -> u8 {
    u8::try_from(at.as_millis() / MINUTE_MS).unwrap_or(u8::MAX)
}

impl Rested {
    fn checkpoint(self) -> WakeCheckpoint {
        WakeCheckpoint {
            began_at: self.began.map(at),
            rest_until: self.until.map(at),
            ..WakeCheckpoint::default()
        }
    }
}

impl WakeRest {
    /// The model of the code, with clocks that are this far apart and work that takes so long: until
    /// the signals of both workers have ended.
    pub fn of_the_code(behind: [u8; MAKERS], making: u8) -> Self {
        Self {
            variant: Variant::Code,
            behind,
            making,
            work: [2, 1],
            faults: 0,
            minutes: 16,
        }
    }

    /// The same with one worker, whose signal may be lost, through the longest rest.
    pub fn losing_a_signal() -> Self {
        Self {
            work: [2, 0],
            faults: 1,
            minutes: 26,
            ..Self::of_the_code([0, 0], 0)
        }
    }

    fn clock(&self, state: &State, maker: Actor) -> Timestamp {
        at(state.now - self.behind[maker])
    }

    fn next_call(&self, state: &State, actor: Actor) -> Option<Call<Key>> {
        if actor < MAKERS {
            return match state.makers[actor] {
                Maker::Rests => None,
                Maker::Signals => Some(Call::Put(Key::Signal)),
                Maker::Makes { .. } => Some(Call::Put(Key::Held)),
            };
        }
        match state.run {
            Run::Ended => None,
            Run::Finds => Some(Call::Get(Key::Lease)),
            Run::MayRest => Some(Call::Get(Key::Signal)),
            Run::Lists => Some(Call::List(Key::Held)),
            Run::Takes | Run::GivesBack { .. } => {
                Some(Call::put(Key::Lease, state.lease.unchanged()))
            }
        }
    }

    /// A worker that is about to make work: it sends a signal, unless its last one announces that.
    fn signals(&self, state: &State, maker: Actor) -> Maker {
        let now = self.clock(state, maker);
        let last = state.sent_until[maker].map(|until| WakeSignal { until: at(until) });
        let is_announced = last.is_some_and(|last| last.announces_work_at(now));
        match self.variant {
            Variant::WorkBeforeSignal if !is_announced => Maker::Makes {
                by: state.now,
                is_announced: true,
            },
            _ if is_announced => Maker::Makes {
                by: state.now + self.making,
                is_announced: true,
            },
            _ => Maker::Signals,
        }
    }

    fn maker_calls(&self, state: &mut State, maker: Actor, call: Call<Key>, fate: Fate) {
        let is_first = self.variant == Variant::WorkBeforeSignal;
        if let Call::Put(Key::Signal) = call {
            let until = minute(WakeSignal::sent_at(self.clock(state, maker)).until);
            state.signal.put(until, Condition::Always, fate);
            if fate == Fate::Answered {
                state.sent_until[maker] = Some(until);
            }
            state.makers[maker] = if is_first {
                Maker::Rests
            } else {
                Maker::Makes {
                    by: state.now + self.making,
                    is_announced: fate != Fate::NotMade,
                }
            };
            return;
        }
        let Maker::Makes { is_announced, .. } = state.makers[maker] else {
            return;
        };
        if fate != Fate::NotMade {
            state.waits.push((state.now, is_announced));
        }
        let needs_signal = is_first && state.sent_until[maker].is_none();
        state.makers[maker] = if needs_signal {
            Maker::Signals
        } else {
            Maker::Rests
        };
    }

    fn wake_calls(&self, state: &mut State, call: Call<Key>, fate: Fate) {
        if fate != Fate::Answered {
            // A signal that cannot be read may announce some work. All else ends the run.
            state.run = if state.run == Run::MayRest {
                Run::Takes
            } else {
                Run::Ended
            };
            return;
        }
        let last = state.lease.content().copied().unwrap_or_default();
        let checkpoint = last.checkpoint();
        state.run = match (state.run, call) {
            (Run::Finds, _) if rest::may_rest(&checkpoint, at(state.began)) => {
                if self.variant == Variant::RestsWithoutLook {
                    state.has_rested = true;
                    Run::Ended
                } else {
                    Run::MayRest
                }
            }
            (Run::Finds, _) => Run::Takes,
            (Run::MayRest, _) => {
                let signal = state.signal.content();
                let rests = signal.is_none_or(|until| rest::is_covered(&checkpoint, at(*until)));
                state.has_rested |= rests;
                state.was_woken |= !rests;
                if rests { Run::Ended } else { Run::Takes }
            }
            (Run::Takes, _) => {
                let condition = state.lease.unchanged();
                state.lease.put(last, condition, fate);
                Run::Lists
            }
            (Run::Lists, _) => {
                let has_worked = !state.waits.is_empty();
                state.waits.clear();
                Run::GivesBack { has_worked }
            }
            (Run::GivesBack { has_worked }, _) => {
                let until = minute(rest::rest_until(at(state.began), None));
                let next = Rested {
                    began: Some(state.began),
                    until: (!has_worked).then_some(until),
                };
                let condition = state.lease.unchanged();
                state.lease.put(next, condition, fate);
                Run::Ended
            }
            (Run::Ended, _) => Run::Ended,
        };
    }

    /// Whether a minute may pass: wake begins in each, and work is made in time.
    fn may_pass(&self, state: &State) -> bool {
        let in_time = |maker: &Maker| match maker {
            Maker::Rests => true,
            Maker::Signals => false,
            Maker::Makes { by, .. } => state.now < *by,
        };
        state.now < self.minutes
            && state.run == Run::Ended
            && state.began == state.now
            && state.makers.iter().all(in_time)
    }

    /// Whether work waits for longer than this.
    fn waits_longer(state: &State, minutes: u8, announced_only: bool) -> bool {
        let is_meant = |(_, is_announced): &&(u8, bool)| *is_announced || !announced_only;
        let waits = state.waits.iter().filter(is_meant);
        waits.map(|(since, _)| since + minutes).min() < Some(state.now)
            && state.waits.iter().any(|it| is_meant(&it))
    }
}

impl Model for WakeRest {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 2,
            lease: Stored::default(),
            signal: Stored::default(),
            waits: Vec::new(),
            makers: [Maker::Rests; MAKERS],
            sent_until: [None; MAKERS],
            left: self.work,
            run: Run::Ended,
            began: 0,
            faults: self.faults,
            has_rested: false,
            was_woken: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for actor in 0..=MAKERS {
            if let Some(call) = self.next_call(state, actor) {
                // All else that fails is a run of wake that ends, or work that is not made.
                let may_fail = state.faults > 0 && call == Call::Put(Key::Signal);
                let fates = call.fates(may_fail);
                actions.extend(fates.iter().map(|fate| Step::Calls(actor, call, *fate)));
            } else if actor < MAKERS && state.left[actor] > 0 {
                actions.push(Step::Other(Event::HasWork(actor)));
            } else if actor == WAKE && state.began < state.now {
                actions.push(Step::Other(Event::Begins));
            }
        }
        if self.may_pass(state) {
            actions.push(Step::Other(Event::Passes));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Step::Calls(actor, call, fate) => {
                state.faults -= u8::from(fate != Fate::Answered);
                if actor == WAKE {
                    self.wake_calls(&mut state, call, fate);
                } else {
                    self.maker_calls(&mut state, actor, call, fate);
                }
            }
            Step::Other(Event::Passes) => state.now += 1,
            Step::Other(Event::Begins) => {
                state.began = state.now;
                state.run = Run::Finds;
            }
            Step::Other(Event::HasWork(maker)) => {
                state.left[maker] -= 1;
                state.makers[maker] = self.signals(&state, maker);
            }
            Step::Dies(_) => return None,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            // One minute until the next run begins, and one more where a run of wake fails.
            Property::always(
                "announced work is found by the next runs",
                |_, state: &State| !Self::waits_longer(state, 2, true),
            ),
            Property::always(
                "all work is found after the longest rest",
                |_, state: &State| !Self::waits_longer(state, REST_MAX + 2, false),
            ),
            Property::sometimes("wake rests", |_, state: &State| state.has_rested),
            Property::sometimes("a signal ends a rest", |_, state: &State| state.was_woken),
        ];
        if self.faults > 0 {
            all.push(Property::sometimes(
                "work whose signal was lost waits through a rest",
                |_, state: &State| Self::waits_longer(state, 9, false),
            ));
        }
        all
    }
}
