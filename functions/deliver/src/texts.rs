//! The events' JSON. What lies in the object store is read when its request may begin, not when its message arrives, so
//! that memory holds the payloads of open requests only, and of no more of them than the budget allows.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use posthaste_core::attempt::decide::DeadLetterReason;
use posthaste_core::attempt::settle::EntryVerdict;
use posthaste_core::model::payload::Payload;
use posthaste_ports::{Clock, ObjectStore, Ports};

use crate::Deliver;
use crate::intake::{OUR_FAULT_WAIT, Planned};
use crate::invocation::{EntryRef, Invocation};
use crate::payloads::Held;

/// The texts of a request, and the right to hold them, which lasts until the request was answered.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) loaded: Vec<Loaded>,
    /// The verdicts over the events that have no text.
    pub(crate) unloadable: Vec<(EntryRef, EntryVerdict)>,
    pub(crate) held: Option<Held>,
}

/// An event with its text.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) at: EntryRef,
    pub(crate) text: Bytes,
}

impl<P: Ports> Deliver<P> {
    /// The texts of a request's events, and the verdicts over those whose payload is gone, altered or cannot be read.
    /// Nothing is waited for or read past the last moment at which the request could begin: what was not begun by then
    /// goes back, and what does not answer is postponed.
    pub(crate) async fn load(&self, invocation: &Invocation, planned: &Planned) -> Texts {
        let entries = &planned.entries;
        let end = invocation.last_start(planned.subscription.timeout).unwrap_or_default();
        let bytes = entries.iter().map(|at| stored_bytes(invocation.payload(*at)));
        let bytes = bytes.fold(0, usize::saturating_add);
        let Some(held) = self.before(end, self.payloads.hold(bytes)).await else {
            let unloadable = entries.iter().map(|at| (*at, EntryVerdict::NotStarted)).collect();
            return Texts { unloadable, ..Texts::default() };
        };
        let mut read = vec![None; entries.len()];
        let text = |(index, at): (usize, &EntryRef)| {
            let payload = invocation.payload(*at);
            async move { (index, self.text(payload).await) }
        };
        let mut texts = stream::iter(entries.iter().enumerate().map(text)).buffer_unordered(self.reads_max());
        let all = async {
            while let Some((index, text)) = texts.next().await {
                read[index] = Some(text);
            }
        };
        if self.before(end, all).await.is_none() {
            tracing::warn!(topic = %planned.subscription.topic, subscription = %planned.subscription.name, "payloads not read in time, their events are postponed");
        }
        self.sort(entries, read, held)
    }

    fn sort(
        &self,
        entries: &[EntryRef],
        read: Vec<Option<Result<Bytes, EntryVerdict>>>,
        held: Held,
    ) -> Texts {
        let mut texts = Texts { held: Some(held), ..Texts::default() };
        for (at, text) in entries.iter().zip(read) {
            match text.unwrap_or_else(|| Err(self.postponed())) {
                Ok(text) => texts.loaded.push(Loaded { at: *at, text }),
                Err(verdict) => texts.unloadable.push((*at, verdict)),
            }
        }
        texts
    }

    pub(crate) async fn text(&self, payload: &Payload) -> Result<Bytes, EntryVerdict> {
        let key = match payload {
            Payload::Inline(json) => return Ok(json.clone()),
            Payload::Stored { key, .. } => key,
        };
        match self.payloads.read(self.ports.state.get(key)).await {
            Ok(Some(object)) if payload.is(&object.bytes) => Ok(object.bytes),
            Ok(Some(_)) => {
                tracing::error!(%key, "payload is not what was stored, event given up");
                Err(EntryVerdict::GiveUp { reason: DeadLetterReason::MalformedMessage, last: None })
            }
            Ok(None) => Err(EntryVerdict::GiveUp { reason: DeadLetterReason::MalformedMessage, last: None }),
            Err(error) => {
                tracing::warn!(%key, error = &error as &dyn std::error::Error, "payload not readable, event postponed");
                Err(self.postponed())
            }
        }
    }

    fn postponed(&self) -> EntryVerdict {
        EntryVerdict::Postponed { not_before: self.ports.clock.now() + OUR_FAULT_WAIT }
    }

    /// One request alone may use all the reads there are.
    fn reads_max(&self) -> usize {
        self.settings.payload_reads_max.max(1)
    }
}

/// What a payload takes of the budget. One that came in its message is in memory already.
fn stored_bytes(payload: &Payload) -> usize {
    match payload {
        Payload::Inline(_) => 0,
        Payload::Stored { bytes, .. } => *bytes,
    }
}
