//! The queue, with the semantics and the limits of an SQS standard queue.

use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::lane::DeliveryLane;
use posthaste_core::model::Timestamp;
use posthaste_core::pressure::DueOfGroup;

use crate::{ErrorKind, PortError, WithheldMessages};

/// The queues there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueName {
    /// Work for `deliver`: visible messages are due, delayed ones are retries, in-flight ones are
    /// being posted.
    Deliveries,
    /// Work for `deliver` as well: deliveries to targets that answer slowly. Only on AWS: embedded
    /// there is one queue of deliveries.
    SlowDeliveries,
    /// Work for `deadletter`.
    DeadLetters,
    /// Messages that were received more than `MAX_RECEIVE_COUNT` times; emptied by `deadletter` as
    /// `HandlerFailed`.
    Redrive,
    /// Work for `record`: records of the delivery log on their way into its files.
    Records,
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deliveries => "deliveries",
            Self::SlowDeliveries => "deliveries-slow",
            Self::DeadLetters => "deadletters",
            Self::Redrive => "redrive",
            Self::Records => "records",
        })
    }
}

impl From<DeliveryLane> for QueueName {
    fn from(lane: DeliveryLane) -> Self {
        match lane {
            DeliveryLane::Quick => Self::Deliveries,
            DeliveryLane::Slow => Self::SlowDeliveries,
        }
    }
}

/// A message on its way into a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// UTF-8 text of characters SQS accepts, 1 byte to 1 MiB.
    pub body: Bytes,
    /// `MessageGroupId`: messages of one group are shown fairly beside those of the others. Order
    /// is not kept.
    pub group: Option<String>,
    /// The time until the message becomes visible, at most 900 s. A queue that delays by whole
    /// seconds, as SQS does, rounds it up.
    pub delay: Duration,
}

/// The id the queue gave a message. Shared, because what works on a message keeps its id in several
/// places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageId(pub Arc<str>);

/// A receipt handle: the right to delete one message, from one receive of it, until its visibility
/// timeout.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReceiptHandle(pub Arc<str>);

/// A message as it was received.
#[derive(Debug, Clone)]
pub struct ReceivedMessage {
    /// The id that the queue gave the message; the same on every receive.
    pub id: MessageId,
    /// The right to delete the message; new on every receive.
    pub receipt: ReceiptHandle,
    /// The body, byte for byte as it was sent.
    pub body: Bytes,
    /// The number of receives, this one included; 1 the first time.
    pub receive_count: u32,
    /// The time at which the message was sent.
    pub sent_at: Timestamp,
}

/// The limits of one receive.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveRequest {
    /// Most messages, 1..=10.
    pub max: usize,
    /// The time for which a received message stays hidden from others, at most 12 hours.
    pub visibility: Duration,
    /// The time to wait for a message if none is visible, at most 20 s.
    pub wait: Duration,
}

/// A message to a named queue: one that takes the place of another, or is sent beside others.
#[derive(Debug, Clone)]
pub struct Successor {
    /// The queue that it goes to.
    pub to: QueueName,
    /// The message.
    pub message: OutgoingMessage,
}

/// The result of a function for a batch of messages, as Lambda's `ReportBatchItemFailures` has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchResponse {
    /// The messages for which nothing durable was done: they become visible again after their
    /// timeout.
    pub failures: Vec<MessageId>,
}

/// The number of messages in a queue, by what they mean. On AWS the numbers are approximate and lag
/// a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Messages that are due and not being worked on.
    pub visible: u64,
    /// Messages that are not due yet.
    pub delayed: u64,
    /// Received and neither deleted nor timed out.
    pub in_flight: u64,
}

impl QueueCounts {
    /// All messages.
    pub fn total(&self) -> u64 {
        self.visible + self.delayed + self.in_flight
    }
}

/// The events that wait in one group of the delivery queue. A message that is not a delivery counts
/// as one event, accepted when it was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// Events of messages that are due and not being worked on.
    pub due: u64,
    /// Events of messages that are not due yet.
    pub delayed: u64,
    /// Events of messages that were received, and neither settled nor timed out.
    pub in_flight: u64,
    /// The acceptance of the oldest of them, to the second.
    pub oldest: Option<Timestamp>,
    /// The time at which the first of those that are delayed becomes visible, where it is asked
    /// for.
    pub next_due: Option<Timestamp>,
}

/// The counts of groups, with their names.
pub type GroupCounts = Vec<(Arc<str>, GroupCount)>;

