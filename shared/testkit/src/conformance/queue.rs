//! The suite that every queue adapter passes.

mod receiving;
mod sending;
mod settling;
mod waiting;

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;

use super::{Case, cases, run_all};
use posthaste_ports::{
    ErrorKind, MessageId, OutgoingMessage, PortError, QueueCounts, QueueReceiver, QueueSender,
    ReceiptHandle, ReceiveRequest, ReceivedMessage,
};

/// The number of times that a queue that lags is asked again before a message that was sent counts
/// as lost.
const PATIENCE: usize = 50;

/// A visibility timeout that no case outlasts by accident and a few can wait for.
const HIDDEN: Duration = Duration::from_secs(30);

/// Makes queues and passes time.
pub trait QueueHarness: Sync {
    /// The adapter.
    type Queue: QueueSender + QueueReceiver;

    /// Fresh and empty queues of one set: successors of one may go to the others.
    fn fresh(&self) -> impl Future<Output = QueueSet<Self::Queue>>;

    /// Lets `length` pass: a clock that is moved, or a real wait.
    fn pass(&self, length: Duration) -> impl Future<Output = ()>;

    /// The time by the queue's clock, where a test can know it exactly.
    fn now(&self) -> Option<Timestamp>;

    /// The abilities of the backend behind the adapter.
    fn backend(&self) -> QueueBackend;
}

/// Queues that belong together.
#[derive(Debug)]
pub struct QueueSet<Q> {
    /// The delivery queue.
    pub deliveries: Q,
    /// The dead-letter queue.
    pub dead_letters: Q,
    /// The redrive queue.
    pub redrive: Q,
    /// The queue of records.
    pub records: Q,
}

/// The differences between backends.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a difference of its own"
)]
#[derive(Debug, Clone, Copy)]
pub struct QueueBackend {
    /// The longest time a case may pass; cases that need more are left out. Real time is dear.
    pub pass_max: Duration,
    /// Whether a message is visible to the very next receive, and counts are exact at once.
    pub is_exact: bool,
    /// Whether `acknowledge` deletes, rather than leave it to the event source mapping.
    pub acknowledges: bool,
    /// Whether a change of visibility by a receipt that a newer one has replaced is refused.
    pub refuses_stale_receipts: bool,
    /// Whether `replace` is one transaction that knows a stale receipt.
    pub replaces_atomically: bool,
    /// Whether it shows what waits of a group, by a clock of the test.
    pub shows_groups: bool,
    /// Whether a group with few messages in flight is served strictly before one with many.
    pub is_fair: bool,
    /// The `maxReceiveCount` of the delivery queue.
    pub max_receive_count: u32,
    /// The `wait` that cases receive with: zero where a manual clock would never end it.
    pub wait: Duration,
}

