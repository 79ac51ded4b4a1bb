//! Replays: dead letters that were asked for go back into the delivery queue, at the rate of each
//! replay. Rules of what may be asked for, and when which event may be sent, are in
//! [`posthaste_core::release::continue_replay`].

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

use parking_lot::Mutex;
use posthaste_core::api::{ReplayReason, ReplaySource, ReplayState};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectMeta, ObjectStore, PortError, Ports};
use posthaste_services::catch_panic::catch_panic;

use super::ended;
use super::recovery_permits::{RecoveryPermit, RecoveryPermits};
use crate::ports::WakePorts;
use crate::run::WakeRun;
use left::{LeftReplay, left_replay};
pub(super) use pick::{LetterSelector, pick_letters};
pub(super) use receiver::ReplayReceiver;
pub(super) use records::{ReplayError, ReplayJob};
use recovery::is_named;
pub(super) use sender::queue_messages;
pub(super) use walk::read_letters;
use walk::resume_letter_walk;

/// Most replays of one list.
const REPLAYS_LISTED: usize = 100;

/// The marker of the last replay that a run came to whose time was over before it had come to all:
/// the next run goes on behind it, and then from the first one on.
#[derive(Debug, Default)]
pub(crate) struct ReplayWalk(Mutex<Option<String>>);

/// Works on every replay that has not ended, while there is time.
/// Those that nobody asked for go on where they have a permit.
pub(crate) async fn replay_all<P: Ports>(
    run: WakeRun<'_, P>,
    walk: &ReplayWalk,
    permits: &RecoveryPermits,
) {
    ended::run_and_log(run, "replays", replay_open(run, walk, permits)).await;
}

async fn replay_open<P: Ports>(
    run: WakeRun<'_, P>,
    walk: &ReplayWalk,
    permits: &RecoveryPermits,
) -> Result<(), PortError> {
    let first_after = walk.0.lock().clone();
    let mut is_from_first = first_after.is_none();
    let mut after = first_after.clone();
    loop {
        let store = &run.ports.state;
        let page = store
            .list(layout::REPLAYING, after.as_deref(), REPLAYS_LISTED)
            .await?;
        for marker in page.objects {
            let is_behind = first_after
                .as_ref()
                .is_some_and(|first| marker.key > *first);
            if is_from_first && is_behind {
                *walk.0.lock() = None;
                return Ok(());
            }
            run.note_work();
            if !run.has_time() {
                return Ok(());
            }
            // Before its turn: a run whose time ends in the middle comes to no line behind it.
            *walk.0.lock() = Some(marker.key.clone());
            continue_marked_replay(run, &marker, permits).await;
        }
        after = page.next_after;
        if after.is_none() {
            if is_from_first {
                *walk.0.lock() = None;
                return Ok(());
            }
            is_from_first = true;
        }
    }
}

async fn continue_marked_replay<P: Ports>(
    run: WakeRun<'_, P>,
    marker: &ObjectMeta,
    permits: &RecoveryPermits,
) {
    let id = marker
        .key
        .strip_prefix(layout::REPLAYING)
        .unwrap_or_default();
    let replayed = catch_panic(Box::pin(continue_replay(run, id, marker, permits))).await;
    if let Err(error) = replayed.map_err(ReplayError::Panicked).flatten() {
        tracing::error!(
            replay_id = id,
            error = &error as &dyn Error,
            "a replay made no progress, the next run tries again"
        );
    }
}

/// Works on one replay: looks whether it may go on, and how it ends.
async fn continue_replay<P: Ports>(
    run: WakeRun<'_, P>,
    id: &str,
    marker: &ObjectMeta,
    permits: &RecoveryPermits,
) -> Result<(), ReplayError> {
    let ports = run.ports;
    let mut found = ReplayJob::load(ports, id).await?;
    if found.is_none() {
        match left_replay(run, id, marker).await? {
            LeftReplay::Begun => found = ReplayJob::load(ports, id).await?,
            LeftReplay::Waits => {}
            LeftReplay::IsNone => return delete_marker(&ports.state, id).await,
        }
    }
    let Some(mut job) = found else {
        return Ok(());
    };
    if job.record.has_ended() {
        return delete_marker(&ports.state, id).await;
    }
    let Some(receiver) = ReplayReceiver::find_for_replay(ports, &job.record).await? else {
        job.change_state(
            ports,
            ReplayState::Cancelled,
            Some(ReplayReason::SubscriptionDeleted),
        )
        .await?;
        return delete_marker(&ports.state, id).await;
    };
    if !receiver.is_active() {
        return job
            .change_state(
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
        resume_letter_walk(run, &mut job, receiver).await?;
    }
    if job.record.has_ended() {
        delete_marker(&ports.state, id).await
    } else {
        Ok(())
    }
}

/// Whether a replay that nobody asked for goes on in this run. Says why it does not, and from when
/// its rate rises if it does after a rest.
async fn may_recover<P: Ports>(
    ports: &WakePorts<P>,
    job: &mut ReplayJob,
    receiver: &ReplayReceiver,
    permits: &RecoveryPermits,
) -> Result<bool, ReplayError> {
    if !receiver.subscription.recovery.enabled {
        let off = Some(ReplayReason::RecoveryOff);
        job.change_state(ports, ReplayState::Cancelled, off).await?;
        delete_marker(&ports.state, &job.record.id).await?;
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
                job.change_state(ports, ReplayState::Running, None).await?;
            }
            Ok(true)
        }
        Some(RecoveryPermit::Rests) => {
            let outage = Some(ReplayReason::Outage);
            job.change_state(ports, ReplayState::Waiting, outage)
                .await?;
            Ok(false)
        }
        // Its mark was not looked at in this run, or is none of its own any more.
        None => {
            if !is_named(ports, &job.record).await? {
                job.change_state(ports, ReplayState::Cancelled, None)
                    .await?;
                delete_marker(&ports.state, &job.record.id).await?;
            }
            Ok(false)
        }
    }
}

/// Deletes the marker: no run has to look at this replay again.
async fn delete_marker(store: &impl ObjectStore, id: &str) -> Result<(), ReplayError> {
    store
        .delete(&layout::replaying_mark_key(id))
        .await
        .map_err(ReplayError::Store)
}

#[cfg(test)]
mod tests;
