//! The rules of a whole run.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::check::case::Evidence;
use crate::check::excuse::{AGAIN, Excuse, Span};
use crate::check::rule::{Findings, Rule};
use crate::course::Place;
use crate::history::name;

/// All of a run.
const WHOLE: Span = Duration::ZERO..=Duration::MAX;

/// When all is well, everything comes to rest, and nothing is kept for ever.
pub(super) fn rests(evidence: Evidence<'_>, findings: &mut Findings) {
    let waits = &evidence.ends.waits;
    let left = &evidence.ends.left;
    if !waits.is_empty() {
        let text = format!("all has been well for days, and there are {waits:?}");
        findings.fail(Rule::Rest, text);
    }
    if !left.is_empty() {
        findings.fail(Rule::Growth, format!("many days later there are {left:?}"));
    }
}

/// A topic or subscription that nobody uses for days has gone by itself.
pub(super) fn has_nothing_idle(evidence: Evidence<'_>, findings: &mut Findings) {
    let idle = &evidence.ends.idle;
    if !idle.is_empty() {
        findings.fail(Rule::Idle, format!("unused for days, and there: {idle:?}"));
    }
}

/// Endpoints get nothing that nobody published, and for no subscription that there never was. No
/// dead letter is of anything else either.
pub(super) fn is_known(evidence: Evidence<'_>, findings: &mut Findings) {
    let history = evidence.history;
    let known: BTreeSet<_> = history.events.iter().map(|it| it.id.as_str()).collect();
    for seen in &history.seen {
        let unknown = seen.ids.iter().find(|id| !known.contains(id.as_str()));
        if unknown.is_some() || seen.ids.is_empty() {
            let text = format!("nobody published {unknown:?} of {seen:?}");
            findings.fail(Rule::Wanted, text);
        }
        if history.life_of(seen).is_none() {
            findings.fail(Rule::Wanted, format!("nobody subscribed for {seen:?}"));
        }
    }
    for letter in &evidence.ends.letters {
        if !known.contains(letter.id.as_str()) {
            findings.fail(Rule::Wanted, format!("nobody published {letter:?}"));
        }
    }
}

/// Each change that was answered is in the audit trail, and no change that nobody asked for.
pub(super) fn is_audited(evidence: Evidence<'_>, findings: &mut Findings) {
    let changes = &evidence.history.changes;
    let asked: BTreeSet<_> = changes.iter().map(|it| (it.0, it.1)).collect();
    let again = [
        Excuse::Killed,
        Excuse::Trail,
        Excuse::Unreadable,
        Excuse::SetBack,
    ];
    let may_say_begun = evidence.history.is_excused(&WHOLE, &again);
    // What was begun goes on to its end, also when whoever asked for it has gone away.
    let mut begun = evidence.ends.audit.iter();
    let begun = begun.find(|it| it.outcome == "begun" && !may_say_begun);
    if let Some(begun) = begun {
        findings.fail(Rule::Audit, format!("never ended: {begun:?}"));
    }
    for (action, of) in asked {
        let name = name(of);
        let of_it = changes.iter().filter(|it| (it.0, it.1) == (action, of));
        let most = of_it.clone().count();
        let least = of_it.filter(|it| it.2).count();
        let entries = evidence.ends.audit.iter();
        let entries = entries.filter(|it| it.action == action && it.name == name);
        let entries = entries.filter(|it| it.actor != "posthaste");
        let all = entries.clone().count();
        let done = entries.filter(|it| it.outcome == "done").count();
        let told = if may_say_begun { all } else { done };
        if told < least || done > most {
            let text = format!("{action} of {name}: {least} were done, {most} asked for");
            let text = format!("{text}, {done} of {all} entries say so");
            findings.fail(Rule::Audit, text);
        }
    }
}

/// At the end the API shows that all is well.
pub(super) fn is_shown_well(evidence: Evidence<'_>, findings: &mut Findings) {
    let is_by_records = evidence.course.world.place == Place::Aws;
    let lost = [Excuse::RecordsLost, Excuse::Book];
    let may_lack = is_by_records && evidence.history.is_excused(&WHOLE, &lost);
    let is_any_copied = evidence.history.is_excused(&WHOLE, &AGAIN);
    for (of, shown) in &evidence.ends.shown {
        let state = shown["status"]["state"].as_str();
        if state != Some("Active") {
            findings.fail(Rule::Shown, format!("s{of} is {state:?}"));
        }
        let health = shown["health"]["state"].as_str();
        // By a clock that was set back, it is failing since a time that is still to come.
        let is_set_back = evidence.history.is_excused(&WHOLE, &[Excuse::SetBack]);
        if health != Some("healthy") && !may_lack && !is_set_back {
            let text = format!("s{of} is {health:?}: {}", shown["health"]);
            findings.fail(Rule::Shown, text);
        }
        let waiting = &shown["waiting"];
        let count = waiting["count"].as_u64();
        let is_at_rest = evidence.ends.waits.is_empty();
        // What waits is counted by records on AWS, and a copy of a message may be counted twice.
        let may_be_off = may_lack || (is_by_records && is_any_copied);
        if count.is_some_and(|count| count > 0) && is_at_rest && !may_be_off {
            let text = format!("for s{of} something waits: {waiting}");
            findings.fail(Rule::Shown, text);
        }
    }
}
