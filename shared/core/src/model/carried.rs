//! The events that a message or an object carries, as far as counts of waiting events need them.

use super::{Delivery, Timestamp};

/// The number of events in a message or an object, and the second in which the oldest of them was
/// accepted, or released if it was published for later. It has eight bytes, because the embedded queue keeps one for each message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CarriedEvents {
    /// The number of events.
    pub events: u32,
    /// The second in which the oldest one's [age](Delivery::begins_at) begins, counted from the
    /// epoch. It has room until 2106; the last one stands for events without an age
    /// ([`Self::without_age`]).
    pub accepted_secs: u32,
}

impl CarriedEvents {
    /// One event, accepted at this time: the least that a message has.
    pub fn one_event(accepted: Timestamp) -> Self {
        Self::new(1, accepted)
    }

    /// So many events, the oldest accepted at this time.
    pub fn new(events: u64, accepted: Timestamp) -> Self {
        Self {
            events: u32::try_from(events).unwrap_or(u32::MAX),
            accepted_secs: u32::try_from(accepted.as_secs()).unwrap_or(u32::MAX),
        }
    }

    /// So many events that are not late, however long ago they were accepted, or whose age is not
    /// known.
    pub const fn without_age(events: u32) -> Self {
        Self {
            events,
            accepted_secs: u32::MAX,
        }
    }

    /// The events of a delivery.
    pub fn from_delivery(delivery: &Delivery) -> Self {
        Self::new(delivery.events.len() as u64, delivery.begins_at())
    }

    /// These events and others.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self.events, other.events) {
            (_, 0) => self,
            (0, _) => other,
            (events, more) => Self {
                events: events.saturating_add(more),
                accepted_secs: self.accepted_secs.min(other.accepted_secs),
            },
        }
    }

    /// The time of the oldest one's acceptance, to the second. `None` if none has an age.
    pub fn oldest_accepted_at(self) -> Option<Timestamp> {
        let secs = u64::from(self.accepted_secs);
        (self.accepted_secs < u32::MAX).then(|| Timestamp::from_millis(secs * 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn the_sum_of_two_has_the_older_time() {
        let one = CarriedEvents::new(3, at(7));
        let two = CarriedEvents::new(4, at(5));
        assert_eq!(one.plus(two), CarriedEvents::new(7, at(5)));
        assert_eq!(two.plus(one), CarriedEvents::new(7, at(5)));
    }

    /// A sum with no events keeps the events and time of the other.
    #[test]
    fn empty_count_changes_no_time() {
        let some = CarriedEvents::new(3, at(7));
        assert_eq!(some.plus(CarriedEvents::default()), some);
        assert_eq!(CarriedEvents::default().plus(some), some);
    }

    #[test]
    fn a_time_is_known_to_the_second() {
        let carried = CarriedEvents::one_event(Timestamp::from_millis(1_700_000_000_999));
        assert_eq!(carried.oldest_accepted_at(), Some(at(1_700_000_000)));
    }

    /// Events without an age make the sum no older.
    #[test]
    fn events_without_age_leave_the_oldest_time() {
        let scheduled = CarriedEvents::without_age(2);
        assert_eq!(scheduled.oldest_accepted_at(), None);
        let both = scheduled.plus(CarriedEvents::one_event(at(5)));
        assert_eq!((both.events, both.oldest_accepted_at()), (3, Some(at(5))));
    }

    #[test]
    fn count_saturates_at_its_maximum() {
        let most = CarriedEvents::new(u64::MAX, Timestamp::from_millis(u64::MAX));
        assert_eq!(most.plus(CarriedEvents::one_event(at(1))).events, u32::MAX);
    }
}
