//! The origins of replays: which began by themselves, to recover from an outage.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::future::join_all;
use posthaste_core::api::RecoveredOutage;
use posthaste_core::api::events::DeliveryView;
use posthaste_core::model::is_object_key;
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{ObjectStore, Ports};
use posthaste_services::timeout;

use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Most replays whose records are read for one event: the newest. An event is seldom sent again
/// more often, and each is a read.
const REPLAYS_MAX: usize = 10;

/// Longest time for a read of a replay's record. An answer about an event does not wait longer for
/// a word about its origin.
const READ_TIME_MAX: Duration = Duration::from_secs(2);

/// Outages by the id of the replay that recovers from them.
pub(crate) type RecoveriesByRun = BTreeMap<String, RecoveredOutage>;

/// The reader of the origins of replays.
pub(crate) struct ReplayOrigins<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for ReplayOrigins<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> ReplayOrigins<P> {
    /// The outages of those replays that are recoveries. What cannot be read is left out: its
    /// attempts are shown as those of a replay.
    pub(crate) async fn read_recoveries(&self, runs: Vec<String>) -> RecoveriesByRun {
        let found = join_all(runs.iter().map(|run| self.read_recovery(run))).await;
        let outages = runs.into_iter().zip(found);
        outages
            .filter_map(|(run, outage)| Some((run, outage?)))
            .collect()
    }

    async fn read_recovery(&self, run: &str) -> Option<RecoveredOutage> {
        let key = layout::replay_record_key(run);
        if !is_object_key(&key) {
            return None;
        }
        let object = match timeout(&self.clock, READ_TIME_MAX, self.state.get(&key)).await {
            Some(Ok(object)) => object?,
            Some(Err(error)) => {
                let error = &error as &dyn Error;
                tracing::warn!(run, error, "the origin of a replay is left out");
                return None;
            }
            None => {
                tracing::warn!(run, "the origin of a replay is left out: it took too long");
                return None;
            }
        };
        // A record that is of a newer program, or damaged, is told where replays are listed.
        let record = ReplayRecord::parse(&object.bytes).ok()?;
        record.recovery.map(|origin| origin.outage)
    }
}

/// The replays that made these deliveries, each once, the newest first.
pub(crate) fn newest_runs(deliveries: &[DeliveryView]) -> Vec<String> {
    let mut runs = Vec::new();
    let attempts = deliveries.iter().flat_map(|it| it.attempts.iter().rev());
    for run in attempts.filter_map(|it| it.run_id.as_ref()) {
        if runs.len() == REPLAYS_MAX {
            break;
        }
        if !runs.contains(run) {
            runs.push(run.clone());
        }
    }
    runs
}

/// Adds to each attempt of a recovery the outage that it recovers from.
pub(crate) fn mark_recoveries(deliveries: &mut [DeliveryView], recoveries: &RecoveriesByRun) {
    for attempt in deliveries.iter_mut().flat_map(|it| &mut it.attempts) {
        let run = attempt.run_id.as_ref();
        attempt.recovery = run.and_then(|run| recoveries.get(run)).copied();
    }
}
