//! The two places where deliveries wait in the object store.

use std::time::Duration;

use posthaste_core::attempt::settle::{Wait, wait};
use posthaste_core::model::delivery::Delivery;
use posthaste_core::model::limits::{HELD_PER_OBJECT_MAX, SQS_DELAY_SECS_MAX};
use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::Successor;

use crate::settle::retry;

/// Most deliveries in one parked object: more than an invocation can hold.
const PARKED_PER_OBJECT_MAX: usize = 10_000;

/// Where deliveries wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Under the minute in which they fall due.
    Parked,
    /// By subscription, under the minute in which the first of their events expires, until they may be sent.
    Held,
}

impl Place {
    /// The key of an object there with deliveries like this one.
    pub(crate) fn key(self, delivery: &Delivery, id: &str) -> String {
        let (topic, subscription) = (&delivery.topic, &delivery.subscription);
        match self {
            Self::Parked => layout::parked(delivery.not_before, topic, subscription, id),
            Self::Held => layout::held(topic, subscription, delivery.expires_first(), id),
        }
    }

    /// The id of an object that is written there now.
    pub(crate) fn id(self, now: Timestamp, uuid: String) -> String {
        match self {
            Self::Parked => layout::parked_id(now, &uuid),
            Self::Held => uuid,
        }
    }

    /// Most deliveries in one object.
    pub(crate) const fn per_object_max(self) -> usize {
        match self {
            Self::Parked => PARKED_PER_OBJECT_MAX,
            Self::Held => HELD_PER_OBJECT_MAX,
        }
    }

    /// What takes the place of a delivery that could not be written there: it waits in the queue for as long as that can
    /// delay, a held one not past its end.
    pub(crate) fn instead(self, delivery: &Delivery, now: Timestamp) -> Successor {
        let delay_max = Duration::from_secs(u64::from(SQS_DELAY_SECS_MAX));
        let until = match self {
            Self::Parked => now + delay_max,
            Self::Held => delivery.expires_first().min(now + delay_max),
        };
        let delay_secs = match wait(until, now) {
            Wait::Queue { delay_secs } => delay_secs,
            Wait::Parked => SQS_DELAY_SECS_MAX,
        };
        // A held one is due from when it comes back: its wait is not a slow drain.
        let delivery = match self {
            Self::Parked => delivery,
            Self::Held => &Delivery { not_before: delivery.not_before.max(until), ..delivery.clone() },
        };
        retry(delivery, delay_secs)
    }
}
