//! Knowledge of a run that looks at marks.

use std::collections::BTreeSet;

use posthaste_core::health::HealthBook;
use posthaste_core::model::TopicName;
use posthaste_ports::Ports;

use crate::jobs::recovery_permits::RecoveryPermits;
use crate::run::WakeRun;

/// A look at marks.
pub(super) struct RecoveryContext<'a, P: Ports> {
    pub(super) run: WakeRun<'a, P>,
    /// The topic whose subscribers are told of every recovery.
    pub(super) notices_topic: Option<&'a TopicName>,
    pub(super) book: HealthBook,
    /// Links to which this run has sent a letter as a probe.
    pub(super) probed: BTreeSet<String>,
    /// The permits of replays in this run.
    pub(super) permits: RecoveryPermits,
}
