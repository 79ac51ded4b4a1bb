//! Charts as SVG that the server draws. A chart has a fixed size, so that nothing moves when it is
//! drawn again.

use maud::{Markup, PreEscaped, html};

use crate::recent::ChartWindow;

mod axis;
mod dots;
mod frame;
mod path;
mod unit;

pub(crate) use dots::{ChartDot, DotChart};
pub(crate) use frame::ChartShape;
use frame::{HEIGHT, LEFT, RIGHT, WIDTH};
pub(crate) use unit::ChartUnit;

/// The classes of the line, of the bars and of the dots of each series.
const CLASSES: [[&str; 3]; 2] = [["line-1", "bar", "dot-1"], ["line-2", "bar-2", "dot-2"]];

/// Values over time. What is not known is a gap.
#[derive(Debug, Clone)]
pub(crate) struct ChartSeries {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<Option<f64>>,
}

impl ChartSeries {
    fn known_values(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().copied().flatten()
    }
}

/// A height that has a meaning, such as a threshold. It is drawn where values come near it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChartMark {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
}

/// A chart of one or two series.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    title: String,
    unit: ChartUnit,
    shape: ChartShape,
    series: Vec<ChartSeries>,
    marks: Vec<ChartMark>,
}

impl Chart {
    pub(crate) fn new(title: impl Into<String>, unit: ChartUnit, shape: ChartShape) -> Self {
        Self {
            title: title.into(),
            unit,
            shape,
            series: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// The same with another series.
    pub(crate) fn with_series(mut self, name: &'static str, values: Vec<Option<f64>>) -> Self {
        self.series.push(ChartSeries { name, values });
        self
    }

    /// The same with marks, of which two have room.
    pub(crate) fn with_marks(self, marks: impl IntoIterator<Item = ChartMark>) -> Self {
        Self {
            marks: marks.into_iter().collect(),
            ..self
        }
    }

    /// The figure.
    pub(crate) fn render(&self, window: &ChartWindow) -> Markup {
        let top = self.unit.axis_top(self.known_values().fold(0.0, f64::max));
        html! {
            figure {
                figcaption {
                    (self.title)
                    @if self.series.len() > 1 {
                        @for (series, key) in self.series.iter().zip(["key-1", "key-2"]) {
                            " " span class=(key) { (series.name) }
                        }
                    }
                    " " span.hint { "Times in " span data-zone { "UTC" } }
                }
                svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.description(window)) {
                    (axis::value_lines(self.unit, top))
                    (axis::time_labels(window))
                    // Thresholds are often close to each other, so their names stand at the two ends.
                    @for (mark, (x, anchor)) in self.marks.iter().zip([(LEFT, "start"), (RIGHT, "end")]) {
                        @if mark.value > 0.0 && mark.value <= top { (self.render_mark(*mark, top, x, anchor)) }
                    }
                    @for (series, classes) in self.series.iter().zip(CLASSES) {
                        (self.render_series(series, top, classes))
                    }
                }
            }
        }
    }

    fn known_values(&self) -> impl Iterator<Item = f64> + '_ {
        self.series.iter().flat_map(ChartSeries::known_values)
    }

    fn render_series(&self, series: &ChartSeries, top: f64, [line, bar, dot]: [&str; 3]) -> Markup {
        let class = if self.shape == ChartShape::Bars {
            bar
        } else {
            line
        };
        let drawn = path::for_values(self.shape, &series.values, top);
        let paths = [
            (class, drawn),
            (dot, path::dot_path(self.shape, &series.values, top)),
        ];
        html! { @for (class, path) in paths { @if !path.is_empty() { path class=(class) d=(path) {} } } }
    }

    fn render_mark(&self, mark: ChartMark, top: f64, x: f64, anchor: &str) -> Markup {
        let y = PreEscaped(path::one_decimal(path::y_position(mark.value, top)));
        html! {
            path.mark d={ "M" (LEFT) " " (y) "H" (RIGHT) } {}
            text x=(x) y=(y) dy="13" text-anchor=(anchor) { (mark.name) " " (self.unit.format_value(mark.value)) }
        }
    }

    /// The chart in words, for those who do not see it.
    fn description(&self, window: &ChartWindow) -> String {
        let series: Vec<_> = self
            .series
            .iter()
            .map(|series| self.series_in_words(series))
            .collect();
        format!(
            "{}, {}. {}.",
            self.title,
            window.in_words(),
            series.join("; ")
        )
    }

    fn series_in_words(&self, series: &ChartSeries) -> String {
        let name = if self.series.len() > 1 {
            format!("{}: ", series.name)
        } else {
            String::new()
        };
        let Some(last) = series.known_values().last() else {
            return format!("{name}nothing is known");
        };
        let lowest = series.known_values().fold(f64::MAX, f64::min);
        let highest = series.known_values().fold(f64::MIN, f64::max);
        let [last, lowest, highest] =
            [last, lowest, highest].map(|value| self.unit.format_value(value));
        format!("{name}last {last}, least {lowest}, most {highest}")
    }
}

#[cfg(test)]
mod tests;
