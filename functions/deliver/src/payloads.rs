//! Reads payloads. A stored payload is read when its request may begin, not when its message
//! arrives. So memory holds only the payloads of open requests, within the budget.

pub(crate) mod budget;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::model::{DeadLetterReason, EventPayload};
use posthaste_ports::{Clock, ObjectStore, Ports};
use posthaste_services::stop_at;
use tokio::sync::OwnedSemaphorePermit;

use crate::invocation::EntryRef;
use crate::limits::{DeliverSettings, OUR_FAULT_WAIT};
use budget::PayloadBudget;

/// Reads payloads within the budget.
pub(crate) struct PayloadReader<P: Ports> {
    state: Arc<P::Store>,
    clock: P::Clock,
    budget: PayloadBudget,
    reads_max: usize,
}

/// Payloads in the order in which they were asked for, each as its text or as the verdict over its
/// event.
pub(crate) struct PayloadTexts {
    pub(crate) texts: Vec<Result<Bytes, EntryVerdict>>,
    /// The right to hold them.
    pub(crate) held: Option<OwnedSemaphorePermit>,
}

/// An event with its text.
#[derive(Debug)]
pub(crate) struct LoadedPayload {
    pub(crate) at: EntryRef,
    pub(crate) text: Bytes,
}

impl<P: Ports> PayloadReader<P> {
    pub(crate) fn new(state: Arc<P::Store>, clock: P::Clock, settings: &DeliverSettings) -> Self {
        // One request alone may use all the reads there are.
        let reads_max = settings.payload_reads_max.max(1);
        let budget = PayloadBudget::new(settings.payload_bytes_max, reads_max);
        Self {
            state,
            clock,
            budget,
            reads_max,
        }
    }

    /// Reads payloads until `end`. An event is not started if its bytes could not be held by then,
    /// given up if its payload is missing or altered, and postponed if its payload could not be
    /// read.
    pub(crate) async fn read(&self, payloads: &[&EventPayload], end: Duration) -> PayloadTexts {
        let texts: Option<Vec<_>> = payloads
            .iter()
            .map(|payload| inline_text(payload))
            .collect();
        if let Some(texts) = texts {
            return PayloadTexts { texts, held: None };
        }
        Box::pin(self.read_stored(payloads, end)).await
    }

    async fn read_stored(&self, payloads: &[&EventPayload], end: Duration) -> PayloadTexts {
        let bytes = payloads
            .iter()
            .map(|payload| stored_bytes(payload))
            .fold(0, usize::saturating_add);
        let Some(held) = stop_at(&self.clock, end, self.budget.hold_bytes(bytes)).await else {
            let texts = vec![Err(EntryVerdict::NotStarted); payloads.len()];
            return PayloadTexts { texts, held: None };
        };
        let mut texts: Vec<_> = payloads
            .iter()
            .map(|payload| inline_text(payload))
            .collect();
        let reads = payloads
            .iter()
            .enumerate()
            .filter_map(|(index, payload)| match payload {
                EventPayload::Stored { key, .. } => Some(self.read_one_stored(index, key, payload)),
                EventPayload::Inline(_) => None,
            });
        let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(self.reads_max);
        let all = async {
            while let Some((index, text)) = reads.next().await {
                texts[index] = Some(text);
            }
        };
        if stop_at(&self.clock, end, all).await.is_none() {
            tracing::warn!("payloads not read in time, their events are postponed");
        }
        let texts = texts
            .into_iter()
            .map(|text| text.unwrap_or_else(|| Err(self.postponed_verdict())))
            .collect();
        PayloadTexts { texts, held }
    }

    async fn read_one_stored(
        &self,
        index: usize,
        key: &str,
        payload: &EventPayload,
    ) -> (usize, Result<Bytes, EntryVerdict>) {
        let text = match self.budget.read_in_turn(self.state.get(key)).await {
            Ok(Some(object)) if payload.matches_text(&object.bytes) => Ok(object.bytes),
            Ok(Some(_)) => {
                tracing::error!(%key, "payload is not what was stored, event given up");
                Err(EntryVerdict::GiveUp {
                    reason: DeadLetterReason::MalformedMessage,
                    last: None,
                })
            }
            Ok(None) => Err(EntryVerdict::GiveUp {
                reason: DeadLetterReason::MalformedMessage,
                last: None,
            }),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%key, error, "payload not readable, event postponed");
                Err(self.postponed_verdict())
            }
        };
        (index, text)
    }

    fn postponed_verdict(&self) -> EntryVerdict {
        EntryVerdict::Postponed {
            not_before: self.clock.now() + OUR_FAULT_WAIT,
        }
    }
}

/// A payload that came in its message is in memory already.
fn inline_text(payload: &EventPayload) -> Option<Result<Bytes, EntryVerdict>> {
    match payload {
        EventPayload::Inline(json) => Some(Ok(json.clone())),
        EventPayload::Stored { .. } => None,
    }
}

