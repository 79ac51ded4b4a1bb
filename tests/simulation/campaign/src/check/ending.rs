//! The end of an event: it arrives, or is a dead letter for a reason that its endpoint gave, or was
//! dropped as asked.

use posthaste_core::model::{DeadLetterReason, RECOVERIES_MAX};

use crate::check::case::Case;
use crate::check::excuse::{AGAIN, Excuse};
use crate::check::rule::{Findings, Rule};
use crate::course::{Behaviour, Place, Step};
use crate::endpoint::{End, is_bad};
use crate::ends::Letter;
use crate::history::Life;

/// The attempts that a batch needs which is refused in a way that is tried again.
const ATTEMPTS_TO_SPLIT: usize = 3;

/// An accepted event arrives, or there is a dead letter, or it was dropped as asked.
pub(super) fn has_end(case: &Case<'_>, findings: &mut Findings) {
    let settings = &case.life.settings;
    let may_be_dropped = settings.drops
        || settings.drops_expired
        || case.event.is_cancelled
        || !case.evidence.disabled(case.life).is_empty();
    let is_told = |state: &str| case.told().any(|it| it.state == state);
    // The log never stops deliveries: the record of a drop may be lost.
    let is_drop_known = is_told("dropped") || case.is_excused(&[Excuse::RecordsLost]);
    // Who deletes dead letters has had them.
    let is_deleted = case
        .evidence
        .history
        .deleted_letters
        .iter()
        .any(|(at, of)| *of == case.life.of && *at >= case.event.window.asked);
    let has_end = case.is_taken()
        || (case.is_taken_somehow() && is_told("delivered"))
        || case.letters().next().is_some()
        || (may_be_dropped && is_drop_known)
        || is_deleted;
    if !has_end {
        let told: Vec<_> = case.told().collect();
        let text = format!("{case} is lost: told {told:?}, sent {:?}", case.seen);
        findings.fail(Rule::End, text);
    }
}

/// An event that has arrived is no dead letter too.
pub(super) fn has_one_end(case: &Case<'_>, findings: &mut Findings) {
    let open = case.letters().filter(|letter| !letter.is_resolved).count();
    let is_unheard = case
        .seen
        .iter()
        .any(|it| !it.is_taken() && it.is_taken_somehow());
    if case.evidence.times_sent_again(case.life) > 0 || case.is_excused(&AGAIN) {
        return;
    }
    // A late answer that was heard takes the event out of the dead letters, where they wait.
    let is_heard = case
        .seen
        .iter()
        .any(|it| matches!(it.end, End::AnsweredLate(200..=204)));
    let waits = !case.life.settings.buries_at_once && !case.is_excused(&[Excuse::Restarted]);
    if is_heard && waits && open > 0 {
        let seen = &case.seen;
        let text = format!("{case} arrived late, and is a dead letter: {seen:?}");
        findings.fail(Rule::OneEnd, text);
    }
    if is_unheard {
        return;
    }
    if case.is_taken() && open > 0 {
        let text = format!("{case} has arrived, and is {open} dead letters");
        findings.fail(Rule::OneEnd, text);
    }
    if open > 1 {
        findings.fail(Rule::OneEnd, format!("{case} is {open} dead letters"));
    }
}

/// A dead letter has a reason that fits what the endpoint did.
pub(super) fn has_reasons(case: &Case<'_>, findings: &mut Findings) {
    for letter in case.letters() {
        if let Some(why) = wrong_reason(case, letter) {
            let text = format!("{case} is {}: {why}: {:?}", letter.reason, case.seen);
            findings.fail(Rule::Reason, text);
        }
    }
}

