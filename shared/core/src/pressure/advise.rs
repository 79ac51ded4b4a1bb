//! Requests that go on where the tarpit only advises to wait: one per topic, tier and delay, in
//! each process. `admit` decides the answer to the others.
//!
//! No acknowledgement is held there, and the processes of a fleet share nothing, so none of them
//! can know who has waited already. A place that becomes free once per delay slows down what would
//! stop otherwise. Each tier has its own place, so that an import which does not wait takes nothing
//! from those who do.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::{ProducerTier, TopicName};

/// Most places that a process remembers, some 100 bytes each. Whoever wants one more while all of
/// those are taken waits too.
pub const ADVISED_PLACES_MAX: usize = 3 * 1024;

/// The places of topics under the tarpit. Times are monotonic.
#[derive(Debug, Default)]
pub struct AdvisedPlaces {
    free_at: BTreeMap<(String, ProducerTier), Duration>,
}

impl AdvisedPlaces {
    /// Takes the place of a topic's tier for this delay, and answers whether it was free.
    ///
    /// A producer that finds it taken is asked to come back after `delay`. So the place is free
    /// again by then, also where the delay was longer when it was taken.
    pub fn take_place(
        &mut self,
        topic: &TopicName,
        tier: ProducerTier,
        delay: Duration,
        now: Duration,
    ) -> bool {
        let place = (topic.folded(), tier);
        let next = now.saturating_add(delay);
        if let Some(free_at) = self.free_at.get_mut(&place) {
            let is_free = *free_at <= now;
            *free_at = if is_free { next } else { next.min(*free_at) };
            return is_free;
        }
        let has_room = self.has_room(now);
        if has_room {
            self.free_at.insert(place, next);
        }
        has_room
    }

    /// Frees the place that a request took which published nothing.
    pub fn give_back(&mut self, topic: &TopicName, tier: ProducerTier) {
        self.free_at.remove(&(topic.folded(), tier));
    }

    /// Whether one more place can be remembered; those that are free are forgotten for it.
    fn has_room(&mut self, now: Duration) -> bool {
        if self.free_at.len() >= ADVISED_PLACES_MAX {
            self.free_at.retain(|_, free_at| *free_at > now);
        }
        self.free_at.len() < ADVISED_PLACES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> TopicName {
        TopicName::parse(name).unwrap()
    }

    /// Asks at these seconds, each with its delay, and answers at which of them the place was free.
    fn taken(asked: &[(u64, u64)]) -> Vec<u64> {
        let mut places = AdvisedPlaces::default();
        let taken = asked.iter().filter(|(at, delay)| {
            places.take_place(
                &topic("orders"),
                ProducerTier::Standard,
                Duration::from_secs(*delay),
                Duration::from_secs(*at),
            )
        });
        taken.map(|(at, _)| *at).collect()
    }

    #[test]
    fn producer_that_waits_as_told_goes_on_each_time() {
        assert_eq!(
            taken(&[(0, 10), (1, 10), (11, 10), (12, 10), (22, 10)]),
            [0, 11, 22]
        );
        // Also while the delay grows and shrinks.
        assert_eq!(
            taken(&[
                (0, 10),
                (1, 15),
                (16, 20),
                (17, 25),
                (42, 55),
                (43, 5),
                (48, 5)
            ]),
            [0, 16, 42, 48]
        );
    }

    #[test]
    fn producer_that_does_not_wait_goes_on_once_per_delay() {
        let every_second: Vec<_> = (0..60).map(|at| (at, 15)).collect();
        assert_eq!(taken(&every_second), [0, 15, 30, 45]);
    }

    #[test]
    fn each_topic_has_a_place_of_its_own_in_any_case() {
        let mut places = AdvisedPlaces::default();
        let mut take = |name| {
            places.take_place(
                &topic(name),
                ProducerTier::Standard,
                Duration::from_secs(10),
                Duration::ZERO,
            )
        };
        assert_eq!(
            ["a", "b", "A", "B"].map(&mut take),
            [true, true, false, false]
        );
    }

    #[test]
    fn each_tier_has_a_place_of_its_own() {
        let mut places = AdvisedPlaces::default();
        let mut take =
            |tier| places.take_place(&topic("a"), tier, Duration::from_secs(10), Duration::ZERO);
        let asked = [
            ProducerTier::Bulk,
            ProducerTier::Bulk,
            ProducerTier::Standard,
            ProducerTier::Internal,
            ProducerTier::Internal,
        ];
        assert_eq!(asked.map(&mut take), [true, false, true, true, false]);
    }

    #[test]
    fn a_place_that_is_given_back_is_free_at_once() {
        let mut places = AdvisedPlaces::default();
        let take = |places: &mut AdvisedPlaces| {
            places.take_place(
                &topic("a"),
                ProducerTier::Bulk,
                Duration::from_secs(10),
                Duration::ZERO,
            )
        };
        assert!(take(&mut places) && !take(&mut places));
        places.give_back(&topic("A"), ProducerTier::Standard);
        assert!(!take(&mut places));
        places.give_back(&topic("A"), ProducerTier::Bulk);
        assert!(take(&mut places));
    }

    /// Places are remembered up to their bound, and one more producer waits.
    #[test]
    fn places_are_bounded_and_the_next_producer_waits() {
        let mut places = AdvisedPlaces::default();
        let mut take = |at: usize, secs| {
            let topic = topic(&format!("t{at}"));
            places.take_place(
                &topic,
                ProducerTier::Standard,
                Duration::from_secs(10),
                Duration::from_secs(secs),
            )
        };
        assert!((0..ADVISED_PLACES_MAX).all(|at| take(at, 0)));
        assert_eq!(
            [take(ADVISED_PLACES_MAX, 9), take(ADVISED_PLACES_MAX, 10)],
            [false, true]
        );
        assert_eq!(places.free_at.len(), 1);
    }
}
