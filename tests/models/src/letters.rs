//! Letters of one event: a dead letter was sent again, more than once, and each of those deliveries
//! arrives or is given up once more. One letter that is not resolved stays, or none.
//!
//! From `functions/deadletter/src/follow_up.rs`, `functions/deadletter/src/resolved.rs` and
//! `shared/services/src/resolved.rs`. What a list says after a step is the code's own,
//! `core::stored::ResolvedLetters`. Each object of the model has one letter.

use posthaste_core::model::LetterPlace;
use posthaste_core::stored::ResolvedLetters;
use stateright::{Model, Property};

use crate::slots::Shown;
use crate::step::{Actor, Call, Condition, Fate, Step};
use crate::stored::{Stored, Written};

/// The invocations of deadletter.
pub const WORKERS: usize = 2;

/// The actor that has the messages that a worker left: they come back when their visibility timeout
/// is over.
const LEFT: Actor = WORKERS;

/// An object of dead letters, which has one. That of the first letter is 0.
pub type Object = u8;

/// An object that they read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// An object of dead letters.
    Letter(Object),
    /// `resolved/{object}`.
    Resolved(Object),
    /// The dead-letter queue.
    DeadLetters,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A delivery that was made of the letter arrives.
    Arrives,
    /// A delivery that was made of the letter is given up.
    IsGivenUp,
    /// A worker is invoked with a message.
    Invokes(Actor),
    /// The messages that workers left come back.
    Reappears,
}

/// A step.
pub type Action = Step<Key, Event>;

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// The list of resolved letters is put without a condition.
    PutWithoutMatch,
    /// The earlier letter is resolved before the newer one is written.
    ResolvesFirst,
    /// A letter that stands for the earlier one already stays as it is.
    NoChain,
    /// A letter that could not be resolved is not tried again.
    ForgetsUnresolved,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Letters {
    /// The protocol.
    pub variant: Variant,
    /// The deliveries that were made of the letter.
    pub deliveries: u8,
    /// Whether they may arrive.
    pub may_arrive: bool,
    /// The calls that may fail.
    pub faults: u8,
    /// The workers that may die.
    pub deaths: u8,
}

/// A message of the dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// A delivery that was made of the first letter was given up.
    GivenUp,
    /// A letter needs nothing more: its event arrived, or has this newer letter.
    Resolved {
        letter: Object,
        newer: Option<Object>,
    },
}

/// A message in the queue, and the worker that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Queued {
    message: Message,
    holder: Option<Actor>,
}

/// The step of a worker.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Doing {
    Rests,
    Receives,
    WritesLetter,
    /// Looks whether the object is there, of which it resolves the letter.
    Lists {
        letter: Object,
        newer: Option<Object>,
    },
    ReadsList {
        letter: Object,
        newer: Option<Object>,
    },
    WritesList {
        letter: Object,
        newer: Option<Object>,
        next: Shown<ResolvedLetters>,
        stood: Option<Object>,
        condition: Condition,
    },
    /// Leaves a message that says what is still to be resolved.
    Leaves {
        letter: Object,
        newer: Option<Object>,
    },
    Acknowledges,
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct State {
    queue: Vec<Queued>,
    deliveries: u8,
    /// The objects, from the first letter's on.
    objects: Vec<Stored<()>>,
    lists: Vec<Stored<Shown<ResolvedLetters>>>,
    workers: [Doing; WORKERS],
    /// The deliveries that arrived.
    pub arrived: u8,
    faults: u8,
    deaths: u8,
    harm: u8,
    was_chained: bool,
}

fn place(object: Object) -> LetterPlace {
    LetterPlace {
        object: format!("letter-{object}"),
        index: 0,
    }
}

fn object_of(place: &LetterPlace) -> Object {
    let number = place.object.strip_prefix("letter-");
    number.and_then(|it| it.parse().ok()).unwrap_or_default()
}

impl Letters {
    /// The model of the code.
    pub fn of_the_code(deliveries: u8, may_arrive: bool) -> Self {
        Self {
            variant: Variant::Code,
            deliveries,
            may_arrive,
            faults: 1,
            deaths: 1,
        }
    }

    fn next_call(&self, state: &State, worker: Actor) -> Option<Call<Key>> {
        Some(match &state.workers[worker] {
            Doing::Rests => return None,
            Doing::Receives => Call::Receive(Key::DeadLetters),
            // The key of an object is new, so that its write needs no condition.
            Doing::WritesLetter => Call::Put(Key::Letter(next_object(state))),
            Doing::Lists { letter, .. } => Call::List(Key::Letter(*letter)),
            Doing::ReadsList { letter, .. } => Call::Get(Key::Resolved(*letter)),
            Doing::WritesList {
                letter, condition, ..
            } => Call::put(Key::Resolved(*letter), self.condition(*condition)),
            Doing::Leaves { .. } => Call::Send(Key::DeadLetters),
            Doing::Acknowledges => Call::Acknowledge(Key::DeadLetters),
        })
    }

