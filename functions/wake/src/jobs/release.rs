//! The release of parked and held deliveries, side by side or in turn.

use futures_util::future::join;
use parking_lot::Mutex;
use posthaste_core::release::speed::speed;
use posthaste_core::release::{Order, ParkedWalk, RunAccount, Waiting};
use posthaste_core::stored::Checkpoint;
use posthaste_ports::{Clock, PortError, Ports};

use super::held::release_held;
use super::parked::Parked;
use crate::ports::WakePorts;
use crate::report::WakeReport;
use crate::run::Run;

/// Releases what is parked, along this walk, and what is held. Answers their parts of the
/// checkpoint, and how the release of the parked ones ended: `None` if there was not enough time.
pub(crate) async fn release<P: Ports>(
    run: Run<'_, P>,
    last: &Checkpoint,
    walk: ParkedWalk,
    report: &mut WakeReport,
) -> (Checkpoint, Option<Result<(), PortError>>) {
    let WakePorts {
        clock, pressure, ..
    } = run.ports;
    let account = Mutex::<RunAccount>::default();
    let mut parked = Parked::new(run, walk, &account);
    let speed = speed(pressure.state().await.as_deref());
    let release_parked = run.in_time(parked.release(speed));
    let release_held = release_held(run, last.held_to.clone(), report.pulled_in > 0, &account);
    let (ended, held) = match speed.order(clock.now().minute()) {
        // A backlog that is released in passes takes all the time there is.
        Order::Together => join(release_parked, release_held).await,
        Order::First(Waiting::Parked) => (release_parked.await, release_held.await),
        Order::First(Waiting::Held) => {
            let held = release_held.await;
            (release_parked.await, held)
        }
    };
    report.released = parked.objects;
    report.sent = parked.sent;
    report.left = parked.left;
    report.was_slowed = parked.was_slowed;
    report.next_due = parked.next_due;
    report.held_sent = held.sent;
    report.forced_sent = held.forced.sent;
    report.held_left = held.left;
    (
        Checkpoint {
            held_to: held.held_to,
            ..parked.walk.checkpoint()
        },
        ended,
    )
}
