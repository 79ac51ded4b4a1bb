//! Stores waiting deliveries: those that wait longer than the queue can delay, and those that are
//! held, go into the object store, many in one object.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use metrics::counter;
use posthaste_core::attempt::PackingLimits;
use posthaste_core::model::{Delivery, PARKED_OBJECT_BYTES_PREFERRED};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::{WakeSignaller, stop_at};

use crate::invocation::{Invocation, WaitingMessage};
use crate::lanes::DeliveryQueues;
use crate::limits::SETTLED_AT_ONCE_MAX;
use crate::replace::replace_message;
use crate::waiting_place::WaitingPlace;

/// Objects that are written side by side. Each is 4 MiB at most, and all together hold less than
/// the batch did.
const PUTS_AT_ONCE_MAX: usize = 16;

const STORING: &str = "park deliveries";

/// Writes the objects with waiting deliveries.
pub(crate) struct WaitingObjects<P: Ports> {
    pub(crate) queues: DeliveryQueues<P::Queue>,
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    pub(crate) wake: Arc<WakeSignaller<P::Store, P::Clock>>,
}

/// Deliveries that share a place: one of them, and each one's message with the index of its owner.
struct SharedPlace<'a> {
    place: WaitingPlace,
    delivery: &'a Delivery,
    messages: Vec<(usize, Bytes)>,
}

impl<P: Ports> WaitingObjects<P> {
    /// Stores the deliveries that the invocation gathered, then ends the messages they came from.
    /// If one delivery of a message cannot be written, all of the message's deliveries wait in
    /// the queue instead; those that were written are copies.
    pub(crate) async fn store_waiting(&self, invocation: &Invocation) {
        let waiting = invocation.take_waiting();
        let count = waiting.len();
        if count == 0 {
            return;
        }
        if Box::pin(catch_panic(self.store_all(invocation, waiting)))
            .await
            .is_err()
        {
            tracing::error!(
                messages = count,
                "messages handed back, parking them panicked"
            );
        }
    }

    async fn store_all(&self, invocation: &Invocation, waiting: Vec<WaitingMessage>) {
        let is_written = self.write_all(invocation, &waiting).await;
        stream::iter(waiting.into_iter().zip(is_written))
            .for_each_concurrent(SETTLED_AT_ONCE_MAX, |(message, is_written)| {
                self.end_message(invocation, message, is_written)
            })
            .await;
    }

    /// Writes the objects side by side, and answers for each message whether all of it was written.
    async fn write_all(&self, invocation: &Invocation, waiting: &[WaitingMessage]) -> Vec<bool> {
        let gathered = gather_by_place(waiting);
        // Parked deliveries need no signal: wake sees when they are due.
        if gathered
            .values()
            .any(|shared| shared.place == WaitingPlace::Held)
        {
            let _ = stop_at(
                &self.clock,
                invocation.deadlines.storing_end(),
                self.wake.signal_if_due(),
            )
            .await;
        }
        let runs = gathered.values().flat_map(|shared| {
            shared
                .cut_objects()
                .into_iter()
                .map(|run| self.put_in_time(invocation, shared, run))
        });
        let runs: Vec<_> = runs.collect();
        let mut unwritten = stream::iter(runs).buffer_unordered(PUTS_AT_ONCE_MAX);
        let mut is_written = vec![true; waiting.len()];
        while let Some(owners) = unwritten.next().await {
            for owner in owners {
                is_written[owner] = false;
            }
        }
        is_written
    }

    /// Ends a message whose deliveries were stored. Otherwise the queue keeps them for its longest
    /// delay, with their attempts, and then they are judged again.
    async fn end_message(
        &self,
        invocation: &Invocation,
        message: WaitingMessage,
        is_written: bool,
    ) {
        let WaitingMessage {
            message,
            deliveries,
            mut successors,
            lane,
        } = message;
        if !is_written {
            let now = self.clock.now();
            successors.extend(
                deliveries
                    .iter()
                    .map(|(place, delivery)| place.queue_instead(delivery, lane, now)),
            );
        }
        let replaced = replace_message(
            self.queues.for_invocation(invocation),
            invocation,
            &message,
            successors,
        );
        if catch_panic(replaced).await.is_err() {
            tracing::error!(message_id = %message.id.0, "message handed back, replacing it panicked");
        }
    }

