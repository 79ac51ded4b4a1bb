//! The record of a replay while it is worked on: loaded once, and written after every few objects, on
//! condition that it was not written elsewhere. A crash sends some events again, under the same keys, and
//! passes over none.

use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{Clock, ETag, ObjectStore, Ports, PutCondition};

use super::error::ReplayError;

/// A record and the version it has.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) record: ReplayRecord,
    etag: ETag,
}

/// Loads and saves records.
pub(super) struct Records<'a, P: Ports> {
    pub(super) store: &'a P::Store,
    pub(super) clock: &'a P::Clock,
}

impl<P: Ports> Records<'_, P> {
    pub(super) async fn load(&self, id: &str) -> Result<Option<Job>, ReplayError> {
        let object = self.store.get(&layout::replay(id)).await.map_err(ReplayError::Store)?;
        let Some(object) = object else { return Ok(None) };
        let record = ReplayRecord::parse(&object.bytes).map_err(ReplayError::Record)?;
        Ok(Some(Job { record, etag: object.etag }))
    }

    /// Writes how far it has come. It fails when the replay was cancelled meanwhile, and what was sent since
    /// is sent.
    pub(super) async fn save(&self, job: &mut Job) -> Result<(), ReplayError> {
        job.record.updated_at = self.clock.now();
        let condition = PutCondition::IfMatch(job.etag.clone());
        let put = self.store.put(&layout::replay(&job.record.id), job.record.render(), condition).await;
        job.etag = put.map_err(ReplayError::Store)?;
        Ok(())
    }

    /// Writes that it is in another state, if it is.
    pub(super) async fn turn(
        &self,
        job: &mut Job,
        state: ReplayState,
        reason: Option<ReplayReason>,
    ) -> Result<(), ReplayError> {
        if (job.record.state, job.record.reason) == (state, reason) {
            return Ok(());
        }
        let progress = &job.record.progress;
        tracing::info!(
            replay = job.record.id, topic = %job.record.topic, subscription = %job.record.subscription,
            ?state, ?reason, found = progress.found, queued = progress.queued, failed = progress.failed,
            "a replay turned"
        );
        (job.record.state, job.record.reason) = (state, reason);
        self.save(job).await
    }
}
