//! The outcomes of the events of a replay, counted from the delivery log.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::ReplayOutcomes;
use posthaste_core::delivery_log::{GapCause, RecordFilter, gather_by_delivery};
use posthaste_core::stored::ReplayRecord;
use posthaste_delivery_log::DeliveryLog;
use posthaste_ports::{Clock, Ports};

use crate::answer::ApiError;
use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::paging::LIST_TIME_MAX;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// Most records of a replay that are read, some 10 MB.
const RECORDS_MAX: usize = 10_000;

/// The count of what became of the events of a replay.
pub(crate) struct OutcomeCounter<P: Ports> {
    log: SharedPort<P, DeliveryLog<P::Log>>,
    clock: P::Clock,
    records: TopicRecords<P>,
    coverage: LogCoverage<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for OutcomeCounter<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            log: SharedPort::new(manage, |it| &it.log),
            clock: manage.clock.clone(),
            records: TopicRecords::from_ref(manage),
            coverage: LogCoverage::from_ref(manage),
        }
    }
}

impl<P: Ports> OutcomeCounter<P> {
    /// The outcomes of the events of a replay. `None` if nothing was queued, or the log cannot say.
    pub(super) async fn replay_outcomes(&self, replay: &ReplayRecord) -> Option<ReplayOutcomes> {
        if replay.progress.queued == 0 {
            return None;
        }
        // An error was logged when it became a problem.
        self.read_outcomes(replay).await.ok().flatten()
    }

    async fn read_outcomes(
        &self,
        replay: &ReplayRecord,
    ) -> Result<Option<ReplayOutcomes>, ApiError> {
        let topic = self.records.load_record(&replay.topic).await?;
        if self.coverage.is_off(topic.as_ref()) {
            return Ok(None);
        }
        let filter = RecordFilter {
            topic: Some(replay.topic.folded()),
            subscription: Some(replay.subscription.folded()),
            run_id: Some(replay.id.clone()),
            from: Some(replay.created_at),
            without_payload: true,
            ..RecordFilter::default()
        };
        let complete_until = self.coverage.complete_until();
        let until = self.clock.monotonic() + LIST_TIME_MAX;
        let page = self
            .log
            .list_records(&filter, RECORDS_MAX, || self.clock.monotonic() < until)
            .await?;
        // What a killed process had not recorded is done again: it loses attempts, and no ends.
        let gaps = self.coverage.gaps(Some(replay.created_at), None);
        let lacks_ends = gaps.iter().any(|gap| gap.cause != GapCause::Killed);
        let is_partial = page.next.is_some() || !page.damaged.is_empty() || lacks_ends;
        let outcomes = ReplayOutcomes::count_deliveries(
            replay.progress.queued,
            &gather_by_delivery(page.records),
            complete_until.0,
        );
        Ok(Some(ReplayOutcomes {
            is_partial,
            ..outcomes
        }))
    }
}
