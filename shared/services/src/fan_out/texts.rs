//! The texts that go out: one for each event and schema that somebody receives it in, converted once, and stored once
//! where that is cheaper than a copy in each message, or where a message cannot hold it as it is.

use futures_util::future::try_join_all;
use posthaste_core::events::{Event, converted, fits_into_a_message};
use posthaste_core::model::delivery::{Payload, PayloadDigest};
use posthaste_core::model::schema::Schema;
use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::layout;

use super::plan::Plan;
use super::{FanOut, FanOutError};
use bytes::Bytes;
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectStore, PortError, PutCondition, QueueSender};

/// Most payloads of one request that are being stored at once. It bounds the converted texts that are held, but for
/// those that travel in messages.
const PAYLOAD_PUTS_AT_ONCE: usize = 8;

/// Where the text of every event is, by the schema it is sent in. An event that nobody receives in a schema has an empty
/// one there, and a schema that nobody receives has none at all.
#[derive(Debug, Default)]
pub(super) struct Texts([Vec<Payload>; Schema::ALL.len()]);

impl Texts {
    /// The text of an event that somebody receives in this schema.
    pub(super) fn payload(&self, schema: Schema, index: usize) -> &Payload {
        &self.0[schema as usize][index]
    }

    #[cfg(test)]
    pub(super) fn inline(schema: Schema, events: &[Event]) -> Self {
        let mut texts = Self::default();
        texts.0[schema as usize] = events.iter().map(|e| Payload::Inline(e.json().clone())).collect();
        texts
    }
}

impl<Q, S, C, E> FanOut<'_, Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Converts every event into the schemas in which it is received. What is to be stored is durable on return.
    pub(super) async fn texts(
        &self,
        plan: &Plan<'_>,
        events: &[Event],
        dehydrate: bool,
        at: Timestamp,
    ) -> Result<Texts, FanOutError> {
        let (mut texts, mut waiting) = (Texts::default(), Vec::new());
        for schema in plan.schemas() {
            let payloads = &mut texts.0[schema as usize];
            payloads.reserve_exact(events.len());
            for (index, event) in events.iter().enumerate() {
                if !plan.is_received(index, schema) {
                    payloads.push(Payload::Inline(Bytes::new()));
                    continue;
                }
                let text = converted(event, schema).map_err(unconvertible)?;
                let is_stored =
                    plan.stores(index, schema, text.len(), dehydrate) || !fits_into_a_message(&text);
                if !is_stored {
                    payloads.push(Payload::Inline(text));
                    continue;
                }
                let key = layout::payload(at, &self.entropy.uuid().to_string());
                let digest = Some(PayloadDigest::of(&text));
                payloads.push(Payload::Stored { key: key.clone(), bytes: text.len(), digest });
                waiting.push((key, text));
                if waiting.len() == PAYLOAD_PUTS_AT_ONCE {
                    self.store(std::mem::take(&mut waiting)).await?;
                }
            }
        }
        self.store(waiting).await?;
        Ok(texts)
    }

    async fn store(&self, texts: Vec<(String, Bytes)>) -> Result<(), FanOutError> {
        let put = |(key, text): (String, Bytes)| async move {
            self.payloads.put(&key, text, PutCondition::Always).await
        };
        try_join_all(texts.into_iter().map(put)).await.map(drop).map_err(FanOutError::Payload)
    }
}

/// An accepted event that is not valid in its schema is a fault of this program.
fn unconvertible(error: posthaste_core::events::EventError) -> FanOutError {
    FanOutError::Conversion(PortError::caused("convert an event", ErrorKind::Invalid, error))
}