/// Runs the suite. Panics with the names of the cases that failed.
pub async fn run<H: QueueHarness>(harness: &H) {
    let backend = harness.backend();
    let mut all: Vec<Case<'_>> = cases![harness:
        sending::a_message_is_received_byte_for_byte,
        sending::a_message_of_one_mebibyte_is_accepted,
        sending::a_delayed_message_is_not_visible_before_its_time,
        sending::a_delay_over_900_seconds_is_refused,
        sending::an_empty_or_oversized_body_is_refused,
        sending::refused_characters_are_refused,
        sending::a_group_id_too_long_is_refused,
        sending::a_batch_of_none_of_eleven_or_over_a_mebibyte_is_refused_whole,
        sending::one_bad_entry_leaves_its_neighbours,
        sending::ids_differ_and_are_those_of_the_received_messages,
        receiving::a_received_message_is_hidden_and_returns,
        receiving::the_receive_count_rises_and_receipts_are_new_while_ids_stay,
        receiving::at_most_the_asked_number_is_received,
        receiving::requests_over_the_limits_are_refused,
        receiving::receivers_at_once_never_share_a_message,
        receiving::an_empty_queue_answers_nothing,
        receiving::a_wait_for_a_message_that_never_comes_ends_with_nothing,
        receiving::a_waiting_receiver_gets_what_is_sent_meanwhile,
        receiving::a_waiting_receiver_gets_what_becomes_visible_meanwhile,
        receiving::the_queues_of_a_set_are_apart,
        receiving::what_is_received_too_often_moves_to_redrive_byte_for_byte,
        settling::acknowledging_a_stale_receipt_is_no_error_and_deletes_nothing,
        settling::visibility_zero_shows_a_message_at_once,
        settling::visibility_can_be_lengthened,
        settling::a_stale_receipt_changes_no_visibility,
        settling::visibility_over_twelve_hours_is_refused,
        settling::replace_puts_successors_in_the_place_of_a_message,
        settling::successors_go_to_every_queue_of_the_set,
        settling::replace_by_nothing_deletes,
        settling::replace_is_refused_whole_if_a_successor_is_invalid,
    ];
    if backend.is_exact {
        all.extend::<Vec<Case<'_>>>(
            cases![harness: receiving::counts_tell_visible_delayed_and_in_flight],
        );
    }
    if backend.is_exact && backend.pass_max >= HIDDEN + HIDDEN {
        all.extend::<Vec<Case<'_>>>(cases![harness: receiving::counts_follow_time]);
    }
    all.extend::<Vec<Case<'_>>>(if backend.acknowledges {
        cases![harness: settling::an_acknowledged_message_does_not_return]
    } else {
        cases![harness: settling::acknowledging_leaves_the_message_to_the_mapping]
    });
    if backend.replaces_atomically {
        all.extend::<Vec<Case<'_>>>(
            cases![harness: settling::replacing_by_a_stale_receipt_sends_nothing],
        );
    }
    if backend.shows_groups {
        all.extend::<Vec<Case<'_>>>(cases![harness:
            waiting::events_of_a_group_are_counted_wherever_they_are,
            waiting::due_messages_are_counted_by_group,
        ]);
    }
    if backend.is_fair {
        all.extend::<Vec<Case<'_>>>(
            cases![harness: receiving::a_quiet_group_is_served_before_a_busy_one],
        );
    }
    if backend.pass_max >= Duration::from_hours(12) {
        all.extend::<Vec<Case<'_>>>(cases![harness:
            sending::part_of_a_second_of_a_delay_is_not_cut_off,
            sending::the_longest_delay_ends_on_the_second,
            settling::twelve_hours_count_from_the_receive,
        ]);
    }
    run_all(all).await;
}

fn message(body: impl Into<Bytes>) -> OutgoingMessage {
    OutgoingMessage {
        body: body.into(),
        group: None,
        delay: Duration::ZERO,
    }
}

fn ask(backend: QueueBackend, max: usize) -> ReceiveRequest {
    ReceiveRequest {
        max,
        visibility: HIDDEN,
        wait: backend.wait,
    }
}

/// Sends one message that must be accepted.
async fn send(queue: &impl QueueSender, message: OutgoingMessage) -> MessageId {
    let mut answers = queue.send_batch(vec![message]).await.unwrap();
    assert_eq!(answers.len(), 1);
    answers.remove(0).unwrap()
}

/// The kind of the error of each entry.
fn kinds(answers: &[Result<MessageId, PortError>]) -> Vec<Option<ErrorKind>> {
    answers
        .iter()
        .map(|answer| answer.as_ref().err().map(|error| error.kind))
        .collect()
}

/// Receives until `wanted` messages came; fewer only after asking a lagging queue many times.
async fn take(
    queue: &impl QueueReceiver,
    backend: QueueBackend,
    wanted: usize,
) -> Vec<ReceivedMessage> {
    let tries = if backend.is_exact { 1 } else { PATIENCE };
    let mut taken = Vec::new();
    let mut empty = 0;
    while taken.len() < wanted && empty < tries {
        let more = queue
            .receive(ask(backend, 10.min(wanted - taken.len())))
            .await
            .unwrap();
        empty += usize::from(more.is_empty());
        taken.extend(more);
    }
    assert_eq!(taken.len(), wanted, "messages received");
    taken
}

