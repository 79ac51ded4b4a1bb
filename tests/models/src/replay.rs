//! A replay: opened once for its selection by the request that asks for it, or by wake where that
//! was cut, carried out by wake, and cancelled by an operator.
//!
//! From `functions/manage/src/replays/store.rs`, `shared/services/src/open_replay.rs`,
//! `functions/wake/src/jobs/replays.rs` with `replays/left.rs`, `replays/walk.rs` and
//! `replays/records.rs`, and `cancel_replay` in the first of these. Time is what has
//! ended when: whether a marker is as old as what is left by its request, and which replays had ended
//! when another one was asked for.

use stateright::{Model, Property};

use crate::step::{Actor, Call, Condition, Fate, Step, Version};
use crate::stored::{Stored, Written};

/// The requests for the same selection. Each has the id of its number.
pub const REQUESTS: usize = 2;

/// wake.
pub const WAKE: Actor = REQUESTS;

/// The operator who cancels.
pub const OPERATOR: Actor = REQUESTS + 1;

/// The id of a replay.
pub type Id = usize;

/// An object that they read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// `replaying/{id}`: the marker.
    Marker(Id),
    /// All markers.
    Markers,
    /// `claims/{digest}`.
    Claim,
    /// `replays/{id}`: the record.
    Record(Id),
    /// The deliveries queue.
    Deliveries,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A request comes.
    Asks(Id),
    /// A marker has become so old that its request counts as cut.
    Ages(Id),
    /// A run of wake begins.
    Runs,
    /// An operator cancels a replay.
    Cancels(Id),
}

/// A step.
pub type Action = Step<Key, Event>;

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// The claim is put without a condition.
    ClaimWithoutMatch,
    /// The record is put without a condition, so that one that went on begins anew.
    RecordWithoutMatch,
    /// The place of a replay is written before its events are sent.
    SavesBeforeSend,
    /// The marker is written after the record.
    NoMarkerFirst,
    /// A replay that has ended since counts for nobody who asked while it was open.
    ForgetsEnded,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The protocol.
    pub variant: Variant,
    /// The letters that are selected. One is what is sent between two writes of the record.
    pub letters: u8,
    /// The calls that may fail.
    pub faults: u8,
    /// The requests and runs that may die.
    pub deaths: u8,
    /// The replays that may be cancelled.
    pub cancels: u8,
    /// Whether requests may be so slow that wake counts them as cut.
    pub may_age: bool,
}

/// The record of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Record {
    /// The replay is open, and has come so far.
    Open(u8),
    /// All was sent.
    Done,
    /// An operator cancelled it.
    Cancelled,
}

/// `open_replay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opening {
    PutsClaim(Condition),
    LooksAtClaim,
    LooksAtOther { other: Id, condition: Condition },
    MarksOther { other: Id, begins: bool },
    MarksAgain,
    PutsRecord(Id),
    LooksAtRecord(Id),
}

/// A request for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request {
    Absent,
    Marks,
    Opens(Opening),
    /// Deletes its own marker: another replay is open.
    Unmarks(Id),
    /// 202, with this id.
    Answered(Id),
    /// 5xx.
    Failed,
    Dead,
}

/// A run of wake, and the replay that it works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    Rests,
    Lists,
    Loads(Id),
    LooksAtMarker(Id),
    Opens(Id, Opening),
    Sends(Id, Version, u8),
    Saves(Id, Version, Record),
    Closes(Id),
}

/// The operator's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cancel {
    Rests,
    Looks(Id),
    Writes(Id, Version),
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    markers: [Stored<()>; REQUESTS],
    is_old: [bool; REQUESTS],
    claim: Stored<Id>,
    /// The records.
    pub records: [Stored<Record>; REQUESTS],
    /// The requests.
    pub requests: [Request; REQUESTS],
    /// The replays that had ended when each was asked for.
    ended_before: [[bool; REQUESTS]; REQUESTS],
    run: Run,
    operator: Cancel,
    /// The number of times that each letter was sent.
    pub sent: Vec<u8>,
    faults: u8,
    deaths: u8,
    cancels: u8,
    harm: u8,
    was_left: bool,
}

impl Replay {
    /// The model of the code.
    pub fn of_the_code() -> Self {
        Self {
            variant: Variant::Code,
            letters: 2,
            faults: 1,
            deaths: 1,
            cancels: 0,
            may_age: true,
        }
    }

