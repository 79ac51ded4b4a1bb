//! The payload of an event that is sent again: from the delivery log, the state bucket or a dead letter.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::delivery_log::{DeliveryHistory, Record, ToSendAgain};
use posthaste_core::events::{Envelope, Event};
use posthaste_core::model::{LetterPlace, Schema, Subscription, Timestamp};
use posthaste_core::stored::dead_letter::{RestoreError, restore_all, restore_logged};
use posthaste_core::stored::{Restored, WrittenIn, layout};
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use serde_json::Value;

use crate::answer::ApiError;
use crate::dead_letters::{CLOCKS_DIFFER_MAX, Placed, Scope, Step, Walk, is_lasting};
use crate::manage::Manage;

/// Longest time for a search of the dead letters. A read that begins just before its end still ends before
/// the request's time limit.
const SEARCH_TIME: Duration = Duration::from_secs(8);

/// Most dead-letter objects that are read, so that a search ends even if the clock stands still.
const OBJECTS_MAX: usize = 10_000;

/// The reason why an event that the log knows has no payload there.
const NO_PAYLOAD: &str = "neither the delivery log nor a dead letter has its payload: deliveryLog of the \
    topic is attempts, the event has more than 65,536 bytes, or its first attempt is older than the log";

/// The problem of an id that is nowhere.
const UNKNOWN: &str = "neither the delivery log nor a dead letter of the subscription has an event of this \
    id and key; one that was never tried is not in the log yet";

/// Added to it if the search of the dead letters did not come to its end.
const SEARCH_CUT: &str = "; there are more dead letters than can be searched in one request";

/// An event that can be sent again.
pub(super) struct Found {
    pub(super) event: Event,
    /// The `webhook-id` that it keeps.
    pub(super) webhook_id: Option<String>,
    /// Its dead letter, if it became one.
    pub(super) letter: Option<LetterPlace>,
}

impl<P: Ports> Manage<P> {
    /// The payload of the delivery that was chosen, or of a copy of it.
    pub(super) async fn kept_payload(
        &self,
        chosen: &ToSendAgain<'_>,
        to: &Subscription,
        id: &str,
    ) -> Result<Found, ApiError> {
        for history in &chosen.with_payload {
            if let Some(event) = self.payload_in(history, to, id).await? {
                let letter = self.letter_of(chosen.history, to, id).await;
                return Ok(Found { event, webhook_id: Some(chosen.history.webhook_id()), letter });
            }
        }
        Err(gone(chosen).into())
    }

    /// The dead letter that a delivery became. One that cannot be read is not resolved by sending it again.
    async fn letter_of(&self, history: &DeliveryHistory, to: &Subscription, id: &str) -> Option<LetterPlace> {
        let object = history.dead_letter_object.as_ref()?;
        let (index, _) = self.letter_in(object, to, id).await.ok()??;
        Some(LetterPlace { object: object.clone(), index })
    }

    async fn payload_in(
        &self,
        history: &DeliveryHistory,
        to: &Subscription,
        id: &str,
    ) -> Result<Option<Event>, ApiError> {
        let (record, output) = (history.first(), to.delivery_schema);
        if let Some(payload) = &history.payload {
            let text = Bytes::from(payload.as_str().to_owned());
            return Ok(readable(restore_logged(text, schema(record), output)));
        }
        if let Some(key) = &history.payload_reference
            && let Some(object) = self.state.get(key).await?
        {
            return Ok(readable(stored_event(object.bytes, record, output)));
        }
        let Some(key) = &history.dead_letter_object else { return Ok(None) };
        Ok(self.letter_in(key, to, id).await?.map(|(_, letter)| letter.event))
    }

