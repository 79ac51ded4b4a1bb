//! Messages that cannot be read, kept byte for byte.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::stored::layout;
use posthaste_ports::{
    Clock, Entropy, MessageId, ObjectStore, Ports, PutCondition, ReceivedMessage,
};

use crate::deadlines::in_time;
use crate::settle::MessageSettler;
use crate::unwritten::UnwrittenLetters;

/// Keeps messages as they are.
pub(crate) struct RawMessageKeeper<P: Ports> {
    /// The dead-letter bucket.
    pub(crate) bucket: Arc<P::DeadLetters>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    pub(crate) settler: Arc<MessageSettler<P>>,
    pub(crate) unwritten: Arc<UnwrittenLetters>,
}

impl<P: Ports> RawMessageKeeper<P> {
    /// Keeps a message byte for byte. Returns it if that failed.
    pub(crate) async fn keep_raw(
        &self,
        message: ReceivedMessage,
        deadline: Duration,
    ) -> Option<MessageId> {
        let key = layout::malformed_message_key(self.clock.now(), &self.entropy.uuid().to_string());
        let put = self
            .bucket
            .put(&key, message.body.clone(), PutCondition::Always);
        match in_time(&self.clock, deadline, put).await {
            Ok(_) => {
                metrics::counter!("DeadLetteredCount", "reason" => "MalformedMessage").increment(1);
                tracing::error!(%key, message_id = %message.id.0, "message not readable, kept as it is");
                self.settler.acknowledge(&message).await;
                None
            }
            Err(error) => {
                self.unwritten.note_refused(&[], self.clock.now());
                tracing::error!(%key, error = &error as &dyn Error, "unreadable message not written");
                Some(message.id)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{
        MemoryPorts, NOW, clock, deadline, finish, port, queue, receive_message, settler,
    };
    use posthaste_ports::ErrorKind;
    use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
    use posthaste_testkit::{CallFault, FaultPlan, SeededEntropy};

    fn keeper(
        bucket: &MemoryStore,
        queue: &MemoryQueue,
        plan: &FaultPlan,
    ) -> RawMessageKeeper<MemoryPorts> {
        RawMessageKeeper {
            bucket: port(bucket, plan),
            clock: clock(),
            entropy: SeededEntropy::new(7),
            settler: Arc::new(settler(queue)),
            unwritten: Arc::default(),
        }
    }

    #[test]
    fn unreadable_message_is_kept_byte_for_byte() {
        let bucket = MemoryStore::like_s3(7);
        let queue = queue();
        let message = receive_message(&queue, b"not ours");
        let keeper = keeper(&bucket, &queue, &FaultPlan::none());
        assert_eq!(finish(keeper.keep_raw(message, deadline())), None);
        let [(key, bytes)] = bucket.objects_under("").try_into().unwrap();
        assert!(
            key.starts_with(&layout::malformed_message_key(NOW, "")),
            "{key}"
        );
        assert_eq!(bytes, "not ours");
        assert!(queue.messages().is_empty());
    }

    #[test]
    fn unreadable_message_that_the_bucket_refuses_comes_again() {
        let bucket = MemoryStore::like_s3(7);
        let queue = queue();
        let message = receive_message(&queue, b"not ours");
        let id = message.id.clone();
        let plan = FaultPlan::by(|_| Some(CallFault::Before(ErrorKind::Other)));
        let keeper = keeper(&bucket, &queue, &plan);
        assert_eq!(finish(keeper.keep_raw(message, deadline())), Some(id));
        assert_eq!(queue.messages().len(), 1);
    }
}
