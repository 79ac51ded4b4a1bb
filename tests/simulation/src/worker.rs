//! One worker of deliver. Workers of one world share the queue, the store and the endpoint, and
//! nothing else.

use std::time::Duration;

use posthaste_deliver::Deliver;
use posthaste_local::EmbeddedStore;
use posthaste_ports::{
    BatchResponse, Clock, PortBundle, QueueName, QueueReceiver, ReceiveRequest, ReceivedMessage,
};
use posthaste_services::{EventTraces, LinkHealth};
use posthaste_testkit::ManualClock;
use posthaste_testkit::recorded::RecordedCalls;

use crate::ports::{Queue, State};
use crate::{Chance, ScriptedEndpoint};

/// Time for which a message is hidden after a worker has received it.
pub const VISIBILITY: Duration = Duration::from_mins(6);

/// Most messages of one invocation.
pub(crate) const MESSAGES_MAX: usize = 10;

/// A worker.
pub struct Worker {
    /// Links that are not well, as this worker sees them.
    pub links: LinkHealth<State, ManualClock>,
    pub(crate) deliver:
        Deliver<PortBundle<Queue, State, State, State, ScriptedEndpoint, ManualClock, Chance>>,
    pub(crate) local: EmbeddedStore<ManualClock>,
    pub(crate) clock: ManualClock,
    pub(crate) calls: RecordedCalls,
}

impl Worker {
    /// The same worker, with the spans of its requests.
    #[must_use]
    pub fn with_traces(mut self, traces: EventTraces) -> Self {
        self.deliver = self.deliver.with_traces(traces);
        self
    }

    /// One invocation with what is visible, a minute before its deadline.
    pub async fn deliver(&self) -> BatchResponse {
        self.deliver_within(Duration::from_mins(1)).await
    }

    /// One invocation with what is visible, as the event source mapping makes it.
    pub async fn deliver_within(&self, left: Duration) -> BatchResponse {
        self.deliver_some(MESSAGES_MAX, left).await
    }

    /// The same with at most this number of messages.
    pub async fn deliver_some(&self, messages_max: usize, left: Duration) -> BatchResponse {
        let received = receive(&self.local, QueueName::Deliveries, messages_max);
        let batch = self.calls.unnoted(received).await;
        let receipts: Vec<_> = batch
            .iter()
            .map(|m| (m.id.clone(), m.receipt.clone()))
            .collect();
        let response = self
            .deliver
            .handle(batch, self.clock.monotonic() + left)
            .await;
        let queue = self.local.queue(QueueName::Deliveries);
        for (id, receipt) in receipts {
            if !response.failures.contains(&id) {
                self.calls
                    .unnoted(queue.acknowledge(&receipt))
                    .await
                    .expect("an acknowledgement");
            }
        }
        response
    }
}

/// Receives what is visible in a queue, without waiting. More than a receive brings takes several.
pub(crate) async fn receive(
    local: &EmbeddedStore<ManualClock>,
    queue: QueueName,
    max: usize,
) -> Vec<ReceivedMessage> {
    let mut batch = Vec::new();
    loop {
        let asked = MESSAGES_MAX.min(max - batch.len());
        let request = ReceiveRequest {
            max: asked,
            visibility: VISIBILITY,
            wait: Duration::ZERO,
        };
        let part = local
            .queue(queue)
            .receive(request)
            .await
            .expect("a receive");
        let is_last = part.len() < MESSAGES_MAX;
        batch.extend(part);
        if is_last || batch.len() == max {
            return batch;
        }
    }
}
