//! The claim of a request's name: requests of the same name race, fail and die, and a name is
//! published once.
//!
//! From `functions/publish/src/idempotency.rs`, `functions/publish/src/publish.rs` (`write`) and
//! `shared/services/src/update.rs` (`create_or_update`). What a request decides, and what it writes,
//! is the code's own `core::stored::IdempotencyRecord`. Time is in steps of 45 seconds.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{IDEMPOTENCY_CLAIM_LENGTH, IDEMPOTENCY_KEPT, MatchCounts, Timestamp};
use posthaste_core::stored::{IdempotencyDecision, IdempotencyRecord, RequestDigest};
use stateright::{Model, Property};

use crate::step::{Actor, Call, Condition, Fate, Step, Version};
use crate::stored::{Stored, Written};

/// One step of time.
const STEP: Duration = Duration::from_secs(45);

/// An object that requests read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// The object of the name under `idempotency/`.
    Name,
    /// The deliveries queue.
    Deliveries,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// 45 seconds pass.
    Passes,
    /// A day and an hour pass, in which nobody works: the name is forgotten.
    IsForgotten,
    /// A request arrives.
    Arrives(Actor),
    /// wake begins to look at old names.
    Sweeps,
}

/// A step. wake, which sweeps, is the actor after the requests.
pub type Action = Step<Key, Event>;

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// The claim is put without a condition.
    PutWithoutMatch,
    /// The name is marked as published before the events are sent.
    SettlesBeforeSend,
    /// A request that takes a claim over has an id of its own.
    NewIds,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Idempotency {
    /// The protocol.
    pub variant: Variant,
    /// The content of each request of the name.
    pub contents: Vec<u8>,
    /// The calls that may fail.
    pub faults: u8,
    /// The requests that may die.
    pub deaths: u8,
    /// The steps of time.
    pub steps: u8,
    /// Whether the name is forgotten in the end, and wake deletes it.
    pub sweeps: bool,
}

/// The answer of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// 200.
    Accepted,
    /// 409: the same request is being published.
    InProgress,
    /// 422: the name is that of another request.
    Reused,
    /// 503.
    Failed,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    /// The request has not come yet.
    Absent,
    /// The request claims the name without a look.
    Claims,
    /// The request reads the name.
    Looks,
    /// The request claims the name over what it read.
    ClaimsOver { before: Bytes, condition: Condition },
    /// The request publishes.
    Sends(Held),
    /// The request settles the name.
    Settles { held: Held, is_published: bool },
    /// The request has an answer.
    Answered(Answer),
    /// The request's process died.
    Dead,
}

/// A claim that a request has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    record: Bytes,
    version: Version,
    claimed_at: u64,
}

/// The steps of wake with an old name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sweeper {
    Rests,
    Looks,
    Deletes,
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The time in seconds.
    now: u64,
    steps: u8,
    name: Stored<Bytes>,
    /// The requests.
    pub requests: Vec<Request>,
    sweeper: Sweeper,
    is_forgotten: bool,
    faults: u8,
    deaths: u8,
    /// The ids with which each content went out, and how often it did.
    pub ids: BTreeSet<(u8, String)>,
    sent: Vec<u8>,
    /// Whether a request that was published, and whose name says so, was sent by another one.
    sent_after: bool,
    is_settled: bool,
}

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(secs * 1000)
}

fn digest(content: u8) -> RequestDigest {
    RequestDigest::from_request([], &[content])
}

impl Idempotency {
    /// The model of the code, with these requests.
    pub fn of_the_code(contents: &[u8]) -> Self {
        Self {
            variant: Variant::Code,
            contents: contents.to_vec(),
            faults: 1,
            deaths: 1,
            steps: 3,
            sweeps: false,
        }
    }

    fn sweeper(&self) -> Actor {
        self.contents.len()
    }

    fn next_call(&self, state: &State, actor: Actor) -> Option<Call<Key>> {
        if actor == self.sweeper() {
            return match state.sweeper {
                Sweeper::Rests => None,
                Sweeper::Looks => Some(Call::Get(Key::Name)),
                Sweeper::Deletes => Some(Call::Delete(Key::Name)),
            };
        }
        Some(match &state.requests[actor] {
            Request::Absent | Request::Answered(_) | Request::Dead => return None,
            Request::Claims => Call::put(Key::Name, self.condition(Condition::IfAbsent)),
            Request::Looks => Call::Get(Key::Name),
            Request::ClaimsOver { condition, .. } => {
                Call::put(Key::Name, self.condition(*condition))
            }
            Request::Sends(_) => Call::Send(Key::Deliveries),
            Request::Settles { .. } => Call::PutIfMatch(Key::Name),
        })
    }

    fn condition(&self, condition: Condition) -> Condition {
        match self.variant {
            Variant::PutWithoutMatch => Condition::Always,
            _ => condition,
        }
    }

    /// The record with which a request claims the name, in the place of another one.
    fn record(&self, state: &State, actor: Actor, before: Option<&IdempotencyRecord>) -> Bytes {
        let holder = format!("request-{actor}");
        let own = IdempotencyRecord::new_claim(digest(self.contents[actor]), holder, at(state.now));
        match self.variant {
            Variant::NewIds => own.render(),
            _ => own.replacing(before).render(),
        }
    }

