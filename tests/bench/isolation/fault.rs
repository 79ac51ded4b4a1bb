//! The fault of the hundredth endpoint.

use std::time::Duration;

/// The fault of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    Nothing,
    /// Connections are refused.
    Refuses,
    /// Requests are read and never answered.
    Hangs,
    /// Each request is answered with 503.
    Busy,
    /// Each request is answered well, after [`Fault::SLOW`].
    Slow,
    /// Connections are refused for some seconds, then accepted for as long, and so on.
    Flaps,
}

const ALL: [(&str, Fault); 6] = [
    ("nothing", Fault::Nothing),
    ("refuses", Fault::Refuses),
    ("hangs", Fault::Hangs),
    ("busy", Fault::Busy),
    ("slow", Fault::Slow),
    ("flaps", Fault::Flaps),
];

impl Fault {
    /// The time of a slow endpoint for each answer: within the five seconds that it has.
    pub(crate) const SLOW: Duration = Duration::from_secs(4);

    /// The name between the two processes.
    pub(crate) fn name(self) -> &'static str {
        ALL.iter()
            .find(|(_, fault)| *fault == self)
            .map_or("", |(name, _)| name)
    }

    /// The fault of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        ALL.iter()
            .find(|(it, _)| *it == name)
            .map(|(_, fault)| *fault)
    }
}
