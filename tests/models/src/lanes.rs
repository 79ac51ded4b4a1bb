//! Lanes: deliveries to a slow target move from the quick queue to the slow one, and workers agree by
//! one object which targets are slow.
//!
//! From `functions/deliver/src/receive.rs` (`hand_over`), `functions/deliver/src/lanes.rs`,
//! `functions/deliver/src/replace.rs`, `shared/services/src/lanes.rs` and
//! `shared/aws/src/queue/replace.rs`: on SQS a message is replaced by a send and then a delete. What
//! makes a target slow is the code's own, `core::lane::SlowTargets`. Time is in ticks of 30 seconds.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::lane::{LaneObservation, SLOW_FOR, SlowTargets};
use posthaste_core::model::Timestamp;
use stateright::{Model, Property};

use crate::step::{Actor, Call, Condition, Fate, Step};
use crate::stored::{Stored, Written};

/// The workers: two of the quick lane, and the last one of the slow lane.
pub const WORKERS: usize = 3;

/// The messages, all to one target.
const MESSAGES: u8 = 2;

/// A tick.
const TICK: Duration = Duration::from_secs(30);

/// The ticks for which a target is slow.
const SLOW_TICKS: u8 = (SLOW_FOR.as_secs() / TICK.as_secs()) as u8;

/// A delivery queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Queue {
    /// `deliveries`.
    Quick,
    /// `deliveries-slow`.
    Slow,
}

/// An object that workers read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A queue.
    Queue(Queue),
    /// `lanes.json`.
    Lanes,
    /// The endpoint.
    Endpoint,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A tick passes.
    Passes,
    /// The time for which a target is slow passes.
    PassesLong,
    /// The endpoint answers quickly from now on.
    Quickens,
    /// A worker is invoked.
    Invokes(Actor),
    /// A worker goes by what it knows of slow targets, and that is that there is none, or that its
    /// message is in the slow lane already.
    Knows(Actor),
    /// The visibility timeout of the message that a worker has is over.
    Reappears(Actor),
}

/// A step.
pub type Action = Step<Key, Event>;

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// A message is deleted before its successor is durable.
    SettlesFirst,
    /// The slow targets are put without a condition.
    PutWithoutMatch,
    /// A message whose successor was not taken is deleted all the same.
    SettlesAnyway,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Lanes {
    /// The protocol.
    pub variant: Variant,
    /// Whether the slow lane is drained: nothing is handed over, and retries take the quick lane.
    pub is_drained: bool,
    /// Whether the target is known as slow at first.
    pub is_slow_first: bool,
    /// The calls that may fail.
    pub faults: u8,
    /// The workers that may die, and the visibility timeouts that end.
    pub deaths: u8,
    /// The ticks that pass.
    pub ticks: u8,
}

/// A copy of a message in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Copied {
    message: u8,
    queue: Queue,
    holder: Option<Actor>,
}

/// The step of a worker with its message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Doing {
    Rests,
    Receives,
    LooksUp,
    Posts,
    LooksAtLanes {
        settles: Settles,
    },
    WritesLanes {
        next: Bytes,
        condition: Condition,
        settles: Settles,
    },
    Settles(Settles),
}

/// The way in which a message is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settles {
    /// A successor is sent to this queue.
    Sends(Queue),
    /// The message is deleted. A successor that is not sent yet follows, in a variant.
    Deletes(Option<Queue>),
    /// The successor of a message that is deleted already, in a variant.
    SendsLate(Queue),
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Worker {
    doing: Doing,
    /// The message that it has.
    message: Option<u8>,
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    now: u8,
    /// All copies of all messages.
    pub copies: Vec<Copied>,
    lanes: Stored<Bytes>,
    workers: Vec<Worker>,
    /// The number of times that each message arrived.
    pub arrived: [u8; MESSAGES as usize],
    is_late: bool,
    posts: u8,
    /// The ticks of late requests that were written down.
    noted: Vec<u8>,
    faults: u8,
    deaths: u8,
    harm: u8,
    has_passed_long: bool,
    was_handed_over: bool,
}

/// Most requests of a run of the model: what fails is tried again.
const POSTS_MAX: u8 = 3;

/// The actor that has the messages that a worker left: they come back when their visibility timeout
/// is over.
const LEFT: Actor = WORKERS;

fn at(tick: u8) -> Timestamp {
    // Far from the epoch.
    Timestamp::EPOCH + TICK * (1000 + u32::from(tick))
}

