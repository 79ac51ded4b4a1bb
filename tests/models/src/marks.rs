//! The mark of an outage: deadletter counts letters in it, wake begins a replay for it, and ends it
//! in two steps, as a store deletes without a condition.
//!
//! From `functions/deadletter/src/outage.rs`, `functions/wake/src/jobs/recovery/step.rs` with
//! `marked.rs` beside it, and `functions/wake/src/jobs/replays`. What a mark says is the code's own:
//! `core::release::recovery::OutageLetters` and `core::stored::RecoveryMark::next_step`. How the replay is
//! opened and carried out is the model `replay`; here it is one write and one send. Time is in
//! minutes.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::model::{
    RecoveryPolicy, SubscriptionCreation, SubscriptionName, Timestamp, TopicName,
};
use posthaste_core::release::recovery::{OutageLetters, RecoveryFacts, RecoveryStep};
use posthaste_core::stored::{RecoveryJob, RecoveryMark, ReplayRecord};
use stateright::{Model, Property};

use crate::slots::Shown;
use crate::step::{Actor, Call, Condition, Fate, Step, Version};
use crate::stored::{Stored, Written};

/// The invocations of deadletter. Each writes one letter.
pub const WRITERS: usize = 2;

/// wake.
pub const WAKE: Actor = WRITERS;

/// 2026-11-21T10:00:00Z, at which the outage began.
const OUTAGE: Timestamp = Timestamp::from_millis(1_795_255_200_000);

/// The runs of wake between two looks at the clock. They are a minute apart, so that not all of them
/// happen at one time.
const RUNS_AT_ONCE: u8 = 3;

/// The time for which an endpoint must have been well (`recoverAfter`).
const RECOVER_AFTER: Duration = Duration::from_mins(5);

/// The minutes before a replay began whose letters the next one may send again (`QUIET` in
/// `core/src/release/recovery/step.rs`).
const QUIET: u32 = 2;

const POLICY: RecoveryPolicy = RecoveryPolicy {
    enabled: true,
    within: Duration::from_hours(14 * 24),
    rate_per_second: 50,
};

/// An object that they read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// An object of dead letters.
    Letter(usize),
    /// All of them.
    Letters,
    /// `recovery/{topic}.{subscription}`.
    Mark,
    /// `replays/{id}`, by the number of the replay.
    Record(usize),
    /// The deliveries queue.
    Deliveries,
}

/// A step that is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// So many minutes pass.
    Passes(u32),
    /// An event is given up.
    IsGivenUp(Actor),
    /// The endpoint is well again.
    Recovers,
    /// A run of wake begins.
    Runs,
    /// An operator cancels the replay.
    Cancels,
}

/// A step.
pub type Action = Step<Key, Event>;

/// The minutes that may pass at once: one, more than a recovery waits for, and more than what was
/// sent is on its way.
pub const MINUTES: [u32; 3] = [1, 6, 37 * 60];

/// The protocol, or one that lacks a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As the code has it.
    Code,
    /// Marks are put without a condition.
    PutWithoutMatch,
    /// A mark is deleted without saying first that it has ended.
    DeletesAtOnce,
    /// A mark ends with its recovery.
    EndsWithRecovery,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Marks {
    /// The protocol.
    pub variant: Variant,
    /// The number of times that each of [`MINUTES`] may pass.
    pub times: [u8; 3],
    /// The calls that may fail.
    pub faults: u8,
    /// The actors that may die.
    pub deaths: u8,
    /// The replays that may be cancelled.
    pub cancels: u8,
}

/// A letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Letter {
    written: u32,
    /// The number of times that it was sent.
    pub sent: u8,
}

/// An invocation of deadletter.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Writer {
    Absent,
    WritesLetter,
    LooksAtMark,
    WritesMark {
        next: Shown<RecoveryMark>,
        condition: Condition,
    },
    /// A message says that its letter is not counted yet. It comes after this minute.
    Waits(u32),
    Done,
}