/// Sends messages to one queue.
pub trait QueueSender: Send + Sync {
    /// Sends 1..=10 messages whose bodies sum to at most 1 MiB.
    ///
    /// Returns one result per entry, in order. `Ok` means the message is durable: it will be
    /// received at least once. An entry's `Err` of kind `Invalid` (delay over 900 s, empty or
    /// oversized body, refused characters, group id too long) leaves the other entries untouched;
    /// after an `Err` of another kind the message may or may not have been sent. The outer `Err`
    /// means nothing is known of any entry, except for kind `Invalid` (no entry, over 10 entries,
    /// sum over 1 MiB) and `Full`: then nothing was sent.
    fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> impl Future<Output = Result<Vec<Result<MessageId, PortError>>, PortError>> + Send;

    /// Whether the queue has [`Self::send_whole`] and [`Self::withhold`]. SQS has nothing like
    /// them.
    fn sends_whole(&self) -> bool {
        false
    }

    /// Sends any number of messages, and those `beside` them to other queues, all or none of them,
    /// also if the process dies. Each keeps the limits of a batch's entry.
    fn send_whole(
        &self,
        entries: Vec<OutgoingMessage>,
        beside: Vec<Successor>,
    ) -> impl Future<Output = Result<(), PortError>> + Send {
        drop((entries, beside));
        ready(Err(PortError::new(
            "send messages whole",
            ErrorKind::Invalid,
        )))
    }

    /// Makes any number of messages durable, all or none of them, before they can be received: so
    /// messages that do not fit one transaction become visible together, or not at all.
    fn withhold(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> impl Future<Output = Result<WithheldMessages, PortError>> + Send {
        drop(entries);
        ready(Err(PortError::new("withhold messages", ErrorKind::Invalid)))
    }
}

/// Receives messages of one queue and settles them. Delivery is at least once; order is not kept.
pub trait QueueReceiver: Send + Sync {
    /// Waits for and takes visible messages; no message is given to two callers within its
    /// visibility timeout.
    ///
    /// An empty result after `wait` is not an error. Messages of a group with few in flight come
    /// before those of a group with many. A message received more than the queue's
    /// `maxReceiveCount` times is moved to the redrive queue instead, where there is one.
    fn receive(
        &self,
        request: ReceiveRequest,
    ) -> impl Future<Output = Result<Vec<ReceivedMessage>, PortError>> + Send;

    /// Settles the message: it is not received again, unless the process dies before the queue has
    /// noted it. On AWS this is left to the event source mapping, which deletes what the invocation
    /// does not report as failed. A stale receipt is not an error: another receiver has the message
    /// now.
    fn acknowledge(
        &self,
        receipt: &ReceiptHandle,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Puts `successors` in the place of a message: they are durable before it is deleted. Embedded
    /// this is one transaction, all or nothing; on AWS a crash in between leaves both. A stale
    /// receipt is an `Err` of kind `NotFound` and, embedded, sends nothing. An `Err` leaves the
    /// message to its visibility timeout.
    fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Hides a received message for `visibility` from now, or shows it at once with zero. At most
    /// 12 hours after it was received. A stale receipt is an `Err` of kind `NotFound`.
    fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Counts the queue.
    fn counts(&self) -> impl Future<Output = Result<QueueCounts, PortError>> + Send;

    /// Counts the due messages of every group that has some, without a look at the messages
    /// themselves. `None` if the queue cannot tell, as SQS cannot.
    fn due_by_group(
        &self,
    ) -> impl Future<Output = Result<Option<Vec<DueOfGroup>>, PortError>> + Send {
        ready(Ok(None))
    }

    /// Counts the due messages of each of these groups, in their order. `None` if the queue cannot
    /// tell, as SQS cannot.
    fn due_counts(
        &self,
        groups: &[String],
    ) -> impl Future<Output = Result<Option<Vec<u64>>, PortError>> + Send {
        let _ = groups;
        ready(Ok(None))
    }

    /// Counts the events of each of these groups of the delivery queue, in their order, without a
    /// look at the messages themselves. `None` if the queue cannot tell, as SQS cannot.
    fn waiting_counts(
        &self,
        groups: &[String],
    ) -> impl Future<Output = Result<Option<Vec<GroupCount>>, PortError>> + Send {
        let _ = groups;
        ready(Ok(None))
    }

    /// Counts the events of every group that has messages, each with its name, and without the time
    /// at which it is next due.
    fn waiting_by_group(
        &self,
    ) -> impl Future<Output = Result<Option<GroupCounts>, PortError>> + Send {
        ready(Ok(None))
    }
}
