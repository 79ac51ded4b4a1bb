//! The record of a replay while a run works on it: loaded once, and written after every few
//! objects, on condition that it was not written elsewhere. A crash sends some events again, under
//! the same keys, and skips none.

use std::time::Duration;

use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::model::FormatError;
use posthaste_core::release::ReplayRequestError;
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_delivery_log::LogError;
use posthaste_ports::{
    Clock, ETag, ObjectStore, PortError, Ports, PutCondition, RevalidatedObject,
};
use posthaste_services::catch_panic::CaughtPanic;
use posthaste_services::{
    HealthError, NoticeError, OpenReplayError, RegistryError, UpdateError, get_newer,
};

use crate::ports::WakePorts;

/// Why a replay did not get on. The next run tries again.
#[derive(Debug, thiserror::Error)]
pub(in crate::jobs) enum ReplayError {
    #[error("failed to read or write the replay's record")]
    Store(#[source] PortError),
    #[error("failed to understand the replay's record")]
    Record(#[source] FormatError),
    #[error("failed to begin a replay that was left")]
    Open(#[source] OpenReplayError),
    #[error("failed to carry out what the replay asks for")]
    Request(#[source] ReplayRequestError),
    #[error("failed to look the subscription up")]
    Registry(#[source] RegistryError),
    #[error("failed to list the dead letters")]
    List(#[source] PortError),
    #[error("failed to read a dead-letter object")]
    Read(#[source] PortError),
    #[error("failed to read the delivery log")]
    Log(#[source] LogError),
    #[error("failed to read an event of the delivery log")]
    Event(#[source] PortError),
    #[error("failed to queue some of the events")]
    Send(#[source] PortError),
    #[error("failed to understand the mark of an outage")]
    Mark(#[source] FormatError),
    #[error("failed to note a letter that was sent as a probe")]
    Probe(#[source] UpdateError<FormatError>),
    #[error("failed to read the book of health")]
    Health(#[source] HealthError),
    #[error("failed to send the notice of a recovery")]
    Notice(#[source] NoticeError),
    #[error("failed in the middle")]
    Panicked(#[source] CaughtPanic),
}

/// A record and the version it has.
#[derive(Debug)]
pub(in crate::jobs) struct ReplayJob {
    pub(in crate::jobs) record: ReplayRecord,
    etag: ETag,
    /// The time at which the store had this version, by the clock's `monotonic`.
    seen_at: Duration,
}

/// The time for which a look at the record stands.
const LOOK_STANDS: Duration = Duration::from_secs(1);

impl ReplayJob {
    pub(in crate::jobs) async fn load<P: Ports>(
        ports: &WakePorts<P>,
        id: &str,
    ) -> Result<Option<Self>, ReplayError> {
        let seen_at = ports.clock.monotonic();
        let object = ports
            .state
            .get(&layout::replay_record_key(id))
            .await
            .map_err(ReplayError::Store)?;
        let Some(object) = object else {
            return Ok(None);
        };
        let record = ReplayRecord::parse(&object.bytes).map_err(ReplayError::Record)?;
        Ok(Some(Self {
            record,
            etag: object.etag,
            seen_at,
        }))
    }

    /// Whether the record still is the one that is known: it is written elsewhere when the replay
    /// is cancelled.
    pub(in crate::jobs) async fn is_current<P: Ports>(
        &mut self,
        ports: &WakePorts<P>,
    ) -> Result<bool, ReplayError> {
        let now = ports.clock.monotonic();
        if now.saturating_sub(self.seen_at) < LOOK_STANDS {
            return Ok(true);
        }
        let key = layout::replay_record_key(&self.record.id);
        let found = get_newer(&ports.state, &key, Some(&self.etag)).await;
        let is_current = matches!(
            found.map_err(ReplayError::Store)?,
            RevalidatedObject::Unchanged
        );
        if is_current {
            self.seen_at = now;
        }
        Ok(is_current)
    }

    /// Writes how far the replay has come. That fails when the replay was cancelled meanwhile; what
    /// was sent since stays sent.
    pub(super) async fn save<P: Ports>(&mut self, ports: &WakePorts<P>) -> Result<(), ReplayError> {
        self.record.updated_at = ports.clock.now();
        let condition = PutCondition::IfMatch(self.etag.clone());
        self.seen_at = ports.clock.monotonic();
        let put = ports
            .state
            .put(
                &layout::replay_record_key(&self.record.id),
                self.record.render(),
                condition,
            )
            .await;
        self.etag = put.map_err(ReplayError::Store)?;
        Ok(())
    }

    /// Writes that the replay is in another state, if it is.
    pub(super) async fn change_state<P: Ports>(
        &mut self,
        ports: &WakePorts<P>,
        state: ReplayState,
        reason: Option<ReplayReason>,
    ) -> Result<(), ReplayError> {
        let record = &mut self.record;
        if (record.state, record.reason) == (state, reason) {
            return Ok(());
        }
        let progress = &record.progress;
        tracing::info!(
            replay_id = record.id, topic = %record.topic, subscription = %record.subscription,
            state = %progress.state_shown(state), reason = reason.map(display),
            found = progress.found, queued = progress.queued, failed = progress.failed,
            "a replay changed its state"
        );
        record.state = state;
        record.reason = reason;
        self.save(ports).await
    }
}