/// The bytes that a payload takes of the budget.
fn stored_bytes(payload: &EventPayload) -> usize {
    match payload {
        EventPayload::Inline(_) => 0,
        EventPayload::Stored { bytes, .. } => *bytes,
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::PayloadDigest;
    use posthaste_ports::{ErrorKind, PutCondition};
    use posthaste_testkit::{CallFault, FaultPlan, PortOperation};

    use super::*;
    use crate::testing::{START, TestPorts, World, secs};

    const END: Duration = secs(60);

    fn reader(world: &World) -> PayloadReader<TestPorts> {
        PayloadReader::new(
            Arc::clone(&world.state),
            world.clock.clone(),
            &DeliverSettings::default(),
        )
    }

    fn inline(text: &'static str) -> EventPayload {
        EventPayload::Inline(Bytes::from_static(text.as_bytes()))
    }

    fn stored(key: &str, text: &str) -> EventPayload {
        let digest = Some(PayloadDigest::for_json(text.as_bytes()));
        EventPayload::Stored {
            key: key.to_owned(),
            bytes: text.len(),
            digest,
            names: None,
        }
    }

    async fn put(world: &World, key: &str, text: &'static str) {
        world
            .memory
            .put(
                key,
                Bytes::from_static(text.as_bytes()),
                PutCondition::Always,
            )
            .await
            .unwrap();
    }

    fn gone() -> EntryVerdict {
        EntryVerdict::GiveUp {
            reason: DeadLetterReason::MalformedMessage,
            last: None,
        }
    }

    #[tokio::test]
    async fn payloads_come_in_order_and_only_stored_ones_are_read() {
        let world = World::new();
        put(&world, "payloads/b", "B").await;
        let payloads = [inline("A"), stored("payloads/b", "B"), inline("C")];
        let read = reader(&world).read(&payloads.each_ref(), END).await;
        assert_eq!(
            read.texts,
            ["A", "B", "C"].map(|text| Ok(Bytes::from(text)))
        );
        assert!(read.held.is_some());
        assert_eq!(world.calls.count(PortOperation::Get), 1);
    }

    #[tokio::test]
    async fn a_payload_that_is_missing_or_altered_is_given_up() {
        let world = World::new();
        put(&world, "payloads/altered", "X").await;
        let payloads = [
            stored("payloads/missing", "A"),
            stored("payloads/altered", "A"),
            inline("B"),
        ];
        let read = reader(&world).read(&payloads.each_ref(), END).await;
        assert_eq!(read.texts, [Err(gone()), Err(gone()), Ok(Bytes::from("B"))]);
    }

    #[tokio::test]
    async fn a_payload_that_cannot_be_read_is_postponed() {
        let world = World::with(
            &FaultPlan::nth(0, CallFault::Before(ErrorKind::Other)),
            &FaultPlan::none(),
        );
        put(&world, "payloads/a", "A").await;
        let read = reader(&world)
            .read(&[&stored("payloads/a", "A")], END)
            .await;
        assert_eq!(
            read.texts,
            [Err(EntryVerdict::Postponed {
                not_before: START + OUR_FAULT_WAIT
            })]
        );
    }

    #[tokio::test]
    async fn past_the_end_nothing_is_started() {
        let world = World::new();
        let read = reader(&world)
            .read(&[&inline("A"), &stored("payloads/a", "A")], Duration::ZERO)
            .await;
        assert_eq!(
            read.texts,
            [Err(EntryVerdict::NotStarted), Err(EntryVerdict::NotStarted)]
        );
        assert!(read.held.is_none());
        assert_eq!(world.calls.count(PortOperation::Get), 0);
    }

    /// A read that hangs past the end is postponed, and its neighbours keep their texts.
    #[tokio::test]
    async fn hanging_read_is_postponed_and_its_neighbours_stay() {
        let hanging = FaultPlan::by(|effect| {
            (effect.key == "payloads/slow").then_some(CallFault::HangBefore)
        });
        let world = World::with(&hanging, &FaultPlan::none());
        put(&world, "payloads/a", "A").await;
        let payloads = [stored("payloads/slow", "S"), stored("payloads/a", "A")];
        let reader = reader(&world);
        let refs = payloads.each_ref();
        let read = tokio::join!(reader.read(&refs, END), async {
            while world.clock.sleepers() == 0 || world.calls.count(PortOperation::Get) < 1 {
                tokio::task::yield_now().await;
            }
            world.clock.advance(END);
        });
        let postponed = EntryVerdict::Postponed {
            not_before: START + END + OUR_FAULT_WAIT,
        };
        assert_eq!(read.0.texts, [Err(postponed), Ok(Bytes::from("A"))]);
    }
}
