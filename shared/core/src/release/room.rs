//! The room that the queue has for held deliveries, so that a backlog neither raises the pressure
//! nor makes new deliveries wait behind it.

use super::speed::{ReleaseAmount, ReleaseSpeed};
use crate::model::Timestamp;
use crate::pressure::{PressureState, Resource};

/// Most deliveries that are released between two looks at the queue, whatever it could take.
pub(crate) const PASS_MAX: usize = 500;

/// The part of the submission queue's normal threshold up to which released deliveries may fill it:
/// one in so many.
const NORMAL_DIVISOR: u64 = 2;

/// The number that may be released while the count is above that. So a backlog gets through even
/// where the queue is always as full and yet under no pressure.
const TRICKLE: usize = 50;

/// The number that may be released of a subscription which has as many due as may be: few enough that
/// its backlog stays in the object store, and never none.
const OWN_TRICKLE: usize = 1;

/// The most deliveries of one subscription that may be released in a pass, where so many of it are
/// due already: the submission queue leaves out a subscription that waits for itself, so its room
/// alone would let all of its backlog into the queue.
pub fn own_room(state: Option<&PressureState>, due: u64) -> usize {
    let Some(queue) = state.and_then(|state| state.resource(Resource::SubmissionQueue)) else {
        return PASS_MAX;
    };
    let free = (queue.thresholds.normal / NORMAL_DIVISOR).saturating_sub(due);
    usize::try_from(free).unwrap_or(usize::MAX).max(OWN_TRICKLE)
}

/// The most events that recovery may send to a subscription in a run, where so many deliveries of
/// it are due already: what was accepted since goes first. Where the queue is not counted, its rate
/// alone bounds it.
pub fn recovery_room(state: Option<&PressureState>, due: u64) -> usize {
    let queue = state.and_then(|state| state.resource(Resource::SubmissionQueue));
    let Some(queue) = queue else {
        return usize::MAX;
    };
    let free = (queue.thresholds.normal / NORMAL_DIVISOR).saturating_sub(due);
    usize::try_from(free).unwrap_or(usize::MAX)
}

/// The number of deliveries that may be released until the queue is counted again. A count is some
/// seconds old, up to a minute on AWS. So a release is taken off the count and never added back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueRoom {
    counted_at: Option<Timestamp>,
    left: usize,
}

impl QueueRoom {
    /// The number that may be released in the next pass, by this state of the pressure. If the
    /// queue is not counted, as many as a pass may have.
    pub fn room_in_pass(&mut self, state: Option<&PressureState>) -> usize {
        let Some(queue) = state.and_then(|state| state.resource(Resource::SubmissionQueue)) else {
            self.counted_at = None;
            self.left = PASS_MAX;
            return PASS_MAX;
        };
        if self.counted_at != Some(queue.read_at) {
            let free = (queue.thresholds.normal / NORMAL_DIVISOR).saturating_sub(queue.reading);
            self.counted_at = Some(queue.read_at);
            self.left = usize::try_from(free).unwrap_or(usize::MAX).max(TRICKLE);
        }
        self.left.min(PASS_MAX)
    }

    /// The part of `left`, which a run may still release, that the next pass may have at this
    /// speed.
    pub fn amount_for_pass(
        &mut self,
        left: ReleaseAmount,
        speed: ReleaseSpeed,
        state: Option<&PressureState>,
    ) -> ReleaseAmount {
        match speed {
            ReleaseSpeed::Full | ReleaseSpeed::Slow => ReleaseAmount {
                deliveries: left.deliveries.min(self.room_in_pass(state)),
                ..left
            },
            // It is less than any room.
            ReleaseSpeed::OneObject => left,
        }
    }

    /// Notes that this number was released.
    pub fn note_released(&mut self, released: usize) {
        self.left = self.left.saturating_sub(released);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pressure::{PressureSettings, ResourceReadings, evaluate_pressure};

    /// The state after a count of visible messages at this second.
    fn state(at_secs: u64, visible: u64) -> PressureState {
        let at = Timestamp::from_millis(at_secs * 1000);
        let readings = ResourceReadings {
            visible: Some(visible),
            ..ResourceReadings::default()
        };
        evaluate_pressure(
            &PressureState::normal(at),
            &readings,
            &PressureSettings::default(),
            at,
        )
        .0
    }

    /// There is room up to half the normal threshold, a pass at most, and never none.
    #[test]
    fn room_is_half_the_normal_threshold_a_pass_and_never_none() {
        let check = |visible, expected| {
            assert_eq!(
                QueueRoom::default().room_in_pass(Some(&state(1, visible))),
                expected,
                "{visible}"
            );
        };
        check(0, PASS_MAX);
        check(500, 500);
        check(700, 300);
        check(1_000, TRICKLE);
        check(3_999, TRICKLE);
    }

    #[test]
    fn room_of_a_subscription_counts_what_is_due_of_itself() {
        let check = |due, expected| {
            assert_eq!(own_room(Some(&state(1, 0)), due), expected, "{due}");
        };
        check(0, 1000);
        check(900, 100);
        check(999, 1);
        check(1_000, OWN_TRICKLE);
        check(20_000, OWN_TRICKLE);
        assert_eq!(own_room(None, 20_000), PASS_MAX);
    }

    #[test]
    fn releases_since_the_last_count_are_taken_off() {
        let mut room = QueueRoom::default();
        let mut passes = Vec::new();
        for state in [
            state(1, 100),
            state(1, 100),
            state(1, 100),
            state(3, 600),
            state(3, 600),
        ] {
            let pass = room.room_in_pass(Some(&state));
            room.note_released(pass);
            passes.push(pass);
        }
        assert_eq!(passes, [500, 400, 0, 400, 0]);
    }

    #[test]
    fn uncounted_queue_gives_every_pass_the_same_room() {
        let mut room = QueueRoom::default();
        for state in [
            None,
            None,
            Some(PressureState::unmonitored(Timestamp::EPOCH)),
        ] {
            assert_eq!(room.room_in_pass(state.as_ref()), PASS_MAX);
            room.note_released(PASS_MAX);
        }
    }
}
