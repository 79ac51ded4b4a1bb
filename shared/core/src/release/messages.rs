//! The messages of an object that is released: which go first, and how each goes back to the queue.

use bytes::Bytes;

use crate::model::{Delivery, Timestamp};
use crate::stored::delivery::{parse_delivery, render_delivery};

/// Puts the messages in front that have an expired event, and answers how many they are. The order
/// is kept otherwise. A message that cannot be read has no such event: it goes when its turn comes.
pub fn expired_first(messages: Vec<Bytes>, now: Timestamp) -> (Vec<Bytes>, usize) {
    let (mut expired, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| {
        parse_delivery(message).is_ok_and(|delivery| delivery.has_expired(now))
    });
    let count = expired.len();
    expired.extend(others);
    (expired, count)
}

/// A message as it goes back, and its group: due from now on, because the time that it spent in the
/// store must not read as a slow drain, and the life of what was published for later begins. One
/// that cannot be read goes as it is: deliver keeps it byte for byte.
pub fn requeued_message(message: &Bytes, now: Timestamp) -> (Bytes, Option<String>) {
    match parse_delivery(message) {
        Ok(mut delivery) => {
            let marks = delivery.events.iter_mut().map(|entry| &mut entry.marks);
            let scheduled = marks.filter_map(|marks| marks.scheduled.as_mut());
            for scheduled in scheduled.filter(|scheduled| !scheduled.released) {
                scheduled.at = now;
                scheduled.released = true;
            }
            let delivery = Delivery {
                not_before: now,
                ..delivery
            };
            (
                render_delivery(&delivery),
                Some(delivery.message_group_id()),
            )
        }
        Err(_) => (message.clone(), None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{CarriedEvents, PublishSchedule};
    use crate::stored::delivery::carried_by_message;

    /// A delivery as an older program wrote it.
    const MESSAGE: &[u8] = include_bytes!("../stored/fixtures/delivery-v1.json");
    const NOW: Timestamp = Timestamp::from_millis(1_772_856_300_000);

    fn message(expires_at: Timestamp) -> Bytes {
        let mut delivery = parse_delivery(&Bytes::from_static(MESSAGE)).unwrap();
        delivery
            .events
            .iter_mut()
            .for_each(|entry| entry.expires_at = expires_at);
        render_delivery(&delivery)
    }

    #[test]
    fn message_goes_back_due_now_and_an_unreadable_one_as_it_is() {
        let (body, group) = requeued_message(&message(NOW), NOW);
        let delivery = parse_delivery(&body).unwrap();
        assert_eq!(
            (delivery.not_before, Some(delivery.message_group_id())),
            (NOW, group)
        );
        let broken = Bytes::from_static(b"?");
        assert_eq!(requeued_message(&broken, NOW), (broken, None));
    }

    /// An event that waits for something else after its release began to live with that.
    #[test]
    fn life_of_a_scheduled_event_begins_with_its_first_release() {
        let mut delivery = parse_delivery(&message(NOW)).unwrap();
        delivery.events[0].marks.scheduled = Some(Box::new(PublishSchedule {
            at: delivery.published_at,
            id: "0123".to_owned(),
            released: false,
            cancelled: false,
        }));
        let (first, _) = requeued_message(&render_delivery(&delivery), NOW);
        let later = Timestamp::from_millis(NOW.as_millis() + 60_000);
        let (second, _) = requeued_message(&first, later);
        let delivery = parse_delivery(&second).unwrap();
        assert_eq!((delivery.not_before, delivery.begins_at()), (later, NOW));
        // So does the age of what waits.
        assert_eq!(
            carried_by_message(&second),
            Some(CarriedEvents::from_delivery(&delivery))
        );
        let events = delivery.events.len() as u64;
        assert_eq!(
            carried_by_message(&second),
            Some(CarriedEvents::new(events, NOW))
        );
    }

    proptest! {
        #[test]
        fn all_that_has_expired_is_in_front_and_nothing_is_lost(
            kinds in prop::collection::vec(0_u8..3, 0..20),
        ) {
            let of_kind = |kind: &u8| match kind {
                0 => message(NOW),
                1 => message(Timestamp::from_millis(NOW.as_millis() + 1)),
                _ => Bytes::from_static(b"?"),
            };
            let messages: Vec<_> = kinds.iter().map(of_kind).collect();
            let (sorted, count) = expired_first(messages.clone(), NOW);
            prop_assert_eq!(count, kinds.iter().map(|kind| usize::from(*kind == 0)).sum::<usize>());
            prop_assert!(sorted[..count].iter().all(|one| *one == of_kind(&0)));
            let others: Vec<_> = messages.into_iter().filter(|one| *one != of_kind(&0)).collect();
            prop_assert_eq!(&sorted[count..], others);
        }
    }
}
