//! Lines and bars as the paths of SVG.

use std::fmt::Write;

use super::frame::{BOTTOM, ChartShape, LEFT, RIGHT, TOP};

/// The share of its place that a bar takes.
const BAR_SHARE: f64 = 0.8;

/// The path of values over the whole width of the plot; empty if none is known.
pub(super) fn for_values(shape: ChartShape, values: &[Option<f64>], top: f64) -> String {
    match shape {
        ChartShape::Line => line_path(values, top),
        ChartShape::Steps => step_path(values, top),
        ChartShape::Bars => bar_path(values, top),
    }
}

/// The height of a value.
pub(super) fn y_position(value: f64, top: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * (value / top).clamp(0.0, 1.0)
}

/// A number with one digit after the point, or none.
pub(super) fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0")
        .map_or_else(|| text.clone(), str::to_owned)
}

/// The points between gaps, each as a line without length, which is drawn as a dot. Bars are seen
/// without.
pub(super) fn dot_path(shape: ChartShape, values: &[Option<f64>], top: f64) -> String {
    let mut path = String::new();
    let width = point_width(values.len());
    if shape == ChartShape::Bars {
        return path;
    }
    let heights = y_positions(values.iter().copied(), top);
    for (at, x, y) in known_points(&heights, width / 2.0, width) {
        if neighbour_positions(&heights, at) == (None, None) {
            append_text(&mut path, format_args!("M{} {y}h0", one_decimal(x)));
        }
    }
    path
}

/// A line through the middles of the points' places. A point in the middle of others of its height
/// is left out, and so is one between gaps.
fn line_path(values: &[Option<f64>], top: f64) -> String {
    let mut path = String::new();
    let width = point_width(values.len());
    let heights = y_positions(values.iter().copied(), top);
    for (at, x, y) in known_points(&heights, width / 2.0, width) {
        match neighbour_positions(&heights, at) {
            (None, None) => {}
            (None, Some(_)) => append_text(&mut path, format_args!("M{} {y}", one_decimal(x))),
            (Some(before), Some(after)) if before == y && after == y => {}
            (Some(_), _) => append_text(&mut path, format_args!("L{} {y}", one_decimal(x))),
        }
    }
    path
}

/// A line over the whole place of each point.
fn step_path(values: &[Option<f64>], top: f64) -> String {
    let mut path = String::new();
    let width = point_width(values.len());
    let heights = y_positions(values.iter().copied(), top);
    for (at, x, y) in known_points(&heights, 0.0, width) {
        match height_at(&heights, at.checked_sub(1)) {
            None => append_text(&mut path, format_args!("M{} {y}", one_decimal(x))),
            Some(before) if before == y => {}
            Some(_) => append_text(&mut path, format_args!("V{y}")),
        }
        if height_at(&heights, at.checked_add(1)) != Some(y) {
            append_text(&mut path, format_args!("H{}", one_decimal(x + width)));
        }
    }
    path
}

fn bar_path(values: &[Option<f64>], top: f64) -> String {
    let mut path = String::new();
    let width = point_width(values.len());
    let heights = y_positions(
        values
            .iter()
            .map(|value| value.filter(|value| *value > 0.0)),
        top,
    );
    for (_, x, y) in known_points(&heights, 0.0, width) {
        append_text(
            &mut path,
            format_args!(
                "M{} {BOTTOM}V{y}h{}V{BOTTOM}z",
                one_decimal(x),
                one_decimal(width * BAR_SHARE)
            ),
        );
    }
    path
}

fn y_positions(values: impl Iterator<Item = Option<f64>>, top: f64) -> Vec<Option<String>> {
    values
        .map(|value| value.map(|value| one_decimal(y_position(value, top))))
        .collect()
}

/// The width of a point's place.
#[expect(
    clippy::cast_precision_loss,
    reason = "a chart has some hundred points"
)]
fn point_width(points: usize) -> f64 {
    (RIGHT - LEFT) / points.max(1) as f64
}

/// The heights that are known, each with its number and its place from the left.
fn known_points(
    heights: &[Option<String>],
    first: f64,
    width: f64,
) -> impl Iterator<Item = (usize, f64, &str)> {
    let places = std::iter::successors(Some(LEFT + first), move |x| Some(x + width));
    heights
        .iter()
        .enumerate()
        .zip(places)
        .filter_map(|((at, y), x)| Some((at, x, y.as_deref()?)))
}

fn height_at(heights: &[Option<String>], at: Option<usize>) -> Option<&str> {
    heights.get(at?)?.as_deref()
}

/// The heights before and after a point.
fn neighbour_positions(heights: &[Option<String>], at: usize) -> (Option<&str>, Option<&str>) {
    let before = height_at(heights, at.checked_sub(1));
    let after = height_at(heights, at.checked_add(1));
    (before, after)
}

fn append_text(path: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = path.write_fmt(text);
}
