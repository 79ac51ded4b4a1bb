//! The rows of the table: events in a request, and subscriptions that get each of them.

use clap::ValueEnum;

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Requests of one event, for one subscription.
    One,
    /// Requests of a hundred events, for one subscription.
    Hundred,
    /// Requests of one event, for ten subscriptions.
    Ten,
    /// Requests of one event, for a hundred subscriptions.
    OneForHundred,
    /// Requests of a hundred events, for a hundred subscriptions.
    HundredForHundred,
}

impl Shape {
    /// The rows of the issue.
    pub(crate) const ISSUE: [Self; 3] = [Self::One, Self::Hundred, Self::Ten];

    /// The name in a table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::One => "requests of one",
            Self::Hundred => "requests of 100",
            Self::Ten => "one to 10",
            Self::OneForHundred => "one to 100",
            Self::HundredForHundred => "100 to 100",
        }
    }

    /// Events in a publish request.
    pub(crate) fn batch(self) -> usize {
        match self {
            Self::One | Self::Ten | Self::OneForHundred => 1,
            Self::Hundred | Self::HundredForHundred => 100,
        }
    }

    /// Subscriptions that get each event.
    pub(crate) fn subscriptions(self) -> usize {
        match self {
            Self::One | Self::Hundred => 1,
            Self::Ten => 10,
            Self::OneForHundred | Self::HundredForHundred => 100,
        }
    }

    /// Most CPU time of a delivery by the issue, in microseconds.
    pub(crate) fn cpu_us_max(self) -> Option<f64> {
        match self {
            Self::One => Some(60.0),
            Self::Hundred => Some(25.0),
            Self::Ten => Some(30.0),
            Self::OneForHundred | Self::HundredForHundred => None,
        }
    }
}
