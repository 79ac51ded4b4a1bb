//! The ends of the last attempts of subscriptions.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::LastOutcomeView;
use posthaste_core::api::events::AttemptView;
use posthaste_core::delivery_log::{RecordFilter, RecordKind};
use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{SubscriptionName, Timestamp};
use posthaste_core::stored::TopicRecord;
use posthaste_delivery_log::DeliveryLog;
use posthaste_ports::{Clock, Ports};
use posthaste_services::timeout;

use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::waiting::HANGING_TIME_MAX;

/// Longest time for finding the last attempt in the delivery log.
const LAST_TIME: Duration = Duration::from_secs(1);

/// The age of the oldest attempt that is looked for.
const LAST_AGE_MAX: Duration = Duration::from_hours(24);

/// The ends of last attempts, from the delivery log. An answer does not fail for want of them.
pub(crate) struct LastOutcomes<P: Ports> {
    log: SharedPort<P, DeliveryLog<P::Log>>,
    clock: P::Clock,
    coverage: LogCoverage<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LastOutcomes<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            log: SharedPort::new(manage, |it| &it.log),
            clock: manage.clock.clone(),
            coverage: LogCoverage::from_ref(manage),
        }
    }
}

impl<P: Ports> LastOutcomes<P> {
    /// The end of the last attempt of a subscription, if the delivery log has it and it is not old.
    pub(crate) async fn last_outcome(
        &self,
        record: &TopicRecord,
        name: &SubscriptionName,
    ) -> Option<LastOutcomeView> {
        if self.coverage.is_off(Some(record)) {
            return None;
        }
        let day_ms = whole_millis(LAST_AGE_MAX);
        let from = Timestamp::from_millis(self.clock.now().as_millis().saturating_sub(day_ms));
        let filter = RecordFilter {
            topic: Some(record.name.folded()),
            subscription: Some(name.folded()),
            kind: Some(RecordKind::Attempt),
            from: Some(from),
            without_payload: true,
            ..RecordFilter::default()
        };
        let until = self.clock.monotonic() + LAST_TIME;
        let listed = self
            .log
            .list_records(&filter, 1, || self.clock.monotonic() < until);
        match timeout(&self.clock, HANGING_TIME_MAX, listed).await? {
            Ok(page) => page.records.first().map(|record| {
                let AttemptView {
                    at,
                    outcome,
                    status,
                    ..
                } = AttemptView::from(record);
                LastOutcomeView {
                    at,
                    outcome,
                    status,
                }
            }),
            // It was logged when it became a problem.
            Err(_) => None,
        }
    }
}