/// A run of wake.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Run {
    Rests,
    LooksAtMark,
    LooksAtRecord(Shown<RecoveryMark>, Version, usize),
    SavesMark {
        next: Shown<RecoveryMark>,
        version: Version,
        then: Then,
    },
    Deletes,
    Opens(usize),
    Lists(usize),
    Sends(usize, Vec<(usize, usize)>),
    Finishes(usize),
}

/// The step that follows a mark that was written.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Then {
    Rests,
    Deletes,
    Begins,
    Opens(usize),
    Runs(usize),
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct State {
    now: u32,
    times: [u8; 3],
    mark: Stored<Shown<RecoveryMark>>,
    records: Vec<Stored<Shown<ReplayRecord>>>,
    /// The letters, by their writer.
    pub letters: [Vec<Letter>; WRITERS],
    writers: [Writer; WRITERS],
    run: Run,
    runs: u8,
    is_well: bool,
    faults: u8,
    deaths: u8,
    cancels: u8,
    harm: u8,
    /// Whether a letter was counted after a replay had ended.
    came_late: bool,
    had_ended: bool,
    cancelled: bool,
}

fn at(minute: u32) -> Timestamp {
    OUTAGE + Duration::from_mins(u64::from(minute))
}

fn minute(at: Timestamp) -> u32 {
    u32::try_from(at.since(OUTAGE).as_secs() / 60).unwrap_or(u32::MAX)
}

fn topic() -> TopicName {
    TopicName::parse("orders").unwrap_or_else(|_| unreachable!("it is a name"))
}

fn subscription() -> SubscriptionName {
    SubscriptionName::parse("billing").unwrap_or_else(|_| unreachable!("it is a name"))
}

fn outage_letters(now: u32) -> OutageLetters {
    OutageLetters {
        topic: topic(),
        subscription: subscription(),
        identity: None,
        accepted_at: OUTAGE,
        outages: BTreeMap::from([(OUTAGE, 1)]),
        written_at: at(now),
    }
}

fn number_of(job: &RecoveryJob) -> usize {
    job.id.parse().unwrap_or_default()
}

impl Marks {
    /// The model of the code.
    pub fn of_the_code() -> Self {
        Self {
            variant: Variant::Code,
            times: [0, 2, 0],
            faults: 0,
            deaths: 0,
            cancels: 0,
        }
    }

    fn condition(&self, condition: Condition) -> Condition {
        match self.variant {
            Variant::PutWithoutMatch => Condition::Always,
            _ => condition,
        }
    }

    fn next_call(&self, state: &State, actor: Actor) -> Option<Call<Key>> {
        if actor < WRITERS {
            return match &state.writers[actor] {
                Writer::Absent | Writer::Done | Writer::Waits(_) => None,
                Writer::WritesLetter => Some(Call::Put(Key::Letter(actor))),
                Writer::LooksAtMark => Some(Call::Get(Key::Mark)),
                Writer::WritesMark { condition, .. } => {
                    Some(Call::put(Key::Mark, self.condition(*condition)))
                }
            };
        }
        Some(match &state.run {
            Run::Rests => return None,
            Run::LooksAtMark => Call::Get(Key::Mark),
            Run::LooksAtRecord(_, _, job) => Call::Get(Key::Record(*job)),
            Run::SavesMark { version, .. } => {
                Call::put(Key::Mark, self.condition(Condition::IfMatch(*version)))
            }
            Run::Deletes => Call::Delete(Key::Mark),
            Run::Opens(job) => Call::PutIfAbsent(Key::Record(*job)),
            Run::Lists(_) => Call::List(Key::Letters),
            Run::Sends(..) => Call::Send(Key::Deliveries),
            Run::Finishes(job) => Call::PutIfMatch(Key::Record(*job)),
        })
    }

