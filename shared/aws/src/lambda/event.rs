//! The event of an SQS event source mapping, read record by record, and the answer to it.
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

use std::collections::HashSet;

use bytes::Bytes;
use posthaste_core::time::Timestamp;
use posthaste_ports::queue::{BatchResponse, MessageId, Receipt, ReceivedMessage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::SqsBatch;

/// The event, its records not yet looked at: one that is not as expected must not hide the others.
#[derive(Debug, Deserialize)]
pub(super) struct SqsEvent {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
}

/// The answer: the messages that Lambda must not delete.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SqsBatchResponse {
    batch_item_failures: Vec<BatchItemFailure>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchItemFailure {
    item_identifier: String,
}

/// Why an event cannot be worked on at all. The invocation fails, and every message of it comes again.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventError {
    /// A failure can only be reported by id. An answer without an id, or with one that is not of this event, fails
    /// the whole batch just the same, but after the neighbours were worked on; so nothing is begun.
    #[error("record {index} of the event has no messageId")]
    NoId { index: usize },
}

/// An event, sorted out.
#[derive(Debug)]
pub(super) struct Intake {
    /// What was understood.
    pub(super) batch: SqsBatch,
    /// The ids of all records, understood or not.
    pub(super) ids: Vec<MessageId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordId {
    message_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    message_id: String,
    receipt_handle: String,
    body: String,
    attributes: Attributes,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: String,
}

#[derive(Deserialize)]
struct Attributes {
    #[serde(rename = "ApproximateReceiveCount")]
    receive_count: String,
    #[serde(rename = "SentTimestamp")]
    sent_at: String,
}

impl SqsEvent {
    /// Reads each record by itself.
    pub(super) fn intake(self) -> Result<Intake, EventError> {
        let mut intake =
            Intake { batch: SqsBatch { queue: String::new(), messages: Vec::new() }, ids: Vec::new() };
        for (index, record) in self.records.iter().enumerate() {
            let RecordId { message_id } =
                serde_json::from_str(record.get()).map_err(|_| EventError::NoId { index })?;
            if message_id.is_empty() {
                return Err(EventError::NoId { index });
            }
            intake.ids.push(MessageId(message_id));
            if let Some((queue, message)) = read(record) {
                intake.batch.queue = queue;
                intake.batch.messages.push(message);
            }
        }
        Ok(intake)
    }
}

fn read(record: &RawValue) -> Option<(String, ReceivedMessage)> {
    let record: Record = serde_json::from_str(record.get()).ok()?;
    let queue = record.event_source_arn.rsplit(':').next()?.to_owned();
    let message = ReceivedMessage {
        id: MessageId(record.message_id),
        receipt: Receipt(record.receipt_handle),
        body: Bytes::from(record.body),
        receive_count: record.attributes.receive_count.parse().ok()?,
        sent_at: Timestamp::from_millis(record.attributes.sent_at.parse().ok()?),
    };
    Some((queue, message))
}

impl SqsBatchResponse {
    /// The answer to an event of these ids, of which `understood` were given to the handler.
    pub(super) fn new(ids: &[MessageId], understood: &HashSet<MessageId>, response: &BatchResponse) -> Self {
        let failed: HashSet<&MessageId> = response.failures.iter().collect();
        let batch_item_failures = ids
            .iter()
            .filter(|id| !understood.contains(*id) || failed.contains(*id))
            .map(|id| BatchItemFailure { item_identifier: id.0.clone() })
            .collect();
        Self { batch_item_failures }
    }
}
