//! The picture of a chart: its size, and how values are drawn in it.

/// Size of the picture, in the units of its view box.
pub(super) const WIDTH: f64 = 400.0;
pub(super) const HEIGHT: f64 = 150.0;

/// The plot's left, right, upper and lower end.
pub(super) const LEFT: f64 = 52.0;
pub(super) const RIGHT: f64 = 394.0;
pub(super) const TOP: f64 = 8.0;
pub(super) const BOTTOM: f64 = 124.0;

/// The form in which values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChartShape {
    /// A line from point to point.
    Line,
    /// A line that keeps its height until the next point.
    Steps,
    /// A bar for each point.
    Bars,
}
