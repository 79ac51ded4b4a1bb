//! The rules of all requests of one subscription.

use std::time::Duration;

use crate::check::case::Evidence;
use crate::check::excuse::{AGAIN, Excuse};
use crate::check::rule::{Findings, Rule};
use crate::course::Step;
use crate::endpoint::{End, Seen};
use crate::history::{Cause, Life, State};
use crate::idle::WentFrom;

/// The time in which a subscription is disabled whose endpoint is gone: on AWS by wake.
const DISABLED_WITHIN: Duration = Duration::from_secs(150);

/// The time for which a topic that could not be read stays in use as it was. A request waits for
/// its turn for up to a minute, and a look takes five seconds.
const KEPT_FOR: Duration = Duration::from_secs(75);

/// The time for which a limit may not hold after its state was lost or the clock was set back.
const LIMITS_LOST_FOR: Duration = Duration::from_mins(3);

/// The pause that an endpoint asks for that asks to be left alone. A request of its last second
/// may be in time.
const ASKED_PAUSE: Duration = Duration::from_secs(119);

/// Whether a request may have begun by an old view of its topic.
fn is_unread(evidence: Evidence<'_>, seen: &Seen) -> bool {
    let span = seen.at.saturating_sub(KEPT_FOR)..=seen.at;
    evidence.history.is_excused(&span, &[Excuse::Unreadable])
}

/// No request begins by settings that were changed before.
pub(super) fn is_up_to_date(
    evidence: Evidence<'_>,
    life: &Life,
    seen: &[&Seen],
    findings: &mut Findings,
) {
    for seen in seen.iter().filter(|it| !is_unread(evidence, it)) {
        let place = life.versions.iter().position(|it| it.0 == seen.version);
        let Some(place) = place else {
            findings.fail(Rule::Changed, format!("there is no such version: {seen:?}"));
            continue;
        };
        let next = life.versions.get(place + 1);
        if let Some((next, window)) = next
            && seen.at > window.sure + evidence.slack()
        {
            let text = format!("version {next} is there since {:?}: {seen:?}", window.sure);
            findings.fail(Rule::Changed, text);
        }
    }
}

/// The times in which a subscription gets no requests: from, to, and why.
fn stops(evidence: Evidence<'_>, life: &Life) -> Vec<(Duration, Duration, String)> {
    let slack = evidence.slack();
    let mut stops = Vec::new();
    for (place, (state, window)) in life.states.iter().enumerate() {
        if *state != State::Active {
            let next = life.states.get(place + 1);
            let to = next.map_or(Duration::MAX, |it| it.1.asked);
            stops.push((window.sure + slack, to, format!("{state:?}")));
        }
    }
    if let Some(window) = life.deleted {
        let from = window.sure + slack;
        stops.push((from, Duration::MAX, "Deleted".to_owned()));
    }
    for gone in evidence.gone(life) {
        let changes = life.states.iter().map(|it| it.1.asked);
        let writes = life.versions.iter().map(|it| it.1.asked);
        let next = changes.chain(writes).filter(|time| *time >= gone).min();
        // A write that was under way then may be newer or older.
        let is_written = life
            .versions
            .iter()
            .any(|it| it.1.sure > gone && it.1.asked < gone);
        // By a clock that was set back since the last write, the endpoint said so before it.
        let span = life.created.asked..=gone + DISABLED_WITHIN;
        let is_set_back = evidence.history.is_excused(&span, &[Excuse::SetBack]);
        if !is_written && !is_set_back {
            let to = next.unwrap_or(Duration::MAX);
            stops.push((gone + DISABLED_WITHIN, to, "Gone".to_owned()));
        }
    }
    stops
}

/// No request begins for a subscription that is paused, disabled or deleted.
pub(super) fn is_stopped(
    evidence: Evidence<'_>,
    life: &Life,
    seen: &[&Seen],
    findings: &mut Findings,
) {
    let stops = stops(evidence, life);
    for seen in seen.iter().filter(|it| !is_unread(evidence, it)) {
        let stop = stops
            .iter()
            .find(|(from, to, _)| *from < seen.at && seen.at < *to);
        if let Some((from, to, what)) = stop {
            let text = format!("{what} from {from:?} to {to:?}: {seen:?}");
            findings.fail(Rule::Stopped, text);
        }
    }
}

