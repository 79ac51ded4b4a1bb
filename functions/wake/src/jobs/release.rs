//! The release of parked and held deliveries, side by side or in turn.

use futures_util::future::join;
use parking_lot::Mutex;
use posthaste_core::release::speed::speed;
use posthaste_core::release::{Order, ParkedWalk, RunAccount, Waiting};
use posthaste_core::stored::Checkpoint;
use posthaste_ports::{Clock, PortError, Ports};
use posthaste_services::Activity;

use super::held::Held;
use super::parked::Parked;
use crate::batches::Batches;
use crate::budget::Budget;
use crate::objects::Objects;
use crate::ports::WakePorts;
use crate::report::WakeReport;
use crate::waits::WaitNotes;

/// Releases deliveries.
pub(crate) struct Release<'a, P: Ports> {
    pub(crate) ports: &'a WakePorts<P>,
    pub(crate) activity: &'a Activity,
}

impl<P: Ports> Release<'_, P> {
    /// Releases what is parked, along this walk, and what is held. Answers their parts of the checkpoint, and
    /// how the release of the parked ones ended: `None` if there was not time enough.
    pub(crate) async fn run(
        &self,
        last: &Checkpoint,
        walk: ParkedWalk,
        budget: Budget<'_>,
        report: &mut WakeReport,
    ) -> (Checkpoint, Option<Result<(), PortError>>) {
        let WakePorts { clock, pressure, .. } = self.ports;
        let (account, waits) = (Mutex::<RunAccount>::default(), WaitNotes::new(self.ports, self.activity));
        let objects = Objects::new(self.ports, &waits);
        let batches = Batches::new(&objects, clock);
        let parked = Parked::new(self.ports, &objects, &batches, &account);
        let held = Held::new(self.ports, &batches, &waits, &account);
        let speed = speed(pressure.state().await.as_deref());
        let parked = parked.run(walk, speed, budget);
        let held = held.run(last.held_to.clone(), report.pulled_in > 0, budget);
        let ((parked, ended), held) = match speed.order(clock.now().minute()) {
            // A backlog that is released in passes takes all the time there is.
            Order::Together => join(parked, held).await,
            Order::First(Waiting::Parked) => (parked.await, held.await),
            Order::First(Waiting::Held) => {
                let held = held.await;
                (parked.await, held)
            }
        };
        (report.released, report.sent, report.left) = (parked.objects, parked.sent, parked.left);
        report.was_slowed = parked.was_slowed;
        (report.held_sent, report.forced_sent, report.held_left) = (held.sent, held.forced_sent, held.left);
        (Checkpoint { held_to: held.held_to, ..parked.walk.checkpoint() }, ended)
    }
}
