//! The recent past of an installation, as charts are drawn from it. `serve` has one.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use posthaste_core::api::WaitingCount;
use posthaste_core::model::Timestamp;
use posthaste_core::pressure::{PressureLevel, Resource};

mod response_times;

pub use response_times::{ANSWER_BUCKETS, ResponseTimes};

/// Length of a step.
pub const STEP: Duration = Duration::from_secs(10);

/// Steps that an installation has lived through.
pub trait InstallationHistory: fmt::Debug + Send + Sync {
    /// Shows each known step that begins in this time, the oldest first, with its beginning. `show`
    /// must be quick: new steps wait for it.
    fn for_each_step(&self, time: Range<Timestamp>, show: &mut dyn FnMut(Timestamp, &HistoryStep));
}

/// One step. It has a fixed size, so that a day of them has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryStep {
    /// The counts of the step; `None` where they are not known.
    pub counts: Option<StepCounts>,
    /// The state at the step's end; `None` where it was not read.
    pub gauges: Option<StepGauges>,
}

/// The counts of a step. A count that has no room stays at its greatest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// Events that an endpoint accepted.
    pub delivered: u32,
    /// Events of failed attempts.
    pub failed: u32,
    /// Dead letters that were written.
    pub dead_lettered: u32,
    /// Events that were given up and are not kept: dropped, or skipped for want of room.
    pub unkept: u32,
    /// The durations of requests to endpoints.
    pub answers: ResponseTimes,
}

/// The state at one time. A part that could not be read is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepGauges {
    /// Events that wait.
    pub waiting: Option<WaitingGauge>,
    /// Links and subscriptions whose requests fail.
    pub down: Option<u32>,
    /// The pressure.
    pub pressure: Option<PressureGauge>,
}

/// Events that wait, by what they wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitingGauge {
    /// Events that are due, and those that are under way.
    pub due: u32,
    /// Events that are not due yet: retries, in the queue and parked.
    pub later: u32,
    /// Events that are held until their endpoint recovers, or their subscription is resumed.
    pub held: u32,
    /// Whether there may be more.
    pub is_partial: bool,
}

impl WaitingGauge {
    /// The same numbers as everything else that shows waiting events.
    pub fn from_count(count: &WaitingCount) -> Self {
        Self {
            due: saturated_count(count.due.saturating_add(count.under_way)),
            later: saturated_count(count.delayed.saturating_add(count.parked)),
            held: saturated_count(count.held),
            is_partial: count.is_partial,
        }
    }

    /// The sum of all.
    pub fn total(&self) -> u64 {
        [self.due, self.later, self.held]
            .map(u64::from)
            .into_iter()
            .sum()
    }
}

/// The pressure at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PressureGauge {
    /// The highest level with consequences.
    pub level: PressureLevel,
    /// The wait of acknowledgements, in milliseconds.
    pub tarpit_ms: u32,
    readings: [Option<ResourceReading>; Resource::ALL.len()],
}

/// A resource at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceReading {
    /// The reading, in the resource's own unit.
    pub value: u32,
    /// The level.
    pub level: PressureLevel,
}

impl StepCounts {
    /// Adds another part of the same step, or another step.
    pub fn add(&mut self, other: &Self) {
        self.delivered = self.delivered.saturating_add(other.delivered);
        self.failed = self.failed.saturating_add(other.failed);
        self.dead_lettered = self.dead_lettered.saturating_add(other.dead_lettered);
        self.unkept = self.unkept.saturating_add(other.unkept);
        self.answers.add(&other.answers);
    }
}

impl PressureGauge {
    /// The pressure before any resource was read.
    pub fn new(level: PressureLevel, tarpit_ms: u32) -> Self {
        Self {
            level,
            tarpit_ms,
            ..Self::default()
        }
    }

    /// The reading of a resource, if it could be read.
    pub fn reading(&self, resource: Resource) -> Option<ResourceReading> {
        self.readings[resource_index(resource)]
    }

    /// The same with the reading of a resource.
    #[must_use]
    pub fn with_reading(mut self, resource: Resource, reading: ResourceReading) -> Self {
        self.readings[resource_index(resource)] = Some(reading);
        self
    }
}

/// The place of a resource in an array of all of them.
const fn resource_index(resource: Resource) -> usize {
    resource as usize
}

/// A count with as much room as a step has.
pub fn saturated_count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_has_a_place_of_its_own() {
        let places: Vec<_> = Resource::ALL.into_iter().map(resource_index).collect();
        assert_eq!(places, (0..Resource::ALL.len()).collect::<Vec<_>>());
    }

    #[test]
    fn a_step_has_a_size_that_is_known() {
        assert_eq!(size_of::<HistoryStep>(), 324);
    }
}