    /// The newest dead letter of this id, where the log has no record of the event.
    /// `searched_from` says how far the log was searched, if not wholly.
    pub(super) async fn dead_letter_of(
        &self,
        to: &Subscription,
        id: &str,
        searched_from: Option<Timestamp>,
    ) -> Result<Found, ApiError> {
        let scope = Scope::Subscription(layout::dead_letters_of(&to.topic, &to.name));
        let owners = scope.owners(&self.dead_letters).await?;
        let mut walk = Walk::new(owners, WrittenIn::default(), self.clock.now() + CLOCKS_DIFFER_MAX);
        let (end, mut read) = (self.clock.monotonic() + SEARCH_TIME, 0);
        loop {
            let objects = match walk.step(&self.dead_letters).await? {
                Step::Objects(objects) => objects,
                Step::Cut(_) => return Err(unknown(searched_from, true)),
                Step::End => return Err(unknown(searched_from, false)),
            };
            for Placed { key, .. } in objects {
                if read == OBJECTS_MAX || self.clock.monotonic() >= end {
                    return Err(unknown(searched_from, true));
                }
                read += 1;
                let found = match self.letter_in(&key, to, id).await {
                    // It is named where dead letters are listed.
                    Err(error) if is_lasting(&error) => continue,
                    found => found?,
                };
                if let Some((index, Restored { event, .. })) = found {
                    let letter = Some(LetterPlace { object: key, index });
                    return Ok(Found { event, webhook_id: None, letter });
                }
            }
        }
    }

    /// The newest dead letter of this id in an object, with its place; `None` if the object is gone too.
    async fn letter_in(
        &self,
        key: &str,
        to: &Subscription,
        id: &str,
    ) -> Result<Option<(usize, Restored)>, PortError> {
        let Some(object) = self.dead_letters.get(key).await? else { return Ok(None) };
        let letters = restore_all(&object.bytes, to.delivery_schema).unwrap_or_default();
        let own = letters.into_iter().enumerate().filter_map(|(index, letter)| Some((index, letter.ok()?)));
        let own = own.filter(|(_, letter)| letter.event.id() == id && letter.is_for(&to.created));
        Ok(own.max_by_key(|(_, letter)| letter.published_at))
    }
}

/// The schema in which the event was sent.
fn schema(record: &Record) -> Schema {
    let word = record.schema.clone().map(Value::String);
    word.and_then(|word| serde_json::from_value(word).ok()).unwrap_or_default()
}

/// The event of a stored payload. What is around a custom event lay in its message alone: it is made of the
/// record.
fn stored_event(text: Bytes, record: &Record, output: Schema) -> Result<Event, RestoreError> {
    let schema = schema(record);
    if schema != Schema::Custom {
        return restore_logged(text, schema, output);
    }
    let envelope = envelope(record);
    match output {
        Schema::Custom => Ok(Event::enveloped(text, Arc::new(envelope))),
        _ => restore_logged(envelope.around(&text, &[]), schema, output),
    }
}

fn envelope(record: &Record) -> Envelope {
    let text = |text: &Option<String>| text.clone().unwrap_or_default().into_boxed_str();
    Envelope {
        id: text(&record.event_id),
        event_time: record.accepted_at.to_event_grid().into_boxed_str(),
        event_type: text(&record.event_type),
        data_version: Box::default(),
        topic: text(&record.event_source),
        subject: text(&record.event_subject),
    }
}

fn readable(event: Result<Event, RestoreError>) -> Option<Event> {
    event
        .inspect_err(|error| {
            tracing::error!(error = error as &dyn Error, "a payload of the delivery log cannot be read");
        })
        .ok()
}

fn gone(chosen: &ToSendAgain<'_>) -> Problem {
    let reference = chosen.history.payload_reference.as_deref();
    let detail = match (reference.and_then(layout::payload_kept_until), &chosen.history.dead_letter_object) {
        (Some(until), _) => format!("its payload was kept until {until}"),
        (None, Some(object)) => format!("its payload was in the dead letter {object}, which is gone"),
        (None, None) => NO_PAYLOAD.to_owned(),
    };
    Problem::new(ProblemKind::PayloadGone).detail(detail)
}

pub(super) fn unknown(searched_from: Option<Timestamp>, is_cut: bool) -> ApiError {
    let log = searched_from.map(|since| format!("; the log was only searched back to {since}"));
    let letters = if is_cut { SEARCH_CUT } else { "" };
    let detail = format!("{UNKNOWN}{}{letters}", log.unwrap_or_default());
    Problem::new(ProblemKind::NotFound).detail(detail).into()
}
