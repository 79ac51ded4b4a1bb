//! The claim of a stack to its state: made when the stack is made, renewed by its monitor, given up
//! when it is deleted, and taken over by the stack that adopts what the former one left.
//!
//! From `infra/lambda/src/ownership.rs` and `shared/services/src/ownership.rs`. The rule is the
//! code's own, `core::model::StateOwner::claim_state`. Time is in minutes.

use posthaste_core::model::{
    OwnershipClaim, STATE_OWNER_LIVES, STATE_OWNER_RENEWED, StateOwner, Timestamp,
};
use stateright::{Model, Property};

use crate::step::{Actor, Call, Condition, Fate, Step};
use crate::stored::{Stored, Written};

/// The stacks: one that lives at first, and two that are deployed over its state.
pub const STACKS: usize = 3;

const MINUTE_MS: u64 = 60_000;

/// The minutes for which a claim counts.
const LIVES: u8 = (STATE_OWNER_LIVES.as_secs() / 60) as u8;

/// The minutes after which it is renewed.
const RENEWED: u8 = (STATE_OWNER_RENEWED.as_secs() / 60) as u8;

/// An object that stacks read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// `owner.json`.
    Owner,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A minute passes.
    Passes,
    /// A stack is deployed.
    IsMade(Actor),
    /// A stack is deleted.
    IsDeleted(Actor),
    /// The functions of a stack stop, all of them.
    Stops(Actor),
    /// The monitor of a stack runs, and its claim is due to be renewed.
    Renews(Actor),
}

/// A step.
pub type Action = Step<Key, Event>;

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// The claim is put without a condition.
    PutWithoutMatch,
    /// A claim that is given up is deleted after a look at whose it is: a delete has no condition.
    ReleasesByDelete,
}

/// The model.
#[derive(Debug, Clone)]
pub struct StackClaim {
    /// The protocol.
    pub variant: Variant,
    /// The minutes by which the clock of each stack is ahead.
    pub ahead: [u8; STACKS],
    /// Whether all functions of the first stack may stop, so that its claim lapses while it is
    /// there.
    pub may_stop: bool,
    /// The calls that may fail.
    pub faults: u8,
    /// The minutes that pass.
    pub minutes: u8,
}

/// The owner as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The stack.
    pub stack: Actor,
    /// The minute at which it was last seen; `None` if it gave the claim up.
    pub seen_at: Option<u8>,
}

/// The life of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The stack was not deployed yet.
    Absent,
    /// The stack reads who owns the state.
    Looks { is_new: bool },
    /// The stack claims the state.
    Claims { is_new: bool, condition: Condition },
    /// The stack works on the state.
    Lives,
    /// The stack's monitor found that another stack took the state.
    Refused,
    /// The stack is being deleted: it reads whose the claim is.
    LooksBack,
    /// The stack gives its claim up.
    GivesUp { condition: Condition },
    /// The stack is gone.
    Gone,
}

/// A stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The phase of its life.
    pub phase: Phase,
    /// The minute of the last claim that its monitor knows it wrote.
    claimed_at: Option<u8>,
    /// The true minute of its last claim that was stored.
    stored_at: Option<u8>,
    has_stopped: bool,
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    now: u8,
    /// The owner.
    pub owner: Stored<Owner>,
    /// The stacks.
    pub stacks: [Stack; STACKS],
    faults: u8,
    /// Whether a stack was granted the state while another one had it.
    two_owners: bool,
    was_refused: bool,
    was_taken_over: bool,
}

fn at(minute: u8) -> Timestamp {
    Timestamp::from_millis(u64::from(minute) * MINUTE_MS)
}

impl StackClaim {
    /// The model of the code, with clocks that are this far apart.
    pub fn of_the_code(ahead: [u8; STACKS]) -> Self {
        Self {
            variant: Variant::Code,
            ahead,
            may_stop: false,
            faults: 1,
            minutes: LIVES + 4,
        }
    }

    fn clock(&self, state: &State, stack: Actor) -> u8 {
        // Far from the epoch, which a claim that was given up names.
        100 + state.now + self.ahead[stack]
    }