    fn condition(&self, condition: Condition) -> Condition {
        match self.variant {
            Variant::ClaimWithoutMatch => Condition::Always,
            _ => condition,
        }
    }

    fn of_record(&self, condition: Condition) -> Condition {
        match self.variant {
            Variant::RecordWithoutMatch => Condition::Always,
            _ => condition,
        }
    }

    fn opening_call(&self, asked: Id, opening: Opening) -> Call<Key> {
        match opening {
            Opening::PutsClaim(condition) => Call::put(Key::Claim, self.condition(condition)),
            Opening::LooksAtClaim => Call::Get(Key::Claim),
            Opening::LooksAtOther { other, .. } => Call::Get(Key::Record(other)),
            Opening::MarksOther { other, .. } => Call::PutIfAbsent(Key::Marker(other)),
            Opening::MarksAgain => Call::Put(Key::Marker(asked)),
            Opening::PutsRecord(id) => {
                Call::put(Key::Record(id), self.of_record(Condition::IfAbsent))
            }
            Opening::LooksAtRecord(id) => Call::Get(Key::Record(id)),
        }
    }

    fn next_call(&self, state: &State, actor: Actor) -> Option<Call<Key>> {
        if actor == OPERATOR {
            return match state.operator {
                Cancel::Rests => None,
                Cancel::Looks(id) => Some(Call::Get(Key::Record(id))),
                Cancel::Writes(id, _) => Some(Call::PutIfMatch(Key::Record(id))),
            };
        }
        if actor == WAKE {
            return Some(match state.run {
                Run::Rests => return None,
                Run::Lists => Call::List(Key::Markers),
                Run::Loads(id) => Call::Get(Key::Record(id)),
                Run::LooksAtMarker(id) => Call::Get(Key::Marker(id)),
                Run::Opens(id, opening) => self.opening_call(id, opening),
                Run::Sends(..) => Call::Send(Key::Deliveries),
                Run::Saves(id, ..) => Call::PutIfMatch(Key::Record(id)),
                Run::Closes(id) => Call::Delete(Key::Marker(id)),
            });
        }
        match state.requests[actor] {
            Request::Marks => Some(Call::Put(Key::Marker(actor))),
            Request::Opens(opening) => Some(self.opening_call(actor, opening)),
            Request::Unmarks(_) => Some(Call::Delete(Key::Marker(actor))),
            Request::Absent | Request::Answered(_) | Request::Failed | Request::Dead => None,
        }
    }

    /// One call of `open_replay`. `Err` where the store failed.
    fn opens(
        &self,
        state: &mut State,
        asked: Id,
        opening: Opening,
        fate: Fate,
    ) -> Result<Result<Opening, Id>, ()> {
        let is_answered = fate == Fate::Answered;
        Ok(match opening {
            Opening::PutsClaim(condition) => {
                let condition = self.condition(condition);
                match state.claim.put(asked, condition, fate) {
                    Written::As(_) if state.is_old[asked] => Ok(Opening::MarksAgain),
                    Written::As(_) => Ok(Opening::PutsRecord(asked)),
                    Written::Refused => Ok(Opening::LooksAtClaim),
                    Written::Unknown => return Err(()),
                }
            }
            _ if !is_answered && self.opening_call(asked, opening).is_read() => return Err(()),
            Opening::LooksAtClaim => match state.claim.get() {
                None => Ok(Opening::PutsClaim(Condition::IfAbsent)),
                Some((found, _)) if found == asked => Ok(Opening::PutsRecord(asked)),
                Some((other, version)) => Ok(Opening::LooksAtOther {
                    other,
                    condition: Condition::IfMatch(version),
                }),
            },
            Opening::LooksAtOther { other, condition } => match state.records[other].content() {
                None => Ok(Opening::MarksOther {
                    other,
                    begins: true,
                }),
                Some(Record::Open(_)) => Ok(Opening::MarksOther {
                    other,
                    begins: false,
                }),
                Some(_) if self.had_ended(state, asked, other) => Ok(Opening::PutsClaim(condition)),
                Some(_) => Err(other),
            },
            Opening::MarksOther { other, begins } => {
                let marked = marks(state, other, Condition::IfAbsent, fate);
                match (marked, begins) {
                    (Written::Unknown, _) => return Err(()),
                    (_, true) => Ok(Opening::PutsRecord(other)),
                    (_, false) => Err(other),
                }
            }
            Opening::MarksAgain => {
                if marks(state, asked, Condition::Always, fate) == Written::Unknown {
                    return Err(());
                }
                Ok(Opening::PutsRecord(asked))
            }
            Opening::PutsRecord(id) => {
                let condition = self.of_record(Condition::IfAbsent);
                match state.records[id].put(Record::Open(0), condition, fate) {
                    Written::As(_) => Err(id),
                    Written::Refused => Ok(Opening::LooksAtRecord(id)),
                    Written::Unknown => return Err(()),
                }
            }
            Opening::LooksAtRecord(id) => Err(id),
        })
    }

