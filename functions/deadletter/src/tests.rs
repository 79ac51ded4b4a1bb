//! Letters and messages for this crate's tests.

mod stores;
mod time;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use posthaste_core::model::{DeadLetter, DeadLetterReason, Delivery, EventPayload, Timestamp};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{
    Clock, MessageId, OutgoingMessage, QueueName, QueueReceiver, QueueSender, ReceiptHandle,
    ReceiveRequest, ReceivedMessage,
};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::records::{delivery, subscription_name, topic_name};
use posthaste_testkit::{FaultPlan, Faulty, ManualClock, TestPorts};

use crate::letter::ReceivedLetter;
use crate::settle::MessageSettler;

/// Ports in memory, whose stores can fail.
pub(crate) type MemoryPorts = TestPorts<MemoryQueue, Faulty<MemoryStore>>;

/// A moment in 2023.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Most polls of a call to ports in memory: each port yields a few times at most.
const POLLS_MAX: usize = 1000;

/// The result of a call to ports in memory, which wait for nothing but their own turn.
pub(crate) fn finish<T>(call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    (0..POLLS_MAX)
        .find_map(|_| call.as_mut().now_or_never())
        .expect("a port in memory waits for nothing")
}

/// A clock that stands at [`NOW`].
pub(crate) fn clock() -> ManualClock {
    ManualClock::new(NOW)
}

/// A minute from now.
pub(crate) fn deadline() -> Duration {
    clock().monotonic() + Duration::from_mins(1)
}

/// A store in memory, as a port whose calls fail by a plan.
pub(crate) fn port(store: &MemoryStore, plan: &FaultPlan) -> Arc<Faulty<MemoryStore>> {
    Arc::new(Faulty::new(store.clone(), "store", plan))
}

/// An empty dead-letter queue.
pub(crate) fn queue() -> MemoryQueue {
    MemoryQueue::default().sibling_queue(QueueName::DeadLetters)
}

/// The settler of a dead-letter queue.
pub(crate) fn settler(queue: &MemoryQueue) -> MessageSettler<MemoryPorts> {
    MessageSettler {
        queue: queue.clone(),
        source: QueueName::DeadLetters,
        clock: clock(),
    }
}

/// A message that was sent to a queue and received.
pub(crate) fn receive_message(queue: &MemoryQueue, body: &'static [u8]) -> ReceivedMessage {
    let message = OutgoingMessage {
        body: Bytes::from_static(body),
        group: None,
        delay: Duration::ZERO,
    };
    finish(queue.send_batch(vec![message])).expect("it is sent");
    let request = ReceiveRequest {
        max: 1,
        wait: Duration::ZERO,
        visibility: Duration::from_mins(1),
    };
    let received = finish(queue.receive(request)).expect("it is received");
    received.into_iter().next().expect("it is visible")
}

/// An event of this many bytes that is, or was, stored under this key.
pub(crate) fn stored(key: &str, bytes: usize) -> EventPayload {
    EventPayload::Stored {
        key: key.to_owned(),
        bytes,
        digest: None,
        names: None,
    }
}

/// A letter of the subscription `billing` with these events, in a message of this id.
pub(crate) fn letter(id: &str, payloads: Vec<EventPayload>) -> ReceivedLetter {
    let names = (topic_name("orders"), subscription_name("billing"));
    let delivery = Delivery {
        attempts: 1,
        ..delivery(names, "k", payloads, Timestamp::EPOCH)
    };
    let dead = DeadLetter::new(DeadLetterReason::TimeToLiveExceeded, delivery);
    let message = ReceivedMessage {
        id: MessageId(id.into()),
        receipt: ReceiptHandle(id.into()),
        body: Bytes::new(),
        receive_count: 1,
        sent_at: Timestamp::EPOCH,
    };
    ReceivedLetter {
        message,
        dead,
        unresolved: Vec::new(),
    }
}

/// The message in which such a letter comes.
pub(crate) fn message(id: &str, payloads: Vec<EventPayload>) -> ReceivedMessage {
    let ReceivedLetter { message, dead, .. } = letter(id, payloads);
    ReceivedMessage {
        body: render_dead_letter(&dead),
        ..message
    }
}