    fn condition(&self, condition: Condition) -> Condition {
        match self.variant {
            Variant::PutWithoutMatch => Condition::Always,
            _ => condition,
        }
    }

    fn calls(&self, state: &mut State, worker: Actor, fate: Fate) {
        let is_made = fate != Fate::NotMade;
        let is_answered = fate == Fate::Answered;
        let next = match state.workers[worker].clone() {
            Doing::Rests => Doing::Rests,
            Doing::Receives => self.receives(state, worker, fate),
            Doing::WritesLetter => {
                let newer = next_object(state);
                if is_made {
                    state.objects.push(Stored::of(()));
                    state.lists.push(Stored::default());
                }
                match (is_answered, self.variant) {
                    (false, _) => Doing::Rests,
                    (true, Variant::ResolvesFirst) => Doing::Acknowledges,
                    (true, _) => Doing::Lists {
                        letter: 0,
                        newer: Some(newer),
                    },
                }
            }
            Doing::Lists { letter, newer } if is_answered => Doing::ReadsList { letter, newer },
            Doing::ReadsList { letter, newer } if is_answered => {
                let list = &state.lists[usize::from(letter)];
                let before = list.content().map(|it| it.0.clone()).unwrap_or_default();
                let mut next = before.clone();
                let stood = next.resolve_letter(0, newer.map(place).as_ref());
                let stood = stood.as_ref().map(object_of);
                if next == before {
                    self.goes_on(state, worker, newer, stood)
                } else {
                    Doing::WritesList {
                        letter,
                        newer,
                        next: Shown(next),
                        stood,
                        condition: list.unchanged(),
                    }
                }
            }
            Doing::WritesList {
                letter,
                newer,
                next,
                stood,
                condition,
            } => {
                let condition = self.condition(condition);
                let list = &mut state.lists[usize::from(letter)];
                match list.put(next, condition, fate) {
                    Written::As(_) => self.goes_on(state, worker, newer, stood),
                    Written::Refused => Doing::ReadsList { letter, newer },
                    Written::Unknown => self.fails(letter, newer),
                }
            }
            Doing::Lists { letter, newer } | Doing::ReadsList { letter, newer } => {
                self.fails(letter, newer)
            }
            Doing::Leaves { letter, newer } => {
                if is_made {
                    state.queue.push(Queued {
                        message: Message::Resolved { letter, newer },
                        holder: None,
                    });
                }
                // It takes the place of the letter's own message, or that one comes back.
                if is_answered {
                    Doing::Acknowledges
                } else {
                    Doing::Rests
                }
            }
            Doing::Acknowledges => {
                if is_made {
                    state.queue.retain(|queued| queued.holder != Some(worker));
                }
                Doing::Rests
            }
        };
        if next == Doing::Rests {
            leaves(state, worker);
        }
        state.workers[worker] = next;
        state.queue.sort_unstable();
    }

    fn receives(&self, state: &mut State, worker: Actor, fate: Fate) -> Doing {
        let mut visible = state.queue.iter_mut();
        let found = visible.find(|queued| queued.holder.is_none());
        let Some(queued) = found.filter(|_| fate != Fate::NotMade) else {
            return Doing::Rests;
        };
        queued.holder = Some(worker);
        let message = queued.message;
        match (fate, message) {
            (Fate::AnswerLost | Fate::NotMade, _) => Doing::Rests,
            (_, Message::GivenUp) if self.variant == Variant::ResolvesFirst => Doing::Lists {
                letter: 0,
                newer: Some(next_object(state)),
            },
            (_, Message::GivenUp) => Doing::WritesLetter,
            (_, Message::Resolved { letter, newer }) => Doing::Lists { letter, newer },
        }
    }

    /// After a letter is resolved: the one that stood for it is, for the same reason.
    fn goes_on(
        &self,
        state: &mut State,
        worker: Actor,
        newer: Option<Object>,
        stood: Option<Object>,
    ) -> Doing {
        match stood {
            Some(letter) if self.variant != Variant::NoChain => {
                state.was_chained = true;
                Doing::Lists { letter, newer }
            }
            _ if self.variant == Variant::ResolvesFirst && is_given_up(state, worker) => {
                Doing::WritesLetter
            }
            _ => Doing::Acknowledges,
        }
    }

