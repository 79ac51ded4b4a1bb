//! The last hours of the history, in the points of a chart.

use std::ops::Range;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::model::time::whole_millis;
use posthaste_core::pressure::Resource;

use crate::history::{
    InstallationHistory, PressureGauge, STEP, StepCounts, StepGauges, WaitingGauge,
};

/// Points of a chart.
const POINTS: u32 = 180;

/// Time over which current rates are averaged.
const MINUTE: Duration = Duration::from_mins(1);

/// A time that a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChartWindow {
    hours: u32,
    from: Timestamp,
    point: Duration,
}

impl ChartWindow {
    /// The last hours. The window ends with the point that has begun, so that most of it stays the
    /// same when it is drawn anew.
    pub(crate) fn last_hours(hours: u32, now: Timestamp) -> Self {
        let point = Duration::from_hours(u64::from(hours)) / POINTS;
        let point_ms = whole_millis(point).max(1);
        let end_ms = (now.as_millis() / point_ms + 1) * point_ms;
        let from = Timestamp::from_millis(end_ms.saturating_sub(point_ms * u64::from(POINTS)));
        Self { hours, from, point }
    }

    /// The beginning and the end of the window.
    pub(crate) fn time_range(&self) -> Range<Timestamp> {
        self.from..self.from + self.point * POINTS
    }

    /// The window in words.
    pub(crate) fn in_words(&self) -> String {
        match self.hours {
            1 => "the last hour".to_owned(),
            hours => format!("the last {hours} hours"),
        }
    }

    /// The number of a step's point.
    fn point_index(&self, at: Timestamp) -> usize {
        usize::try_from(at.since(self.from).as_millis() / self.point.as_millis())
            .unwrap_or(usize::MAX)
    }
}

/// The steps of a window, added up point by point.
#[derive(Debug)]
pub(crate) struct RecentHistory {
    pub(crate) window: ChartWindow,
    /// All of the window.
    pub(crate) total: CountSum,
    /// The last minute.
    pub(crate) minute: CountSum,
    /// The newest state.
    pub(crate) now: StepGauges,
    points: Vec<ChartPoint>,
}

/// Steps of which the counts are known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CountSum {
    pub(crate) counts: StepCounts,
    steps: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct ChartPoint {
    sum: CountSum,
    gauges: StepGauges,
}

impl RecentHistory {
    /// Reads a window that ends now.
    pub(crate) fn read(history: &dyn InstallationHistory, hours: u32, now: Timestamp) -> Self {
        let window = ChartWindow::last_hours(hours, now);
        let points = vec![ChartPoint::default(); POINTS as usize];
        let total = CountSum::default();
        let minute = CountSum::default();
        let newest = StepGauges::default();
        let mut recent = Self {
            window,
            total,
            minute,
            now: newest,
            points,
        };
        history.for_each_step(window.time_range(), &mut |at, step| {
            let Some(point) = recent.points.get_mut(window.point_index(at)) else {
                return;
            };
            if let Some(counts) = &step.counts {
                point.sum.add(counts);
                recent.total.add(counts);
                if now.since(at) <= MINUTE + STEP {
                    recent.minute.add(counts);
                }
            }
            if let Some(gauges) = &step.gauges {
                point.gauges = greatest_gauges(point.gauges, *gauges);
                recent.now = *gauges;
            }
        });
        recent
    }

    /// A value for each point of which the counts are known.
    pub(crate) fn count_values(
        &self,
        value: impl Fn(&CountSum) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        self.points
            .iter()
            .map(|point| {
                Some(&point.sum)
                    .filter(|sum| sum.steps > 0)
                    .and_then(&value)
            })
            .collect()
    }

    /// The greatest value of a gauge at each point where it is known.
    pub(crate) fn gauge_values(
        &self,
        value: impl Fn(&StepGauges) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        self.points
            .iter()
            .map(|point| value(&point.gauges))
            .collect()
    }
}

impl CountSum {
    fn add(&mut self, counts: &StepCounts) {
        self.counts.add(counts);
        self.steps += 1;
    }

    /// Whether anything is known.
    pub(crate) const fn is_known(&self) -> bool {
        self.steps > 0
    }

    /// A number of the counts for each second. `None` without a step.
    pub(crate) fn per_second(&self, count: u32) -> Option<f64> {
        self.is_known()
            .then(|| f64::from(count) / (f64::from(self.steps) * STEP.as_secs_f64()))
    }

    /// The share of sent events that endpoints accepted, in per cent. `None` without one.
    pub(crate) fn success_percent(&self) -> Option<f64> {
        let StepCounts {
            delivered, failed, ..
        } = self.counts;
        let [delivered, failed] = [delivered, failed].map(f64::from);
        (delivered + failed > 0.0).then(|| 100.0 * delivered / (delivered + failed))
    }
}

/// The greater of each gauge.
fn greatest_gauges(one: StepGauges, other: StepGauges) -> StepGauges {
    StepGauges {
        waiting: merge_options(one.waiting, other.waiting, greatest_waiting),
        down: one.down.max(other.down),
        pressure: merge_options(one.pressure, other.pressure, greatest_pressure),
    }
}

fn greatest_waiting(one: WaitingGauge, other: WaitingGauge) -> WaitingGauge {
    WaitingGauge {
        due: one.due.max(other.due),
        later: one.later.max(other.later),
        held: one.held.max(other.held),
        is_partial: one.is_partial || other.is_partial,
    }
}

fn greatest_pressure(one: PressureGauge, other: PressureGauge) -> PressureGauge {
    let level = one.level.max(other.level);
    let tarpit_ms = one.tarpit_ms.max(other.tarpit_ms);
    let higher = Resource::ALL.into_iter().filter_map(|resource| {
        let one = one.reading(resource);
        let other = other.reading(resource);
        Some((
            resource,
            merge_options(one, other, |one, other| {
                if one.value > other.value { one } else { other }
            })?,
        ))
    });
    let most = PressureGauge::new(level, tarpit_ms);
    higher.fold(most, |pressure, (resource, reading)| {
        pressure.with_reading(resource, reading)
    })
}

fn merge_options<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_with_the_point_that_has_begun() {
        let check = |hours, now_ms: u64, from_ms: u64, end_ms: u64| {
            let time = ChartWindow::last_hours(hours, Timestamp::from_millis(now_ms)).time_range();
            assert_eq!(
                (time.start.as_millis(), time.end.as_millis()),
                (from_ms, end_ms)
            );
        };
        // Points of 20 s in an hour, and of 8 minutes in a day.
        check(1, 7_200_000, 3_620_000, 7_220_000);
        check(1, 7_219_999, 3_620_000, 7_220_000);
        check(24, 172_800_000, 86_880_000, 173_280_000);
        check(1, 1, 0, 3_600_000);
    }
}