/// Says why the reason of a dead letter cannot be.
fn wrong_reason(case: &Case<'_>, letter: &Letter) -> Option<String> {
    let all = DeadLetterReason::ALL.into_iter();
    let reason = all.into_iter().find(|it| it.as_str() == letter.reason);
    let Some(reason) = reason else {
        return Some("there is no such reason".to_owned());
    };
    let has_status = |is_it: fn(u16) -> bool| {
        let mut ends = case.seen.iter().map(|it| it.end);
        ends.any(|end| matches!(end, End::Answered(status) if is_it(status)))
    };
    match reason {
        DeadLetterReason::MaxDeliveryAttemptsExceeded => {
            let tried = case.seen.iter().map(|it| it.attempt).max().unwrap_or(0);
            let most = case.attempts_max();
            ((tried as usize) < most).then(|| format!("{tried} attempts, not {most}"))
        }
        DeadLetterReason::TimeToLiveExceeded => {
            if case.is_excused(&[Excuse::SetBack]) {
                return None;
            }
            let from = case.event.not_before.unwrap_or(case.event.days.0);
            let from = from.max(case.event.days.0);
            let end = from + case.lifetime();
            (letter.hour_end < end).then(|| format!("it lived until {end}"))
        }
        DeadLetterReason::UndeliverableDueToClientError => {
            (!has_status(|status| matches!(status, 300..=499 if status != 410)))
                .then(|| "nothing refused it".to_owned())
        }
        // What waits when a subscription is disabled is given up too: an endpoint that is gone does
        // so, or an operator.
        DeadLetterReason::EndpointGone | DeadLetterReason::SubscriptionDisabled => case
            .evidence
            .disabled(case.life)
            .is_empty()
            .then(|| "its subscription was never disabled".to_owned()),
        // A letter has the name of its subscription, and not which of that name it was.
        DeadLetterReason::SubscriptionDeleted => {
            let mut lives = case.evidence.history.lives.iter();
            // One for which something waits does not go by itself, unless a program is there that
            // cannot read what waits, or SQS has it, which does not say whose it is. What lies in
            // the state bucket at that moment is looked at by itself (`goes_when_idle`).
            let course = case.evidence.course;
            let place = case.evidence.course.world.place;
            let waits_unseen = place == Place::Aws || course.steps.contains(&Step::Downgrade);
            let is_gone = |it: &Life| {
                let may_go = !it.went_idle || waits_unseen;
                let deleted = it.deleted.map(|deleted| deleted.asked);
                deleted.is_some_and(|from| may_go || from <= case.event.window.sure)
            };
            let is_deleted = lives.any(|it| it.of == case.life.of && is_gone(it));
            (!is_deleted).then(|| "its subscription is there".to_owned())
        }
        DeadLetterReason::MalformedMessage => Some("it is one of ours".to_owned()),
        DeadLetterReason::HandlerFailed => {
            (!case.is_excused(&[Excuse::Moved])).then(|| "nothing failed".to_owned())
        }
    }
}

/// Recovery ends: what fails again and again is given up for good. A letter that was sent as a probe
/// does not count. A replay that an operator asked for sends each letter, and each of them has a
/// recovery of its own.
pub(super) fn recovery_ends(case: &Case<'_>, findings: &mut Findings) {
    if case.evidence.times_sent_again(case.life) > 0 {
        return;
    }
    let history = case.evidence.history;
    let letters = case.letters().count();
    let is_probe = |letter: &&Letter| history.probes.contains(&letter.place);
    let probes = case.letters().filter(is_probe).count();
    let copies = history.mishaps_in(&case.span(), &AGAIN);
    let most = (1 + usize::from(RECOVERIES_MAX)) * (1 + copies) + probes;
    if letters > most {
        let text = format!("{case} has become a dead letter {letters} times, not {most}");
        findings.fail(Rule::Recovers, text);
    }
}

/// An event that its endpoint takes, and none of its neighbours, is no dead letter: a batch that is
/// refused is sent in halves.
pub(super) fn is_not_buried_with_others(case: &Case<'_>, findings: &mut Findings) {
    let evidence = case.evidence;
    let of = case.life.of;
    let is_taken_alone = |like: Behaviour| {
        matches!(
            like,
            Behaviour::Well
                | Behaviour::RefusesSome
                | Behaviour::CannotReadSome
                | Behaviour::NamesSome
        )
    };
    let mut behaviours = evidence.history.behaviours.iter();
    let is_always_well = behaviours.all(|it| it.1 != of || is_taken_alone(it.2));
    let is_bad = is_bad(evidence.course.world.seed, &case.event.id);
    // The first refusal of some kinds does not split a batch.
    if !is_always_well || is_bad || case.attempts_max() < ATTEMPTS_TO_SPLIT {
        return;
    }
    let is_by_attempts = |letter: &&Letter| {
        letter.reason == DeadLetterReason::MaxDeliveryAttemptsExceeded.as_str()
            || letter.reason == DeadLetterReason::UndeliverableDueToClientError.as_str()
    };
    if let Some(letter) = case.letters().find(is_by_attempts) {
        let seen = &case.seen;
        let text = format!("{case} is taken, and is {}: {seen:?}", letter.reason);
        findings.fail(Rule::Neighbours, text);
    }
}
