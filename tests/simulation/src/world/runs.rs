//! Invocations of the world's functions, and time that passes during them.

use std::time::Duration;

use posthaste_core::delivery_log::{LogRecord, parse_records};
use posthaste_core::pressure::DrainedMessages;
use posthaste_ports::{
    BatchResponse, Clock, DrainSource, LookTime, QueueName, QueueReceiver, ReceivedMessage,
};
use posthaste_record::{LogFilesError, MergeReport};
use posthaste_services::LeftWork;
use posthaste_wake::{WakeError, WakeReport};

use super::World;
use crate::worker::{MESSAGES_MAX, receive};

/// The longest that is waited for: wake's pauses, and answers that take a moment. Limits are
/// further off.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// As many turns as others need to go on with what needs no port.
const TURNS: usize = 100;

impl World {
    /// Receives what is visible in a queue, without waiting.
    pub async fn receive(&self, queue: QueueName) -> Vec<ReceivedMessage> {
        receive(&self.local, queue, MESSAGES_MAX).await
    }

    /// One invocation of deliver with what is visible, a minute before its deadline.
    pub async fn deliver(&self) -> BatchResponse {
        self.deliver_within(Duration::from_mins(1)).await
    }

    /// One invocation of deliver with what is visible, as the event source mapping makes it.
    pub async fn deliver_within(&self, left: Duration) -> BatchResponse {
        Box::pin(self.worker.deliver_within(left)).await
    }

    /// Runs deliver until nothing is visible.
    pub async fn deliver_all(&self) {
        while self.visible(QueueName::Deliveries).await > 0 {
            self.deliver().await;
        }
    }

    /// Listens for late answers, until deliver is stopped.
    pub async fn hear_late_answers(&self) {
        self.worker.deliver.hear_late_answers().await;
    }

    /// Stops deliver, as a process does that is to end.
    pub fn stop(&self) {
        self.worker.deliver.stop();
    }

    /// Deliver's report of the drain since the last time.
    pub async fn drained(&self) -> DrainedMessages {
        let time = LookTime {
            now: self.clock.monotonic(),
            elapsed: Duration::ZERO,
        };
        let told = self.drain.measure_drain(0, time).await.expect("a meter");
        told.expect("a meter always tells").all
    }

    /// One invocation of deadletter with what is visible, a minute before its deadline.
    pub async fn bury(&self) -> BatchResponse {
        self.bury_within(Duration::from_mins(1)).await
    }

    /// One invocation of deadletter with what is visible.
    pub async fn bury_within(&self, left: Duration) -> BatchResponse {
        let batch = self.receive(QueueName::DeadLetters).await;
        self.dead_letters
            .handle(batch, self.clock.monotonic() + left)
            .await
    }

    /// One invocation of deadletter for the redrive queue, a minute before its deadline.
    pub async fn bury_redriven(&self) -> BatchResponse {
        let deadline = self.clock.monotonic() + Duration::from_mins(1);
        self.redrive
            .handle(self.receive(QueueName::Redrive).await, deadline)
            .await
    }

    /// One invocation of record with what is visible, at most so many messages, a minute before its
    /// deadline. What it does not hand back is acknowledged, as the poller does.
    pub async fn record_some(&self, messages_max: usize) -> BatchResponse {
        let batch = receive(&self.local, QueueName::Records, messages_max).await;
        let receipts: Vec<_> = batch
            .iter()
            .map(|m| (m.id.clone(), m.receipt.clone()))
            .collect();
        let deadline = self.clock.monotonic() + Duration::from_mins(1);
        let response = self.record.handle(batch, deadline).await;
        let queue = self.local.queue(QueueName::Records);
        for (_, receipt) in receipts
            .into_iter()
            .filter(|(id, _)| !response.failures.contains(id))
        {
            queue
                .acknowledge(&receipt)
                .await
                .expect("an acknowledgement");
        }
        response
    }

    /// The records of the delivery log that were sent since the last time.
    pub async fn log_records(&self) -> Vec<LogRecord> {
        let mut records = Vec::new();
        loop {
            let messages = self.receive(QueueName::Records).await;
            if messages.is_empty() {
                return records;
            }
            let of = |message: &ReceivedMessage| {
                parse_records(&message.body).expect("a message of records")
            };
            records.extend(messages.iter().flat_map(of));
        }
    }

    /// One run of record's merge, which may fail.
    pub async fn try_merge(&self) -> Result<MergeReport, LogFilesError> {
        self.record.merge().await
    }

    /// One run of wake, in which time passes whenever it pauses.
    pub async fn wake(&self) -> WakeReport {
        self.try_wake().await.expect("a run of wake")
    }

    /// The same over work that was left in this sense.
    pub async fn wake_over(&self, left: LeftWork) -> WakeReport {
        self.try_wake_over(left).await.expect("a run of wake")
    }

    /// The same, which may fail.
    pub async fn try_wake_over(&self, left: LeftWork) -> Result<WakeReport, WakeError> {
        self.in_time(Box::pin(self.wake.run_over(left))).await
    }

    /// One run of wake in which time passes whenever it pauses, and which may fail.
    pub async fn try_wake(&self) -> Result<WakeReport, WakeError> {
        self.try_wake_over(LeftWork::Old).await
    }

    /// Lets others do what can be done without time: they have had their turns since a call of a
    /// port was under way, and since time passed.
    pub async fn rest(&self) {
        let mut turns = 0;
        let mut now = self.clock.monotonic();
        while turns < TURNS {
            tokio::task::yield_now().await;
            let is_still = self.calls.under_way() == 0 && self.clock.monotonic() == now;
            turns = if is_still { turns + 1 } else { 0 };
            now = self.clock.monotonic();
        }
    }

    /// Works, and whenever that waits for a second or less, so much time passes.
    pub async fn in_time<F: Future>(&self, work: F) -> F::Output {
        let pauses = async {
            loop {
                self.rest().await;
                let soon = self.clock.now() + PAUSE_MAX;
                if self.clock.next_due().is_some_and(|due| due <= soon) {
                    self.clock.advance_to_next();
                }
            }
        };
        tokio::select! {
            biased;
            output = work => output,
            () = pauses => unreachable!("pauses never end"),
        }
    }
}
