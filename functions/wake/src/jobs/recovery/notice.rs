//! The notice that dead letters of an outage are sent again by themselves, one for each outage. It is
//! marked once it is sent: a run that is cut in between leaves the same notice, with the same id, to
//! the next.

use std::collections::BTreeMap;

use posthaste_core::api::RecoveryView;
use posthaste_core::api::notice::{Notice, RecoveryNotice};
use posthaste_core::stored::{RecoveryMark, ReplayRecord};
use posthaste_ports::Ports;

use super::look::RecoveryContext;
use super::marked::StoredMark;
use crate::jobs::replays::{ReplayError, ReplayReceiver};

/// Tells of a recovery that has begun, unless that is told.
pub(super) async fn send_recovery_notice<P: Ports>(
    look: &RecoveryContext<'_, P>,
    marked: &mut StoredMark,
    to: &ReplayReceiver,
    begun: &ReplayRecord,
) -> Result<(), ReplayError> {
    let ports = look.run.ports;
    if marked.mark.told_of == Some(marked.mark.outage_since) {
        return Ok(());
    }
    let Some(view) = RecoveryView::from_mark(&marked.mark, Some(begun)) else {
        return Ok(());
    };
    tracing::info!(
        topic = %view.topic, subscription = %view.subscription, recovery = view.in_words(),
        "the subscription recovers by itself"
    );
    let own = to.topic.notices_topic.as_ref();
    let addressees: BTreeMap<_, _> = own
        .into_iter()
        .chain(look.notices_topic)
        .map(|name| (name.folded(), name))
        .collect();
    if !ports.links.settings().suppress_state_changes {
        for name in addressees.into_values() {
            let notice = [Notice::Recovering(RecoveryNotice { recovery: &view })];
            let sent = Box::pin(ports.notifier().send_to_topic(name, &notice)).await;
            sent.map_err(ReplayError::Notice)?;
        }
    }
    let told = RecoveryMark {
        told_of: Some(marked.mark.outage_since),
        ..marked.mark.clone()
    };
    marked.save(ports, told).await
}