fn target() -> DeliveryTarget {
    DeliveryTarget::parse("https://billing.example.com:443 orders.billing")
        .unwrap_or_else(|| unreachable!("it is a target"))
}

/// The object that says that the target is slow.
pub fn slow_lanes(now: Timestamp) -> Bytes {
    let seen = LaneObservation::Late {
        in_invocation: 2,
        holds_others_up: true,
    };
    let targets = SlowTargets::default().after_observation(seen, &target(), now);
    targets.unwrap_or_default().render()
}

fn slow_targets(lanes: &Stored<Bytes>) -> SlowTargets {
    let read = lanes.content().map(|bytes| SlowTargets::parse(bytes));
    read.and_then(Result::ok).unwrap_or_default()
}

fn is_slow(lanes: &Stored<Bytes>, now: u8) -> bool {
    lanes.is_there() && slow_targets(lanes).is_slow(&target(), at(now))
}

fn queue_of(worker: Actor) -> Queue {
    if worker + 1 == WORKERS {
        Queue::Slow
    } else {
        Queue::Quick
    }
}

impl Lanes {
    /// The model of the code.
    pub fn of_the_code() -> Self {
        Self {
            variant: Variant::Code,
            is_drained: false,
            is_slow_first: false,
            faults: 1,
            deaths: 1,
            ticks: 2,
        }
    }

    fn next_call(&self, state: &State, worker: Actor) -> Option<Call<Key>> {
        let own = queue_of(worker);
        Some(match &state.workers[worker].doing {
            Doing::Rests => return None,
            Doing::Receives => Call::Receive(Key::Queue(own)),
            Doing::LooksUp | Doing::LooksAtLanes { .. } => Call::Get(Key::Lanes),
            Doing::Posts => Call::Post(Key::Endpoint),
            Doing::WritesLanes { condition, .. } => {
                Call::put(Key::Lanes, self.condition(*condition))
            }
            Doing::Settles(Settles::Sends(to) | Settles::SendsLate(to)) => {
                Call::Send(Key::Queue(*to))
            }
            Doing::Settles(Settles::Deletes(_)) => Call::Acknowledge(Key::Queue(own)),
        })
    }

    fn condition(&self, condition: Condition) -> Condition {
        match self.variant {
            Variant::PutWithoutMatch => Condition::Always,
            _ => condition,
        }
    }

    /// Replaces a message by a successor in this queue.
    fn replaces(&self, to: Queue) -> Doing {
        Doing::Settles(match self.variant {
            Variant::SettlesFirst => Settles::Deletes(Some(to)),
            _ => Settles::Sends(to),
        })
    }

    fn retries(&self, worker: Actor) -> Settles {
        let to = if self.is_drained {
            Queue::Quick
        } else {
            queue_of(worker)
        };
        match self.replaces(to) {
            Doing::Settles(settles) => settles,
            _ => Settles::Sends(to),
        }
    }

    fn calls(&self, state: &mut State, worker: Actor, fate: Fate) {
        let is_made = fate != Fate::NotMade;
        let is_answered = fate == Fate::Answered;
        let doing = state.workers[worker].doing.clone();
        let next = match doing {
            Doing::Rests => Doing::Rests,
            Doing::Receives => receives(state, worker, fate),
            Doing::LooksUp => {
                let is_quick = queue_of(worker) == Queue::Quick;
                // What cannot be read is as it was known: quick.
                let is_slow = is_answered && is_slow(&state.lanes, state.now);
                if is_quick && is_slow && !self.is_drained {
                    self.replaces(Queue::Slow)
                } else {
                    Doing::Posts
                }
            }
            Doing::Posts => self.posts(state, worker, fate),
            Doing::LooksAtLanes { settles } => {
                let seen = LaneObservation::Late {
                    in_invocation: 1,
                    holds_others_up: true,
                };
                let targets = slow_targets(&state.lanes);
                let after = is_answered
                    .then(|| targets.after_observation(seen, &target(), at(state.now)))
                    .flatten();
                after.map_or(Doing::Settles(settles), |after| Doing::WritesLanes {
                    next: after.render(),
                    condition: state.lanes.unchanged(),
                    settles,
                })
            }
            Doing::WritesLanes {
                next,
                condition,
                settles,
            } => {
                let written = state.lanes.put(next, self.condition(condition), fate);
                match written {
                    Written::As(_) => state.noted.push(state.now),
                    Written::Refused | Written::Unknown => {}
                }
                if written == Written::Refused {
                    Doing::LooksAtLanes { settles }
                } else {
                    Doing::Settles(settles)
                }
            }
            Doing::Settles(settles) => self.settles(state, worker, settles, (is_made, is_answered)),
        };
        if next == Doing::Rests {
            leaves(state, worker);
        }
        state.workers[worker].doing = next;
        state.copies.sort_unstable();
    }

