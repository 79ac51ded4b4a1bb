//! The one checker of histories: what must hold of every run, whatever happened in it.
//!
//! A rule that does not hold after something went wrong names that as an [`Excuse`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use posthaste_testkit::Trick;
use serde_json::Value;

use crate::course::{Behaviour, Course, Place};
use crate::endpoint::{End, Seen};
use crate::history::{History, Life, PublishedEvent, State, name};

/// The time to live of events where nothing says another.
const LIFE: Duration = Duration::from_hours(24);

/// The attempts of a delivery where nothing says another number.
const ATTEMPTS_MAX: usize = 30;

/// The time after its time in which a scheduled event is released: wake runs once a minute.
const RELEASED_WITHIN: Duration = Duration::from_mins(3);

/// The time in which a subscription is disabled whose endpoint is gone: on AWS by wake.
const DISABLED_WITHIN: Duration = Duration::from_secs(150);

/// The longest time from the answer to a producer to the arrival at an endpoint that is well, where
/// no other subscription of its host fails. On AWS an invocation lasts as long as its slowest
/// request, and two late ones are needed before a target has a lane of its own.
const PROMPT_SERVE: Duration = Duration::from_secs(15);
const PROMPT_AWS: Duration = Duration::from_mins(5);

/// The longest time from the answer to a producer to the arrival when all is well again. A rate of
/// two a minute needs some of it.
const ALIVE: Duration = Duration::from_mins(3);

/// A rule: the name of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// When all is well, everything comes to rest.
    Rest,
    /// Endpoints get what was published, and what their subscriptions want.
    Wanted,
    /// An accepted event has an end.
    End,
    /// It has one end, not two.
    OneEnd,
    /// The log tells the end that the endpoint saw.
    Told,
    /// The log has each attempt.
    Attempts,
    /// Nothing is sent before its time.
    Early,
    /// Nothing is sent after its life.
    Expired,
    /// What has arrived is not sent again.
    Repeated,
    /// An event has one `webhook-id`.
    WebhookId,
    /// An event is tried no more often than its subscription allows.
    TooOften,
    /// No request begins by settings that were changed.
    Changed,
    /// No request begins for a subscription that was stopped.
    Stopped,
    /// No subscription gets requests faster than its rate.
    Rate,
    /// No subscription has more requests open than it allows.
    AtOnce,
    /// Who is well is not delayed by others.
    Prompt,
    /// When all is well again, what is published arrives soon.
    Alive,
    /// At the end the API shows that all is well.
    Shown,
    /// The audit trail has each change, and no other.
    Audit,
    /// Nothing is kept for ever.
    Growth,
}

/// A reason for which a rule may not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excuse {
    /// A process was killed: what it had under way is done again, by another one.
    Killed,
    /// A call of a port failed, or its answer was lost.
    Fault,
    /// The queue or the store misbehaved.
    Trick,
    /// The clock of the machine was set back: times of day before and after cannot be compared.
    SetBack,
    /// A process ended in order: it may have waited for open requests.
    Restarted,
    /// Records of the delivery log could not be sent: it never stops deliveries, and counts what it
    /// lost (`LogRecordsLostCount`). On AWS health and what waits are known from records.
    RecordsLost,
    /// Topics could not be read, so that their last good copies stayed in use.
    Unreadable,
}

/// What the API tells of an event of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) reason: String,
    pub(crate) attempts: usize,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) reason: String,
    pub(crate) is_resolved: bool,
}

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Audited {
    pub(crate) action: String,
    pub(crate) name: String,
    pub(crate) outcome: String,
    pub(crate) actor: String,
}

/// What was found at the end of a run.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// What still waits, in words.
    pub(crate) waits: Vec<String>,
    /// The events that the API was asked for.
    pub(crate) asked: BTreeSet<String>,
    pub(crate) told: Vec<Told>,
    pub(crate) letters: Vec<Letter>,
    /// The subscriptions by their numbers, as the API shows them.
    pub(crate) shown: Vec<(u8, Value)>,
    pub(crate) audit: Vec<Audited>,
    /// Objects that are there many days later, and should not be.
    pub(crate) left: Vec<String>,
}

