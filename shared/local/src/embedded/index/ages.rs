//! The seconds in which the waiting events of a group were accepted.

use std::collections::VecDeque;

use posthaste_core::model::{CarriedEvents, Timestamp};

/// Most room that is kept while nothing waits.
const IDLE_CAPACITY_MAX: usize = 8;

/// The number of events by the second of their acceptance, the oldest first. Events come and go at
/// the ends, so this is quicker than a tree, and it takes eight bytes a second.
#[derive(Debug, Default)]
pub(crate) struct EventAges(VecDeque<CarriedEvents>);

impl EventAges {
    /// Adds the events of a message.
    pub(crate) fn add(&mut self, carried: CarriedEvents) {
        if carried.events == 0 {
            return;
        }
        match self.position_of(carried) {
            Ok(place) => self.0[place] = self.0[place].plus(carried),
            Err(place) => self.0.insert(place, carried),
        }
    }

    /// Removes the events of a message that was added.
    pub(crate) fn remove(&mut self, carried: CarriedEvents) {
        let Ok(place) = self.position_of(carried) else {
            return;
        };
        let events = &mut self.0[place].events;
        *events = events.saturating_sub(carried.events);
        if *events == 0 {
            self.0.remove(place);
        }
    }

    /// The acceptance of the oldest event.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.0.front()?.oldest_accepted_at()
    }

    /// Forgets everything, and frees the memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
        self.0.shrink_to(IDLE_CAPACITY_MAX);
    }

    fn position_of(&self, carried: CarriedEvents) -> Result<usize, usize> {
        match self.0.back() {
            None => Err(0),
            Some(newest) if newest.accepted_secs < carried.accepted_secs => Err(self.0.len()),
            Some(_) => self
                .0
                .binary_search_by_key(&carried.accepted_secs, |of| of.accepted_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_oldest_is_always_known(
            steps in prop::collection::vec((0_u32..9, 0_u32..4, any::<prop::sample::Index>()), 0..99),
        ) {
            let (mut ages, mut all) = (EventAges::default(), Vec::new());
            for (accepted_secs, events, gone) in steps {
                let carried = CarriedEvents { events, accepted_secs };
                ages.add(carried);
                all.push(carried);
                if accepted_secs % 2 == 0 {
                    ages.remove(all.remove(gone.index(all.len())));
                }
                let waiting = all.iter().filter(|of| of.events > 0);
                prop_assert_eq!(ages.oldest(), waiting.filter_map(|of| of.oldest_accepted_at()).min());
                let events = |all: &[CarriedEvents]| all.iter().map(|of| of.events).sum::<u32>();
                prop_assert_eq!(events(&all), events(ages.0.make_contiguous()));
            }
        }
    }
}
