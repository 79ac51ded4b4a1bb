//! The sending of more messages than one batch holds.

use std::iter::repeat_with;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::{SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX};

use posthaste_ports::{ErrorKind, OutgoingMessage, PortError, QueueSender};

/// Most batches of one [`send_all`] that are under way at once.
pub const BATCHES_AT_ONCE_MAX: usize = 8;

/// Most of the last batches that are searched for room; older ones count as full.
const OPEN_BATCHES_MAX: usize = 16;

/// Sends any number of messages in batches of at most 10 entries and 1 MiB, several at once.
///
/// Returns one result per message, in order, with the meaning of [`QueueSender::send_batch`]'s
/// entries. An error of a whole batch is the result of each of its messages.
pub async fn send_all(
    sender: &impl QueueSender,
    messages: Vec<OutgoingMessage>,
) -> Vec<Result<(), PortError>> {
    let count = messages.len();
    let batches = pack_batches(messages);
    let answers = stream::iter(batches)
        .map(|batch| send_one_batch(sender, batch))
        .buffer_unordered(BATCHES_AT_ONCE_MAX);
    let mut answers: Vec<_> = answers
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .flatten()
        .collect();
    debug_assert_eq!(answers.len(), count);
    answers.sort_unstable_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Messages that go together, each with its place in the whole.
#[derive(Debug, Default)]
struct MessageBatch {
    indices: Vec<usize>,
    entries: Vec<OutgoingMessage>,
    bytes: usize,
}

impl MessageBatch {
    fn has_room(&self, bytes: usize) -> bool {
        self.entries.len() < SQS_BATCH_ENTRIES_MAX && self.bytes + bytes <= SQS_MESSAGE_BYTES_MAX
    }

    fn add(&mut self, index: usize, message: OutgoingMessage) {
        self.bytes += message.body.len();
        self.indices.push(index);
        self.entries.push(message);
    }
}

/// First fit in order: a message goes into the first open batch with room for it. A message that is
/// too large by itself gets a batch of its own, so that its refusal is its own.
fn pack_batches(messages: Vec<OutgoingMessage>) -> Vec<MessageBatch> {
    let mut batches: Vec<MessageBatch> = Vec::new();
    for (index, message) in messages.into_iter().enumerate() {
        let bytes = message.body.len();
        let oldest_open = batches.len().saturating_sub(OPEN_BATCHES_MAX);
        let open = (oldest_open..batches.len()).find(|&at| batches[at].has_room(bytes));
        let at = open.unwrap_or_else(|| {
            batches.push(MessageBatch::default());
            batches.len() - 1
        });
        batches[at].add(index, message);
    }
    batches
}

async fn send_one_batch(
    sender: &impl QueueSender,
    batch: MessageBatch,
) -> Vec<(usize, Result<(), PortError>)> {
    let MessageBatch {
        indices, entries, ..
    } = batch;
    match sender.send_batch(entries).await {
        Ok(answers) => {
            // An adapter that returns too few results leaves the rest unknown, which is an error
            // and not a success.
            let unknown =
                repeat_with(|| Err(PortError::new("send a batch of messages", ErrorKind::Other)));
            let answers = answers
                .into_iter()
                .map(|answer| answer.map(drop))
                .chain(unknown);
            indices.into_iter().zip(answers).collect()
        }
        Err(outer) => {
            let outer = Arc::new(outer);
            indices
                .into_iter()
                .map(|index| {
                    let error = PortError::with_cause(outer.doing, outer.kind, outer.clone());
                    (index, Err(error))
                })
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::error::Error;
    use std::time::Duration;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use posthaste_ports::{MessageId, QueueReceiver, ReceiveRequest};
    use posthaste_testkit::faulty::EntryFault;
    use posthaste_testkit::memory::{MemoryQueue, message};
    use posthaste_testkit::recorded::RecordedCall;
    use posthaste_testkit::{CallFault, FaultPlan, Faulty, Recorded, RecordedCalls};

    fn sized(bytes: usize) -> OutgoingMessage {
        OutgoingMessage {
            body: Bytes::from("x".repeat(bytes)),
            group: None,
            delay: Duration::ZERO,
        }
    }

    fn shape(calls: &RecordedCalls) -> Vec<(usize, usize)> {
        calls
            .all()
            .into_iter()
            .map(|RecordedCall { entries, bytes, .. }| (entries, bytes))
            .collect()
    }

    /// Sends bodies of these sizes and tells entries and bytes of each batch.
    async fn batches(sizes: &[usize]) -> Vec<(usize, usize)> {
        let calls = RecordedCalls::default();
        let queue = Recorded::new(MemoryQueue::default(), "q", &calls);
        let answers = send_all(&queue, sizes.iter().map(|bytes| sized(*bytes)).collect()).await;
        assert_eq!(
            answers.iter().filter(|answer| answer.is_ok()).count(),
            sizes.len()
        );
        shape(&calls)
    }

    #[tokio::test]
    async fn batches_hold_ten_entries_and_a_mebibyte() {
        assert_eq!(batches(&[]).await, []);
        assert_eq!(batches(&[1; 10]).await, [(10, 10)]);
        assert_eq!(batches(&[1; 21]).await, [(10, 10), (10, 10), (1, 1)]);
        let half = SQS_MESSAGE_BYTES_MAX / 2;
        assert_eq!(batches(&[half, half, 1]).await, [(2, 2 * half), (1, 1)]);
        // The small ones fill up what the large ones left.
        assert_eq!(
            batches(&[half + 1, half + 1, 5, 5]).await,
            [(3, half + 11), (1, half + 1)]
        );
    }

    #[tokio::test]
    async fn results_stand_in_the_order_of_the_messages() {
        let queue = MemoryQueue::default();
        let late = OutgoingMessage {
            delay: Duration::from_secs(901),
            ..message("late")
        };
        let too_large = sized(SQS_MESSAGE_BYTES_MAX + 1);
        let answers = send_all(
            &queue,
            vec![message("a"), late, too_large, message("b"), message("")],
        )
        .await;
        let kinds: Vec<_> = answers
            .into_iter()
            .map(|answer| answer.err().map(|e| e.kind))
            .collect();
        let invalid = Some(ErrorKind::Invalid);
        assert_eq!(kinds, [None, invalid, invalid, None, invalid]);
        assert_eq!(queue.counts().await.unwrap().visible, 2);
    }

    #[tokio::test]
    async fn batch_error_is_the_result_of_its_messages_alone() {
        let fault = CallFault::Before(ErrorKind::Throttled {
            retry_after: Some(Duration::from_secs(1)),
        });
        let queue = Faulty::new(MemoryQueue::default(), "q", &FaultPlan::nth(1, fault));
        let answers = send_all(&queue, vec![message("x"); 21]).await;
        let failed: Vec<_> = (0..21).filter(|index| answers[*index].is_err()).collect();
        assert_eq!(failed, (10..20).collect::<Vec<_>>());
        let error = answers[10].as_ref().unwrap_err();
        assert_eq!(
            error.kind,
            ErrorKind::Throttled {
                retry_after: Some(Duration::from_secs(1))
            }
        );
        assert!(error.source().is_some());
    }

    #[tokio::test]
    async fn an_entry_fails_by_itself() {
        let fault = CallFault::Entries(vec![EntryFault {
            index: 1,
            is_sent: false,
            kind: ErrorKind::TimedOut,
        }]);
        let queue = Faulty::new(MemoryQueue::default(), "q", &FaultPlan::nth(0, fault));
        let answers = send_all(&queue, vec![message("a"), message("b"), message("c")]).await;
        let kinds: Vec<_> = answers
            .into_iter()
            .map(|answer| answer.err().map(|e| e.kind))
            .collect();
        assert_eq!(kinds, [None, Some(ErrorKind::TimedOut), None]);
    }

    /// Returns fewer results than it was given messages.
    struct Forgetful(MemoryQueue);

    impl QueueSender for Forgetful {
        async fn send_batch(
            &self,
            entries: Vec<OutgoingMessage>,
        ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
            let mut answers = self.0.send_batch(entries).await?;
            answers.truncate(1);
            Ok(answers)
        }
    }

    #[tokio::test]
    async fn an_entry_without_an_answer_does_not_count_as_sent() {
        let queue = Forgetful(MemoryQueue::default());
        let answers = send_all(&queue, vec![message("a"), message("b")]).await;
        let kinds: Vec<_> = answers
            .into_iter()
            .map(|answer| answer.err().map(|e| e.kind))
            .collect();
        assert_eq!(kinds, [None, Some(ErrorKind::Other)]);
    }

    proptest! {
        #[test]
        fn every_message_is_packed_once_and_no_batch_breaks_a_limit(
            sizes in prop::collection::vec(prop_oneof![1..100_usize, 1..SQS_MESSAGE_BYTES_MAX], 0..60),
        ) {
            let batches = pack_batches(sizes.iter().map(|bytes| sized(*bytes)).collect());
            let mut indices = BTreeSet::new();
            for batch in &batches {
                prop_assert!((1..=SQS_BATCH_ENTRIES_MAX).contains(&batch.entries.len()));
                let bytes: usize = batch.entries.iter().map(|entry| entry.body.len()).sum();
                prop_assert!(bytes <= SQS_MESSAGE_BYTES_MAX && bytes == batch.bytes);
                for (index, entry) in batch.indices.iter().zip(&batch.entries) {
                    prop_assert_eq!(entry.body.len(), sizes[*index]);
                    prop_assert!(indices.insert(*index));
                }
            }
            prop_assert_eq!(indices.len(), sizes.len());
        }
    }

    #[tokio::test]
    async fn sent_messages_are_all_received() {
        let queue = MemoryQueue::default();
        send_all(&queue, vec![message("x"); 25]).await;
        let all = ReceiveRequest {
            max: 10,
            visibility: Duration::from_secs(30),
            wait: Duration::ZERO,
        };
        let mut received = 0;
        for _ in 0..3 {
            received += queue.receive(all).await.unwrap().len();
        }
        assert_eq!(received, 25);
    }
}
