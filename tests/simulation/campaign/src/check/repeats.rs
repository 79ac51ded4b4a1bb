//! Rules for events that are sent more than once.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::check::case::Case;
use crate::check::excuse::{AGAIN, Excuse};
use crate::check::rule::{Findings, Rule};
use crate::endpoint::Seen;

/// An event has one `webhook-id`.
pub(super) fn has_one_id(case: &Case<'_>, findings: &mut Findings) {
    let is_batched = case.life.settings.batch > 0;
    let ids: BTreeSet<_> = case.seen.iter().map(|it| &it.webhook_id).collect();
    if ids.len() > 1 + new_requests(case) && !is_batched {
        findings.fail(Rule::WebhookId, format!("{case} has several: {ids:?}"));
    }
}

/// The requests of a producer that may have counted as others: a key that was used by a clock far
/// ahead is free again (`IdempotencyRecord::decide_request`), so that a request which is repeated is
/// another one.
fn new_requests(case: &Case<'_>) -> usize {
    if case.is_excused(&[Excuse::SetBack]) {
        case.event.posts - 1
    } else {
        0
    }
}

/// Nothing is sent more often than it must be.
pub(super) fn is_not_repeated(case: &Case<'_>, findings: &mut Findings) {
    if case.evidence.times_sent_again(case.life) > 0 {
        return;
    }
    let mishaps_until = |end: Duration| {
        let span = case.event.window.asked..=end;
        case.evidence.history.mishaps_in(&span, &AGAIN)
    };
    let taken = case.seen.iter().enumerate().filter(|(_, it)| it.is_taken());
    let first = taken.min_by_key(|(_, it)| it.ended_at);
    if let Some((place, first)) = first {
        // A batch and its halves may be answered in the same moment, one after the other.
        let later = case.seen.iter().skip(place + 1);
        // Another request is another delivery, with an id and attempts of its own.
        let is_same = |it: &&&Seen| new_requests(case) == 0 || it.webhook_id == first.webhook_id;
        let again = later.filter(|it| Some(it.at) >= first.ended_at);
        let again: Vec<_> = again.filter(is_same).collect();
        let last = again.iter().map(|it| it.at).max().unwrap_or_default();
        // A copy that fails is tried again like any other, so only those count that are taken too.
        let taken = again.iter().filter(|it| it.is_taken()).count();
        let mishaps = mishaps_until(last);
        if taken > mishaps || (mishaps == 0 && !again.is_empty()) {
            let text = format!("{case} had arrived by {first:?}, and was sent again: {again:?}");
            findings.fail(Rule::Repeated, text);
        }
    }
    let tries: Vec<_> = case.seen.iter().filter(|it| !it.is_replayed).collect();
    let last = tries.iter().map(|it| it.at).max().unwrap_or_default();
    let copies = 1 + mishaps_until(last) + new_requests(case);
    let is_batched = case.life.settings.batch > 0;
    if tries.len() > case.attempts_max().saturating_mul(copies) && !is_batched {
        let text = format!("{case} was tried {} times: {:?}", tries.len(), case.seen);
        findings.fail(Rule::TooOften, text);
    }
}
