//! The events' JSON. What lies in the object store is read when its request may begin, not when its message arrives, so
//! that memory holds the payloads of open requests only.

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::decide::DeadLetterReason;
use posthaste_core::delivery::Payload;
use posthaste_core::settle::EntryVerdict;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueReceiver, WebhookClient};

use crate::Deliver;
use crate::intake::OUR_FAULT_WAIT;
use crate::invocation::{EntryRef, Invocation};

/// An event with its text.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) at: EntryRef,
    pub(crate) text: Bytes,
}

impl<Q, S, W, C, E> Deliver<Q, S, W, C, E>
where
    Q: QueueReceiver,
    S: ObjectStore,
    W: WebhookClient,
    C: Clock,
    E: Entropy,
{
    /// The texts of these events, and the verdicts over those whose payload is gone, altered or cannot be read.
    pub(crate) async fn load(
        &self,
        invocation: &Invocation,
        entries: &[EntryRef],
    ) -> (Vec<Loaded>, Vec<(EntryRef, EntryVerdict)>) {
        let (mut loaded, mut unloadable) = (Vec::with_capacity(entries.len()), Vec::new());
        let texts = join_all(entries.iter().map(|at| self.text(invocation.payload(*at)))).await;
        for (at, text) in entries.iter().zip(texts) {
            match text {
                Ok(text) => loaded.push(Loaded { at: *at, text }),
                Err(verdict) => unloadable.push((*at, verdict)),
            }
        }
        (loaded, unloadable)
    }

    async fn text(&self, payload: &Payload) -> Result<Bytes, EntryVerdict> {
        let key = match payload {
            Payload::Inline(json) => return Ok(json.clone()),
            Payload::Stored { key, .. } => key,
        };
        match self.ports.state.get(key).await {
            Ok(Some(object)) if payload.is(&object.bytes) => Ok(object.bytes),
            Ok(Some(_)) => {
                tracing::error!(%key, "payload is not what was stored, event given up");
                Err(EntryVerdict::GiveUp { reason: DeadLetterReason::MalformedMessage, last: None })
            }
            Ok(None) => Err(EntryVerdict::GiveUp { reason: DeadLetterReason::MalformedMessage, last: None }),
            Err(error) => {
                tracing::warn!(%key, error = &error as &dyn std::error::Error, "payload not readable, event postponed");
                Err(EntryVerdict::Postponed { not_before: self.ports.clock.now() + OUR_FAULT_WAIT })
            }
        }
    }
}
