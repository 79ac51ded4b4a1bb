//! The steps of a run, and its counts.

use std::sync::Arc;
use std::time::Duration;

use super::batches::EventBatch;
use super::report::PublishReport;

/// The next step of the driver.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunStep {
    /// Send this batch, and say how it was answered.
    Send(Arc<EventBatch>),
    /// Read a batch, and say what came.
    Read,
    /// Wait for an answer, a batch or a signal, and at most until this time.
    Wait(Option<Duration>),
    /// The run is over.
    Over,
}

/// Counts of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunCounts {
    /// Events that were acknowledged.
    pub(super) events: u64,
    /// Requests that were acknowledged.
    pub(super) requests: u64,
    /// Answers that the tarpit delayed: acknowledgements that were held back, and requests that
    /// were asked to come again after the delay. The server's `PublishDelayedCount` counts the
    /// same.
    pub(super) delayed: u64,
    /// Answers that refused a request for back pressure.
    pub(super) refused: u64,
    /// Requests that were sent again.
    pub(super) retried: u64,
    /// Counts of the server's answers, if they have any.
    pub(super) report: Option<PublishReport>,
}
