//! The outcomes of the events of a replay, counted from the delivery log.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::{ReplayOutcomes, ReplayPage, ReplayView};
use posthaste_core::delivery_log::{GapCause, RecordFilter, gather_by_delivery};
use posthaste_delivery_log::DeliveryLog;
use posthaste_ports::{Clock, Ports};

use super::final_outcomes::FinalOutcomes;
use crate::answer::ApiError;
use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::paging::LIST_TIME_MAX;
use crate::request_caches::RequestCaches;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// Most records of a replay that are read, some 10 MB.
const RECORDS_MAX: usize = 10_000;

/// Most replays of a list whose outcomes are counted, and the time for all of them: a person waits
/// for the list.
const LISTED_MAX: usize = 20;
const LIST_COUNT_TIME: Duration = Duration::from_secs(3);

/// The count of what became of the events of a replay.
pub(crate) struct OutcomeCounter<P: Ports> {
    log: SharedPort<P, DeliveryLog<P::Log>>,
    clock: P::Clock,
    records: TopicRecords<P>,
    coverage: LogCoverage<P>,
    caches: SharedPort<P, RequestCaches>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for OutcomeCounter<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            log: SharedPort::new(manage, |it| &it.log),
            clock: manage.clock.clone(),
            records: TopicRecords::from_ref(manage),
            coverage: LogCoverage::from_ref(manage),
            caches: SharedPort::new(manage, |it| &it.caches),
        }
    }
}

impl<P: Ports> OutcomeCounter<P> {
    /// The replay with the outcomes of its events. It has none if nothing was queued, or the log
    /// cannot say.
    pub(super) async fn add_outcomes(&self, replay: ReplayView) -> ReplayView {
        let until = self.clock.monotonic() + LIST_TIME_MAX;
        let outcomes = self.count_until(&replay, until).await;
        replay.with_outcomes(outcomes)
    }

    /// The page with the outcomes of its first replays, as many as there is time for.
    pub(super) async fn add_outcomes_to_page(&self, page: ReplayPage) -> ReplayPage {
        let until = self.clock.monotonic() + LIST_COUNT_TIME;
        let known: &FinalOutcomes = &self.caches.final_outcomes;
        let mut counted = 0;
        let mut replays = Vec::with_capacity(page.replays.len());
        for replay in page.replays {
            let mut outcomes = known.find(&replay.id);
            let has_room = counted < LISTED_MAX && self.clock.monotonic() < until;
            if outcomes.is_none() && replay.queued > 0 && has_room {
                counted += 1;
                outcomes = self.count_until(&replay, until).await;
            }
            if let Some(outcomes) = &outcomes {
                known.keep_if_final(&replay, outcomes);
            }
            replays.push(replay.with_outcomes(outcomes));
        }
        ReplayPage { replays, ..page }
    }

    async fn count_until(&self, replay: &ReplayView, until: Duration) -> Option<ReplayOutcomes> {
        if replay.queued == 0 {
            return None;
        }
        // An error was logged when it became a problem.
        self.read_outcomes(replay, until).await.ok().flatten()
    }

    async fn read_outcomes(
        &self,
        replay: &ReplayView,
        until: Duration,
    ) -> Result<Option<ReplayOutcomes>, ApiError> {
        let topic = self.records.load_record(&replay.topic).await?;
        if self.coverage.is_off(topic.as_ref()) {
            return Ok(None);
        }
        let filter = RecordFilter {
            topic: Some(replay.topic.folded()),
            subscription: Some(replay.subscription.folded()),
            run_id: Some(replay.id.clone()),
            from: Some(replay.created_at.0),
            without_payload: true,
            ..RecordFilter::default()
        };
        let complete_until = self.coverage.complete_until();
        let page = self
            .log
            .list_records(&filter, RECORDS_MAX, || self.clock.monotonic() < until)
            .await?;
        // What a killed process had not recorded is done again: it loses attempts, and no ends.
        let gaps = self.coverage.gaps(Some(replay.created_at.0), None);
        let lacks_ends = gaps.iter().any(|gap| gap.cause != GapCause::Killed);
        let is_partial = page.next.is_some() || !page.damaged.is_empty() || lacks_ends;
        let outcomes = ReplayOutcomes::count_deliveries(
            replay.queued,
            &gather_by_delivery(page.records),
            complete_until.0,
        );
        Ok(Some(ReplayOutcomes {
            is_partial,
            ..outcomes
        }))
    }
}
