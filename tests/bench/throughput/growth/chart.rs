//! Costs by dimensions on logarithmic axes, a panel for each: a cost that grows in proportion is a
//! line as steep as the grey one.

use super::series::{EXPONENT_MAX, Fit, Point, Series};
use crate::svg::{PALE, TEXT, add, close, key, open, path};

const COLUMNS: usize = 2;
const TOP: f64 = 40.0;
const LEFT: f64 = 70.0;
const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 190.0;
const GAP: f64 = 66.0;

/// Room above and below what is drawn, as a factor.
const MARGIN: f64 = 1.3;

/// Half of the side of a point.
const HALF: f64 = 3.0;

const BLUE: &str = "#1f6feb";
const ORANGE: &str = "#bc4c00";
const GREY: &str = "#6e7781";

/// A panel's place, and the values at its borders.
struct Panel {
    left: f64,
    top: f64,
    from: (f64, f64),
    to: (f64, f64),
}

/// Draws every series.
pub(super) fn draw(all: &[Series]) -> String {
    let rows = all.len().div_ceil(COLUMNS) as f64;
    let width = (LEFT + WIDTH) * COLUMNS as f64 + 20.0;
    let mut svg = open(width, TOP + rows * (HEIGHT + GAP));
    let entries = [
        ("measured", BLUE, 6.0),
        ("too small for the fit", PALE, 6.0),
        ("fitted power law", ORANGE, 3.0),
        ("exponent of the bound", GREY, 3.0),
    ];
    key(&mut svg, entries.into_iter(), LEFT, 8.0);
    for (index, series) in all.iter().enumerate() {
        let row = (index / COLUMNS) as f64;
        let column = (index % COLUMNS) as f64;
        let left = LEFT + column * (LEFT + WIDTH);
        let top = TOP + 14.0 + row * (HEIGHT + GAP);
        draw_panel(&mut svg, series, left, top);
    }
    close(svg)
}

fn draw_panel(svg: &mut String, series: &Series, left: f64, top: f64) {
    let clear = series.clear();
    let lines = series.fit().map(|fit| (fit, bound(fit, &clear)));
    let ends = lines
        .iter()
        .flat_map(|(_, bound)| bound.iter().map(|(_, cost)| *cost));
    let costs: Vec<_> = drawn(series).map(Point::cost).chain(ends).collect();
    let low = costs.iter().copied().fold(f64::INFINITY, f64::min) / MARGIN;
    let high = costs.iter().copied().fold(0.0, f64::max) * MARGIN;
    let at = || drawn(series).map(|point| point.at as f64);
    let (Some(first), Some(last)) = (at().next(), at().last()) else {
        return;
    };
    let panel = Panel {
        left,
        top,
        from: (first, low),
        to: (last, high),
    };
    let found = lines
        .map(|(fit, _)| format!(": exponent {:.2}", fit.exponent))
        .unwrap_or_default();
    let cost = series.cost;
    let dimension = series.dimension;
    let y = top - 8.0;
    add(
        svg,
        format_args!(
            r#"<text x="{left}" y="{y}" font-weight="bold">{cost} by {dimension}{found}</text>"#
        ),
    );
    panel.draw_axes(svg, series);
    if let Some((fit, bound)) = lines {
        let along = clear
            .iter()
            .map(|point| (point.at as f64, fit.at(point.at as f64)));
        path(svg, GREY, bound.into_iter().map(|it| panel.place(it)));
        path(svg, ORANGE, along.map(|it| panel.place(it)));
    }
    panel.draw_points(svg, series);
}

/// A cost that noise has made negative has no logarithm.
fn drawn(series: &Series) -> impl Iterator<Item = &Point> {
    series.points.iter().filter(|point| point.cost() > 0.0)
}

/// The line of the bound's exponent, from the first point of the fit.
fn bound(fit: Fit, clear: &[Point]) -> [(f64, f64); 2] {
    let at = |index: usize| clear[index].at as f64;
    let from = at(0);
    let to = at(clear.len() - 1);
    [
        (from, fit.at(from)),
        (to, fit.at(from) * (to / from).powf(EXPONENT_MAX)),
    ]
}

impl Panel {
    fn place(&self, (at, cost): (f64, f64)) -> (f64, f64) {
        let share = |value: f64, from: f64, to: f64| (value / from).ln() / (to / from).ln();
        let x = self.left + WIDTH * share(at, self.from.0, self.to.0);
        (
            x,
            self.top + HEIGHT * (1.0 - share(cost, self.from.1, self.to.1)),
        )
    }

    fn draw_axes(&self, svg: &mut String, series: &Series) {
        let left = self.left;
        let right = self.left + WIDTH;
        let bottom = self.top + HEIGHT;
        for value in ticks(self.from.1, self.to.1) {
            let (_, y) = self.place((self.from.0, value));
            add(
                svg,
                format_args!(
                    r#"<path d="M{left} {y:.1}H{right}" stroke="{PALE}" stroke-width="0.7"/>"#
                ),
            );
            let x = left - 6.0;
            let y = y + 4.0;
            let unit = series.unit;
            add(
                svg,
                format_args!(r#"<text x="{x}" y="{y:.1}" text-anchor="end">{value} {unit}</text>"#),
            );
        }
        for point in drawn(series) {
            let (x, _) = self.place((point.at as f64, self.from.1));
            add(
                svg,
                format_args!(r#"<path d="M{x:.1} {bottom}v5" stroke="{TEXT}"/>"#),
            );
            let at = point.at;
            let y = bottom + 18.0;
            add(
                svg,
                format_args!(r#"<text x="{x:.1}" y="{y}" text-anchor="middle">{at}</text>"#),
            );
        }
    }
    fn draw_points(&self, svg: &mut String, series: &Series) {
        for point in drawn(series) {
            let (x, y) = self.place((point.at as f64, point.cost()));
            let x = x - HALF;
            let y = y - HALF;
            let side = HALF * 2.0;
            let fill = if point.is_clear() { BLUE } else { PALE };
            add(
                svg,
                format_args!(
                    r#"<rect x="{x:.1}" y="{y:.1}" width="{side}" height="{side}" fill="{fill}"/>"#
                ),
            );
        }
    }
}

/// 1, 2 and 5 times each power of ten between two values.
fn ticks(from: f64, to: f64) -> Vec<f64> {
    let powers = (from.log10().floor() as i32)..=(to.log10().ceil() as i32);
    let values = powers.flat_map(|power| [1, 2, 5].map(|digit| decimal(digit, power)));
    values.filter(|value| (from..=to).contains(value)).collect()
}

/// Written as text first, so that it has no digits from rounding.
fn decimal(digit: u32, power: i32) -> f64 {
    format!("{digit}e{power}").parse().expect("it is a number")
}
