//! One batch request of SQS and its answer, item by item.
//!
//! Only an id among the `Successful` is done. One among the `Failed` carries its own error; one in neither list is
//! unknown, which is an error too and never a success.

use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::operation::delete_message_batch::DeleteMessageBatchOutput;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry,
};
use posthaste_ports::{ErrorKind, MessageId, OutgoingMessage, PortError, Receipt};

use crate::clients::failure::of_code;

/// What became of one item.
pub(super) type ItemResult<T> = Result<T, PortError>;

/// What SQS says of one item.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
struct Refused {
    code: String,
    message: String,
}

/// The item is in neither list of the answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer does not tell of this item")]
struct NotTold;

/// An item's id within its request: its place.
pub(super) fn send_entry(
    place: usize,
    message: OutgoingMessage,
) -> Result<SendMessageBatchRequestEntry, BuildError> {
    // Every body was vetted as UTF-8, so nothing is replaced here; a body with one owner is not copied.
    let body = String::from_utf8(message.body.into())
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
    SendMessageBatchRequestEntry::builder()
        .id(place.to_string())
        .message_body(body)
        .set_message_group_id(message.group)
        .set_delay_seconds((message.delay_secs > 0).then(|| message.delay_secs.into()))
        .build()
}

pub(super) fn delete_entry(
    place: usize,
    receipt: &Receipt,
) -> Result<DeleteMessageBatchRequestEntry, BuildError> {
    DeleteMessageBatchRequestEntry::builder().id(place.to_string()).receipt_handle(&receipt.0).build()
}

/// What became of each of `count` messages.
pub(super) fn sent(
    doing: &'static str,
    count: usize,
    answer: SendMessageBatchOutput,
) -> Vec<ItemResult<MessageId>> {
    let done = answer.successful.into_iter().map(|entry| (entry.id, MessageId(entry.message_id)));
    items(doing, count, done, answer.failed)
}

/// What became of each of `count` deletes.
pub(super) fn deleted(
    doing: &'static str,
    count: usize,
    answer: DeleteMessageBatchOutput,
) -> Vec<ItemResult<()>> {
    let done = answer.successful.into_iter().map(|entry| (entry.id, ()));
    items(doing, count, done, answer.failed)
}

/// An id that is not of this request is passed over. One in both lists counts as failed: sent twice is better than lost.
fn items<T>(
    doing: &'static str,
    count: usize,
    done: impl Iterator<Item = (String, T)>,
    failed: Vec<BatchResultErrorEntry>,
) -> Vec<ItemResult<T>> {
    let unknown = || Err(PortError::caused(doing, ErrorKind::Other, NotTold));
    let mut items: Vec<_> = std::iter::repeat_with(unknown).take(count).collect();
    let results = done.map(|(id, done)| (id, Ok(done)));
    let results =
        results.chain(failed.into_iter().map(|entry| (entry.id.clone(), Err(refused(doing, entry)))));
    for (id, result) in results {
        if let Some(item) = id.parse().ok().and_then(|place: usize| items.get_mut(place)) {
            *item = result;
        }
    }
    items
}

fn refused(doing: &'static str, entry: BatchResultErrorEntry) -> PortError {
    let fallback = if entry.sender_fault { ErrorKind::Invalid } else { ErrorKind::Other };
    let kind = of_code(&entry.code, entry.message.as_deref()).unwrap_or(fallback);
    PortError::caused(doing, kind, Refused { code: entry.code, message: entry.message.unwrap_or_default() })
}
