//! Charts as SVG that the server draws. A chart has a fixed size, so that nothing moves when it is
//! drawn again.

use maud::{Markup, PreEscaped, html};

use crate::recent::Window;

mod axis;
mod frame;
mod path;
mod unit;

pub(crate) use frame::Shape;
use frame::{HEIGHT, LEFT, RIGHT, WIDTH};
pub(crate) use unit::Unit;

/// The classes of the line, of the bars and of the dots of each series.
const CLASSES: [[&str; 3]; 2] = [["line-1", "bar", "dot-1"], ["line-2", "bar-2", "dot-2"]];

/// Values over time. What is not known is a gap.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<Option<f64>>,
}

/// A height that has a meaning, such as a threshold. It is drawn where values come near it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
}

/// A chart of one or two series.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    title: String,
    unit: Unit,
    shape: Shape,
    series: Vec<Series>,
    marks: Vec<Mark>,
}

impl Chart {
    pub(crate) fn new(title: impl Into<String>, unit: Unit, shape: Shape) -> Self {
        Self {
            title: title.into(),
            unit,
            shape,
            series: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// The same with another series.
    pub(crate) fn with(mut self, name: &'static str, values: Vec<Option<f64>>) -> Self {
        self.series.push(Series { name, values });
        self
    }

    /// The same with marks, of which two have room.
    pub(crate) fn marked(self, marks: impl IntoIterator<Item = Mark>) -> Self {
        Self {
            marks: marks.into_iter().collect(),
            ..self
        }
    }

    /// The figure.
    pub(crate) fn render(&self, window: &Window) -> Markup {
        let top = self.unit.top(self.values().fold(0.0, f64::max));
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
                svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.words(window)) {
                    (axis::rows(self.unit, top))
                    (axis::times(window))
                    // Thresholds are often close to each other, so their names stand at the two ends.
                    @for (mark, end) in self.marks.iter().zip([(LEFT, "start"), (RIGHT, "end")]) {
                        @if mark.value > 0.0 && mark.value <= top { (self.mark(*mark, top, end)) }
                    }
                    @for (series, classes) in self.series.iter().zip(CLASSES) {
                        (self.drawn(series, top, classes))
                    }
                }
            }
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.series
            .iter()
            .flat_map(|series| series.values.iter().copied().flatten())
    }

    fn drawn(&self, series: &Series, top: f64, [line, bar, dot]: [&str; 3]) -> Markup {
        let class = if self.shape == Shape::Bars { bar } else { line };
        let drawn = path::of(self.shape, &series.values, top);
        let paths = [
            (class, drawn),
            (dot, path::dots(self.shape, &series.values, top)),
        ];
        html! { @for (class, path) in paths { @if !path.is_empty() { path class=(class) d=(path) {} } } }
    }

    fn mark(&self, mark: Mark, top: f64, (x, anchor): (f64, &str)) -> Markup {
        let y = PreEscaped(path::number(path::height(mark.value, top)));
        html! {
            path.mark d={ "M" (LEFT) " " (y) "H" (RIGHT) } {}
            text x=(x) y=(y) dy="13" text-anchor=(anchor) { (mark.name) " " (self.unit.text(mark.value)) }
        }
    }

    /// The chart in words, for those who do not see it.
    fn words(&self, window: &Window) -> String {
        let of = |series: &Series| {
            let known = || series.values.iter().copied().flatten();
            let name = if self.series.len() > 1 {
                format!("{}: ", series.name)
            } else {
                String::new()
            };
            let Some(last) = known().last() else {
                return format!("{name}nothing is known");
            };
            let lowest = known().fold(f64::MAX, f64::min);
            let highest = known().fold(f64::MIN, f64::max);
            let [last, lowest, highest] =
                [last, lowest, highest].map(|value| self.unit.text(value));
            format!("{name}last {last}, least {lowest}, most {highest}")
        };
        let series: Vec<_> = self.series.iter().map(of).collect();
        format!("{}, {}. {}.", self.title, window.words(), series.join("; "))
    }
}

#[cfg(test)]
mod tests;
