//! The requests of SQS that several callers share. They are a trait, so that the sharing is tested
//! without a service.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use aws_sdk_sqs::Client;
use posthaste_ports::{ErrorKind, MessageId, OutgoingMessage, PortError, QueueName, ReceiptHandle};

use super::batch::{self, ItemResult};
use crate::clients::failure::to_port_error;

pub(super) const SENDING: &str = "send a batch of messages";
pub(super) const DELETING: &str = "delete a batch of messages";

/// URLs of the queues that a function may reach.
pub type QueueUrls = BTreeMap<QueueName, String>;

/// Batch requests, one per call: the items given fit into one. Returns a result per item, in order.
pub(super) trait BatchCalls: Send + Sync + 'static {
    /// Sends messages to a queue.
    fn send(
        &self,
        to: QueueName,
        messages: Vec<OutgoingMessage>,
    ) -> impl Future<Output = Result<Vec<ItemResult<MessageId>>, PortError>> + Send;

    /// Deletes messages of the queue from which they were received.
    fn delete(
        &self,
        receipts: Vec<ReceiptHandle>,
    ) -> impl Future<Output = Result<Vec<ItemResult<()>>, PortError>> + Send;
}

/// SQS itself.
#[derive(Debug, Clone)]
pub(crate) struct SqsCalls {
    pub(crate) client: Client,
    pub(crate) name: QueueName,
    pub(crate) urls: Arc<QueueUrls>,
    /// Whether messages carry their `MessageGroupId`.
    pub(crate) sends_groups: bool,
}

impl SqsCalls {
    /// The URL of a queue. A queue that this function may not reach is refused before anything is
    /// sent.
    pub(super) fn queue_url(
        &self,
        doing: &'static str,
        queue: QueueName,
    ) -> Result<&str, PortError> {
        self.urls.get(&queue).map(String::as_str).ok_or_else(|| {
            let cause = format!("this function was not given the URL of the queue {queue}");
            PortError::with_cause(doing, ErrorKind::Invalid, cause)
        })
    }

    /// Whether messages to a queue carry their group. Messages to the slow lane do: it has few
    /// targets, and the slowest of them must not hold the others up.
    fn sends_groups_to(&self, queue: QueueName) -> bool {
        self.sends_groups || queue == QueueName::SlowDeliveries
    }

    pub(super) fn own_url(&self, doing: &'static str) -> Result<&str, PortError> {
        self.queue_url(doing, self.name)
    }
}

impl BatchCalls for SqsCalls {
    async fn send(
        &self,
        to: QueueName,
        messages: Vec<OutgoingMessage>,
    ) -> Result<Vec<ItemResult<MessageId>>, PortError> {
        let count = messages.len();
        let entries = batch::send_entries(messages, self.sends_groups_to(to))
            .map_err(|e| invalid_entry(SENDING, e))?;
        let request = self
            .client
            .send_message_batch()
            .queue_url(self.queue_url(SENDING, to)?)
            .set_entries(Some(entries));
        let answer = request
            .send()
            .await
            .map_err(|e| to_port_error(SENDING, e))?;
        Ok(batch::send_results(SENDING, count, answer))
    }

    async fn delete(&self, receipts: Vec<ReceiptHandle>) -> Result<Vec<ItemResult<()>>, PortError> {
        let count = receipts.len();
        let entries = batch::delete_entries(receipts).map_err(|e| invalid_entry(DELETING, e))?;
        let request = self
            .client
            .delete_message_batch()
            .queue_url(self.own_url(DELETING)?)
            .set_entries(Some(entries));
        let answer = request
            .send()
            .await
            .map_err(|e| to_port_error(DELETING, e))?;
        Ok(batch::delete_results(DELETING, count, answer))
    }
}

fn invalid_entry(doing: &'static str, error: batch::EntryError) -> PortError {
    PortError::with_cause(doing, ErrorKind::Invalid, error)
}
