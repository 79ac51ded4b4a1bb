//! The memory of one queue.

use parking_lot::Mutex;
use posthaste_core::model::SQS_IN_FLIGHT_MAX;
use posthaste_ports::QueueName;
use posthaste_ports::validate::RECEIVE_WAIT_MAX;
use tokio::sync::Notify;

use super::index::{MessageReceive, QueueIndex, StoreTime};
use super::options::LocalOptions;

/// The memory of one queue, and the receivers that wait for a change of it.
pub(super) struct QueueState {
    pub(super) index: Mutex<QueueIndex>,
    pub(super) changed: Notify,
}

impl QueueState {
    pub(super) fn new(name: QueueName, options: &LocalOptions) -> Self {
        let in_flight_max = match name {
            QueueName::Deliveries => options.deliveries_in_flight_max,
            _ => usize::try_from(SQS_IN_FLIGHT_MAX).unwrap_or(usize::MAX),
        };
        let receives_max = match name {
            QueueName::Redrive => u32::MAX,
            _ => options.max_receive_count,
        };
        Self {
            index: Mutex::new(QueueIndex::new(in_flight_max, receives_max)),
            changed: Notify::new(),
        }
    }

    /// Changes the index and wakes receivers that wait for the result: one receiver for visible
    /// messages, which wakes the next one if it leaves some, and all receivers if a delay ends
    /// sooner than they would wake up.
    pub(super) fn update_index<R>(
        &self,
        now: StoreTime,
        change: impl FnOnce(&mut QueueIndex) -> R,
    ) -> R {
        let mut index = self.index.lock();
        let before = index.until_next(now).unwrap_or(RECEIVE_WAIT_MAX);
        let result = change(&mut index);
        let has_next = index.has_next();
        let after = index.until_next(now);
        drop(index);
        if has_next {
            self.changed.notify_one();
        }
        if after.is_some_and(|after| after < before) {
            self.changed.notify_waiters();
        }
        result
    }

    /// Removes a message, and returns whether the receipt was valid. No wait ends sooner for that,
    /// but a slot becomes free.
    pub(super) fn settle(&self, received: MessageReceive) -> bool {
        let mut index = self.index.lock();
        let is_settled = index.settle(received);
        let has_next = is_settled && index.has_next();
        drop(index);
        if has_next {
            self.changed.notify_one();
        }
        is_settled
    }
}
