//! SQS as the queue: a standard queue, its limits checked before any request.

mod batch;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, QueueAttributeName};
use bytes::Bytes;
use posthaste_core::time::Timestamp;
use posthaste_ports::{
    Clock, ErrorKind, MessageId, OutgoingMessage, PortError, QueueCounts, QueueName, QueueReceiver,
    QueueSender, Receipt, ReceiveRequest, ReceivedMessage, Successor, vet,
};

use crate::clients::failure::failure;
use crate::clients::{QueueUrls, receive_timeouts};

const SENDING: &str = "send a batch of messages";
const RECEIVING: &str = "receive messages";
const DELETING: &str = "delete a message";
const REPLACING: &str = "replace a message";
const CHANGING: &str = "change a visibility timeout";
const COUNTING: &str = "count a queue";

/// One SQS queue. Clones share what is gathered for it.
#[derive(Debug, Clone)]
pub struct SqsQueue<C> {
    client: Client,
    name: QueueName,
    urls: Arc<QueueUrls>,
    clock: C,
}

/// A queue whose URL this function was not given.
#[derive(Debug, thiserror::Error)]
#[error("this function does not know the URL of the queue {0}")]
struct UnknownQueue(QueueName);

impl<C: Clock> SqsQueue<C> {
    pub(crate) fn new(client: Client, name: QueueName, urls: QueueUrls, clock: C) -> Self {
        Self { client, name, urls: Arc::new(urls), clock }
    }

    fn url(&self, doing: &'static str, queue: QueueName) -> Result<&str, PortError> {
        let unknown = || PortError::caused(doing, ErrorKind::Invalid, UnknownQueue(queue));
        self.urls.of(queue).ok_or_else(unknown)
    }

    async fn send_to(
        &self,
        queue: QueueName,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        let count = entries.len();
        let build = |(place, message)| batch::send_entry(place, message);
        let entries = entries.into_iter().enumerate().map(build).collect::<Result<Vec<_>, _>>();
        let entries = entries.map_err(|e| PortError::caused(SENDING, ErrorKind::Invalid, e))?;
        let request =
            self.client.send_message_batch().queue_url(self.url(SENDING, queue)?).set_entries(Some(entries));
        let answer = request.send().await.map_err(|e| failure(SENDING, e))?;
        Ok(batch::sent(SENDING, count, answer))
    }
}

impl<C: Clock> QueueSender for SqsQueue<C> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        vet::batch(&entries).map_err(|refusal| refusal.at(SENDING))?;
        let refused: Vec<_> = entries.iter().map(|entry| vet::message(entry).err()).collect();
        let good: Vec<_> = entries
            .into_iter()
            .zip(&refused)
            .filter(|(_, refused)| refused.is_none())
            .map(|(e, _)| e)
            .collect();
        let sent = if good.is_empty() { Vec::new() } else { self.send_to(self.name, good).await? };
        let mut sent = sent.into_iter();
        let unknown = || Err(PortError::new(SENDING, ErrorKind::Other));
        let answer = |refused: Option<vet::Refusal>| match refused {
            Some(refusal) => Err(refusal.at(SENDING)),
            None => sent.next().unwrap_or_else(unknown),
        };
        Ok(refused.into_iter().map(answer).collect())
    }
}

impl<C: Clock> QueueReceiver for SqsQueue<C> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        vet::receive(&request).map_err(|refusal| refusal.at(RECEIVING))?;
        let call = self
            .client
            .receive_message()
            .queue_url(self.url(RECEIVING, self.name)?)
            .max_number_of_messages(i32::try_from(request.max).unwrap_or(i32::MAX))
            .visibility_timeout(whole_secs(request.visibility))
            .wait_time_seconds(whole_secs(request.wait))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
        let answer = if request.wait.is_zero() {
            call.send().await
        } else {
            let patient = aws_sdk_sqs::Config::builder().timeout_config(receive_timeouts());
            call.customize().config_override(patient).send().await
        };
        let answer = answer.map_err(|e| failure(RECEIVING, e))?;
        Ok(answer.messages.unwrap_or_default().into_iter().filter_map(received).collect())
    }

    fn acknowledge(&self, _receipt: &Receipt) -> impl Future<Output = Result<(), PortError>> + Send {
        std::future::ready(Ok(()))
    }

    async fn replace(&self, receipt: &Receipt, successors: Vec<Successor>) -> Result<(), PortError> {
        for successor in &successors {
            vet::message(&successor.message).map_err(|refusal| refusal.at(REPLACING))?;
            self.url(REPLACING, successor.to)?;
        }
        for successor in successors {
            let sent = self.send_to(successor.to, vec![successor.message]).await?;
            sent.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        let url = self.url(DELETING, self.name)?;
        let request = self.client.delete_message().queue_url(url).receipt_handle(&receipt.0);
        request.send().await.map_err(|e| failure(DELETING, e))?;
        Ok(())
    }

    async fn change_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), PortError> {
        vet::visibility(visibility).map_err(|refusal| refusal.at(CHANGING))?;
        let request = self
            .client
            .change_message_visibility()
            .queue_url(self.url(CHANGING, self.name)?)
            .receipt_handle(&receipt.0)
            .visibility_timeout(whole_secs(visibility));
        request.send().await.map_err(|e| failure(CHANGING, e))?;
        Ok(())
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        let request = self
            .client
            .get_queue_attributes()
            .queue_url(self.url(COUNTING, self.name)?)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessages)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessagesDelayed)
            .attribute_names(QueueAttributeName::ApproximateNumberOfMessagesNotVisible);
        let answer = request.send().await.map_err(|e| failure(COUNTING, e))?;
        let attributes = answer.attributes.unwrap_or_default();
        let count = |name| {
            let number = attributes.get(&name).and_then(|text| text.parse().ok());
            number.ok_or_else(|| PortError::new(COUNTING, ErrorKind::Other))
        };
        Ok(QueueCounts {
            visible: count(QueueAttributeName::ApproximateNumberOfMessages)?,
            delayed: count(QueueAttributeName::ApproximateNumberOfMessagesDelayed)?,
            in_flight: count(QueueAttributeName::ApproximateNumberOfMessagesNotVisible)?,
        })
    }
}

/// A message without an id or a receipt cannot be settled; it returns after its visibility timeout.
fn received(message: Message) -> Option<ReceivedMessage> {
    let attributes = message.attributes.unwrap_or_default();
    let number = |name| attributes.get(&name).and_then(|text| text.parse::<u64>().ok());
    let receive_count = number(MessageSystemAttributeName::ApproximateReceiveCount).unwrap_or(1);
    let sent_at = number(MessageSystemAttributeName::SentTimestamp).unwrap_or_default();
    Some(ReceivedMessage {
        id: MessageId(message.message_id?),
        receipt: Receipt(message.receipt_handle?),
        body: Bytes::from(message.body.unwrap_or_default()),
        receive_count: u32::try_from(receive_count).unwrap_or(u32::MAX),
        sent_at: Timestamp::from_millis(sent_at),
    })
}

/// SQS takes whole seconds; a wait is never cut short.
fn whole_secs(length: Duration) -> i32 {
    let secs = length.as_secs() + u64::from(length.subsec_nanos() > 0);
    i32::try_from(secs).unwrap_or(i32::MAX)
}
