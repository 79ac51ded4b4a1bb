//! Parking: deliveries that wait longer than the queue can delay go into the object store, many in one object.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use posthaste_core::batch::Pack;
use posthaste_core::delivery::Delivery;
use posthaste_core::layout;
use posthaste_core::limits::{PARKED_OBJECT_BYTES_PREFERRED, SQS_DELAY_SECS_MAX};
use posthaste_core::wire::{render_delivery, render_parked};
use posthaste_ports::guard::{Panicked, guarded};
use posthaste_ports::{
    Clock, Entropy, ErrorKind, ObjectStore, PortError, PutCondition, QueueReceiver, QueueSender,
    WebhookClient,
};

use crate::Deliver;
use crate::invocation::{Invocation, Parking};
use crate::settle::{SETTLED_AT_ONCE_MAX, retry};

/// Most deliveries in one object: more than an invocation can hold.
const PARKED_PER_OBJECT_MAX: usize = 10_000;

/// Objects that are written side by side. Each is 4 MiB at most, and all together hold less than the batch did.
const PUTS_AT_ONCE_MAX: usize = 16;

const PARKING: &str = "park deliveries";

/// The deliveries that share an object: the owner's index and the message.
type Shared<'a> = (&'a Delivery, Vec<(usize, Bytes)>);

impl<Q, S, W, C, E> Deliver<Q, S, W, C, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    W: WebhookClient,
    C: Clock,
    E: Entropy,
{
    /// Parks what the invocation gathered, then deletes the messages it came from. Deliveries
    /// of a message one of which could not be written wait in the queue instead; those that were written are copies.
    pub(crate) async fn park(&self, invocation: &Invocation) {
        let parking = invocation.take_parking();
        let count = parking.len();
        if guarded(self.park_all(invocation, parking)).await.is_err() {
            tracing::error!(messages = count, "messages handed back, parking them panicked");
        }
    }

    async fn park_all(&self, invocation: &Invocation, parking: Vec<Parking>) {
        let is_written = self.write_all(invocation, &parking).await;
        let messages = parking.into_iter().zip(is_written);
        let end = |(message, is_written)| self.end_parked(invocation, message, is_written);
        stream::iter(messages).for_each_concurrent(SETTLED_AT_ONCE_MAX, end).await;
    }

    /// Writes the objects side by side, and answers of which messages everything was written.
    async fn write_all(&self, invocation: &Invocation, parking: &[Parking]) -> Vec<bool> {
        let gathered = gather(parking);
        let runs = gathered.values().flat_map(|(delivery, messages)| {
            objects(messages).into_iter().map(|run| self.put_in_time(invocation, delivery, run))
        });
        let runs: Vec<_> = runs.collect();
        let mut unwritten = stream::iter(runs).buffer_unordered(PUTS_AT_ONCE_MAX);
        let mut is_written = vec![true; parking.len()];
        while let Some(owners) = unwritten.next().await {
            for owner in owners {
                is_written[owner] = false;
            }
        }
        is_written
    }

    /// Deletes a message whose deliveries were parked. Where they were not, the queue keeps them for as long as it can
    /// delay, with their attempts; then they are parked again.
    async fn end_parked(&self, invocation: &Invocation, message: Parking, is_written: bool) {
        let mut successors = message.successors;
        if !is_written {
            successors.extend(message.deliveries.iter().map(|d| retry(d, SQS_DELAY_SECS_MAX)));
        }
        if guarded(self.replace(invocation, &message.id, &message.receipt, successors)).await.is_err() {
            tracing::error!(message_id = %message.id.0, "message handed back, replacing it panicked");
        }
    }

    /// Writes an object, and answers the owners of what was not written in time.
    async fn put_in_time(
        &self,
        invocation: &Invocation,
        delivery: &Delivery,
        run: &[(usize, Bytes)],
    ) -> Vec<usize> {
        let put = self.before(invocation.parking_ends(), guarded(self.put(delivery, run))).await;
        let put = put.unwrap_or_else(|| Ok(Err(PortError::new(PARKING, ErrorKind::TimedOut))));
        let Err(error) = put.unwrap_or_else(|panicked| Err(unwritten(panicked))) else { return Vec::new() };
        tracing::error!(topic = %delivery.topic, subscription = %delivery.subscription, error = &error as &dyn std::error::Error, "deliveries not parked, they wait in the queue");
        run.iter().map(|(owner, _)| *owner).collect()
    }

    async fn put(&self, delivery: &Delivery, run: &[(usize, Bytes)]) -> Result<(), PortError> {
        let id = self.ports.entropy.uuid().to_string();
        let key = layout::parked(delivery.not_before, &delivery.topic, &delivery.subscription, &id);
        let messages: Vec<_> = run.iter().map(|(_, message)| message.clone()).collect();
        self.ports.state.put(&key, render_parked(&messages), PutCondition::Always).await.map(|_| ())
    }
}

fn unwritten(panicked: Panicked) -> PortError {
    PortError::caused(PARKING, ErrorKind::Other, panicked)
}

/// Gathers deliveries by the minute and subscription they share.
fn gather(parking: &[Parking]) -> BTreeMap<String, Shared<'_>> {
    let mut gathered: BTreeMap<String, Shared<'_>> = BTreeMap::new();
    for (owner, message) in parking.iter().enumerate() {
        for delivery in &message.deliveries {
            let place = layout::parked(delivery.not_before, &delivery.topic, &delivery.subscription, "");
            let (_, messages) = gathered.entry(place).or_insert((delivery, Vec::new()));
            messages.push((owner, render_delivery(delivery)));
        }
    }
    gathered
}

/// Cuts what shares a place into objects of a bounded size.
fn objects(messages: &[(usize, Bytes)]) -> Vec<&[(usize, Bytes)]> {
    let pack = Pack { items_max: PARKED_PER_OBJECT_MAX, bytes_preferred: PARKED_OBJECT_BYTES_PREFERRED };
    pack.cut(messages.iter().map(|(_, message)| message.len()))
        .into_iter()
        .map(|run| &messages[run])
        .collect()
}
