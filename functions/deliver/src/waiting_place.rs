//! The two places where deliveries wait in the object store.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::attempt::WaitPlace;
use posthaste_core::attempt::settle::{choose_wait_place, goes_out_at};
use posthaste_core::lane::DeliveryLane;
use posthaste_core::model::{Delivery, HELD_PER_OBJECT_MAX, SQS_DELAY_MAX, Timestamp};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::layout;
use posthaste_ports::{OutgoingMessage, Successor};

/// Most deliveries in one parked object: more than an invocation can hold.
const PARKED_PER_OBJECT_MAX: usize = 10_000;

/// A place where deliveries wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingPlace {
    /// Under the minute in which they are due.
    Parked,
    /// By subscription, under the minute in which the first of their events expires, until they may
    /// be sent.
    Held,
}

impl WaitingPlace {
    /// The key of an object in this place with deliveries like this one.
    pub(crate) fn object_key(self, delivery: &Delivery, id: &str) -> String {
        let topic = &delivery.topic;
        let subscription = &delivery.subscription;
        match self {
            Self::Parked => layout::parked_key(delivery.not_before, topic, subscription, id),
            Self::Held => layout::held_key(topic, subscription, delivery.expires_first(), id),
        }
    }

    /// The id of an object with these messages that is written in this place now.
    pub(crate) fn object_id(self, now: Timestamp, uuid: &str, messages: &[Bytes]) -> String {
        match self {
            Self::Parked => layout::id_with_carried(&layout::parked_id(now, uuid), messages),
            Self::Held => layout::id_with_carried(uuid, messages),
        }
    }

    /// Most deliveries in one object.
    pub(crate) const fn per_object_max(self) -> usize {
        match self {
            Self::Parked => PARKED_PER_OBJECT_MAX,
            Self::Held => HELD_PER_OBJECT_MAX,
        }
    }

    /// The message for a delivery that could not be stored in this place. It waits in the queue for
    /// the longest delay, a held one at most until it expires.
    pub(crate) fn queue_instead(
        self,
        delivery: &Delivery,
        lane: DeliveryLane,
        now: Timestamp,
    ) -> Successor {
        let until = match self {
            Self::Parked => now + SQS_DELAY_MAX,
            Self::Held => delivery.expires_first().min(now + SQS_DELAY_MAX),
        };
        let delay = match choose_wait_place(until, now) {
            WaitPlace::Queue { delay } => delay,
            WaitPlace::Parked => SQS_DELAY_MAX,
        };
        // A held delivery is due when it comes back: its wait is not a slow drain.
        let delivery = match self {
            Self::Parked => delivery,
            Self::Held => &Delivery {
                not_before: delivery.not_before.max(until),
                ..delivery.clone()
            },
        };
        retry_message(delivery, lane, delay)
    }
}

/// The time from which a delivery that goes back `now` is due. An untried one is due from now on:
/// its wait was ours, and must not count as a slow drain. One that is parked is due with a minute.
pub(crate) fn due_again(not_before: Timestamp, now: Timestamp) -> Timestamp {
    goes_out_at(not_before.max(now), now)
}

/// The message for a delivery that is tried again after this delay.
pub(crate) fn retry_message(delivery: &Delivery, lane: DeliveryLane, delay: Duration) -> Successor {
    let body = render_delivery(delivery);
    let group = Some(delivery.message_group_id());
    Successor {
        to: lane.into(),
        message: OutgoingMessage { body, group, delay },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, delivery, secs};
    use posthaste_core::stored::delivery::parse_delivery;

    #[test]
    fn deliveries_of_one_minute_and_subscription_share_a_key() {
        let at = |offset| Delivery {
            not_before: START + secs(offset),
            ..delivery(1)
        };
        let key = |place: WaitingPlace, delivery: &Delivery| place.object_key(delivery, "");
        // The start is 20 seconds into its minute, and what is parked is released when its minute
        // is over.
        assert_eq!(
            key(WaitingPlace::Parked, &at(1)),
            key(WaitingPlace::Parked, &at(40))
        );
        assert_ne!(
            key(WaitingPlace::Parked, &at(1)),
            key(WaitingPlace::Parked, &at(41))
        );
        assert_eq!(
            key(WaitingPlace::Held, &at(0)),
            key(WaitingPlace::Held, &at(40))
        );
        assert_ne!(
            key(WaitingPlace::Held, &at(0)),
            key(WaitingPlace::Parked, &at(0))
        );
    }

    /// Ids say what the object carries, and those of parked objects begin with their time.
    #[test]
    fn object_ids_say_what_is_carried_and_when_it_was_parked() {
        let messages = [render_delivery(&delivery(2))];
        let id = |place: WaitingPlace, now| place.object_id(now, "u", &messages);
        let carried = format!("u.2.{}", delivery(2).published_at.as_secs());
        assert_eq!(id(WaitingPlace::Held, START), carried);
        assert!(id(WaitingPlace::Parked, START).ends_with(&format!("-{carried}")));
        assert!(id(WaitingPlace::Parked, START) < id(WaitingPlace::Parked, START + secs(60)));
    }

    /// The delay of what waits in the queue instead, and when it is due then.
    fn check(place: WaitingPlace, delivery: &Delivery, delay_secs: u64, not_before: Timestamp) {
        let instead = place.queue_instead(delivery, DeliveryLane::Quick, START);
        assert_eq!(instead.message.delay, secs(delay_secs));
        assert_eq!(
            parse_delivery(&instead.message.body).unwrap().not_before,
            not_before
        );
    }

    /// A delivery that could not be parked waits for the longest delay, and stays due as it was.
    #[test]
    fn delivery_not_parked_waits_longest_and_keeps_its_due_time() {
        let parked = Delivery {
            not_before: START + secs(7200),
            ..delivery(1)
        };
        check(WaitingPlace::Parked, &parked, 900, START + secs(7200));
    }

    /// A delivery that could not be held waits no longer than its end, and is due then.
    #[test]
    fn delivery_not_held_waits_until_its_expiry_at_most() {
        check(WaitingPlace::Held, &delivery(1), 900, START + secs(900));
        let mut short = delivery(2);
        short.events[1].expires_at = START + secs(30);
        check(WaitingPlace::Held, &short, 30, START + secs(30));
    }
}
