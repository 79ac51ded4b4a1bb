//! Telling of changes. What is to be told travels in the state, written by the same put as the level: whoever wrote it
//! tells it once the put has succeeded, and takes it out with the next poll's put. A failure, or the end of the process,
//! leaves it for the next poll, of whichever monitor.

use std::time::Duration;

use posthaste_core::api::notice::Notice;
use posthaste_core::pressure::{PressureState, Transition};
use posthaste_ports::{Clock, DrainSource, Entropy, ObjectStore, Probe, QueueReceiver, QueueSender};
use posthaste_services::notifier::system_not_sent;
use posthaste_services::{FanOut, NoticeError, Notifier, timeout};

use crate::Monitor;

/// How long telling may take at most. It takes half the time by which a poll may be late before the state is stale, where
/// that is less, so that a queue which hangs does not make the monitor look as if it had stopped.
const TELLING_MAX: Duration = Duration::from_secs(3);

impl<Q, S, P, C, D, E> Monitor<Q, S, P, C, D, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    P: Probe,
    C: Clock,
    D: DrainSource,
    E: Entropy,
{
    /// Puts into the state after a poll what is to be told, and answers how many changes are told no more, the oldest of
    /// too many. Where nobody is named, nothing is kept.
    pub(crate) fn carry(
        &self,
        after: &mut PressureState,
        before: &PressureState,
        transitions: &[Transition],
    ) -> usize {
        match &self.notices_topic {
            None => 0,
            Some(_) => after.carry(&before.untold, transitions),
        }
    }

    /// Tells what the written state carries. The news is the same however often it is told, and so is its `id`.
    pub(crate) async fn tell(&mut self, written: &PressureState) {
        if written.untold.is_empty() {
            return;
        }
        let told = timeout(&self.ports.clock, self.telling_time(), self.notify(written)).await;
        match told.map_or(Err(Untold::OutOfTime), |told| told.map_err(Untold::Failed)) {
            Ok(()) => self.forget_told(),
            Err(untold) => report_untold(&untold, written),
        }
    }

    fn telling_time(&self) -> Duration {
        let late = self.settings.staleness().stale_after.saturating_sub(self.settings.interval);
        TELLING_MAX.min(late / 2)
    }

    async fn notify(&self, written: &PressureState) -> Result<(), NoticeError> {
        let Some(topic) = &self.notices_topic else { return Ok(()) };
        let ports = &self.ports;
        let fan_out = FanOut {
            deliveries: &ports.deliveries,
            payloads: &ports.state,
            clock: &ports.clock,
            entropy: &ports.entropy,
        };
        let notices: Vec<_> = written.untold.iter().map(Notice::Pressure).collect();
        // Boxed: of the futures of the SDK, the compiler would find the layout too deep otherwise.
        Box::pin(Notifier { registry: &ports.registry, fan_out }.tell_system(topic, &notices)).await
    }

    /// The next poll goes on from a state that has nothing to tell.
    fn forget_told(&mut self) {
        if let Some((_, state)) = &mut self.written {
            state.untold.clear();
            self.carries_told = true;
        }
    }
}

/// Why changes were not told this time.
#[derive(Debug, thiserror::Error)]
enum Untold {
    #[error("failed to write the notices")]
    Failed(#[source] NoticeError),
    #[error("failed to write the notices in time")]
    OutOfTime,
}

/// An error where there is something new, for the operator; every poll that tries again after it says so to whoever looks
/// closer, since the disk that is full may be the log's.
fn report_untold(untold: &Untold, written: &PressureState) {
    let (changes, error) = (written.untold.len(), untold as &dyn std::error::Error);
    if written.untold.iter().any(|change| change.at == written.at) {
        tracing::error!(changes, error, "changes of the pressure not told, the next polls try again");
    } else {
        tracing::debug!(changes, error, "changes of the pressure still not told");
    }
}

/// Counts and logs changes that nobody will be told of.
pub(crate) fn given_up(changes: usize) {
    if changes > 0 {
        system_not_sent(changes);
        tracing::error!(
            changes,
            "changes of the pressure are not told any more: they could not be told for too long"
        );
    }
}