    /// Writes an object, and answers the owners of the messages if it was not written in time.
    async fn put_in_time(
        &self,
        invocation: &Invocation,
        shared: &SharedPlace<'_>,
        run: &[(usize, Bytes)],
    ) -> Vec<usize> {
        let SharedPlace {
            place, delivery, ..
        } = shared;
        let put = catch_panic(self.put_object(shared, run));
        let put = stop_at(&self.clock, invocation.deadlines.storing_end(), put).await;
        let error = match put {
            Some(Ok(Ok(()))) => {
                if *place == WaitingPlace::Held {
                    report_held(delivery, run.len());
                }
                return Vec::new();
            }
            Some(Ok(Err(error))) => error,
            Some(Err(panicked)) => PortError::with_cause(STORING, ErrorKind::Other, panicked),
            None => PortError::new(STORING, ErrorKind::TimedOut),
        };
        tracing::error!(
            topic = %delivery.topic, subscription = %delivery.subscription,
            error = &error as &dyn std::error::Error, "deliveries not parked, they wait in the queue"
        );
        run.iter().map(|(owner, _)| *owner).collect()
    }

    async fn put_object(
        &self,
        shared: &SharedPlace<'_>,
        run: &[(usize, Bytes)],
    ) -> Result<(), PortError> {
        let messages: Vec<_> = run.iter().map(|(_, message)| message.clone()).collect();
        let uuid = self.entropy.uuid().to_string();
        let id = shared.place.object_id(self.clock.now(), &uuid, &messages);
        let key = shared.place.object_key(shared.delivery, &id);
        self.state
            .put(&key, render_parked(&messages), PutCondition::Always)
            .await
            .map(|_| ())
    }
}

fn report_held(delivery: &Delivery, deliveries: usize) {
    let labels = [
        ("topic", delivery.topic.to_string()),
        ("subscription", delivery.subscription.to_string()),
    ];
    counter!("HeldDeliveryCount", &labels).increment(deliveries as u64);
    tracing::debug!(topic = %delivery.topic, subscription = %delivery.subscription, deliveries, "held");
}

/// Gathers deliveries by the place, the subscription and the minute they share.
fn gather_by_place(waiting: &[WaitingMessage]) -> BTreeMap<String, SharedPlace<'_>> {
    let mut gathered: BTreeMap<String, SharedPlace<'_>> = BTreeMap::new();
    for (owner, message) in waiting.iter().enumerate() {
        for (place, delivery) in &message.deliveries {
            let shared = gathered.entry(place.object_key(delivery, ""));
            let shared = shared.or_insert(SharedPlace {
                place: *place,
                delivery,
                messages: Vec::new(),
            });
            shared.messages.push((owner, render_delivery(delivery)));
        }
    }
    gathered
}

