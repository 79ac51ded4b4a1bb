//! The deliveries of one event, as the delivery log has them.

use std::sync::Arc;

use axum::extract::FromRef;
use futures_util::future::join;
use posthaste_core::api::events::{DeliveryView, EventQuery, EventView, LogGapView, LogNote};
use posthaste_core::delivery_log::EventHistory;
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, Ports};

use crate::answer::{ApiError, unknown_topic};
use crate::event_log::{EventLog, event_lifetime, log_damaged_files, written_name};
use crate::log_coverage::{LogCoverage, TimeBounds};
use crate::manage::Manage;
use crate::replay_origins::{ReplayOrigins, mark_recoveries, newest_runs};
use crate::topic_records::TopicRecords;
use crate::waiting::SubscriptionOutlook;

/// The view of what became of one event.
pub(crate) struct EventViewer<P: Ports> {
    clock: P::Clock,
    events: EventLog<P>,
    coverage: LogCoverage<P>,
    records: TopicRecords<P>,
    outlook: SubscriptionOutlook<P>,
    origins: ReplayOrigins<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EventViewer<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            events: EventLog::from_ref(manage),
            coverage: LogCoverage::from_ref(manage),
            records: TopicRecords::from_ref(manage),
            outlook: SubscriptionOutlook::from_ref(manage),
            origins: ReplayOrigins::from_ref(manage),
        }
    }
}

impl<P: Ports> EventViewer<P> {
    /// The deliveries of the event with this id.
    pub(crate) async fn view_event(
        &self,
        topic: &TopicName,
        id: String,
        query: &EventQuery,
    ) -> Result<EventView, ApiError> {
        let complete_until = self.coverage.complete_until();
        let record = self.records.load_record(topic).await?;
        let look_up = query.look_up(topic, &id, self.clock.now());
        let asked = TimeBounds {
            from: look_up.from,
            to: look_up.to,
        };
        let found = self.events.look_up(look_up).await?;
        if found.records.is_empty() && found.searched_from.is_none() && record.is_none() {
            return Err(unknown_topic(topic).into());
        }
        let bounds = [found.searched_from, asked.from];
        let complete_from = self
            .coverage
            .complete_from(&found.records, found.is_cut, bounds);
        let EventHistory { deliveries, state } =
            EventHistory::from_records(found.records, complete_from, self.coverage.end_of(asked));
        let lifetime = event_lifetime(deliveries.iter(), asked);
        let gaps = self.coverage.gaps(lifetime.from, lifetime.to);
        let damaged = log_damaged_files(&found.damaged);
        let note = LogNote {
            is_unknown: state.is_none(),
            delay: self.coverage.delay(),
            is_off: self.coverage.is_off(record.as_ref()),
            is_cut: found.is_cut,
            searched_from: found.searched_from,
            damaged: &damaged,
            gaps: &gaps,
        };
        let retention = self.coverage.retention();
        let with_payload = query.payload.unwrap_or_default();
        let views = deliveries
            .iter()
            .map(|history| DeliveryView::from_history(history, retention, with_payload));
        let mut deliveries: Vec<_> = views
            .map(|view| DeliveryView {
                subscription: written_name(record.as_ref(), &view.subscription),
                ..view
            })
            .collect();
        let recoveries = self.origins.read_recoveries(newest_runs(&deliveries));
        let outlook = self
            .outlook
            .add_next_attempts(record.as_ref(), &mut deliveries);
        let (recoveries, ()) = join(recoveries, outlook).await;
        mark_recoveries(&mut deliveries, &recoveries);
        Ok(EventView {
            id,
            state,
            deliveries,
            complete_until,
            gaps: gaps.iter().map(LogGapView::from).collect(),
            note: note.text(),
        })
    }
}