/// An endpoint that asked for a pause gets no request from a process that began in it. A process
/// that was killed may not have said that there is a pause.
pub(super) fn keeps_pauses(
    evidence: Evidence<'_>,
    life: &Life,
    seen: &[&Seen],
    findings: &mut Findings,
) {
    let history = evidence.history;
    let is_asking = |it: &&&Seen| it.end == End::Answered(503) && it.asks_to_wait;
    for asked in seen.iter().filter(is_asking) {
        let Some(at) = asked.ended_at else { continue };
        let pause = at..=at + ASKED_PAUSE;
        let began = history.mishaps.iter().filter(|it| pause.contains(&it.at));
        let began = began.filter(|it| it.cause == Cause::Restarted);
        let Some(began) = began.map(|it| it.at).max() else {
            continue;
        };
        let is_forced = history
            .forced
            .iter()
            .any(|(time, of)| *of == life.of && pause.contains(time));
        let is_changed = life.versions.iter().any(|it| pause.contains(&it.1.asked));
        let excuses = [Excuse::Killed, Excuse::SetBack, Excuse::Links];
        if is_forced || is_changed || history.is_excused(&pause, &excuses) {
            continue;
        }
        let early = seen.iter().find(|it| {
            it.is_fallback == asked.is_fallback && it.at > began && pause.contains(&it.at)
        });
        if let Some(early) = early {
            let text = format!("asked for at {at:?}, and a process began at {began:?}: {early:?}");
            findings.fail(Rule::Paused, text);
            return;
        }
    }
}

/// A subscription that went by itself had no use for as long as its settings say, and nothing lay
/// in the state bucket for it.
pub(super) fn goes_when_idle(
    evidence: Evidence<'_>,
    life: &Life,
    seen: &[&Seen],
    findings: &mut Findings,
) {
    let Some(went) = life.deleted.filter(|_| life.went_idle) else {
        return;
    };
    let idle = Duration::from_mins(life.settings.idle.into());
    // A program of before cannot read all that waits.
    let is_read = !evidence.course.steps.contains(&Step::Downgrade);
    let is_it = |from: &&WentFrom| {
        from.name == life.name() && went.asked <= from.at && from.at <= went.sure
    };
    let mut from = evidence.history.went_from.iter();
    if let Some(from) = from.find(is_it).filter(|_| is_read) {
        let at = from.at;
        let keys = &from.keys;
        let text = format!("{} went at {at:?} from {keys:?}", life.name());
        findings.fail(Rule::Idle, text);
    }
    let taken = seen.iter().filter(|it| it.is_taken());
    let written = life.versions.iter().map(|it| it.1.asked);
    let uses = taken.filter_map(|it| it.ended_at).chain(written);
    let last = uses.filter(|at| *at <= went.asked).max();
    let span = life.created.asked..=went.sure;
    // Its use is noted beside deliveries, and that may fail.
    if evidence.history.is_excused(&span, &AGAIN) {
        return;
    }
    if last.is_some_and(|last| went.sure < last + idle) {
        let text = format!("{} was used at {last:?}, and gone at {went:?}", life.name());
        findings.fail(Rule::Idle, text);
    }
}

/// Whether the limits of a subscription may not have held at a time.
fn are_limits_lost(evidence: Evidence<'_>, at: Duration) -> bool {
    let span = at.saturating_sub(LIMITS_LOST_FOR)..=at + Duration::from_mins(1);
    let excuses = [Excuse::SetBack, Excuse::Limits, Excuse::Unreadable];
    evidence.history.is_excused(&span, &excuses)
}

/// The rate of a subscription is kept, but for the length of a lease or two.
pub(super) fn keeps_rate(
    evidence: Evidence<'_>,
    life: &Life,
    seen: &[&Seen],
    findings: &mut Findings,
) {
    let rate = life.settings.rate;
    if rate == 0 {
        return;
    }
    let minute = Duration::from_mins(1);
    let lease = (rate / 60).max(1);
    let most = (rate + 2 * lease + 1) as usize;
    for (place, first) in seen.iter().enumerate() {
        let within = seen[place..].iter();
        let within = within.filter(|it| it.at < first.at + minute).count();
        let at = first.at;
        if within > most && !are_limits_lost(evidence, at) {
            let text = format!("{within} in the minute from {at:?}, not {most}");
            findings.fail(Rule::Rate, text);
            return;
        }
    }
}

/// The bound on open requests is kept.
pub(super) fn keeps_bound(
    evidence: Evidence<'_>,
    life: &Life,
    seen: &[&Seen],
    findings: &mut Findings,
) {
    let most = usize::from(life.settings.at_once);
    if most == 0 {
        return;
    }
    for it in seen {
        let is_open =
            |other: &&&Seen| other.at <= it.at && other.ended_at.is_none_or(|end| end > it.at);
        let open = seen.iter().filter(is_open).count();
        if open > most && !are_limits_lost(evidence, it.at) {
            let text = format!("{open} at {:?}, not {most}", it.at);
            findings.fail(Rule::AtOnce, text);
            return;
        }
    }
}
