//! The dry run of a replay from the delivery log: counts the newest records, for a limited time.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::ReplayPreview;
use posthaste_core::delivery_log::gather_by_delivery;
use posthaste_core::model::{Subscription, Timestamp};
use posthaste_core::release::ReplaySelection;
use posthaste_delivery_log::DeliveryLog;
use posthaste_ports::{Clock, Ports};

use crate::answer::ApiError;
use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::paging::LIST_TIME_MAX;
use crate::shared_port::SharedPort;

/// Most records that are read, some 10 MB.
const RECORDS_MAX: usize = 10_000;

/// Most ids that are shown.
const IDS_MAX: usize = 10;

/// The count of the records that a replay from the delivery log would send.
pub(super) struct LogPreview<P: Ports> {
    log: SharedPort<P, DeliveryLog<P::Log>>,
    clock: P::Clock,
    coverage: LogCoverage<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LogPreview<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            log: SharedPort::new(manage, |it| &it.log),
            clock: manage.clock.clone(),
            coverage: LogCoverage::from_ref(manage),
        }
    }
}

impl<P: Ports> LogPreview<P> {
    /// Counts what a replay would send now. Dead letters that are resolved count too.
    pub(super) async fn count_records(
        &self,
        selection: &ReplaySelection,
        to: &Subscription,
    ) -> Result<ReplayPreview, ApiError> {
        let from = selection.from().unwrap_or(Timestamp::EPOCH);
        let mut filter = selection.record_filter(from, selection.to_time(), to);
        filter.without_payload = true;
        let until = self.clock.monotonic() + LIST_TIME_MAX;
        let page = self
            .log
            .list_records(&filter, RECORDS_MAX, || self.clock.monotonic() < until)
            .await?;
        let gaps = self.coverage.gaps(Some(from), Some(selection.to_time()));
        let is_complete = page.next.is_none() && page.damaged.is_empty() && gaps.is_empty();
        let mut preview = ReplayPreview {
            is_complete,
            ..ReplayPreview::default()
        };
        for history in gather_by_delivery(page.records) {
            let ended = history.decisive_record();
            let left_out = selection
                .leaves_out_record(ended, &to.created)
                .or_else(|| selection.leaves_out_end(&history));
            if let Some(reason) = left_out {
                preview.left_out.add(reason);
                continue;
            }
            preview.events += 1;
            let reason = ended
                .reason
                .clone()
                .unwrap_or_else(|| ended.result.as_str().to_owned());
            *preview.by_reason.entry(reason).or_default() += 1;
            if preview.ids.len() < IDS_MAX {
                preview.ids.extend(ended.event_id.clone());
            }
        }
        Ok(preview)
    }
}
