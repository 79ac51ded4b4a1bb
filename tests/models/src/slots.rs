//! Slots: the open requests of a subscription over all workers. Each worker leases slots and gives
//! back what it has no use for, at the same time if it comes to that.
//!
//! From `functions/deliver/src/slots.rs` and `functions/deliver/src/slots/limiter.rs`. What is granted
//! and written is the code's own: `core::attempt::{SlotLimit, SlotState, SlotLease}`. Time is in
//! ticks of five seconds. A write that was not answered may still be stored later.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use posthaste_core::attempt::{SlotClaim, SlotGrant, SlotLease, SlotState};
use posthaste_core::model::{SlotLimit, Timestamp};
use stateright::{Model, Property};

use crate::step::{Actor, Call, Condition, Fate, Step, Version};
use crate::stored::{Stored, Written};

/// The workers.
pub const WORKERS: usize = 2;

/// A tick.
const TICK: Duration = Duration::from_secs(5);

/// The time that a request has for its answer, in ticks.
const TIMEOUT_TICKS: u8 = 1;

/// An object that workers read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// The object of the subscription under `slots/`.
    Slots,
    /// The endpoint.
    Endpoint,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A tick passes.
    Passes,
    /// A request of a worker comes and waits for a slot.
    Comes(usize),
    /// A request that waits is given a slot of its worker.
    TakesSlot(usize),
    /// A request is answered.
    Ends(usize),
    /// A worker asks for slots.
    Asks(usize),
    /// A worker gives back what it has no use for.
    GivesBack(usize),
    /// An actor goes by the state that its worker has just written, and does not read it.
    Knows(Actor),
    /// A write that was not answered is stored after all.
    Lands,
}

/// A step. A worker is two actors: one asks for slots, the next one gives them back.
pub type Action = Step<Key, Event>;

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// The state is put without a condition.
    PutWithoutMatch,
    /// Slots are given back first, and then not used any more.
    GivesBackBeforeItShrinks,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Slots {
    /// The protocol.
    pub variant: Variant,
    /// The bound.
    pub limit: u32,
    /// The ticks by which the clock of each worker is ahead.
    pub ahead: [u8; WORKERS],
    /// The requests that come to each worker, how often it asks, and how often it gives back.
    pub most: [[u8; 3]; WORKERS],
    /// The calls that may fail.
    pub faults: u8,
    /// The workers that may die.
    pub deaths: u8,
    /// The ticks that pass.
    pub ticks: u8,
}

/// A value that is hashed by what it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown<T>(pub T);

impl<T: std::fmt::Debug> Hash for Shown<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{:?}", self.0).hash(state);
    }
}

/// The step of a worker with the stored state.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Asking {
    Rests,
    Reads,
    Writes(Pending),
}

