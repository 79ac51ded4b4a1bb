//! Replays: dead letters that were asked for go back into the delivery queue, at the rate of each
//! replay. Rules of what may be asked for, and when which event may be sent, are in
//! [`posthaste_core::release::replay`].

mod left;
mod log_records;
mod log_walk;
mod pick;
mod receiver;
mod records;
mod recovery;
mod sender;
mod walk;

use std::error::Error;

use posthaste_core::api::{ReplayReason, ReplaySource, ReplayState};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectMeta, ObjectStore, PortError, Ports};
use posthaste_services::catch_panic::catch_panic;

use super::ended;
use super::recovery_permits::{RecoveryPermit, RecoveryPermits};
use crate::ports::WakePorts;
use crate::run::Run;
use left::{LeftReplay, left_replay};
pub(super) use pick::{Chosen, pick};
pub(super) use receiver::Receiver;
pub(super) use records::{Job, ReplayError};
pub(super) use sender::send;
pub(super) use walk::read;
use walk::resume;

/// Most replays that are looked at in one run.
const REPLAYS_MAX: usize = 100;

/// Works on every replay that has not ended, while there is time.
/// Those that nobody asked for go on where they have a permit.
pub(crate) async fn replay_all<P: Ports>(run: Run<'_, P>, permits: &RecoveryPermits) {
    ended::work(run, "replays", replay_open(run, permits)).await;
}

async fn replay_open<P: Ports>(
    run: Run<'_, P>,
    permits: &RecoveryPermits,
) -> Result<(), PortError> {
    let mut open = run
        .ports
        .state
        .list(layout::REPLAYING, None, REPLAYS_MAX)
        .await?
        .objects;
    rotate(&mut open, run.ports.clock.now());
    for marker in open {
        run.note_work();
        if !run.has_time() {
            break;
        }
        let id = marker
            .key
            .strip_prefix(layout::REPLAYING)
            .unwrap_or_default();
        let replayed = catch_panic(Box::pin(replay(run, id, &marker, permits))).await;
        if let Err(error) = replayed.map_err(ReplayError::Panicked).flatten() {
            tracing::error!(
                replay_id = id,
                error = &error as &dyn Error,
                "a replay made no progress, the next run tries again"
            );
        }
    }
    Ok(())
}

/// Works on one replay: looks whether it may go on, and how it ends.
async fn replay<P: Ports>(
    run: Run<'_, P>,
    id: &str,
    marker: &ObjectMeta,
    permits: &RecoveryPermits,
) -> Result<(), ReplayError> {
    let ports = run.ports;
    let mut found = Job::load(ports, id).await?;
    if found.is_none() {
        match left_replay(run, id, marker).await? {
            LeftReplay::Begun => found = Job::load(ports, id).await?,
            LeftReplay::Waits => {}
            LeftReplay::IsNone => return close(&ports.state, id).await,
        }
    }
    let Some(mut job) = found else {
        return Ok(());
    };
    if job.record.has_ended() {
        return close(&ports.state, id).await;
    }
    let Some(receiver) = Receiver::find(ports, &job.record).await? else {
        job.turn(
            ports,
            ReplayState::Cancelled,
            Some(ReplayReason::SubscriptionDeleted),
        )
        .await?;
        return close(&ports.state, id).await;
    };
    if !receiver.is_active() {
        return job
            .turn(
                ports,
                ReplayState::Waiting,
                Some(ReplayReason::SubscriptionNotActive),
            )
            .await;
    }
    if job.record.recovery.is_some() && !may_recover(ports, &mut job, &receiver, permits).await? {
        return Ok(());
    }
    if job.record.request.source == ReplaySource::Log {
        log_walk::resume(run, &mut job, receiver).await?;
    } else {
        resume(run, &mut job, receiver).await?;
    }
    if job.record.has_ended() {
        close(&ports.state, id).await
    } else {
        Ok(())
    }
}

/// Whether a replay that nobody asked for goes on in this run. Says why it does not, and from when
/// its rate rises if it does after a rest.
async fn may_recover<P: Ports>(
    ports: &WakePorts<P>,
    job: &mut Job,
    receiver: &Receiver,
    permits: &RecoveryPermits,
) -> Result<bool, ReplayError> {
    if !receiver.subscription.recovery.enabled {
        let off = Some(ReplayReason::RecoveryOff);
        job.turn(ports, ReplayState::Cancelled, off).await?;
        close(&ports.state, &job.record.id).await?;
        return Ok(false);
    }
    match permits.get(&job.record.id) {
        Some(RecoveryPermit::Runs(on_its_way)) => {
            let has_rested = job.record.reason == Some(ReplayReason::Outage);
            if let Some(origin) = job.record.recovery.as_mut() {
                origin.on_its_way.clone_from(on_its_way);
                if has_rested {
                    origin.ramp_from = ports.clock.now();
                }
            }
            if has_rested {
                job.turn(ports, ReplayState::Running, None).await?;
            }
            Ok(true)
        }
        Some(RecoveryPermit::Rests) => {
            let outage = Some(ReplayReason::Outage);
            job.turn(ports, ReplayState::Waiting, outage).await?;
            Ok(false)
        }
        // Its mark was not looked at in this run.
        None => Ok(false),
    }
}

/// Deletes the marker: no run has to look at this replay again.
async fn close(store: &impl ObjectStore, id: &str) -> Result<(), ReplayError> {
    store
        .delete(&layout::replaying(id))
        .await
        .map_err(ReplayError::Store)
}

/// Puts another replay first every minute, so that one that takes all the time leaves some to the
/// others.
fn rotate(open: &mut [ObjectMeta], now: Timestamp) {
    let count = u64::try_from(open.len().max(1)).unwrap_or(1);
    let first = usize::try_from(now.minute() % count).unwrap_or(0);
    open.rotate_left(first);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_replay_comes_first_every_minute() {
        let first = |minute: u64| {
            let meta = |id: &str| ObjectMeta {
                key: id.to_owned(),
                size: 0,
                modified_at: Timestamp::EPOCH,
            };
            let mut open = ["a", "b", "c"].map(meta);
            rotate(&mut open, Timestamp::from_millis(minute * 60_000));
            open[0].key.clone()
        };
        assert_eq!([0, 1, 2, 3].map(first), ["a", "b", "c", "a"]);
        rotate(&mut [], Timestamp::EPOCH);
    }
}
