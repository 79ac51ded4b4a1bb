//! The deadletter function: its ports, and the calls that its steps share.

use std::error::Error;
use std::time::Duration;

use posthaste_core::model::DeliveryLogMode;
use posthaste_ports::{
    Entropy, ErrorKind, PortError, Ports, QueueName, QueueReceiver, ReceivedMessage,
};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::{ArrivalTracker, LogTally, TopicRegistry, timeout_at};

use crate::unwritten::UnwrittenLetters;

/// Time that is reserved for leaving messages that ask for what could not be done, such as notices:
/// sending those may hang, and must not cost a second object.
pub(crate) const LEAVING_TIME: Duration = Duration::from_secs(10);

/// Letters of one object that are put off at once.
pub(crate) const PUT_OFF_AT_ONCE_MAX: usize = 100;

/// The ports of deadletter.
#[derive(Debug)]
pub struct DeadLetterPorts<P: Ports> {
    /// The queue that is emptied.
    pub queue: P::Queue,
    /// The name of that queue: the dead-letter queue or the redrive queue.
    pub source: QueueName,
    /// The queue of the delivery log's records.
    pub records: P::Queue,
    /// How much the delivery log keeps of a topic that does not say so.
    pub delivery_log: DeliveryLogMode,
    /// Most bytes of dead letters of what disabled subscriptions miss; `None`: no bound.
    pub missed_bytes_max: Option<u64>,
    /// The delivery queue, for notices.
    pub deliveries: P::Queue,
    /// The state bucket, for payloads that were stored once.
    pub state: P::Store,
    /// The dead-letter bucket.
    pub bucket: P::DeadLetters,
    /// Topics and subscriptions: the topic that gets notices, and how long the bucket may refuse a
    /// letter.
    pub registry: TopicRegistry<P::Store, P::Clock>,
    /// The book that says how much of what disabled subscriptions miss was kept.
    pub book: ArrivalTracker<P::Store, P::Clock>,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
}

/// The function.
pub struct DeadLetters<P: Ports> {
    pub(crate) ports: DeadLetterPorts<P>,
    pub(crate) unwritten: UnwrittenLetters,
    /// The name of this process in its reports.
    pub(crate) instance: String,
    /// Records of the delivery log that were lost.
    pub(crate) lost_records: LogTally,
}

impl<P: Ports> DeadLetters<P> {
    /// Wires the function up.
    pub fn new(ports: DeadLetterPorts<P>) -> Self {
        let instance = ports.entropy.uuid().to_string();
        Self {
            ports,
            instance,
            unwritten: UnwrittenLetters::default(),
            lost_records: LogTally::default(),
        }
    }

    /// Acknowledges a message whose content is durable. A failure leaves a copy to be written
    /// again: at least once.
    pub(crate) async fn acknowledge(&self, message: &ReceivedMessage) {
        let acknowledged = catch_panic(self.ports.queue.acknowledge(&message.receipt)).await;
        let panicked = |panicked| {
            Err(PortError::with_cause(
                "acknowledge",
                ErrorKind::Other,
                panicked,
            ))
        };
        if let Err(error) = acknowledged.unwrap_or_else(panicked) {
            let error = &error as &dyn Error;
            tracing::error!(message_id = %message.id.0, error, "written dead letter not acknowledged");
        }
    }

    /// The result of a call, or a timeout at the deadline. After a timeout it is not known whether
    /// the call had an effect.
    pub(crate) async fn in_time<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<T, PortError>> + Send,
    ) -> Result<T, PortError> {
        let late = || Err(PortError::new("get an answer in time", ErrorKind::TimedOut));
        timeout_at(&self.ports.clock, deadline, call)
            .await
            .unwrap_or_else(late)
    }
}
