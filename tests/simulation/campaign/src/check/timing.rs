//! When an event is sent: neither too early nor too late.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::check::case::{Case, RELEASED_WITHIN};
use crate::check::excuse::{AGAIN, Excuse, Span};
use crate::check::rule::{Findings, Rule};
use crate::course::{Behaviour, Place};
use crate::endpoint::{Seen, is_bad};
use crate::history::{State, Window};

/// The longest time from the answer to a producer to the arrival at an endpoint that is well, where
/// no other subscription of its host fails. On AWS an invocation lasts as long as its slowest
/// request, and two late ones are needed before a target has a lane of its own.
const PROMPT_SERVE: Duration = Duration::from_secs(15);
const PROMPT_AWS: Duration = Duration::from_mins(5);

/// An endpoint is steady that has taken something in each of these for so long.
const STEADY_GAP: Duration = Duration::from_secs(50);
const STEADY_FOR: Duration = Duration::from_mins(5);

/// The time before an event in which a mishap may still delay it: a lease of wake, or a message
/// that is in flight.
const DELAYS_FOR: Duration = Duration::from_mins(15);

/// The longest time from the answer to a producer to the arrival when all is well again. A rate of
/// two a minute needs some of it.
const ALIVE: Duration = Duration::from_mins(3);

/// Nothing is sent before its time or after its life.
pub(super) fn is_in_time(case: &Case<'_>, findings: &mut Findings) {
    if case.is_excused(&[Excuse::SetBack]) {
        return;
    }
    let event = case.event;
    let is_early = |time| event.not_before.is_some_and(|from| time < from);
    if let Some(early) = case.seen.iter().find(|it| is_early(it.day)) {
        let text = format!("{case} was sent before its time: {early:?}");
        findings.fail(Rule::Early, text);
    }
    let end = match event.not_before {
        Some(time) if time > event.days.1 => time + RELEASED_WITHIN + case.lifetime(),
        _ => event.days.1 + case.lifetime(),
    };
    let late = case.seen.iter().find(|it| !it.is_replayed && it.day > end);
    if let Some(late) = late {
        let text = format!("{case} lived until {end}, and was sent: {late:?}");
        findings.fail(Rule::Expired, text);
    }
}

/// The first arrival at the endpoint.
fn first_arrival(case: &Case<'_>) -> Option<Duration> {
    let taken = case.seen.iter().filter(|it| it.is_taken());
    taken.map(|it| it.at).min()
}

/// Whether an endpoint is well until then, and others of its host but one, which answers at once:
/// its failures are its own, and say nothing of the link.
fn is_well_beside_one(case: &Case<'_>, until: Duration) -> bool {
    let evidence = case.evidence;
    let host = case.life.settings.host;
    let of_host = |of: u8| evidence.course.subscribers[usize::from(of)].host == host;
    let answers = |like: Behaviour| {
        matches!(
            like,
            Behaviour::Busy
                | Behaviour::Breaks
                | Behaviour::Refuses
                | Behaviour::RefusesSome
                | Behaviour::CannotReadSome
                | Behaviour::Unauthorized
                | Behaviour::TooLarge
                | Behaviour::Moved
                | Behaviour::NamesSome
                | Behaviour::NamesOther
        )
    };
    let behaviours = evidence.history.behaviours.iter();
    let unwell: Vec<_> = behaviours
        .filter(|(at, of, like)| *at <= until && of_host(*of) && *like != Behaviour::Well)
        .collect();
    let others: BTreeSet<_> = unwell.iter().map(|it| it.1).collect();
    let is_one = others.len() <= 1 && !others.contains(&case.life.of);
    is_one && unwell.iter().all(|it| answers(it.2))
}

/// Whether something else than endpoints may keep an event back, from some time before until then.
fn may_be_kept_back(case: &Case<'_>, limit: Duration) -> bool {
    let evidence = case.evidence;
    let settings = &case.life.settings;
    let is_bounded = settings.rate > 0 || settings.at_once > 0;
    let is_later = case.event.not_before.is_some() || case.event.life.is_some();
    let span: Span = case.event.window.sure.saturating_sub(DELAYS_FOR)..=limit;
    let is_excused = evidence.history.is_excused(&span, &AGAIN)
        || evidence
            .history
            .is_excused(&span, &[Excuse::Restarted, Excuse::Unreadable]);
    let is_pressed = evidence.course.world.has_pressure;
    let is_stop = |(state, window): &(State, Window)| {
        *state != State::Active && (Duration::ZERO..=limit).contains(&window.asked)
    };
    let is_deleted = case.life.deleted.is_some_and(|it| it.asked <= limit);
    is_bounded
        || is_later
        || is_excused
        || is_pressed
        || case.life.states.iter().any(is_stop)
        || is_deleted
        || case.life.is_without_consent_until(limit)
}

