//! The events that a message or an object carries, as far as a figure of what waits needs them.

use super::{Delivery, Timestamp};

/// The number of events in a message or an object, and the second in which the oldest of them was
/// accepted, or released if it was published for later. It has eight bytes, because the embedded queue keeps one for each message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Carried {
    /// The number of events.
    pub events: u32,
    /// The second in which the oldest one's [age](Delivery::begins_at) begins, counted from the epoch. It has room until 2106;
    /// the last one is that of what has no age ([`Self::without_age`]).
    pub accepted_secs: u32,
}

impl Carried {
    /// One event, accepted at this time: the least that a message has.
    pub fn one(accepted: Timestamp) -> Self {
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
    pub fn of(delivery: &Delivery) -> Self {
        Self::new(delivery.events.len() as u64, delivery.begins_at())
    }

    /// These events and others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
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
    pub fn accepted(self) -> Option<Timestamp> {
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
        let one = Carried::new(3, at(7));
        let two = Carried::new(4, at(5));
        assert_eq!(one.and(two), Carried::new(7, at(5)));
        assert_eq!(two.and(one), Carried::new(7, at(5)));
    }

    #[test]
    fn nothing_has_no_time() {
        let some = Carried::new(3, at(7));
        assert_eq!(some.and(Carried::default()), some);
        assert_eq!(Carried::default().and(some), some);
    }

    #[test]
    fn a_time_is_known_to_the_second() {
        let carried = Carried::one(Timestamp::from_millis(1_700_000_000_999));
        assert_eq!(carried.accepted(), Some(at(1_700_000_000)));
    }

    #[test]
    fn what_has_no_age_makes_nothing_older() {
        let scheduled = Carried::without_age(2);
        assert_eq!(scheduled.accepted(), None);
        let both = scheduled.and(Carried::one(at(5)));
        assert_eq!((both.events, both.accepted()), (3, Some(at(5))));
    }

    #[test]
    fn what_has_no_room_stays_at_its_greatest() {
        let most = Carried::new(u64::MAX, Timestamp::from_millis(u64::MAX));
        assert_eq!(most.and(Carried::one(at(1))).events, u32::MAX);
    }
}
