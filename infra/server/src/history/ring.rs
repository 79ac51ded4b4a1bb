//! The steps of the last day, in a ring.

use std::ops::Range;

use parking_lot::Mutex;
use posthaste_console::history::{HistoryStep, InstallationHistory, STEP, StepCounts, StepGauges};
use posthaste_core::model::Timestamp;

/// Steps that are kept: 24 hours. With 336 bytes each they take 2.9 MB, whatever happens in them.
pub(super) const STEPS_MAX: usize = 8_640;

/// The ring. Steps of one place follow each other a day apart, and the newest of them is kept.
#[derive(Debug)]
pub struct StepRing(Mutex<Box<[StepSlot]>>);

#[derive(Debug, Clone, Copy, Default)]
struct StepSlot {
    /// The number of the step since 1970.
    number: u64,
    step: HistoryStep,
}

impl Default for StepRing {
    fn default() -> Self {
        Self(Mutex::new(
            vec![StepSlot::default(); STEPS_MAX].into_boxed_slice(),
        ))
    }
}

impl StepRing {
    /// Adds what was counted in a part of a step.
    pub(super) fn add_counts(&self, number: u64, counts: &StepCounts) {
        self.change_step(number, |step| {
            step.counts.get_or_insert_default().add(counts);
        });
    }

    /// Keeps how things stood at the end of a step.
    pub(super) fn set_gauges(&self, number: u64, gauges: StepGauges) {
        self.change_step(number, |step| step.gauges = Some(gauges));
    }

    fn change_step(&self, number: u64, change: impl FnOnce(&mut HistoryStep)) {
        let mut slots = self.0.lock();
        let slot = &mut slots[slot_index(number)];
        if slot.number < number {
            *slot = StepSlot {
                number,
                step: HistoryStep::default(),
            };
        }
        if slot.number == number {
            change(&mut slot.step);
        }
    }
}

impl InstallationHistory for StepRing {
    fn for_each_step(&self, time: Range<Timestamp>, show: &mut dyn FnMut(Timestamp, &HistoryStep)) {
        let [first, end] = [time.start, time.end].map(|at| at.as_millis().div_ceil(step_ms()));
        // Only the last day before the end can be there. The number 0 is that of an empty place.
        let first = first.max(end.saturating_sub(STEPS_MAX as u64)).max(1);
        let slots = self.0.lock();
        for number in first..end {
            let slot = &slots[slot_index(number)];
            if slot.number == number {
                show(Timestamp::from_millis(number * step_ms()), &slot.step);
            }
        }
    }
}

/// The number of the step that has this time.
pub(super) fn step_number(at: Timestamp) -> u64 {
    at.as_millis() / step_ms()
}

fn slot_index(number: u64) -> usize {
    usize::try_from(number % STEPS_MAX as u64).unwrap_or_default()
}

fn step_ms() -> u64 {
    STEP.as_secs() * 1_000
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn delivered(delivered: u32) -> StepCounts {
        StepCounts {
            delivered,
            ..StepCounts::default()
        }
    }

    /// The known steps of a time: each with its beginning in seconds, and what was delivered.
    pub(in crate::history) fn known(ring: &StepRing, secs: Range<u64>) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        let at = |secs| Timestamp::from_millis(secs * 1_000);
        ring.for_each_step(at(secs.start)..at(secs.end), &mut |at, step| {
            found.push((
                at.as_secs(),
                step.counts.map_or(u32::MAX, |counts| counts.delivered),
            ));
        });
        found
    }

    #[test]
    fn steps_are_shown_in_order_and_parts_of_one_are_added() {
        let ring = StepRing::default();
        ring.add_counts(102, &delivered(3));
        ring.add_counts(100, &delivered(1));
        ring.add_counts(102, &delivered(4));
        assert_eq!(known(&ring, 0..2_000), [(1_000, 1), (1_020, 7)]);
        // A step is shown if it begins in the time.
        assert_eq!(known(&ring, 1_001..1_020), []);
        assert_eq!(known(&ring, 1_011..1_021), [(1_020, 7)]);
    }

    #[test]
    fn ring_keeps_a_day_and_never_takes_older_steps_back() {
        let ring = StepRing::default();
        let day = STEPS_MAX as u64;
        (1..=day + 5).for_each(|number| ring.add_counts(number, &delivered(1)));
        ring.add_counts(3, &delivered(9));
        let all = known(&ring, 0..(day + 6) * 10);
        assert_eq!(
            (all.len(), all[0], all[STEPS_MAX - 1]),
            (STEPS_MAX, (60, 1), ((day + 5) * 10, 1))
        );
    }

    #[test]
    fn gauges_without_counts_are_a_step_too() {
        let ring = StepRing::default();
        ring.set_gauges(100, StepGauges::default());
        assert_eq!(known(&ring, 0..2_000), [(1_000, u32::MAX)]);
    }

    #[test]
    fn a_day_takes_as_much_memory_as_is_said() {
        assert_eq!(size_of::<StepSlot>() * STEPS_MAX, 2_903_040);
    }
}