    /// Whether a replay had ended when another one was asked for.
    fn had_ended(&self, state: &State, asked: Id, other: Id) -> bool {
        self.variant == Variant::ForgetsEnded || state.ended_before[asked][other]
    }

    fn request_calls(&self, state: &mut State, id: Id, fate: Fate) {
        state.requests[id] = match state.requests[id] {
            Request::Marks => {
                let marked = marks(state, id, Condition::Always, fate);
                match (marked, self.variant) {
                    (Written::Unknown, _) => Request::Failed,
                    (_, Variant::NoMarkerFirst) => Request::Answered(id),
                    _ => Request::Opens(Opening::PutsClaim(Condition::IfAbsent)),
                }
            }
            Request::Opens(opening) => match self.opens(state, id, opening, fate) {
                Ok(Ok(next)) => Request::Opens(next),
                Ok(Err(opened)) if opened == id => match self.variant {
                    Variant::NoMarkerFirst => Request::Marks,
                    _ => Request::Answered(id),
                },
                Ok(Err(other)) => Request::Unmarks(other),
                // Whether the replay is open is not known: its marker stays.
                Err(()) => Request::Failed,
            },
            Request::Unmarks(other) => {
                state.markers[id].delete(fate);
                Request::Answered(other)
            }
            other => other,
        };
    }

    fn wake_calls(&self, state: &mut State, fate: Fate) {
        let is_answered = fate == Fate::Answered;
        let next = match state.run {
            // What comes after a call that failed is left to the next run; the other replays are
            // looked at all the same.
            Run::Lists if is_answered => self.after(state, 0),
            Run::Lists | Run::Rests => Run::Rests,
            Run::Loads(id) if is_answered => match state.records[id].get() {
                None if state.is_old[id] => Run::LooksAtMarker(id),
                None => self.after(state, id + 1),
                Some((Record::Open(came_to), version)) if came_to == self.letters => {
                    Run::Saves(id, version, Record::Done)
                }
                Some((Record::Open(came_to), version)) => match self.variant {
                    Variant::SavesBeforeSend => Run::Saves(id, version, Record::Open(came_to + 1)),
                    _ => Run::Sends(id, version, came_to),
                },
                Some((Record::Done | Record::Cancelled, _)) => Run::Closes(id),
            },
            Run::LooksAtMarker(id) if is_answered => {
                if state.markers[id].is_there() {
                    state.was_left = true;
                    Run::Opens(id, Opening::PutsClaim(Condition::IfAbsent))
                } else {
                    Run::Closes(id)
                }
            }
            Run::Opens(id, opening) => match self.opens(state, id, opening, fate) {
                Ok(Ok(next)) => Run::Opens(id, next),
                Ok(Err(opened)) if opened == id => Run::Loads(id),
                Ok(Err(_)) => Run::Closes(id),
                Err(()) => self.after(state, id + 1),
            },
            Run::Sends(id, version, came_to) => {
                if fate != Fate::NotMade {
                    state.sent[usize::from(came_to)] += 1;
                }
                match (is_answered, self.variant) {
                    (_, Variant::SavesBeforeSend) => Run::Loads(id),
                    (true, _) => Run::Saves(id, version, Record::Open(came_to + 1)),
                    (false, _) => self.after(state, id + 1),
                }
            }
            Run::Saves(id, version, record) => {
                let condition = self.of_record(Condition::IfMatch(version));
                match (state.records[id].put(record, condition, fate), record) {
                    (Written::As(_), Record::Open(came_to))
                        if self.variant == Variant::SavesBeforeSend =>
                    {
                        Run::Sends(id, version, came_to - 1)
                    }
                    (Written::As(version), Record::Open(came_to)) if came_to == self.letters => {
                        Run::Saves(id, version, Record::Done)
                    }
                    (Written::As(version), Record::Open(came_to)) => {
                        Run::Sends(id, version, came_to)
                    }
                    (Written::As(_), _) => Run::Closes(id),
                    (Written::Refused | Written::Unknown, _) => self.after(state, id + 1),
                }
            }
            Run::Closes(id) => {
                state.markers[id].delete(fate);
                self.after(state, id + 1)
            }
            Run::Loads(id) | Run::LooksAtMarker(id) => self.after(state, id + 1),
        };
        state.run = next;
    }

