//! The numbers that are doubled.

use clap::ValueEnum;

/// A number that is doubled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dimension {
    /// Events that are delivered.
    Events,
    /// Subscriptions of a topic, of which one matches.
    Subscriptions,
    /// Topics that get an equal load.
    Topics,
    /// Hosts that get an equal load.
    Endpoints,
    /// Bytes of an event.
    Size,
    /// Events that wait: memory, restart and drain.
    Backlog,
}

/// Values of a dimension.
const VALUES: u32 = 6;

impl Dimension {
    /// The name in a table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Subscriptions => "subscriptions",
            Self::Topics => "topics",
            Self::Endpoints => "endpoints",
            Self::Size => "bytes of an event",
            Self::Backlog => "events that wait",
        }
    }
}

/// The first number, doubled again and again.
pub(crate) fn doubled(first: usize) -> Vec<usize> {
    (0..VALUES)
        .map(|doublings| first.max(1) << doublings)
        .collect()
}

/// Numbers of which the last is about this one.
pub(crate) fn doubled_to(last: usize) -> Vec<usize> {
    doubled(last >> (VALUES - 1))
}
