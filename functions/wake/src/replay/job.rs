//! A replay's record while it is worked on: loaded once, and written on condition that nobody else did.

use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::stored::layout;
use posthaste_core::stored::replay::ReplayRecord;
use posthaste_ports::{Clock, ETag, Entropy, ObjectStore, PutCondition, QueueSender};

use super::ReplayError;
use crate::Wake;

/// A record and the version it has.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) record: ReplayRecord,
    etag: ETag,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    pub(super) async fn load(&self, id: &str) -> Result<Option<Job>, ReplayError> {
        let object = self.ports.state.get(&layout::replay(id)).await.map_err(ReplayError::Store)?;
        let Some(object) = object else { return Ok(None) };
        let record = ReplayRecord::parse(&object.bytes).map_err(ReplayError::Record)?;
        Ok(Some(Job { record, etag: object.etag }))
    }

    /// Writes how far it has come. It fails when somebody cancelled it meanwhile, and what was sent since is sent.
    pub(super) async fn save(&self, job: &mut Job) -> Result<(), ReplayError> {
        job.record.updated_at = self.ports.clock.now();
        let condition = PutCondition::IfMatch(job.etag.clone());
        let key = layout::replay(&job.record.id);
        let put = self.ports.state.put(&key, job.record.render(), condition).await;
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
            replay = job.record.id, topic = %job.record.topic, subscription = %job.record.subscription, ?state, ?reason,
            found = progress.found, queued = progress.queued, failed = progress.failed, "a replay turned"
        );
        (job.record.state, job.record.reason) = (state, reason);
        self.save(job).await
    }
}
