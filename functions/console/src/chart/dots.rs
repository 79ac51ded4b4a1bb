//! A chart of single values over time, such as the response times of attempts. Those that failed
//! have a mark of another shape, so that colour is not all that tells them apart.

use std::fmt::Write;

use maud::{Markup, html};
use posthaste_core::model::Timestamp;

use super::axis;
use super::frame::{HEIGHT, LEFT, RIGHT, WIDTH};
use super::path::{one_decimal, y_position};
use super::unit::ChartUnit;
use crate::recent::ChartWindow;

/// Length of the mark of a failure.
const MARK_LENGTH: f64 = 9.0;

/// A value at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChartDot {
    pub(crate) at: Timestamp,
    pub(crate) value: f64,
    pub(crate) is_failure: bool,
}

/// A chart of dots.
#[derive(Debug, Clone)]
pub(crate) struct DotChart {
    pub(crate) title: String,
    pub(crate) unit: ChartUnit,
    /// The dots, the newest first.
    pub(crate) dots: Vec<ChartDot>,
}

impl DotChart {
    /// The figure. Dots outside of the window are left out.
    pub(crate) fn render(&self, window: &ChartWindow) -> Markup {
        let top = self
            .unit
            .axis_top(self.dots.iter().map(|dot| dot.value).fold(0.0, f64::max));
        let marks = [
            ("dot-1", self.mark_path(window, top, false)),
            ("dot-2", self.mark_path(window, top, true)),
        ];
        html! {
            figure {
                figcaption {
                    (self.title)
                    " " span.hint { "Tall marks are failures. Times in " span data-zone { "UTC" } }
                }
                svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.description(window)) {
                    (axis::value_lines(self.unit, top))
                    (axis::time_labels(window))
                    @for (class, path) in marks { @if !path.is_empty() { path class=(class) d=(path) {} } }
                }
            }
        }
    }

    /// The marks of those that failed, or of the others: each a line of its own, which round ends
    /// make visible where it has no length.
    fn mark_path(&self, window: &ChartWindow, top: f64, is_failure: bool) -> String {
        let time = window.time_range();
        let length = time.end.since(time.start).as_secs_f64();
        let mut path = String::new();
        for dot in &self.dots {
            if dot.is_failure != is_failure || !time.contains(&dot.at) {
                continue;
            }
            let share = dot.at.since(time.start).as_secs_f64() / length;
            let x = one_decimal(LEFT + (RIGHT - LEFT) * share);
            let y = y_position(dot.value, top);
            // Writing to a text cannot fail.
            let _ = if is_failure {
                let middle = one_decimal(y - MARK_LENGTH / 2.0);
                write!(path, "M{x} {middle}v{MARK_LENGTH}")
            } else {
                write!(path, "M{x} {}h0", one_decimal(y))
            };
        }
        path
    }

    /// The chart in words, for those who do not see it.
    fn description(&self, window: &ChartWindow) -> String {
        let values: Vec<_> = self.dots.iter().map(|dot| dot.value).collect();
        let Some(newest) = values.first() else {
            return format!("{}, {}. Nothing is known.", self.title, window.in_words());
        };
        let failed = self.dots.iter().filter(|dot| dot.is_failure).count();
        let lowest = values.iter().copied().fold(f64::MAX, f64::min);
        let highest = values.iter().copied().fold(f64::MIN, f64::max);
        let [newest, lowest, highest] =
            [*newest, lowest, highest].map(|value| self.unit.format_value(value));
        format!(
            "{}, {}. {} values, {failed} of failures; last {newest}, least {lowest}, most {highest}.",
            self.title,
            window.in_words(),
            self.dots.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn chart(dots: &[(u64, f64, bool)]) -> (DotChart, ChartWindow) {
        // 2023-11-14 22:13:20 UTC.
        let now = Timestamp::from_millis(1_700_000_000_000);
        let window = ChartWindow::last_hours(1, now);
        let dots = dots
            .iter()
            .map(|(seconds, value, is_failure)| ChartDot {
                at: window.time_range().start + Duration::from_secs(*seconds),
                value: *value,
                is_failure: *is_failure,
            })
            .collect();
        let chart = DotChart {
            title: "Response times".to_owned(),
            unit: ChartUnit::Millis,
            dots,
        };
        (chart, window)
    }

    #[test]
    fn dots_stand_at_their_time_and_failures_are_tall() {
        let (chart, window) = chart(&[(1_800, 5.0, false), (900, 10.0, true), (0, 0.0, false)]);
        assert_eq!(chart.mark_path(&window, 10.0, false), "M223 66h0M52 124h0");
        assert_eq!(chart.mark_path(&window, 10.0, true), "M137.5 3.5v9");
    }

    #[test]
    fn dots_outside_of_the_window_are_left_out() {
        let (chart, window) = chart(&[(3_600, 5.0, false), (9_999, 5.0, true)]);
        assert_eq!(chart.mark_path(&window, 10.0, false), "");
        assert_eq!(chart.mark_path(&window, 10.0, true), "");
    }

    #[test]
    fn chart_of_dots_is_told_in_words() {
        let (one, window) = chart(&[(10, 5.0, false), (5, 30_000.0, true)]);
        let shown = one.render(&window).into_string();
        let words = "Response times, the last hour. 2 values, 1 of failures; last 5 ms, least 5 ms, most 30 s.";
        assert!(shown.contains(words), "{shown}");
        let (none, window) = chart(&[]);
        let shown = none.render(&window).into_string();
        assert!(
            shown.contains("the last hour. Nothing is known."),
            "{shown}"
        );
    }
}
