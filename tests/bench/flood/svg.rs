//! Plain SVG: light background, and nothing but text, lines and rectangles, so that every viewer
//! shows it the same.

use std::fmt::Write;

/// The colour of text and of axes.
pub(crate) const TEXT: &str = "#24292f";

/// The colour of lines that lead the eye.
pub(crate) const PALE: &str = "#d0d7de";

/// An empty picture.
pub(crate) fn open(width: f64, height: f64) -> String {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="{TEXT}"><rect width="{width}" height="{height}" fill="white"/>"#
    )
}

/// The whole picture.
pub(crate) fn close(svg: String) -> String {
    svg + "</svg>\n"
}

/// The legend of the colours.
pub(crate) fn key<'a>(
    svg: &mut String,
    entries: impl Iterator<Item = (&'a str, &'a str, f64)>,
    left: f64,
    top: f64,
) {
    let mut x = left;
    for (label, colour, height) in entries {
        let y = top + (12.0 - height) / 2.0;
        add(
            svg,
            format_args!(r#"<rect x="{x}" y="{y}" width="14" height="{height}" fill="{colour}"/>"#),
        );
        x += 19.0;
        add(
            svg,
            format_args!(r#"<text x="{x}" y="{}">{label}</text>"#, top + 10.0),
        );
        x += label.len() as f64 * 6.6 + 16.0;
    }
}

/// A line through points.
pub(crate) fn path(svg: &mut String, colour: &str, points: impl Iterator<Item = (f64, f64)>) {
    let mut steps = String::new();
    for (x, y) in points {
        let letter = if steps.is_empty() { 'M' } else { 'L' };
        add(&mut steps, format_args!("{letter}{x:.1} {y:.1}"));
    }
    add(
        svg,
        format_args!(r#"<path d="{steps}" fill="none" stroke="{colour}" stroke-width="1.6"/>"#),
    );
}

/// Adds an element.
pub(crate) fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a text takes more");
}
