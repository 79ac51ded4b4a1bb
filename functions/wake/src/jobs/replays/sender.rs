//! The events of a replay on their way into the delivery queue.

use futures_util::future::join_all;
use posthaste_core::release::ReplayMessage;
use posthaste_ports::{ErrorKind, ObjectStore, OutgoingMessage, PortError, Ports, PutCondition};
use posthaste_services::timeout_at;

use crate::ports::WakePorts;
use crate::run::WakeRun;

/// Queues messages, one result for each. Messages that are not queued when the run's sends end have
/// failed.
pub(in crate::jobs) async fn queue_messages<P: Ports>(
    run: WakeRun<'_, P>,
    messages: &[ReplayMessage],
) -> Vec<Result<(), PortError>> {
    let sent = Box::pin(store_and_send(run.ports, messages));
    timeout_at(&run.ports.clock, run.send, sent)
        .await
        .unwrap_or_else(|| messages.iter().map(|_| Err(queued_late())).collect())
}

async fn store_and_send<P: Ports>(
    ports: &WakePorts<P>,
    messages: &[ReplayMessage],
) -> Vec<Result<(), PortError>> {
    let stored = join_all(
        messages
            .iter()
            .map(|message| store_payloads(&ports.state, message)),
    )
    .await;
    let outgoing = messages
        .iter()
        .zip(&stored)
        .filter(|(_, stored)| stored.is_ok());
    let outgoing = outgoing.map(|(message, _)| outgoing_of(message)).collect();
    let mut sent = ports.send_messages(outgoing).await.into_iter();
    let results = stored.into_iter().map(|stored| {
        stored?;
        match sent.next() {
            Some(sent) => sent,
            None => Err(PortError::new("queue an event", ErrorKind::Other)),
        }
    });
    results.collect()
}

fn queued_late() -> PortError {
    PortError::new("queue the events in time", ErrorKind::TimedOut)
}

/// Stores the payloads that a message refers to.
async fn store_payloads(
    store: &impl ObjectStore,
    message: &ReplayMessage,
) -> Result<(), PortError> {
    for (key, text) in &message.payloads {
        store.put(key, text.clone(), PutCondition::Always).await?;
    }
    Ok(())
}

fn outgoing_of(message: &ReplayMessage) -> OutgoingMessage {
    OutgoingMessage {
        body: message.body.clone(),
        group: Some(message.group.clone()),
        delay: message.delay,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_testkit::{CallFault, FaultPlan, PortOperation};

    use super::*;
    use crate::testing::Kit;

    fn message(number: usize) -> ReplayMessage {
        ReplayMessage {
            indexes: vec![number],
            body: format!("{number}").into(),
            group: "orders.billing".to_owned(),
            delay: Duration::ZERO,
            payloads: vec![(format!("payloads/20260307/{number}"), "{}".into())],
        }
    }

    /// A message whose payload cannot be stored is not queued, and the others are.
    #[tokio::test]
    async fn message_without_stored_payload_is_not_queued_others_are() {
        let plan = FaultPlan::by(|effect| {
            let is_hit = effect.operation == PortOperation::Put && effect.key.ends_with("/1");
            is_hit.then_some(CallFault::Before(ErrorKind::TimedOut))
        });
        let kit = Kit::with(&plan, &FaultPlan::none());
        let sent = queue_messages(kit.run(), &[0, 1, 2].map(message)).await;
        let kinds: Vec<_> = sent
            .into_iter()
            .map(|sent| sent.err().map(|error| error.kind))
            .collect();
        assert_eq!(kinds, [None, Some(ErrorKind::TimedOut), None]);
        assert_eq!(kit.queue.take_bodies(), ["0", "2"]);
    }
}
