//! Rules for what the delivery log tells of an event.

use std::collections::BTreeSet;

use crate::check::case::Case;
use crate::check::excuse::{AGAIN, Excuse};
use crate::check::rule::{Findings, Rule};
use crate::endpoint::Seen;
use crate::ends::Told;

/// The log tells what the endpoint saw.
pub(super) fn is_told(case: &Case<'_>, findings: &mut Findings) {
    if !case.evidence.ends.asked.contains(&case.event.id) {
        return;
    }
    let told: Vec<_> = case.told().cloned().collect();
    let is_open = |told: &&Told| matches!(&*told.state, "pending" | "waiting" | "held" | "unknown");
    let may_lack = case.is_excused(&[Excuse::RecordsLost]);
    if told.is_empty() {
        if !may_lack {
            findings.fail(Rule::Told, format!("of {case} nothing is told"));
        }
        return;
    }
    let open: Vec<_> = told.iter().filter(is_open).collect();
    if !open.is_empty() && !may_lack {
        findings.fail(Rule::Told, format!("{case} is told to wait: {open:?}"));
    }
    let is_told_arrived = told.iter().any(|it| it.state == "delivered");
    if case.is_taken() && !is_told_arrived && !may_lack && !case.is_excused(&AGAIN) {
        findings.fail(Rule::Told, format!("{case} has arrived: {told:?}"));
    }
    if !case.is_taken_somehow() && is_told_arrived {
        findings.fail(Rule::Told, format!("{case} has not arrived: {told:?}"));
    }
    has_attempts(case, &told, may_lack, findings);
}

/// The log has each attempt.
fn has_attempts(case: &Case<'_>, told: &[Told], may_lack: bool, findings: &mut Findings) {
    let attempts: usize = told.iter().map(|it| it.attempts).sum();
    // The queue's own copy of an event may be in the same batch.
    let times = |seen: &&Seen| seen.ids.iter().filter(|id| **id == case.event.id).count();
    let seen: usize = case.seen.iter().map(times).sum();
    // A batch that is refused is sent again in halves within the same attempt.
    let numbers: BTreeSet<_> = case.seen.iter().map(|it| it.attempt).collect();
    let is_batched = case.life.settings.batch > 0;
    let least = if is_batched { numbers.len() } else { seen };
    // What a killed process had under way was seen and is not told.
    let lacks = attempts < least && !may_lack && !case.is_excused(&AGAIN);
    if attempts > seen || lacks {
        let text = format!("{case}: {attempts} are told, and seen: {:?}", case.seen);
        findings.fail(Rule::Attempts, text);
    }
}