/// A state that is about to be written.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Pending {
    next: Shown<SlotState>,
    condition: Condition,
    /// The lease that it grants; `None` if it gives slots back.
    lease: Option<Shown<SlotLease>>,
    write: u8,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Worker {
    lease: Option<Shown<SlotLease>>,
    /// The requests that wait for a slot, and those that have one.
    waiting: u8,
    taken: u8,
    /// The open requests, by the end of their time.
    open: Vec<u8>,
    writes: u8,
    is_behind: bool,
    is_unanswered: bool,
    asks: Asking,
    gives_back: Asking,
    known: Option<(Shown<SlotState>, Version)>,
    left: [u8; 3],
    is_dead: bool,
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct State {
    now: u8,
    slots: Stored<Shown<SlotState>>,
    /// The workers.
    pub workers: [Worker; WORKERS],
    in_flight: Option<Pending>,
    faults: u8,
    deaths: u8,
    has_given_back: bool,
    was_overtaken: bool,
}

impl Worker {
    /// The requests that are open at this time.
    fn begun(&self, now: u8) -> u8 {
        let open = self.open.iter().filter(|until| **until > now);
        u8::try_from(open.count()).unwrap_or(u8::MAX)
    }

    fn slots(&self) -> u32 {
        self.lease.as_ref().map_or(0, |lease| lease.0.slots())
    }

    fn begin_write(&mut self) -> u8 {
        self.is_behind = true;
        self.is_unanswered = true;
        self.writes += 1;
        self.writes
    }

    fn at_most(&mut self, slots: u32) {
        let lease = self.lease.take();
        self.lease = lease.map(|lease| Shown(lease.0.capped_at(slots)));
    }
}

impl Slots {
    /// The model of the code, with this bound and clocks that are this far apart.
    pub fn of_the_code(limit: u32, ahead: [u8; WORKERS]) -> Self {
        Self {
            variant: Variant::Code,
            limit,
            ahead,
            most: [[1, 1, 1], [1, 1, 0]],
            faults: 1,
            deaths: 0,
            ticks: 7,
        }
    }

    fn limit(&self) -> SlotLimit {
        SlotLimit::new(self.limit.max(1)).unwrap_or_else(|| unreachable!("it is not zero"))
    }

    fn timeout() -> Duration {
        TICK * u32::from(TIMEOUT_TICKS)
    }

    fn clock(&self, state: &State, worker: usize) -> Timestamp {
        // Far from the epoch.
        let ticks = 1000 + u32::from(state.now) + u32::from(self.ahead[worker]);
        Timestamp::EPOCH + TICK * ticks
    }

    fn serves(&self, state: &State, worker: usize) -> bool {
        let now = self.clock(state, worker);
        let lease = state.workers[worker].lease.as_ref();
        lease.is_some_and(|lease| lease.0.allows_request(self.limit(), Self::timeout(), now))
    }

    fn next_call(&self, state: &State, actor: Actor) -> Option<Call<Key>> {
        let worker = &state.workers[actor / 2];
        if worker.is_dead {
            return None;
        }
        let asking = if actor.is_multiple_of(2) {
            &worker.asks
        } else {
            &worker.gives_back
        };
        match asking {
            Asking::Rests => None,
            Asking::Reads => Some(Call::Get(Key::Slots)),
            Asking::Writes(pending) => {
                Some(Call::put(Key::Slots, self.condition(pending.condition)))
            }
        }
    }

    fn condition(&self, condition: Condition) -> Condition {
        match self.variant {
            Variant::PutWithoutMatch => Condition::Always,
            _ => condition,
        }
    }

    fn calls(&self, state: &mut State, actor: Actor, call: Call<Key>, fate: Fate) {
        let of = actor / 2;
        if let Call::Get(_) = call {
            let next = if fate == Fate::Answered {
                let known = state.slots.get();
                self.decides(state, actor, known)
            } else {
                Asking::Rests
            };
            set(state, actor, next);
            return;
        }
        let worker = &state.workers[of];
        let asking = if actor.is_multiple_of(2) {
            &worker.asks
        } else {
            &worker.gives_back
        };
        let Asking::Writes(pending) = asking.clone() else {
            return;
        };
        let condition = self.condition(pending.condition);
        let written = state.slots.put(pending.next.clone(), condition, fate);
        if fate == Fate::NotMade {
            state.in_flight = Some(pending.clone());
        }
        let worker = &mut state.workers[of];
        let is_last = worker.writes == pending.write;
        if written != Written::Unknown && is_last {
            worker.is_unanswered = false;
        }
        state.was_overtaken |= written == Written::Refused;
        if let Written::As(version) = written {
            state.workers[of].known = Some((pending.next.clone(), version));
            self.written(state, of, &pending);
        }
        set(state, actor, Asking::Rests);
    }

    /// Decides the step that follows a look at the stored state.
    fn decides(
        &self,
        state: &mut State,
        actor: Actor,
        known: Option<(Shown<SlotState>, Version)>,
    ) -> Asking {
        let of = actor / 2;
        state.workers[of].known = None;
        let condition = known.as_ref().map_or(Condition::IfAbsent, |(_, version)| {
            Condition::IfMatch(*version)
        });
        let known = known.map(|(known, _)| known.0);
        if actor.is_multiple_of(2) {
            self.claims(state, of, known.as_ref(), condition)
        } else {
            self.shrinks(state, of, known.as_ref(), condition)
        }
    }

    /// `SubscriptionSlots::claim_slots`.
    fn claims(
        &self,
        state: &mut State,
        of: usize,
        known: Option<&SlotState>,
        condition: Condition,
    ) -> Asking {
        let now = self.clock(state, of);
        let serves = self.serves(state, of);
        let begun = u32::from(state.workers[of].begun(state.now));
        let worker = &state.workers[of];
        let holder = format!("worker-{of}");
        let claim = SlotClaim {
            holder: &holder,
            begun,
            held: if serves { worker.slots() } else { 0 },
            wanted: u32::from(worker.waiting + worker.taken),
            timeout: Self::timeout(),
        };
        match self.limit().take_slots(known, &claim, now) {
            SlotGrant::Lease(lease, next) => {
                let worker = &mut state.workers[of];
                worker.at_most(lease.slots().max(begun));
                Asking::Writes(Pending {
                    next: Shown(next),
                    condition,
                    lease: Some(Shown(lease)),
                    write: worker.begin_write(),
                })
            }
            SlotGrant::Nothing(_) => Asking::Rests,
        }
    }

    /// `SubscriptionSlots::shrink_lease`.
    fn shrinks(
        &self,
        state: &mut State,
        of: usize,
        known: Option<&SlotState>,
        condition: Condition,
    ) -> Asking {
        let now = self.clock(state, of);
        let holder = format!("worker-{of}");
        let kept = u32::from(state.workers[of].taken);
        let next = known.and_then(|known| known.give_back(&holder, kept, now));
        let rewritten = || SlotState::rewrite_unchanged(known, now);
        let is_unanswered = state.workers[of].is_unanswered;
        let next = next.or_else(|| is_unanswered.then(rewritten));
        let worker = &mut state.workers[of];
        if self.variant != Variant::GivesBackBeforeItShrinks {
            worker.at_most(kept);
        }
        worker.is_behind = false;
        let Some(next) = next else {
            return Asking::Rests;
        };
        Asking::Writes(Pending {
            next: Shown(next),
            condition,
            lease: None,
            write: worker.begin_write(),
        })
    }

    /// `SubscriptionSlots::note_lease` and `SubscriptionSlots::note_given_back`.
    fn written(&self, state: &mut State, of: usize, pending: &Pending) {
        let kept = u32::from(state.workers[of].taken);
        let worker = &mut state.workers[of];
        let is_last = worker.writes == pending.write;
        match &pending.lease {
            Some(lease) if is_last => {
                worker.lease = Some(lease.clone());
                worker.is_behind = false;
            }
            Some(_) => worker.is_behind = true,
            None => {
                if self.variant == Variant::GivesBackBeforeItShrinks {
                    worker.at_most(kept);
                }
                worker.is_behind &= !is_last;
                state.has_given_back = true;
            }
        }
    }

    fn has_unused(worker: &Worker) -> bool {
        worker.waiting == 0 && (worker.slots() > u32::from(worker.taken) || worker.is_behind)
    }

    /// Whether a request may be opened: `TakenSlot::open_request`.
    fn may_open(&self, state: &State, of: usize) -> bool {
        let worker = &state.workers[of];
        let begun = worker.begun(state.now);
        worker.taken > begun && self.serves(state, of) && u32::from(begun) < worker.slots()
    }

    fn open(state: &State) -> u32 {
        let begun = state.workers.iter().map(|worker| worker.begun(state.now));
        begun.map(u32::from).sum()
    }

    fn worker_events(&self, state: &State, of: usize, actions: &mut Vec<Action>) {
        let worker = &state.workers[of];
        if worker.is_dead {
            return;
        }
        let mut may = |is_so: bool, event: Event| {
            if is_so {
                actions.push(Step::Other(event));
            }
        };
        may(worker.left[0] > 0, Event::Comes(of));
        may(
            worker.waiting > 0 && worker.slots() > u32::from(worker.taken),
            Event::TakesSlot(of),
        );
        may(worker.begun(state.now) > 0, Event::Ends(of));
        may(
            worker.asks == Asking::Rests && worker.left[1] > 0 && worker.waiting > 0,
            Event::Asks(of),
        );
        may(
            worker.gives_back == Asking::Rests && worker.left[2] > 0 && Self::has_unused(worker),
            Event::GivesBack(of),
        );
        if self.may_open(state, of) {
            actions.push(Step::Calls(
                of * 2,
                Call::Post(Key::Endpoint),
                Fate::Answered,
            ));
        }
        if state.deaths > 0 {
            actions.push(Step::Dies(of));
        }
    }

    fn happens(&self, state: &mut State, event: Event) {
        match event {
            Event::Passes => {
                state.now += 1;
                for worker in &mut state.workers {
                    worker.known = None;
                    // Requests whose time is over have ended.
                    let before = worker.open.len();
                    worker.open.retain(|until| *until > state.now);
                    let ended = u8::try_from(before - worker.open.len()).unwrap_or(u8::MAX);
                    worker.taken -= ended;
                }
            }
            Event::Comes(of) => {
                state.workers[of].left[0] -= 1;
                state.workers[of].waiting += 1;
            }
            Event::TakesSlot(of) => {
                state.workers[of].waiting -= 1;
                state.workers[of].taken += 1;
            }
            Event::Ends(of) => {
                state.workers[of].open.remove(0);
                state.workers[of].taken -= 1;
            }
            Event::Asks(of) => {
                state.workers[of].left[1] -= 1;
                state.workers[of].asks = Asking::Reads;
            }
            Event::GivesBack(of) => {
                state.workers[of].left[2] -= 1;
                state.workers[of].gives_back = Asking::Reads;
            }
            Event::Knows(actor) => {
                let known = state.workers[actor / 2].known.take();
                let next = self.decides(state, actor, known);
                set(state, actor, next);
            }
            Event::Lands => {
                if let Some(Pending {
                    next, condition, ..
                }) = state.in_flight.take()
                {
                    let condition = self.condition(condition);
                    state.slots.put(next, condition, Fate::AnswerLost);
                }
            }
        }
    }
}

fn set(state: &mut State, actor: Actor, asking: Asking) {
    let worker = &mut state.workers[actor / 2];
    if actor.is_multiple_of(2) {
        worker.asks = asking;
    } else {
        worker.gives_back = asking;
    }
}

impl Model for Slots {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let worker = Worker {
            lease: None,
            waiting: 0,
            taken: 0,
            open: Vec::new(),
            writes: 0,
            is_behind: false,
            is_unanswered: false,
            asks: Asking::Rests,
            gives_back: Asking::Rests,
            known: None,
            left: [0; 3],
            is_dead: false,
        };
        vec![State {
            now: 0,
            slots: Stored::default(),
            workers: self.most.map(|left| Worker {
                left,
                ..worker.clone()
            }),
            in_flight: None,
            faults: self.faults,
            deaths: self.deaths,
            has_given_back: false,
            was_overtaken: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for actor in 0..2 * WORKERS {
            if let Some(call) = self.next_call(state, actor) {
                let fates = call.fates(state.faults > 0);
                actions.extend(fates.iter().map(|fate| Step::Calls(actor, call, *fate)));
                if matches!(call, Call::Get(_)) && state.workers[actor / 2].known.is_some() {
                    actions.push(Step::Other(Event::Knows(actor)));
                }
            }
        }
        for of in 0..WORKERS {
            self.worker_events(state, of, actions);
        }
        if state.in_flight.is_some() {
            actions.push(Step::Other(Event::Lands));
        }
        if state.now < self.ticks {
            actions.push(Step::Other(Event::Passes));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Step::Calls(actor, Call::Post(_), _) => {
                let until = state.now + TIMEOUT_TICKS;
                state.workers[actor / 2].open.push(until);
            }
            Step::Calls(actor, call, fate) => {
                state.faults -= u8::from(fate != Fate::Answered);
                self.calls(&mut state, actor, call, fate);
            }
            Step::Dies(of) => {
                state.deaths -= 1;
                state.workers[of].is_dead = true;
            }
            Step::Other(event) => self.happens(&mut state, event),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(
                "no more requests are open than the bound",
                |model: &Self, state: &State| Self::open(state) <= model.limit,
            ),
            Property::sometimes(
                "as many are open as the bound",
                |model: &Self, state: &State| {
                    Self::open(state) == model.limit
                        && (model.limit == 1 || state.workers.iter().all(|it| !it.open.is_empty()))
                },
            ),
            Property::sometimes(
                "slots are given back and taken by another",
                |_, state: &State| {
                    state.has_given_back && state.workers.iter().all(|it| it.writes > 0)
                },
            ),
            Property::sometimes("a worker is overtaken", |_, state: &State| {
                state.was_overtaken
            }),
        ];
        if self.deaths > 0 {
            all.push(Property::sometimes(
                "a worker takes the slots of a dead one",
                |_, state: &State| {
                    let [first, second] = &state.workers;
                    first.is_dead && !second.open.is_empty() && first.slots() > 0
                },
            ));
        }
        all
    }
}
