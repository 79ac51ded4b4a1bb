//! The notice about an event that was dead-lettered or dropped: what a non-delivery report is to a
//! mail.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::envelope::{NoticeEnvelope, subscription_path};
use crate::events::{Event, EventError, without_members};
use crate::model::{
    DeadLetter, DeadLetterReason, DeliveryEntry, EventSchema, NOTICE_BYTES_MAX,
    NOTICE_TEXT_CHARS_MAX, OutcomeName, SubscriptionName, Timestamp, TopicName,
};

/// The type of a notice about an event that was given up.
pub const DELIVERY_FAILED: &str = "dev.posthaste.delivery.failed";

/// An event was dead-lettered or dropped.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryFailedNotice<'a> {
    /// The letter with which it was given up.
    pub letter: &'a DeadLetter,
    /// The event among those of the letter.
    pub entry: &'a DeliveryEntry,
    /// The text of the event; `None` if it cannot be read any more.
    pub text: Option<&'a Bytes>,
    /// The dead-letter object it lies in; `None` if it was dropped.
    pub object: Option<&'a str>,
    /// The time at which that became known.
    pub at: Timestamp,
}

/// The members have Event Grid's names where its dead letters have the same.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryFailedData<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Cow<'a, str>>,
    dead_letter_reason: DeadLetterReason,
    delivery_attempts: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_delivery_outcome: Option<OutcomeName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_http_status_code: Option<u16>,
    publish_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_delivery_attempt_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_object: Option<&'a str>,
    schema: EventSchema,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    data_omitted: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    attributes_omitted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a RawValue>,
}

/// The part of the event that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventExcerpt {
    Whole,
    WithoutData,
    /// The attributes are too long themselves: only the beginnings of those that identify it.
    Beginnings,
}

impl DeliveryFailedNotice<'_> {
    /// The event is shown whole while the notice is not too long, then without its data, then in
    /// its beginnings.
    pub(super) fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        let Some(original) = self.text.and_then(|text| self.original_event(text)) else {
            return self.event_with_excerpt(schema, None, None, EventExcerpt::Beginnings);
        };
        for (shown, text) in [
            (EventExcerpt::Whole, Some(original.json().clone())),
            (EventExcerpt::WithoutData, without_data(&original)),
        ] {
            if text
                .as_ref()
                .is_none_or(|text| text.len() <= NOTICE_BYTES_MAX)
            {
                let notice =
                    self.event_with_excerpt(schema, Some(&original), text.as_ref(), shown)?;
                if notice.json().len() <= NOTICE_BYTES_MAX {
                    return Ok(notice);
                }
            }
        }
        self.event_with_excerpt(schema, Some(&original), None, EventExcerpt::Beginnings)
    }

    fn original_event(&self, text: &Bytes) -> Option<Event> {
        match &self.entry.envelope {
            Some(envelope) => Some(Event::from_envelope(text.clone(), Arc::clone(envelope))),
            None => Event::parse(self.letter.delivery.schema, text.clone()).ok(),
        }
    }

    fn event_with_excerpt(
        &self,
        schema: EventSchema,
        original: Option<&Event>,
        text: Option<&Bytes>,
        shown: EventExcerpt,
    ) -> Result<Event, EventError> {
        let delivery = &self.letter.delivery;
        let last = self.letter.delivery.last;
        let topic = &delivery.topic;
        let subscription = &delivery.subscription;
        let report = DeliveryFailedData {
            topic,
            subscription,
            id: original
                .map(Event::id)
                .map(|value| shorten_attribute(value, shown)),
            source: original
                .and_then(Event::source)
                .map(|value| shorten_attribute(value, shown)),
            r#type: original
                .map(Event::event_type)
                .map(|value| shorten_attribute(value, shown)),
            subject: original
                .and_then(Event::subject)
                .map(|value| shorten_attribute(value, shown)),
            dead_letter_reason: self.letter.reason,
            delivery_attempts: delivery.attempts,
            last_delivery_outcome: self.letter.last_outcome(),
            last_http_status_code: last.and_then(|last| last.status),
            publish_time: delivery.published_at.to_event_grid(),
            last_delivery_attempt_time: last.map(|last| last.at.to_event_grid()),
            dead_letter_object: self.object,
            schema: delivery.schema,
            data_omitted: shown != EventExcerpt::Whole,
            attributes_omitted: shown == EventExcerpt::Beginnings,
            event: text.and_then(|text| serde_json::from_slice(text).ok()),
        };
        let envelope = NoticeEnvelope {
            id: format!(
                "{}.{}.{}",
                topic.folded(),
                subscription.folded(),
                self.entry.key
            ),
            event_type: DELIVERY_FAILED,
            source: subscription_path(topic, subscription),
            subject: subscription_path(topic, subscription),
            at: self.at,
            traceparent: self.entry.traceparent.as_deref(),
            text: format!(
                "An event of {topic}/{subscription} was given up after {} attempts: {}.",
                delivery.attempts, self.letter.reason
            ),
        };
        envelope.with_data(&report, schema)
    }
}

/// An attribute as far as it is shown.
fn shorten_attribute(value: &str, shown: EventExcerpt) -> Cow<'_, str> {
    match value.char_indices().nth(NOTICE_TEXT_CHARS_MAX) {
        Some((end, _)) if shown == EventExcerpt::Beginnings => format!("{}…", &value[..end]).into(),
        _ => value.into(),
    }
}

/// The event's text without its data. A custom event is nothing else.
fn without_data(event: &Event) -> Option<Bytes> {
    match event.schema() {
        EventSchema::CloudEvents => {
            let without = without_members(event.json(), "data", &["data"]);
            Some(without_members(&without, "data_base64", &["data_base64"]))
        }
        EventSchema::EventGrid => Some(without_members(event.json(), "data", &["data"])),
        EventSchema::Custom => None,
    }
}

#[cfg(test)]
mod tests;
