//! Release speed: how much of what waits in the object store goes back to the queue in a run of
//! wake, by the pressure.
//!
//! Events that were accepted are delivered before anything new is taken in (the documents' own
//! rule), so pressure slows the release and never stops it. Only the submission queue and the drain
//! time count: a full disk or a backlog of dead letters does not get better by holding deliveries
//! back. Expired events go at every speed.

use crate::model::HELD_PER_OBJECT_MAX;
use crate::pressure::{PressureLevel, PressureState, Resource};

/// Most parked deliveries of a run at Medium, and as many held or forced ones: a quarter of the
/// submission queue's normal threshold (2,000 messages by default) each, so that the release alone
/// cannot keep the level up.
pub const SLOW_RUN_MAX: usize = 500;

/// Minutes until each place has come first, and forced deliveries before held ones as well.
const ORDERS_REPEAT_MINUTES: u64 = 4;

/// The resources that slow the release.
const SLOWED_BY: [Resource; 2] = [Resource::SubmissionQueue, Resource::DrainTime];

/// The speed at which a run releases what waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseSpeed {
    /// The highest speed for which there is time and room.
    Full,
    /// At most [`SLOW_RUN_MAX`] of each place.
    Slow,
    /// One object, and at most [`HELD_PER_OBJECT_MAX`] of its deliveries, over all places.
    OneObject,
}

/// A place where deliveries wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseSource {
    /// Under the minute in which they are due.
    Parked,
    /// By subscription; with them the parked ones that an operator forces.
    Held,
}

/// The order in which a run releases them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOrder {
    /// Side by side.
    Together,
    /// One place first; the other gets the rest.
    First(ReleaseSource),
}

/// A number of deliveries, and of objects that they lie in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReleaseAmount {
    /// Deliveries.
    pub deliveries: usize,
    /// Objects that at least one of them lies in.
    pub objects: usize,
}

/// The deliveries that a run has released so far, without those that had expired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunAccount {
    parked: ReleaseAmount,
    held: ReleaseAmount,
}

/// Decides how fast wake releases. Without a state, or with one in which nothing acts, as fast as
/// it can.
pub fn release_speed(state: Option<&PressureState>) -> ReleaseSpeed {
    let highest_level = SLOWED_BY
        .into_iter()
        .filter_map(|resource| Some(state?.resource(resource)?.effective_level()))
        .max();
    match highest_level.unwrap_or_default() {
        PressureLevel::Normal => ReleaseSpeed::Full,
        PressureLevel::Medium => ReleaseSpeed::Slow,
        PressureLevel::High => ReleaseSpeed::OneObject,
    }
}

impl ReleaseSpeed {
    /// The order of a run that begins in this minute. Where there is one object for all, each place
    /// comes first in every second minute.
    pub const fn order_in_minute(self, minute: u64) -> ReleaseOrder {
        match self {
            Self::Full | Self::Slow => ReleaseOrder::Together,
            Self::OneObject if minute.is_multiple_of(2) => {
                ReleaseOrder::First(ReleaseSource::Parked)
            }
            Self::OneObject => ReleaseOrder::First(ReleaseSource::Held),
        }
    }

    /// Tells whether forced deliveries come before held ones where there is one object for both. In
    /// turn, by pairs of minutes, so that both come first in minutes in which they are before
    /// the parked ones.
    pub const fn forced_first(minute: u64) -> bool {
        (minute / 2).is_multiple_of(2)
    }

    /// The turn of a run that begins in this minute. Of the subscriptions for which something is
    /// held, another one comes first in every turn. Where there is one object for all, a turn
    /// lasts until held deliveries have come first, so that no subscription always has the
    /// minutes in which others do.
    pub const fn turn_in_minute(self, minute: u64) -> u64 {
        match self {
            Self::Full | Self::Slow => minute,
            Self::OneObject => minute / ORDERS_REPEAT_MINUTES,
        }
    }
}

impl ReleaseAmount {
    /// No bound.
    pub const ALL: Self = Self {
        deliveries: usize::MAX,
        objects: usize::MAX,
    };

    /// One object, of which no more goes than a held one has.
    const ONE_OBJECT: Self = Self {
        deliveries: HELD_PER_OBJECT_MAX,
        objects: 1,
    };

    /// Tells whether nothing fits.
    pub const fn is_nothing(self) -> bool {
        self.deliveries == 0 || self.objects == 0
    }

    /// The rest of it.
    #[must_use]
    pub const fn minus(self, taken: Self) -> Self {
        Self {
            deliveries: self.deliveries.saturating_sub(taken.deliveries),
            objects: self.objects.saturating_sub(taken.objects),
        }
    }

    const fn plus(self, more: Self) -> Self {
        Self {
            deliveries: self.deliveries.saturating_add(more.deliveries),
            objects: self.objects.saturating_add(more.objects),
        }
    }
}

impl RunAccount {
    /// Notes that this was released of a place.
    pub fn note_released(&mut self, place: ReleaseSource, released: ReleaseAmount) {
        let account = match place {
            ReleaseSource::Parked => &mut self.parked,
            ReleaseSource::Held => &mut self.held,
        };
        *account = account.plus(released);
    }

