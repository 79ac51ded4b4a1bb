//! A record as it is made: an event of a received message, what became of it, and what is known of
//! the request. It is rendered from borrowed parts, since every attempt makes one.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::record::cut_text;
use super::{
    AttemptOrigin, EventChange, LogResult, RecordKind, RecordText, WaitTransition, record_id,
};
use crate::model::{
    Delivery, DeliveryEntry, EventNames, EventPayload, EventSchema, Identity,
    LOG_PAYLOAD_BYTES_MAX, Timestamp,
};

/// An event of a message that was received.
#[derive(Debug, Clone, Copy)]
pub struct RecordedEvent<'a> {
    /// The queue's id of the message.
    pub message_id: &'a str,
    /// The number of receives of the message, this one included.
    pub receive_count: u32,
    /// The delivery that the message is.
    pub delivery: &'a Delivery,
    /// The event.
    pub entry: &'a DeliveryEntry,
    /// The event's text; `None` where it is stored and was not read.
    pub text: Option<&'a Bytes>,
    /// Whether the log keeps payloads.
    pub keeps_payload: bool,
    /// Whether it was given up before, so that it does not wait any more.
    pub is_given_up: bool,
}

/// The details of a record: what is known of the request, or of the dead letter.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordDetails<'a> {
    /// The header `webhook-id` of the request.
    pub webhook_id: Option<&'a str>,
    /// The answer's status.
    pub status: Option<u16>,
    /// The reason why there was no answer, in words.
    pub failure: Option<&'a str>,
    /// The location that a redirect names
    /// ([`redirect_location`](crate::attempt::redirect_location)).
    pub redirect: Option<&'a str>,
    /// The time from the beginning of the request to the answer's head, or to the failure.
    pub took: Option<Duration>,
    /// The answer's text ([`answer_text`](super::answer_text)).
    pub answer: Option<&'a str>,
    /// The answer's media type.
    pub answer_type: Option<&'a str>,
    /// The endpoint, without its query.
    pub endpoint: Option<&'a str>,
    /// The key of the dead-letter object.
    pub dead_letter_object: Option<&'a str>,
}

impl<'a> RecordDetails<'a> {
    /// The error, in words, as far as the status does not say it.
    fn error_text(&self) -> Option<Cow<'a, str>> {
        let failure = self.failure.map(Cow::Borrowed);
        failure.or_else(|| {
            let place = self.redirect?;
            Some(format!("it leads to {place}").into())
        })
    }
}

/// The members of a [`Record`](super::Record) but its payload, borrowed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordDraft<'a> {
    record_id: String,
    time: Timestamp,
    kind: RecordKind,
    topic: Cow<'a, str>,
    subscription: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    delivery_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_subject: Option<&'a str>,
    schema: EventSchema,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own_webhook_id: Option<Cow<'a, str>>,
    attempt: u16,
    origin: AttemptOrigin,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    result: LogResult,
    wait: WaitTransition,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_object: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'a str>,
    accepted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    released_at: Option<Timestamp>,
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_reference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<&'a str>,
}

impl<'a> RecordedEvent<'a> {
    /// The record of a change at `time`, ready for its message.
    pub fn render_record(
        &self,
        change: &EventChange,
        details: RecordDetails<'_>,
        time: Timestamp,
    ) -> Result<RecordText, serde_json::Error> {
        let Self {
            delivery, entry, ..
        } = *self;
        let attempt = self.attempt_number(change.kind);
        let (payload, payload_reference) = self.kept_payload();
        let names = if payload.is_some() && entry.envelope.is_none() {
            // A payload that is the event itself has them.
            EventNames::default()
        } else {
            self.event_names()
        };
        let draft = RecordDraft {
            record_id: record_id(
                self.message_id,
                self.receive_count,
                &entry.key,
                attempt,
                change.kind,
                time,
            ),
            time,
            kind: change.kind,
            topic: delivery.topic.folded_text(),
            subscription: delivery.subscription.folded_text(),
            identity: delivery.identity,
            delivery_key: &entry.key,
            event_id: names.id.as_deref().map(cut_text),
            event_source: names.source.as_deref().map(cut_text),
            event_type: names.event_type.as_deref().map(cut_text),
            event_subject: names.subject.as_deref().map(cut_text),
            schema: delivery.schema,
            webhook_id: details.webhook_id,
            own_webhook_id: entry.marks.replayed.then(|| entry.webhook_id()),
            attempt,
            origin: AttemptOrigin::from_marks(delivery.attempts, &entry.marks),
            run_id: entry.marks.run.as_deref(),
            result: change.result,
            wait: self.wait_change(change.result),
            reason: change.reason.as_deref(),
            status: details.status,
            error: details.error_text(),
            duration_ms: details
                .took
                .map(|took| u32::try_from(took.as_millis()).unwrap_or(u32::MAX)),
            answer: details.answer,
            answer_type: details.answer_type.map(cut_text),
            next_attempt_at: change.next_attempt_at,
            dead_letter_object: details.dead_letter_object,
            endpoint: details.endpoint,
            accepted_at: delivery.published_at,
            released_at: Some(delivery.begins_at()).filter(|at| *at > delivery.published_at),
            expires_at: entry.expires_at,
            traceparent: entry.traceparent.as_deref(),
            payload_reference,
            matched: entry.marks.matched.as_deref(),
        };
        RecordText::new(&draft, payload)
    }

    fn event_names(&self) -> EventNames<'_> {
        let Self {
            delivery, entry, ..
        } = self;
        match (self.text, &entry.payload) {
            (
                None,
                EventPayload::Stored {
                    names: Some(names), ..
                },
            ) => (**names).clone(),
            _ => EventNames::from_event(delivery.schema, self.text, entry.envelope.as_deref()),
        }
    }

    /// Whether it waited before this record, and waits after it.
    fn wait_change(&self, result: LogResult) -> WaitTransition {
        let is_counted = self.entry.marks.is_counted(self.delivery.attempts);
        WaitTransition::between(is_counted && !self.is_given_up, result.is_waiting())
    }

    /// The number of the attempt, or for a change the number of attempts before it.
    fn attempt_number(&self, kind: RecordKind) -> u16 {
        let before = self.delivery.attempts;
        if kind == RecordKind::Attempt {
            before.saturating_add(1)
        } else {
            before
        }
    }

    /// The payload, or the key of a stored one that is too large or was not read. An envelope does
    /// not count. Only records before the first retry have it. One that goes back untried has
    /// it again.
    fn kept_payload(&self) -> (Option<Bytes>, Option<&'a str>) {
        if !self.keeps_payload || self.delivery.attempts > 0 {
            return (None, None);
        }
        let payload = self
            .text
            .filter(|text| text.len() <= LOG_PAYLOAD_BYTES_MAX)
            .map(|text| match &self.entry.envelope {
                Some(envelope) => envelope.wrap_event(text, &[]),
                None => text.clone(),
            });
        match (payload, &self.entry.payload) {
            (Some(payload), _) => (Some(payload), None),
            (None, EventPayload::Stored { key, .. }) => (None, Some(key)),
            (None, EventPayload::Inline(_)) => (None, None),
        }
    }
}

#[cfg(test)]
mod tests;
