//! A queue that counts the receives that are under way, so that a clock is moved by hand only once
//! they all wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use posthaste_core::pressure::DueOfGroup;
use posthaste_ports::{
    GroupCount, MessageId, OutgoingMessage, PortError, QueueCounts, QueueReceiver, QueueSender,
    ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor, WithheldMessages,
};

/// Counts the receives of `Q`.
#[derive(Debug, Clone)]
pub(crate) struct Watched<Q> {
    pub(crate) queue: Q,
    receiving: Arc<AtomicUsize>,
}

impl<Q> Watched<Q> {
    pub(crate) fn new(queue: Q, receiving: &Arc<AtomicUsize>) -> Self {
        Self {
            queue,
            receiving: receiving.clone(),
        }
    }
}

/// One receive, as long as it lasts.
struct Receiving<'a>(&'a AtomicUsize);

impl<'a> Receiving<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[deny(clippy::missing_trait_methods)]
impl<Q: QueueSender> QueueSender for Watched<Q> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        self.queue.send_batch(entries).await
    }

    fn sends_whole(&self) -> bool {
        self.queue.sends_whole()
    }

    async fn send_whole(
        &self,
        entries: Vec<OutgoingMessage>,
        beside: Vec<Successor>,
    ) -> Result<(), PortError> {
        self.queue.send_whole(entries, beside).await
    }

    async fn withhold(&self, entries: Vec<OutgoingMessage>) -> Result<WithheldMessages, PortError> {
        self.queue.withhold(entries).await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<Q: QueueReceiver> QueueReceiver for Watched<Q> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        let _receiving = Receiving::begin(&self.receiving);
        self.queue.receive(request).await
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        self.queue.acknowledge(receipt).await
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        self.queue.replace(receipt, successors).await
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        self.queue.change_visibility(receipt, visibility).await
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        self.queue.counts().await
    }

    async fn due_by_group(&self) -> Result<Option<Vec<DueOfGroup>>, PortError> {
        self.queue.due_by_group().await
    }

    async fn due_counts(&self, groups: &[String]) -> Result<Option<Vec<u64>>, PortError> {
        self.queue.due_counts(groups).await
    }

    async fn waiting_counts(
        &self,
        groups: &[String],
    ) -> Result<Option<Vec<GroupCount>>, PortError> {
        self.queue.waiting_counts(groups).await
    }

    async fn waiting_by_group(&self) -> Result<Option<Vec<(Arc<str>, GroupCount)>>, PortError> {
        self.queue.waiting_by_group().await
    }
}