/// Receives the one message there must be.
async fn take_one(queue: &impl QueueReceiver, backend: QueueBackend) -> ReceivedMessage {
    take(queue, backend, 1).await.remove(0)
}

/// Checks that nothing is visible. It does not wait for it: the time of a wait would count against
/// the case.
async fn is_empty(queue: &impl QueueReceiver, backend: QueueBackend) {
    let received = queue
        .receive(ReceiveRequest {
            wait: Duration::ZERO,
            ..ask(backend, 10)
        })
        .await
        .unwrap();
    assert_eq!(
        received.len(),
        0,
        "messages received from a queue that shows none"
    );
}

/// Deletes a received message.
async fn remove(queue: &impl QueueReceiver, backend: QueueBackend, receipt: &ReceiptHandle) {
    let removed = if backend.acknowledges {
        queue.acknowledge(receipt).await
    } else {
        queue.replace(receipt, vec![]).await
    };
    removed.unwrap();
}

/// Bodies in their own order, because queues keep none.
fn sorted_bodies(messages: &[ReceivedMessage]) -> Vec<Bytes> {
    let mut bodies: Vec<_> = messages.iter().map(|m| m.body.clone()).collect();
    bodies.sort();
    bodies
}

fn counts(visible: u64, delayed: u64, in_flight: u64) -> QueueCounts {
    QueueCounts {
        visible,
        delayed,
        in_flight,
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::memory::{MAX_RECEIVE_COUNT, MemoryQueue};
    use crate::{CallFault, FaultPlan, Faulty, PortOperation, Recorded, RecordedCalls};
    use parking_lot::Mutex;
    use posthaste_ports::QueueName;

    struct Memory {
        plan: FaultPlan,
        last: Mutex<MemoryQueue>,
    }

    impl QueueHarness for Memory {
        type Queue = Recorded<Faulty<MemoryQueue>>;

        async fn fresh(&self) -> QueueSet<Self::Queue> {
            let queue = MemoryQueue::default();
            *self.last.lock() = queue.clone();
            let beside = |name| {
                Recorded::new(
                    Faulty::new(queue.sibling_queue(name), "queue", &self.plan),
                    "queue",
                    &RecordedCalls::default(),
                )
            };
            QueueSet {
                deliveries: beside(QueueName::Deliveries),
                dead_letters: beside(QueueName::DeadLetters),
                redrive: beside(QueueName::Redrive),
                records: beside(QueueName::Records),
            }
        }

        async fn pass(&self, length: Duration) {
            self.last.lock().advance(length);
        }

        fn now(&self) -> Option<Timestamp> {
            Some(self.last.lock().now())
        }

        fn backend(&self) -> QueueBackend {
            QueueBackend {
                pass_max: Duration::MAX,
                is_exact: true,
                acknowledges: true,
                refuses_stale_receipts: true,
                replaces_atomically: true,
                shows_groups: true,
                is_fair: true,
                max_receive_count: MAX_RECEIVE_COUNT,
                wait: Duration::ZERO,
            }
        }
    }

    fn memory(plan: FaultPlan) -> Memory {
        Memory {
            plan,
            last: Mutex::default(),
        }
    }

    #[tokio::test]
    async fn the_plainest_queue_passes() {
        run(&memory(FaultPlan::none())).await;
    }

    #[tokio::test]
    #[should_panic(expected = "settling::an_acknowledged_message_does_not_return")]
    async fn a_queue_that_forgets_acknowledgements_fails() {
        run(&memory(FaultPlan::by(|effect| {
            (effect.operation == PortOperation::Acknowledge)
                .then_some(CallFault::Before(ErrorKind::Other))
        })))
        .await;
    }
}