    /// The amount that the run may still release of this place.
    pub fn left_to_release(&self, place: ReleaseSource, speed: ReleaseSpeed) -> ReleaseAmount {
        let released = match place {
            ReleaseSource::Parked => self.parked,
            ReleaseSource::Held => self.held,
        };
        match speed {
            ReleaseSpeed::Full => ReleaseAmount::ALL,
            ReleaseSpeed::Slow => ReleaseAmount {
                deliveries: SLOW_RUN_MAX.saturating_sub(released.deliveries),
                ..ReleaseAmount::ALL
            },
            ReleaseSpeed::OneObject => ReleaseAmount::ONE_OBJECT.minus(self.parked.plus(self.held)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
    use crate::pressure::{
        ByteUsage, DatabaseSpace, PressureProfile, PressureSettings, ResourceReadings,
        evaluate_pressure,
    };

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
    const FULL: ByteUsage = ByteUsage {
        used: 99,
        total: 100,
    };

    fn speed_of(readings: &ResourceReadings, settings: &PressureSettings) -> ReleaseSpeed {
        release_speed(Some(
            &evaluate_pressure(&PressureState::normal(NOW), readings, settings, NOW).0,
        ))
    }

    fn queue(visible: u64, drain_secs: u64) -> ResourceReadings {
        ResourceReadings {
            visible: Some(visible),
            drain_secs: Some(drain_secs),
            ..ResourceReadings::default()
        }
    }

    #[test]
    fn the_queue_and_its_drain_slow_the_release() {
        let check = |visible, drain_secs, expected| {
            let speed = speed_of(&queue(visible, drain_secs), &PressureSettings::default());
            assert_eq!(speed, expected, "{visible} {drain_secs}");
        };
        check(1_999, 29, ReleaseSpeed::Full);
        check(4_000, 40, ReleaseSpeed::Slow);
        check(10_000, 40, ReleaseSpeed::OneObject);
        // A queue that drains fast does not act.
        check(10_000, 0, ReleaseSpeed::Full);
        check(2_500, 60, ReleaseSpeed::Slow);
        check(2_500, 300, ReleaseSpeed::OneObject);
    }

    #[test]
    fn other_resources_do_not_slow_the_release() {
        let readings = ResourceReadings {
            version_buckets: Some(5_000),
            batch_points: Some(5_000),
            database: Some(DatabaseSpace::Disk(FULL)),
            log_disk: Some(FULL),
            process_bytes: Some(99),
            memory: Some(FULL),
            dead_letters: Some(50_000),
            ..queue(0, 0)
        };
        for profile in [PressureProfile::Scaled, PressureProfile::Exchange2013] {
            let settings = PressureSettings {
                profile,
                ..PressureSettings::default()
            };
            let (state, _) =
                evaluate_pressure(&PressureState::normal(NOW), &readings, &settings, NOW);
            assert_eq!(
                (state.effective_level(), release_speed(Some(&state))),
                (PressureLevel::High, ReleaseSpeed::Full),
                "{profile:?}"
            );
        }
    }

    #[test]
    fn unknown_or_unwatched_pressure_gives_full_speed() {
        for state in [
            None,
            Some(PressureState::normal(NOW)),
            Some(PressureState::unmonitored(NOW)),
        ] {
            assert_eq!(release_speed(state.as_ref()), ReleaseSpeed::Full);
        }
    }

    /// Each place has a part of its own at Medium, and all share one object at High.
    #[test]
    fn places_have_own_parts_at_medium_and_one_object_at_high() {
        let mut account = RunAccount::default();
        account.note_released(
            ReleaseSource::Parked,
            ReleaseAmount {
                deliveries: 120,
                objects: 1,
            },
        );
        let left = |place, speed| account.left_to_release(place, speed);
        assert_eq!(
            left(ReleaseSource::Parked, ReleaseSpeed::Full),
            ReleaseAmount::ALL
        );
        assert_eq!(
            left(ReleaseSource::Parked, ReleaseSpeed::Slow).deliveries,
            380
        );
        assert_eq!(
            left(ReleaseSource::Held, ReleaseSpeed::Slow).deliveries,
            500
        );
        for place in [ReleaseSource::Parked, ReleaseSource::Held] {
            assert!(left(place, ReleaseSpeed::OneObject).is_nothing());
            let one = ReleaseAmount {
                deliveries: 200,
                objects: 1,
            };
            assert_eq!(
                RunAccount::default().left_to_release(place, ReleaseSpeed::OneObject),
                one
            );
        }
    }

    /// Everything that waits comes first in its turn where there is one object for all.
    #[test]
    fn single_object_goes_to_each_waiting_place_in_its_turn() {
        let first = |minute| {
            (
                ReleaseSpeed::OneObject.order_in_minute(minute),
                ReleaseSpeed::forced_first(minute),
            )
        };
        assert_eq!(
            [0, 1, 2, 3].map(first),
            [
                (ReleaseOrder::First(ReleaseSource::Parked), true),
                (ReleaseOrder::First(ReleaseSource::Held), true),
                (ReleaseOrder::First(ReleaseSource::Parked), false),
                (ReleaseOrder::First(ReleaseSource::Held), false),
            ]
        );
        for speed in [ReleaseSpeed::Full, ReleaseSpeed::Slow] {
            assert_eq!(
                [0, 1].map(|minute| speed.order_in_minute(minute)),
                [ReleaseOrder::Together; 2]
            );
            assert_eq!(
                [0, 1, 7].map(|minute| speed.turn_in_minute(minute)),
                [0, 1, 7]
            );
        }
        // In each of these minutes held deliveries come first, of all that waits.
        assert_eq!(
            [3, 7, 11].map(|minute| ReleaseSpeed::OneObject.turn_in_minute(minute)),
            [0, 1, 2]
        );
    }
}
