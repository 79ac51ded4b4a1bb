//! An event of the delivery log that is sent again: its text from the log, the state bucket or a
//! dead letter.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::delivery_log::{DeliveryHistory, LogRecord, is_same_log_text};
use posthaste_core::events::Event;
use posthaste_core::model::{EventEnvelope, EventSchema, LetterPlace, Subscription};
use posthaste_core::stored::RestoredLetter;
use posthaste_core::stored::dead_letter::{RestoreError, restore_all, restore_logged};
use posthaste_ports::{ObjectStore, PortError};

/// An event, and the places where its text may be kept.
#[derive(Debug, Clone, Copy)]
pub struct KeptEvent<'a, S, D> {
    /// The state bucket.
    pub state: &'a S,
    /// The dead-letter bucket.
    pub dead_letters: &'a D,
    /// The subscription that receives the event.
    pub to: &'a Subscription,
    /// The event's id, as far as the log keeps it.
    pub id: &'a str,
    /// Whether dead letters of earlier subscriptions of the name count too.
    pub include_former: bool,
}

impl<S: ObjectStore, D: ObjectStore> KeptEvent<'_, S, D> {
    /// The event as a delivery of it has it; `None` if nothing has it any longer, or if it cannot
    /// be read.
    pub async fn find_event(&self, history: &DeliveryHistory) -> Result<Option<Event>, PortError> {
        let record = history.first();
        let output = self.to.delivery_schema;
        if let Some(payload) = &history.payload {
            let text = Bytes::from(payload.as_str().to_owned());
            return Ok(readable_or_log(restore_logged(
                text,
                record_schema(record),
                output,
            )));
        }
        if let Some(key) = &history.payload_reference
            && let Some(object) = self.state.get(key).await?
        {
            return Ok(readable_or_log(stored_event(object.bytes, record, output)));
        }
        let Some(key) = &history.dead_letter_object else {
            return Ok(None);
        };
        let found = self.letter_of_delivery(key, history).await?;
        Ok(found.map(|(_, letter)| letter.event))
    }

    /// The dead letter that a delivery became, if it did and its object is still there.
    pub async fn find_letter(
        &self,
        history: &DeliveryHistory,
    ) -> Result<Option<LetterPlace>, PortError> {
        let Some(object) = &history.dead_letter_object else {
            return Ok(None);
        };
        let found = self.letter_of_delivery(object, history).await?;
        Ok(found.map(|(index, _)| LetterPlace {
            object: object.clone(),
            index,
        }))
    }

    /// The newest dead letter of the event, or of this delivery of it, in an object, with its place;
    /// `None` if the object is gone too.
    pub async fn newest_letter_in(
        &self,
        key: &str,
        delivery_key: Option<&str>,
    ) -> Result<Option<(usize, RestoredLetter)>, PortError> {
        let own = self.own_letters(key).await?.into_iter();
        let own = own.filter(|(_, letter)| {
            delivery_key.is_none_or(|asked| letter.delivery_key.as_deref() == Some(asked))
        });
        Ok(own.max_by_key(|(_, letter)| letter.published_at))
    }

    /// The dead letter of this delivery in an object. A letter of release 0.1 does not name its
    /// delivery, and the log has only the beginning of an id. So a letter that was accepted at
    /// another time is of another event, and of several letters that differ none is known to be the
    /// delivery's. A second copy of a message may have left the same letter twice.
    async fn letter_of_delivery(
        &self,
        key: &str,
        history: &DeliveryHistory,
    ) -> Result<Option<(usize, RestoredLetter)>, PortError> {
        let accepted_at = history.first().accepted_at;
        let mut own = self.own_letters(key).await?;
        own.retain(|(_, letter)| match &letter.delivery_key {
            Some(key) => *key == history.key,
            None => letter.published_at.is_none_or(|at| at == accepted_at),
        });
        let last = own.pop();
        Ok(last.filter(|(_, last)| {
            own.iter()
                .all(|(_, other)| is_same(&last.event, &other.event))
        }))
    }

    /// The dead letters of this id in an object, with their places. There are none if it is gone.
    async fn own_letters(&self, key: &str) -> Result<Vec<(usize, RestoredLetter)>, PortError> {
        let Some(object) = self.dead_letters.get(key).await? else {
            return Ok(Vec::new());
        };
        let letters = restore_all(&object.bytes, self.to.delivery_schema).unwrap_or_default();
        let letters = letters
            .into_iter()
            .enumerate()
            .filter_map(|(index, letter)| Some((index, letter.ok()?)));
        Ok(letters.filter(|(_, letter)| self.is_own(letter)).collect())
    }

    fn is_own(&self, letter: &RestoredLetter) -> bool {
        is_same_log_text(letter.event.id(), self.id)
            && (self.include_former || letter.is_for(&self.to.created))
    }
}

fn is_same(one: &Event, other: &Event) -> bool {
    one.json() == other.json() && one.envelope() == other.envelope()
}

/// The schema in which the event was sent.
fn record_schema(record: &LogRecord) -> EventSchema {
    record
        .schema
        .as_deref()
        .and_then(EventSchema::parse)
        .unwrap_or_default()
}

/// The event of a stored payload. The envelope of a custom event lay in its message alone: it is
/// made from the record.
fn stored_event(
    text: Bytes,
    record: &LogRecord,
    output: EventSchema,
) -> Result<Event, RestoreError> {
    let schema = record_schema(record);
    if schema != EventSchema::Custom {
        return restore_logged(text, schema, output);
    }
    let envelope = envelope_from_record(record);
    match output {
        EventSchema::Custom => Ok(Event::from_envelope(text, Arc::new(envelope))),
        _ => restore_logged(envelope.wrap_event(&text, &[]), schema, output),
    }
}

fn boxed_text(text: Option<&str>) -> Box<str> {
    text.unwrap_or_default().into()
}

fn envelope_from_record(record: &LogRecord) -> EventEnvelope {
    EventEnvelope {
        id: boxed_text(record.event_id.as_deref()),
        event_time: record.accepted_at.to_event_grid().into_boxed_str(),
        event_type: boxed_text(record.event_type.as_deref()),
        data_version: Box::default(),
        topic: boxed_text(record.event_source.as_deref()),
        subject: boxed_text(record.event_subject.as_deref()),
    }
}

fn readable_or_log(event: Result<Event, RestoreError>) -> Option<Event> {
    event
        .inspect_err(|error| {
            tracing::error!(
                error = error as &dyn Error,
                "a payload of the delivery log cannot be read"
            );
        })
        .ok()
}