/// Whether a subscription gets an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Yes,
    No,
    /// It was made, changed or stopped at the time.
    Maybe,
}

/// What is wrong with a run; nothing if all holds.
pub(crate) fn faults_of(course: &Course, history: &History, ends: &Ends) -> Vec<String> {
    let mut check = Check {
        course,
        history,
        ends,
        excuses: excuses(history),
        faults: Vec::new(),
    };
    if !ends.waits.is_empty() {
        check.fail(
            Rule::Rest,
            format!("all has been well for days, and there are {:?}", ends.waits),
        );
    }
    if !ends.left.is_empty() {
        check.fail(
            Rule::Growth,
            format!("many days later there are {:?}", ends.left),
        );
    }
    check.known();
    for life in &history.lives {
        let of_life = |seen: &&Seen| seen.name == life.name() && seen.life == life.number;
        let seen: Vec<_> = history.seen.iter().filter(of_life).collect();
        for event in &history.events {
            let has_it = |it: &&&Seen| it.ids.contains(&event.id);
            let of_event: Vec<_> = seen.iter().filter(has_it).copied().collect();
            check.event(&Case {
                life,
                event,
                seen: of_event,
            });
        }
        check.changed(life, &seen);
        check.stopped(life, &seen);
        check.rate(life, &seen);
        check.at_once(life, &seen);
    }
    check.shown();
    check.audit();
    check.faults
}

/// The excuses that hold for the whole run.
fn excuses(history: &History) -> Vec<Excuse> {
    let mut excuses = Vec::new();
    let mut add = |excuse, is_there| {
        if is_there {
            excuses.push(excuse);
        }
    };
    let throttled = history.tricks.contains_key(&Trick::Throttle);
    add(Excuse::Killed, history.kills > 0);
    add(Excuse::Fault, history.faults > 0);
    let mut played = history.tricks.keys();
    let has_harm = played.any(|trick| !HARMLESS.contains(trick));
    add(Excuse::Trick, has_harm);
    add(Excuse::SetBack, history.set_backs > 0);
    add(Excuse::Restarted, history.restarts > 0);
    let unsent = [Trick::PartialBatch, Trick::LoseAnswer, Trick::Throttle];
    let is_unsent = unsent
        .iter()
        .any(|trick| history.tricks.contains_key(trick));
    add(Excuse::RecordsLost, is_unsent || history.faults > 0);
    add(Excuse::Unreadable, throttled || history.faults > 0);
    excuses
}

/// The number of times that something went wrong by which a request may come again.
fn troubles(history: &History) -> usize {
    let played = history
        .tricks
        .iter()
        .filter(|(trick, _)| !HARMLESS.contains(trick));
    let played: u64 = played.map(|(_, times)| times).sum();
    let all = history.kills + history.faults + history.set_backs + played;
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// Neither another order nor counts of before make anything come again.
const HARMLESS: [Trick; 2] = [Trick::Reorder, Trick::LagCounts];

/// What makes a request come again.
const AGAIN: [Excuse; 4] = [
    Excuse::Killed,
    Excuse::Fault,
    Excuse::Trick,
    Excuse::SetBack,
];

/// An event of a subscription.
struct Case<'a> {
    life: &'a Life,
    event: &'a PublishedEvent,
    /// The requests that had it.
    seen: Vec<&'a Seen>,
}

impl Case<'_> {
    fn is_taken(&self) -> bool {
        self.seen.iter().any(|it| it.is_taken())
    }

    fn is_taken_somehow(&self) -> bool {
        self.seen.iter().any(|it| it.is_taken_somehow())
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} ({})",
            self.event.id,
            self.life.name(),
            self.life.number
        )
    }
}

struct Check<'a> {
    course: &'a Course,
    history: &'a History,
    ends: &'a Ends,
    excuses: Vec<Excuse>,
    faults: Vec<String>,
}

