//! Panels one below the other over one axis of time.

use crate::svg::{PALE, TEXT, add, close, key, open, path};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 60.0;
const PANEL: f64 = 110.0;
const GAP: f64 = 46.0;
const BOTTOM: f64 = 44.0;

/// Lines across a panel.
const TICKS: u32 = 4;

/// Lines across the time, about.
const TIME_TICKS: f64 = 12.0;

/// Everything.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) panels: Vec<Panel>,
    pub(crate) bands: Vec<Band>,
    /// The end of the time, in seconds.
    pub(crate) end: f64,
}

/// One axis, with its lines.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) series: Vec<Series>,
}

/// One line: seconds and values.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) label: &'static str,
    pub(crate) colour: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Times that are coloured in every panel.
#[derive(Debug)]
pub(crate) struct Band {
    pub(crate) label: &'static str,
    pub(crate) colour: &'static str,
    pub(crate) times: Vec<(f64, f64)>,
}

/// The place of a panel's values.
struct Axis {
    top: f64,
    max: f64,
    is_logarithmic: bool,
}

impl Chart {
    /// The SVG.
    pub(crate) fn render(&self) -> String {
        let height = TOP + self.panels.len() as f64 * (PANEL + GAP) - GAP + BOTTOM;
        let mut svg = open(WIDTH, height);
        self.legend(&mut svg);
        for (index, panel) in self.panels.iter().enumerate() {
            let top = TOP + index as f64 * (PANEL + GAP);
            self.panel(&mut svg, panel, top);
        }
        self.time_axis(&mut svg, height - BOTTOM);
        close(svg)
    }

    fn legend(&self, svg: &mut String) {
        let entries = self
            .bands
            .iter()
            .map(|band| (band.label, band.colour, 12.0));
        key(svg, entries, LEFT, 16.0);
    }

    fn panel(&self, svg: &mut String, panel: &Panel, top: f64) {
        let axis = Axis::of(panel, top);
        for (colour, (from, to)) in self
            .bands
            .iter()
            .flat_map(|b| b.times.iter().map(|t| (b.colour, *t)))
        {
            let x = self.x(from);
            let width = self.x(to) - self.x(from);
            add(
                svg,
                format_args!(
                    r#"<rect x="{x:.1}" y="{top}" width="{width:.1}" height="{PANEL}" fill="{colour}"/>"#
                ),
            );
        }
        add(
            svg,
            format_args!(
                r#"<text x="{LEFT}" y="{}" font-weight="bold">{}</text>"#,
                top - 7.0,
                panel.title
            ),
        );
        if panel.series.len() > 1 {
            key(
                svg,
                panel
                    .series
                    .iter()
                    .map(|line| (line.label, line.colour, 3.0)),
                LEFT + 130.0,
                top - 17.0,
            );
        }
        for value in axis.ticks() {
            let y = axis.y(value);
            let right = WIDTH - RIGHT;
            add(
                svg,
                format_args!(
                    r#"<path d="M{LEFT} {y:.1}H{right}" stroke="{PALE}" stroke-width="0.7"/>"#
                ),
            );
            let x = LEFT - 6.0;
            let y = y + 4.0;
            let unit = panel.unit;
            add(
                svg,
                format_args!(r#"<text x="{x}" y="{y:.1}" text-anchor="end">{value}{unit}</text>"#),
            );
        }
        for line in &panel.series {
            let points = line
                .points
                .iter()
                .map(|(secs, value)| (self.x(*secs), axis.y(*value)));
            path(svg, line.colour, points);
        }
    }

    fn time_axis(&self, svg: &mut String, y: f64) {
        let step = nice(self.end / TIME_TICKS);
        let mut secs = 0.0;
        while secs <= self.end {
            let x = self.x(secs);
            add(
                svg,
                format_args!(r#"<path d="M{x:.1} {y}v5" stroke="{TEXT}"/>"#),
            );
            add(
                svg,
                format_args!(
                    r#"<text x="{x:.1}" y="{}" text-anchor="middle">{secs} s</text>"#,
                    y + 18.0
                ),
            );
            secs += step;
        }
        let x = f64::midpoint(LEFT, WIDTH - RIGHT);
        let y = y + 36.0;
        add(
            svg,
            format_args!(
                r#"<text x="{x}" y="{y}" text-anchor="middle">time since the beginning</text>"#
            ),
        );
    }

    fn x(&self, secs: f64) -> f64 {
        LEFT + secs / self.end * (WIDTH - LEFT - RIGHT)
    }
}

impl Axis {
    fn of(panel: &Panel, top: f64) -> Self {
        let most = panel
            .series
            .iter()
            .flat_map(|line| &line.points)
            .map(|(_, value)| *value)
            .fold(1.0, f64::max);
        let is_logarithmic = panel.series.len() > 1;
        let max = if is_logarithmic {
            10_f64.powf(most.log10().ceil())
        } else {
            nice(most / f64::from(TICKS)) * f64::from(TICKS)
        };
        Self {
            top,
            max,
            is_logarithmic,
        }
    }

    /// Zero is at the bottom, also of a logarithmic axis, which begins at 1.
    fn y(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            value.max(1.0).log10() / self.max.log10().max(1.0)
        } else {
            value / self.max
        };
        self.top + PANEL * (1.0 - share)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let powers = std::iter::successors(Some(1.0), |value| Some(value * 10.0));
            return powers.take_while(|value| *value <= self.max).collect();
        }
        (0..=TICKS)
            .map(|tick| self.max * f64::from(tick) / f64::from(TICKS))
            .collect()
    }
}

/// The least of 1, 2, 2.5, 5 times a power of ten that is not less.
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}
