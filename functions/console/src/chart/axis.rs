//! The axes: lines with their values, and times in UTC, which the script writes in the visitor's
//! zone.

use maud::{Markup, PreEscaped, html};

use super::frame::{BOTTOM, HEIGHT, LEFT, RIGHT};
use super::path::{one_decimal, y_position};
use super::unit::ChartUnit;
use crate::recent::ChartWindow;

/// Parts into which the times divide the plot.
const TIMES: u32 = 4;

/// Lines at nothing, the half and the whole, with what they mean.
pub(super) fn value_lines(unit: ChartUnit, top: f64) -> Markup {
    html! {
        @for value in [0.0, top / 2.0, top] {
            @let y = PreEscaped(one_decimal(y_position(value, top)));
            path.axis d={ "M" (LEFT) " " (y) "H" (RIGHT) } {}
            text x=(LEFT - 4.0) y=(y) dy="4" text-anchor="end" { (unit.format_value(value)) }
        }
    }
}

/// Times below the plot. The caption says the zone.
pub(super) fn time_labels(window: &ChartWindow) -> Markup {
    let time = window.time_range();
    let length = time.end.since(time.start);
    html! {
        @for part in 0..=TIMES {
            @let x = LEFT + (RIGHT - LEFT) * f64::from(part) / f64::from(TIMES);
            @let anchor = if part == 0 { "start" } else if part == TIMES { "end" } else { "middle" };
            @let at = time.start + length * part / TIMES;
            text x=(PreEscaped(one_decimal(x))) y=(HEIGHT - 6.0) text-anchor=(anchor) data-time=(at) {
                (at.strftime("%H:%M")) title { (at.strftime("%Y-%m-%d %H:%M")) " UTC" }
            }
            path.axis d={ "M" (PreEscaped(one_decimal(x))) " " (BOTTOM) "v4" } {}
        }
    }
}
