//! Replays whose requests were cut before their records were written. The marker says what was
//! meant, and the claim of its selection whether it is still wanted.

use std::time::Duration;

use posthaste_core::model::FormatError;
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{Clock, ObjectMeta, ObjectStore, Ports};
use posthaste_services::{LEFT_AFTER, open_replay};

use super::records::ReplayError;
use crate::run::WakeRun;

/// Time after which a marker that says nothing, and has no record, is deleted. Former versions
/// wrote it empty, right before the record.
const EMPTY_MARKER_LEFT_AFTER: Duration = Duration::from_hours(1);

/// Time after which a marker without a record is deleted whatever it says: by then the record is
/// one that was deleted, and not one that is still to be written. Far less than `REPLAY_KEPT`,
/// which is how long a record is kept.
const MARKER_LEFT_AFTER: Duration = Duration::from_hours(24);

/// The end of a marker without a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftReplay {
    /// The replay is begun now.
    Begun,
    /// The record of the replay may still come.
    Waits,
    /// There is no such replay: another one of the same selection took its place, or nothing says
    /// what it is.
    IsNone,
}

/// Begins the replay of a marker without a record, if its request was cut.
pub(super) async fn left_replay<P: Ports>(
    run: WakeRun<'_, P>,
    id: &str,
    marker: &ObjectMeta,
) -> Result<LeftReplay, ReplayError> {
    let ports = run.ports;
    let now = ports.clock.now();
    let age = now.since(marker.modified_at);
    if !run.left.counts_as_left(marker.modified_at, now, LEFT_AFTER) {
        return Ok(LeftReplay::Waits);
    }
    if age >= MARKER_LEFT_AFTER {
        return Ok(LeftReplay::IsNone);
    }
    let found = ports.state.get(&marker.key).await;
    let Some(object) = found.map_err(ReplayError::Store)? else {
        return Ok(LeftReplay::IsNone);
    };
    let meant = match ReplayRecord::parse(&object.bytes) {
        Ok(meant) if layout::replaying_mark_key(&meant.id) == marker.key => meant,
        Err(error @ FormatError::Newer(_)) => return Err(ReplayError::Record(error)),
        Ok(_) | Err(FormatError::Malformed(..)) if age < EMPTY_MARKER_LEFT_AFTER => {
            return Ok(LeftReplay::Waits);
        }
        Ok(_) | Err(FormatError::Malformed(..)) => return Ok(LeftReplay::IsNone),
    };
    let opened = open_replay(&ports.state, &ports.clock, &meant).await;
    let opened = opened.map_err(ReplayError::Open)?;
    let is_begun = opened.id == id;
    tracing::info!(
        replay_id = id, topic = %meant.topic, subscription = %meant.subscription, is_begun,
        "a replay was left by its request"
    );
    Ok(if is_begun {
        LeftReplay::Begun
    } else {
        LeftReplay::IsNone
    })
}
