//! Parking: deliveries that wait longer than the queue can delay, and those that are held, go into the object store, many
//! in one object.

mod place;

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use posthaste_core::attempt::batch::Pack;
use posthaste_core::model::delivery::Delivery;
use posthaste_core::model::limits::PARKED_OBJECT_BYTES_PREFERRED;
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::catch_panic::{Panicked, catch_panic};

use crate::invocation::{Invocation, Parking};
use crate::settle::SETTLED_AT_ONCE_MAX;
use crate::{Deliver, report};
pub(crate) use place::Place;

/// Objects that are written side by side. Each is 4 MiB at most, and all together hold less than the batch did.
const PUTS_AT_ONCE_MAX: usize = 16;

const PARKING: &str = "park deliveries";

/// The deliveries that share a place: one of them, and of each its owner's index and its message.
struct Shared<'a> {
    place: Place,
    delivery: &'a Delivery,
    messages: Vec<(usize, Bytes)>,
}

impl<P: Ports> Deliver<P> {
    /// Parks what the invocation gathered, then deletes the messages it came from. Deliveries
    /// of a message one of which could not be written wait in the queue instead; those that were written are copies.
    pub(crate) async fn park(&self, invocation: &Invocation) {
        let parking = invocation.take_parking();
        let count = parking.len();
        if catch_panic(self.park_all(invocation, parking)).await.is_err() {
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
        let runs = gathered.values().flat_map(|shared| {
            shared.objects().into_iter().map(|run| self.put_in_time(invocation, shared, run))
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
    /// delay, with their attempts; then they are judged again.
    async fn end_parked(&self, invocation: &Invocation, message: Parking, is_written: bool) {
        let mut successors = message.successors;
        if !is_written {
            let now = self.ports.clock.now();
            successors
                .extend(message.deliveries.iter().map(|(place, delivery)| place.instead(delivery, now)));
        }
        if catch_panic(self.replace(invocation, &message.id, &message.receipt, successors)).await.is_err() {
            tracing::error!(message_id = %message.id.0, "message handed back, replacing it panicked");
        }
    }

    /// Writes an object, and answers the owners of what was not written in time.
    async fn put_in_time(
        &self,
        invocation: &Invocation,
        shared: &Shared<'_>,
        run: &[(usize, Bytes)],
    ) -> Vec<usize> {
        let Shared { place, delivery, .. } = shared;
        let put = self.before(invocation.parking_ends(), catch_panic(self.put(shared, run))).await;
        let put = put.unwrap_or_else(|| Ok(Err(PortError::new(PARKING, ErrorKind::TimedOut))));
        let Err(error) = put.unwrap_or_else(|panicked| Err(unwritten(panicked))) else {
            if *place == Place::Held {
                report::held(delivery, run.len());
            }
            return Vec::new();
        };
        tracing::error!(topic = %delivery.topic, subscription = %delivery.subscription, error = &error as &dyn std::error::Error, "deliveries not parked, they wait in the queue");
        run.iter().map(|(owner, _)| *owner).collect()
    }

    async fn put(&self, shared: &Shared<'_>, run: &[(usize, Bytes)]) -> Result<(), PortError> {
        let id = shared.place.id(self.ports.clock.now(), self.ports.entropy.uuid().to_string());
        let key = shared.place.key(shared.delivery, &id);
        let messages: Vec<_> = run.iter().map(|(_, message)| message.clone()).collect();
        self.ports.state.put(&key, render_parked(&messages), PutCondition::Always).await.map(|_| ())
    }
}

fn unwritten(panicked: Panicked) -> PortError {
    PortError::caused(PARKING, ErrorKind::Other, panicked)
}

/// Gathers deliveries by the place, the subscription and the minute they share.
fn gather(parking: &[Parking]) -> BTreeMap<String, Shared<'_>> {
    let mut gathered: BTreeMap<String, Shared<'_>> = BTreeMap::new();
    for (owner, message) in parking.iter().enumerate() {
        for (place, delivery) in &message.deliveries {
            let shared = gathered.entry(place.key(delivery, ""));
            let shared = shared.or_insert(Shared { place: *place, delivery, messages: Vec::new() });
            shared.messages.push((owner, render_delivery(delivery)));
        }
    }
    gathered
}

impl Shared<'_> {
    /// Cuts them into objects of a bounded size.
    fn objects(&self) -> Vec<&[(usize, Bytes)]> {
        let (items_max, bytes_preferred) = (self.place.per_object_max(), PARKED_OBJECT_BYTES_PREFERRED);
        let runs = Pack { items_max, bytes_preferred }.cut(self.messages.iter().map(|(_, it)| it.len()));
        runs.into_iter().map(|run| &self.messages[run]).collect()
    }
}
