//! The release of parked and held deliveries, side by side or in turn.

use futures_util::future::join;
use parking_lot::Mutex;
use posthaste_core::release::speed::release_speed;
use posthaste_core::release::{ParkedWalk, ReleaseOrder, ReleaseSource, RunAccount};
use posthaste_core::stored::WakeCheckpoint;
use posthaste_ports::{Clock, PortError, Ports};

use super::held::release_held;
use super::parked::ParkedRelease;
use crate::ports::WakePorts;
use crate::report::WakeReport;
use crate::run::WakeRun;

/// Releases what is parked, along this walk, and what is held. Answers their parts of the
/// checkpoint, and how the release of the parked ones ended: `None` if there was not enough time.
pub(crate) async fn release_parked_and_held<P: Ports>(
    run: WakeRun<'_, P>,
    last: &WakeCheckpoint,
    walk: ParkedWalk,
    report: &mut WakeReport,
) -> (WakeCheckpoint, Option<Result<(), PortError>>) {
    let WakePorts {
        clock, pressure, ..
    } = run.ports;
    let account = Mutex::<RunAccount>::default();
    let mut parked = ParkedRelease::new(run, walk, &account);
    let speed = release_speed(pressure.state().await.as_deref());
    let release_parked = run.in_time(parked.release_due(speed));
    let release_held = release_held(run, last.held_to.clone(), report.pulled_in > 0, &account);
    let (ended, held) = match speed.order_in_minute(clock.now().minute_rounded_down()) {
        // A backlog that is released in passes takes all the time there is.
        ReleaseOrder::Together => join(release_parked, release_held).await,
        ReleaseOrder::First(ReleaseSource::Parked) => (release_parked.await, release_held.await),
        ReleaseOrder::First(ReleaseSource::Held) => {
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
        WakeCheckpoint {
            held_to: held.held_to,
            ..parked.walk.into_checkpoint()
        },
        ended,
    )
}
