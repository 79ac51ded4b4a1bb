//! What is wrong with the hundredth endpoint.

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    Nothing,
    /// Nobody listens.
    Refuses,
    /// It reads requests and never answers.
    Hangs,
    /// It answers 503.
    Busy,
    /// Nobody listens for some seconds, then it is well for as long, and so on.
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
    /// Its name between the two processes.
    pub(crate) fn name(self) -> &'static str {
        ALL.iter().find(|(_, fault)| *fault == self).map_or("", |(name, _)| name)
    }

    /// The fault of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        ALL.iter().find(|(it, _)| *it == name).map(|(_, fault)| *fault)
    }
}
