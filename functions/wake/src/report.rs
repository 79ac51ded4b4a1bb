//! The result of a run.

use posthaste_ports::PortError;

/// The result of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WakeReport {
    /// Objects whose deliveries were all sent.
    pub released: usize,
    /// Deliveries that were sent.
    pub sent: usize,
    /// Objects that are tried again in the next run.
    pub left: usize,
    /// Held deliveries that were sent.
    pub held_sent: usize,
    /// Parked deliveries that were sent before their minute, because an operator forced it.
    pub forced_sent: usize,
    /// Objects of held or forced deliveries that are tried again in the next run.
    pub held_left: usize,
    /// Topics deleted because they were idle.
    pub deleted_topics: usize,
    /// Subscriptions deleted because they were idle, or their time was over.
    pub deleted_subscriptions: usize,
    /// Parked objects that a clock wrote that was ahead, and whose minute was moved nearer.
    pub pulled_in: usize,
    /// The minute of the next parked object, as far as it was seen.
    pub(crate) next_due: Option<u64>,
    /// True if there could be no work, so that nothing was looked for.
    pub rested: bool,
    /// True if another run was going on.
    pub was_busy: bool,
    /// True if pressure slowed the release of what is parked.
    pub was_slowed: bool,
}

/// Why a run ended early. The next one goes on.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// The lease or the signal could not be read, or the lease not written.
    #[error("failed to take the lease")]
    Lease(#[source] PortError),
    /// The parked objects could not be listed.
    #[error("failed to list what is parked")]
    List(#[source] PortError),
    /// A call of the object store had not come back when the run had to end.
    #[error("failed to end in time")]
    OutOfTime,
}

impl WakeReport {
    pub(crate) fn log(&self) {
        let Self {
            sent,
            released,
            left,
            ..
        } = *self;
        if sent + released + left > 0 {
            tracing::info!(
                deliveries = sent,
                objects = released,
                objects_left = left,
                "parked deliveries released"
            );
        }
        let Self {
            held_sent,
            forced_sent,
            held_left,
            ..
        } = *self;
        if held_sent + forced_sent + held_left > 0 {
            tracing::info!(
                deliveries = held_sent,
                deliveries_forced = forced_sent,
                objects_left = held_left,
                "held deliveries released"
            );
        }
        if self.pulled_in > 0 {
            tracing::info!(
                objects = self.pulled_in,
                "the clock was set back: parked deliveries due earlier"
            );
        }
    }
}
