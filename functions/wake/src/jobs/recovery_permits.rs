//! Permits for replays that nobody asked for.

use std::collections::BTreeMap;

use posthaste_core::model::LetterPlace;

/// The permit of such a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecoveryPermit {
    /// It sends, but not the letters in these places: they are on their way as probes.
    Runs(Vec<LetterPlace>),
    /// The endpoint is not well, or has not been for long enough.
    Rests,
}

/// The permits of a run, by the ids of replays. One without a permit waits for the next run.
pub(crate) type RecoveryPermits = BTreeMap<String, RecoveryPermit>;