    fn posts(&self, state: &mut State, worker: Actor, fate: Fate) -> Doing {
        state.posts += 1;
        if fate != Fate::NotMade {
            let message = state.workers[worker].message.unwrap_or_default();
            state.arrived[usize::from(message)] += 1;
        }
        let settles = if fate == Fate::Answered {
            Settles::Deletes(None)
        } else {
            self.retries(worker)
        };
        if state.is_late && !self.is_drained {
            Doing::LooksAtLanes { settles }
        } else {
            Doing::Settles(settles)
        }
    }

    fn settles(
        &self,
        state: &mut State,
        worker: Actor,
        settles: Settles,
        (is_made, is_answered): (bool, bool),
    ) -> Doing {
        let message = state.workers[worker].message.unwrap_or_default();
        match settles {
            Settles::Sends(to) | Settles::SendsLate(to) => {
                if is_made {
                    state.was_handed_over |= to == Queue::Slow && queue_of(worker) == Queue::Quick;
                    state.copies.push(Copied {
                        message,
                        queue: to,
                        holder: None,
                    });
                }
                let is_sent = is_answered || self.variant == Variant::SettlesAnyway;
                if is_sent && matches!(settles, Settles::Sends(_)) {
                    Doing::Settles(Settles::Deletes(None))
                } else {
                    // It comes back when its visibility timeout is over.
                    Doing::Rests
                }
            }
            Settles::Deletes(then) => {
                if is_made {
                    state.copies.retain(|copy| copy.holder != Some(worker));
                }
                then.map_or(Doing::Rests, |to| Doing::Settles(Settles::SendsLate(to)))
            }
        }
    }
}

/// Leaves the messages that a worker has not settled.
fn leaves(state: &mut State, worker: Actor) {
    state.workers[worker] = Worker {
        doing: Doing::Rests,
        message: None,
    };
    for copy in &mut state.copies {
        if copy.holder == Some(worker) {
            copy.holder = Some(LEFT);
        }
    }
    state.copies.sort_unstable();
}

fn receives(state: &mut State, worker: Actor, fate: Fate) -> Doing {
    let queue = queue_of(worker);
    let mut visible = state.copies.iter_mut();
    let found = visible.find(|copy| copy.queue == queue && copy.holder.is_none());
    let Some(copy) = found.filter(|_| fate != Fate::NotMade) else {
        return Doing::Rests;
    };
    copy.holder = Some(worker);
    if fate == Fate::AnswerLost {
        return Doing::Rests;
    }
    state.workers[worker].message = Some(copy.message);
    Doing::LooksUp
}