/// A subscription that is well is not delayed by others.
pub(super) fn is_prompt(case: &Case<'_>, findings: &mut Findings) {
    let bound = match case.evidence.course.world.place {
        Place::Serve => PROMPT_SERVE,
        Place::Aws => PROMPT_AWS,
    };
    let sure = case.event.window.sure;
    let limit = sure + bound;
    if !is_well_beside_one(case, limit) || may_be_kept_back(case, limit) {
        return;
    }
    let first = first_arrival(case);
    if first.is_none_or(|first| first > limit) {
        let text = format!("{case}, accepted at {sure:?}, arrived at {first:?}");
        findings.fail(Rule::Prompt, text);
    }
}

/// Whether the endpoints of an event's host do nothing until then but fail for certain events, at
/// once.
fn is_well_for_others(case: &Case<'_>, until: Duration) -> bool {
    let evidence = case.evidence;
    let host = case.life.settings.host;
    let of_host = |of: u8| evidence.course.subscribers[usize::from(of)].host == host;
    let takes_others = |like: Behaviour| {
        matches!(
            like,
            Behaviour::Well
                | Behaviour::BusyForSome
                | Behaviour::RefusesSome
                | Behaviour::CannotReadSome
        )
    };
    let behaviours = evidence.history.behaviours.iter();
    let mut of_it = behaviours.filter(|(at, of, _)| *at <= until && of_host(*of));
    of_it.all(|it| takes_others(it.2))
}

/// Whether the endpoint of an event has taken others all the time before it.
fn is_steady_before(case: &Case<'_>, at: Duration) -> bool {
    let evidence = case.evidence;
    let life = case.life;
    let is_taken = |it: &&Seen| {
        it.name == life.name() && it.life == life.number && !it.is_fallback && it.is_taken()
    };
    let taken = evidence.history.seen.iter().filter(is_taken);
    let from = at.saturating_sub(STEADY_FOR);
    let times = taken.filter_map(|it| it.ended_at);
    let mut times: Vec<_> = times.filter(|time| (from..=at).contains(time)).collect();
    times.extend([from, at]);
    times.sort_unstable();
    at >= STEADY_FOR && times.windows(2).all(|two| two[1] <= two[0] + STEADY_GAP)
}

/// An endpoint that takes events all the time is not held back for those that it does not take.
/// Workers do not know what others were answered, so there is one.
pub(super) fn is_steady(case: &Case<'_>, findings: &mut Findings) {
    let world = case.evidence.course.world;
    let sure = case.event.window.sure;
    let limit = sure + PROMPT_SERVE;
    let is_alone = world.place == Place::Serve || world.workers == 1;
    let is_taken = case.life.settings.batch == 0 && !is_bad(world.seed, &case.event.id);
    if !is_alone
        || !is_taken
        || !is_well_for_others(case, limit)
        || !is_steady_before(case, case.event.window.asked)
        || may_be_kept_back(case, limit)
    {
        return;
    }
    let first = first_arrival(case);
    if first.is_none_or(|first| first > limit) {
        let text = format!("{case}, accepted at {sure:?}, arrived at {first:?}");
        findings.fail(Rule::Steady, text);
    }
}

/// An event that is published when all is well again arrives soon.
pub(super) fn is_alive(case: &Case<'_>, findings: &mut Findings) {
    let history = case.evidence.history;
    let last = history.events.get(history.last_from..);
    let is_last = last.is_some_and(|last| last.iter().any(|it| it.id == case.event.id));
    if !is_last || case.life.deleted.is_some() {
        return;
    }
    let sure = case.event.window.sure;
    let first = first_arrival(case);
    if first.is_none_or(|first| first > sure + ALIVE) {
        let text = format!("{case}, accepted at {sure:?}, arrived at {first:?}");
        findings.fail(Rule::Alive, text);
    }
}
