//! The lines of the log about a request: the endpoint's answer, and what comes next for each event.

use std::borrow::Cow;

use posthaste_core::attempt::verdict::ShownVerdict;
use posthaste_core::attempt::{BatchEvent, EntryVerdict};
use posthaste_core::delivery_log::RecordDetails;
use posthaste_core::model::time::log_millis;
use posthaste_core::model::{AttemptOutcome, EndpointUrl, Link, Timestamp};
use posthaste_services::EventTraces;

use super::judge::RequestOutcome;
use crate::invocation::Invocation;
use crate::payloads::LoadedPayload;
use crate::plan::RequestPlan;

/// Longest event id in a line, in bytes. Producers choose the ids, and no id may fill the log.
const EVENT_ID_BYTES_MAX: usize = 256;

/// A request that was made and has ended.
pub(super) struct RequestLog<'a> {
    pub(super) invocation: &'a Invocation,
    pub(super) plan: &'a RequestPlan,
    pub(super) link: &'a Link,
    pub(super) endpoint: &'a EndpointUrl,
    pub(super) request: &'a RequestOutcome,
    pub(super) ended_at: Timestamp,
    pub(super) traces: &'a EventTraces,
}

impl RequestLog<'_> {
    /// Logs an event with its outcome and its verdict. `is_sent`: whether it was in this request.
    /// If not, the answer to the request counts for it too.
    pub(super) fn log_event(
        &self,
        event: &LoadedPayload,
        outcome: AttemptOutcome,
        verdict: EntryVerdict,
        is_sent: bool,
    ) {
        let subscription = &*self.plan.subscription;
        let request = self.request;
        let webhook_id = is_sent.then_some(&*request.webhook_id);
        let took_ms = is_sent.then(|| log_millis(request.took));
        let ShownVerdict {
            word,
            retry_at,
            reason,
        } = verdict.describe(&subscription.dead_letter, self.ended_at);
        if outcome.is_success() {
            tracing::debug!(
                event_id = &*self.event_id(event), webhook_id,
                topic = %subscription.topic, subscription = %subscription.name, link = %self.link,
                attempt = self.attempt_number(), status = outcome.status(), took_ms,
                verdict = word, "delivered"
            );
        } else {
            let error = self.error_text(outcome);
            tracing::info!(
                event_id = &*self.event_id(event), webhook_id,
                topic = %subscription.topic, subscription = %subscription.name, link = %self.link,
                attempt = self.attempt_number(), status = outcome.status(), outcome = outcome.name().map(display),
                error = error.as_deref(), took_ms, verdict = word,
                retry_at = retry_at.map(display), reason = reason.map(display), "delivery attempt failed"
            );
        }
    }

    /// Makes the event's record of the delivery log, which its message keeps until it is settled.
    pub(super) fn keep_record(
        &self,
        event: &LoadedPayload,
        outcome: AttemptOutcome,
        verdict: EntryVerdict,
        is_sent: bool,
    ) {
        let answer = self.request.answer.as_ref();
        let details = RecordDetails {
            webhook_id: is_sent.then_some(&*self.request.webhook_id),
            status: outcome.status(),
            failure: self.failure_words(outcome),
            redirect: self.request.redirect.as_deref(),
            took: is_sent.then_some(self.request.took),
            answer: answer.and_then(|answer| answer.text.as_deref()),
            answer_type: answer.and_then(|answer| answer.media_type.as_deref()),
            endpoint: Some(self.endpoint.without_query()),
            dead_letter_object: None,
        };
        let job = &self.invocation.jobs[event.at.job];
        job.note_redirect(event.at.entry, self.request.redirect.as_deref());
        job.keep_record(event.at.entry, &event.text, verdict, details, self.ended_at);
    }

    /// Logs that all events of the request are sent again in parts. Each has a line with the answer
    /// to it.
    pub(super) fn log_split(&self, events: usize) {
        let subscription = &*self.plan.subscription;
        let request = self.request;
        tracing::info!(
            webhook_id = request.webhook_id, topic = %subscription.topic, subscription = %subscription.name,
            link = %self.link, attempt = self.attempt_number(), events, status = request.outcome.status(),
            took_ms = log_millis(request.took), "the endpoint refused a batch, which is sent again in parts"
        );
    }

    /// Logs that the events of a split batch that are left share the outcome of this request.
    pub(super) fn refused_alike(&self) {
        let subscription = &*self.plan.subscription;
        let request = self.request;
        tracing::info!(
            webhook_id = request.webhook_id, topic = %subscription.topic, subscription = %subscription.name,
            link = %self.link, attempt = self.attempt_number(), status = request.outcome.status(),
            "the endpoint refuses each event of a batch alike, the rest is not sent one by one"
        );
    }

    /// The failure in words, where this outcome is one.
    fn failure_words(&self, outcome: AttemptOutcome) -> Option<&str> {
        outcome.send_failure()?;
        self.request.failure_words.as_deref()
    }

    /// The failure beyond its status, in words.
    pub(super) fn error_text(&self, outcome: AttemptOutcome) -> Option<Cow<'_, str>> {
        let failure = self.failure_words(outcome).map(Cow::Borrowed);
        failure.or_else(|| {
            let place = self.request.redirect.as_deref()?;
            Some(format!("it leads to {place}").into())
        })
    }

    pub(super) fn attempt_number(&self) -> u16 {
        self.plan.kind.attempts_before.saturating_add(1)
    }

    pub(super) fn event_id<'e>(&'e self, event: &'e LoadedPayload) -> Cow<'e, str> {
        let envelope = self.invocation.entry(event.at).envelope.as_ref();
        let envelope_id = envelope.map(|envelope| &*envelope.id);
        shorten_id(
            BatchEvent {
                text: &event.text,
                envelope_id,
            }
            .event_id(),
        )
    }
}

fn shorten_id(id: Cow<'_, str>) -> Cow<'_, str> {
    let end = id.floor_char_boundary(EVENT_ID_BYTES_MAX);
    if end < id.len() {
        Cow::Owned(format!("{}…", &id[..end]))
    } else {
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_event_id_is_cut_at_a_character() {
        let check = |id: &str, expected: &str| assert_eq!(shorten_id(id.into()), expected);
        check("e-1", "e-1");
        check(&"a".repeat(256), &"a".repeat(256));
        check(&"a".repeat(257), &format!("{}…", "a".repeat(256)));
        check(
            &format!("{}é", "a".repeat(255)),
            &format!("{}…", "a".repeat(255)),
        );
    }
}
