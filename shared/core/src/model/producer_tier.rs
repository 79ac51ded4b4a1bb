//! The privilege of producers. `pressure` says which of them it refuses.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The privilege of a producer under pressure, the most privileged first. A later one is refused
/// earlier, so "refused from `standard`" means `standard` and `bulk`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ProducerTier {
    /// May publish at Medium.
    Internal,
    /// The usual producer.
    #[default]
    Standard,
    /// Replays and imports: the first to be refused.
    Bulk,
}

impl ProducerTier {
    /// All of them, the most privileged first.
    pub const ALL: [Self; 3] = [Self::Internal, Self::Standard, Self::Bulk];

    /// The name in headers and settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::Standard => "standard",
            Self::Bulk => "bulk",
        }
    }

    /// Reads a name; `None` if there is no such tier.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text)
    }

    /// The tier of a producer that may be of this one and says that it is of `declared`: it can
    /// step back behind others, never before them.
    #[must_use]
    pub fn stepping_back_to(self, declared: Option<Self>) -> Self {
        declared.map_or(self, |declared| declared.max(self))
    }
}

impl fmt::Display for ProducerTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