    fn decides(&self, state: &State, stack: Actor) -> Option<OwnershipClaim> {
        let name = |stack: Actor| format!("stack-{stack}");
        let owner = state.owner.content().map(|owner| StateOwner {
            stack: name(owner.stack),
            seen_at: owner.seen_at.map_or(Timestamp::EPOCH, at),
        });
        let now = at(self.clock(state, stack));
        StateOwner::claim_state(owner.as_ref(), &name(stack), now).ok()
    }

    fn next_call(&self, state: &State, stack: Actor) -> Option<Call<Key>> {
        match state.stacks[stack].phase {
            Phase::Absent | Phase::Lives | Phase::Refused | Phase::Gone => None,
            Phase::Looks { .. } | Phase::LooksBack => Some(Call::Get(Key::Owner)),
            Phase::Claims { condition, .. } => Some(Call::put(Key::Owner, condition)),
            Phase::GivesUp { condition } => Some(match self.variant {
                Variant::ReleasesByDelete => Call::Delete(Key::Owner),
                _ => Call::put(Key::Owner, condition),
            }),
        }
    }

    fn calls(&self, state: &mut State, stack: Actor, fate: Fate) {
        let is_answered = fate == Fate::Answered;
        let next = match state.stacks[stack].phase {
            Phase::Looks { is_new } if is_answered => match self.decides(state, stack) {
                Some(OwnershipClaim::Current) => {
                    // Another process of the stack has written it. Who made the stack knows it now.
                    Phase::Lives
                }
                Some(OwnershipClaim::Due) => Phase::Claims {
                    is_new,
                    condition: match self.variant {
                        Variant::PutWithoutMatch => Condition::Always,
                        _ => state.owner.unchanged(),
                    },
                },
                None => {
                    state.was_refused = true;
                    if is_new {
                        Phase::LooksBack
                    } else {
                        Phase::Refused
                    }
                }
            },
            // A deployment that fails is rolled back. A renewal that fails is tried a minute later.
            Phase::Looks { is_new } => Self::failed(is_new),
            Phase::Claims { is_new, condition } => {
                self.claims(state, stack, (is_new, condition), fate)
            }
            Phase::LooksBack if is_answered => {
                let owner = state.owner.content();
                if owner.is_some_and(|owner| owner.stack == stack) {
                    Phase::GivesUp {
                        condition: state.owner.unchanged(),
                    }
                } else {
                    Phase::Gone
                }
            }
            Phase::GivesUp { condition } => {
                if self.variant == Variant::ReleasesByDelete {
                    state.owner.delete(fate);
                    Phase::Gone
                } else {
                    let given_up = Owner {
                        stack,
                        seen_at: None,
                    };
                    match state.owner.put(given_up, condition, fate) {
                        // Another process of the stack has renewed it, or another stack took it.
                        Written::Refused => Phase::LooksBack,
                        Written::As(_) | Written::Unknown => Phase::Gone,
                    }
                }
            }
            Phase::LooksBack => Phase::Gone,
            other => other,
        };
        state.stacks[stack].phase = next;
    }

    fn failed(is_new: bool) -> Phase {
        if is_new {
            Phase::LooksBack
        } else {
            Phase::Lives
        }
    }

    fn claims(
        &self,
        state: &mut State,
        stack: Actor,
        (is_new, condition): (bool, Condition),
        fate: Fate,
    ) -> Phase {
        let seen_at = Some(self.clock(state, stack));
        let is_stored = fate != Fate::NotMade && state.owner.holds(condition);
        if is_stored {
            let others = (0..STACKS).filter(|other| *other != stack);
            let owned: Vec<_> = others.map(|other| Self::owns(state, other)).collect();
            state.two_owners |= owned.contains(&true);
            state.was_taken_over |= is_new && state.owner.is_there();
            state.stacks[stack].stored_at = Some(state.now);
        }
        match state.owner.put(Owner { stack, seen_at }, condition, fate) {
            Written::As(_) => {
                state.stacks[stack].claimed_at = seen_at;
                Phase::Lives
            }
            Written::Refused => Phase::Looks { is_new },
            Written::Unknown => Self::failed(is_new),
        }
    }

