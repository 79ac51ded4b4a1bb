//! The delivery log, as requests read it: the records of one event, and pages of records.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::IsoTimestamp;
use posthaste_core::api::events::{
    ListTime, LogGapView, LogNote, RecordPage, RecordQuery, RecordView,
};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::delivery_log::{
    DeliveryHistory, DeliveryState, RecordCursor, RecordFilter, RecordLookup,
};
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::TopicRecord;
use posthaste_delivery_log::{DeliveryLog, LogError, LookUpResult};
use posthaste_ports::{Clock, Ports};

use crate::answer::ApiError;
use crate::log_coverage::{LogCoverage, TimeBounds};
use crate::manage::Manage;
use crate::paging::{LIST_TIME_MAX, PageRequest, bad_cursor, encode_cursor};
use crate::shared_port::SharedPort;

/// The time after which a look-up answers what it has found. Two rounds of reads that begin just
/// before its end, and a search of the dead letters, still end before the request's time limit.
pub(crate) const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(10);

/// The records of the delivery log.
pub(crate) struct EventLog<P: Ports> {
    log: SharedPort<P, DeliveryLog<P::Log>>,
    clock: P::Clock,
    coverage: LogCoverage<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EventLog<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            log: SharedPort::new(manage, |it| &it.log),
            clock: manage.clock.clone(),
            coverage: LogCoverage::from_ref(manage),
        }
    }
}

impl<P: Ports> EventLog<P> {
    /// The records of an event, as far as there is time.
    pub(crate) async fn look_up(&self, look_up: RecordLookup) -> Result<LookUpResult, ApiError> {
        let until = self.clock.monotonic() + LOOK_UP_TIME_MAX;
        Ok(self
            .log
            .look_up_event(look_up, || self.clock.monotonic() < until)
            .await?)
    }

    /// One page of records, the subscriptions under the names that were written. It has what was
    /// found in this time, which is at most that of every list.
    pub(crate) async fn log_page(
        &self,
        record: Option<&TopicRecord>,
        filter: RecordFilter,
        items: usize,
        time: Option<ListTime>,
    ) -> Result<RecordPage, ApiError> {
        let complete_until = self.coverage.complete_until();
        let time = time.map_or(LIST_TIME_MAX, |ListTime(time)| time.min(LIST_TIME_MAX));
        let until = self.clock.monotonic() + time;
        let listed = self
            .log
            .list_records(&filter, items, || self.clock.monotonic() < until)
            .await?;
        let damaged = log_damaged_files(&listed.damaged);
        // What a later page has is told there.
        let last = listed.records.last().map(|record| record.time);
        let from = last.filter(|_| listed.next.is_some()).max(filter.from);
        let gaps = self.coverage.gaps(from, filter.end_time());
        let note = LogNote {
            is_off: self.coverage.is_off(record),
            damaged: &damaged,
            gaps: &gaps,
            ..LogNote::default()
        };
        let rows = listed.records.into_iter().map(RecordView::from);
        let rows = rows.map(|row| RecordView {
            subscription: written_name(record, &row.subscription),
            ..row
        });
        let records = rows.collect();
        let searched_back_to = listed.next.as_ref().map(|next| IsoTimestamp(next.time));
        let cursor = listed.next.map(|next| encode_cursor(&next.to_string()));
        Ok(RecordPage {
            records,
            searched_back_to,
            complete_until,
            gaps: gaps.iter().map(LogGapView::from).collect(),
            note: note.text(),
            cursor,
        })
    }
}

/// The filter and the length of a page, or a problem that names every parameter at fault.
pub(crate) fn read_query(
    query: &RecordQuery,
    topic: &TopicName,
    now: Timestamp,
) -> Result<(RecordFilter, usize), ApiProblem> {
    let PageRequest { items, after } = PageRequest::parse(query.limit, query.cursor.as_deref())?;
    let filter = query
        .to_filter(topic, now)
        .map_err(|mistakes| ApiProblem::new(ProblemKind::BadRequest).mistakes(mistakes))?;
    let after = after
        .map(|after| RecordCursor::parse(&after).ok_or_else(bad_cursor))
        .transpose()?;
    Ok((RecordFilter { after, ..filter }, items))
}

/// Whether a list has nothing, here and on later pages.
pub(crate) fn is_empty(page: &RecordPage) -> bool {
    page.records.is_empty() && page.cursor.is_none()
}

/// The time in which an event may have had attempts, as far as the log knows it: from its acceptance
/// to the end of its last delivery.
pub(crate) fn event_lifetime<'a>(
    histories: impl Iterator<Item = &'a DeliveryHistory> + Clone,
    asked: TimeBounds,
) -> TimeBounds {
    let accepted = histories.clone().map(|history| history.first().accepted_at);
    let last = histories
        .clone()
        .flat_map(DeliveryHistory::records)
        .map(|record| record.time)
        .max();
    let mut states = histories.map(|history| history.state);
    let end = last.filter(|_| states.all(has_ended));
    TimeBounds {
        from: asked.from.max(accepted.min()),
        to: end.or(asked.to),
    }
}

/// Whether no attempt follows this state.
fn has_ended(state: DeliveryState) -> bool {
    matches!(
        state,
        DeliveryState::Delivered | DeliveryState::DeadLettered | DeliveryState::Dropped
    )
}

/// The name of a subscription as it was written. The log has it in lower case.
pub(crate) fn written_name(record: Option<&TopicRecord>, folded: &str) -> String {
    let name = SubscriptionName::parse(folded).ok();
    let found = record
        .zip(name)
        .and_then(|(record, name)| record.settings.find_subscription(&name));
    found
        .map_or(folded, |(written, _)| written.as_str())
        .to_owned()
}

/// The names of damaged files. Each is logged.
pub(crate) fn log_damaged_files(damaged: &[LogError]) -> Vec<&str> {
    for error in damaged {
        tracing::error!(
            error = error as &dyn Error,
            "a file of the delivery log is damaged"
        );
    }
    damaged.iter().filter_map(LogError::damaged_file).collect()
}
