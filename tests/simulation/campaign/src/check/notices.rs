//! Rules for what notices say.

use std::collections::BTreeSet;
use std::time::Duration;

use posthaste_core::model::DeadLetterReason;

use crate::check::case::{Evidence, Wants};
use crate::check::excuse::{Excuse, Span};
use crate::check::rule::{Findings, Rule};
use crate::endpoint::Notice;
use crate::history::Life;

/// All of a run.
const WHOLE: Span = Duration::ZERO..=Duration::MAX;

/// A notice tells what happened.
pub(super) fn are_true(evidence: Evidence<'_>, findings: &mut Findings) {
    for notice in &evidence.history.notices {
        let why = match &*notice.kind {
            "delivery.failed" => why_not_given_up(evidence, notice),
            "subscription.failing" => why_not_failing(evidence, notice),
            "subscription.disabled" => why_not_disabled(evidence, notice),
            _ => None,
        };
        if let Some(why) = why {
            findings.fail(Rule::Notices, format!("{why}: {notice:?}"));
        }
    }
}

fn lives<'a>(evidence: Evidence<'a>, notice: &Notice) -> Vec<&'a Life> {
    let lives = evidence.history.lives.iter();
    lives.filter(|it| it.name() == notice.name).collect()
}

/// Says why an event cannot have been given up as a notice says.
fn why_not_given_up(evidence: Evidence<'_>, notice: &Notice) -> Option<&'static str> {
    let mut events = evidence.history.events.iter();
    let Some(event) = events.find(|it| it.id == notice.event) else {
        return Some("nobody published it");
    };
    let lives = lives(evidence, notice);
    // Where topics could not be read, it was accepted by a copy of before.
    let is_unread = evidence.history.is_excused(&WHOLE, &[Excuse::Unreadable]);
    if !is_unread
        && lives
            .iter()
            .all(|it| evidence.wants(it, event) == Wants::No)
    {
        return Some("its subscription does not get it");
    }
    let object = notice.object.as_ref()?;
    let mut deleted = evidence.history.deleted_letters.iter();
    if deleted.any(|(_, of)| lives.iter().any(|it| it.of == *of)) {
        return None;
    }
    let mut letters = evidence.ends.letters.iter();
    let has_letter = letters.any(|it| {
        it.place.object == *object && it.id == notice.event && it.reason == notice.reason
    });
    (!has_letter).then_some("there is no such dead letter")
}

/// Says why a subscription cannot fail as a notice says.
fn why_not_failing(evidence: Evidence<'_>, notice: &Notice) -> Option<&'static str> {
    let mut seen = evidence.history.seen.iter();
    let has_failed = seen.any(|it| {
        let is_whole = it.is_taken() && it.named.is_empty();
        it.name == notice.name && it.at <= notice.at && !is_whole
    });
    // Health counts an event that expires as one that did not arrive, though nobody asked.
    let is_expiry = |name: &str, reason: &str| {
        name == notice.name && reason == DeadLetterReason::TimeToLiveExceeded.as_str()
    };
    let mut letters = evidence.ends.letters.iter();
    let mut notices = evidence.history.notices.iter();
    let has_expired = letters.any(|it| is_expiry(&it.name, &it.reason))
        || notices.any(|it| is_expiry(&it.name, &it.reason));
    (!has_failed && !has_expired).then_some("each request has arrived")
}

/// Says why a subscription cannot be disabled as a notice says.
fn why_not_disabled(evidence: Evidence<'_>, notice: &Notice) -> Option<&'static str> {
    let lives = lives(evidence, notice);
    let mut disabled = lives.iter().flat_map(|it| evidence.disabled(it));
    let is_disabled = disabled.any(|(from, _)| from <= notice.at);
    (!is_disabled).then_some("nobody disabled it")
}

/// Each event that was given up has a notice, but for what ends with its subscription.
pub(super) fn are_sent(evidence: Evidence<'_>, findings: &mut Findings) {
    let history = evidence.history;
    let is_excused = history.is_excused(&WHOLE, &[Excuse::Moved, Excuse::Unreadable]);
    if !evidence.course.world.has_notices || is_excused {
        return;
    }
    // Who was killed before the notices writes the letters again, into another object.
    let is_killed = history.is_excused(&WHOLE, &[Excuse::Killed]);
    let notices: BTreeSet<_> = history
        .notices
        .iter()
        .filter_map(|it| {
            let object = it.object.as_deref()?;
            let object = if is_killed { "" } else { object };
            Some((object, &*it.name, &*it.event))
        })
        .collect();
    let without = [
        DeadLetterReason::SubscriptionDisabled.as_str(),
        DeadLetterReason::SubscriptionDeleted.as_str(),
    ];
    for letter in &evidence.ends.letters {
        let object = if is_killed { "" } else { &*letter.place.object };
        let has_notice = notices.contains(&(object, &*letter.name, &*letter.id));
        // With its topic goes who is told.
        let mut lives = history.lives.iter();
        let is_gone = lives.any(|it| it.name() == letter.name && it.deleted.is_some());
        if !has_notice && !is_gone && !without.contains(&&*letter.reason) {
            findings.fail(Rule::Notices, format!("there is none of {letter:?}"));
        }
    }
}