    /// The next replay that a run comes to, of those that were listed.
    fn after(&self, state: &State, first: Id) -> Run {
        let mut ids = first..REQUESTS;
        ids.find(|id| state.markers[*id].is_there())
            .map_or(Run::Rests, Run::Loads)
    }

    fn operator_calls(state: &mut State, fate: Fate) {
        state.operator = match state.operator {
            Cancel::Looks(id) if fate == Fate::Answered => match state.records[id].get() {
                Some((Record::Open(_), version)) => Cancel::Writes(id, version),
                _ => Cancel::Rests,
            },
            Cancel::Writes(id, version) => {
                let condition = Condition::IfMatch(version);
                match state.records[id].put(Record::Cancelled, condition, fate) {
                    Written::Refused => Cancel::Looks(id),
                    Written::As(_) | Written::Unknown => Cancel::Rests,
                }
            }
            Cancel::Looks(_) | Cancel::Rests => Cancel::Rests,
        };
    }

    /// A step towards rest without a fault, where there is one: everybody goes on, what is left
    /// becomes old, and wake runs.
    fn fair_step(&self, state: &State) -> Option<Action> {
        let actors = (0..=OPERATOR).filter_map(|actor| {
            let call = self.next_call(state, actor)?;
            Some(Step::Calls(actor, call, Fate::Answered))
        });
        let mut markers = (0..REQUESTS).filter(|id| state.markers[*id].is_there());
        let ages = markers
            .clone()
            .find(|id| !state.is_old[*id])
            .map(|id| Step::Other(Event::Ages(id)));
        let runs = markers.next().map(|_| Step::Other(Event::Runs));
        actors.chain(ages).chain(runs).next()
    }

    /// Whether everything comes to rest from here, if nothing fails any more.
    fn comes_to_rest(&self, state: &State) -> bool {
        const STEPS_MAX: usize = 200;
        let mut state = state.clone();
        for _ in 0..STEPS_MAX {
            let Some(step) = self.fair_step(&state) else {
                return state
                    .records
                    .iter()
                    .all(|record| !matches!(record.content(), Some(Record::Open(_))));
            };
            let Some(next) = self.next_state(&state, step) else {
                return false;
            };
            state = next;
        }
        false
    }

    fn is_quiet(&self, state: &State) -> bool {
        (0..=OPERATOR).all(|actor| self.next_call(state, actor).is_none())
    }

    fn open(state: &State) -> usize {
        let open = state.records.iter();
        open.filter(|record| matches!(record.content(), Some(Record::Open(_))))
            .count()
    }

    fn begun(state: &State) -> usize {
        state.records.iter().filter(|it| it.is_there()).count()
    }
}

/// Writes a marker, which is young then.
fn marks(state: &mut State, id: Id, condition: Condition, fate: Fate) -> Written {
    if fate != Fate::NotMade && state.markers[id].holds(condition) {
        state.is_old[id] = false;
    }
    state.markers[id].put((), condition, fate)
}