    fn calls(&self, state: &mut State, actor: Actor, fate: Fate) {
        let request = state.requests[actor].clone();
        let is_answered = fate == Fate::Answered;
        state.requests[actor] = match request {
            Request::Claims => {
                let record = self.record(state, actor, None);
                self.claims(state, record, Condition::IfAbsent, fate)
            }
            Request::ClaimsOver { before, condition } => {
                let before = IdempotencyRecord::parse(&before);
                let record = self.record(state, actor, before.as_ref());
                self.claims(state, record, condition, fate)
            }
            Request::Looks if is_answered => self.decides(state, actor),
            Request::Looks => Request::Answered(Answer::Failed),
            Request::Sends(held) => self.sends(state, actor, held, fate),
            Request::Settles { held, is_published } => {
                self.settles(state, &held, is_published, fate)
            }
            other => other,
        };
    }

    fn claims(
        &self,
        state: &mut State,
        record: Bytes,
        condition: Condition,
        fate: Fate,
    ) -> Request {
        let condition = self.condition(condition);
        match state.name.put(record.clone(), condition, fate) {
            Written::As(version) => {
                let held = Held {
                    record,
                    version,
                    claimed_at: state.now,
                };
                match self.variant {
                    Variant::SettlesBeforeSend => Request::Settles {
                        held,
                        is_published: true,
                    },
                    _ => Request::Sends(held),
                }
            }
            Written::Refused => Request::Looks,
            Written::Unknown => Request::Answered(Answer::Failed),
        }
    }

    fn decides(&self, state: &State, actor: Actor) -> Request {
        let Some((before, version)) = state.name.get() else {
            return Request::ClaimsOver {
                before: Bytes::new(),
                condition: Condition::IfAbsent,
            };
        };
        let known = IdempotencyRecord::parse(&before);
        let decided = known.map_or(IdempotencyDecision::Free, |known| {
            known.decide_request(&digest(self.contents[actor]), at(state.now))
        });
        match decided {
            IdempotencyDecision::Free => Request::ClaimsOver {
                before,
                condition: Condition::IfMatch(version),
            },
            IdempotencyDecision::Repeated { .. } => Request::Answered(Answer::Accepted),
            IdempotencyDecision::Reused => Request::Answered(Answer::Reused),
            IdempotencyDecision::InProgress { .. } => Request::Answered(Answer::InProgress),
        }
    }

    fn sends(&self, state: &mut State, actor: Actor, held: Held, fate: Fate) -> Request {
        if fate != Fate::NotMade {
            let content = self.contents[actor];
            state.sent.push(content);
            let record = IdempotencyRecord::parse(&held.record);
            let id = record.map(|record| record.request_id()).unwrap_or_default();
            state.ids.insert((content, id));
            // A claim that lapsed while its request was at work is another matter.
            state.sent_after |= state.is_settled && Self::is_in_time(state, &held);
        }
        match self.variant {
            Variant::SettlesBeforeSend => Request::Answered(if fate == Fate::Answered {
                Answer::Accepted
            } else {
                Answer::Failed
            }),
            _ => Request::Settles {
                held,
                is_published: fate == Fate::Answered,
            },
        }
    }

    fn settles(&self, state: &mut State, held: &Held, is_published: bool, fate: Fate) -> Request {
        let record = IdempotencyRecord::parse(&held.record);
        let settled = record.map(|record| {
            if is_published {
                record.into_published(MatchCounts::default(), at(state.now))
            } else {
                record.into_given_back()
            }
        });
        let condition = self.condition(Condition::IfMatch(held.version));
        if let Some(settled) = settled {
            let is_stored = fate != Fate::NotMade && state.name.holds(condition);
            state.is_settled |= is_stored && is_published;
            state.name.put(settled.render(), condition, fate);
        }
        // The answer does not depend on it: the events are durable, or they are not.
        match (self.variant, is_published) {
            (Variant::SettlesBeforeSend, _) => Request::Sends(held.clone()),
            (_, true) => Request::Answered(Answer::Accepted),
            (_, false) => Request::Answered(Answer::Failed),
        }
    }

    fn sweeps(state: &mut State, fate: Fate) {
        let is_answered = fate == Fate::Answered;
        state.sweeper = match state.sweeper {
            Sweeper::Looks if is_answered => {
                let record = state.name.content().cloned();
                let record = record.and_then(|record| IdempotencyRecord::parse(&record));
                if record.is_some_and(|record| record.is_forgotten(at(state.now))) {
                    Sweeper::Deletes
                } else {
                    Sweeper::Rests
                }
            }
            Sweeper::Deletes => {
                state.name.delete(fate);
                Sweeper::Rests
            }
            Sweeper::Looks | Sweeper::Rests => Sweeper::Rests,
        };
    }

    fn is_in_time(state: &State, held: &Held) -> bool {
        state.now < held.claimed_at + IDEMPOTENCY_CLAIM_LENGTH.as_secs()
    }

