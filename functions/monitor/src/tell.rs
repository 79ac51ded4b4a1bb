//! Telling of changes. What is to be told travels in the state, written by the same put as the level: whoever wrote it
//! tells it once the put has succeeded, and takes it out with the next poll's put. A failure, or the end of the process,
//! leaves it for the next poll, of whichever monitor.

use std::time::Duration;

use posthaste_core::notice::Notice;
use posthaste_core::pressure::{PressureState, Transition};
use posthaste_ports::notices::system_not_sent;
use posthaste_ports::{
    Clock, DrainSource, Entropy, FanOut, NoticeError, Notifier, ObjectStore, Probe, QueueReceiver,
    QueueSender,
};

use crate::Monitor;

/// How long telling may take. With the time between two polls (2 s) it stays below what makes a state stale (6 s), so
/// that a queue which hangs does not make the monitor look as if it had stopped.
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
        let told = tokio::select! {
            biased;
            told = self.notify(written) => told,
            () = self.ports.clock.sleep(TELLING_MAX) => {
                tracing::error!(changes = written.untold.len(), "changes of the pressure not told in time, the next poll tries again");
                return;
            }
        };
        match told {
            Ok(()) => self.forget_told(),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    changes = written.untold.len(),
                    error,
                    "changes of the pressure not told, the next poll tries again"
                );
            }
        }
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
