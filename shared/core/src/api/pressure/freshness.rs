//! Freshness of the pressure that is shown.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether what the monitor wrote last still counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PressureFreshness {
    /// It counts.
    #[default]
    Current,
    /// The monitor has missed polls: nobody is refused, and whoever was delayed or refused waits for the tarpit's first
    /// step.
    Stale,
    /// The monitor has stopped for so long (15 minutes) that producers are treated as at `normal`. The resources show what
    /// was read last.
    Forgotten,
    /// The monitor has written nothing yet. Producers are treated as at `normal`.
    Missing,
    /// What it wrote cannot be understood. Producers are treated as at `normal` until it writes anew.
    Unreadable,
}