    fn writer_calls(&self, state: &mut State, writer: Actor, fate: Fate) {
        let is_answered = fate == Fate::Answered;
        let next = match state.writers[writer].clone() {
            Writer::WritesLetter => {
                if fate != Fate::NotMade {
                    let written = state.now;
                    state.letters[writer].push(Letter { written, sent: 0 });
                }
                if is_answered {
                    Writer::LooksAtMark
                } else {
                    // The message comes again, and its letter is written once more.
                    Writer::WritesLetter
                }
            }
            Writer::LooksAtMark if is_answered => {
                let found = state.mark.content().map(|mark| mark.0.clone());
                match outage_letters(state.now).updated_mark(found) {
                    Ok(Some(next)) => Writer::WritesMark {
                        next: Shown(next),
                        condition: state.mark.unchanged(),
                    },
                    Ok(None) => Writer::Done,
                    Err(_) => Writer::Waits(state.now),
                }
            }
            Writer::LooksAtMark => Writer::Waits(state.now),
            Writer::WritesMark { next, condition } => {
                match state.mark.put(next, self.condition(condition), fate) {
                    Written::As(_) => {
                        state.came_late |= state.had_ended;
                        Writer::Done
                    }
                    Written::Refused => Writer::LooksAtMark,
                    Written::Unknown => Writer::Waits(state.now),
                }
            }
            other => other,
        };
        state.writers[writer] = next;
    }

    fn wake_calls(&self, state: &mut State, fate: Fate) {
        let is_answered = fate == Fate::Answered;
        let next = match state.run.clone() {
            Run::LooksAtMark if is_answered => match state.mark.get() {
                None => Run::Rests,
                Some((mark, version)) => match mark.0.job.as_ref().map(number_of) {
                    Some(job) => Run::LooksAtRecord(mark, version, job),
                    None => self.steps(state, &mark.0, version, None),
                },
            },
            Run::LooksAtRecord(mark, version, job) if is_answered => {
                let record = state.records.get(job).and_then(Stored::content);
                let record = record.map(|record| record.0.clone());
                self.steps(state, &mark.0, version, record.as_ref())
            }
            Run::SavesMark {
                next,
                version,
                then,
            } => self.saves(state, (next, version), then, fate),
            Run::Deletes => {
                state.mark.delete(fate);
                Run::Rests
            }
            Run::Opens(job) => self.opens(state, job, fate),
            Run::Lists(job) if is_answered => {
                let selected = Self::selected(state, job);
                if selected.is_empty() {
                    Run::Finishes(job)
                } else {
                    Run::Sends(job, selected)
                }
            }
            Run::Sends(job, selected) => {
                if fate != Fate::NotMade {
                    for (writer, index) in selected {
                        state.letters[writer][index].sent += 1;
                    }
                }
                if is_answered {
                    Run::Finishes(job)
                } else {
                    Run::Rests
                }
            }
            Run::Finishes(job) => {
                let now = at(state.now);
                let record = &mut state.records[job];
                let done = record.content().map(|it| it.0.clone());
                let done = done.filter(|it| !it.has_ended());
                if let Some(done) = done {
                    let done = done.with_state(ReplayState::Done, None, now);
                    let condition = record.unchanged();
                    record.put(Shown(done), condition, fate);
                    state.had_ended = true;
                }
                Run::Rests
            }
            Run::LooksAtMark | Run::LooksAtRecord(..) | Run::Lists(_) | Run::Rests => Run::Rests,
        };
        state.run = next;
    }