impl Model for Lanes {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let idle = Worker {
            doing: Doing::Rests,
            message: None,
        };
        let copies = (0..MESSAGES).map(|message| Copied {
            message,
            // What is in the slow queue at first is what a drained lane has to empty.
            queue: if self.is_drained && message == 0 {
                Queue::Slow
            } else {
                Queue::Quick
            },
            holder: None,
        });
        let mut copies: Vec<_> = copies.collect();
        copies.sort_unstable();
        vec![State {
            now: 0,
            copies,
            lanes: if self.is_slow_first {
                Stored::of(slow_lanes(at(0)))
            } else {
                Stored::default()
            },
            workers: vec![idle; WORKERS],
            arrived: [0; MESSAGES as usize],
            is_late: true,
            posts: 0,
            noted: Vec::new(),
            faults: self.faults,
            deaths: self.deaths,
            harm: 0,
            has_passed_long: false,
            was_handed_over: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for worker in 0..WORKERS {
            let has_visible = state
                .copies
                .iter()
                .any(|copy| copy.queue == queue_of(worker) && copy.holder.is_none());
            match self.next_call(state, worker) {
                Some(call) => {
                    let is_over = matches!(call, Call::Post(_)) && state.posts >= POSTS_MAX;
                    if !is_over {
                        let fates = call.fates(state.faults > 0);
                        actions.extend(fates.iter().map(|fate| Step::Calls(worker, call, *fate)));
                    }
                    if state.workers[worker].doing == Doing::LooksUp {
                        actions.push(Step::Other(Event::Knows(worker)));
                    }
                    if state.deaths > 0 {
                        actions.push(Step::Dies(worker));
                    }
                }
                None if has_visible => actions.push(Step::Other(Event::Invokes(worker))),
                None => {}
            }
        }
        // What a worker left comes back; the message of one at work may, for its delay.
        for holder in 0..=LEFT {
            let has_copy = state.copies.iter().any(|copy| copy.holder == Some(holder));
            if has_copy && (holder == LEFT || state.deaths > 0) {
                actions.push(Step::Other(Event::Reappears(holder)));
            }
        }
        // Writing a target down takes a second at most (`NOTING_TIME`).
        let is_noting = state.workers.iter().any(|worker| {
            matches!(
                worker.doing,
                Doing::LooksAtLanes { .. } | Doing::WritesLanes { .. }
            )
        });
        if state.now < self.ticks && !is_noting {
            actions.push(Step::Other(Event::Passes));
        }
        let is_slow = state.lanes.is_there() && !state.has_passed_long;
        if is_slow && is_slow_now(state) && !is_noting {
            actions.push(Step::Other(Event::PassesLong));
        }
        if state.is_late {
            actions.push(Step::Other(Event::Quickens));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Step::Calls(worker, _, fate) => {
                if fate != Fate::Answered {
                    state.faults -= 1;
                    state.harm += 1;
                }
                self.calls(&mut state, worker, fate);
            }
            Step::Dies(worker) => {
                state.deaths -= 1;
                state.harm += 1;
                leaves(&mut state, worker);
            }
            Step::Other(Event::Passes) => state.now += 1,
            Step::Other(Event::PassesLong) => {
                state.now += SLOW_TICKS;
                state.has_passed_long = true;
            }
            Step::Other(Event::Quickens) => state.is_late = false,
            Step::Other(Event::Knows(worker)) => state.workers[worker].doing = Doing::Posts,
            Step::Other(Event::Invokes(worker)) => state.workers[worker].doing = Doing::Receives,
            Step::Other(Event::Reappears(worker)) => {
                if worker != LEFT {
                    state.deaths -= 1;
                    state.harm += 1;
                }
                let own = |copy: &&mut Copied| copy.holder == Some(worker);
                for copy in state.copies.iter_mut().filter(own) {
                    copy.holder = None;
                }
                state.copies.sort_unstable();
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(
                "a message is in a queue or has arrived",
                |_, state: &State| {
                    (0..MESSAGES).all(|message| {
                        state.arrived[usize::from(message)] > 0
                            || state.copies.iter().any(|copy| copy.message == message)
                    })
                },
            ),
            Property::always(
                "a message arrives twice only after a fault",
                |_, state: &State| {
                    let most = 1 + state.harm;
                    state.arrived.iter().all(|arrived| *arrived <= most)
                },
            ),
            Property::always(
                "two late requests within a minute make a target slow",
                |_, state: &State| {
                    let [.., first, second] = state.noted[..] else {
                        return true;
                    };
                    second - first >= 2
                        || state.now >= second + SLOW_TICKS
                        || is_slow(&state.lanes, state.now)
                },
            ),
        ];
        if self.is_drained {
            all.push(Property::always(
                "nothing is handed over",
                |_, state: &State| !state.was_handed_over,
            ));
            all.push(Property::sometimes(
                "the slow queue is emptied",
                |_, state: &State| state.copies.is_empty(),
            ));
            return all;
        }
        all.extend([
            Property::sometimes(
                "a message is handed over and arrives",
                |_, state: &State| state.was_handed_over && state.copies.is_empty(),
            ),
            Property::sometimes(
                "a death between send and delete leaves both",
                |_, state: &State| {
                    let copies = state.copies.iter().filter(|copy| copy.message == 1);
                    let queues: Vec<_> = copies.map(|copy| copy.queue).collect();
                    queues == [Queue::Quick, Queue::Slow] && state.deaths < 1
                },
            ),
            Property::sometimes("a target is quick again", |_, state: &State| {
                state.has_passed_long && !is_slow_now(state) && !state.copies.is_empty()
            }),
        ]);
        all
    }
}

fn is_slow_now(state: &State) -> bool {
    is_slow(&state.lanes, state.now)
}