    /// A letter that could not be resolved: a message says so, or comes back.
    fn fails(&self, letter: Object, newer: Option<Object>) -> Doing {
        match self.variant {
            Variant::ForgetsUnresolved => Doing::Acknowledges,
            _ => Doing::Leaves { letter, newer },
        }
    }

    /// The letters that are not resolved.
    pub fn unresolved(state: &State) -> usize {
        let is_resolved = |list: &Stored<Shown<ResolvedLetters>>| {
            list.content().is_some_and(|it| it.0.is_resolved(0))
        };
        state.lists.iter().filter(|list| !is_resolved(list)).count()
    }

    /// Whether nobody does anything any more.
    fn is_at_rest(state: &State) -> bool {
        state.queue.is_empty()
            && state.deliveries == 0
            && state.workers.iter().all(|doing| *doing == Doing::Rests)
    }
}

/// Leaves the messages that a worker has not settled.
fn leaves(state: &mut State, worker: Actor) {
    state.workers[worker] = Doing::Rests;
    for queued in &mut state.queue {
        if queued.holder == Some(worker) {
            queued.holder = Some(LEFT);
        }
    }
    state.queue.sort_unstable();
}

fn next_object(state: &State) -> Object {
    Object::try_from(state.objects.len()).unwrap_or(Object::MAX)
}

fn is_given_up(state: &State, worker: Actor) -> bool {
    let mut own = state.queue.iter();
    own.any(|queued| queued.holder == Some(worker) && queued.message == Message::GivenUp)
}

impl Model for Letters {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            queue: Vec::new(),
            deliveries: self.deliveries,
            objects: vec![Stored::of(())],
            lists: vec![Stored::default()],
            workers: [Doing::Rests, Doing::Rests],
            arrived: 0,
            faults: self.faults,
            deaths: self.deaths,
            harm: 0,
            was_chained: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let has_visible = state.queue.iter().any(|queued| queued.holder.is_none());
        for worker in 0..WORKERS {
            match self.next_call(state, worker) {
                Some(call) => {
                    let fates = call.fates(state.faults > 0);
                    actions.extend(fates.iter().map(|fate| Step::Calls(worker, call, *fate)));
                    if state.deaths > 0 {
                        actions.push(Step::Dies(worker));
                    }
                }
                None if has_visible => actions.push(Step::Other(Event::Invokes(worker))),
                None => {}
            }
        }
        if state.queue.iter().any(|it| it.holder == Some(LEFT)) {
            actions.push(Step::Other(Event::Reappears));
        }
        if state.deliveries > 0 {
            actions.push(Step::Other(Event::IsGivenUp));
            if self.may_arrive {
                actions.push(Step::Other(Event::Arrives));
            }
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
            Step::Other(Event::Arrives | Event::IsGivenUp) => {
                state.deliveries -= 1;
                let message = if action == Step::Other(Event::Arrives) {
                    state.arrived += 1;
                    Message::Resolved {
                        letter: 0,
                        newer: None,
                    }
                } else {
                    Message::GivenUp
                };
                state.queue.push(Queued {
                    message,
                    holder: None,
                });
                state.queue.sort_unstable();
            }
            Step::Other(Event::Invokes(worker)) => state.workers[worker] = Doing::Receives,
            Step::Other(Event::Reappears) => {
                let own = |queued: &&mut Queued| queued.holder == Some(LEFT);
                for queued in state.queue.iter_mut().filter(own) {
                    queued.holder = None;
                }
                state.queue.sort_unstable();
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(
                "an event that did not arrive has a letter",
                |_, state: &State| state.arrived > 0 || Self::unresolved(state) > 0,
            ),
            Property::always(
                "at rest it has one letter, and one more for each fault",
                |_, state: &State| {
                    !Self::is_at_rest(state)
                        || Self::unresolved(state) <= 1 + usize::from(state.harm)
                },
            ),
            Property::sometimes("one letter is left of all", |_, state: &State| {
                Self::is_at_rest(state) && state.objects.len() > 2 && Self::unresolved(state) == 1
            }),
            Property::sometimes("letters stand for one another", |_, state: &State| {
                state.was_chained
            }),
            Property::sometimes("a death makes a letter too many", |_, state: &State| {
                Self::is_at_rest(state) && Self::unresolved(state) == 2
            }),
        ];
        if self.may_arrive {
            all.push(Property::sometimes(
                "an event that arrived has none",
                |_, state: &State| {
                    Self::is_at_rest(state)
                        && state.objects.len() > 1
                        && Self::unresolved(state) == 0
                },
            ));
        }
        all
    }
}
