//! The fault of the hundredth endpoint.

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
    /// Connections are refused for some seconds, then accepted for as long, and so on.
    Flaps,
}

const ALL: [(&str, Fault); 5] = [
    ("nothing", Fault::Nothing),
    ("refuses", Fault::Refuses),
    ("hangs", Fault::Hangs),
    ("busy", Fault::Busy),
    ("flaps", Fault::Flaps),
];

impl Fault {
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