    /// The requests that publish, or have published and not said so, by a claim that holds.
    fn publishing(state: &State) -> usize {
        let is_at_it = |request: &&Request| match request {
            Request::Sends(held) | Request::Settles { held, .. } => Self::is_in_time(state, held),
            _ => false,
        };
        state.requests.iter().filter(is_at_it).count()
    }

    fn has(state: &State, answer: Answer) -> bool {
        state.requests.contains(&Request::Answered(answer))
    }

    fn is_at_work(state: &State) -> bool {
        state.requests.iter().any(|request| {
            !matches!(
                request,
                Request::Absent | Request::Answered(_) | Request::Dead
            )
        })
    }
}

impl Model for Idempotency {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: IDEMPOTENCY_KEPT.as_secs(),
            steps: self.steps,
            name: Stored::default(),
            requests: vec![Request::Absent; self.contents.len()],
            sweeper: Sweeper::Rests,
            is_forgotten: false,
            faults: self.faults,
            deaths: self.deaths,
            ids: BTreeSet::new(),
            sent: Vec::new(),
            sent_after: false,
            is_settled: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for actor in 0..=self.sweeper() {
            if let Some(call) = self.next_call(state, actor) {
                let fates = call.fates(state.faults > 0 && actor < self.sweeper());
                actions.extend(fates.iter().map(|fate| Step::Calls(actor, call, *fate)));
                if state.deaths > 0 && actor < self.sweeper() {
                    actions.push(Step::Dies(actor));
                }
            } else if actor < self.sweeper() && state.requests[actor] == Request::Absent {
                actions.push(Step::Other(Event::Arrives(actor)));
            }
        }
        if state.steps > 0 {
            actions.push(Step::Other(Event::Passes));
        }
        if self.sweeps && !state.is_forgotten && !Self::is_at_work(state) && state.name.is_there() {
            actions.push(Step::Other(Event::IsForgotten));
        }
        if state.is_forgotten && state.sweeper == Sweeper::Rests && state.name.is_there() {
            actions.push(Step::Other(Event::Sweeps));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Step::Calls(actor, _, fate) => {
                state.faults -= u8::from(fate != Fate::Answered);
                if actor == self.sweeper() {
                    Self::sweeps(&mut state, fate);
                } else {
                    self.calls(&mut state, actor, fate);
                }
            }
            Step::Dies(actor) => {
                state.deaths -= 1;
                state.requests[actor] = Request::Dead;
            }
            Step::Other(Event::Passes) => {
                state.steps -= 1;
                state.now += STEP.as_secs();
            }
            Step::Other(Event::IsForgotten) => {
                state.is_forgotten = true;
                state.now += IDEMPOTENCY_KEPT.as_secs() + 3600;
                // What follows has nothing to do with what was.
                state.ids.clear();
                state.sent.clear();
                state.is_settled = false;
            }
            Step::Other(Event::Arrives(actor)) => state.requests[actor] = Request::Claims,
            Step::Other(Event::Sweeps) => state.sweeper = Sweeper::Looks,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(
                "an accepted request was sent",
                |model: &Self, state: &State| {
                    let answers = state.requests.iter().zip(&model.contents);
                    let is_kept = |(request, content): (&Request, &u8)| {
                        *request != Request::Answered(Answer::Accepted)
                            || state.sent.contains(content)
                            || state.is_forgotten
                    };
                    answers.into_iter().all(is_kept)
                },
            ),
            Property::always(
                "copies of a request have one id",
                |model: &Self, state: &State| {
                    let mut contents: Vec<_> =
                        state.ids.iter().map(|(content, _)| *content).collect();
                    contents.dedup();
                    // Another request of the name takes its place, and then nothing is known of the first.
                    contents.len() == state.ids.len()
                        || model.contents.windows(2).any(|it| it[0] != it[1])
                },
            ),
            Property::always(
                "one request of a name publishes at a time",
                |_, state: &State| Self::publishing(state) <= 1,
            ),
            Property::always(
                "what is known as published is not sent again",
                |_, state: &State| !state.sent_after,
            ),
            Property::sometimes(
                "a repeated request is answered like the first",
                |_, state: &State| {
                    let accepted = Request::Answered(Answer::Accepted);
                    let answers = state.requests.iter().filter(|it| **it == accepted);
                    answers.count() > 1 && state.sent.len() == 1
                },
            ),
            Property::sometimes("a request meets another one at work", |_, state: &State| {
                Self::has(state, Answer::InProgress)
            }),
            Property::sometimes(
                "the claim of a dead request is taken",
                |_, state: &State| {
                    state.requests.contains(&Request::Dead) && Self::has(state, Answer::Accepted)
                },
            ),
            Property::sometimes(
                "a request that failed in the middle is sent twice",
                |_, state: &State| state.sent.len() == 2 && Self::has(state, Answer::Accepted),
            ),
        ];
        if self.contents.windows(2).any(|it| it[0] != it[1]) {
            all.push(Property::sometimes(
                "another request is refused",
                |_, state: &State| Self::has(state, Answer::Reused),
            ));
        }
        all
    }
}
