//! The differences where nobody asked for a replay: it recovers from an outage.

use posthaste_core::model::{Subscription, Timestamp};
use posthaste_core::release::recovery::RecoveryRules;
use posthaste_core::release::recovery_room;
use posthaste_core::stored::{RecoveryMark, RecoveryOrigin, ReplayRecord, layout};
use posthaste_ports::{ObjectStore, Ports};

use super::records::ReplayError;
use crate::jobs::standing::holds_deliveries;
use crate::ports::WakePorts;
use crate::run::WakeRun;

/// The rules by which letters are recovered, from the subscription as it is now.
pub(super) fn rules(
    origin: &RecoveryOrigin,
    subscription: &Subscription,
    now: Timestamp,
) -> RecoveryRules {
    RecoveryRules {
        within: subscription.recovery.within,
        cancelled_at: origin.cancelled_at,
        on_its_way: origin.on_its_way.clone(),
        now,
    }
}

/// Whether the mark of its subscription names a replay. A mark names its replay before that is
/// written, so one that no mark names was replaced: it would never be permitted to go on.
pub(super) async fn is_named<P: Ports>(
    ports: &WakePorts<P>,
    record: &ReplayRecord,
) -> Result<bool, ReplayError> {
    let key = layout::recovery_mark_key(&record.topic, &record.subscription);
    let found = ports.state.get(&key).await.map_err(ReplayError::Store)?;
    let Some(object) = found else {
        return Ok(false);
    };
    let mark = RecoveryMark::parse(&object.bytes).map_err(ReplayError::Mark)?;
    let named = mark.job.filter(|_| mark.ended_at.is_none());
    Ok(named.is_some_and(|job| job.id == record.id))
}

/// The number of events that may be sent in this run: what has been accepted since goes first, and
/// so does what is held.
pub(super) async fn room_in_run<P: Ports>(
    run: WakeRun<'_, P>,
    subscription: &Subscription,
) -> Result<usize, ReplayError> {
    let ports = run.ports;
    let is_held = holds_deliveries(ports, subscription).await;
    if is_held.map_err(ReplayError::Store)? {
        return Ok(0);
    }
    let name = layout::subscription_folder(&subscription.topic, &subscription.name);
    let state = ports.pressure.state().await;
    let due = ports.count_due(std::slice::from_ref(&name)).await;
    Ok(recovery_room(state.as_deref(), due.into_iter().sum()))
}