    /// `take_step` in `functions/wake/src/jobs/recovery/step.rs`.
    fn steps(
        &self,
        state: &mut State,
        mark: &RecoveryMark,
        version: Version,
        record: Option<&ReplayRecord>,
    ) -> Run {
        let facts = RecoveryFacts {
            policy: Some(POLICY),
            is_well: state.is_well,
            is_unprobed: false,
            job: record,
            recover_after: RECOVER_AFTER,
            now: at(state.now),
        };
        let (next, step) = mark.clone().next_step(&facts);
        let has_recovered = next.is_empty() && !mark.is_empty();
        let job = next.job.as_ref().map(number_of).unwrap_or_default();
        let then = match step {
            RecoveryStep::Idle if has_recovered && self.variant == Variant::EndsWithRecovery => {
                Then::Deletes
            }
            RecoveryStep::Ends if self.variant == Variant::DeletesAtOnce => return Run::Deletes,
            RecoveryStep::Ends => Then::Deletes,
            RecoveryStep::Begins => Then::Begins,
            RecoveryStep::Opens => Then::Opens(job),
            RecoveryStep::Runs => Then::Runs(job),
            RecoveryStep::Idle
            | RecoveryStep::Waits
            | RecoveryStep::Rests
            | RecoveryStep::Probes => Then::Rests,
        };
        if next == *mark && then == Then::Begins {
            return Self::names(state, next, version);
        }
        if next == *mark {
            return self.goes_on(then);
        }
        Run::SavesMark {
            next: Shown(next),
            version,
            then,
        }
    }

    fn goes_on(&self, then: Then) -> Run {
        match then {
            Then::Rests | Then::Begins => Run::Rests,
            Then::Deletes => Run::Deletes,
            Then::Opens(job) => Run::Opens(job),
            Then::Runs(job) => Run::Lists(job),
        }
    }

    fn saves(
        &self,
        state: &mut State,
        (next, version): (Shown<RecoveryMark>, Version),
        then: Then,
        fate: Fate,
    ) -> Run {
        let condition = self.condition(Condition::IfMatch(version));
        let Written::As(version) = state.mark.put(next.clone(), condition, fate) else {
            return Run::Rests;
        };
        if then == Then::Begins {
            Self::names(state, next.0, version)
        } else {
            self.goes_on(then)
        }
    }

    /// The mark names the replay before that is opened.
    fn names(state: &mut State, mark: RecoveryMark, version: Version) -> Run {
        let number = state.records.len();
        state.records.push(Stored::default());
        let named = RecoveryMark {
            job: Some(RecoveryJob {
                id: number.to_string(),
                created_at: at(state.now),
            }),
            ..mark
        };
        Run::SavesMark {
            next: Shown(named),
            version,
            then: Then::Opens(number),
        }
    }

    fn opens(&self, state: &mut State, number: usize, fate: Fate) -> Run {
        let Some(mark) = state.mark.content().map(|mark| mark.0.clone()) else {
            return Run::Rests;
        };
        let job = mark.job.clone().unwrap_or(RecoveryJob {
            id: number.to_string(),
            created_at: at(state.now),
        });
        let created = SubscriptionCreation {
            topic: None,
            subscription: None,
            topic_at: OUTAGE,
        };
        let record = mark.replay_record(&job, &created, POLICY);
        let record = state.records[number].put(Shown(record), Condition::IfAbsent, fate);
        match record {
            // The next run sends: it knows whether the endpoint is well.
            Written::As(_) | Written::Refused => Run::Lists(number),
            Written::Unknown => Run::Rests,
        }
    }

    /// The letters that a replay sends: those of its time, and of outages that nobody cancelled.
    fn selected(state: &State, job: usize) -> Vec<(usize, usize)> {
        let Some(record) = state.records[job].content().map(|it| &it.0) else {
            return Vec::new();
        };
        let is_cancelled = record
            .recovery
            .as_ref()
            .and_then(|origin| origin.cancelled_at)
            .is_some_and(|cancelled_at| OUTAGE <= cancelled_at);
        let from = record.request.from.as_ref().map_or(0, |from| match from {
            posthaste_core::model::WrittenTime::At(from) => minute(*from),
            _ => 0,
        });
        let until = minute(record.created_at);
        let is_selected =
            |letter: &Letter| !is_cancelled && (from..until).contains(&letter.written);
        let mut selected = Vec::new();
        for (writer, letters) in state.letters.iter().enumerate() {
            let own = letters.iter().enumerate();
            let own = own.filter(|(_, letter)| is_selected(letter));
            selected.extend(own.map(|(index, _)| (writer, index)));
        }
        selected
    }

