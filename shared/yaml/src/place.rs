//! A place in a YAML text.

use serde_saphyr::Location;

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl Place {
    pub(crate) fn of(location: Location) -> Self {
        Self {
            line: location.line(),
            column: location.column(),
        }
    }
}