impl Check<'_> {
    fn fail(&mut self, rule: Rule, text: impl fmt::Display) {
        self.faults.push(format!("{rule:?}: {text}"));
    }

    fn is_excused(&self, by: &[Excuse]) -> bool {
        by.iter().any(|excuse| self.excuses.contains(excuse))
    }

    fn slack(&self) -> Duration {
        self.course.world.place.topic_max_age()
    }

    /// Endpoints get nothing that nobody published, and for no subscription that there never was.
    fn known(&mut self) {
        let known: BTreeSet<_> = self
            .history
            .events
            .iter()
            .map(|it| it.id.as_str())
            .collect();
        for seen in &self.history.seen {
            let unknown = seen.ids.iter().find(|id| !known.contains(id.as_str()));
            if unknown.is_some() || seen.ids.is_empty() {
                self.fail(
                    Rule::Wanted,
                    format!("nobody published {unknown:?} of {seen:?}"),
                );
            }
            if self.history.life_of(seen).is_none() {
                self.fail(Rule::Wanted, format!("nobody subscribed for {seen:?}"));
            }
        }
    }

    fn event(&mut self, case: &Case<'_>) {
        let wants = self.wants(case.life, case.event);
        if wants == Wants::No {
            if !case.seen.is_empty() {
                self.fail(Rule::Wanted, format!("{case} was sent: {:?}", case.seen));
            }
            return;
        }
        let is_refused = case
            .event
            .status
            .is_some_and(|status| (400..500).contains(&status));
        if is_refused && !case.seen.is_empty() {
            self.fail(
                Rule::Wanted,
                format!("{case} was refused, and sent: {:?}", case.seen),
            );
        }
        if wants == Wants::Yes && case.event.is_accepted() {
            self.end(case);
            self.told(case);
            self.prompt(case);
            self.alive(case);
        }
        self.one_end(case);
        self.times(case);
        self.repeats(case);
    }

    /// Whether a subscription has to get an event.
    fn wants(&self, life: &Life, event: &PublishedEvent) -> Wants {
        let (asked, sure, slack) = (event.window.asked, event.window.sure, self.slack());
        let is_filtered = life.settings.is_filtered && event.kind != 0;
        let is_before = life.created.asked > sure;
        let is_after = life.deleted.is_some_and(|it| it.sure + slack < asked);
        if is_filtered || is_before || is_after {
            return Wants::No;
        }
        let is_new = life.created.sure + slack > asked;
        let is_going = life.deleted.is_some_and(|it| it.asked <= sure);
        let is_disabled = self
            .disabled(life)
            .iter()
            .any(|(from, to)| *from <= sure && asked <= *to + slack);
        // Those that are there from the beginning are known before anything is published.
        if (is_new && life.created.asked > Duration::ZERO) || is_going || is_disabled {
            Wants::Maybe
        } else {
            Wants::Yes
        }
    }

    /// The times in which a subscription may have been disabled.
    fn disabled(&self, life: &Life) -> Vec<(Duration, Duration)> {
        let ends_after = |from: Duration| {
            let enabled = life
                .states
                .iter()
                .find(|(state, window)| *state == State::Active && window.asked >= from);
            enabled.map_or(Duration::MAX / 2, |(_, window)| window.sure)
        };
        let asked = life.states.iter().filter(|it| it.0 == State::Disabled);
        let asked = asked.map(|(_, window)| window.asked);
        let gone = self.gone(life);
        asked
            .chain(gone)
            .map(|from| (from, ends_after(from)))
            .collect()
    }

    /// The times at which the endpoint of a subscription said that it is gone.
    fn gone(&self, life: &Life) -> Vec<Duration> {
        let is_of = |seen: &&Seen| {
            seen.name == life.name() && seen.life == life.number && !seen.is_fallback
        };
        let gone = self.history.seen.iter().filter(is_of);
        let gone = gone.filter(|seen| seen.end == End::Answered(410));
        gone.filter_map(|seen| seen.ended_at).collect()
    }

    fn letters<'b>(&'b self, case: &'b Case<'_>) -> impl Iterator<Item = &'b Letter> {
        let name = case.life.name();
        let letters = self.ends.letters.iter();
        letters.filter(move |it| it.id == case.event.id && it.name == name)
    }

    fn told_of<'b>(&'b self, case: &'b Case<'_>) -> impl Iterator<Item = &'b Told> {
        let name = case.life.name();
        let told = self.ends.told.iter();
        told.filter(move |it| it.id == case.event.id && it.name == name)
    }

    /// An accepted event arrives, or there is a dead letter, or it was dropped as asked.
    fn end(&mut self, case: &Case<'_>) {
        let settings = &case.life.settings;
        let may_be_dropped = settings.drops
            || settings.drops_expired
            || case.event.is_cancelled
            || !self.disabled(case.life).is_empty();
        let is_told_dropped = self.told_of(case).any(|it| it.state == "dropped");
        let is_told_arrived = self.told_of(case).any(|it| it.state == "delivered");
        // Who deletes dead letters has had them.
        let is_deleted = self
            .history
            .resolved
            .iter()
            .any(|(at, of)| *of == case.life.of && *at >= case.event.window.asked);
        let has_end = case.is_taken()
            || (case.is_taken_somehow() && is_told_arrived)
            || self.letters(case).next().is_some()
            || (may_be_dropped && is_told_dropped)
            || is_deleted;
        if !has_end {
            let told: Vec<_> = self.told_of(case).collect();
            let text = format!("{case} is lost: told {told:?}, sent {:?}", case.seen);
            self.fail(Rule::End, text);
        }
    }

    /// What has arrived is no dead letter too.
    fn one_end(&mut self, case: &Case<'_>) {
        let open = self
            .letters(case)
            .filter(|letter| !letter.is_resolved)
            .count();
        let is_sent_again = self.is_sent_again(case.life);
        let is_unheard = case
            .seen
            .iter()
            .any(|it| !it.is_taken() && it.is_taken_somehow());
        if is_sent_again || self.is_excused(&AGAIN) {
            return;
        }
        // A late answer that was heard takes the event out of the dead letters, where they wait.
        let is_heard = case
            .seen
            .iter()
            .any(|it| matches!(it.end, End::AnsweredLate(200..=204)));
        let waits = !case.life.settings.buries_at_once && !self.is_excused(&[Excuse::Restarted]);
        if is_heard && waits && open > 0 {
            let seen = &case.seen;
            self.fail(
                Rule::OneEnd,
                format!("{case} arrived late, and is a dead letter: {seen:?}"),
            );
        }
        if is_unheard {
            return;
        }
        if case.is_taken() && open > 0 {
            self.fail(
                Rule::OneEnd,
                format!("{case} has arrived, and is {open} dead letters"),
            );
        }
        if open > 1 {
            self.fail(Rule::OneEnd, format!("{case} is {open} dead letters"));
        }
    }

    fn is_sent_again(&self, life: &Life) -> bool {
        self.history.sent_again.iter().any(|(_, of)| *of == life.of)
    }

    /// The log tells what the endpoint saw.
    fn told(&mut self, case: &Case<'_>) {
        if !self.ends.asked.contains(&case.event.id) {
            return;
        }
        let told: Vec<_> = self.told_of(case).cloned().collect();
        let is_open =
            |told: &&Told| matches!(&*told.state, "pending" | "waiting" | "held" | "unknown");
        let may_lack = self.is_excused(&[Excuse::RecordsLost]);
        if told.is_empty() {
            if may_lack {
                return;
            }
            self.fail(Rule::Told, format!("of {case} nothing is told"));
            return;
        }
        let open: Vec<_> = told.iter().filter(is_open).collect();
        if !open.is_empty() && !may_lack {
            self.fail(Rule::Told, format!("{case} is told to wait: {open:?}"));
        }
        let is_told_arrived = told.iter().any(|it| it.state == "delivered");
        if case.is_taken() && !is_told_arrived && !self.is_excused(&AGAIN) {
            self.fail(Rule::Told, format!("{case} has arrived: {told:?}"));
        }
        if !case.is_taken_somehow() && is_told_arrived {
            self.fail(Rule::Told, format!("{case} has not arrived: {told:?}"));
        }
        let attempts: usize = told.iter().map(|it| it.attempts).sum();
        // The queue's own copy of an event may be in the same batch.
        let times = |seen: &&Seen| seen.ids.iter().filter(|id| **id == case.event.id).count();
        let seen: usize = case.seen.iter().map(times).sum();
        // A batch that is refused is sent again in halves within the same attempt.
        let numbers: BTreeSet<_> = case.seen.iter().map(|it| it.attempt).collect();
        let is_batched = case.life.settings.batch > 0;
        let least = if is_batched { numbers.len() } else { seen };
        // What a killed process had under way was seen and is not told.
        if attempts > seen || (attempts < least && !self.is_excused(&AGAIN)) {
            let text = format!("{case}: {attempts} are told, and seen: {:?}", case.seen);
            self.fail(Rule::Attempts, text);
        }
    }

    /// Nothing is sent before its time or after its life.
    fn times(&mut self, case: &Case<'_>) {
        if self.is_excused(&[Excuse::SetBack]) {
            return;
        }
        let event = case.event;
        let early = case
            .seen
            .iter()
            .find(|it| event.not_before.is_some_and(|time| it.day < time));
        if let Some(early) = early {
            self.fail(
                Rule::Early,
                format!("{case} was sent before its time: {early:?}"),
            );
        }
        let minutes = u64::from(case.life.settings.life);
        let of_life = if minutes > 0 {
            Duration::from_secs(minutes * 60)
        } else {
            LIFE
        };
        let life = event.life.map_or(of_life, |own| own.min(of_life));
        let end = match event.not_before {
            Some(time) if time > event.days.1 => time + RELEASED_WITHIN + life,
            _ => event.days.1 + life,
        };
        let late = case.seen.iter().find(|it| !it.is_replayed && it.day > end);
        if let Some(late) = late {
            self.fail(
                Rule::Expired,
                format!("{case} lived until {end}, and was sent: {late:?}"),
            );
        }
    }

    /// Nothing is sent more often than it must be, and each time with the same id.
    fn repeats(&mut self, case: &Case<'_>) {
        let is_batched = case.life.settings.batch > 0;
        let ids: BTreeSet<_> = case.seen.iter().map(|it| &it.webhook_id).collect();
        // A key that was used by a clock far ahead is free again (`IdempotencyRecord::decide`): then
        // a request that is repeated is another one.
        let is_new = self.is_excused(&[Excuse::SetBack]);
        if ids.len() > 1 && !is_batched && !is_new {
            self.fail(Rule::WebhookId, format!("{case} has several: {ids:?}"));
        }
        if self.is_sent_again(case.life) {
            return;
        }
        let troubles = troubles(self.history);
        let taken = case.seen.iter().enumerate().filter(|(_, it)| it.is_taken());
        let first = taken.min_by_key(|(_, it)| it.ended_at);
        if let Some((place, first)) = first {
            // A batch and its halves may be answered in the same moment, one after the other.
            let later = case.seen.iter().skip(place + 1);
            let again: Vec<_> = later.filter(|it| Some(it.at) >= first.ended_at).collect();
            if again.len() > troubles {
                let text =
                    format!("{case} had arrived by {first:?}, and was sent again: {again:?}");
                self.fail(Rule::Repeated, text);
            }
        }
        let tries = case.seen.iter().filter(|it| !it.is_replayed).count();
        let most = match case.life.settings.attempts {
            0 => ATTEMPTS_MAX,
            attempts => usize::from(attempts),
        };
        if tries > most.saturating_mul(1 + troubles) && !is_batched {
            self.fail(
                Rule::TooOften,
                format!("{case} was tried {tries} times: {:?}", case.seen),
            );
        }
    }

    /// Who is well is not delayed by others.
    fn prompt(&mut self, case: &Case<'_>) {
        let settings = &case.life.settings;
        let is_bounded = settings.rate > 0 || settings.at_once > 0;
        let is_later = case.event.not_before.is_some();
        let has_states = !case.life.states.is_empty();
        let of_host = |of: u8| self.course.subscribers[usize::from(of)].host == settings.host;
        let is_well = self
            .history
            .behaviours
            .iter()
            .all(|(_, of, like)| !of_host(*of) || *like == Behaviour::Well);
        let is_excused = self.is_excused(&AGAIN) || self.is_excused(&[Excuse::Restarted]);
        let is_excused = is_excused || self.course.world.has_pressure;
        if is_bounded || is_later || !is_well || is_excused || case.event.life.is_some() {
            return;
        }
        let is_stopped =
            has_states
                && case.life.states.iter().any(|(state, window)| {
                    *state != State::Active && window.asked > Duration::ZERO
                });
        if is_stopped || case.life.deleted.is_some() {
            return;
        }
        let bound = match self.course.world.place {
            Place::Serve => PROMPT_SERVE,
            Place::Aws => PROMPT_AWS,
        };
        let first = case
            .seen
            .iter()
            .filter(|it| it.is_taken())
            .map(|it| it.at)
            .min();
        let limit = case.event.window.sure + bound;
        if first.is_none_or(|first| first > limit) {
            let sure = case.event.window.sure;
            let text = format!("{case}, accepted at {sure:?}, arrived at {first:?}");
            self.fail(Rule::Prompt, text);
        }
    }

    /// What is published when all is well again arrives soon.
    fn alive(&mut self, case: &Case<'_>) {
        let last = self.history.events.get(self.history.last_from..);
        let is_last = last.is_some_and(|last| last.iter().any(|it| it.id == case.event.id));
        // A hold or a pause of before the clock was set back ends by as much later.
        let is_excused = self.is_excused(&[Excuse::SetBack]);
        if !is_last || is_excused || case.life.deleted.is_some() {
            return;
        }
        let sure = case.event.window.sure;
        let first = case
            .seen
            .iter()
            .filter(|it| it.is_taken())
            .map(|it| it.at)
            .min();
        if first.is_none_or(|first| first > sure + ALIVE) {
            let text = format!("{case}, accepted at {sure:?}, arrived at {first:?}");
            self.fail(Rule::Alive, text);
        }
    }

    /// No request begins by settings that were changed before.
    fn changed(&mut self, life: &Life, seen: &[&Seen]) {
        if self.is_excused(&[Excuse::Unreadable]) {
            return;
        }
        for seen in seen {
            let place = life.versions.iter().position(|it| it.0 == seen.version);
            let Some(place) = place else {
                self.fail(Rule::Changed, format!("there is no such version: {seen:?}"));
                continue;
            };
            let next = life.versions.get(place + 1);
            if let Some((next, window)) = next
                && seen.at > window.sure + self.slack()
            {
                let text = format!("version {next} is there since {:?}: {seen:?}", window.sure);
                self.fail(Rule::Changed, text);
            }
        }
    }

    /// No request begins for a subscription that is paused, disabled or deleted.
    fn stopped(&mut self, life: &Life, seen: &[&Seen]) {
        if self.is_excused(&[Excuse::Unreadable]) {
            return;
        }
        let mut stops = Vec::new();
        for (place, (state, window)) in life.states.iter().enumerate() {
            if *state != State::Active {
                let next = life.states.get(place + 1);
                let to = next.map_or(Duration::MAX, |it| it.1.asked);
                stops.push((window.sure + self.slack(), to, format!("{state:?}")));
            }
        }
        if let Some(window) = life.deleted {
            stops.push((
                window.sure + self.slack(),
                Duration::MAX,
                "Deleted".to_owned(),
            ));
        }
        for gone in self.gone(life) {
            let changes = life.states.iter().map(|it| it.1.asked);
            let writes = life.versions.iter().map(|it| it.1.asked);
            let next = changes.chain(writes).filter(|time| *time >= gone).min();
            // A write that was under way then may be newer or older.
            let is_written = life
                .versions
                .iter()
                .any(|it| it.1.sure > gone && it.1.asked < gone);
            if !is_written {
                let to = next.unwrap_or(Duration::MAX);
                stops.push((gone + DISABLED_WITHIN, to, "Gone".to_owned()));
            }
        }
        for seen in seen {
            let stop = stops
                .iter()
                .find(|(from, to, _)| *from < seen.at && seen.at < *to);
            if let Some((from, to, what)) = stop {
                let text = format!("{what} from {from:?} to {to:?}: {seen:?}");
                self.fail(Rule::Stopped, text);
            }
        }
    }

    /// The rate of a subscription is kept, but for the length of a lease or two.
    fn rate(&mut self, life: &Life, seen: &[&Seen]) {
        let rate = life.settings.rate;
        if rate == 0 || self.is_excused(&[Excuse::SetBack, Excuse::Unreadable]) {
            return;
        }
        let minute = Duration::from_mins(1);
        let lease = (rate / 60).max(1);
        let most = (rate + 2 * lease + 1) as usize;
        for (place, first) in seen.iter().enumerate() {
            let within = seen[place..]
                .iter()
                .filter(|it| it.at < first.at + minute)
                .count();
            if within > most {
                let at = first.at;
                self.fail(
                    Rule::Rate,
                    format!("{within} in the minute from {at:?}, not {most}"),
                );
                return;
            }
        }
    }

    /// The bound on open requests is kept.
    fn at_once(&mut self, life: &Life, seen: &[&Seen]) {
        let most = usize::from(life.settings.at_once);
        if most == 0 || self.is_excused(&[Excuse::SetBack, Excuse::Unreadable]) {
            return;
        }
        for it in seen {
            let is_open =
                |other: &&&Seen| other.at <= it.at && other.ended_at.is_none_or(|end| end > it.at);
            let open = seen.iter().filter(is_open).count();
            if open > most {
                let at = it.at;
                self.fail(Rule::AtOnce, format!("{open} at {at:?}, not {most}"));
                return;
            }
        }
    }

    /// Each change that was answered is in the audit trail, and no change that nobody asked for.
    fn audit(&mut self) {
        let asked: BTreeSet<_> = self.history.changes.iter().map(|it| (it.0, it.1)).collect();
        for (action, of) in asked {
            let name = name(of);
            let of_it = self
                .history
                .changes
                .iter()
                .filter(|it| (it.0, it.1) == (action, of));
            let most = of_it.clone().count();
            let is_done = |status: u16| (200..300).contains(&status);
            let least = of_it.filter(|it| it.2.is_some_and(is_done)).count();
            let entries = self.ends.audit.iter();
            let entries = entries.filter(|it| it.action == action && it.name == name);
            let entries = entries.filter(|it| it.actor != "posthaste");
            let all = entries.clone().count();
            let done = entries.filter(|it| it.outcome == "done").count();
            let told = if self.is_excused(&AGAIN) { all } else { done };
            if told < least || done > most {
                let text = format!("{action} of {name}: {least} were done, {most} asked for");
                self.fail(
                    Rule::Audit,
                    format!("{text}, {done} of {all} entries say so"),
                );
            }
        }
    }

    /// At the end the API shows that all is well.
    fn shown(&mut self) {
        let is_by_records = self.course.world.place == Place::Aws;
        let may_lack = is_by_records && self.is_excused(&[Excuse::RecordsLost]);
        for (of, shown) in &self.ends.shown {
            let state = shown["status"]["state"].as_str();
            if state != Some("Active") {
                self.fail(Rule::Shown, format!("s{of} is {state:?}"));
            }
            let health = shown["health"]["state"].as_str();
            if health != Some("healthy") && !may_lack {
                self.fail(
                    Rule::Shown,
                    format!("s{of} is {health:?}: {}", shown["health"]),
                );
            }
            let waiting = &shown["waiting"];
            let count = waiting["count"].as_u64();
            if count.is_some_and(|count| count > 0) && self.ends.waits.is_empty() && !may_lack {
                self.fail(Rule::Shown, format!("for s{of} something waits: {waiting}"));
            }
        }
    }
}

/// The number of runs in which each rule failed, for a summary.
pub fn rules(faults: &[String]) -> BTreeMap<String, usize> {
    let mut rules = BTreeMap::new();
    for fault in faults {
        let rule = fault.split(':').next().unwrap_or_default();
        *rules.entry(rule.to_owned()).or_default() += 1;
    }
    rules
}