    /// Whether a stack has the state: it works on it, and has said so in the last minutes.
    fn owns(state: &State, stack: Actor) -> bool {
        let Stack {
            phase, stored_at, ..
        } = state.stacks[stack];
        let is_recent = stored_at.is_some_and(|at| state.now < at + LIVES - 1);
        let works = match phase {
            Phase::Lives => true,
            Phase::Looks { is_new } | Phase::Claims { is_new, .. } => !is_new,
            _ => false,
        };
        works && is_recent
    }

    fn is_due(&self, state: &State, stack: Actor) -> bool {
        let it = &state.stacks[stack];
        let now = self.clock(state, stack);
        it.phase == Phase::Lives
            && !it.has_stopped
            && it.claimed_at.is_none_or(|at| now >= at + RENEWED)
    }
}

impl Model for StackClaim {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let absent = Stack {
            phase: Phase::Absent,
            claimed_at: None,
            stored_at: None,
            has_stopped: false,
        };
        let mut first = State {
            now: 0,
            owner: Stored::default(),
            stacks: [absent; STACKS],
            faults: self.faults,
            two_owners: false,
            was_refused: false,
            was_taken_over: false,
        };
        let seen_at = Some(self.clock(&first, 0));
        first.owner = Stored::of(Owner { stack: 0, seen_at });
        first.stacks[0] = Stack {
            phase: Phase::Lives,
            claimed_at: seen_at,
            stored_at: Some(0),
            ..absent
        };
        vec![first]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let mut is_busy = false;
        for stack in 0..STACKS {
            if let Some(call) = self.next_call(state, stack) {
                let fates = call.fates(state.faults > 0);
                actions.extend(fates.iter().map(|fate| Step::Calls(stack, call, *fate)));
            }
            let it = &state.stacks[stack];
            match it.phase {
                Phase::Absent => actions.push(Step::Other(Event::IsMade(stack))),
                Phase::Lives | Phase::Refused => {
                    actions.push(Step::Other(Event::IsDeleted(stack)));
                    if self.may_stop && stack == 0 && !it.has_stopped {
                        actions.push(Step::Other(Event::Stops(stack)));
                    }
                }
                // It is a matter of seconds.
                Phase::Looks { .. }
                | Phase::Claims { .. }
                | Phase::LooksBack
                | Phase::GivesUp { .. } => is_busy = true,
                Phase::Gone => {}
            }
            if self.is_due(state, stack) {
                is_busy = true;
                actions.push(Step::Other(Event::Renews(stack)));
            }
        }
        if state.now < self.minutes && !is_busy {
            actions.push(Step::Other(Event::Passes));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Step::Calls(stack, _, fate) => {
                state.faults -= u8::from(fate != Fate::Answered);
                self.calls(&mut state, stack, fate);
            }
            Step::Other(event) => match event {
                Event::Passes => state.now += 1,
                Event::IsMade(stack) => {
                    state.stacks[stack].phase = Phase::Looks { is_new: true };
                }
                Event::IsDeleted(stack) => state.stacks[stack].phase = Phase::LooksBack,
                Event::Stops(stack) => state.stacks[stack].has_stopped = true,
                Event::Renews(stack) => {
                    state.stacks[stack].phase = Phase::Looks { is_new: false };
                }
            },
            Step::Dies(_) => return None,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(
                "no stack is granted a state that another one has",
                |_, state: &State| !state.two_owners,
            ),
            Property::always("who has the state is its owner", |_, state: &State| {
                (0..STACKS).all(|stack| {
                    let owner = state.owner.content();
                    !Self::owns(state, stack) || owner.is_some_and(|owner| owner.stack == stack)
                })
            }),
            Property::sometimes("a second stack is refused", |_, state: &State| {
                state.was_refused
            }),
            Property::sometimes(
                "a stack has the state at once that another gave up",
                |_, state: &State| {
                    let [first, second, _] = &state.stacks;
                    first.phase == Phase::Gone && second.phase == Phase::Lives && state.now == 0
                },
            ),
        ];
        if self.may_stop {
            all.push(Property::sometimes(
                "the state of a stack that stopped is taken",
                |_, state: &State| state.was_taken_over && state.stacks[0].has_stopped,
            ));
        }
        all
    }
}