impl SharedPlace<'_> {
    /// Cuts them into objects of a bounded size.
    fn cut_objects(&self) -> Vec<&[(usize, Bytes)]> {
        let items_max = self.place.per_object_max();
        let bytes_preferred = PARKED_OBJECT_BYTES_PREFERRED;
        let runs = PackingLimits {
            items_max,
            bytes_preferred,
        }
        .cut_into_runs(self.messages.iter().map(|(_, it)| it.len()));
        runs.into_iter().map(|run| &self.messages[run]).collect()
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::lane::DeliveryLane;
    use posthaste_core::stored::layout;
    use posthaste_core::stored::parked::parse_parked;
    use posthaste_ports::QueueName;
    use posthaste_testkit::{CallFault, FaultPlan, PortOperation};

    use super::*;
    use crate::invocation::MessageHandle;
    use crate::testing::{START, TestPorts, World, delivery, secs};

    fn objects(world: &World) -> WaitingObjects<TestPorts> {
        WaitingObjects {
            queues: world.queues(),
            state: Arc::clone(&world.state),
            clock: world.clock.clone(),
            entropy: world.entropy.clone(),
            wake: world.wake(),
        }
    }

    fn parked(wait: u64) -> (WaitingPlace, Delivery) {
        (
            WaitingPlace::Parked,
            Delivery {
                not_before: START + secs(wait),
                ..delivery(1)
            },
        )
    }

    /// Stores what these messages leave behind. Answers how many messages are reported as failed.
    async fn stored(world: &World, messages: Vec<Vec<(WaitingPlace, Delivery)>>) -> usize {
        let mut batch = Vec::new();
        for _ in &messages {
            batch.push(world.received().await);
        }
        let invocation = world.invocation_of(&batch);
        for (received, deliveries) in batch.into_iter().zip(messages) {
            let message = MessageHandle::from_message(&received);
            invocation.add_waiting(WaitingMessage {
                message,
                deliveries,
                successors: Vec::new(),
                lane: DeliveryLane::Quick,
            });
        }
        objects(world).store_waiting(&invocation).await;
        invocation.into_response().failures.len()
    }

    async fn keys(world: &World, prefix: &str) -> Vec<String> {
        let page = world.memory.list(prefix, None, 100).await.unwrap();
        page.objects.into_iter().map(|object| object.key).collect()
    }

    #[tokio::test]
    async fn deliveries_of_the_same_minute_share_an_object() {
        let world = World::new();
        assert_eq!(
            stored(
                &world,
                vec![vec![parked(3600)], vec![parked(3601)], vec![parked(7200)]]
            )
            .await,
            0
        );
        let keys = keys(&world, layout::PARKED).await;
        assert_eq!((keys.len(), world.calls.count(PortOperation::Put)), (2, 2));
        let object = world.memory.get(&keys[0]).await.unwrap().unwrap();
        assert_eq!(parse_parked(&object.bytes).unwrap().len(), 2);
        assert_eq!(world.calls.count(PortOperation::Replace), 3);
    }

    #[tokio::test]
    async fn held_and_parked_deliveries_of_a_message_go_to_their_places() {
        let world = World::new();
        assert_eq!(
            stored(
                &world,
                vec![vec![parked(3600), (WaitingPlace::Held, delivery(1))]]
            )
            .await,
            0
        );
        assert_eq!(keys(&world, layout::PARKED).await.len(), 1);
        assert_eq!(keys(&world, layout::HELD).await.len(), 1);
        assert_eq!(world.sent(QueueName::Deliveries).await.len(), 0);
    }

    /// A delivery that cannot be stored waits in the queue, and its neighbours are stored.
    #[tokio::test]
    async fn unstorable_delivery_waits_in_queue_without_its_neighbours() {
        let broken = FaultPlan::by(|effect| {
            effect
                .key
                .starts_with("held/")
                .then_some(CallFault::Before(ErrorKind::Other))
        });
        let world = World::with(&broken, &FaultPlan::none());
        assert_eq!(
            stored(
                &world,
                vec![vec![parked(3600)], vec![(WaitingPlace::Held, delivery(1))]]
            )
            .await,
            0
        );
        assert_eq!(keys(&world, layout::PARKED).await.len(), 1);
        assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
    }

    #[tokio::test]
    async fn a_panic_while_storing_costs_no_delivery() {
        let panics = FaultPlan::by(|effect| {
            assert!(
                effect.operation != PortOperation::Put,
                "as the test wants it"
            );
            None
        });
        let world = World::with(&panics, &FaultPlan::none());
        assert_eq!(stored(&world, vec![vec![parked(3600)]]).await, 0);
        assert_eq!(world.sent(QueueName::Deliveries).await.len(), 1);
    }

    #[tokio::test]
    async fn a_message_that_cannot_be_replaced_is_handed_back() {
        let world = World::with(
            &FaultPlan::none(),
            &FaultPlan::nth(0, CallFault::Before(ErrorKind::Other)),
        );
        assert_eq!(stored(&world, vec![vec![parked(3600)]]).await, 1);
        assert_eq!(keys(&world, layout::PARKED).await.len(), 1);
    }

    #[test]
    fn objects_are_bounded_in_number() {
        let delivery = delivery(1);
        let messages = (0..25)
            .map(|owner| (owner, Bytes::from_static(b"{}")))
            .collect();
        let shared = SharedPlace {
            place: WaitingPlace::Held,
            delivery: &delivery,
            messages,
        };
        let sizes: Vec<_> = shared.cut_objects().iter().map(|run| run.len()).collect();
        assert!(
            sizes
                .iter()
                .all(|size| *size <= WaitingPlace::Held.per_object_max())
        );
        assert_eq!(sizes.iter().sum::<usize>(), 25);
    }
}