impl Model for Replay {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            markers: [Stored::default(), Stored::default()],
            is_old: [false; REQUESTS],
            claim: Stored::default(),
            records: [Stored::default(), Stored::default()],
            requests: [Request::Absent; REQUESTS],
            ended_before: [[false; REQUESTS]; REQUESTS],
            run: Run::Rests,
            operator: Cancel::Rests,
            sent: vec![0; usize::from(self.letters)],
            faults: self.faults,
            deaths: self.deaths,
            cancels: self.cancels,
            harm: 0,
            was_left: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for actor in 0..=OPERATOR {
            if let Some(call) = self.next_call(state, actor) {
                let fates = call.fates(state.faults > 0);
                actions.extend(fates.iter().map(|fate| Step::Calls(actor, call, *fate)));
                if state.deaths > 0 && actor != OPERATOR {
                    actions.push(Step::Dies(actor));
                }
            }
        }
        for id in 0..REQUESTS {
            if state.requests[id] == Request::Absent {
                actions.push(Step::Other(Event::Asks(id)));
            }
            if self.may_age && state.markers[id].is_there() && !state.is_old[id] {
                actions.push(Step::Other(Event::Ages(id)));
            }
            let is_open = matches!(state.records[id].content(), Some(Record::Open(_)));
            if is_open && state.cancels > 0 && state.operator == Cancel::Rests {
                actions.push(Step::Other(Event::Cancels(id)));
            }
        }
        if state.run == Run::Rests && state.markers.iter().any(Stored::is_there) {
            actions.push(Step::Other(Event::Runs));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Step::Calls(actor, _, fate) => {
                if fate != Fate::Answered {
                    state.faults -= 1;
                    state.harm += 1;
                }
                match actor {
                    WAKE => self.wake_calls(&mut state, fate),
                    OPERATOR => Self::operator_calls(&mut state, fate),
                    id => self.request_calls(&mut state, id, fate),
                }
            }
            Step::Dies(WAKE) => {
                state.deaths -= 1;
                state.harm += 1;
                state.run = Run::Rests;
            }
            Step::Dies(id) => {
                state.deaths -= 1;
                state.harm += 1;
                state.requests[id] = Request::Dead;
            }
            Step::Other(Event::Asks(id)) => {
                for other in 0..REQUESTS {
                    let record = state.records[other].content();
                    let has_ended = matches!(record, Some(Record::Done | Record::Cancelled));
                    state.ended_before[id][other] = has_ended;
                }
                state.requests[id] = match self.variant {
                    Variant::NoMarkerFirst => {
                        Request::Opens(Opening::PutsClaim(Condition::IfAbsent))
                    }
                    _ => Request::Marks,
                };
            }
            Step::Other(Event::Ages(id)) => state.is_old[id] = true,
            Step::Other(Event::Runs) => state.run = Run::Lists,
            Step::Other(Event::Cancels(id)) => {
                state.cancels -= 1;
                state.operator = Cancel::Looks(id);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always("a selection has one open replay", |_, state: &State| {
                Self::open(state) <= 1
            }),
            Property::always(
                "who is answered with a replay finds it",
                |_, state: &State| {
                    let answers = state.requests.iter();
                    answers.into_iter().all(|request| match request {
                        Request::Answered(id) => state.records[*id].is_there(),
                        _ => true,
                    })
                },
            ),
            Property::always(
                "a replay that is done has sent every letter",
                |_, state: &State| {
                    let done = state
                        .records
                        .iter()
                        .any(|it| it.content() == Some(&Record::Done));
                    !done || state.sent.iter().all(|sent| *sent > 0)
                },
            ),
            Property::always(
                "a letter is sent once for each replay",
                |_, state: &State| {
                    let most = Self::begun(state) + usize::from(state.harm);
                    state.sent.iter().all(|sent| usize::from(*sent) <= most)
                },
            ),
            Property::always("two requests at once are one replay", |_, state: &State| {
                Self::begun(state) < REQUESTS
                    || state.ended_before[0][1]
                    || state.ended_before[1][0]
            }),
            // Looked at where nobody is in the middle of something: all else leads there.
            Property::always(
                "all comes to rest from everywhere",
                |model: &Self, state: &State| !model.is_quiet(state) || model.comes_to_rest(state),
            ),
            Property::sometimes(
                "a second request is answered with the first",
                |_, state: &State| {
                    state.requests.contains(&Request::Answered(0))
                        && state.requests[1] == Request::Answered(0)
                },
            ),
            Property::sometimes(
                "a selection is replayed again after its end",
                |_, state: &State| {
                    state.ended_before[1][0] && state.records[1].content() == Some(&Record::Done)
                },
            ),
        ];
        if self.deaths > 0 {
            all.push(Property::sometimes(
                "wake begins what a request left",
                |_, state: &State| {
                    let mut records = state.records.iter();
                    state.was_left
                        && state.harm == 1
                        && records.any(|it| it.content() == Some(&Record::Done))
                },
            ));
        }
        if self.faults + self.deaths > 0 {
            all.push(Property::sometimes(
                "a fault or a death makes a copy",
                |_, state: &State| Self::begun(state) == 1 && state.sent.contains(&2),
            ));
        }
        if self.cancels > 0 {
            all.push(Property::sometimes(
                "a replay is cancelled in the middle",
                |_, state: &State| {
                    state.records[0].content() == Some(&Record::Cancelled) && state.sent[0] == 1
                },
            ));
        }
        all
    }
}
