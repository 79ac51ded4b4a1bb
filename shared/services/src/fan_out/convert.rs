//! From events to payloads: each event is converted once for each schema in which it is received.
//! It is stored once if that is cheaper than a copy in each message, or if no message can hold it.

use bytes::Bytes;
use futures_util::future::try_join_all;
use posthaste_core::delivery_log::names_to_keep;
use posthaste_core::events::{Event, EventError, convert_event};
use posthaste_core::model::{
    EventPayload, EventSchema, PayloadDigest, SCHEDULED_OBJECTS_PER_REQUEST_MAX, Timestamp,
    fits_into_a_message,
};
use posthaste_core::stored::layout;
use posthaste_ports::{Entropy, ErrorKind, ObjectStore, PortError, PutCondition};

use super::plan::{FanOutPlan, InlineEvents, SchemaPayloads};
use super::schedule::EventSchedule;

/// Most payloads of one request that are being stored at once. This bounds the converted texts in
/// memory, besides those that travel in messages.
const PAYLOAD_PUTS_AT_ONCE: usize = 8;

/// Reasons for which not all of a fan-out was written. The written part is delivered; repeating the
/// fan-out may duplicate it, unless [`FanOutError::sent_nothing`].
#[derive(Debug, thiserror::Error)]
pub enum FanOutError {
    /// An event that cannot be sent in a subscription's schema.
    #[error("failed to convert an event")]
    Conversion(#[source] PortError),
    /// A payload that several messages were to share.
    #[error("failed to store a payload")]
    Payload(#[source] PortError),
    /// A message.
    #[error("failed to queue a delivery")]
    Message(#[source] PortError),
    /// The messages, of which the queue takes all or none.
    #[error("failed to queue the deliveries, none of them was")]
    Whole(#[source] PortError),
    /// Deliveries that are not sent before their time.
    #[error("failed to park deliveries")]
    Scheduled(#[source] PortError),
    /// Scheduled deliveries, of which nothing was written.
    #[error(
        "expected at most {SCHEDULED_OBJECTS_PER_REQUEST_MAX} different subscriptions and minutes, \
         found {objects}"
    )]
    TooManyScheduled {
        /// The subscriptions that match, each with its minutes.
        objects: usize,
    },
}

impl FanOutError {
    /// The error of the port. `None` if the request asks for too much.
    pub fn port_error(&self) -> Option<&PortError> {
        match self {
            Self::Conversion(error)
            | Self::Payload(error)
            | Self::Message(error)
            | Self::Scheduled(error)
            | Self::Whole(error) => Some(error),
            Self::TooManyScheduled { .. } => None,
        }
    }

    /// The same error where other deliveries were made.
    pub(super) fn into_partial(self) -> Self {
        match self {
            Self::Whole(error) => Self::Message(error),
            error => error,
        }
    }

    /// Whether it is known that no delivery was made. A queue whose response is lost may have taken
    /// all.
    pub fn sent_nothing(&self) -> bool {
        match self {
            Self::Conversion(_) | Self::Payload(_) | Self::TooManyScheduled { .. } => true,
            Self::Whole(error) => matches!(error.kind, ErrorKind::Full | ErrorKind::Invalid),
            Self::Message(_) | Self::Scheduled(_) => false,
        }
    }
}

/// Converts the events of one request.
#[derive(Debug)]
pub(super) struct EventConverter<'a, S, E> {
    /// The state bucket, for payloads that are stored.
    pub(super) store: &'a S,
    /// Chance, for their keys.
    pub(super) entropy: &'a E,
    /// The time at which the events were accepted.
    pub(super) at: Timestamp,
    /// The events that travel in their messages.
    pub(super) inline: InlineEvents,
    /// The times before which they are not sent.
    pub(super) schedule: &'a EventSchedule,
}

impl<S: ObjectStore, E: Entropy> EventConverter<'_, S, E> {
    /// Converts every event into the schemas in which it is received. Stored payloads are durable
    /// on return.
    pub(super) async fn convert_all(
        &self,
        plan: &FanOutPlan<'_>,
        events: &[Event],
    ) -> Result<SchemaPayloads, FanOutError> {
        let mut payloads = SchemaPayloads::default();
        let mut waiting = Vec::new();
        for schema in plan.received_schemas() {
            let mut in_schema = Vec::with_capacity(events.len());
            for (index, event) in events.iter().enumerate() {
                in_schema.push(self.convert_one(plan, index, event, schema, &mut waiting)?);
                if waiting.len() == PAYLOAD_PUTS_AT_ONCE {
                    self.store_payloads(std::mem::take(&mut waiting)).await?;
                }
            }
            payloads.set_schema(schema, in_schema);
        }
        self.store_payloads(waiting).await?;
        Ok(payloads)
    }

    /// The payload of one event in one schema. If it is to be stored, it is added to `waiting`.
    fn convert_one(
        &self,
        plan: &FanOutPlan<'_>,
        index: usize,
        event: &Event,
        schema: EventSchema,
        waiting: &mut Vec<(String, Bytes)>,
    ) -> Result<EventPayload, FanOutError> {
        if !plan.is_received(index, schema) {
            return Ok(EventPayload::Inline(Bytes::new()));
        }
        let text = convert_event(event, schema).map_err(conversion_error)?;
        if !plan.is_stored(index, schema, text.len(), self.inline) && fits_into_a_message(&text) {
            return Ok(EventPayload::Inline(text));
        }
        let id = self.entropy.uuid().to_string();
        let key = match self.schedule.later_than(self.at, index) {
            Some(not_before) => layout::scheduled_payload(not_before, &id),
            None => layout::payload_key(self.at, &id),
        };
        let payload = EventPayload::Stored {
            key: key.clone(),
            bytes: text.len(),
            digest: Some(PayloadDigest::for_json(&text)),
            names: names_to_keep(schema, &text),
        };
        waiting.push((key, text));
        Ok(payload)
    }

    async fn store_payloads(&self, texts: Vec<(String, Bytes)>) -> Result<(), FanOutError> {
        let puts = texts.into_iter().map(|(key, text)| async move {
            self.store.put(&key, text, PutCondition::Always).await
        });
        try_join_all(puts)
            .await
            .map(drop)
            .map_err(FanOutError::Payload)
    }
}

/// An accepted event that is not valid in its schema is a fault of this program.
fn conversion_error(error: EventError) -> FanOutError {
    FanOutError::Conversion(PortError::with_cause(
        "convert an event",
        ErrorKind::Invalid,
        error,
    ))
}
