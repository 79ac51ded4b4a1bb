//! Limits: those that an operator may set, and the lengths of waits on our own account.

use std::time::Duration;

use http::HeaderValue;
use posthaste_core::lane::SLOW_AFTER_DEFAULT;
use posthaste_core::model::{DeliveryLogMode, LATE_ANSWERS_MAX, SenderHeaders, origin};
use posthaste_services::DrainMeter;
use tokio_util::sync::CancellationToken;

use crate::concurrency::{ConcurrencyBound, ConcurrencyLimits, sharer_max};

/// The wait of an event that could not be tried because of us (its payload object could not be
/// read, no socket was left), so that an outage of ours does not become a busy loop.
pub(crate) const OUR_FAULT_WAIT: Duration = Duration::from_secs(30);

/// The unit in which the embedded queue delays.
const DELAY_STEP_EMBEDDED: Duration = Duration::from_millis(1);

/// The unit in which SQS delays (`DelaySeconds`).
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
pub const DELAY_STEP_AWS: Duration = Duration::from_secs(1);

/// Messages that are settled side by side, so that their successors and deletions can share
/// requests to the queue.
pub(crate) const SETTLED_AT_ONCE_MAX: usize = 100;

/// The settings of an operator.
#[derive(Debug, Clone)]
pub struct DeliverSettings {
    /// Most requests open at once, over all endpoints. A quarter of them is kept for links that
    /// have none open.
    pub requests_max: usize,
    /// Most requests that go on after their timeout, in all. Each holds a connection.
    pub late_answers_max: usize,
    /// Requests of one subscription that are open at once while few wait for it.
    pub requests_per_link_start: usize,
    /// The number of requests that wait for a subscription for each further one that may be open.
    pub waiting_per_connection: usize,
    /// Most requests open at once to one link however many wait, so that a slow one cannot take
    /// all. A quarter of them is kept for subscriptions that have none open.
    pub requests_per_link_max: usize,
    /// Most bytes of stored payloads held at once, over all requests. A request that needs more is
    /// made alone. Its body takes as many again.
    pub payload_bytes_max: u32,
    /// Most stored payloads read at once.
    pub payload_reads_max: usize,
    /// The sender's name, for `WebHook-Request-Origin` and `Origin`.
    pub origin: HeaderValue,
    /// The headers that say who sends, of topics that do not have their own.
    pub sender_headers: SenderHeaders,
    /// The part that the delivery log keeps of topics that do not say it.
    pub delivery_log: DeliveryLogMode,
    /// The way of the delivery log's records.
    pub records: RecordsSettings,
    /// The unit in which the delivery queue delays.
    pub delay_step: Duration,
    /// The way in which a subscription is disabled whose endpoint answered 410.
    pub disabling: DisablingMode,
    /// Whether deliveries to slow targets take the slow lane, where there is one.
    pub slow_lane: SlowLaneMode,
    /// The time after which a request is late. Targets of late requests are slow.
    pub slow_after: Duration,
}

/// The use of the slow lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlowLaneMode {
    /// Deliveries to slow targets take it.
    #[default]
    On,
    /// Nothing is sent to its queue. Messages that are there are delivered, and retried in the
    /// other queue.
    Drained,
}

/// The way in which a subscription is disabled whose endpoint answered 410.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisablingMode {
    /// By this function, at once: embedded.
    AtOnce,
    /// By wake, in one of its next runs, where this function may not write topics: on AWS.
    ByWake,
}

impl DisablingMode {
    /// The wait of an event whose endpoint is gone until it looks again whether the record says so.
    pub(crate) fn recheck_wait(self) -> Duration {
        match self {
            Self::AtOnce => Duration::from_secs(1),
            Self::ByWake => OUR_FAULT_WAIT,
        }
    }
}

/// The way of the delivery log's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordsSettings {
    /// The longest time for which a message that is complete waits for others, so that they share
    /// a message of records. A group is settled at once when no request of the invocation is
    /// under way any more.
    pub gathering: Duration,
    /// Whether records travel in the transaction that settles the first message of their group.
    /// Otherwise they are sent before.
    pub in_settling: bool,
    /// Whether groups take turns to send their records, so that those of several invocations share
    /// messages.
    pub in_turns: bool,
}

impl RecordsSettings {
    /// For queues that share transactions: embedded. A message is cheap, so the gathering is
    /// short.
    pub const EMBEDDED: Self = Self {
        gathering: Duration::from_millis(25),
        in_settling: true,
        in_turns: true,
    };

    /// For queues where each message is a request that is paid for, and an acknowledgement is none:
    /// AWS.
    pub const AWS: Self = Self {
        gathering: Duration::from_secs(1),
        in_settling: false,
        in_turns: false,
    };
}

/// The bounds of requests to one link contradict each other.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{start} requests to one link while few wait are more than {max}, the most that are ever open to it"
)]
pub struct LinkBoundsError {
    start: usize,
    max: usize,
}

impl DeliverSettings {
    /// Whether the bounds of requests to one link fit each other.
    pub fn check_link_bounds(&self) -> Result<(), LinkBoundsError> {
        let Self {
            requests_per_link_start: start,
            requests_per_link_max: max,
            ..
        } = *self;
        if start > max {
            Err(LinkBoundsError { start, max })
        } else {
            Ok(())
        }
    }

    pub(crate) fn concurrency_limits(
        &self,
        drain: DrainMeter,
        closed: CancellationToken,
    ) -> ConcurrencyLimits {
        let max = sharer_max(self.requests_per_link_max);
        let per_subscription = ConcurrencyBound::new(
            self.requests_per_link_start,
            self.waiting_per_connection,
            max,
        );
        ConcurrencyLimits::new(
            self.requests_max,
            per_subscription,
            self.requests_per_link_max,
            drain,
            closed,
        )
    }
}

impl Default for DeliverSettings {
    fn default() -> Self {
        Self {
            requests_max: 8192,
            late_answers_max: LATE_ANSWERS_MAX,
            requests_per_link_start: 10,
            waiting_per_connection: 20,
            requests_per_link_max: 64,
            payload_bytes_max: 256 << 20,
            payload_reads_max: 64,
            origin: origin::DEFAULT,
            sender_headers: SenderHeaders::default(),
            delivery_log: DeliveryLogMode::default(),
            records: RecordsSettings::EMBEDDED,
            delay_step: DELAY_STEP_EMBEDDED,
            disabling: DisablingMode::AtOnce,
            slow_lane: SlowLaneMode::On,
            slow_after: SLOW_AFTER_DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_a_link_do_not_start_above_their_most() {
        let check = |start, max, expected| {
            let requests_per_link_start = start;
            let requests_per_link_max = max;
            let settings = DeliverSettings {
                requests_per_link_start,
                requests_per_link_max,
                ..DeliverSettings::default()
            };
            assert_eq!(settings.check_link_bounds(), expected);
        };
        check(10, 64, Ok(()));
        check(64, 64, Ok(()));
        check(65, 64, Err(LinkBoundsError { start: 65, max: 64 }));
    }
}
