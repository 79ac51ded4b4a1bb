//! A place in a YAML text.

use serde_saphyr::Location;

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPlace {
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl TextPlace {
    pub(crate) fn from_location(location: Location) -> Self {
        Self {
            line: location.line(),
            column: location.column(),
        }
    }
}
