//! SQS as the queue: standard queues, whose limits are checked before any request, because
//! emulators do not check them.

mod batch;
mod calls;
mod coalesce;
mod receive;
mod replace;
mod setup;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use posthaste_ports::{
    Clock, ErrorKind, MessageId, OutgoingMessage, PortError, QueueCounts, QueueReceiver,
    QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor, validate,
};

use crate::clients::failure::to_port_error;
pub use calls::QueueUrls;
pub(crate) use calls::SqsCalls;
use calls::{BatchCalls, SENDING};
use receive::whole_secs;
use replace::MessageReplacer;
pub use setup::{QueueAttributes, QueueSetup, SqsSetup};

const REPLACING: &str = "replace a message";
const CHANGING: &str = "change a visibility timeout";
const COUNTING: &str = "count a queue";

/// An SQS queue. Clones share the requests of concurrent `replace` calls, so one is made per queue
/// and process.
///
/// The clock must run by itself: a `replace` waits a moment for others to share its requests.
#[derive(Debug, Clone)]
pub struct SqsQueue<C> {
    calls: SqsCalls,
    replacer: Arc<MessageReplacer<SqsCalls, C>>,
}

impl<C: Clock> SqsQueue<C> {
    pub(crate) fn new(calls: SqsCalls, clock: C) -> Self {
        Self {
            replacer: Arc::new(MessageReplacer::new(calls.clone(), clock)),
            calls,
        }
    }

    /// Checks successors before anything is sent: one bad successor refuses all.
    fn validate_successors(&self, successors: &[Successor]) -> Result<(), PortError> {
        for successor in successors {
            validate::message(&successor.message)
                .map_err(|refusal| refusal.into_port_error(REPLACING))?;
            self.calls.queue_url(REPLACING, successor.to)?;
        }
        Ok(())
    }
}

impl<C: Clock> QueueSender for SqsQueue<C> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        validate::batch(&entries).map_err(|refusal| refusal.into_port_error(SENDING))?;
        self.calls.own_url(SENDING)?;
        let checks: Vec<_> = entries.iter().map(validate::message).collect();
        let good = entries
            .into_iter()
            .zip(&checks)
            .filter(|(_, check)| check.is_ok());
        let good: Vec<_> = good.map(|(entry, _)| entry).collect();
        let sent = if good.is_empty() {
            Vec::new()
        } else {
            self.calls.send(self.calls.name, good).await?
        };
        Ok(merge_results(checks, sent))
    }
}

/// Puts the results of the entries that were sent between those that were refused here.
fn merge_results(
    checks: Vec<Result<(), validate::LimitRefusal>>,
    sent: Vec<Result<MessageId, PortError>>,
) -> Vec<Result<MessageId, PortError>> {
    let mut sent = sent.into_iter();
    checks
        .into_iter()
        .map(|check| match check {
            Ok(()) => sent
                .next()
                .unwrap_or_else(|| Err(PortError::new(SENDING, ErrorKind::Other))),
            Err(refusal) => Err(refusal.into_port_error(SENDING)),
        })
        .collect()
}

impl<C: Clock> QueueReceiver for SqsQueue<C> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        receive::receive_messages(&self.calls, request).await
    }

    /// Sends no request: the event source mapping deletes the messages that an invocation does not
    /// report as failed.
    fn acknowledge(
        &self,
        _receipt: &ReceiptHandle,
    ) -> impl Future<Output = Result<(), PortError>> + Send {
        std::future::ready(Ok(()))
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        self.validate_successors(&successors)?;
        self.calls.own_url(REPLACING)?;
        self.replacer.replace(receipt.clone(), successors).await
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        validate::visibility_timeout(visibility)
            .map_err(|refusal| refusal.into_port_error(CHANGING))?;
        let request = self.calls.client.change_message_visibility();
        let request = request
            .queue_url(self.calls.own_url(CHANGING)?)
            .receipt_handle(&*receipt.0)
            .visibility_timeout(whole_secs(visibility));
        request
            .send()
            .await
            .map_err(|e| to_port_error(CHANGING, e))?;
        Ok(())
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        let request = self
            .calls
            .client
            .get_queue_attributes()
            .queue_url(self.calls.own_url(COUNTING)?);
        let request = request
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessages)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessagesDelayed)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessagesNotVisible);
        let answer = request
            .send()
            .await
            .map_err(|e| to_port_error(COUNTING, e))?;
        let attributes = answer.attributes.unwrap_or_default();
        Ok(QueueCounts {
            visible: read_count(
                &attributes,
                &QueueAttributeName::ApproximateNumberOfMessages,
            )?,
            delayed: read_count(
                &attributes,
                &QueueAttributeName::ApproximateNumberOfMessagesDelayed,
            )?,
            in_flight: read_count(
                &attributes,
                &QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            )?,
        })
    }
}

/// A count of a queue. A missing one is not zero: pressure would read it as an empty queue.
fn read_count(
    attributes: &HashMap<QueueAttributeName, String>,
    name: &QueueAttributeName,
) -> Result<u64, PortError> {
    let count = attributes.get(name).and_then(|text| text.parse().ok());
    count.ok_or_else(|| PortError::new(COUNTING, ErrorKind::Other))
}