    /// A step towards rest without a fault, where there is one.
    fn fair_step(&self, state: &State) -> Option<Action> {
        let mut actors = (0..=WAKE).filter_map(|actor| {
            let call = self.next_call(state, actor)?;
            Some(Step::Calls(actor, call, Fate::Answered))
        });
        actors.next()
    }

    /// Whether every letter is sent from here, if nothing fails any more and the endpoint is well.
    fn recovers(&self, state: &State) -> bool {
        const RUNS_MAX: usize = 6;
        const STEPS_MAX: usize = 50;
        let mut state = State {
            is_well: true,
            ..state.clone()
        };
        let go_on = |state: &mut State| {
            for _ in 0..STEPS_MAX {
                let next = self.fair_step(state);
                let Some(next) = next.and_then(|step| self.next_state(state, step)) else {
                    return;
                };
                *state = next;
            }
        };
        for _ in 0..RUNS_MAX {
            go_on(&mut state);
            if Self::is_sent(&state) {
                return true;
            }
            state.now += MINUTES[1];
            for writer in &mut state.writers {
                if matches!(writer, Writer::Waits(_)) {
                    *writer = Writer::LooksAtMark;
                }
            }
            go_on(&mut state);
            state.run = Run::LooksAtMark;
        }
        false
    }

    fn is_sent(state: &State) -> bool {
        let writers = state.writers.iter();
        let are_done = writers
            .clone()
            .all(|writer| matches!(writer, Writer::Absent | Writer::Done));
        are_done && state.letters.iter().flatten().all(|it| it.sent > 0)
    }

    /// Whether nobody is in the middle of something.
    fn is_quiet(state: &State) -> bool {
        let writers = state.writers.iter();
        let mut writers = writers.map(|writer| {
            matches!(
                writer,
                Writer::Absent | Writer::Done | Writer::Waits(_) | Writer::LooksAtMark
            )
        });
        state.run == Run::Rests && writers.all(|is_quiet| is_quiet)
    }

    /// Whether the next replay may have sent a letter once more, because it was written right before
    /// one began.
    fn may_be_in_two(state: &State, letter: Letter) -> bool {
        let records = state.records.iter().filter_map(Stored::content);
        let mut begun = records.map(|record| minute(record.0.created_at));
        begun.any(|at| letter.written < at && letter.written + QUIET >= at)
    }
}

