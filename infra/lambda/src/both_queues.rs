//! The two queues of deadletter: its own, and the redrive queue of messages that functions failed
//! on many times. One Lambda function takes from both, and a batch comes from one of them.

use std::time::Duration;

use posthaste_aws::lambda::{BatchHandler, SqsBatch};
use posthaste_deadletter::DeadLetters;
use posthaste_ports::{BatchResponse, Ports};

/// deadletter over one queue, as the handler of its batches.
pub struct OneQueue<P: Ports>(pub DeadLetters<P>);

impl<P: Ports> BatchHandler for OneQueue<P> {
    async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
        // The SDK's futures lie so deep in one another that the compiler refuses one more layer; a
        // box ends the depth.
        Box::pin(self.0.handle(batch.messages, deadline)).await
    }
}

/// A handler of one queue's batches.
#[derive(Debug)]
pub struct QueueHandler<H> {
    queue: String,
    handler: H,
}

impl<H> QueueHandler<H> {
    pub fn new(queue_url: &str, handler: H) -> Self {
        Self {
            queue: queue_name_of(queue_url).to_owned(),
            handler,
        }
    }
}

/// A handler for each of the two queues.
#[derive(Debug)]
pub struct BothQueues<H> {
    dead_letters: QueueHandler<H>,
    redrive: QueueHandler<H>,
}

impl<H> BothQueues<H> {
    pub const fn new(dead_letters: QueueHandler<H>, redrive: QueueHandler<H>) -> Self {
        Self {
            dead_letters,
            redrive,
        }
    }

    fn handler_for(&self, queue: &str) -> Option<&H> {
        [&self.dead_letters, &self.redrive]
            .into_iter()
            .find(|it| it.queue == queue)
            .map(|it| &it.handler)
    }
}

/// The last part of a queue's URL, which is its name, as in its ARN.
pub(crate) fn queue_name_of(url: &str) -> &str {
    url.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
}

impl<H: BatchHandler> BatchHandler for BothQueues<H> {
    /// A batch of another queue means that the function is wired to a queue that it does not know.
    /// Such a batch fails as a whole and comes again: taking a delivery for a dead letter, or
    /// the reverse, would be worse than waiting.
    async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
        if let Some(handler) = self.handler_for(&batch.queue) {
            return handler.handle(batch, deadline).await;
        }
        let SqsBatch { queue, messages } = batch;
        tracing::error!(
            queue,
            messages = messages.len(),
            "messages of a queue that deadletter does not serve"
        );
        BatchResponse {
            failures: messages.into_iter().map(|message| message.id).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use posthaste_core::model::Timestamp;
    use posthaste_ports::{MessageId, ReceiptHandle, ReceivedMessage};

    /// Fails every message, under a name of its own and with the deadline it was given.
    struct Fails(&'static str);

    impl BatchHandler for Fails {
        async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
            let name = |id: &MessageId| format!("{}{} by {deadline:?}", id.0, self.0);
            let failed = |message: ReceivedMessage| MessageId(name(&message.id).into());
            BatchResponse {
                failures: batch.messages.into_iter().map(failed).collect(),
            }
        }
    }

    fn message(id: &str) -> ReceivedMessage {
        ReceivedMessage {
            id: MessageId(id.into()),
            receipt: ReceiptHandle("".into()),
            body: Bytes::new(),
            receive_count: 1,
            sent_at: Timestamp::EPOCH,
        }
    }

    async fn check(queue: &str, expected: [&str; 2]) {
        let both = BothQueues::new(
            QueueHandler::new(
                "https://sqs.eu-central-1.amazonaws.com/123456789012/shop-deadletters",
                Fails(" as dead letter"),
            ),
            QueueHandler::new(
                "http://127.0.0.1:4566/000000000000/shop-redrive",
                Fails(" as redriven"),
            ),
        );
        let batch = SqsBatch {
            queue: queue.to_owned(),
            messages: vec![message("a"), message("b")],
        };
        let response = BatchHandler::handle(&both, batch, Duration::from_secs(55)).await;
        let failures: Vec<_> = response.failures.iter().map(|id| &*id.0).collect();
        assert_eq!(failures, expected, "{queue}");
    }

    #[tokio::test]
    async fn a_batch_goes_to_the_handler_of_its_queue() {
        check(
            "shop-deadletters",
            ["a as dead letter by 55s", "b as dead letter by 55s"],
        )
        .await;
        check(
            "shop-redrive",
            ["a as redriven by 55s", "b as redriven by 55s"],
        )
        .await;
    }

    #[tokio::test]
    async fn a_batch_of_another_queue_fails_as_a_whole() {
        for queue in ["shop-deliveries", "redrive", "Shop-redrive", ""] {
            check(queue, ["a", "b"]).await;
        }
    }
}
