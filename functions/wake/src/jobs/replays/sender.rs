//! The events of a replay on their way into the delivery queue.

use std::time::Duration;

use futures_util::future::join_all;
use posthaste_core::release::ReplayMessage;
use posthaste_ports::{ErrorKind, ObjectStore, OutgoingMessage, PortError, Ports, PutCondition};
use posthaste_services::{send_all, timeout_at};

/// Queues events.
pub(super) struct Sender<'a, P: Ports> {
    pub(super) queue: &'a P::Queue,
    pub(super) store: &'a P::Store,
    pub(super) clock: &'a P::Clock,
}

impl<P: Ports> Sender<'_, P> {
    /// Queues messages, one result for each; by `until` those that were not queued have failed.
    pub(super) async fn send(
        &self,
        messages: &[ReplayMessage],
        until: Duration,
    ) -> Vec<Result<(), PortError>> {
        timeout_at(self.clock, until, Box::pin(self.store_and_send(messages))).await.unwrap_or_else(|| {
            let late = |_| Err(PortError::new("queue the events in time", ErrorKind::TimedOut));
            messages.iter().map(late).collect()
        })
    }

    async fn store_and_send(&self, messages: &[ReplayMessage]) -> Vec<Result<(), PortError>> {
        let stored = join_all(messages.iter().map(|message| self.store_payloads(message))).await;
        let outgoing = messages.iter().zip(&stored).filter(|(_, stored)| stored.is_ok());
        let outgoing = outgoing.map(|(message, _)| outgoing_of(message)).collect();
        let mut sent = send_all(self.queue, outgoing).await.into_iter();
        let unsent = || Err(PortError::new("queue an event", ErrorKind::Other));
        let result = |stored: Result<(), PortError>| stored.and_then(|()| sent.next().unwrap_or_else(unsent));
        stored.into_iter().map(result).collect()
    }

    /// Stores the payloads that a message refers to.
    async fn store_payloads(&self, message: &ReplayMessage) -> Result<(), PortError> {
        for (key, text) in &message.payloads {
            self.store.put(key, text.clone(), PutCondition::Always).await?;
        }
        Ok(())
    }
}

fn outgoing_of(message: &ReplayMessage) -> OutgoingMessage {
    OutgoingMessage {
        body: message.body.clone(),
        group: Some(message.group.clone()),
        delay_secs: message.delay_secs,
    }
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::{Fault, Operation, Plan};

    use super::*;
    use crate::testing::Kit;

    fn message(number: usize) -> ReplayMessage {
        ReplayMessage {
            indexes: vec![number],
            body: format!("{number}").into(),
            group: "orders.billing".to_owned(),
            delay_secs: 0,
            payloads: vec![(format!("payloads/20260307/{number}"), "{}".into())],
        }
    }

    #[tokio::test]
    async fn a_message_whose_payload_is_not_stored_is_not_queued_and_the_others_are() {
        let plan = Plan::by(|effect| {
            let is_hit = effect.operation == Operation::Put && effect.key.ends_with("/1");
            is_hit.then_some(Fault::Before(ErrorKind::TimedOut))
        });
        let kit = Kit::with(&plan, &Plan::none());
        let sender = Sender::<crate::testing::TestPorts> {
            queue: &kit.ports.deliveries,
            store: &kit.ports.state,
            clock: &kit.clock,
        };
        let sent = sender.send(&[0, 1, 2].map(message), kit.budget().send).await;
        let kinds: Vec<_> = sent.into_iter().map(|sent| sent.err().map(|error| error.kind)).collect();
        assert_eq!(kinds, [None, Some(ErrorKind::TimedOut), None]);
        assert_eq!(kit.queue.take_bodies(), ["0", "2"]);
    }
}