impl Model for Marks {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 60,
            times: self.times,
            mark: Stored::default(),
            records: Vec::new(),
            letters: [Vec::new(), Vec::new()],
            writers: [Writer::Absent, Writer::Absent],
            run: Run::Rests,
            runs: 0,
            is_well: false,
            faults: self.faults,
            deaths: self.deaths,
            cancels: self.cancels,
            harm: 0,
            came_late: false,
            had_ended: false,
            cancelled: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for actor in 0..=WAKE {
            if let Some(call) = self.next_call(state, actor) {
                let fates = call.fates(state.faults > 0);
                actions.extend(fates.iter().map(|fate| Step::Calls(actor, call, *fate)));
                if state.deaths > 0 {
                    actions.push(Step::Dies(actor));
                }
            }
        }
        for writer in 0..WRITERS {
            // The letters are alike, so that the first is given up first.
            let is_first = writer == 0 || state.writers[writer - 1] != Writer::Absent;
            if state.writers[writer] == Writer::Absent && is_first {
                actions.push(Step::Other(Event::IsGivenUp(writer)));
            }
        }
        if !state.is_well {
            actions.push(Step::Other(Event::Recovers));
        }
        if state.run == Run::Rests && state.mark.is_there() && state.runs < RUNS_AT_ONCE {
            actions.push(Step::Other(Event::Runs));
        }
        let open = state.records.iter().filter_map(Stored::content);
        if state.cancels > 0 && open.clone().any(|it| !it.0.has_ended()) {
            actions.push(Step::Other(Event::Cancels));
        }
        for (index, minutes) in MINUTES.into_iter().enumerate() {
            // No call takes a minute.
            if state.times[index] > 0 && Self::is_quiet(state) {
                actions.push(Step::Other(Event::Passes(minutes)));
            }
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
                if actor == WAKE {
                    self.wake_calls(&mut state, fate);
                } else {
                    self.writer_calls(&mut state, actor, fate);
                }
            }
            Step::Dies(actor) => {
                state.deaths -= 1;
                state.harm += 1;
                if actor == WAKE {
                    state.run = Run::Rests;
                } else {
                    // Its message comes again, and its letter is written once more.
                    state.writers[actor] = Writer::WritesLetter;
                }
            }
            Step::Other(Event::Passes(minutes)) => {
                state.now += minutes;
                state.runs = 0;
                let index = MINUTES.iter().position(|it| *it == minutes)?;
                state.times[index] -= 1;
                for writer in &mut state.writers {
                    if matches!(writer, Writer::Waits(_)) {
                        *writer = Writer::LooksAtMark;
                    }
                }
            }
            Step::Other(Event::IsGivenUp(writer)) => state.writers[writer] = Writer::WritesLetter,
            Step::Other(Event::Recovers) => state.is_well = true,
            Step::Other(Event::Runs) => {
                state.runs += 1;
                state.run = Run::LooksAtMark;
            }
            Step::Other(Event::Cancels) => {
                state.cancels -= 1;
                state.cancelled = true;
                let now = at(state.now);
                for record in &mut state.records {
                    let open = record.content().filter(|it| !it.0.has_ended()).cloned();
                    if let Some(Shown(open)) = open {
                        let reason = Some(ReplayReason::Requested);
                        let cancelled = open.with_state(ReplayState::Cancelled, reason, now);
                        record.put(Shown(cancelled), Condition::Always, Fate::Answered);
                    }
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(
                "every letter is recovered in the end",
                |model: &Self, state: &State| {
                    state.cancelled || !Self::is_quiet(state) || model.recovers(state)
                },
            ),
            Property::always(
                "a letter is sent once, and once more for each fault",
                |_, state: &State| {
                    state.letters.iter().flatten().all(|letter| {
                        let more = state.harm + u8::from(Self::may_be_in_two(state, *letter));
                        letter.sent <= 1 + more
                    })
                },
            ),
            Property::sometimes("two letters are recovered", |_, state: &State| {
                state
                    .letters
                    .iter()
                    .all(|of| of.iter().any(|it| it.sent > 0))
            }),
        ];
        if self.times[1] > 1 && self.cancels == 0 {
            all.push(Property::sometimes(
                "a letter that comes after its outage was recovered is sent alone",
                |_, state: &State| {
                    state.came_late
                        && state.records.len() == 2
                        && state
                            .letters
                            .iter()
                            .all(|of| of.len() == 1 && of[0].sent == 1)
                },
            ));
        }
        if self.times[2] > 0 {
            all.push(Property::sometimes("a mark ends", |_, state: &State| {
                state.had_ended && !state.mark.is_there()
            }));
        }
        if self.cancels > 0 {
            all.push(Property::sometimes(
                "what was cancelled is not sent",
                |_, state: &State| {
                    let mark = state.mark.content();
                    mark.is_some_and(|it| it.0.cancelled_at.is_some() && it.0.letters == 0)
                        && state.letters.iter().flatten().all(|it| it.sent == 0)
                },
            ));
        }
        all
    }
}
